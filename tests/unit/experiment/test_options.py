"""Settings have one home: signatures, help, requests and forms follow from `Options`."""

import ast
import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

import orthobandit
from inside.experiment import Options
from orthobandit import AnytimeElimination, ArmSet, Asymptotic, Experiment, Personalised, SubGaussian
from orthobandit.errors import ParameterError
from orthobandit.experiment import AsyncExperiment, Guardrail
from orthobandit.experiment.report.report import (
    ArmData,
    ArmReport,
    MetricData,
    MetricReport,
    Report,
    ReportData,
)
from orthobandit.policy import SBE, UniformAllocation

ARMS = ArmSet.one_hot(2)
BOTH = r"rewards=\(low, high\).*rewards='unknown'"
SOURCE = Path(orthobandit.__file__).parent


@pytest.mark.parametrize("kind", [Experiment, AsyncExperiment])
@pytest.mark.parametrize("method", ["create", "open_or_create", "memory"])
def test_signatures_take_names_types_and_defaults_from_the_options(kind, method):
    parameters = inspect.signature(getattr(kind, method)).parameters
    for option in fields(Options):
        found = parameters[option.name]
        assert found.kind is found.KEYWORD_ONLY
        assert found.default is option.default
        assert found.annotation == option.type
    others = set(parameters) - {option.name for option in fields(Options)}
    assert others <= {"where", "arms", "policy", "name", "clock"}


@pytest.mark.parametrize("option", fields(Options), ids=lambda option: option.name)
def test_the_help_of_every_option_is_in_the_docstring(option):
    words = " ".join(inspect.getdoc(Experiment.create).split()).lower()
    assert Options.help_of(option.name).lower() in words


def test_requests_take_names_defaults_and_help_from_the_options():
    pytest.importorskip("pydantic")
    from inside.service import CreateBody, GuardrailBody

    body = CreateBody.model_fields
    # The key of draws is a secret, which no request may choose; the request's own key is the name.
    shared = [option for option in fields(Options) if option.name != "key"]
    assert {option.name for option in shared} | {
        "key",
        "arms",
        "delta",
        "epsilon",
        "goal",
        "covariates",
        "context",
        "rules",
        "explore",
        "features",
    } == set(body)
    for option in shared:
        field = body[option.name]
        if option.name == "rewards":
            assert field.is_required()
        elif option.name in ("metrics", "guardrails"):
            assert field.default == list(option.default)
        elif option.name != "reference":  # by its label; none stands for the first arm
            assert field.default == option.default
        if option.name != "reference":
            assert field.description.lower() == Options.help_of(option.name).lower()
    for name in ("delta", "epsilon", "goal"):
        assert body[name].default == getattr(AnytimeElimination, name)
    assert body["explore"].default == Personalised.explore
    assert GuardrailBody.model_fields["worse"].default == Guardrail.worse


def test_forms_take_defaults_and_labels_from_the_options():
    pytest.importorskip("fastapi")
    from inside.service import FIELDS

    assert FIELDS["silence"] == (Options.silence, Options.label_of("silence"))
    assert FIELDS["window"][1] == Options.label_of("window") != ""
    assert float(FIELDS["delta"][0]) == AnytimeElimination.delta


@pytest.mark.parametrize(
    "policy",
    [None, AnytimeElimination(), AnytimeElimination(confidence=Asymptotic()), UniformAllocation(), SBE()],
    ids=["none", "default", "asymptotic", "no claims", "paper"],
)
def test_nobody_gets_asymptotic_claims_by_saying_nothing(policy):
    with pytest.raises(ParameterError, match=BOTH):
        Experiment.memory(ARMS, policy)
    made = Experiment.memory(ARMS, policy, rewards="unknown")
    assert made.settings.metrics[0].rewards is None


def test_a_policy_with_exact_confidence_has_said_what_rewards_are():
    bounded = Experiment.memory(ARMS, AnytimeElimination(rewards=(0, 5)))
    assert bounded.settings.metrics[0].rewards == (0.0, 5.0)
    policy = AnytimeElimination(confidence=SubGaussian(0, 1))
    for rewards in (None, "unknown"):
        assert Experiment.memory(ARMS, policy, rewards=rewards).settings.policy is policy


