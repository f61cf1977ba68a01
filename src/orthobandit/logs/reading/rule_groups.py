"""The one GROUP BY of rules: rows by bucket, arm and what rules choose, with sums weighted by 1/p.

Every row may have its own probabilities: rows are not grouped by them, so a log of any size becomes a few
groups per bucket, and the engine does all the work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations_with_replacement
from operator import and_
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, InputError, LabelError, ParameterError, ProbabilityError
from orthobandit.estimate.follow.rules import RuleCells, fourfold_places
from orthobandit.logs.question import Question
from orthobandit.logs.reading.arguments import check_question, refuse_missing
from orthobandit.logs.reading.clock import Clock, clock_of
from orthobandit.logs.reading.group_by import check_times_and_units, find_offsets
from orthobandit.logs.reading.plans import (
    ROUNDING,
    TOLERANCE,
    columns_of_arms,
    distributions_of,
    named_plans,
    read_arms,
    refuse_one_column,
    split_of,
)
from orthobandit.logs.reading.rows import (
    Rows,
    UnitCounts,
    key_of,
    repeated_rows,
    repeating_unit,
    rows_of,
    units_of,
)
from orthobandit.logs.reading.source import Opened, encode_keys, first_row, how_many, ibis
from orthobandit.policy.contextual.personalised import for_all
from orthobandit.policy.contextual.rule_text import COMPARISONS, WrittenRule, parse_rule

MAX_ARMS_WITH_RULES = 40  # every arm has its own weighted sums
MAX_GROUPS = 2_000_000


@dataclass(frozen=True, eq=False)
class GatheredRules:
    """A log after the GROUP BY of its rules.

    Attributes
    ----------
    cells : RuleCells
    rules : dict of str to str
        Rules in words by name, as `cells.choice` has them; the reference arm for all comes first.
    reference : int
        The reference arm.
    replaced_rows : int
        Rows in which a rule's arm could not be drawn, so that the rule shows another.
    dropped : (K,) array of int
        Rows of each arm that were left out because a value was missing.
    units : UnitCounts or None
    notes : tuple of str
    is_boolean : bool
        Whether the reward can be nothing but 0 and 1, by its type.
    end : float or None
        The last time of any row, where units have a window.
    longest : float
        Length of the longest bucket.
    bucket_rule : dict
        The rule for the boundaries of all buckets.
    """

    cells: RuleCells
    rules: dict[str, str]
    reference: int
    replaced_rows: int
    dropped: Whole
    units: UnitCounts | None
    notes: tuple[str, ...]
    is_boolean: bool
    end: float | None
    longest: float
    bucket_rule: dict[str, Any]


def rule_cells_of(opened: Opened, question: Question) -> GatheredRules:
    """Ask an opened log for the groups that its rules need.

    Parameters
    ----------
    opened : Opened
        From :func:`~orthobandit.logs.reading.source.open_source`.
    question : Question
        With a context.
    """
    check_question(opened, question)
    clock = clock_of(opened, question)
    arms, raw, by_arm, notes = _arms(opened, question)
    reference = 0 if question.reference is None else arms.index(question.reference)
    rules = _parse_rules(question, arms, reference)
    offset = find_offsets(opened, question)
    asked = _Asked(opened, question, clock, arms, raw, tuple(rules.values())[len(arms) :], offset)
    groups = asked.groups()
    if not _is_whole(groups, len(question.columns)):
        refuse_missing(opened, question)
        groups = asked.groups(is_masked=True)
    check_times_and_units(opened, question, groups)
    _check_probabilities(opened, question, arms, groups)
    off = float(np.max(_numbers(groups, "off"), initial=0.0))
    if off > ROUNDING:
        # Logs keep a few digits: what is nearly a distribution is made one, and that is said.
        notes = (*notes, f"probabilities sum to 1 within {off:.1g} only, and were divided by their sums")
        groups = asked.groups(is_masked="kept" in groups.column_names, is_divided=True)
    if len(groups) > MAX_GROUPS:
        raise InputError(
            f"{len(groups):,} groups of bucket, arm and choices are more than {MAX_GROUPS:,}; choose longer"
            " buckets (",
            Argument("bucket"),
            ") or fewer rules",
        )
    rows = _numbers(groups, "n").astype(np.int64)
    found = (
        repeating_unit(opened, question, groups, rows),
        repeated_rows(opened, int(rows.sum())) if question.unit is None else None,
    )
    cells, replaced = _arrange(question, clock, arms, groups, rules, offset, reference)
    kept = np.bincount(cells.arm, cells.counts, minlength=len(arms))
    units = None
    if question.unit is not None:
        several = int(_numbers(groups, "several").sum())
        units = UnitCounts(int(rows.sum()), int(_numbers(groups, "rows").sum()), several)
    times = np.round((cells.times - clock.origin) / (clock.width or 1.0)).astype(np.int64)
    return GatheredRules(
        cells=cells,
        rules={name: str(rule) for name, rule in rules.items()},
        reference=reference,
        replaced_rows=replaced,
        dropped=np.zeros(len(arms), dtype=np.int64)
        if question.unit is not None
        else np.maximum(by_arm - np.round(kept).astype(np.int64), 0),
        units=units,
        notes=opened.notes + notes + tuple(note for note in found if note),
        is_boolean=question.unit is None and bool(opened.schema[question.reward].is_boolean()),
        end=float(np.max(_numbers(groups, "last"))) if "last" in groups.column_names else None,
        longest=clock.longest(times),
        bucket_rule=clock.rule,
    )


def _arms(opened: Opened, question: Question) -> tuple[ArmSet, list[Any], Whole, tuple[str, ...]]:
    """Return the arms, the value of the arm column that stands for each, their rows (K,), and notes."""
    own = key_of(opened.table[question.arm], opened.schema[question.arm])
    table = opened.table.select(arm=own)
    groups = opened.fetch(table.group_by("arm").aggregate(n=table.count()))
    counts = groups["n"].to_numpy().astype(np.int64)
    arms, numbers, notes = read_arms(opened, question, groups, counts, distributions_of(question))
    if len(arms) > MAX_ARMS_WITH_RULES:
        raise InputError(
            f"{len(arms)} arms are more than the {MAX_ARMS_WITH_RULES} that rules can be judged for"
        )
    values = groups["arm"].to_pylist()
    raw: list[Any] = [None] * len(arms)
    for value, number in zip(values, numbers.tolist(), strict=True):
        raw[number] = value
    return arms, raw, np.bincount(numbers, counts, minlength=len(arms)).astype(np.int64), notes


def _parse_rules(question: Question, arms: ArmSet, reference: int) -> dict[str, WrittenRule]:
    """Return all rules by name: each arm for everybody, the reference arm first, then those asked for."""
    fallback = arms.labels[reference]
    order = [reference, *(arm for arm in range(len(arms)) if arm != reference)]
    shown = [(for_all(arms.labels[arm]), arms.labels[arm]) for arm in order]
    out: dict[str, WrittenRule] = {}
    for name, text in (*shown, *question.rules.items()):
        if name in out:
            raise ParameterError(f"two rules are named {name!r}; {for_all(fallback)!r} is there already")
        try:
            out[name] = parse_rule(text, arms.labels, question.context, fallback)
        except (LabelError, ParameterError) as error:
            raise type(error)(Argument("rules", ending=""), f": {name!r}: {error}") from None
    return out


@dataclass(frozen=True, eq=False)
class _Asked:
    """The query, in parts."""

    opened: Opened
    question: Question
    clock: Clock
    arms: ArmSet
    raw: Sequence[Any]
    written: tuple[WrittenRule, ...]
    offset: Array

    def groups(self, *, is_masked: bool = False, is_divided: bool = False) -> Any:
        """Return the groups as a pyarrow table."""
        question = self.question
        rows = rows_of(self.opened, question, self.clock, is_masked=is_masked)
        if question.unit is not None:
            rows = units_of(rows, question.window)
        table = rows.table
        if is_masked and question.missing == "drop":
            there = [table[f"m{place}"] == 0 for place in range(rows.columns)]
            table = table.filter(reduce(and_, there))
        # Only the keys and numbers that are needed: engines carry every column of a projection along.
        p = self._probabilities(table)
        whole = sum(p[1:], p[0])
        parts = {name: table[name] for name in ("arm", *rows.extra)}
        if "last" in table.columns:
            parts["last"] = table["last"]
        if self.clock.column is not None:
            parts["bucket"] = self.clock.bucket(table.when)
        parts |= {f"p{arm}": one / whole if is_divided else one for arm, one in enumerate(p)}
        parts["whole"] = whole
        for place in range(len(question.columns)):
            value = table[f"x{place}"]
            parts[f"u{place + 1}"] = value - self.offset[place] if self.offset[place] else value
        context = {name: table[f"x{place}"] for place, name in enumerate(question.columns)}
        parts |= {f"w{place}": self._wanted(rule, context) for place, rule in enumerate(self.written)}
        named = table.select(**parts)
        named = named.mutate(**self._inverses(named))
        keys = [*(["bucket"] if self.clock.column is not None else []), "arm", "offered"]
        keys += [f"w{place}" for place in range(len(self.written))]
        return self.opened.fetch(named.group_by(keys).aggregate(**self._sums(named, rows, is_masked)))

    def _probabilities(self, table: Any) -> list[Any]:
        """Return the expression of each arm's probability."""
        question = self.question
        package = ibis()
        labels = self.arms.labels
        if question.split is not None:
            p = split_of(question.split, self.arms)
            return [package.literal(float(one)) for one in p]
        if question.plan is not None:
            found = self.opened.fetch(table.group_by("plan").aggregate(n=table.count()))
            keys = encode_keys(found["plan"])
            counts = found["n"].to_numpy().astype(np.int64)
            plans, codes = named_plans(question, self.arms, keys, distributions_of(question), counts)
            values = found["plan"].to_pylist()
            return [
                package.cases(
                    *(
                        (table.plan == value, float(plans[code, arm]))
                        for value, code in zip(values, codes.tolist(), strict=True)
                    )
                )
                for arm in range(len(labels))
            ]
        if len(question.probabilities) == 1:
            if len(labels) > 2:
                refuse_one_column(question.probabilities[0], "there are more than two arms")
            own = table.p0
            return [package.ifelse(table.arm == value, own, 1.0 - own) for value in self.raw]
        return [table[f"p{place}"] for place in columns_of_arms(question.probabilities, labels)]

    def _wanted(self, rule: WrittenRule, context: dict[str, Any]) -> Any:
        """Return the expression of the arm that a rule wants to show."""
        *cases, (last, _) = rule.cases
        number = self.arms.index(last)
        if not cases:
            return ibis().literal(number)
        branches = []
        for label, conditions in cases:
            holds = [COMPARISONS[one.comparison](context[one.column], one.bound) for one in conditions]
            branches.append((reduce(and_, holds), self.arms.index(label)))
        return ibis().cases(*branches, else_=number)

    def _inverses(self, table: Any) -> dict[str, Any]:
        """Return 1/p of each arm, 0 if it could not be drawn; which could; and 1/p of the arm drawn."""
        package = ibis()
        out: dict[str, Any] = {}
        for arm in range(len(self.arms)):
            p = table[f"p{arm}"]
            out[f"i{arm}"] = package.ifelse(p > 0, 1.0 / package.ifelse(p > 0, p, 1.0), 0.0)
        bits = [
            package.ifelse(table[f"p{arm}"] > 0, 2**arm, 0).cast("int64") for arm in range(len(self.arms))
        ]
        out["offered"] = sum(bits[1:], bits[0])
        own = [
            (table.arm == value, out[f"i{arm}"]) for arm, value in enumerate(self.raw) if value is not None
        ]
        out["own"] = package.cases(*own)
        return out

    def _sums(self, table: Any, rows: Rows, is_masked: bool) -> dict[str, Any]:
        """Return the sums to compute, under the names that :func:`_arrange` reads."""
        size = len(self.question.columns) + 1
        entries = [None, *(table[f"u{place}"] for place in range(1, size))]
        out = {"n": table.count(), "off": (table.whole - 1.0).abs().max()}
        proper = table.whole.between(1 - TOLERANCE, 1 + TOLERANCE).fill_null(False)
        for arm in range(len(self.arms)):
            p = table[f"p{arm}"]
            proper = proper & (p >= 0).fill_null(False)
            out[f"e{arm}"] = p.sum()
            out[f"v{arm}"] = (p * (1.0 - p)).sum()
            out[f"reach{arm}"] = table[f"i{arm}"].max()
        out["improper"] = (~proper).cast("int32").sum()
        for i in range(1, size):
            out |= {f"low{i}": entries[i].min(), f"high{i}": entries[i].max()}
        weights = {"m": None} | {f"i{arm}_": table[f"i{arm}"] for arm in range(len(self.arms))}
        for name, weight in weights.items():
            for i, j in combinations_with_replacement(range(size), 2):
                factors = [one for one in (entries[i], entries[j], weight) if one is not None]
                if factors:
                    out[f"{name}{i}_{j}"] = reduce(lambda one, other: one * other, factors).sum()
        squared = table.own * table.own
        for places, number in fourfold_places(size).items():
            factors = [one for one in (*(entries[place] for place in places), squared) if one is not None]
            out[f"q{number}"] = reduce(lambda one, other: one * other, factors).sum()
        if is_masked:
            out["kept"] = table.count()
        else:
            out["there"] = reduce(lambda one, other: one + other, entries[1:]).count()
        if "last" in table.columns:
            out["last"] = table["last"].max()
        return out | {name: table[name].sum() for name in rows.extra}


