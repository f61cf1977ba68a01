"""The report as one HTML file: no script, no network, light or dark as the reader's system is."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import metadata, resources
from string import Template

from orthobandit.study.sections import Grid, Scope, Section, Verdict

SOURCES = {
    "paper": "the paper",
    "figure": "the paper's figure, as read here",
    "successor": "the successor",
    "here": "this package",
}


@dataclass(frozen=True)
class Shown:
    """What a page shows of a section; figures are (SVG, caption)."""

    section: Section
    verdicts: Sequence[Verdict]
    grids: Sequence[Grid]
    figures: Sequence[tuple[str, str]]
    setting: str
    command: str


def page(shown: Sequence[Shown], scope: Scope) -> str:
    """Return the whole page."""
    template = Template(
        resources.files("orthobandit.study").joinpath("page.html").read_text(encoding="utf-8")
    )
    verdicts = [verdict for part in shown for verdict in part.verdicts]
    held = sum(verdict.holds for verdict in verdicts)
    return template.substitute(
        form="quick form" if scope.is_quick else "full form",
        seed=scope.seed,
        version=escape(metadata.version("orthobandit")),
        held=held,
        claims=len(verdicts),
        overview=_overview(shown),
        body="\n".join(_groups(shown)),
    )


def _overview(shown: Sequence[Shown]) -> str:
    rows = []
    for part in shown:
        held = sum(verdict.holds for verdict in part.verdicts)
        mark = _mark(held == len(part.verdicts), f"{held} of {len(part.verdicts)} claims hold")
        link = f'<a href="#{part.section.name}">{escape(part.section.name)}</a>'
        rows.append(f"<tr><td>{link}</td><td>{escape(part.section.title)}</td><td>{mark}</td></tr>")
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
        f'<figure role="img" aria-label="{escape(caption)}">{svg}'
        f"<figcaption>{escape(caption)}</figcaption></figure>"
        for svg, caption in part.figures
    )
    verdicts = "\n".join(_verdict(verdict) for verdict in part.verdicts)
    grids = "\n".join(_grid(grid) for grid in part.grids)
    return f"""<section id="{part.section.name}">
<h3>{escape(part.section.name)}: {escape(part.section.title)}</h3>
<p><b>Claimed.</b> {escape(part.section.claims)}</p>
<p><b>Run.</b> {escape(part.setting)}</p>
{figures}
<p><b>Measured.</b></p>
{grids}
<p><b>Does it hold?</b></p>
<div class="scroll"><table class="verdicts">
<tr><th>claim</th><th>of</th><th>what decides</th><th class="number">measured</th>
<th class="number">needed</th><th></th></tr>
{verdicts}
</table></div>
<p><b>Redo it.</b> <code>{escape(part.command)}</code></p>
</section>"""


def _verdict(verdict: Verdict) -> str:
    return (
        f"<tr><td>{escape(verdict.claim)}</td><td>{escape(SOURCES.get(verdict.source, verdict.source))}</td>"
        f"<td>{escape(verdict.statistic)}</td>"
        f'<td class="number">{_number(verdict.value)}</td>'
        f'<td class="number">{verdict.relation} {_number(verdict.bound)}</td>'
        f"<td>{_mark(verdict.holds, 'holds' if verdict.holds else 'does not hold')}</td></tr>"
    )


def _grid(grid: Grid) -> str:
    head = "".join(f"<th{_numeric(place, grid)}>{escape(name)}</th>" for place, name in enumerate(grid.head))
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td{_numeric(place, grid)}>{escape(cell)}</td>" for place, cell in enumerate(row))
        + "</tr>"
        for row in grid.rows
    )
    caption = f"<caption>{escape(grid.caption)}</caption>"
    return f'<div class="scroll"><table>{caption}<tr>{head}</tr>\n{rows}</table></div>'


def _numeric(place: int, grid: Grid) -> str:
    return ' class="number"' if place >= grid.words else ""


def _mark(is_good: bool, text: str) -> str:
    sign, kind = ("✓", "good") if is_good else ("✗", "bad")
    return f'<span class="mark {kind}">{sign} {escape(text)}</span>'


def _number(value: float) -> str:
    return f"{value:,.3f}".replace("-", "−")
