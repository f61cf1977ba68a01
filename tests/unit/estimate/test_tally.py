"""Tallies: sums by hand, exact merging, and what no rewards can give."""

import re

import numpy as np
import pytest

from orthobandit import Tally
from orthobandit.errors import RewardError, TallyError

FINITE = "every reward must be a finite number of magnitude at most 1e+150"


def same(first, second):
    pairs = [(first.counts, second.counts), (first.sums, second.sums), (first.squares, second.squares)]
    return all(np.array_equal(a, b) for a, b in pairs)


def test_rounds_are_summed_by_arm():
    tally = Tally.of([2, 0, 2, 2], [0.5, -1.0, 1.5, 2.0], count=4)
    assert tally.counts.tolist() == [1, 0, 3, 0]
    assert tally.sums.tolist() == [-1.0, 0.0, 4.0, 0.0]
    assert tally.squares.tolist() == [1.0, 0.0, 0.25 + 2.25 + 4.0, 0.0]
    assert tally.count == 4
    assert int(tally.rounds) == 4


def test_no_rounds():
    assert same(Tally.of([], [], count=3), Tally.zeros(3))
    assert Tally.zeros(3, batch=(2, 5)).counts.shape == (2, 5, 3)
    assert Tally.zeros(3, batch=(2, 5)).rounds.tolist() == [[0] * 5] * 2


def test_one_round_needs_no_brackets():
    assert same(Tally.of(1, 0.5, count=2), Tally.of([1], [0.5], count=2))


def test_merging_adds_and_leaves_both_parts_alone():
    first, second = Tally.of([0, 1], [1.0, 2.0], 2), Tally.of([1], [3.0], 2)
    merged = first + second
    assert merged.counts.tolist() == [1, 2]
    assert merged.sums.tolist() == [1.0, 5.0]
    assert merged.squares.tolist() == [1.0, 13.0]
    assert same(first, Tally.of([0, 1], [1.0, 2.0], 2))
    assert same(second, Tally.of([1], [3.0], 2))


def test_arrays_are_copied_and_read_only():
    counts, sums, squares = np.array([1, 1]), np.array([1.0, 2.0]), np.array([1.0, 4.0])
    tally = Tally(counts, sums, squares)
    counts[:], sums[:], squares[:] = 0, 0, 0
    assert same(tally, Tally([1, 1], [1.0, 2.0], [1.0, 4.0]))
    for array in (tally.counts, tally.sums, tally.squares):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize(
    ("rewards", "message"),
    [
        ([1.0, np.nan], f"rewards row 1 is nan; {FINITE}"),
        ([np.inf, 1.0], f"rewards row 0 is inf; {FINITE}"),
        ([0.0, -np.inf], f"rewards row 1 is -inf; {FINITE}"),
        ([0.0, 1e200], f"rewards row 1 is 1e+200; {FINITE}"),
        ([0.0, None], f"rewards row 1 is None; {FINITE}"),
        ([0.0, "high"], f"rewards row 1 is 'high'; {FINITE}"),
        ([0.0, [1.0]], f"rewards row 1 is [1.0]; {FINITE}"),
        (np.array([1.0, 2.0 + 1j]), "rewards row 0 is np.complex128(1+0j); every reward"),
        (np.array([1.0, 2.0], dtype=object), "rewards have type object; every reward"),
    ],
)
def test_rewards_that_are_no_finite_numbers_are_refused(rewards, message):
    with pytest.raises(RewardError, match=re.escape(message)):
        Tally.of([0, 1], rewards, count=2)


@pytest.mark.parametrize(
    ("arms", "rewards", "count", "message"),
    [
        ([0, 2], [1.0, 1.0], 2, "arms row 1 is 2; arms are numbered 0 to 1"),
        ([-1, 0], [1.0, 1.0], 2, "arms row 0 is -1; arms are numbered 0 to 1"),
        ([0.0, 1.0], [1.0, 1.0], 2, "arms has type float64; arm indices must be whole numbers"),
        ([True, False], [1.0, 1.0], 2, "arms has type bool; arm indices must be whole numbers"),
        (["a", "b"], [1.0, 1.0], 2, "arms has type <U1; arm indices must be whole numbers"),
        ([0, 1, 1], [1.0, 1.0], 2, "arms has shape (3,) and rewards (2,); both must be (n,)"),
        ([[0, 1]], [[1.0, 1.0]], 2, "arms has shape (1, 2) and rewards (1, 2); both must be (n,)"),
        ([0, [1]], [1.0, 1.0], 2, "arms is ragged; give one arm per round, (n,)"),
        ([], [], 0, "count=0; a tally needs at least one arm"),
    ],
)
def test_rounds_that_fit_no_arm_are_refused(arms, rewards, count, message):
    with pytest.raises(TallyError, match=re.escape(message)):
        Tally.of(arms, rewards, count)


