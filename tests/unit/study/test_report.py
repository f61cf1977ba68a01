import json
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

from orthobandit.errors import ParameterError
from orthobandit.study.charts import Series, dot_rows, error_panels, scaling_panels
from orthobandit.study.figures import Curve
from orthobandit.study.paper import CONTENDERS, SECTIONS
from orthobandit.study.report import build, chosen, derive
from orthobandit.study.sections import Chart, Grid, Scope, Verdict
from orthobandit.study.sections.regret import Size
from orthobandit.study.spec import Part, Sweep


@dataclass(frozen=True)
class Small:
    """A section that takes no time: one policy, one instance."""

    name: str = "small"
    title: str = "Small <section>"
    group: str = "Tests"
    claims: str = "SBE declares & is right."

    def setting(self, scope):
        return f"seed {scope.seed}"

    def cells(self, scope):
        return Sweep(
            policies={"SBE": Part("sbe"), "exact": Part("sbe", {"design": "centred"})},
            instances={"two": Part("one-hot", {"means": [0.0, 1.0]})},
            shifts={"sine": Part("sine")},
            horizon=400,
            replications=3,
            seeds=(scope.seed,),
            batch=1,
        ).cells()

    def verdicts(self, data):
        share = float(np.mean(data["runs"]["is_correct"]))
        return [Verdict("right", "SBE is right", "here", "share", share, "≥", 0.5)]

    def grids(self, data):
        return [Grid("runs", ["policy", "what", "n"], [["SBE", "all", str(len(data["runs"]["regret"]))]])]

    def charts(self, data):  # noqa: ARG002
        curve = Curve("SBE", *(np.arange(1.0, 4.0) for _ in range(4)))
        from orthobandit.study.charts import regret_panels

        return [Chart("one", "One <line>", lambda: regret_panels({"a": [curve], "b": [curve, curve]}))]


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "cells" not in path.parts
    }


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    build([Small()], folder, Scope(seed=3))
    return folder


def test_the_same_seed_gives_the_same_bytes_whatever_the_jobs(report, tmp_path):
    build([Small()], tmp_path, Scope(seed=3), jobs=2)
    assert contents(report) == contents(tmp_path)
    build([Small()], tmp_path, Scope(seed=3))
    assert contents(report) == contents(tmp_path)


def test_all_parts_are_written(report):
    names = set(contents(report))
    assert names == {
        "index.html",
        "verdicts.json",
        "charts/small-one.png",
        "charts/small-one.svg",
        "data/small/curves.parquet",
        "data/small/runs.parquet",
    }


def test_verdicts_are_derived_again_from_the_parquet_files(report):
    stored = json.loads((report / "verdicts.json").read_text())
    assert derive([Small()], report, Scope(seed=3)) == stored
    verdict = stored["sections"]["small"]["verdicts"][0]
    assert verdict["holds"] == (verdict["value"] >= verdict["bound"])


def test_the_page_needs_no_network_and_follows_the_theme(report):
    page = (report / "index.html").read_text()
    for loader in ("<script", "<link", "<img", "@import", 'src="', 'href="http', "url(http"):
        assert loader not in page
    assert "prefers-color-scheme: dark" in page
    assert "#1b1c1f" not in page.split("</style>")[1]
    for said in ("Small &lt;section&gt;", "SBE declares &amp; is right.", "seed 3", "--only small"):
        assert said in page
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    targets = re.findall(r'(?:xlink:href="#|url\(#)([^")]+)', page)
    assert set(targets) <= set(identifiers)


def test_unknown_sections_are_refused_with_the_nearest_name():
    assert [section.name for section in chosen(SECTIONS, ["figure-3", "figure-1"])] == [
        "figure-1",
        "figure-3",
    ]
    assert len(chosen(SECTIONS, None)) == len(SECTIONS)
    with pytest.raises(ParameterError, match="did you mean 'figure-1'"):
        chosen(SECTIONS, ["figre-1"])


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_can_be_planned_in_both_scopes(name):
    section = SECTIONS[name]
    for is_quick in (True, False):
        cells = section.cells(Scope(is_quick, seed=2))
        assert cells
        assert section.setting(Scope(is_quick, seed=2)).endswith((".", "are."))
    assert {c.key for c in section.cells(Scope(seed=2))}.isdisjoint(
        c.key for c in section.cells(Scope(seed=3))
    )


def test_charts_label_their_axes_and_name_their_lines():
    x = np.array([1.0, 10.0, 100.0])
    line = Series("DEO", x, x, x / 10, x)
    for figure in (
        error_panels({"a": ([line, replace(line, name="exact")], 120.0, "level")}),
        scaling_panels({"a": ([line], "T", "regret"), "b": ([replace(line, fit=None)], "T", "plans")}),
    ):
        for axis in figure.axes:
            assert axis.get_xlabel()
            assert axis.get_legend_handles_labels()[1]
        figure.canvas.draw()
    rows = dot_rows({"SBE": {"here": 3e5, "published": 4e5}, "G-Opt": {"published": 2e6}}, "samples")
    assert [text.get_text() for text in rows.axes[0].get_yticklabels()] == ["SBE", "G-Opt"]


def test_the_regret_figure_picks_the_best_scale(tmp_path):
    figure = replace(
        SECTIONS["figure-1"],
        contenders={"SBE": CONTENDERS["SBE"], "BOSE": CONTENDERS["BOSE"]},
        sizes=(Size(2, 3, sets=(2, 2), rounds=(1500, 1500)),),
    )
    found = build([figure], tmp_path, Scope(seed=1))
    names = [verdict["name"] for verdict in found["sections"]["figure-1"]["verdicts"]]
    assert names == ["(2, 3) SBE below BOSE", "(2, 3) SBE becomes flat"]
    page = (tmp_path / "index.html").read_text()
    assert "←" in page
    assert "2677.66" in page
