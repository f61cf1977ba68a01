"""Which arms a log has, and the distributions that they were drawn from."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from orthobandit._foundation.arm_files import label_of, number_of, read_table
from orthobandit._foundation.checks import nearest
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, FileFormatError, InputError, LabelError, ProbabilityError
from orthobandit.estimate.follow.cells import MOST_FEEDS
from orthobandit.logs.question import OBSERVED, Question
from orthobandit.logs.reading.rows import key_of
from orthobandit.logs.reading.source import Coded, Opened, encode_keys, first_row, how_many, text_of

Distributions = Mapping[str, Mapping[str, float]]  # the probability of each arm, by plan
TOLERANCE = 1e-6  # how far a sum of probabilities may be from one
ROUNDING = 1e-9  # from how far on it is worth a note
MAX_ARMS = 10_000
# More arms than this with fewer rows each are no arms but times, users or prices: nothing could be estimated.
FEW_ARMS = 100
FEW_ROWS = 5
MIXER = np.uint64(0xBF58476D1CE4E5B9)  # of SplitMix64
PREFIXES = ("p:", "p_", "")


@dataclass(frozen=True)
class Drawn:
    """The `arm` (G,) of every cell, and the `plan` (G,) it was drawn from: a row of `plans` (P, K)."""

    arms: ArmSet
    plans: Array
    arm: Whole
    plan: Whole
    notes: tuple[str, ...] = ()


def read_draws(opened: Opened, question: Question, groups: Any, counts: Whole) -> Drawn:
    """Return arms and distributions of groups (a pyarrow table of G rows), each of `counts` rows."""
    distributions = distributions_of(question)
    arms, arm, notes = read_arms(opened, question, groups, counts, distributions)
    if question.split == OBSERVED:
        plans, plan = counted_shares(groups["stratum"].to_numpy(), arm, counts, len(arms))
    elif question.split is not None:
        plans = split_of(question.split, arms)[np.newaxis]
        plan = np.zeros(len(arm), dtype=np.int64)
    elif question.plan is not None:
        plans, plan = named_plans(question, arms, encode_keys(groups["plan"]), distributions, counts)
    elif len(question.probabilities) == 1:
        plans, plan = _one_column(question, arms, arm, groups["p0"].to_numpy())
    else:
        plans, plan = _columns(opened, question, arms, groups, counts)
    _check_played(opened, question, Drawn(arms, plans, arm, plan), counts)
    # A mean over rows of different probabilities compares arms at different times, unless their order is
    # known. Where shares were counted, arms are compared within each stratum.
    if question.time is None and len(plans) > 1 and question.split != OBSERVED:
        raise InputError(
            f"probabilities differ between rows ({len(plans):,} distributions): the order of draws matters"
            " then; name the time column (time)"
        )
    # Logs keep a few digits: what is within the tolerance of a distribution is made one, and that is said.
    whole = plans.sum(axis=1, keepdims=True)
    off = float(np.abs(whole - 1).max(initial=0.0))
    if off > ROUNDING:
        notes = (*notes, f"probabilities sum to 1 within {off:.1g} only, and were divided by their sums")
    return Drawn(arms, plans / whole, arm, plan, notes)


def read_arms(
    opened: Opened, question: Question, groups: Any, counts: Whole, distributions: Distributions
) -> tuple[ArmSet, Whole, tuple[str, ...]]:
    """Return the arms, the number of the arm of each group (G,), and notes on their labels."""
    keys = encode_keys(groups["arm"])
    if np.any(keys.codes < 0):
        own = key_of(opened.table[question.arm], opened.schema[question.arm])
        where = first_row(opened, own.isnull())
        rows = how_many(question, int(counts[keys.codes < 0].sum()))
        raise InputError(
            Argument("arm", question.arm), f" is empty in {rows}{where}; leave these out or name their arm"
        )
    # Before arms are made of them: one-hot features of thousands take seconds and a gigabyte.
    rows_in_all = int(counts.sum())
    if len(keys.texts) > FEW_ARMS and rows_in_all < FEW_ROWS * len(keys.texts):
        raise InputError(
            Argument("arm", question.arm),
            f" holds {len(keys.texts):,} different values in {rows_in_all:,} rows,"
            f" {keys.texts[0]!r} and {keys.texts[1]!r} among them; is this the column of the arms?",
        )
    arms, notes = arms_of(question, keys, distributions)
    arm = arm_numbers(opened, question, arms, keys, counts)
    return arms, arm, notes + _look_alike(keys, counts)


def counted_shares(stratum: Whole, arm: Whole, counts: Whole, arms: int) -> tuple[Array, Whole]:
    """Return the shares (P, K) of arms among the rows of each stratum, and the stratum of each group (G,).

    Examples
    --------
    >>> stratum, arm, counts = np.array([7, 7, 9]), np.array([0, 1, 1]), np.array([30, 10, 5])
    >>> shares, place = counted_shares(stratum, arm, counts, 2)
    >>> shares.tolist(), place.tolist()
    ([[0.75, 0.25], [0.0, 1.0]], [0, 0, 1])
    """
    distinct, place = np.unique(stratum, return_inverse=True)
    by_arm = np.bincount(place * arms + arm, counts, minlength=len(distinct) * arms).reshape(-1, arms)
    return by_arm / by_arm.sum(axis=1, keepdims=True), place.astype(np.int64)


def split_of(split: Mapping[str, float] | str, arms: ArmSet) -> Array:
    """Return the one distribution (K,) of all rows."""
    if isinstance(split, str):
        return np.full(len(arms), 1.0 / len(arms))
    return _distribution("split", split, arms)


def _distribution(name: str, distribution: Mapping[str, float], arms: ArmSet) -> Array:
    """Return {arm: probability} as (K,); arms that are not named have 0."""
    p = np.zeros(len(arms))
    places = {label: place for place, label in enumerate(arms.labels)}
    for label, value in distribution.items():
        if text_of(label) not in places:
            raise LabelError(f"{name} names the arm {label!r}; {nearest(label, arms.labels)}")
        p[places[text_of(label)]] = value
    if not _are_proper(p[np.newaxis])[0]:
        raise ProbabilityError(
            f"{name}: the probabilities {', '.join(f'{value:g}' for value in p)} sum to {p.sum():.9g}; they"
            " must be at least 0 and sum to 1"
        )
    return p


def named_plans(
    question: Question, arms: ArmSet, keys: Coded, distributions: Distributions, counts: Whole
) -> tuple[Array, Whole]:
    """Return the distributions (P, K) of the plans that groups name, and the plan of each group (G,)."""
    for place, text in [(-1, ""), *enumerate(keys.texts)]:
        rows = int(counts[keys.codes == place].sum()) if place < 0 or text not in distributions else 0
        if rows:
            named = f"holds the plan {text!r}" if place >= 0 else "is empty"
            raise InputError(
                Argument("plan", question.plan),
                f" {named} in {how_many(question, rows)}; {nearest(text, distributions)}",
            )
    return np.array(
        [_distribution(f"plan {text!r}", distributions[text], arms) for text in keys.texts]
    ), keys.codes


def _are_proper(p: Array) -> Mask:
    """Return which rows of (P, K) are distributions."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.all(p >= 0, axis=1) & (np.abs(p.sum(axis=1) - 1) <= TOLERANCE))