@pytest.mark.parametrize(
    ("counts", "sums", "squares", "message"),
    [
        ([1, 2], [1.0], [1.0], "counts, sums and squares have shapes (2,), (1,), (1,); all three must be"),
        (1, 1.0, 1.0, "counts, sums and squares have shapes (), (), (); all three must be (..., K)"),
        ([], [], [], "counts, sums and squares have shapes (0,), (0,), (0,)"),
        ([[1], [1, 2]], [1.0, 1.0], [1.0, 1.0], "counts, sums or squares are ragged"),
        ([1.0], [1.0], [1.0], "counts has type float64; counts must be whole numbers"),
        ([1, -2], [1.0, 1.0], [1.0, 1.0], "arm 1 has count -2; counts must not be negative"),
        ([4, 1], [2.0, 3.0], [1.0, 4.0], "arm 1 has count 1, sum 3 and squares 4, which no rewards can give"),
        ([1], [0.0], [-1.0], "arm 0 has count 1, sum 0 and squares -1, which no rewards can give"),
        ([0], [0.0], [1.0], "arm 0 has count 0, sum 0 and squares 1, which no rewards can give"),
        ([0], [1.0], [0.0], "arm 0 has count 0, sum 1 and squares 0, which no rewards can give"),
        ([[1, 1], [1, 0]], [[1, 1], [1, 5]], [[1, 1], [1, 25]], "arm 1 of replication (1,) has count 0"),
        ([1], [1e200], [1e300], "sum² may not exceed count × squares"),
    ],
)
def test_sums_that_no_rewards_can_give_are_refused(counts, sums, squares, message):
    with pytest.raises(TallyError, match=re.escape(message)):
        Tally(counts, sums, squares)


@pytest.mark.parametrize(
    ("sums", "squares", "message"),
    [
        ([1.0, np.nan], [1.0, 1.0], f"arm 1 has count 1, sum nan and squares 1; {FINITE}"),
        ([1.0, 1.0], [np.inf, 1.0], f"arm 0 has count 1, sum 1 and squares inf; {FINITE}"),
        (["a", "b"], [1.0, 1.0], "sums and squares have types <U1, float64; both must be real numbers"),
        ([1.0, 1.0], [1.0, 1j], "sums and squares have types float64, complex128; both must be real"),
    ],
)
def test_sums_that_are_no_finite_numbers_are_refused(sums, squares, message):
    with pytest.raises(RewardError, match=re.escape(message)):
        Tally([1, 1], sums, squares)


def test_rounding_of_many_equal_rewards_is_forgiven():
    count = 10**8  # each of so many additions may lose half a unit in the last place, all one way
    assert int(Tally([count], [count * (1 + 1e-8)], [count]).rounds) == count
    with pytest.raises(TallyError, match="which no rewards can give"):
        Tally([10], [10 * (1 + 1e-8)], [10])


def test_rewards_of_any_size_have_a_tally():
    tally = Tally.of([0, 0, 1], [1e150, -1e150, 1e-200], count=2)
    assert tally.sums.tolist() == [0.0, 1e-200]
    assert tally.squares.tolist() == [2 * 1e150**2, 0.0]


def test_tallies_of_other_arms_or_batches_do_not_merge():
    first = Tally.of([0], [1.0], count=2)
    for other, shape in ((Tally.zeros(3), (3,)), (Tally.zeros(2, batch=(4,)), (4, 2))):
        message = f"tallies of shape (2,) and {shape} cannot be merged; both must be of the same plan"
        with pytest.raises(TallyError, match=re.escape(message)):
            first + other
    assert same(first, Tally.of([0], [1.0], count=2))


def test_only_tallies_can_be_added():
    with pytest.raises(TypeError):
        Tally.zeros(2) + 1


def test_the_largest_is_kept_and_merges_by_maximum():
    one, other = Tally.of([0, 1, 1], [0.5, -3.0, 2.0], 2), Tally.of([0], [-0.75], 2)
    assert one.largest.tolist() == [0.5, 3.0]
    assert (one + other).largest.tolist() == [0.75, 3.0]
    assert Tally.from_json((one + other).to_json()).largest.tolist() == [0.75, 3.0]


def test_an_unknown_largest_is_the_most_that_it_can_be():
    assert Tally([2, 0], [5.0, 0.0], [16.0, 0.0]).largest.tolist() == [4.0, 0.0]
    assert Tally([2, 0], [5.0, 0.0], [16.0, 0.0], [100.0, 7.0]).largest.tolist() == [4.0, 0.0]


@pytest.mark.parametrize(
    ("largest", "message"),
    [
        ([1.0, 0.0], "arm 0 has largest 1, below the root mean square"),
        ([np.nan, 0.0], "arm 0 has largest nan"),
        ([1.0], r"largest has shape \(1,\)"),
        (["a", "b"], "largest is not a table"),
    ],
)
def test_a_largest_that_cannot_be_is_refused(largest, message):
    with pytest.raises(TallyError, match=message):
        Tally([2, 0], [5.0, 0.0], [16.0, 0.0], largest)


def test_rewards_whose_squares_underflow_are_taken():
    tally = Tally.of([0], [4.9682989e-160], 2)
    assert tally.rounds == 1
