"""The distributions that arms were drawn from, out of the keys that the engine grouped by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from orthobandit._foundation.checks import nearest
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import InputError, LabelError, ProbabilityError
from orthobandit.logs.question import Question
from orthobandit.logs.reading.engine import Opened
from orthobandit.logs.reading.keys import Coded, coded, first_row, how_many
from orthobandit.logs.reading.labels import arm_numbers, arms_of, columns_of_arms, laws_of
from orthobandit.logs.reading.rows import key_of

TOLERANCE = 1e-6  # how far a sum of probabilities may be from one
ROUNDING = 1e-9  # from how far on it is worth a note


@dataclass(frozen=True)
class Drawn:
    """What cells were drawn from: `arm` (G,) of `arms`, by the distribution `plan` (G,) of `plans` (P, K)."""

    arms: ArmSet
    plans: Array
    arm: Whole
    plan: Whole
    notes: tuple[str, ...] = ()


def drawn(opened: Opened, question: Question, groups: Any, counts: Whole) -> Drawn:
    """Return arms and distributions of groups (a pyarrow table of G rows), each of `counts` rows."""
    keys = coded(groups["arm"])
    if np.any(keys.codes < 0):
        own = key_of(opened.table[question.arm], opened.schema[question.arm])
        where = first_row(opened, own.isnull())
        rows = how_many(question, int(counts[keys.codes < 0].sum()))
        raise InputError(f"arm={question.arm!r} is empty in {rows}{where}; leave these out or name their arm")
    laws = laws_of(question)
    arms, notes = arms_of(question, keys, laws)
    arm = arm_numbers(opened, question, arms, keys, counts)
    if question.split is not None:
        plans = _split(question.split, arms)[np.newaxis]
        plan = np.zeros(len(arm), dtype=np.int64)
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
    # Logs keep a few digits: what is within the tolerance of a distribution is made one, and that is said.
    whole = plans.sum(axis=1, keepdims=True)
    off = float(np.abs(whole - 1).max(initial=0.0))
    if off > ROUNDING:
        notes = (*notes, f"probabilities sum to 1 within {off:.1g} only, and were divided by their sums")
    return Drawn(arms, plans / whole, arm, plan, notes)


def _split(split: Mapping[str, float] | str, arms: ArmSet) -> Array:
    if isinstance(split, str):
        return np.full(len(arms), 1.0 / len(arms))
    return _law("split", split, arms)


def _law(name: str, law: Mapping[str, float], arms: ArmSet) -> Array:
    """Return {arm: probability} as (K,); arms that are not named have 0."""
    p = np.zeros(len(arms))
    places = {label: place for place, label in enumerate(arms.labels)}
    for label, value in law.items():
        if str(label) not in places:
            raise LabelError(f"{name} names the arm {label!r}; {nearest(label, arms.labels)}")
        p[places[str(label)]] = value
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
            raise InputError(
                f"plan={question.plan!r} {named} in {how_many(question, rows)}; {nearest(text, laws)}"
            )
    return np.array([_law(f"plan {text!r}", laws[text], arms) for text in keys.texts]), keys.codes


def _are_proper(p: Array) -> Mask:
    """Return which rows of (P, K) are distributions."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.all(p >= 0, axis=1) & (np.abs(p.sum(axis=1) - 1) <= TOLERANCE))


def _columns(
    opened: Opened, question: Question, arms: ArmSet, groups: Any, counts: Whole
) -> tuple[Array, Whole]:
    order = columns_of_arms(question.probabilities, arms.labels)
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
            f" {how_many(question, int(counts[bad[codes]].sum()))}{first_row(opened, ~proper)}, e.g."
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