def _columns(
    opened: Opened, question: Question, arms: ArmSet, groups: Any, counts: Whole
) -> tuple[Array, Whole]:
    """Return the distinct distributions (P, K) of one column per arm, and the plan of each group (G,)."""
    order = columns_of_arms(question.probabilities, arms.labels)
    vectors = np.stack([groups[f"p{place}"].to_numpy() for place in order], axis=1).astype(np.float64)
    first, codes = _distinct_rows(vectors)
    plans = vectors[first]
    bad = ~_are_proper(plans)
    if np.any(bad):
        table = opened.table
        columns = [table[name].cast("float64") for name in question.probabilities]
        whole = sum(columns[1:], columns[0])
        proper = whole.between(1 - TOLERANCE, 1 + TOLERANCE).fill_null(False)
        for column in columns:
            proper = proper & (column >= 0).fill_null(False)
        p = plans[int(np.argmax(bad))]
        per_cent = "; they look like per cent: divide by 100" if _are_proper(p[np.newaxis] / 100)[0] else ""
        raise ProbabilityError(
            f"probabilities {', '.join(question.probabilities)} are not a distribution in"
            f" {how_many(question, int(counts[bad[codes]].sum()))}{first_row(opened, ~proper)}, e.g."
            f" {', '.join(f'{value:g}' for value in p)} (sum {p.sum():.9g}); they must be at least 0 and"
            f" sum to 1{per_cent}"
        )
    return plans, codes.astype(np.int64)