def _numbers(groups: Any, name: str) -> Array:
    return np.asarray(groups[name].cast("float64").to_numpy(), dtype=np.float64)


def _is_whole(groups: Any, columns: int) -> bool:
    """Tell whether no value was missing or not finite."""
    if not np.array_equal(_numbers(groups, "there"), _numbers(groups, "n")):
        return False
    return all(
        bool(np.all(np.isfinite(_numbers(groups, f"{name}{place}"))))
        for place in range(1, columns + 1)
        for name in ("m0_", "low", "high")
    )


def _check_probabilities(opened: Opened, question: Question, arms: ArmSet, groups: Any) -> None:
    """Refuse rows whose probabilities are no distribution, and arms that were drawn with probability 0."""
    improper = int(_numbers(groups, "improper").sum())
    names = question.probabilities
    if improper:
        table = opened.table
        columns = [table[name].cast("float64") for name in names]
        if len(columns) == 1:
            proper = columns[0].between(0.0, 1.0).fill_null(False)
        else:
            proper = sum(columns[1:], columns[0]).between(1 - TOLERANCE, 1 + TOLERANCE).fill_null(False)
            for column in columns:
                proper = proper & (column >= 0).fill_null(False)
        raise ProbabilityError(
            f"probabilities {', '.join(names)} are not a distribution in {how_many(question, improper)}"
            f"{first_row(opened, ~proper)}; they must be at least 0 and sum to 1"
        )
    drawn = encode_keys(groups["arm"])
    at = np.array([arms.index(text) for text in drawn.texts], dtype=np.int64)[drawn.codes]
    reach = np.stack([_numbers(groups, f"reach{arm}") for arm in range(len(arms))], axis=1)
    zero = reach[np.arange(len(at)), at] == 0
    if np.any(zero):
        label = arms.labels[int(at[np.argmax(zero)])]
        rows = how_many(question, int(_numbers(groups, "n")[zero].sum()))
        where = ""
        if len(names) > 1:
            column = opened.table[names[columns_of_arms(names, arms.labels)[arms.index(label)]]]
            own = opened.table[question.arm].cast("string") == label
            where = first_row(opened, own & (column <= 0))
        raise ProbabilityError(
            f"the arm {label!r} was played in {rows} where its stated probability is 0{where}; the"
            " probabilities are not those that it was drawn with"
        )


