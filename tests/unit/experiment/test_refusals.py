"""A request that is refused leaves no trace: the log can be replayed, and the next request goes as ever."""

import warnings
from datetime import timedelta

import numpy as np
import pytest

from orthobandit import AnytimeElimination, ArmSet, Experiment, Metric
from orthobandit.errors import (
    ClosedError,
    ExperimentError,
    InputError,
    InputWarning,
    LabelError,
    ParameterError,
    RewardError,
)
from orthobandit.estimate import CovariateRegression, RunningMean

HOUR = CovariateRegression(names=("hour",))
REFUSED = {
    "a pause of what is paused": lambda one: [one.pause(), one.pause()],
    "arms that are others": lambda one: one.extend(ArmSet.one_hot(4, labels=list("wxyz"))),
    "fewer arms": lambda one: one.extend(ArmSet.one_hot(2)),
    "the last arm": lambda one: [one.retire(arm) for arm in range(3)],
    "a unit with a null character": lambda one: one.ask(unit="a\0b", covariates={"hour": 1.0}),
    "a covariate that is not finite": lambda one: one.ask(covariates={"hour": float("nan")}),
    "a covariate that is text": lambda one: one.ask(covariates={"hour": "noon"}),
    "a covariate that is missing": lambda one: one.ask(),
    "a covariate that one of many lacks": lambda one: one.ask_many(2, covariates=[{"hour": 1.0}, {}]),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_leaves_no_trace(call, clock, tmp_path):
    arms, policy = ArmSet.one_hot(3), AnytimeElimination(rewards=(0, 1))
    other = Metric("other", baseline=HOUR)
    one = Experiment.create(tmp_path / "a.db", arms, policy, metrics=[other], clock=clock)
    for _ in range(30):
        one.tell(one.ask(covariates={"hour": 1.0}).id, {"reward": 1.0, "other": 2.0})
    with pytest.raises((InputError, ExperimentError)):
        call(one)
    one.resume()
    assert one.replay().is_equal
    one.close()
    with Experiment.open(tmp_path / "a.db", clock=clock) as again:
        assert again.replay().is_equal
        proposal = again.ask(covariates={"hour": 1.0})
        assert proposal.id == 31
        assert len(again.arms) == 3


def test_what_was_stopped_cannot_be_resumed(make):
    experiment = make()
    experiment.stop()
    with pytest.raises(ClosedError, match="begin another to go on"):
        experiment.resume()
    assert experiment.report().status == "stopped"


def test_retiring_an_arm_again_changes_nothing(make):
    experiment = make()
    experiment.retire(1)
    once = experiment.report()
    experiment.retire(1)
    assert experiment.report() == once
    assert experiment.replay().is_equal


@pytest.mark.parametrize("reward", [1e101, -1e300])
def test_a_reward_whose_square_may_overflow_is_refused(make, reward):
    experiment = make(AnytimeElimination())
    first, second = experiment.ask_many(2)
    with pytest.raises(RewardError, match=r"must be a finite number in the range \[-1e\+100, 1e\+100\]"):
        experiment.tell(first.id, reward)
    experiment.tell_many([first.id, second.id], [1e100, -1e100])
    assert experiment.report().settled == 2


@pytest.mark.parametrize("window", [0, 0.0, "0d", -1])
def test_a_window_that_leaves_no_time_is_refused(make, window):
    with pytest.raises(ParameterError, match="must be seconds, more than 0"):
        make(window=window)


def test_a_unit_as_long_as_a_document_is_refused(make):
    experiment = make()
    with pytest.raises(ParameterError, match=r"unit='xxxxxxxxxxxxxxxxxxxx'… has 1,000,000 characters"):
        experiment.ask(unit="x" * 1_000_000)
    with pytest.raises(ParameterError, match="use a short name, or a hash of it"):
        experiment.ask_many(units=["short", "x" * 1025])
    assert experiment.ask(unit="x" * 1024).id == 1


def test_what_silence_means_is_not_said_without_a_window(make):
    with pytest.raises(ParameterError, match="silence='missing' has no effect without `window`"):
        make(silence="missing")
    make(silence="missing", window="1d")
    make(silence="missing", metrics=[Metric("other")])  # which may be missing when the reward is told


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("none.db", "none.db does not exist; make it with Experiment.create, or check the path"),
        ("mysql://somewhere/else", "kept in a file or in PostgreSQL, not in mysql"),
    ],
)
def test_what_cannot_be_opened_is_said_with_its_remedy(tmp_path, monkeypatch, where, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((ExperimentError, ParameterError), match=message):
        Experiment.open(where)
    assert not (tmp_path / "none.db").exists()


def test_a_clock_of_whole_numbers_can_be_replayed():
    seconds = iter(range(100, 1000))
    experiment = Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1), clock=lambda: next(seconds))
    for _ in range(5):
        experiment.tell(experiment.ask().id, 1.0)
    assert experiment.replay().is_equal