def _distinct_rows(vectors: Array) -> tuple[Whole, Whole]:
    """Return the places (P,) of the distinct rows among vectors (G, K), and the number (G,) of each row's.

    Their order depends on the numbers alone, and not on that of the rows.
    """
    # Sorted by 64 bits that are mixed from all numbers of a row: rows that are alike come together. 0 is
    # added since −0 and 0 are one number of different bits.
    bits = np.ascontiguousarray(vectors + 0.0).view(np.uint64)
    mixed = np.zeros(len(bits), dtype=np.uint64)
    for column in bits.T:
        mixed = (mixed ^ column) * MIXER
        mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed)
    is_new = np.diff(mixed[order], prepend=~mixed[order[:1]]) != 0
    first = order[is_new]
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(is_new) - 1
    if not np.array_equal(bits[first[codes]], bits):
        # Two distributions met in the same 64 bits: by all of their numbers, then, which takes longer.
        _, first, codes = np.unique(bits, axis=0, return_index=True, return_inverse=True)
        codes = codes.ravel().astype(np.int64)
    if len(first) > MOST_FEEDS:
        return first, codes
    # By the numbers themselves where certificates are made: they name plans in this order.
    order = np.lexsort(vectors[first].T[::-1])
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return first[order], places[codes]


def _one_column(question: Question, arms: ArmSet, arm: Whole, p: Array) -> tuple[Array, Whole]:
    """Work out whole distributions from the probability of the arm that was drawn, where possible."""
    name = question.probabilities[0]
    if not np.all((p >= 0) & (p <= 1)):
        wrong = p[~((p >= 0) & (p <= 1))][0]
        raise ProbabilityError(
            Argument("probabilities", name), f" holds {wrong:g}; it must lie between 0 and 1"
        )
    if len(arms) == 2:
        # Rounded, so that p of one arm and 1 − p of the other are the same distribution.
        values, plan = np.unique(np.round(np.where(arm == 0, p, 1 - p), 12), return_inverse=True)
        return np.stack([values, 1 - values], axis=1), plan.astype(np.int64)
    low, high = np.full(len(arms), np.inf), np.full(len(arms), -np.inf)
    np.minimum.at(low, arm, p)
    np.maximum.at(high, arm, p)
    if np.any(high - low > TOLERANCE):
        refuse_one_column(name, "it varies from row to row")
    if np.any(np.isinf(low)) or abs(low.sum() - 1) > TOLERANCE:
        refuse_one_column(name, "those of the arms that were drawn do not sum to 1")
    return low[np.newaxis], np.zeros(len(arm), dtype=np.int64)


