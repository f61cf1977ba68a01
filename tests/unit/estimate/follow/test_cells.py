"""Tallies of residuals from cells, against rows."""

from dataclasses import replace

import numpy as np
import pytest

from cells_by_hand import cells_of, drawn
from orthobandit import Tally
from orthobandit.estimate.follow.cells import Blocks, Cells, Series, slopes_before

RNG = np.random.default_rng(5)
PLANS = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]])
ROWS = drawn(RNG, PLANS, RNG.integers(0, 2, 300), np.zeros(300, dtype=int), levels=4.0)
CELLS = cells_of(ROWS, offset=3.5)


def series_of(cells, *coefficients):
    """Return one series of cells, all of one step."""
    step = np.zeros(len(cells.counts), dtype=int)
    c = np.array([coefficients], dtype=float)
    return Series(cells, step, c, 0, np.zeros_like(c))


def block_of(cells, *coefficients):
    step = np.zeros(len(cells.counts), dtype=int)
    return Blocks(cells, step, [series_of(cells, *coefficients)]).block(0, 1)


def test_a_tally_is_that_of_the_rows():
    values = np.array([0.1, -0.2, 0.3])
    block = block_of(CELLS, 1.0)
    plans, tally = block.plans, block.tally(0, np.array([0.4]), values[np.newaxis])
    residuals = ROWS.reward - 3.5 - 0.4 - values[ROWS.arm]
    for place, plan in enumerate(plans):
        mine = ROWS.plan == plan
        expected = Tally.of(ROWS.arm[mine], residuals[mine], 3)
        for name in ("counts", "sums", "squares", "largest"):
            assert getattr(tally, name)[place] == pytest.approx(getattr(expected, name), rel=1e-9)


def test_levels_and_squares_are_those_of_the_rows():
    values, block = np.array([1.0, 0.0, -1.0]), block_of(CELLS, 1.0)
    rest = ROWS.reward - 3.5 - values[ROWS.arm]
    assert (block.lines[0].sums.sum() - block.arms[0] @ values) == pytest.approx(rest.sum())
    found = block.squared(0, [np.array([0.7]), np.array([0.0])], values[np.newaxis])
    assert np.ravel(found) == pytest.approx([((rest - 0.7) ** 2).sum(), (rest**2).sum()])


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
    slopes = slopes_before(cells, np.array([0]), 0, np.array([1]))
    assert slopes[0].tolist() == [0.0]
    assert slopes[1] == pytest.approx([2.0], abs=0.1)
    series = series_of(cells, 1.0, -2.0)
    assert series.squares.sum() == pytest.approx(((y - 2.0 * z) ** 2).sum())


def test_bounds_of_a_sum_of_columns_hold_all_rows():
    rng = np.random.default_rng(9)
    rows = drawn(rng, PLANS, rng.integers(0, 2, 500), np.zeros(500, dtype=int))
    cells, y, z = two_columns(rng, rows, 1.0)
    series = series_of(cells, 1.0, -0.7)
    assert series.low.min() <= (y - 0.7 * z).min()
    assert series.high.max() >= (y - 0.7 * z).max()


def test_a_covariate_that_does_not_vary_has_no_slope():
    rng = np.random.default_rng(10)
    rows = drawn(rng, PLANS, rng.integers(0, 2, 100), np.zeros(100, dtype=int))
    cells, _, _ = two_columns(rng, rows, 1.0)
    still = replace(cells, sums=cells.sums * [1, 0], products=cells.products * [[1, 0], [0, 0]])
    assert slopes_before(still, np.array([0]), 0, np.array([1])).tolist() == [[0.0], [0.0]]


def test_residuals_beyond_the_limit_are_rounding():
    cells: Cells = cells_of(replace(ROWS, reward=(ROWS.reward > 4.0).astype(float)))
    tally = block_of(cells, 1.0).tally(0, np.zeros(1), np.zeros((1, 3)), limit=1.0)
    assert np.all(tally.squares <= tally.counts)


def test_slopes_before_a_step_are_of_earlier_rows_alone():
    rng = np.random.default_rng(11)
    rows = drawn(rng, PLANS, rng.integers(0, 2, 900), np.arange(900) // 300)
    cells, _, _ = two_columns(rng, rows, 2.0)
    first = np.searchsorted(cells.bucket, [0, 1, 2])
    found = slopes_before(cells, first, 0, np.array([1]))
    for step in range(4):
        some = cells.only(cells.bucket < step)
        alone = slopes_before(some, np.array([0]), 0, np.array([1]))[-1] if step else np.zeros(1)
        assert found[step] == pytest.approx(alone, rel=1e-12)


def test_blocks_of_any_size_hold_the_same_steps(monkeypatch):
    rng = np.random.default_rng(12)
    rows = drawn(rng, PLANS, rng.integers(0, 2, 600), np.sort(rng.integers(0, 20, 600)))
    cells = cells_of(rows)
    step = np.unique(cells.bucket, return_inverse=True)[1]
    series = Series(cells, step, np.ones((20, 1)), 0, np.zeros((20, 1)))
    whole = Blocks(cells, step, [series]).block(0, 20)
    monkeypatch.setattr("inside.estimate.MOST", 54)
    parts = list(Blocks(cells, step, [series]).from_step(3, 3))
    assert len(parts) > 3
    assert [parts[0].start, *(part.stop for part in parts[:-1])] == [part.start for part in parts]
    kept = slice(whole.first[3], None)
    for name in ("sums", "squares", "low", "high"):
        joined = np.concatenate([getattr(part.lines[0], name) for part in parts])
        assert np.array_equal(joined, getattr(whole.lines[0], name)[kept])
    assert np.array_equal(np.concatenate([part.arms for part in parts]), whole.arms[3:])
