"""Requests of one commit are done as one, and each gets what it would have got alone."""

import asyncio

import numpy as np
import pytest

from experiment_samples import entries_of, ledger_of
from inside.experiment import Asked, Told
from orthobandit import ArmSet, Experiment, Metric
from orthobandit.errors import ConflictError, ParameterError, RewardError, UnknownProposalError
from orthobandit.experiment import AsyncExperiment
from orthobandit.experiment.commit.requests import MAX_SHARED_ROWS

ARMS = ArmSet.one_hot(3)


@pytest.fixture
def live(tmp_path):
    with Experiment.create(tmp_path / "live.db", ARMS, rewards=(0, 1), key="7" * 64) as experiment:
        yield experiment


def together(*calls):
    """Return what coroutines return, or the errors they raise, that wait for the same commit."""

    async def gathered():
        return await asyncio.gather(*(call() for call in calls), return_exceptions=True)

    return asyncio.run(gathered())


def asking(experiment, **arguments):
    one = AsyncExperiment(experiment)
    return lambda: one.ask_many(**arguments) if "count" in arguments else one.ask(**arguments)


def telling(experiment, number, reward):
    return lambda: AsyncExperiment(experiment).tell(number, reward)


def entries(experiment, kind):
    return [entry for _, entry in entries_of(experiment) if isinstance(entry, kind)]


def test_those_who_ask_share_an_entry(live):
    # The first leads, and may have begun before the others came.
    found = together(*(asking(live, unit=f"user-{k}") for k in range(20)))
    assert [one.id for one in found] == list(range(1, 21))
    assert len(entries(live, Asked)) <= 2
    again = together(*(asking(live, unit=f"user-{k}") for k in range(20)))
    assert [one.id for one in again] == list(range(1, 21))
    assert live.audit().passed
    assert live.replay().is_equal


def test_a_unit_that_asks_twice_at_once_has_one_proposal(live):
    found = together(*[asking(live, unit="ann"), asking(live), asking(live, unit="bob")] * 4)
    assert len({one.id for one in found[0::3]}) == 1
    assert len({one.id for one in found[1::3]}) == 4
    assert len({one.id for one in found[2::3]}) == 1
    assert live.report().proposals == 6


def test_draws_are_those_of_one_by_one(live, tmp_path):
    with Experiment.create(tmp_path / "alone.db", ARMS, rewards=(0, 1), key="7" * 64) as alone:
        found = together(*(asking(live, unit=f"user-{k}") for k in range(50)))
        assert [one.arm for one in found] == [alone.ask(unit=f"user-{k}").arm for k in range(50)]
        together(*(telling(live, k, float(k % 2)) for k in range(1, 51)))
        for k in range(1, 51):
            alone.tell(k, float(k % 2))
        assert live.report().arms == alone.report().arms
        together(*(asking(live, count=3) for _ in range(4)))
        after = [alone.ask_many(3) for _ in range(4)][-1]
        waiting = [ledger_of(experiment).waiting.to_json() for experiment in (live, alone)]
        assert waiting[0]["forecasts"] == waiting[1]["forecasts"]
        assert after[-1].id == 62


def test_those_who_tell_share_an_entry_and_one_that_is_wrong_is_told_so(live):
    live.ask_many(9)
    good = [telling(live, number, 1.0) for number in range(1, 7)]
    wrong = [telling(live, 7, 5.0), telling(live, 99, 1.0), telling(live, 8, float("nan"))]
    found = together(*good, *wrong, telling(live, 9, {"reward": 0.0}))
    assert found[:6] == [None] * 6
    assert [type(one) for one in found[6:9]] == [RewardError, UnknownProposalError, RewardError]
    assert found[9] is None
    assert live.report().settled == 6  # the seventh holds up the ninth
    assert live.replay().is_equal
    together(telling(live, 7, 0.0), telling(live, 8, 0.0))
    assert live.report().settled == 9


def test_the_same_reward_twice_at_once_counts_once(live):
    live.ask_many(4)
    found = together(*(telling(live, number, 1.0) for number in (1, 1, 2, 2, 3)), telling(live, 3, 0.0))
    assert found[:5] == [None] * 5
    assert isinstance(found[5], ConflictError)
    assert [int(told.proposals.size) for told in entries(live, Told)] in ([1, 1, 1], [3])
    assert live.report().settled == 3


def test_rewards_that_add_up_are_added_each(tmp_path):
    sums = {"rewards": (0, 100), "window": "1d", "add": True, "key": "8" * 64}
    with Experiment.create(tmp_path / "sums.db", ARMS, **sums) as live:
        live.ask_many(2)
        together(*(telling(live, 1, 2.0) for _ in range(5)), telling(live, 2, 1.0))
        assert ledger_of(live).waiting.provisional(0)[1].tolist() == [10.0, 1.0]
        assert live.replay().is_equal


@pytest.mark.filterwarnings("ignore:covariates 'hour' change nothing")  # they are kept all the same
def test_metrics_and_covariates_go_together_with_their_like(tmp_path):
    metrics = (Metric("seconds"),)
    with Experiment.create(tmp_path / "two.db", ARMS, rewards=(0, 1), metrics=metrics, window="1d") as live:
        hour = {"hour": 3.0}
        found = together(
            *(asking(live, unit=f"plain-{k}") for k in range(5)),
            *(asking(live, unit=f"late-{k}", covariates=hour) for k in range(5)),
            asking(live, unit="wrong", covariates={"hour": "late"}),
        )
        assert isinstance(found[-1], ParameterError)
        assert sorted(one.id for one in found[:-1]) == list(range(1, 11))
        both = [telling(live, one.id, {"reward": 1.0, "seconds": 2.5}) for one in found[:5]]
        together(*both, *(telling(live, one.id, 0.0) for one in found[5:-1]))
        values = ledger_of(live).waiting._values
        assert np.count_nonzero(~np.isnan(values[0, :10])) == 10
        assert live.replay().is_equal


def test_restricted_and_long_requests_stand_alone(live):
    found = together(
        asking(live, available=[0]),
        asking(live, count=MAX_SHARED_ROWS + 1),
        asking(live),
        asking(live, available=[1]),
        lambda: AsyncExperiment(live).tell_many([1], [1.0]),
    )
    assert found[0].arm == 0
    assert found[3].arm == 1
    assert len(found[1]) == MAX_SHARED_ROWS + 1
    assert live.audit().passed
    assert live.replay().is_equal
