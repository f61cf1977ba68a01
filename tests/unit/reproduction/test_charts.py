import sys

import numpy as np
import pytest

from inside.showing import COLOURS, blank_figure, save_figure
from orthobandit import SBE
from orthobandit.errors import MissingExtraError
from orthobandit.reproduction.charts import Curve, Dot, regret_curves, share_rows
from orthobandit.simulation import one_hot, simulate


@pytest.fixture(scope="module")
def curve():
    result = simulate(
        SBE(), one_hot([0.0, 1.0]), horizon=500, replications=20, seed=1, checkpoints=[100, 500]
    )
    return Curve.of("sbe", result)


def test_a_curve_holds_the_mean_within_its_band(curve):
    assert curve.rounds.tolist() == [100, 500]
    assert np.all(curve.low <= curve.mean)
    assert np.all(curve.mean <= curve.high)


def test_axes_are_labelled_and_every_line_is_named(curve):
    curves = [Curve(f"policy {i}", curve.rounds, curve.mean, curve.low, curve.high) for i in range(9)]
    figure = regret_curves(curves, title="nine", note="band: all")
    (axes,) = figure.axes
    assert axes.get_xlabel() == "rounds t"
    assert axes.get_ylabel() == "cumulative regret (units of reward)"
    assert axes.get_title(loc="left") == "nine\nband: all"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [c.name for c in curves]
    looks = {(line.get_color(), line.get_linestyle()) for line in axes.lines}
    assert len(looks) == len(curves) > len(COLOURS)


def test_the_legend_is_outside_the_axes(curve):
    figure = regret_curves([curve])
    figure.draw_without_rendering()
    assert not figure.legends[0].get_window_extent().overlaps(figure.axes[0].get_window_extent())
    assert not figure.legends[0].get_window_extent().overlaps(figure.axes[0].xaxis.label.get_window_extent())


@pytest.mark.parametrize("kinds", [("here",), ("bounded rewards", "sub-Gaussian noise", "asymptotic")])
def test_a_legend_is_as_wide_as_its_figure_at_most(kinds):
    figure = share_rows({"sine": dict.fromkeys(kinds, Dot(0.01))}, "share", 0.1, "δ")
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    assert figure.bbox.x0 <= legend.x0
    assert legend.x1 <= figure.bbox.x1


def test_files_are_the_same_every_time(curve, tmp_path):
    first, second = (
        save_figure(regret_curves([curve]), tmp_path / name / "regret") for name in _folders(tmp_path)
    )
    assert [path.name for path in first] == ["regret.png", "regret.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def _folders(base):
    for name in ("a", "b"):
        (base / name).mkdir()
        yield name


def test_without_matplotlib_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[plots\]'"):
        blank_figure()