WRONG = {
    "a policy's class": (
        lambda arms: Experiment.memory(arms, AnytimeElimination, rewards=(0, 1)),
        r"policy=AnytimeElimination is a class; pass an object of it: AnytimeElimination\(\)",
    ),
    "a policy's name": (
        lambda arms: Experiment.memory(arms, "anytime", rewards=(0, 1)),
        r"policy='anytime' has no method start\(\); it is not a Policy",
    ),
    "a window that is neither number nor text": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1), window=timedelta(days=7)),
        "must be seconds, more than 0, or text such as '7d'",
    ),
    "a reference that is no arm": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1), reference="old"),
        "reference='old' is not an arm; the arms are 0, 1, 2",
    ),
    "one label where a list is meant": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1)).ask(available="12"),
        r"available='12' must be a list of arms: \['12'\]",
    ),
    "more proposals than one call can draw": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1)).ask_many(10**9),
        "count=1,000,000,000 is more than one call can draw; ask for at most 1,000,000 at a time",
    ),
    "a list as the reward of one proposal": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1)).tell(1, [1.0]),
        "must be one number for each proposal, not a list",
    ),
    "yes or no as text": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1), sticky="no"),
        "sticky='no' must be True or False",
    ),
    "one metric that is not in a list": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1), metrics=Metric("time")),
        r"metrics=Metric\(.*\) must be a list, also of one",
    ),
    "a gap that no arms can have": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1), expect=5.0),
        r"expect=5.0 is more than arms can differ by if rewards lie in \[0, 1\]",
    ),
    "a tolerance that no arms can exceed": (
        lambda arms: Experiment.memory(arms, AnytimeElimination(epsilon=2, rewards=(0, 1))),
        r"epsilon=2 is no less than arms can differ by if rewards lie in \[0, 1\], so that any arm",
    ),
    "rewards the wrong way round": (
        lambda arms: Experiment.memory(arms, rewards=(1, 0)),
        r"rewards=\(1, 0\) must be two finite numbers, the lowest reward first",
    ),
    "a clock that stands still": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1), clock=5),
        "clock=5 must be a function",
    ),
    "covariates without names": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1)).ask(covariates=[42.0]),
        r"covariates=\[42.0\] must be numbers by name",
    ),
    "labels where arms should be": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1)).extend(["new"]),
        r"arms=\['new'\] must be an ArmSet: the present arms in their order, then the new",
    ),
    "rewards without a metric": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1)).tell(1, {}),
        "rewards={} name no metric; the metrics are reward",
    ),
    "a delta that is meant as its complement": (
        lambda arms: Experiment.memory(arms, AnytimeElimination(rewards=(0, 1), delta=0.95)),
        "delta=0.95 lets claims be wrong with probability 0.95; .* give 0.05$",
    ),
    "a metric's delta that is meant as its complement": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1), metrics=[Metric("time", delta=0.9)]),
        "delta=0.9 lets claims be wrong with probability 0.9; .* give 0.1$",
    ),
    "a whole number that no float holds": (
        lambda arms: Experiment.memory(arms, rewards=(0, 1)).tell(1, 10**400),
        r"reward=.{,60} must be a number for each proposal",
    ),
}


@pytest.mark.parametrize(("call", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_a_newcomer_gets_wrong_is_named_with_its_remedy(call, words):
    with pytest.raises(InputError, match=words):
        call(ArmSet.one_hot(3))


def test_covariates_that_no_forecast_takes_are_warned_of():
    arms = ArmSet.one_hot(2)
    pages = Experiment.memory(arms, rewards=(0, 1))
    with pytest.warns(InputWarning, match="covariates 'age' change nothing"):
        pages.ask(covariates={"age": 3.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pages.ask(covariates={"age": 4.0})  # once an experiment is enough
    used = AnytimeElimination(rewards=(0, 1), baseline=HOUR)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Experiment.memory(arms, used).ask(covariates={"hour": 3.0})


@pytest.mark.parametrize(
    "change", [lambda one: one.retire("b"), lambda one: one.extend(ArmSet.one_hot(3, ["a", "b", "c"]))]
)
def test_arms_of_a_stopped_experiment_stay_as_they_are(change):
    one = Experiment.memory(ArmSet.one_hot(2, labels=["a", "b"]), rewards=(0, 1))
    one.stop()
    with pytest.raises(ClosedError, match="begin another to go on"):
        change(one)
    assert one.arms.labels == ("a", "b")
    assert not one.report().retirements


@pytest.mark.parametrize("unit", ["", " ", "\t\n"])
def test_a_blank_unit_is_refused_because_all_such_visitors_would_be_one(unit, make):
    with pytest.raises(ParameterError, match="would be one and the same"):
        make().ask(unit=unit)


@pytest.mark.parametrize("scale", [1e3, 1e9])
def test_a_clock_in_milliseconds_is_refused(scale, make):
    with pytest.raises(ParameterError, match="divide milliseconds by 1e3"):
        Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1), clock=lambda: 1.79e9 * scale)


@pytest.mark.parametrize("window", ["9999999999d", 1e300])
def test_a_window_of_centuries_is_refused(window):
    with pytest.raises(ParameterError, match="a number is of seconds"):
        Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1), window=window)


