"""Build a report: run the sections' cells, store every number, derive the verdicts from what was stored."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orthobandit._checks import check_choice
from orthobandit._files import write_text
from orthobandit.errors import StudyError
from orthobandit.study.cells import Cache
from orthobandit.study.charts import blank_figure, house_style, save, svg_text
from orthobandit.study.page import Shown, page, templates
from orthobandit.study.sections import Scope, Section, Verdict, tally
from orthobandit.study.sections.base import Data
from orthobandit.study.sweep import Progress, run_cells
from orthobandit.study.tables import join, pyarrow, read_parquet, write_parquet

FORMAT = "orthobandit verdicts 2"


def chosen(sections: Mapping[str, Section], names: Sequence[str] | None) -> list[Section]:
    """Return the sections of these names, all by default; an unknown name is refused with the nearest."""
    for name in names or ():
        check_choice("only", name, sections)
    return [section for name, section in sections.items() if not names or name in names]


def build(
    sections: Sequence[Section],
    folder: str | Path,
    scope: Scope,
    *,
    is_whole: bool = False,
    jobs: int = 1,
    backend: str = "processes",
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Run what is not cached and write the report; return what ``verdicts.json`` holds.

    Parameters
    ----------
    sections : sequence of Section
    folder : path
        Gets ``index.html``, ``verdicts.json``, ``data/*.parquet``, ``charts/*.png`` and ``*.svg``, and
        ``cells/`` with finished work, from which an interrupted call goes on.
    scope : Scope
    is_whole : bool
        Whether these are all sections there are; if not, a report with others is not replaced.
    jobs, backend, progress
        As in :func:`~orthobandit.study.sweep.run_cells`; they change no byte of the report.
    """
    # Found out before a long run, not after it.
    pyarrow()
    blank_figure()
    templates()
    folder = Path(folder)
    if not is_whole:
        check_keeps_all(folder, sections)
    work = {section.name: section.cells(scope) for section in sections}
    cells = [cell for part in work.values() for cell in part]
    results = iter(run_cells(cells, Cache(folder / "cells"), jobs=jobs, backend=backend, progress=progress))
    for name, part in work.items():
        tables = join(part, [next(results) for _ in part])
        for table, columns in tables.items():
            write_parquet(folder / "data" / name / f"{table}.parquet", columns)
    shown = [_shown(section, folder, scope) for section in sections]
    verdicts = summary([(part.section, part.verdicts) for part in shown], scope)
    write_text(folder / "verdicts.json", _json(verdicts))
    write_text(folder / "index.html", page(shown, scope))
    return verdicts


def check_keeps_all(folder: Path, sections: Sequence[Section]) -> None:
    """Refuse to replace a report by one that lacks some of its sections."""
    path = folder / "verdicts.json"
    if not path.is_file():
        return
    try:
        stored = set(json.loads(path.read_text(encoding="utf-8"))["sections"])
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


def summary(found: Sequence[tuple[Section, Sequence[Verdict]]], scope: Scope) -> dict[str, Any]:
    """Return all verdicts as plain values."""
    return {
        "format": FORMAT,
        "scope": "quick" if scope.is_quick else "full",
        "seed": scope.seed,
        "tally": tally(verdict for _, verdicts in found for verdict in verdicts),
        "sections": {
            section.name: {
                "title": section.title,
                "command": command(section, scope),
                "tally": tally(verdicts),
                "verdicts": [verdict.to_json() for verdict in verdicts],
            }
            for section, verdicts in found
        },
    }


def command(section: Section, scope: Scope) -> str:
    """Return the command that redoes one section, in a folder of its own."""
    form = "--quick" if scope.is_quick else "--full"
    out = f"report-{section.name}"
    return f"orthobandit reproduce {form} --only {section.name} --seed {scope.seed} --out {out}"


def _shown(section: Section, folder: Path, scope: Scope) -> Shown:
    """Derive all that a page shows of a section from its stored tables; write its figures."""
    data, figures = read_data(folder, section), []
    (folder / "charts").mkdir(parents=True, exist_ok=True)
    for chart in section.charts(data):
        name = f"{section.name}-{chart.name}"
        with house_style(name):
            whole = chart.draw()
            save(whole, folder / "charts" / name)
            parts = [draw() for draw in chart.parts] or [whole]
        texts = [svg_text(figure, f"{name}-{place}") for place, figure in enumerate(parts)]
        figures.append((texts, chart.caption))
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
