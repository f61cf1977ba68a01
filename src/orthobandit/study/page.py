"""The report as one HTML file: no script, no network, light or dark as the reader's system is.

What it looks like is in ``templates/``; here is what the templates are given.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import Any

from orthobandit._files import optional_package
from orthobandit.study.sections import KINDS, Grid, Measured, Scope, Section, Verdict, tally

# Whose claim it is, for people.
SOURCES = {
    "paper": "the paper",
    "figure": "the paper's figure, as read here",
    "question": "asked here; the paper does not say",
    "successor": "the successor",
    "here": "this package",
}
SIGNS = {
    "shown": {"sign": "✓", "style": "good"},
    "not refuted": {"sign": "○", "style": "open"},
    "refuted": {"sign": "✗", "style": "bad"},
}


@dataclass(frozen=True)
class Shown:
    """What a page shows of a section; figures are (SVGs, caption)."""

    section: Section
    verdicts: Sequence[Verdict]
    grids: Sequence[Grid]
    figures: Sequence[tuple[Sequence[str], str]]
    setting: str
    command: str


@cache
def templates() -> Any:
    """Return the templates; whatever they are given is escaped, and a name that is missing is an error."""
    jinja = optional_package("jinja2", "plots", "the report")
    found = jinja.Environment(
        loader=jinja.PackageLoader("orthobandit.study"),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {"number": number, "with_error": with_error, "source": source, "tally": tally}
    found.globals |= {"signs": SIGNS}
    return found


def page(shown: Sequence[Shown], scope: Scope) -> str:
    """Return the whole page."""
    verdicts = [(part, verdict) for part in shown for verdict in part.verdicts]
    text: str = (
        templates()
        .get_template("page.html.j2")
        .render(
            shown=shown,
            scope=scope,
            version=metadata.version("orthobandit"),
            verdicts=[verdict for _, verdict in verdicts],
            refuted=[(part, verdict) for part, verdict in verdicts if verdict.kind == "refuted"],
        )
    )
    return text


def in_words(counts: Mapping[str, int]) -> str:
    """Return a tally as a sentence.

    Examples
    --------
    >>> in_words({"refuted": 1, "not refuted": 0, "shown": 3})
    '4 claims: 3 shown, 0 not refuted, 1 refuted'
    """
    kinds = ", ".join(f"{counts[kind]} {kind}" for kind in reversed(KINDS))
    total = sum(counts.values())
    return f"{total} claim{'s' * (total != 1)}: {kinds}"


def source(verdict: Verdict) -> str:
    """Return whose claim it is, for people."""
    return SOURCES.get(verdict.source, verdict.source)


def with_error(measured: Measured) -> str:
    """Return an estimate with its standard error, if it has one."""
    if not measured.error:
        return number(measured.value)
    return f"{number(measured.value)} ± {number(measured.error)}"


def number(value: float) -> str:
    """Return a number as the page writes it.

    Examples
    --------
    >>> number(-1234.5), number(0.25), number(float("inf"))
    ('−1,234', '0.250', '∞')
    """
    if abs(value) == float("inf"):
        return "∞" if value > 0 else "−∞"
    digits = 0 if abs(value) >= 1000 else 3
    return f"{value:,.{digits}f}".replace("-", "−")