def refuse_one_column(name: str, why: str) -> NoReturn:
    """Raise an error if the drawn arm's probability does not determine the others'."""
    raise ProbabilityError(
        Argument("probabilities", name),
        f" has only the probability of the arm that was drawn, and {why}: with more"
        " than two arms the others' cannot be told from it, and gaps are estimated from arms centred by the"
        " whole distribution; log every arm's probability (one column per arm) or the plan",
    )


def _check_played(opened: Opened, question: Question, found: Drawn, counts: Whole) -> None:
    """Refuse arms that were played though their probability was zero."""
    zero = found.plans[found.plan, found.arm] <= 0
    if not np.any(zero):
        return
    label = found.arms.labels[found.arm[int(np.argmax(zero))]]
    column = opened.table[question.arm]
    where = ""
    if len(question.probabilities) > 1:
        place = columns_of_arms(question.probabilities, found.arms.labels)[found.arms.index(label)]
        p = opened.table[question.probabilities[place]]
        where = first_row(opened, (column.cast("string") == label) & (p <= 0))
    raise ProbabilityError(
        f"the arm {label!r} was played in {how_many(question, int(counts[zero].sum()))} where its stated"
        f" probability is 0{where}; the probabilities are not those that it was drawn with"
    )


def arms_of(question: Question, keys: Coded, distributions: Distributions) -> tuple[ArmSet, tuple[str, ...]]:
    """Return the arms: from the file, else from the stated probabilities, else from the data."""
    if question.arms is not None:
        arms = ArmSet.read(question.arms)
        if len(question.probabilities) > 1:
            columns_of_arms(question.probabilities, arms.labels)
        return arms, ()
    # What states probabilities also names arms that were never drawn; the data cannot.
    if isinstance(question.split, Mapping):
        return _one_hot([text_of(label) for label in question.split]), ()
    if distributions:
        return _one_hot(dict.fromkeys(label for one in distributions.values() for label in one)), ()
    names = question.probabilities
    if len(names) > 1:
        # The most explicit name first: an arm may itself be called p_something.
        for prefix in PREFIXES:
            labels = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
            if len(labels) == len(names) and set(keys.texts) <= set(labels):
                return _one_hot(labels), ()
        if len(names) == len(keys.texts):
            pairs = ", ".join(f"{name} for {label}" for name, label in zip(names, keys.texts, strict=True))
            return _one_hot(keys.texts), (
                f"columns of probabilities are taken in the order of the arms: {pairs}",
            )
        slip = _slip_words(keys.texts, [_without_prefix(name) for name in names])
        # Repr: spaces at the ends of labels are among the reasons.
        shown = ", ".join(map(repr, keys.texts[:8])) + (", …" if len(keys.texts) > 8 else "")
        raise InputError(
            Argument("probabilities", ending=""),
            f": {len(names)} columns ({', '.join(names)}) cannot be matched with the"
            f" {len(keys.texts)} arms {shown}; {slip or 'call them p:<arm>, or name all of them'}",
        )
    return _one_hot(keys.texts), ()


def _without_prefix(name: str) -> str:
    """Return the arm that a column of probabilities names, if it begins as such columns do."""
    return next(
        (name.removeprefix(prefix) for prefix in PREFIXES if prefix and name.startswith(prefix)), name
    )


def _slip_words(given: Iterable[str], known: Sequence[str]) -> str:
    """Return the remedy for a label that differs from a known one only in case or spaces; "" if none does."""
    meant = {_folded(label): label for label in known}
    for label in given:
        found = meant.get(_folded(label))
        if found is not None and found != label:
            return f"{label!r} and {found!r} differ only in case or spaces: write them alike"
    return ""


def _folded(label: str) -> str:
    """Return a label without what is easily mistyped."""
    return " ".join(label.split()).casefold()


def _look_alike(keys: Coded, counts: Whole) -> tuple[str, ...]:
    """Return a note on labels that differ only in case or in spaces: probably they are one arm."""
    notes = []
    for places in alike_labels(keys.texts):
        named = ", ".join(
            f"{keys.texts[place]!r} ({int(counts[keys.codes == place].sum()):,} rows)" for place in places
        )
        notes.append(f"the arms {named} differ only in case or spaces; if they are one arm, mend the labels")
    return tuple(notes)