def _arrange(
    question: Question,
    clock: Clock,
    arms: ArmSet,
    groups: Any,
    rules: dict[str, WrittenRule],
    offset: Array,
    reference: int,
) -> tuple[RuleCells, int]:
    """Return the groups as arrays in the order of time, and the rows in which a rule's arm was replaced."""
    count = len(arms)
    size = len(question.columns) + 1
    rows = _numbers(groups, "n")
    keys = encode_keys(groups["arm"])
    arm = np.array([arms.index(text) for text in keys.texts], dtype=np.int64)[keys.codes]
    buckets = np.zeros(1, dtype=np.int64)
    bucket = np.zeros(len(rows), dtype=np.int64)
    if clock.column is not None:
        buckets, bucket = np.unique(_numbers(groups, "bucket").astype(np.int64), return_inverse=True)
    offered = (groups["offered"].to_numpy().astype(np.int64)[:, np.newaxis] >> np.arange(count)) & 1
    names = list(rules)
    choice = np.empty((len(rows), len(names)), dtype=np.int64)
    for place, name in enumerate(names):
        asked = place - count
        choice[:, place] = (
            arms.index(rules[name].cases[-1][0])
            if asked < 0
            else groups[f"w{asked}"].to_numpy().astype(np.int64)
        )
    shown, replaced = _offered_choice(choice, offered.astype(bool), reference)
    # Engines return groups in any order; what follows needs that of time, and the same in every run.
    order = np.lexsort((*shown.T[::-1], *choice.T[::-1], offered @ (1 << np.arange(count)), arm, bucket))
    cells = RuleCells(
        labels=arms.labels,
        columns=question.columns,
        offset=offset,
        times=clock.begins(buckets) if clock.column else np.zeros(1),
        width=clock.width,
        is_clock=clock.is_clock,
        bucket=bucket.astype(np.int64),
        arm=arm,
        choice=shown,
        products=_matrix(groups, "m", size, rows),
        inverse=np.stack([_matrix(groups, f"i{one}_", size, None) for one in range(count)], axis=1),
        fourfold=np.stack([_numbers(groups, f"q{one}") for one in fourfold_places(size).values()], axis=1),
        reach=np.stack([_numbers(groups, f"reach{one}") for one in range(count)], axis=1),
        expected=np.stack([_numbers(groups, f"e{one}") for one in range(count)], axis=1),
        scatter=np.stack([_numbers(groups, f"v{one}") for one in range(count)], axis=1),
        low=_ends(groups, "low", size),
        high=_ends(groups, "high", size),
    )
    return cells.only(order), int(rows[replaced].sum())


def _offered_choice(choice: Whole, offered: Any, reference: int) -> tuple[Whole, Any]:
    """Return the arm that each rule shows (G, R): its own, else the reference arm, else the first on offer.

    And whether some rule that was asked for shows another arm than its own (G,).
    """
    groups = np.arange(len(choice))[:, np.newaxis]
    first = np.argmax(offered, axis=1)[:, np.newaxis]
    instead = np.where(offered[:, [reference]], reference, first)
    is_offered = offered[groups, choice]
    shown = np.where(is_offered, choice, instead)
    return shown.astype(np.int64), ~is_offered.all(axis=1)


def _matrix(groups: Any, name: str, size: int, rows: Array | None) -> Array:
    """Return sums of products as symmetric matrices (G, q, q)."""
    out = np.empty((len(groups), size, size))
    for i, j in combinations_with_replacement(range(size), 2):
        column = rows if rows is not None and i == j == 0 else _numbers(groups, f"{name}{i}_{j}")
        out[:, i, j] = column
        out[:, j, i] = column
    return out


def _ends(groups: Any, name: str, size: int) -> Array:
    ones = np.ones(len(groups))
    return np.stack([ones, *(_numbers(groups, f"{name}{place}") for place in range(1, size))], axis=1)
