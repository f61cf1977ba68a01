"""What moves the orthogonalised estimate, what does not, and by exactly how much.

Write n_i for counts, x̃_i for centred features, V = Σ n_i x̃_i x̃_iᵀ and β for the ridge. A constant c added to
every reward adds c·Σ n_i x̃_i to the moment, hence moves θ̂ by exactly (V + βI)⁻¹ c Σ n_i x̃_i: nothing
when every arm was played n·p_i times, and nothing on average because Σ p_i x̃_i = 0.
"""

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from orthobandit import ArmSet, Moments, OrthogonalRegression, Plan, Tally

SMALL = st.integers(-4, 4).map(float)
SHIFT = st.floats(-100, 100)


@st.composite
def experiments(draw, phases=3):
    """Features, and for each phase a distribution with the arms drawn and rewards seen under it."""
    count, width = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    features = draw(arrays(np.float64, (count, width), elements=SMALL))
    history = []
    for _ in range(draw(st.integers(1, phases))):
        weights = draw(arrays(np.float64, count, elements=st.floats(0.01, 1.0)))
        rounds = draw(
            st.lists(st.tuples(st.integers(0, count - 1), st.floats(-10, 10)), min_size=1, max_size=8)
        )
        history.append((weights / weights.sum(), rounds))
    return features, history


def pairs(history, count, shift=0.0):
    """Plans and tallies of a history, with a constant added to all rewards."""
    for probabilities, rounds in history:
        tally = Tally.of([arm for arm, _ in rounds], [reward + shift for _, reward in rounds], count)
        yield Plan(probabilities, len(rounds)), tally


def fit(features, history, shift=0.0, ridge=0.5):
    arms = ArmSet(features)
    return OrthogonalRegression(ridge=ridge).fit(arms, pairs(history, len(arms), shift))


def centred_sums(features, history):
    """V and Σ n_i x̃_i in the original features, round by round."""
    gram, total = np.zeros((features.shape[1],) * 2), np.zeros(features.shape[1])
    for probabilities, rounds in history:
        for arm, _ in rounds:
            centred = features[arm] - probabilities @ features
            gram += np.outer(centred, centred)
            total += centred
    return gram, total


@given(experiments(), st.data())
def test_translating_all_features_leaves_the_gaps_unchanged(experiment, data):
    features, history = experiment
    offset = data.draw(arrays(np.float64, features.shape[1], elements=st.integers(-1000, 1000).map(float)))
    plain, moved = fit(features, history), fit(features + offset, history)
    assert np.allclose(moved.gaps, plain.gaps, atol=1e-9)
    assert np.allclose(moved.theta, plain.theta, atol=1e-9)


@given(experiments(), st.data())
def test_relabelling_the_arms_permutes_the_gaps(experiment, data):
    features, history = experiment
    order = data.draw(st.permutations(range(len(features))))
    place = np.argsort(order)
    relabelled = [(p[order], [(int(place[arm]), reward) for arm, reward in rounds]) for p, rounds in history]
    assert np.allclose(fit(features[order], relabelled).gaps, fit(features, history).gaps[order], atol=1e-9)


@given(experiments(), st.data())
def test_other_units_of_the_features_change_no_gap_but_through_the_ridge(experiment, data):
    features, history = experiment
    factor = data.draw(st.sampled_from([1e-6, 1e-3, 1e3, 1e6]))
    plain, scaled = fit(features, history), fit(features * factor, history, ridge=0.5 * factor**2)
    assert np.allclose(scaled.gaps, plain.gaps, atol=1e-9)


@given(experiments(), SHIFT)
def test_a_constant_moves_the_estimate_by_its_centred_sum_alone(experiment, shift):
    features, history = experiment
    gram, total = centred_sums(features, history)
    expected = np.linalg.solve(gram + 0.5 * np.eye(len(gram)), shift * total)
    moved = fit(features, history, shift).theta - fit(features, history).theta
    assert np.allclose(moved, expected, atol=1e-8)


@given(experiments(phases=1), SHIFT)
def test_a_constant_moves_nothing_when_arms_are_played_in_proportion(experiment, shift):
    features, [(_, rounds)] = experiment
    counts = np.bincount([arm for arm, _ in rounds], minlength=len(features))
    history = [(counts / len(rounds), rounds)]
    assert np.allclose(fit(features, history, shift).theta, fit(features, history).theta, atol=1e-8)


