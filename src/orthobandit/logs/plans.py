"""Arms of a log and the distributions they were drawn from, out of the keys that the engine grouped by."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from orthobandit._checks import nearest
from orthobandit._tables import label_of, number_of, read_table
from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import FileFormatError, InputError, LabelError, ProbabilityError
from orthobandit.logs.engine import Opened, ibis
from orthobandit.logs.question import Question

TOLERANCE = 1e-6  # how far a sum of probabilities may be from one
MOST_ARMS = 10_000
PREFIXES = ("p:", "p_", "")


@dataclass(frozen=True)
class Drawn:
    """What cells were drawn from: `arm` (G,) of `arms`, by the distribution `plan` (G,) of `plans` (P, K)."""

    arms: ArmSet
    plans: Array
    arm: Whole
    plan: Whole
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Coded:
    """A column of keys as numbers: `texts[codes]`, in the order of the values; −1 for NULL."""

    codes: Whole
    texts: tuple[str, ...]


def coded(column: Any) -> Coded:
    """Return a pyarrow column as numbers of its distinct values."""
    encoded = column.combine_chunks().dictionary_encode() if column.num_chunks != 1 else None
    encoded = column.chunk(0).dictionary_encode() if encoded is None else encoded
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    order = sorted(range(len(values)), key=lambda place: (str(type(values[place])), values[place]))
    rank = np.empty(len(values) + 1, dtype=np.int64)
    rank[np.asarray(order, dtype=np.int64)], rank[-1] = np.arange(len(values)), -1
    return Coded(rank[codes], tuple(text_of(values[place]) for place in order))


def text_of(value: Any) -> str:
    """Return a value of a key as a label: 1.0 is "1", true is "true"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def drawn(opened: Opened, question: Question, groups: Any, counts: Whole) -> Drawn:
    """Return arms and distributions of groups (a pyarrow table of G rows), each of `counts` rows."""
    keys = coded(groups["arm"])
    if np.any(keys.codes < 0):
        rows = int(counts[keys.codes < 0].sum())
        raise InputError(f"arm={question.arm!r} is empty in {rows:,} rows; leave these out or name their arm")
    laws = _laws(question)
    arms, notes = _arms(question, keys, laws)
    arm = _arm_numbers(opened, question, arms, keys, counts)
    if question.split is not None:
        plans, plan = _split(question.split, arms)[np.newaxis], np.zeros(len(arm), dtype=np.int64)
    elif question.plan is not None:
        plans, plan = _named_plans(question, arms, coded(groups["plan"]), laws, counts)
    elif len(question.probabilities) == 1:
        plans, plan = _one_column(question, arms, arm, groups["p0"].to_numpy())
    else:
        plans, plan = _columns(opened, question, arms, groups, counts)
    _check_played(opened, question, Drawn(arms, plans, arm, plan), counts)
    if question.time is None and len(plans) > 1:
        raise InputError(
            f"probabilities differ between rows ({len(plans):,} distributions): the order of draws matters"
            " then; name the time column (time)"
        )
    return Drawn(arms, plans, arm, plan, notes)


def _arms(
    question: Question, keys: Coded, laws: Mapping[str, Mapping[str, float]]
) -> tuple[ArmSet, tuple[str, ...]]:
    """Return the arms: of the file, else of what states probabilities, else those of the data."""
    if question.arms is not None:
        arms = ArmSet.read(question.arms)
        if len(question.probabilities) > 1:
            _order(question.probabilities, arms.labels)
        return arms, ()
    if isinstance(question.split, Mapping):
        return _one_hot([str(label) for label in question.split]), ()
    if laws:
        return _one_hot(dict.fromkeys(label for law in laws.values() for label in law)), ()
    names = question.probabilities
    if len(names) > 1:
        for prefix in PREFIXES:
            labels = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
            if len(labels) == len(names) and set(keys.texts) <= set(labels):
                return _one_hot(labels), ()
        if len(names) == len(keys.texts):
            pairs = ", ".join(f"{name} for {label}" for name, label in zip(names, keys.texts, strict=True))
            return _one_hot(keys.texts), (
                f"columns of probabilities are taken in the order of the arms: {pairs}",
            )
        raise InputError(
            f"probabilities: {len(names)} columns ({', '.join(names)}) cannot be matched with the arms"
            f" {', '.join(keys.texts[:8])}; call them p:<arm>, or name all of them"
        )
    return _one_hot(keys.texts), ()


