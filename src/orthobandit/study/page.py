"""The report as one HTML file: no script, no network, light or dark as the reader's system is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import metadata, resources
from string import Template

from orthobandit.study.sections import KINDS, Grid, Measured, Scope, Section, Verdict, tally

SOURCES = {
    "paper": "the paper",
    "figure": "the paper's figure, as read here",
    "question": "asked here; the paper does not say",
    "successor": "the successor",
    "here": "this package",
}
SIGNS = {"shown": ("✓", "good"), "not refuted": ("○", "open"), "refuted": ("✗", "bad")}
CUT = (
    "This is the quick form, which fits into three minutes on two cores. Against the full form it has fewer"
    " runs and arm sets, shorter horizons, seven shifts of thirteen and cheaper Thompson sampling; each part"
    " says how many. So more claims are left “not refuted”: <code>orthobandit reproduce --full</code> has the"
    " runs to show them."
)
FULL = "This is the full form: enough runs that what is true by some margin comes out as shown."


@dataclass(frozen=True)
class Shown:
    """What a page shows of a section; figures are (SVGs, caption)."""

    section: Section
    verdicts: Sequence[Verdict]
    grids: Sequence[Grid]
    figures: Sequence[tuple[Sequence[str], str]]
    setting: str
    command: str


def page(shown: Sequence[Shown], scope: Scope) -> str:
    """Return the whole page."""
    template = Template(
        resources.files("orthobandit.study").joinpath("page.html").read_text(encoding="utf-8")
    )
    verdicts = [verdict for part in shown for verdict in part.verdicts]
    return template.substitute(
        form="quick form" if scope.is_quick else "full form",
        seed=scope.seed,
        version=escape(metadata.version("orthobandit")),
        tally=_marks(tally(verdicts)),
        refuted=_refuted(shown),
        cut=CUT if scope.is_quick else FULL,
        overview=_overview(shown),
        body="\n".join(_groups(shown)),
    )


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


def _refuted(shown: Sequence[Shown]) -> str:
    """Return the claims that fail, first of all."""
    rows = [
        f'<li><a href="#{part.section.name}">{escape(part.section.title)}</a>: {escape(verdict.claim)}'
        f" ({escape(SOURCES.get(verdict.source, verdict.source))}; {escape(_said(verdict))})</li>"
        for part in shown
        for verdict in part.verdicts
        if verdict.kind == "refuted"
    ]
    if not rows:
        return "<p><b>No claim is refuted.</b></p>"
    return f"<p><b>Refuted here:</b></p>\n<ul>\n{''.join(rows)}</ul>"


def _said(verdict: Verdict) -> str:
    needed = f"{verdict.relation} {_number(verdict.bound)}"
    return f"{verdict.statistic}: {_with_error(verdict.measured)}, needed {needed}"


def _overview(shown: Sequence[Shown]) -> str:
    rows = []
    for part in shown:
        link = f'<a href="#{part.section.name}">{escape(part.section.title)}</a>'
        rows.append(f"<tr><td>{link}</td><td>{_marks(tally(part.verdicts))}</td></tr>")
    return "\n".join(rows)


def _groups(shown: Sequence[Shown]) -> list[str]:
    parts, group = [], None
    for part in shown:
        if part.section.group != group:
            group = part.section.group
            parts.append(f"<h2>{escape(group)}</h2>")
        parts.append(_section(part))
    return parts


def _section(part: Shown) -> str:
    figures = "\n".join(
        f'<figure role="img" aria-label="{escape(caption)}"><div class="panels">{"".join(svgs)}</div>'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for svgs, caption in part.figures
    )
    verdicts = "\n".join(_verdict(verdict) for verdict in part.verdicts)
    grids = "\n".join(_grid(grid) for grid in part.grids)
    return f"""<section id="{part.section.name}">
<h3>{escape(part.section.title)} <small>{escape(part.section.name)}</small></h3>
<p class="plain">{escape(part.section.plain)}</p>
<p>{_marks(tally(part.verdicts))}</p>
<table class="verdicts">
<tr><th>claim</th><th>of</th><th>what decides</th><th>measured</th><th>needed</th><th></th></tr>
{verdicts}
</table>
<p><b>Claimed.</b> {escape(part.section.claims)}</p>
<p><b>Run.</b> {escape(part.setting)}</p>
{figures}
{grids}
<p class="redo"><b>Redo it.</b> <code>{escape(part.command)}</code></p>
</section>"""


def _verdict(verdict: Verdict) -> str:
    measured = verdict.measured
    limits = "" if measured.low == measured.high else f"<small>{escape(_limits(measured))}</small>"
    return (
        f'<tr class="{SIGNS[verdict.kind][1]}-row"><td>{escape(verdict.claim)}</td>'
        f'<td data-name="of">{escape(SOURCES.get(verdict.source, verdict.source))}</td>'
        f'<td data-name="what decides">{escape(verdict.statistic)}</td>'
        f'<td data-name="measured" class="number">{escape(_with_error(measured))} {limits}</td>'
        f'<td data-name="needed" class="number">{verdict.relation} {_number(verdict.bound)}</td>'
        f"<td>{_mark(verdict.kind, verdict.kind)}</td></tr>"
    )


def _grid(grid: Grid) -> str:
    head = "".join(f"<th{_numeric(place, grid)}>{escape(name)}</th>" for place, name in enumerate(grid.head))
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td{_numeric(place, grid)}>{escape(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in grid.rows
    )
    # The caption stands outside what scrolls, so that it is read at any width.
    return (
        f'<div class="grid"><p class="caption">{escape(grid.caption)}</p>'
        f'<div class="scroll" tabindex="0"><table><tr>{head}</tr>\n{rows}</table></div></div>'
    )


def _numeric(place: int, grid: Grid) -> str:
    return ' class="number"' if place >= grid.words else ""


def _marks(counts: Mapping[str, int]) -> str:
    """Return a mark for each kind that occurs, with how often."""
    return " ".join(_mark(kind, f"{count} {kind}") for kind, count in counts.items() if count)


def _mark(kind: str, text: str) -> str:
    sign, style = SIGNS[kind]
    return f'<span class="mark {style}">{sign} {escape(text)}</span>'


def _with_error(measured: Measured) -> str:
    if not measured.error:
        return _number(measured.value)
    return f"{_number(measured.value)} ± {_number(measured.error)}"


def _limits(measured: Measured) -> str:
    return f"{_number(measured.low)} to {_number(measured.high)}"


def _number(value: float) -> str:
    if abs(value) == float("inf"):
        return "∞" if value > 0 else "−∞"
    digits = 0 if abs(value) >= 1000 else 3
    return f"{value:,.{digits}f}".replace("-", "−")
