"""Sections of the report: which cells they run, and what they make of made-up results.

Cells are counted and hashed by their settings, which name finished work: where they move, long runs are lost.
"""

import json
from hashlib import blake2b

import pytest
from tests.made_up_cells import made_up

from goldens.harness import check, golden_cases, plain_json
from inside.reproduction import SECTIONS, Scope
from inside.study import join

FOLDER = "reproduction"


def cells_text(cells):
    """Return how many cells there are, a hash of their tasks and settings, and one of their labels."""
    # Rounded, since gaps of instances are computed.
    work = plain_json([[cell.task, cell.settings] for cell in cells])
    labels = json.dumps([list(cell.labels.items()) for cell in cells])
    hashes = (blake2b(text.encode(), digest_size=8).hexdigest() for text in (work, labels))
    return "{} cells, settings {}, labels {}".format(len(cells), *hashes)


def section_text(section):
    """Return what a section runs, and what it says of made-up results of its full form."""
    scopes = {"quick": Scope(seed=3), "full": Scope(is_quick=False, seed=3)}
    lines = []
    for name, scope in scopes.items():
        lines += [f"{name}: {section.setting(scope)}", cells_text(section.cells(scope))]
    cells = section.cells(scopes["full"])
    data = join(cells, [made_up(cell) for cell in cells])
    for verdict in section.verdicts(data):
        facts = verdict.to_json()
        words = "{kind}: {name} ({source}): {claim}; {statistic}".format(**facts)
        numbers = [facts[name] for name in ("value", "error", "low", "high", "bound")]
        shown = ("none" if number is None else f"{number:.6g}" for number in numbers)
        lines.append(f"{words} {facts['relation']} {' '.join(shown)}")
    for grid in section.grids(data):
        lines += ["", grid.caption, "|".join(grid.head), *("|".join(row) for row in grid.rows)]
    lines += ["", *(f"{chart.name}: {chart.caption}" for chart in section.charts(data))]
    return "\n".join(lines)


@pytest.mark.parametrize("name", golden_cases(FOLDER, SECTIONS, slow=("figure-1", "figure-2")))
def test_sections_run_and_say_what_they_did(name):
    check({f"{FOLDER}/{name}.txt": section_text(SECTIONS[name])})
