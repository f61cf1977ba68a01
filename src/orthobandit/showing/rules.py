"""Tables of rules and of effects by context, in words that experiments and logs share."""

from collections.abc import Sequence
from typing import NamedTuple

from orthobandit.showing.numbers import Interval, estimate_words, span_words
from orthobandit.showing.text import printable

# A title, the names of the columns, and rows of words.
Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]


class RuleLine(NamedTuple):
    """One rule of a table: its gain over the first rule, and how many visitors would get something else.

    `note` says what guardrails have against it.
    """

    name: str
    gain: float | None
    interval: Interval
    changed: int
    is_possible: bool
    note: str = ""


def rule_table(title: str, lines: Sequence[RuleLine], changed: str) -> Table:
    """Return a table of rules, the reference first; `changed` heads the number of those it changes.

    Examples
    --------
    >>> lines = [RuleLine("a for all", 0.0, (0.0, 0.0), 0, False), RuleLine("b", 0.2, (0.1, 0.3), 7, True)]
    >>> rule_table("Gains", lines, "visitors it changes")[2]
    [('a for all', '', '', '0', ''), ('b', '+0.20', '+0.10 to +0.30', '7', 'proven best')]
    """
    is_proven = sum(line.is_possible for line in lines) == 1
    rows: list[tuple[str, ...]] = []
    for place, line in enumerate(lines):
        # The reference earns nothing over itself.
        gain = estimate_words(line.gain, line.interval) if place else ""
        interval = span_words(line.interval) if place else ""
        verdict = rule_verdict(is_possible=line.is_possible, is_proven=is_proven)
        verdict = ", ".join(words for words in (verdict, line.note) if words)
        rows.append((printable(line.name), gain, interval, f"{line.changed:,}", verdict))
    return title, ("rule", "gain", "interval", changed, ""), rows


def rule_verdict(*, is_possible: bool, is_proven: bool) -> str:
    """Say whether a rule is, or may be, the best; `is_proven` tells whether only one may be."""
    if not is_possible:
        return ""
    return "proven best" if is_proven else "may be best"


def effect_label(arm: str, column: str | None) -> str:
    """Return the label of a coefficient: of an arm and a column, or of a feature if `arm` is empty.

    Examples
    --------
    >>> effect_label("red", None), effect_label("red", "age"), effect_label("", "price")
    ('red, all columns 0', 'red, per unit of age', 'per unit of price')
    """
    if column is None:
        return f"{printable(arm)}, all columns 0"
    unit = f"per unit of {printable(column)}"
    return f"{printable(arm)}, {unit}" if arm else unit