def test_a_range_makes_the_default_policy_exact():
    made = Experiment.memory(ARMS, rewards=[0, 1])
    assert made.settings.policy == AnytimeElimination(rewards=(0.0, 1.0))
    assert Experiment.memory(ARMS, UniformAllocation(), rewards=(0, 2)).settings.metrics[0].rewards == (0, 2)


@pytest.mark.parametrize("rewards", ["Unknown", "0,1", 1, (0,), (0, 1, 2), ("low", "high"), True])
def test_what_is_neither_a_pair_nor_unknown_is_refused_with_both_options(rewards):
    with pytest.raises(ParameterError, match=BOTH):
        Experiment.memory(ARMS, rewards=rewards)


@pytest.mark.parametrize(
    ("policy", "rewards", "words"),
    [
        (AnytimeElimination(rewards=(0, 1)), "unknown", "contradicts the policy, which has Bounded"),
        (AnytimeElimination(rewards=(0, 1)), (0, 2), "must be given to the policy"),
        (AnytimeElimination(), (0, 1), "must be given to the policy"),
    ],
)
def test_the_policy_is_not_contradicted(policy, rewards, words):
    with pytest.raises(ParameterError, match=words):
        Experiment.memory(ARMS, policy, rewards=rewards)


def test_a_plain_report_says_all_that_a_report_knows():
    """The conclusion is said by its parts, and notes stand among the warnings."""
    said = [*ReportData.__annotations__]
    known = {field.name for field in fields(Report)}
    parts = {"declared", "held", "alarms", "warnings"}
    assert {*said} - known == parts
    assert known - {*said} == {"conclusion", "notes"}
    assert all(isinstance(getattr(Report, name), property) for name in parts)
    assert said == [*Experiment.memory(ARMS, rewards=(0, 1), window="7d").report().to_json()]


@pytest.mark.parametrize(("data", "kind"), [(ArmData, ArmReport), (MetricData, MetricReport)])
def test_the_types_of_plain_reports_have_their_fields(data, kind):
    assert list(data.__annotations__) == [field.name for field in fields(kind)]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("experiment/experiment.py", "Experiment"),
        ("experiment/async_experiment.py", "AsyncExperiment"),
        ("experiment/proposal.py", "Proposal"),
        ("experiment/report/report.py", "Report"),
        ("service/client/client.py", "Client"),
        ("service/client/client.py", "AsyncClient"),
    ],
)
def test_no_public_signature_says_any(file, name):
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    [found] = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    said = []
    for node in found.body:
        if isinstance(node, ast.AnnAssign):
            said.append(node.annotation)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_public(node.name):
            given = (*node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
            said += [one.annotation for one in given if one is not None and one.annotation is not None]
            said.append(node.returns)
    assert said
    assert not [ast.unparse(one) for one in said if re.search(r"\bAny\b", ast.unparse(one))]


def _is_public(name):
    return not name.startswith("_") or name.startswith("__")


def test_what_is_kept_is_what_0_2_kept_and_opens_without_a_question(tmp_path):
    with Experiment.create(tmp_path / "log.db", ARMS, rewards="unknown") as made:
        kept = made.settings.to_json()
    assert set(kept) == {
        *("arms", "policy", "key", "window", "silence", "sticky", "reference", "holdout", "metrics"),
        "guardrails",
    }
    assert kept["metrics"][0]["settings"]["rewards"] is None
    with Experiment.open(tmp_path / "log.db") as again:
        assert again.settings.to_json() == kept


def test_a_gap_that_is_expected_reaches_the_policy_and_its_certificate():
    experiment = Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1), expect=0.05)
    assert experiment.settings.policy == AnytimeElimination(rewards=(0, 1), expect=0.05)
    assert experiment.certificate().document["settings"]["expect"] == 0.05


def test_a_policy_that_is_given_has_its_own_hint():
    with pytest.raises(ParameterError, match=r"expect=0.05 must be given to the policy: AnytimeElimination"):
        Experiment.memory(ArmSet.one_hot(2), AnytimeElimination(rewards=(0, 1)), expect=0.05)
