import numpy as np
import pytest
from scipy.stats import beta, chi2, norm

from inside.estimate import Seen
from orthobandit import Tally
from orthobandit.estimate.confidence.one_look import Sides

Z = np.array([-norm.ppf(0.025)])


def sides_of(events, rows, *, is_two_valued=True, size=1.0):
    """Return the sides of a mean of rows, some of which are `size` and the others 0, less the mean."""
    mean = size * events / rows
    squares = events * (size - mean) ** 2 + (rows - events) * mean**2
    tally = Tally(np.array([[rows]]), np.zeros((1, 1)), np.array([[squares]]), np.array([[size]]))
    start = Sides.start(1, is_two_valued=is_two_valued)
    return start.add(np.ones((1, 1, 1)), tally, np.array([[size * events]]), (-mean, size - mean))


@pytest.mark.parametrize("events", [0, 1, 3, 10, 100])
def test_margins_of_rare_events_are_those_of_exact_limits(events):
    below, above = sides_of(events, 10**6).margins(Z)
    exact_low = chi2.ppf(0.025, 2 * events) / 2.0 if events else 0.0
    exact_high = chi2.ppf(0.975, 2 * events + 2) / 2.0
    assert events - below == pytest.approx(exact_low, abs=0.12)
    assert events + above == pytest.approx(exact_high, abs=0.25)


@pytest.mark.parametrize("events", [20, 50, 80])
def test_margins_of_common_events_are_those_of_exact_limits(events):
    below, above = sides_of(events, 100).margins(Z)
    assert events - below == pytest.approx(100 * beta.ppf(0.025, events, 101 - events), abs=0.6)
    assert events + above == pytest.approx(100 * beta.ppf(0.975, events + 1, 100 - events), abs=0.6)


def test_rare_events_and_their_mirror_image_have_mirrored_margins():
    few, many = sides_of(3, 100).margins(Z), sides_of(97, 100).margins(Z)
    assert np.array(few) == pytest.approx(np.array(many[::-1]))


def test_margins_change_with_units_and_not_with_more_of_the_same():
    once = sides_of(30, 1000, is_two_valued=False).margins(Z)
    assert np.array(sides_of(30, 1000, is_two_valued=False, size=7.0).margins(Z)) == pytest.approx(
        7.0 * np.array(once)
    )
    # Skewed to the right: more room above, z standard errors below.
    assert once[0] == pytest.approx(Z * np.sqrt(30 * 0.97))
    assert once[1] > 1.1 * once[0]


def test_many_events_leave_the_usual_interval():
    below, above = sides_of(50_000, 10**6).margins(Z)
    usual = Z * np.sqrt(50_000 * 0.95)
    assert below == pytest.approx(usual, rel=0.01)
    assert above == pytest.approx(usual, rel=0.01)


def test_two_sides_are_joined_by_squares():
    tally = Tally(np.array([[50, 50]]), np.zeros((1, 2)), np.array([[9.0, 16.0]]), np.array([[1.0, 1.0]]))
    start = Sides.start(1, is_two_valued=False)
    found = start.add(np.array([[[1.0, -1.0]]]), tally, np.zeros((1, 2)), (-1.0, 1.0))
    assert found.margins(Z) == (pytest.approx(5.0 * Z), pytest.approx(5.0 * Z))


def test_a_side_that_has_shown_nothing_may_be_skewed_as_the_other_is():
    tally = Tally(np.array([[50, 50]]), np.zeros((1, 2)), np.array([[0.0, 160.0]]), np.array([[0.1, 4.0]]))
    weights, ends = np.array([[[1.0, -1.0]]]), (np.array([0.0, -4.0]), np.array([0.0, 1.0]))
    found = Sides.start(1, is_two_valued=False).add(weights, tally, np.zeros((1, 2)), ends)
    _, above = found.margins(Z)
    # κ = 3 for both: of the second side towards what lifts the gap, of the first either way.
    own = Z * np.sqrt(2.0 / 3.0 * 9.0) + 3.0 * (2.0 * Z**2 + 1.0) / 6.0
    other = Z * np.sqrt(160.0 + 2.0 / 3.0 * 9.0) + 3.0 * (2.0 * Z**2 + 1.0) / 6.0
    assert above == pytest.approx(np.hypot(own, other))


def seen_of(values):
    values = np.asarray(values, dtype=float)
    tally = Tally.of(np.zeros(len(values), dtype=int), values, 1)
    return Seen.start(1).along(tally[np.newaxis]).at(0)


def test_who_waits():
    rare = seen_of(np.repeat([1.0, 0.0], [4, 2000]))
    often = seen_of(np.repeat([1.0, 0.0], [40, 2000]))
    hidden, known = np.zeros(1), np.full(1, 40.0)
    values, numbers = (Sides.start(1, is_two_valued=one) for one in (True, False))
    assert not values.wait(rare, hidden, is_exact=True).any()
    assert values.wait(rare, known, is_exact=False).all()
    assert not values.wait(often, hidden, is_exact=False).any()
    assert numbers.wait(often, hidden, is_exact=False).all()
    assert not numbers.wait(often, known, is_exact=False).any()


def test_sides_add_up_what_rows_weigh():
    rng = np.random.default_rng(7)
    weights = rng.normal(size=(40, 3, 4)) * (rng.random((40, 3, 4)) < 0.7)
    counts = rng.integers(0, 5, size=(40, 4))
    residuals = [[rng.normal(size=count) for count in row] for row in counts]
    sums, squares, largest = (
        np.array([[function(one) if len(one) else 0.0 for one in row] for row in residuals])
        for function in (np.sum, lambda one: np.sum(one**2), lambda one: np.abs(one).max())
    )
    values = rng.normal(size=(40, 4))
    found = Sides.start(3, is_two_valued=False).add(
        weights, Tally(counts, sums, squares, largest), values, (-1.0, 2.0)
    )
    for side, part in enumerate((np.maximum(weights, 0.0), np.maximum(-weights, 0.0))):
        wanted = {
            "variances": np.einsum("gmk,gk->m", part**2, squares),
            "squares": np.einsum("gmk,gk->m", part**2, counts),
            "cubes": np.einsum("gmk,gk->m", part**3, counts),
            "ones": np.einsum("gmk,gk->m", part**2, values),
        }
        for name, one in wanted.items():
            assert getattr(found, name)[side] == pytest.approx(one, rel=1e-12)
    assert found.lows.tolist() == [[-1.0] * 3] * 2
