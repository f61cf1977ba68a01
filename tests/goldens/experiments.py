"""Live experiments of many kinds, played with a seed and a clock of their own."""

import numpy as np

from orthobandit import (
    SBE,
    AnytimeElimination,
    ArmSet,
    Asymptotic,
    Bounded,
    Experiment,
    Guardrail,
    Metric,
    Personalised,
    PureExploration,
    SameShape,
    SubGaussian,
)
from orthobandit.estimate import (
    ARMA,
    AutoRegression,
    CovariateRegression,
    ExponentialMean,
    NoBaseline,
    SeasonalRegression,
)
from orthobandit.policy import UniformAllocation

KEY = "7" * 64
BEGIN = 1_760_000_000.0  # seconds since 1970
LABELS = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"]
SQUARE = ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], labels=["none", "red", "large", "both"])


class Clock:
    """Seconds, as a case says."""

    def __init__(self):
        self.now = BEGIN

    def __call__(self):
        return self.now


def arms(count):
    return ArmSet.one_hot(count, labels=LABELS[:count])


def rates(*means):
    """Return rewards of 0 and 1 whose rates move together over the day."""

    def rewards(rng, shown, seconds):
        level = 0.1 * np.sin(2 * np.pi * seconds / 86_400.0)
        return (rng.random(len(shown)) < np.asarray(means)[shown] + level).astype(float)

    return rewards


def amounts(*gaps, level=0.0, spread=1.0):
    """Return normal rewards around a level that moves."""

    def rewards(rng, shown, seconds):
        season = 2.0 * np.sin(2 * np.pi * seconds / 86_400.0)
        return level + season + np.asarray(gaps)[shown] + spread * rng.standard_normal(len(shown))

    return rewards


def skewed(*means):
    """Return what visitors spend: mostly nothing."""

    def rewards(rng, shown, seconds):
        return (
            np.where(rng.random(len(shown)) < 0.08, rng.exponential(1.0, len(shown)), 0.0)
            * np.asarray(means)[shown]
        )

    return rewards


def play(
    experiment,
    rewards,
    batches=40,
    *,
    batch=40,
    seed=1,
    step=600.0,
    told=1.0,
    lost=None,
    metrics=None,
    asked=None,
    named=False,
    clock=None,
):
    """Ask and tell in batches.

    Parameters
    ----------
    rewards : function of a generator, the arms that were shown, and the seconds since the beginning
    told : float
        Share of rewards that are told.
    lost : dict, optional
        Share of rewards of an arm that are lost, by label.
    metrics : dict, optional
        Further rewards, by the name of their metric.
    asked : function of a generator, optional
        Returns more arguments of a batch.
    named : bool
        Whether proposals are for named visitors.
    clock : Clock, optional
        Of an experiment that :func:`begin` did not make.
    """
    clock, rng = clock or CLOCKS[experiment], np.random.default_rng(seed)
    for number in range(batches):
        clock.now += step
        more = {} if asked is None else asked(rng, batch)
        who = {"units": [f"visitor {number}-{k}" for k in range(batch)]} if named else {"count": batch}
        proposals = experiment.ask_many(**who, **more)
        shown = np.array([proposal.arm for proposal in proposals])
        seconds = clock.now - BEGIN
        values = {"reward": rewards(rng, shown, seconds)}
        values |= {name: function(rng, shown, seconds) for name, function in (metrics or {}).items()}
        shares = np.array([told * (1.0 - (lost or {}).get(proposal.label, 0.0)) for proposal in proposals])
        is_told = rng.random(batch) < shares
        ids = [proposal.id for proposal, is_one in zip(proposals, is_told, strict=True) if is_one]
        chosen = {name: value[is_told].tolist() for name, value in values.items()}
        experiment.tell_many(ids, chosen if metrics else chosen["reward"])
    return experiment


CLOCKS = {}


def begin(arm_set, policy=None, **options):
    """Return an experiment in memory with a clock of its own."""
    clock = Clock()
    experiment = Experiment.memory(arm_set, policy, key=KEY, clock=clock, **options)
    CLOCKS[experiment] = clock
    return experiment


CASES = {}


def case(function):
    """Register a case under the words of its name."""
    CASES[function.__name__.strip("_").replace("_", " ")] = function
    return function


def simple(name, arm_count, world, batches=40, *, policy=None, play_options=None, **options):
    """Register a case that is asked and told, and nothing else."""
    options.setdefault("rewards", None if policy is not None else (0, 1))

    def played():
        arm_set = arm_count if isinstance(arm_count, ArmSet) else arms(arm_count)
        return play(begin(arm_set, policy, **options), world, batches, **(play_options or {}))

    CASES[name] = played


# Rewards in a declared range