def _one_hot(labels: Iterable[str]) -> ArmSet:
    names = list(labels)
    if len(names) < 2:
        raise InputError(f"the log has only the arm {names[0]!r}; there is nothing to compare it with")
    if len(names) > MOST_ARMS:
        raise InputError(f"{len(names):,} arms are more than {MOST_ARMS:,}; is this the column of the arms?")
    return ArmSet.one_hot(len(names), names)


def _arm_numbers(opened: Opened, question: Question, arms: ArmSet, keys: Coded, counts: Whole) -> Whole:
    places = {label: place for place, label in enumerate(arms.labels)}
    numbers = np.array([places.get(text, -1) for text in keys.texts], dtype=np.int64)
    unknown = [text for text, number in zip(keys.texts, numbers, strict=True) if number < 0]
    if unknown:
        rows = int(counts[numbers[keys.codes] < 0].sum())
        column = opened.table[question.arm]
        where = first_row(opened, column.cast("string") == unknown[0])
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise LabelError(
            f"arm={question.arm!r} holds {unknown[0]!r}{more}, not among the arms, in {rows:,} rows{where};"
            f" {nearest(unknown[0], arms.labels)}"
        )
    if question.reference is not None and question.reference not in places:
        raise LabelError(
            f"reference={question.reference!r} is not an arm; {nearest(question.reference, places)}"
        )
    return numbers[keys.codes]


def first_row(opened: Opened, condition: Any) -> str:
    """Return ", first in row 7" for a condition on the table, where rows have numbers."""
    if not opened.is_ordered:
        return ""
    table = opened.table.mutate(orthobandit_bad=condition, orthobandit_row=ibis().row_number())
    bad = table.filter(table.orthobandit_bad)
    row = opened.fetch(bad.aggregate(row=bad.orthobandit_row.min()))["row"][0].as_py()
    return "" if row is None else f", first in row {row + 1}"


def _laws(question: Question) -> dict[str, dict[str, float]]:
    """Return {plan: {arm: probability}} of a file or a mapping; {} without plans."""
    if question.plans is None:
        return {}
    if isinstance(question.plans, Mapping):
        return {
            text_of(plan): {str(arm): float(p) for arm, p in law.items()}
            for plan, law in question.plans.items()
        }
    path = Path(question.plans)
    table = read_table(path)
    name = "plan" if "plan" in table else next(iter(table))
    arms = [column for column in table if column != name]
    laws: dict[str, dict[str, float]] = {}
    for row, value in enumerate(table[name]):
        law = {arm.removeprefix("p:"): number_of(table[arm][row]) for arm in arms}
        for arm, p in law.items():
            if p is None:
                raise FileFormatError(f"{path} row {row + 1}: the probability of {arm!r} is not a number")
        laws[label_of(value)] = {arm: p for arm, p in law.items() if p is not None}
    return laws


def _split(split: Mapping[str, float] | str, arms: ArmSet) -> Array:
    if isinstance(split, str):
        return np.full(len(arms), 1.0 / len(arms))
    return _law("split", split, arms)


def _law(name: str, law: Mapping[str, float], arms: ArmSet) -> Array:
    """Return {arm: probability} as (K,); arms that are not named have 0."""
    p = np.zeros(len(arms))
    for label, value in law.items():
        if str(label) not in arms.labels:
            raise LabelError(f"{name} names the arm {label!r}; {nearest(label, arms.labels)}")
        p[arms.index(str(label))] = value
    if not _are_proper(p[np.newaxis])[0]:
        raise ProbabilityError(
            f"{name}: the probabilities {', '.join(f'{value:g}' for value in p)} sum to {p.sum():.9g}; they"
            " must be at least 0 and sum to 1"
        )
    return p


def _named_plans(
    question: Question, arms: ArmSet, keys: Coded, laws: Mapping[str, Mapping[str, float]], counts: Whole
) -> tuple[Array, Whole]:
    for place, text in [(-1, ""), *enumerate(keys.texts)]:
        rows = int(counts[keys.codes == place].sum()) if place < 0 or text not in laws else 0
        if rows:
            named = f"holds the plan {text!r}" if place >= 0 else "is empty"
            raise InputError(f"plan={question.plan!r} {named} in {rows:,} rows; {nearest(text, laws)}")
    return np.array([_law(f"plan {text!r}", laws[text], arms) for text in keys.texts]), keys.codes


