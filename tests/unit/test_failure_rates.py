import numpy as np
import pytest
from tests.failure_rates import Promise, assert_kept


def coins(rate, seed):
    rng = np.random.default_rng(seed)
    return lambda first, runs: int(np.count_nonzero(rng.random(runs) < rate))


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.5])
def test_a_promise_that_is_kept_or_broken_is_told_apart(rate):
    assert Promise(rate).is_kept(coins(rate / 2.0, 1), 20_000)[0]
    assert not Promise(rate).is_kept(coins(2.5 * rate / (1.0 + 1.5 * rate), 2), 20_000)[0]


def test_runs_that_never_fail_soon_suffice():
    asked = []
    assert_kept(0.1, lambda first, runs: asked.append(first + runs) or 0, 1000)
    assert asked == [50, 100]


def test_runs_that_always_fail_are_soon_refused():
    with pytest.raises(AssertionError, match=r"50 of 50 runs failed, 0\.1 promised"):
        assert_kept(0.1, lambda first, runs: runs, 1000)


def test_what_stays_open_is_judged_by_the_exact_test():
    # No failure in 60 runs says little of a rate of 10⁻⁴; 30 failures say that it is not kept.
    assert Promise(1e-4).is_kept(lambda first, runs: 0, 60)[0]
    kept, said = Promise(0.3).is_kept(lambda first, runs: 28, 50)
    assert kept
    assert said == "28 of 50 failed"


def test_false_alarms_are_as_rare_as_stated():
    # With a false-alarm rate of a tenth, 400 promises that are just kept; 78 alarms have chance 10⁻⁸.
    rng = np.random.default_rng(3)
    alarms = sum(
        not Promise(0.1, 0.1, 1e-6).is_kept(lambda _, runs: rng.binomial(runs, 0.1), 2000)[0]
        for _ in range(400)
    )
    assert 0 < alarms < 78
