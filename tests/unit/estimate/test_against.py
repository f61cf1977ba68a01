"""Many arms against one: the same numbers as all pairs have."""

import numpy as np
import pytest

from inside.estimate import RivalGeometry, doubts, is_doubtful
from orthobandit import ArmSet, Plan, Tally
from orthobandit.estimate import Moments, PairGeometry
from orthobandit.estimate.orthogonal import few_centred_sums

RNG = np.random.default_rng(3)
ARMS = {
    "random": ArmSet(RNG.standard_normal((40, 4)) + 7.0),
    "one hot": ArmSet.one_hot(6),
    "flat": ArmSet(RNG.standard_normal((30, 2)) @ RNG.standard_normal((2, 5)) + 3.0),
    "repeated": ArmSet([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.3]]),
}


def plan_of(arms, played=None):
    p = np.zeros(len(arms))
    chosen = RNG.choice(len(arms), played or max(arms.dimension + 2, 3), replace=False)
    p[chosen] = RNG.dirichlet(np.ones(len(chosen)))
    return p


@pytest.mark.parametrize("rival", [0, 3])
@pytest.mark.parametrize("arms", ARMS.values(), ids=ARMS)
def test_one_arm_against_others_is_a_column_of_all_pairs(arms, rival):
    p = plan_of(arms, len(arms))
    pairs, one = PairGeometry.of(arms.positions, p), RivalGeometry.of(arms, p)
    drawn = RNG.choice(len(arms), 200, p=p)
    tally = Tally.of(drawn, RNG.standard_normal(200), len(arms))
    kept = np.delete(np.arange(len(arms)), rival)
    s = one.support
    forms, pushes, found = one.measured(kept, rival, [tally.squares[s], p[s]], tally.sums[s])
    known = np.isfinite(pairs.variance[kept, rival])
    np.testing.assert_allclose(forms[0], pairs.variance[kept, rival], rtol=1e-9)
    sums, squares = pairs.sums(tally.counts.astype(float), tally.sums, tally.squares, np.zeros(len(arms)))
    np.testing.assert_allclose(pushes[known], sums[kept, rival][known], rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(forms[1][known], squares[kept, rival][known], rtol=1e-8)
    np.testing.assert_allclose(forms[2][known], forms[0][known], rtol=1e-8)  # Σ p·g² is v
    np.testing.assert_allclose(one.variances(kept, rival), forms[0])
    reach = found[known]
    exact = pairs.reach(p)[kept, rival][known]
    assert np.all(reach >= exact)
    np.testing.assert_allclose(reach, exact, rtol=1e-3)


def test_what_the_plan_cannot_estimate_is_infinite():
    arms = ArmSet.one_hot(5)
    p = np.array([0.5, 0.3, 0.2, 0.0, 0.0])
    one = RivalGeometry.of(arms, p)
    v = one.variances(np.arange(5), 0)
    assert np.isinf(v).tolist() == [True, False, False, True, True]
    np.testing.assert_allclose(v[1:3], [1 / 0.5 + 1 / 0.3, 1 / 0.5 + 1 / 0.2])


def test_many_arms_are_looked_at_block_by_block():
    arms = ArmSet(RNG.standard_normal((10_000, 3)))
    p = plan_of(arms, 30)
    one = RivalGeometry.of(arms, p)
    some = np.array([5000, 9999, 17])
    np.testing.assert_allclose(one.variances(np.arange(10_000), 4)[some], one.variances(some, 4))


def test_doubt_is_about_the_draws_behind_a_variance():
    # One-hot arms drawn alike: a pair rests on two arms, and waits for ten draws of each, as few arms do.
    arms, count = ArmSet.one_hot(50), 50
    one = RivalGeometry.of(arms, np.full(count, 1 / count))
    for draws, waits in ((9.0, True), (10.0, False)):
        squares = one.doubts(np.full(count, draws))
        forms, _, _ = one.measured(np.array([1]), 0, [squares], np.zeros(count))
        assert bool(is_doubtful(forms[0], forms[1])[0]) is waits
    # A line of a hundred arms: no arm carries much, so that a few draws each are many together.
    arms = ArmSet(np.linspace(-1.0, 1.0, 100)[:, np.newaxis])
    one = RivalGeometry.of(arms, np.full(100, 0.01))
    forms, _, _ = one.measured(np.array([99]), 0, [one.doubts(np.full(100, 0.5))], np.zeros(100))
    assert not is_doubtful(forms[0], forms[1])[0]


def test_arms_without_draws_raise_no_doubt_by_rounding():
    # Gaps of the first two arms do not rest on the third; what is left of its weight is rounding.
    q = doubts(np.full(3, 1 / 3), np.full(3, 2.0), np.array([50.0, 50.0, 0.0]))
    g = np.array([3.0, -3.0, 1e-16])
    assert not is_doubtful(np.array([6.0]), np.array([g**2 @ q]))[0]
    assert is_doubtful(np.array([6.0]), np.array([np.array([0.0, -3.0, 3.0]) ** 2 @ q]))[0]


def test_doubt_is_no_less_than_the_error_of_the_variance():
    arms = ArmSet(RNG.standard_normal((60, 5)))
    p = plan_of(arms, 20)
    pairs, one = PairGeometry.of(arms.positions, p), RivalGeometry.of(arms, p)
    draws = RNG.uniform(0.1, 20.0, len(one.support))
    forms, _, _ = one.measured(np.arange(1, 60), 0, [one.doubts(draws)], np.zeros(len(draws)))
    g = pairs.inner[1:, one.support] - pairs.inner[0, one.support]
    shares = p[one.support] * g**2 / forms[0][:, np.newaxis]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.all((shares**2 / draws).sum(axis=1) <= forms[1] / forms[0] * (1 + 1e-9))


def test_sums_from_few_arms_are_those_from_all():
    arms = ARMS["flat"]
    p = plan_of(arms, 6)
    drawn = RNG.choice(len(arms), 50, p=p)
    tally = Tally.of(drawn, RNG.standard_normal(50), len(arms))
    whole = Moments.of(arms, Plan(p, 50), tally)
    gram, moment = few_centred_sums(arms, p, tally.counts, tally.sums)
    np.testing.assert_allclose(gram, whole.gram, atol=1e-12)
    np.testing.assert_allclose(moment, whole.moment, atol=1e-12)