simple("two arms, small gap", 2, rates(0.4, 0.45), 30)
simple("two arms, a winner", 2, rates(0.3, 0.6), 60)
simple("two equal arms", 2, rates(0.4, 0.4), 40, play_options={"seed": 8})
simple("three arms, one dropped", 3, rates(0.3, 0.35, 0.7), 40)
simple("three arms, a winner", 3, rates(0.2, 0.3, 0.7), 60)
simple("ten arms", 10, rates(*np.linspace(0.2, 0.7, 10)), 45)
simple("arms with features", SQUARE, rates(0.3, 0.5, 0.4, 0.6), 30)
simple("arms that are alike", ArmSet([[1.0, 2.0], [1.0, 2.0]], labels=["A", "B"]), rates(0.4, 0.4), 10)
simple("a range below and above 0", 3, amounts(0.0, 1.0, -1.0), 30, rewards=(-8, 8))
simple(
    "a range far from 0",
    2,
    amounts(0.0, 2.0, level=1e6),
    40,
    rewards=(1e6 - 9, 1e6 + 9),
    silence="missing",
    window="1h",
)
simple("rare rewards", 2, rates(0.12, 0.14), 60)
simple("another reference", 3, rates(0.3, 0.45, 0.6), 25, reference="C")
simple("a hint that is right", 3, rates(0.3, 0.4, 0.6), 35, expect=0.2)
simple("a hint that is wrong", 3, rates(0.3, 0.4, 0.6), 35, expect=0.01)
simple("a holdout", 3, rates(0.3, 0.4, 0.6), 30, holdout=0.2)
simple("few visitors", 3, rates(0.3, 0.4, 0.6), 2)

# Modes and widths

simple("asymptotic", 3, amounts(0.0, 0.3, 1.0), 20, rewards="unknown")
simple("asymptotic, early", 3, amounts(0.0, 0.3, 1.0), 1, rewards="unknown")
simple("asymptotic, skewed", 2, skewed(1.0, 1.2), 100, rewards="unknown")
for mode_name, mode in {
    "bounded": Bounded(-8.0, 8.0),
    "asymptotic": Asymptotic(),
    "sub-Gaussian": SubGaussian(-5.0, 5.0, sigma=1.0),
    "same shape": SameShape(clip=6.0),
}.items():
    simple(
        f"mode {mode_name}",
        3,
        amounts(0.0, 0.2, 0.8),
        25,
        policy=AnytimeElimination(confidence=mode),
        rewards=(-8, 8) if mode_name == "bounded" else "unknown",
    )
simple("delta of .01", 3, rates(0.3, 0.4, 0.7), 25, policy=AnytimeElimination(delta=0.01, rewards=(0, 1)))
simple("delta of .2", 3, rates(0.3, 0.4, 0.7), 25, policy=AnytimeElimination(delta=0.2, rewards=(0, 1)))
simple("within epsilon", 3, rates(0.3, 0.55, 0.6), 50, policy=AnytimeElimination(epsilon=0.3, rewards=(0, 1)))
simple("earning", 3, rates(0.3, 0.4, 0.6), 30, policy=AnytimeElimination(goal="earn", rewards=(0, 1)))
simple(
    "pairs with leaders",
    5,
    rates(0.2, 0.3, 0.4, 0.5, 0.7),
    40,
    policy=AnytimeElimination(pairs="leader", rewards=(0, 1)),
)
for baseline_name, baseline in {
    "none": NoBaseline(),
    "exponential mean": ExponentialMean(0.1),
    "autoregression": AutoRegression(4),
    "ARMA": ARMA(4),
    "seasonal": SeasonalRegression((144.0,)),
}.items():
    simple(
        f"baseline {baseline_name}",
        2,
        amounts(0.0, 0.5),
        20,
        policy=AnytimeElimination(baseline=baseline),
        rewards="unknown",
    )
simple(
    "baseline of covariates",
    2,
    amounts(0.0, 0.5),
    20,
    policy=AnytimeElimination(baseline=CovariateRegression(("age",))),
    rewards="unknown",
    play_options={
        "asked": lambda rng, count: {"covariates": [{"age": float(rng.normal())} for _ in range(count)]}
    },
)

# Other policies

simple("policy uniform", 3, rates(0.3, 0.4, 0.6), 50, policy=UniformAllocation(), rewards=(0, 1))
simple("policy SBE", 3, rates(0.3, 0.4, 0.9), 60, policy=SBE(), rewards=(0, 1))
simple(
    "policy pure exploration",
    3,
    rates(0.3, 0.4, 0.9),
    60,
    policy=PureExploration(rounds=2000),
    rewards=(0, 1),
)

# Rewards that come late, add up, or never come