def alike_labels(labels: Sequence[str]) -> list[list[int]]:
    """Return the places of labels that differ only in case or in spaces, a list for each group of them.

    Examples
    --------
    >>> alike_labels(["new", "old", "New ", "OLD", "blue"])
    [[0, 2], [1, 3]]
    """
    groups: dict[str, list[int]] = {}
    for place, text in enumerate(labels):
        groups.setdefault(_folded(text), []).append(place)
    return [places for places in groups.values() if len(places) > 1]


def _one_hot(labels: Iterable[str]) -> ArmSet:
    names = list(labels)
    if len(names) < 2:
        raise InputError(f"there is only the arm {names[0]!r}; there is nothing to compare it with")
    if len(names) > MAX_ARMS:
        raise InputError(f"{len(names):,} arms are more than {MAX_ARMS:,}; is this the column of the arms?")
    return ArmSet.one_hot(len(names), names)


def arm_numbers(opened: Opened, question: Question, arms: ArmSet, keys: Coded, counts: Whole) -> Whole:
    """Return the arm number of each group (G,); refuse unknown arms by name."""
    places = {label: place for place, label in enumerate(arms.labels)}
    numbers = np.array([places.get(text, -1) for text in keys.texts], dtype=np.int64)
    unknown = [text for text, number in zip(keys.texts, numbers, strict=True) if number < 0]
    if unknown:
        rows = how_many(question, int(counts[numbers[keys.codes] < 0].sum()))
        own = key_of(opened.table[question.arm], opened.schema[question.arm])
        where = first_row(opened, own.cast("string") == unknown[0])
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise LabelError(
            Argument("arm", question.arm),
            f" holds {unknown[0]!r}{more}, not among the arms, in {rows}{where};"
            f" {_slip_words(unknown, arms.labels) or nearest(unknown[0], arms.labels)}",
        )
    if question.reference is not None and question.reference not in places:
        raise LabelError(
            Argument("reference", question.reference),
            f" is not an arm; {nearest(question.reference, places)}",
        )
    return numbers[keys.codes]


def distributions_of(question: Question) -> dict[str, dict[str, float]]:
    """Return {plan: {arm: probability}} of a file or a mapping; {} without plans."""
    if question.plans is None:
        return {}
    if isinstance(question.plans, Mapping):
        return {
            text_of(plan): {text_of(arm): float(p) for arm, p in distribution.items()}
            for plan, distribution in question.plans.items()
        }
    path = Path(question.plans)
    table = read_table(path)
    name = "plan" if "plan" in table else next(iter(table))
    arms = [column for column in table if column != name]
    distributions: dict[str, dict[str, float]] = {}
    for row, value in enumerate(table[name]):
        distribution = {arm.removeprefix("p:"): number_of(table[arm][row]) for arm in arms}
        for arm, p in distribution.items():
            if p is None:
                raise FileFormatError(
                    f"{path} row {row + 1}: the probability of {arm!r} is not a number; a table of plans has"
                    " their names in a column 'plan', and a column of probabilities for each arm"
                )
        distributions[label_of(value)] = {arm: p for arm, p in distribution.items() if p is not None}
    return distributions


def columns_of_arms(names: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Return the column number of each arm: matched by name, else in the order of the arms."""
    if len(names) != len(labels):
        raise InputError(
            Argument("probabilities", ending=""),
            f": {len(names)} columns for {len(labels)} arms; name one per arm",
        )
    for prefix in PREFIXES:
        if {name.removeprefix(prefix) for name in names if name.startswith(prefix)} == set(labels):
            return [list(names).index(prefix + label) for label in labels]
    return list(range(len(names)))
