"""Arguments that newcomers get wrong are refused, or brought to notice, by name."""

import warnings
from datetime import UTC, datetime

import pytest

from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric, Personalised
from orthobandit.errors import InputWarning, ParameterError
from orthobandit.estimate import CovariateRegression
from orthobandit.experiment import AsyncExperiment

PAGES = ArmSet.one_hot(2, labels=["old", "new"])


def in_memory(policy=None, **settings):
    return Experiment.memory(PAGES, policy, rewards=(0, 1), **settings)


@pytest.mark.parametrize("now", ["noon", datetime(2026, 1, 1, tzinfo=UTC), float("nan"), None])
def test_a_clock_that_returns_no_seconds_is_named(now):
    with pytest.raises(ParameterError, match=r"clock\(\) returned .* must return seconds"):
        in_memory(clock=lambda: now).ask()


@pytest.mark.parametrize("given", ["signup.db", Experiment])
def test_an_async_experiment_needs_an_experiment(given):
    with pytest.raises(ParameterError, match=r"experiment=.* AsyncExperiment\.open\(path\)"):
        AsyncExperiment(given)


def test_arms_are_no_second_argument_of_open(tmp_path):
    path = tmp_path / "a.db"
    Experiment.create(path, PAGES, rewards=(0, 1)).close()
    with pytest.raises(ParameterError, match=r"policy=ArmSet.* is not a Policy"):
        Experiment.open(path, PAGES)


@pytest.mark.parametrize("path", [None, 5])
def test_a_path_of_an_export_is_text(path):
    with pytest.raises(ParameterError, match=r"path=.* ends in \.csv or \.parquet"):
        in_memory().export(path)


def test_a_guardrail_that_could_never_act_is_refused():
    refund = [Metric("refund", rewards=(0, 1))]
    with pytest.raises(ParameterError, match=r"guardrail on 'refund' has margin=2, .* never act"):
        in_memory(metrics=refund, guardrails=[Guardrail("refund", margin=2)])
    in_memory(metrics=refund, guardrails=[Guardrail("refund", margin=0.5)])


@pytest.mark.parametrize("labels", [["Red", "red"], ["red", "red "]])
def test_labels_that_look_alike_bring_a_warning(labels):
    with pytest.warns(InputWarning, match="differ in case or spaces only"):
        Experiment.memory(ArmSet.one_hot(2, labels=labels), rewards=(0, 1))


def test_columns_that_nothing_uses_bring_a_warning():
    personal = Experiment.memory(PAGES, Personalised(context=["mobile"], rewards=(0, 1)))
    with pytest.warns(InputWarning, match="'moblie' change nothing: this experiment uses 'mobile'"):
        personal.ask(context={"mobile": 1.0, "moblie": 1.0})
    baseline = CovariateRegression(names=("basket",))
    policy = AnytimeElimination(rewards=(0, 1), baseline=baseline)
    with pytest.warns(InputWarning, match="'z' change nothing: this experiment uses 'basket'"):
        Experiment.memory(PAGES, policy).ask(covariates={"basket": 1.0, "z": 2.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Experiment.memory(PAGES, policy).ask(covariates={"basket": 1.0})
