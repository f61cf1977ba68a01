"""Tallies of residuals from cells, against rows."""

from dataclasses import replace

import numpy as np
import pytest

from cells_by_hand import cells_of, drawn
from orthobandit import Tally
from orthobandit.logs.cells import Cells
from orthobandit.logs.residuals import Series, Slopes

RNG = np.random.default_rng(5)
PLANS = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
ROWS = drawn(RNG, PLANS, RNG.integers(0, 2, 300), np.zeros(300, dtype=int), levels=4.0)
CELLS = cells_of(ROWS, offset=3.5)


def test_a_tally_is_that_of_the_rows():
    values = np.array([0.1, -0.2, 0.3])
    plans, tally = Series(CELLS, np.ones(1)).tally(0.4, values)
    residuals = ROWS.reward - 3.5 - 0.4 - values[ROWS.arm]
    for place, plan in enumerate(plans):
        mine = ROWS.plan == plan
        expected = Tally.of(ROWS.arm[mine], residuals[mine], 3)
        for name in ("counts", "sums", "squares", "largest"):
            assert getattr(tally, name)[place] == pytest.approx(getattr(expected, name), rel=1e-9)


def test_levels_and_squares_are_those_of_the_rows():
    values, series = np.array([1.0, 0.0, -1.0]), Series(CELLS, np.ones(1))
    rest = ROWS.reward - 3.5 - values[ROWS.arm]
    assert series.level(values) == pytest.approx(rest.mean())
    assert series.squared(0.7, values) == pytest.approx(((rest - 0.7) ** 2).sum())


def two_columns(rng, rows, slope):
    """Return cells of rewards and of a covariate that they follow, and both by row."""
    z = rng.standard_normal(len(rows.arm))
    rows = replace(rows, reward=rows.reward + slope * z)
    first, second = cells_of(rows), cells_of(replace(rows, reward=z))
    cross = cells_of(replace(rows, reward=rows.reward * z)).sums[:, 0]
    products = np.stack(
        [
            np.stack([first.products[:, 0, 0], cross], axis=1),
            np.stack([cross, second.products[:, 0, 0]], axis=1),
        ],
        axis=1,
    )
    both = {name: np.concatenate([getattr(first, name), getattr(second, name)], axis=1) for name in WIDE}
    return replace(first, columns=("y", "z"), offset=np.zeros(2), products=products, **both), rows.reward, z


WIDE = ("sums", "low", "high", "missing", "capped")


def test_slopes_are_those_within_cells():
    rng = np.random.default_rng(8)
    rows = drawn(rng, PLANS, rng.integers(0, 2, 4000), np.zeros(4000, dtype=int), gaps=[0.0, 5.0, -5.0])
    cells, y, z = two_columns(rng, rows, 2.0)
    slopes = Slopes(0, np.array([1]))
    assert slopes.beta.tolist() == [0.0]
    slopes.learn(cells)
    assert slopes.beta == pytest.approx([2.0], abs=0.1)
    series = Series(cells, np.array([1.0, -2.0]))
    assert series.squares.sum() == pytest.approx(((y - 2.0 * z) ** 2).sum())


def test_bounds_of_a_sum_of_columns_hold_all_rows():
    rng = np.random.default_rng(9)
    rows = drawn(rng, PLANS, rng.integers(0, 2, 500), np.zeros(500, dtype=int))
    cells, y, z = two_columns(rng, rows, 1.0)
    series = Series(cells, np.array([1.0, -0.7]))
    assert series.low.min() <= (y - 0.7 * z).min()
    assert series.high.max() >= (y - 0.7 * z).max()


def test_a_covariate_that_does_not_vary_has_no_slope():
    rng = np.random.default_rng(10)
    rows = drawn(rng, PLANS, rng.integers(0, 2, 100), np.zeros(100, dtype=int))
    cells, _, _ = two_columns(rng, rows, 1.0)
    still = replace(cells, sums=cells.sums * [1, 0], products=cells.products * [[1, 0], [0, 0]])
    slopes = Slopes(0, np.array([1]))
    slopes.learn(still)
    assert slopes.beta.tolist() == [0.0]


def test_residuals_beyond_the_limit_are_rounding():
    cells: Cells = cells_of(replace(ROWS, reward=(ROWS.reward > 4.0).astype(float)))
    _, tally = Series(cells, np.ones(1)).tally(0.0, np.zeros(3), limit=1.0)
    assert np.all(tally.squares <= tally.counts)