simple("silence is 0", 2, rates(0.4, 0.6), 35, window="2h", play_options={"told": 0.7})
simple(
    "silence is missing", 2, rates(0.4, 0.6), 35, window="2h", silence="missing", play_options={"told": 0.7}
)
simple(
    "rewards that are lost of one arm",
    2,
    rates(0.4, 0.4),
    80,
    window="2h",
    silence="missing",
    play_options={"lost": {"A": 0.6}},
)
simple("rewards awaited", 2, rates(0.4, 0.6), 25, window="3h", silence="missing", play_options={"told": 0.5})


@case
def rewards_that_add_up():
    experiment = begin(arms(2), rewards=(0, 4), add=True, window="2h")
    rewards = rates(0.4, 0.6)
    clock, rng = CLOCKS[experiment], np.random.default_rng(3)
    for _ in range(40):
        clock.now += 600.0
        proposals = experiment.ask_many(30)
        shown = np.array([proposal.arm for proposal in proposals])
        for _ in range(2):
            experiment.tell_many(
                [proposal.id for proposal in proposals], rewards(rng, shown, clock.now - BEGIN)
            )
    clock.now += 7300.0
    experiment.tick()
    return experiment


# Several metrics, guardrails, and arms that come and go

METRICS = [
    Metric("seconds"),
    Metric("crash", rewards=(0, 1), delta=0.1),
    Metric("sales", rewards=(0, 9), baseline=ExponentialMean()),
]
simple(
    "several metrics",
    3,
    rates(0.3, 0.4, 0.6),
    30,
    metrics=METRICS,
    play_options={
        "metrics": {
            "seconds": amounts(0.0, 0.5, 1.0, level=20.0),
            "crash": rates(0.15, 0.15, 0.2),
            "sales": skewed(1.0, 1.5, 2.0),
        }
    },
)
for rail_name, rail, crashes in (
    ("a guardrail retires an arm", Guardrail("crash", margin=0.0), (0.15, 0.15, 0.8)),
    ("a guardrail holds a winner", Guardrail("crash", margin=0.02), (0.2, 0.2, 0.22)),
    ("a guardrail with a harm", Guardrail("crash", margin=0.05, harm=0.5), (0.2, 0.2, 0.2)),
    ("a guardrail against less", Guardrail("crash", worse="lower"), (0.8, 0.8, 0.2)),
):
    simple(
        rail_name,
        3,
        rates(0.2, 0.4, 0.8),
        30,
        metrics=[Metric("crash", rewards=(0, 1))],
        guardrails=[rail],
        play_options={"metrics": {"crash": rates(*crashes)}},
    )


@case
def a_person_retires_an_arm():
    experiment = play(begin(arms(3), rewards=(0, 1)), rates(0.3, 0.4, 0.45), 20)
    experiment.retire("B")
    return play(experiment, rates(0.3, 0.4, 0.45), 10, seed=2)


@case
def all_arms_but_one_retired():
    experiment = play(begin(arms(3), rewards=(0, 1)), rates(0.3, 0.4, 0.45), 20)
    experiment.retire("B")
    experiment.retire("A")
    return play(experiment, rates(0.3, 0.4, 0.45), 5, seed=2)


@case
def an_arm_is_added():
    experiment = play(begin(arms(2), rewards=(0, 1)), rates(0.3, 0.4), 20)
    experiment.extend(arms(3))
    return play(experiment, rates(0.3, 0.4, 0.7), 25, seed=2)


@case
def paused():
    experiment = play(begin(arms(2), rewards=(0, 1)), rates(0.3, 0.4), 20)
    experiment.pause()
    return experiment


@case
def stopped():
    experiment = play(begin(arms(2), rewards=(0, 1)), rates(0.3, 0.4), 20)
    experiment.stop("the season is over")
    return experiment


@case
def nothing_asked():
    return begin(arms(2), rewards=(0, 1))


@case
def asked_and_nothing_told():
    experiment = begin(arms(2), rewards=(0, 1), window="1d", silence="missing")
    experiment.ask_many(50)
    return experiment


@case
def gaps_that_turn():
    experiment = play(begin(arms(2), rewards=(0, 1)), rates(0.3, 0.6), 60)
    return play(experiment, rates(0.6, 0.3), 60, seed=2)


@case
def arms_that_are_not_always_available():
    def offered(rng, count):
        return {"available": ["A", "B"] if rng.random() < 0.3 else ["A", "B", "C"]}

    return play(begin(arms(3), rewards=(0, 1)), rates(0.3, 0.4, 0.6), 30, asked=offered)


@case
def visitors_who_return():
    experiment = begin(arms(2), rewards=(0, 1))
    play(experiment, rates(0.3, 0.5), 20, named=True)
    experiment.ask_many(units=[f"visitor {number}-{k}" for number in range(20) for k in range(5)])
    return experiment


