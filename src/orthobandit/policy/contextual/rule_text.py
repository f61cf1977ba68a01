"""Rules in words: ``"B if mobile >= 0.5 else A"``, so that they can be stored, sent and read."""

import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from orthobandit.errors import InputError, LabelError, ParameterError
from orthobandit.policy.contextual.offers import Offer

COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
GRAMMAR = "'B', or 'B if mobile >= 0.5 else A', with ' and ' between conditions and further ' else 's at will"
_CONDITION = re.compile(rf"(.+?)\s*({'|'.join(COMPARISONS)})\s*(\S+)")


@dataclass(frozen=True)
class Condition:
    """A column of the context compared with a number."""

    column: str
    comparison: str
    bound: float

    def holds(self, offer: Offer) -> bool:
        """Tell whether it holds for the visitor of an offer."""
        return COMPARISONS[self.comparison](float(offer.context[self.column]), self.bound)


@dataclass(frozen=True)
class WrittenRule:
    """A rule in words: the arm of the first case whose conditions all hold.

    Where that arm is not offered, the visitor gets the fallback, or the first arm that is offered.

    Attributes
    ----------
    text : str
    cases : tuple of (str, tuple of Condition)
        Labels of arms with their conditions; the last has none.
    fallback : str
    """

    text: str
    cases: tuple[tuple[str, tuple[Condition, ...]], ...]
    fallback: str

    def __call__(self, offer: Offer) -> str:
        """Return the label of the arm that the rule shows."""
        wanted = next(label for label, given in self.cases if all(one.holds(offer) for one in given))
        for label in (wanted, self.fallback):
            if label in offer.labels:
                return label
        return offer.labels[0]

    def __str__(self) -> str:
        return self.text


def arms_named(rule: object) -> tuple[str, ...]:
    """Return the labels of the arms that a rule may show by itself; none for a function, which may show any.

    Examples
    --------
    >>> arms_named(parse_rule("B if mobile >= 0.5 else A", ["A", "B", "C"], ["mobile"], "C"))
    ('B', 'A')
    """
    if isinstance(rule, str):
        return (rule,)
    return tuple(dict.fromkeys(label for label, _ in rule.cases)) if isinstance(rule, WrittenRule) else ()


def parse_rule(text: str, labels: Sequence[str], context: Sequence[str], fallback: str) -> WrittenRule:
    """Parse a rule.

    Parameters
    ----------
    text : str
        The label of an arm, or cases: ``"B if mobile >= 0.5 and hour < 8 else C if hour > 20 else A"``.
    labels, context : sequences of str
        Arms and columns that the rule may name.
    fallback : str
        The arm to show where the rule's own is not offered.

    Examples
    --------
    >>> rule = parse_rule("B if mobile >= 0.5 else A", ["A", "B"], ["mobile"], "A")
    >>> rule(Offer([[0.0], [1.0]], ["A", "B"], {"mobile": 1.0}))
    'B'
    """
    if not isinstance(text, str) or not text.strip():
        raise ParameterError(f"rule {text!r} must be text: {GRAMMAR}")
    cases = []
    rest = text.strip()
    while rest not in labels:
        label = _next_label(rest, text, labels)
        conditions, otherwise, rest = rest[len(label) + len(" if ") :].partition(" else ")
        if not otherwise:
            raise ParameterError(f"rule {text!r} ends with a condition; write {GRAMMAR}")
        given = tuple(_condition(one, text, context) for one in conditions.split(" and "))
        cases.append((label, given))
        rest = rest.strip()
    return WrittenRule(text, (*cases, (rest, ())), fallback)


def _next_label(rest: str, text: str, labels: Sequence[str]) -> str:
    """Return the label that the rest of a rule begins with; it may hold the words of the grammar itself."""
    found = [label for label in labels if rest.startswith(f"{label} if ")]
    if found:
        return max(found, key=len)
    first = rest.partition(" else ")[0]
    if first in labels:
        raise ParameterError(f"rule {text!r} has no condition before 'else' in {rest!r}; write {GRAMMAR}")
    return _known(rest.partition(" if ")[0], text, labels, "an arm; arms are", LabelError)


def _condition(words: str, text: str, context: Sequence[str]) -> Condition:
    match = _CONDITION.fullmatch(words.strip())
    if match is None:
        raise ParameterError(f"rule {text!r}: {words!r} is not a comparison; write {GRAMMAR}")
    column = _known(match[1], text, context, "a column of the context; those are")
    try:
        bound = float(match[3])
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise ParameterError(f"rule {text!r}: {match[3]!r} in {words!r} is not a finite number")
    return Condition(column, match[2], bound)


def _known(
    name: str, text: str, names: Sequence[str], what: str, error: type[InputError] = ParameterError
) -> str:
    if name not in names:
        raise error(f"rule {text!r}: {name!r} is not {what} {', '.join(names)}")
    return name
