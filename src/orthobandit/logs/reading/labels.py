"""Which arms a log has: those of the file, of what states probabilities, or of the data."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from orthobandit._foundation.arm_tables import label_of, number_of, read_table
from orthobandit._foundation.checks import nearest
from orthobandit._foundation.types import Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import FileFormatError, InputError, LabelError
from orthobandit.logs.question import Question
from orthobandit.logs.reading.engine import Opened
from orthobandit.logs.reading.keys import Coded, first_row, how_many, text_of

MOST_ARMS = 10_000
PREFIXES = ("p:", "p_", "")


def arms_of(
    question: Question, keys: Coded, laws: Mapping[str, Mapping[str, float]]
) -> tuple[ArmSet, tuple[str, ...]]:
    """Return the arms: of the file, else of what states probabilities, else those of the data."""
    if question.arms is not None:
        arms = ArmSet.read(question.arms)
        if len(question.probabilities) > 1:
            columns_of_arms(question.probabilities, arms.labels)
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


def arm_numbers(opened: Opened, question: Question, arms: ArmSet, keys: Coded, counts: Whole) -> Whole:
    """Return which arm each group is (G,); arms that there should not be are refused by name."""
    places = {label: place for place, label in enumerate(arms.labels)}
    numbers = np.array([places.get(text, -1) for text in keys.texts], dtype=np.int64)
    unknown = [text for text, number in zip(keys.texts, numbers, strict=True) if number < 0]
    if unknown:
        rows = how_many(question, int(counts[numbers[keys.codes] < 0].sum()))
        column = opened.table[question.arm]
        where = first_row(opened, column.cast("string") == unknown[0])
        more = f" and {len(unknown) - 1} more" if len(unknown) > 1 else ""
        raise LabelError(
            f"arm={question.arm!r} holds {unknown[0]!r}{more}, not among the arms, in {rows}{where};"
            f" {nearest(unknown[0], arms.labels)}"
        )
    if question.reference is not None and question.reference not in places:
        raise LabelError(
            f"reference={question.reference!r} is not an arm; {nearest(question.reference, places)}"
        )
    return numbers[keys.codes]


def laws_of(question: Question) -> dict[str, dict[str, float]]:
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


def columns_of_arms(names: Sequence[str], labels: Sequence[str]) -> list[int]:
    """Return which column is which arm's: by name, else in the order of the arms."""
    if len(names) != len(labels):
        raise InputError(f"probabilities: {len(names)} columns for {len(labels)} arms; name one an arm")
    for prefix in PREFIXES:
        if {name.removeprefix(prefix) for name in names if name.startswith(prefix)} == set(labels):
            return [list(names).index(prefix + label) for label in labels]
    return list(range(len(names)))
