"""What somebody who is new may get wrong, and what the report says before and beside the evidence."""

import sys

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet, Experiment, Metric
from orthobandit.errors import MissingExtraError, ParameterError
from orthobandit.policy import SBE


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"arms": ["a", "b"]}, "must be an ArmSet"),
        ({"holdout": "half"}, "holdout=half must be a share"),
        ({"metrics": "revenue"}, "must be a list, also of one"),
        ({"guardrails": ["revenue"]}, "must be a Guardrail"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_of_another_kind_are_named(settings, message):
    with pytest.raises(ParameterError, match=message):
        Experiment.memory(**{"arms": ArmSet.one_hot(2), "rewards": "unknown", **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {"policy": AnytimeElimination(rewards=(1, 5)), "window": 10},
        {"metrics": [Metric("age", rewards=(18, 99))]},
    ],
    ids=["objective", "metric"],
)
def test_silence_is_not_zero_where_nothing_is(make, settings):
    with pytest.raises(ParameterError, match=r"choose silence='missing'"):
        make(**settings)
    assert make(**settings, silence="missing").ask().id == 1


def test_without_a_window_the_objective_is_never_silent(make):
    experiment = make(AnytimeElimination(rewards=(1, 5)))
    experiment.tell(experiment.ask().id, 3.0)
    assert experiment.report().settled == 1


def test_a_file_without_sqlalchemy_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[live\]'"):
        Experiment.create(tmp_path / "a.db", ArmSet.one_hot(2), rewards=(0, 1))


def test_a_database_without_its_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match="pip install psycopg"):
        Experiment.create("postgresql+psycopg://localhost/signup", ArmSet.one_hot(2), rewards=(0, 1))


def test_an_unknown_database_is_named_without_its_password():
    with pytest.raises(ParameterError, match=r"no database 'posgres' is known") as found:
        Experiment.create("posgres://me:secret@localhost/signup", ArmSet.one_hot(2), rewards=(0, 1))
    assert "secret" not in str(found.value)


def test_before_anything_is_settled_nothing_looks_best(make):
    experiment = make(window=10)
    experiment.ask_many(5)
    words = "Too early: 0 of 5 visitors settled; each does with its reward, or 10 seconds after its draw."
    assert experiment.report().advice == words


def test_the_text_says_what_the_policy_could_not_use(make):
    experiment = make(SBE(), arms=2)
    proposals = experiment.ask_many(20_000)
    experiment.tell_many([one.id for one in proposals], np.ones(20_000))
    report = experiment.report()
    assert report.unused > 0
    assert f"{report.unused:,} of 20,000 settled proposals came after their phase" in str(report)