def _are_proper(p: Array) -> Mask:
    """Return which rows of (P, K) are distributions."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.all(p >= 0, axis=1) & (np.abs(p.sum(axis=1) - 1) <= TOLERANCE))


def _order(names: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Return which column is which arm's: by name, else in the order of the arms."""
    if len(names) != len(labels):
        raise InputError(f"probabilities: {len(names)} columns for {len(labels)} arms; name one an arm")
    for prefix in PREFIXES:
        if {name.removeprefix(prefix) for name in names if name.startswith(prefix)} == set(labels):
            return [list(names).index(prefix + label) for label in labels]
    return list(range(len(names)))


def _columns(
    opened: Opened, question: Question, arms: ArmSet, groups: Any, counts: Whole
) -> tuple[Array, Whole]:
    order = _order(question.probabilities, arms.labels)
    vectors = np.stack([groups[f"p{place}"].to_numpy() for place in order], axis=1).astype(np.float64)
    codes = np.zeros(len(vectors), dtype=np.int64)
    for column in vectors.T:
        _, own = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * (own.max() + 1) + own, return_inverse=True)
    _, first = np.unique(codes, return_index=True)
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
        raise ProbabilityError(
            f"probabilities {', '.join(question.probabilities)} are not a distribution in"
            f" {int(counts[bad[codes]].sum()):,} rows{first_row(opened, ~proper)}, e.g."
            f" {', '.join(f'{value:g}' for value in p)} (sum {p.sum():.9g}); they must be at least 0 and"
            " sum to 1"
        )
    return plans, codes.astype(np.int64)


def _one_column(question: Question, arms: ArmSet, arm: Whole, p: Array) -> tuple[Array, Whole]:
    """Complete the probability of the arm that was drawn, where that can be done."""
    name = question.probabilities[0]
    if not np.all((p >= 0) & (p <= 1)):
        wrong = p[~((p >= 0) & (p <= 1))][0]
        raise ProbabilityError(f"probabilities={name!r} holds {wrong:g}; it must lie between 0 and 1")
    if len(arms) == 2:
        # Rounded, so that p of one arm and 1 − p of the other are the same distribution.
        values, plan = np.unique(np.round(np.where(arm == 0, p, 1 - p), 12), return_inverse=True)
        return np.stack([values, 1 - values], axis=1), plan.astype(np.int64)
    low, high = np.full(len(arms), np.inf), np.full(len(arms), -np.inf)
    np.minimum.at(low, arm, p)
    np.maximum.at(high, arm, p)
    if np.any(high - low > TOLERANCE):
        _refuse_one_column(name, "it varies from row to row")
    if np.any(np.isinf(low)) or abs(low.sum() - 1) > TOLERANCE:
        _refuse_one_column(name, "those of the arms that were drawn do not sum to 1")
    return low[np.newaxis], np.zeros(len(arm), dtype=np.int64)


def _refuse_one_column(name: str, why: str) -> NoReturn:
    raise ProbabilityError(
        f"probabilities={name!r} has only the probability of the arm that was drawn, and {why}: with more"
        " than two arms the others' cannot be told from it, and gaps are estimated from arms centred by the"
        " whole distribution; log every arm's probability (one column an arm) or the plan"
    )


def _check_played(opened: Opened, question: Question, found: Drawn, counts: Whole) -> None:
    """Refuse arms that were played though their probability was zero."""
    zero = found.plans[found.plan, found.arm] <= 0
    if not np.any(zero):
        return
    label = found.arms.labels[found.arm[int(np.argmax(zero))]]
    column, where = opened.table[question.arm], ""
    if len(question.probabilities) > 1:
        place = _order(question.probabilities, found.arms.labels)[found.arms.index(label)]
        p = opened.table[question.probabilities[place]]
        where = first_row(opened, (column.cast("string") == label) & (p <= 0))
    raise ProbabilityError(
        f"the arm {label!r} was played in {int(counts[zero].sum()):,} rows where its stated probability is"
        f" 0{where}; the probabilities are not those that it was drawn with"
    )