@given(st.lists(st.integers(-8, 8), min_size=2, max_size=4), st.integers(-(2**20), 2**20), st.data())
def test_in_proportion_and_without_rounding_not_one_bit_moves(line, shift, data):
    # Whole features in one dimension, probabilities n_i/2^k: every sum is exact in binary.
    cuts = sorted(data.draw(st.lists(st.integers(0, 64), min_size=len(line) - 1, max_size=len(line) - 1)))
    counts = np.diff([0, *cuts, 64])
    arms, plan = ArmSet(np.array(line, dtype=float)[:, np.newaxis]), Plan(counts / 64, 64)
    sums = counts * np.arange(len(line))
    plain = Tally(counts, sums, sums * np.arange(len(line)))
    moved = Tally(counts, sums + shift * counts, counts * (np.arange(len(line)) + shift) ** 2)
    first, second = (OrthogonalRegression().fit(arms, [(plan, tally)]) for tally in (plain, moved))
    assert first.gaps.tobytes() == second.gaps.tobytes()


@given(experiments(phases=1), SHIFT)
def test_over_all_draws_a_constant_leaves_the_expected_moment_unchanged(experiment, shift):
    features, [(probabilities, _)] = experiment
    arms = ArmSet(features)
    change = np.zeros(arms.dimension)
    for drawn in product(range(len(arms)), repeat=2):
        plan = Plan(probabilities, 2)
        moments = [Moments.of(arms, plan, Tally.of(drawn, [c, 1 + c], len(arms))).moment for c in (0, shift)]
        change += np.prod(probabilities[list(drawn)]) * (moments[1] - moments[0])
    assert np.allclose(change, 0, atol=1e-9)


@given(SHIFT, st.lists(st.floats(-5, 5), min_size=4, max_size=4))
def test_over_all_draws_of_two_even_arms_the_expected_estimate_is_unchanged(shift, noise):
    # With p = (1/2, 1/2) every draw has the same V, so the expected estimate follows the expected moment.
    arms, plan = ArmSet([[0.0], [1.0]]), Plan([0.5, 0.5], 4)
    expected = [
        np.mean(
            [
                OrthogonalRegression().fit(arms, [(plan, Tally.of(drawn, np.add(noise, c), 2))]).theta
                for drawn in product((0, 1), repeat=4)
            ]
        )
        for c in (0.0, shift)
    ]
    assert np.isclose(expected[0], expected[1], atol=1e-9)


@given(experiments())
def test_round_by_round_gives_the_same_estimate(experiment):
    features, history = experiment
    arms = ArmSet(features)
    moments = Moments.zeros(arms)
    for probabilities, rounds in history:
        for arm, reward in rounds:
            moments = moments + Moments.of_round(arms, probabilities, arm, reward)
    online, tallied = OrthogonalRegression(ridge=0.5).solve(arms, moments), fit(features, history)
    assert int(online.rounds) == int(tallied.rounds)
    assert np.allclose(online.gaps, tallied.gaps, atol=1e-10)
    assert np.allclose(online.theta, tallied.theta, atol=1e-10)


@given(experiments(), st.integers(1, 4), st.data())
def test_a_batch_equals_a_loop(experiment, size, data):
    features, history = experiment
    arms = ArmSet(features)
    factors = data.draw(arrays(np.float64, size, elements=st.floats(-3, 3)))
    members = [[(p, [(arm, f * reward) for arm, reward in rounds]) for p, rounds in history] for f in factors]
    loops = [list(pairs(member, len(arms))) for member in members]
    batch = [(_stacked_plan(phase), _stacked_tally(phase)) for phase in zip(*loops, strict=True)]
    together = OrthogonalRegression().fit(arms, batch)
    for i, loop in enumerate(loops):
        alone = OrthogonalRegression().fit(arms, loop)
        assert np.allclose(together.gaps[i], alone.gaps, rtol=1e-12, atol=1e-12)
        assert np.allclose(together.theta[i], alone.theta, rtol=1e-12, atol=1e-12)
        assert int(together.rounds[i]) == int(alone.rounds)


def _stacked_plan(phase):
    return Plan([plan.probabilities for plan, _ in phase], [plan.rounds for plan, _ in phase])


def _stacked_tally(phase):
    return Tally(
        *(np.stack([getattr(tally, name) for _, tally in phase]) for name in ("counts", "sums", "squares"))
    )
