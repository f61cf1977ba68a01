"""A small experiment that keeps its record: what certificates are tested on."""

from dataclasses import dataclass, field, replace

import numpy as np

from orthobandit import (
    AnytimeElimination,
    ArmSet,
    Asymptotic,
    Bounded,
    Experiment,
    Guardrail,
    Metric,
    SubGaussian,
    Tally,
)
from orthobandit.estimate.certificate import Chain
from orthobandit.experiment.certificate import certify
from orthobandit.experiment.ledger.record import Record, commitment_of


def coins(rng, means, rounds):
    return (rng.random(len(means)) < means).astype(float)


def waves(rng, means, rounds):
    return means + 0.2 * np.sin(rounds / 50.0) + 0.5 * rng.standard_normal(len(means))


MODES = {
    "bounded": (Bounded(0.0, 1.0), coins),
    "sub-Gaussian": (SubGaussian(-1.0, 2.0, 0.5), waves),
    "asymptotic": (Asymptotic(), waves),
}
PLANE = ArmSet([[0.0, 0.0], [1.0, 0.2], [0.2, 1.0], [0.9, 0.9], [0.4, 0.1]], labels=["a", "b", "c", "d", "é"])


@dataclass
class Fed:
    """A policy that is fed, round by round forecast, and the record so far."""

    policy: AnytimeElimination
    arms: ArmSet
    means: np.ndarray
    reward: object
    seed: int = 0
    late: int = 0  # rounds under the plan in force that are told only after its end
    feeds: list = field(default_factory=list)  # plans and tallies, in order

    def __post_init__(self):
        self.rng = np.random.default_rng(self.seed)
        self.state = self.policy.start(self.arms)
        self.forecaster = self.policy.baseline.forecaster()
        self.clock = 0
        self.record = Record(Chain(commitment_of(self.policy, self.arms)))
        self.number = self.record.plan(self.policy, self.state)

    def drawn(self, plan, rounds):
        """Return the tally of some rounds of a plan."""
        arms = self.rng.choice(plan.count, rounds, p=plan.probabilities)
        rewards = self.reward(self.rng, self.means[arms], self.clock + np.arange(rounds))
        residuals = np.empty(rounds)
        for t in range(rounds):
            forecast = self.forecaster.forecast(self.clock + t)
            residuals[t] = plan.residuals(arms[t : t + 1], rewards[t : t + 1], [forecast.value])[0]
            self.forecaster.learn(forecast, rewards[t] - plan.values[arms[t]])
        self.clock += rounds
        return Tally.of(arms, residuals, plan.count)

    def until(self, rounds):
        """Play until so many rounds, or the declaration."""
        while self.clock < rounds and int(self.state.declared) < 0:
            plan, number = self.policy.plan(self.state), self.number
            tally = self.drawn(plan, int(plan.rounds))
            after = self.drawn(plan, self.late) if self.late and int(self.state.stage) else None
            self._observe(plan, tally)
            if after is not None and int(self.state.declared) < 0:
                self.feeds.append((plan, after))
                self.record.rounds(number, after)
                self._go_on(self.policy.late(self.state, plan, after))
        return self

    def _observe(self, plan, tally):
        self.feeds.append((plan, tally))
        self.record.rounds(self.number, tally)
        self._go_on(self.policy.observe(self.state, plan, tally))

    def _go_on(self, state):
        is_new = int(state.plans) != int(self.state.plans)
        self.state = state
        if is_new:
            self.number = self.record.plan(self.policy, state)

    def _closed(self, rounds):
        """Play some rounds of the plan in force, which a change of arms is about to end."""
        plan = self.policy.plan(self.state)
        self._observe(plan, self.drawn(plan, min(rounds, int(plan.rounds) - 1)))

    def restricted(self, arms, rounds):
        """Play some rounds of the plan in force, restricted to some arms."""
        plan = self.policy.plan(self.state)
        p = np.where(np.isin(np.arange(plan.count), arms), plan.probabilities, 0.0)
        limited = replace(plan, probabilities=p / p.sum())
        number, tally = self.record.restrict(limited), self.drawn(limited, rounds)
        self.feeds.append((limited, tally))
        self.record.rounds(number, tally)
        self._go_on(self.policy.late(self.state, limited, tally))

    def retire(self, arm, rounds=5):
        """Retire an arm in the middle of a batch."""
        self._closed(rounds)
        self.record.retire(arm)
        self._go_on(self.policy.retire(self.state, arm))

    def extend(self, arms, means, rounds=5):
        """Add arms in the middle of a batch."""
        self._closed(rounds)
        self.record.extend(arms)
        self.arms, self.means = arms, np.array(means)
        self._go_on(self.policy.extend(self.state, arms))

    def certificate(self):
        return certify(self.policy, self.state, self.record)


def fed(mode, *, means=(0.2, 0.3, 0.55, 0.25), arms=None, rounds=3000, seed=1, late=0, **settings):
    """Return an experiment that was played until the declaration or for so many rounds."""
    confidence, reward = MODES[mode]
    policy = AnytimeElimination(confidence=confidence, **settings)
    arms = ArmSet.one_hot(len(means)) if arms is None else arms
    return Fed(policy, arms, np.array(means), reward, seed, late).until(rounds)


def shop(rewards=(0, 1), **settings):
    """Return an experiment of three arms with a guardrail over crashes."""
    return Experiment.memory(
        ArmSet.one_hot(3),
        rewards=rewards,
        metrics=[Metric("crash", rewards=(0, 1))],
        guardrails=[Guardrail("crash")],
        key="5" * 32,
        **settings,
    )


def visited(experiment, rounds, crashes=(0.02, 0.02, 0.02), seed=0, step=50):
    """Let visitors come in who cannot always be shown every arm, and yield the report after each step."""
    rng = np.random.default_rng(seed)
    for turn in range(rounds // step):
        proposals = experiment.ask_many(step, available=[0, 2] if turn % 5 == 4 else None)
        arms = np.array([one.arm for one in proposals])
        values = {
            "reward": (rng.random(step) < np.array([0.1, 0.75, 0.9])[arms]).astype(float),
            "crash": (rng.random(step) < np.asarray(crashes)[arms]).astype(float),
        }
        experiment.tell_many([one.id for one in proposals], values)
        yield experiment.report()


def held_back():
    """Return an experiment whose winner a guardrail holds back."""
    experiment = shop()
    reports = visited(experiment, 5000)
    while next(reports).held is None:
        pass
    return experiment


def entries_of(document, kind):
    """Return the entries of a kind from a certificate."""
    return [entry for entry in document["entries"] if entry["entry"] == kind]
