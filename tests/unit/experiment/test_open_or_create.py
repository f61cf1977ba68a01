"""`Experiment.open_or_create`: a program that is run twice goes on, and says if its settings have changed."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import pytest

from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric, Personalised
from orthobandit.errors import ConflictError, ParameterError, StorageError
from orthobandit.policy import SBE, UniformAllocation

ARMS = ArmSet.one_hot(2, labels=["a", "b"])
POLICY = AnytimeElimination(rewards=(0, 1))
RAIL = Guardrail("seconds", margin=0.5)
WATCHED = {"metrics": [Metric("seconds", rewards=(0, 9))], "guardrails": [RAIL]}


@dataclass(frozen=True)
class Own(UniformAllocation):
    """A policy that is not of this package."""

    share: float = 0.5


@pytest.fixture
def path(tmp_path):
    return tmp_path / "signup.db"


def reopened(path, *policy, arms=ARMS, **settings):
    with Experiment.open_or_create(path, arms, *policy, **settings) as experiment:
        return experiment.ask(unit="ann").id, experiment.settings


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        (None, {"rewards": (0, 1), "window": "7d", "expect": 0.01, "holdout": 0.1, "reference": "b"}),
        (None, {"rewards": "unknown", "objective": "spent", "add": True, "window": 60}),
        (POLICY, WATCHED),
        (SBE(), {"rewards": (0, 1)}),
        (Own(0.3), {"rewards": (0, 1)}),
        (Personalised(["age"], {"b for the old": "b if age >= 40 else a"}, rewards=(0, 1)), {}),
    ],
    ids=["default", "sums", "guardrails", "paper", "own policy", "personalised"],
)
def test_the_same_settings_again_open_the_experiment(path, policy, settings):
    one, two = (Experiment.open_or_create(path, ARMS, policy, **settings) for _ in range(2))
    assert two.settings.to_json() == one.settings.to_json()
    assert two.settings.key == one.settings.key  # random, and stored
    one.close()
    two.close()


@pytest.mark.parametrize(
    ("begun", "now", "words"),
    [
        (
            {"rewards": (0, 1)},
            {"rewards": (0, 2)},
            r"settings: rewards is \[0.0, 1.0\] there and \[0.0, 2.0\] here\. ",
        ),
        ({"rewards": (0, 1)}, {"rewards": "unknown"}, "rewards is .* there and 'unknown' here"),
        (
            {"rewards": (0, 1), "expect": 0.1},
            {"rewards": (0, 1), "expect": 0.2},
            "policy.expect is 0.1 there and 0.2 here",
        ),
        (
            {"rewards": (0, 1), "window": 60},
            {"rewards": (0, 1), "silence": "missing", "window": 60},
            "silence is 'zero' there and 'missing' here",
        ),
        ({"rewards": (0, 1)}, {"rewards": (0, 1), "window": 60}, "window is None there and 60.0 here"),
        ({"rewards": (0, 1)}, {"rewards": (0, 1), "sticky": False}, "sticky is True there and False here"),
        ({"rewards": (0, 1)}, {"rewards": (0, 1), "reference": "b"}, "reference is 'a' there and 'b' here"),
        ({"rewards": (0, 1)}, {"rewards": (0, 1), "holdout": 0.2}, "holdout is 0.0 there and 0.2 here"),
        (
            {"rewards": (0, 1)},
            {"rewards": (0, 1), "objective": "sale", "window": 60, "add": True},
            "objective is 'reward' there and 'sale' here; add is False there and True here; window",
        ),
        (
            {"rewards": (0, 1)},
            {"rewards": (0, 1), **WATCHED},
            r"metrics is \[\] there and \[Metric\(name='seconds', .* is \[\] there and \[Guardrail\(",
        ),
        ({"rewards": (0, 1)}, {"rewards": (0, 1), "key": "1" * 64}, r"settings: key is another one\. "),
    ],
)
def test_a_setting_that_differs_is_named(path, begun, now, words):
    reopened(path, **begun)
    with pytest.raises(ConflictError, match=words) as caught:
        reopened(path, **now)
    assert "give the same ones again, call `open`, which needs none, or begin another" in str(caught.value)
    assert str(caught.value).startswith("'signup' was begun with other settings: ")
    assert reopened(path, **begun)[0] == 1


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (AnytimeElimination(rewards=(0, 1), delta=0.1), r"policy.delta is 0.05 there and 0.1 here\. "),
        (SBE(), "policy is 'AnytimeElimination' there and 'SBE' here"),
        (Own(), "policy is 'AnytimeElimination' there and 'Own' here"),
    ],
)
def test_a_policy_that_differs_is_named(path, policy, words):
    reopened(path, rewards=(0, 1))
    with pytest.raises(ConflictError, match=words):
        reopened(path, policy, rewards=None if isinstance(policy, AnytimeElimination) else (0, 1))


def test_a_setting_of_a_policy_of_ones_own_is_named(path):
    reopened(path, Own(0.3), rewards=(0, 1))
    with pytest.raises(ConflictError, match=r"policy\.share is 0\.3 there and 0.4 here"):
        reopened(path, Own(0.4), rewards=(0, 1))


def test_arms_may_be_those_of_the_beginning_or_those_of_today(path):
    reopened(path, rewards=(0, 1))
    three = ArmSet.one_hot(3, labels=["a", "b", "c"])
    words = r"arms are 'a', 'b' there and 'a', 'b', 'c' here \(`extend` adds arms\)"
    with pytest.raises(ConflictError, match=words):
        reopened(path, arms=three, rewards=(0, 1))
    with Experiment.open(path) as experiment:
        experiment.extend(three)
    for arms in (ARMS, three):
        assert reopened(path, arms=arms, rewards=(0, 1))[0] == 1
    with pytest.raises(ConflictError, match="arms have other features"):
        reopened(path, arms=ArmSet([[0.0], [1.0], [2.0]], labels=["a", "b", "c"]), rewards=(0, 1))


def test_settings_that_cannot_be_used_are_refused_before_a_file_is_made(path):
    with pytest.raises(ParameterError, match="rewards"):
        Experiment.open_or_create(path, ARMS)
    assert not path.exists()
    reopened(path, rewards=(0, 1))
    with pytest.raises(ParameterError, match="holdout=2"):
        reopened(path, rewards=(0, 1), holdout=2)


def test_several_experiments_share_a_file_by_their_names(path):
    reopened(path, rewards=(0, 1))
    assert reopened(path, rewards=(0, 2), name="other")[0] == 1
    with pytest.raises(ConflictError, match="'other' was begun with other settings: rewards"):
        reopened(path, rewards=(0, 1), name="other")


def test_a_file_that_cannot_be_made_is_named(tmp_path):
    with pytest.raises(StorageError):
        reopened(tmp_path / "no" / "folder" / "signup.db", rewards=(0, 1))


def visit(path, unit):
    with Experiment.open_or_create(path, ARMS, rewards=(0, 1)) as experiment:
        experiment.ask(unit=unit)
        return experiment.settings.key


@pytest.mark.slow
def test_processes_that_start_at_the_same_time_share_one_experiment(path):
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as workers:
        keys = set(workers.map(visit, [path] * 8, map(str, range(8))))
    assert len(keys) == 1
    with Experiment.open(path) as experiment:
        assert experiment.report().proposals == 8
