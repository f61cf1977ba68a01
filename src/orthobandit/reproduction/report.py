"""A report: run the sections' cells, judge their numbers, and store what leads to the same verdicts again.

Its page is one HTML file: no script, no network, light or dark as the reader's system is. What it looks like
is in ``templates/``; here is what the templates are given.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.files import write_text
from orthobandit._foundation.release import __version__
from orthobandit.errors import StudyError
from orthobandit.reproduction.measured import LEVEL, Measured
from orthobandit.reproduction.section import (
    ANSWERS,
    CLAIMS,
    Chart,
    Data,
    Grid,
    Judgement,
    Scope,
    Section,
    tally,
)
from orthobandit.showing import numbers
from orthobandit.showing.charts import blank_figure, house_style, save_figure, svg_text
from orthobandit.showing.html import make_environment, minus
from orthobandit.study.cells import Cache
from orthobandit.study.sweep import Progress, run_cells
from orthobandit.study.tables import join, pyarrow, read_parquet, write_parquet

FORMAT = "orthobandit verdicts 3"  # raised when keys of verdicts.json change their meaning
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
    "undecided": {"sign": "○", "style": "open"},
    "refuted": {"sign": "✗", "style": "bad"},
    "yes": {"sign": "✓", "style": "good"},
    "open": {"sign": "○", "style": "open"},
    "no": {"sign": "–", "style": "open"},
}


def chosen(sections: Mapping[str, Section], names: Sequence[str] | None) -> list[Section]:
    """Return the sections of these names, all by default; an unknown name is refused with the nearest."""
    for name in names or ():
        check_choice("only", name, sections)
    return [section for name, section in sections.items() if not names or name in names]


@dataclass(frozen=True)
class Report:
    """What was found: the tables of each section, by its name, and the verdicts that they lead to.

    Attributes
    ----------
    verdicts : dict
        What ``verdicts.json`` holds.
    """

    sections: Sequence[Section]
    scope: Scope
    data: Mapping[str, Data]
    verdicts: Mapping[str, Any]

    def write(self, folder: Path) -> Iterator[Path]:
        """Write the numbers, the figures and the page; yield the paths as they are written."""
        for name, tables in self.data.items():
            for table, columns in tables.items():
                path = folder / "data" / name / f"{table}.parquet"
                write_parquet(path, columns)
                yield path
        shown = []
        for section in self.sections:
            figures = []
            for chart in section.charts(self.data[section.name]):
                texts, paths = _drawn(chart, f"{section.name}-{chart.name}", folder / "charts")
                yield from paths
                figures.append((texts, chart.caption))
            shown.append(_shown(section, self.data[section.name], self.scope, figures))
        write_text(folder / "verdicts.json", _json(self.verdicts))
        yield folder / "verdicts.json"
        write_text(folder / "index.html", page(shown, self.scope))
        yield folder / "index.html"


def measure(
    sections: Sequence[Section],
    folder: str | Path,
    scope: Scope,
    *,
    is_whole: bool = False,
    jobs: int = 1,
    backend: str = "processes",
    progress: Progress | None = None,
) -> Report:
    """Run what is not cached and return what it says; nothing but finished cells is written.

    Parameters
    ----------
    sections : sequence of Section
    folder : path
        Where the report will be: gets ``cells/`` with finished work, from which an interrupted call goes on.
    scope : Scope
    is_whole : bool
        Whether these are all sections there are; if not, a report with others is not replaced.
    jobs, backend, progress
        As in :func:`~orthobandit.study.sweep.run_cells`; they change no byte of the report.
    """
    # Missing packages are found out before a long run, not after it.
    pyarrow()
    blank_figure()
    templates()
    folder = Path(folder)
    if not is_whole:
        check_keeps_all(folder, sections)
    work = {section.name: section.cells(scope) for section in sections}
    cells = [cell for part in work.values() for cell in part]
    results = iter(run_cells(cells, Cache(folder / "cells"), jobs=jobs, backend=backend, progress=progress))
    data = {name: join(part, [next(results) for _ in part]) for name, part in work.items()}
    judged = [(section, section.verdicts(data[section.name])) for section in sections]
    return Report(sections, scope, data, summary(judged, scope))


def build(sections: Sequence[Section], folder: str | Path, scope: Scope, **how: Any) -> dict[str, Any]:
    """Measure and write the report; return what ``verdicts.json`` holds.

    Parameters
    ----------
    sections, scope, **how
        As in :func:`measure`.
    folder : path
        Gets ``index.html``, ``verdicts.json``, ``data/*.parquet``, ``charts/*.png`` and ``*.svg``, and
        ``cells/``.
    """
    report = measure(sections, folder, scope, **how)
    for _ in report.write(Path(folder)):
        continue
    return dict(report.verdicts)


def check_keeps_all(folder: Path, sections: Sequence[Section]) -> None:
    """Refuse to replace a report by one that lacks some of its sections."""
    path = folder / "verdicts.json"
    if not path.is_file():
        return
    try:
        stored = set(json.loads(path.read_text(encoding="utf-8"))["sections"])
    # What cannot be read is no report that could be lost.
    except (ValueError, KeyError, TypeError):
        return
    lost = sorted(stored - {section.name for section in sections})
    if lost:
        raise StudyError(
            f"{folder} holds a report with more sections ({', '.join(lost)}), which these would replace;"
            " give another folder by --out"
        )


def derive(sections: Sequence[Section], folder: str | Path, scope: Scope) -> dict[str, Any]:
    """Return what ``verdicts.json`` must hold, from the Parquet files alone."""
    return summary(
        [(section, section.verdicts(read_data(Path(folder), section))) for section in sections], scope
    )


def read_data(folder: Path, section: Section) -> Data:
    """Return a section's tables from a report's folder."""
    return {
        path.stem: read_parquet(path) for path in sorted((folder / "data" / section.name).glob("*.parquet"))
    }


def summary(judged: Sequence[tuple[Section, Sequence[Judgement]]], scope: Scope) -> dict[str, Any]:
    """Return all verdicts as plain values."""
    return {
        "format": FORMAT,
        "scope": "quick" if scope.is_quick else "full",
        "seed": scope.seed,
        "tally": tally(verdict for _, verdicts in judged for verdict in verdicts),
        "level": LEVEL,
        "family": family_level(sum(len(verdicts) for _, verdicts in judged)),
        "sections": {
            section.name: {
                "title": section.title,
                "command": command(section, scope),
                "tally": tally(verdicts),
                "verdicts": [verdict.to_json() for verdict in verdicts],
            }
            for section, verdicts in judged
        },
    }


def family_level(count: int) -> float:
    """Return the chance, at most, that any of so many verdicts is "shown" or "refuted" wrongly.

    Examples
    --------
    >>> round(family_level(100), 3)
    0.033
    """
    return min(1.0, count * LEVEL)


def command(section: Section, scope: Scope) -> str:
    """Return the command that redoes one section, in a folder of its own."""
    form = "--quick" if scope.is_quick else "--full"
    out = f"report-{section.name}"
    return f"orthobandit reproduce {form} --only {section.name} --seed {scope.seed} --out {out}"


def _drawn(chart: Chart, name: str, folder: Path) -> tuple[list[str], list[Path]]:
    """Write a chart; return the SVGs of its panels, for the page, and the files."""
    with house_style(name):
        whole = chart.draw()
        paths = save_figure(whole, folder / name)
        parts = [draw() for draw in chart.parts] or [whole]
    return [svg_text(figure, f"{name}-{panel}") for panel, figure in enumerate(parts)], paths


def _shown(section: Section, data: Data, scope: Scope, figures: Sequence[tuple[list[str], str]]) -> "Shown":
    return Shown(
        section,
        section.verdicts(data),
        section.grids(data),
        figures,
        section.setting(scope),
        command(section, scope),
    )


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class Shown:
    """What a page shows of a section; figures are (SVGs, caption)."""

    section: Section
    verdicts: Sequence[Judgement]
    grids: Sequence[Grid]
    figures: Sequence[tuple[Sequence[str], str]]
    setting: str
    command: str


@cache
def templates() -> Any:
    """Return the templates; whatever they are given is escaped, and a name that is missing is an error."""
    environment = make_environment("orthobandit.reproduction")
    environment.filters |= {"number": number, "with_error": with_error, "source": source, "tally": tally}
    environment.globals |= {"signs": SIGNS}
    return environment


def page(shown: Sequence[Shown], scope: Scope) -> str:
    """Return the whole page."""
    verdicts = [(part, verdict) for part in shown for verdict in part.verdicts]
    text: str = (
        templates()
        .get_template("page.html.j2")
        .render(
            shown=shown,
            scope=scope,
            version=__version__,
            level=LEVEL,
            family=family_level(len(verdicts)),
            verdicts=[verdict for _, verdict in verdicts],
            refuted=[(part, verdict) for part, verdict in verdicts if verdict.kind == "refuted"],
        )
    )
    return text


def in_words(counts: Mapping[str, int]) -> str:
    """Return a tally as a sentence.

    Examples
    --------
    >>> in_words({"refuted": 1, "undecided": 0, "shown": 3, "no": 1, "open": 0, "yes": 1})
    '4 claims: 3 shown, 0 undecided, 1 refuted; 2 questions: 1 yes, 0 open, 1 no'
    """
    parts = []
    for word, kinds in (("claim", CLAIMS), ("question", ANSWERS)):
        total = sum(counts.get(kind, 0) for kind in kinds)
        # A report without questions need not say so.
        if total or word == "claim":
            said = ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in reversed(kinds))
            parts.append(f"{total} {word}{'s' * (total != 1)}: {said}")
    return "; ".join(parts)


def source(verdict: Judgement) -> str:
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
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return minus(numbers.number(value, 0 if abs(value) >= 1000 else 3))