def test_rewards_beyond_all_that_can_be_told_are_refused_at_the_beginning():
    with pytest.raises(ParameterError, match="no reward can exceed 1e\\+100"):
        Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1e300))


@pytest.mark.parametrize(
    ("label", "message"),
    [("a\ud800", "valid Unicode"), ("a\0", "null characters"), ("x" * 2000, "2,000 characters")],
)
def test_labels_that_no_page_can_hold_are_refused_by_name(label, message):
    with pytest.raises(LabelError, match=message):
        Experiment.memory(ArmSet.one_hot(2, labels=[label, "b"]), rewards=(0, 1))
    with pytest.raises(LabelError, match=r"^metric"):
        Experiment.memory(ArmSet.one_hot(2), rewards=(0, 1), objective=label)
    one = Experiment.memory(ArmSet.one_hot(2, labels=["a", "b"]), rewards=(0, 1))
    with pytest.raises(LabelError, match=message):
        one.extend(ArmSet.one_hot(3, labels=["a", "b", label]))
    assert len(one.arms) == 2


def test_a_number_that_is_also_a_label_of_another_arm_is_refused():
    one = Experiment.memory(ArmSet.one_hot(3, labels=["2", "1", "0"]), rewards=(0, 1))
    with pytest.raises(ParameterError, match="arm=2 may be arm number 2, which is '0', or the label '2'"):
        one.retire(2)
    assert one.ask(available=[1]).label == "1"  # number and label agree
    # Programs say by number what can be shown, in every call: there numbers are numbers.
    assert one.ask(available=[2]).label == "0"
    one.retire("2")
    assert one.report().retirements[0][0] == "2"


def test_numbers_of_arms_without_labels_are_plain():
    one = Experiment.memory(ArmSet.one_hot(3), rewards=(0, 1))
    assert one.ask(available=[2]).arm == 2


ALIKE = ArmSet.one_hot(2, labels=["a", "b"])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rewards": {0, 1}}, "not a pair of numbers"),
        ({"rewards": ("0", "1")}, "not a pair of numbers"),
        (
            {"metrics": [Metric("seconds", add="yes")], "window": "1d"},
            "add='yes' of the metric 'seconds' must",
        ),
        ({"metrics": [Metric(" ")]}, "metric ' ' is blank"),
        ({"objective": " "}, "metric ' ' is blank"),
    ],
)
def test_settings_that_look_right_are_refused(settings, message):
    with pytest.raises((ParameterError, LabelError), match=message):
        Experiment.memory(ALIKE, **({"rewards": (0, 1)} | settings))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rewards": "ab"}, "rewards='ab' of the metric 'x' must be the lowest and the highest"),
        ({"rewards": (0, 1, 2)}, "of the metric 'x' must be the lowest and the highest"),
        ({"baseline": "mean"}, "baseline='mean' must have a method"),
        (
            {"baseline": RunningMean},
            r"baseline=RunningMean is a class; pass an object of it: RunningMean\(\)",
        ),
    ],
)
def test_a_metric_says_what_is_wrong_with_it(settings, message):
    with pytest.raises(ParameterError, match=message):
        Metric("x", **settings)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda one, drawn: one.edge_plan().draw(17), ParameterError, r"turn a number into str\(number\)"),
        (lambda one, drawn: one.known(17), ParameterError, r"turn a number into str\(number\)"),
        (
            lambda one, drawn: one.expose("1", ["u"], [drawn.arm]),
            ParameterError,
            "plan='1' must be the number",
        ),
        (
            lambda one, drawn: one.expose(True, ["u"], [drawn.arm]),
            ParameterError,
            "plan=True must be the number",
        ),
        (
            lambda one, drawn: one.expose(1, "u", [drawn.arm]),
            ParameterError,
            r"units='u' must be a list .*\['u'\]",
        ),
        (
            lambda one, drawn: one.expose(1, ["u"], [1.0]),
            ParameterError,
            r"arms=\[1.0\] must be whole numbers",
        ),
        (
            lambda one, drawn: one.expose(1, ["u"], [drawn.arm], ["1"]),
            RewardError,
            "must be numbers, or None",
        ),
        (lambda one, drawn: one.stop(5), ParameterError, "reason=5 must be text"),
        (lambda one, drawn: one.stop("x" * 1001), ParameterError, "at most 1,000 characters"),
        (
            lambda one, drawn: one.tell_many(np.array([2**63], np.uint64), [1.0]),
            ParameterError,
            "numbers of prop",
        ),
    ],
)
def test_a_call_with_the_wrong_kind_of_thing_is_refused_and_changes_nothing(call, error, message):
    one = Experiment.memory(ALIKE, rewards=(0, 1))
    drawn = one.edge_plan().draw("u")
    with pytest.raises(error, match=message):
        call(one, drawn)
    report = one.report()
    assert (report.proposals, report.status) == (0, "open")


def test_new_arms_that_are_nearly_old_ones_bring_a_warning():
    one = Experiment.memory(ALIKE, rewards=(0, 1))
    with pytest.warns(InputWarning, match="labels 'a' and 'A' differ in case or spaces only"):
        one.extend(ArmSet.one_hot(3, labels=["a", "b", "A"]))