@case
def draws_at_the_edge():
    experiment = begin(arms(3), rewards=(0, 1), holdout=0.1)
    rng, rewards = np.random.default_rng(4), rates(0.3, 0.4, 0.6)
    for number in range(25):
        CLOCKS[experiment].now += 600.0
        plan = experiment.edge_plan()
        draws = [plan.draw(f"visitor {number}-{k}") for k in range(40)]
        shown = np.array([draw.arm for draw in draws])
        values = rewards(rng, shown, 600.0 * number)
        experiment.expose(plan.plan, [draw.unit for draw in draws], shown.tolist(), values.tolist())
    return experiment


# Personalised experiments

RULES = {
    "B on telephones": "B if mobile >= 0.5 else A",
    "by the hour": "C if hour < 0 and mobile < 0.5 else B if mobile == 1 else A",
}


def visitors(rng, count):
    return [{"mobile": float(rng.random() < 0.5), "hour": float(rng.normal())} for _ in range(count)]


def play_personal(
    experiment,
    batches=15,
    *,
    batch=20,
    seed=1,
    told=1.0,
    lost=0.0,
    gain=0.5,
    asked=None,
    metrics=None,
    clock=None,
):
    """Show arms to visitors of whom B serves those on telephones."""
    clock, rng = clock or CLOCKS[experiment], np.random.default_rng(seed)
    for number in range(batches):
        clock.now += 600.0
        contexts = visitors(rng, batch)
        units = [f"visitor {seed} {number}-{k}" for k in range(batch)]
        proposals = experiment.ask_many(units=units, context=contexts, **(asked or {}))
        ids, values = [], []
        for proposal, context in zip(proposals, contexts, strict=True):
            mean = 0.2 + 0.2 * context["mobile"]
            mean += (proposal.arm == 1) * gain * (context["mobile"] - 0.3)
            reward = float(rng.random() < mean)
            if rng.random() < told * (1.0 - lost * (proposal.label == "A")):
                ids.append(proposal.id)
                values.append(reward)
        named = {"reward": values, "seconds": [3.0 + value for value in values]} if metrics else values
        experiment.tell_many(ids, named)
    return experiment


def personal(name, *, rules=RULES, rewards=(0, 1), policy=None, play_options=None, **options):
    """Register a personalised case."""

    def played():
        chosen = Personalised(["mobile", "hour"], rules, rewards=rewards, **(policy or {}))
        more = {"rewards": "unknown"} if rewards is None else {}
        return play_personal(begin(arms(3), chosen, **more, **options), **(play_options or {}))

    CASES[name] = played


personal("personalised, exact")
personal("personalised, asymptotic", rewards=None)
personal(
    "personalised, a rule that is best", rewards=None, play_options={"batches": 25, "batch": 30, "gain": 1.3}
)
personal("personalised, no rules", rules={})
personal("personalised, much exploration", policy={"explore": 0.5, "delta": 0.2})
personal("personalised, a holdout", holdout=0.2)
personal(
    "personalised, lost rewards",
    rewards=None,
    window="1h",
    silence="missing",
    play_options={"lost": 0.7, "batches": 15, "batch": 40},
)
personal("personalised, silence is 0", window="1h", play_options={"told": 0.5, "batches": 15})
personal("personalised, two metrics", metrics=[Metric("seconds")], play_options={"metrics": True})


@case
def personalised_with_a_retired_arm():
    experiment = begin(arms(3), Personalised(["mobile", "hour"], RULES, rewards=(0, 1)))
    play_personal(experiment)
    experiment.retire("C")
    return play_personal(experiment, 5, seed=2)


@case
def personalised_with_features_of_arms():
    policy = Personalised(["mobile"], rewards=(0, 1), features=["price", "distance"])
    experiment = begin(arms(3), policy)
    clock, rng = CLOCKS[experiment], np.random.default_rng(5)
    for number in range(15):
        clock.now += 600.0
        contexts = [{"mobile": float(rng.random() < 0.5)} for _ in range(20)]
        offers = [
            {label: rng.normal(size=2).round(3).tolist() for label in LABELS[: 2 + int(rng.random() < 0.7)]}
            for _ in range(20)
        ]
        units = [f"visitor {number}-{k}" for k in range(20)]
        proposals = experiment.ask_many(units=units, context=contexts, features=offers)
        values = [
            float(rng.random() < 0.4 + 0.1 * np.tanh(offer[proposal.label][0]))
            for proposal, offer in zip(proposals, offers, strict=True)
        ]
        experiment.tell_many([proposal.id for proposal in proposals], values)
    return experiment
