"""Charts can be printed whatever they are given: long names, many lines, crowded curves."""

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from tests.made_up_cells import made_up
from tests.printable import flaws

from inside.reproduction import SECTIONS, Scope
from inside.showing import blank_figure, house_style
from inside.study import join
from orthobandit.reproduction.charts import (
    Curve,
    Dot,
    Series,
    dot_rows,
    error_panels,
    regret_panels,
    scaling_panels,
    share_rows,
)

LONG = (
    "SBE, c = 1/16",
    "BOSE, λ = 1, c = 1/16",
    "Semiparametric-TS, released rule, c = 1/16",
    "SBE, exact design, c = 1/16",
    "anytime elimination, untuned",
    "anytime elimination, exact, untuned",
)


def curve(name, end):
    rounds = np.linspace(400, 40_000, 100).astype(int)
    mean = end * np.sqrt(rounds / rounds[-1])
    return Curve(name, rounds, mean, 0.8 * mean, 1.2 * mean)


def regret(ends):
    panel = [curve(name, end) for name, end in zip(LONG, ends, strict=True)]
    return lambda: regret_panels({"(d, K) = (5, 10)": panel, "(d, K) = (20, 30)": panel})


def errors():
    x = np.geomspace(10, 1e7, 25)
    series = [Series(name, x, 20 + 0 * x, 5 + 0 * x) for name in LONG[:2]]
    return error_panels({f"(d, K) = ({d}, 30)": (series, 100.0, "10√(d log K)") for d in (5, 30)})


def scaling():
    x = 2.0 ** np.arange(14, 24, 2)
    names = ("DEO (the paper's)", "exact centred design", "ν² as printed, unbounded")
    series = [Series(f"{name}, slope −0.52", x, x**0.5, 0.1 * x**0.5, x**0.5) for name in names]
    panel = (series, "rounds T", "worst-case regret")
    return scaling_panels({"regret against T (d = 5)": panel, "samples until the best is declared": panel})


def dots():
    kinds = ("mean", "geometric mean", "published mean")
    return dot_rows({name: dict.fromkeys(kinds, Dot(1e4, 5e3)) for name in LONG}, "samples (rounds)")


def shares():
    kinds = ("bounded rewards", "sub-Gaussian noise", "asymptotic")
    rows = {f"log-alternating-min {k}": dict.fromkeys(kinds, Dot(0.01)) for k in range(13)}
    return share_rows(rows, "share of failed runs", 0.1, "δ")


@pytest.mark.parametrize(
    "draw",
    [
        regret([749, 263, 399, 700, 274, 500]),
        regret([749, 30_000, 17_000, 700, 274, 500]),
        errors,
        scaling,
        dots,
        shares,
    ],
    ids=["regret", "crowded regret", "errors", "scaling", "dots", "shares"],
)
def test_charts_can_be_printed(draw):
    with house_style("test"):
        figure = draw()
        FigureCanvasAgg(figure)
        assert flaws(figure) == []


@pytest.mark.parametrize(
    "is_quick", [True, pytest.param(False, marks=pytest.mark.slow)], ids=["quick", "full"]
)
@pytest.mark.parametrize("name", SECTIONS)
def test_figures_of_every_section_can_be_printed(name, is_quick):
    section = SECTIONS[name]
    cells = section.cells(Scope(is_quick))
    charts = section.charts(join(cells, [made_up(cell) for cell in cells]))
    assert charts
    for chart in charts:
        with house_style(f"{name}-{chart.name}"):
            # The page shows panels one by one; they are as the whole is, and drawn only in the long test.
            for draw in (chart.draw, *(() if is_quick else chart.parts)):
                figure = draw()
                FigureCanvasAgg(figure)
                assert flaws(figure) == [], chart.name


def test_crowded_curves_have_an_inset_and_only_separate_bands_are_drawn():
    crowded = regret([749, 30_000, 17_000, 700, 274, 500])()
    assert [len(axes.child_axes) for axes in crowded.axes if axes.axison] == [1, 1]
    assert [len(axes.collections) for axes in crowded.axes if axes.axison] == [3, 3]
    assert not any(axes.child_axes for axes in regret([749, 263, 399, 700, 274, 500])().axes)


def test_what_cannot_be_printed_is_found():
    figure = blank_figure(4.0, 3.0)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.text(0.5, 0.5, "one", transform=axes.transAxes)
    axes.text(0.5, 0.5, "two", transform=axes.transAxes)
    axes.text(1.4, 0.2, "outside", transform=axes.transAxes, in_layout=False)
    found = " ".join(flaws(figure))
    assert "'one'" in found
    assert "overlaps 'two'" in found
    assert "'outside'" in found
    assert "is cut" in found
    small = blank_figure(1.0, 0.9)
    FigureCanvasAgg(small)
    small.add_subplot()
    assert "pixels" in " ".join(flaws(small))


def test_an_inset_over_a_curve_is_found():
    figure = blank_figure(5.0, 4.0)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.plot([0, 1], [0, 1], label="the curve")
    axes.inset_axes((0.6, 0.05, 0.35, 0.4))
    assert not [flaw for flaw in flaws(figure) if "covers" in flaw]
    axes.inset_axes((0.2, 0.2, 0.4, 0.4))
    assert "an inset covers the curve" in flaws(figure)
