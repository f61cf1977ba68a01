"""Random live experiments, ordinary and personalised, with everything that people and networks do to them."""

import numpy as np

from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric, Personalised

LABELS = ("A", "B", "C", "D")
RULES = {"B on telephones": "B if mobile >= 0.5 else A", "A on telephones": "A if mobile >= 0.5 else B"}
STEPS = 8
ORDINARY_STEP, PERSONAL_STEP = 150, 100


class LiveWorld:
    """An experiment in memory, and the visitors, losses and people that it meets, all by one seed.

    A third of the worlds loses beacons of one arm: their visitors are drawn by clients, and more than half of
    those who saw the arm are never reported. In others silence counts as missing and depends on the arm.

    Attributes
    ----------
    experiment : Experiment
    is_personal : bool
    """

    def __init__(self, seed):
        rng = self._rng = np.random.default_rng([47, seed])
        self.is_personal = bool(rng.random() < 0.5)
        self._count = int(rng.integers(2, 4 if self.is_personal else 5))
        self._loses = int(rng.integers(self._count)) if rng.random() < 0.33 else -1
        self._silent = int(rng.integers(self._count)) if rng.random() < 0.15 else -1
        self._retires = rng.random(STEPS) < (0.12 if rng.random() < 0.6 else 0.0)
        self._pauses = int(rng.integers(STEPS)) if rng.random() < 0.2 else -1
        self._stops = int(rng.integers(STEPS)) if rng.random() < 0.1 else -1
        self._narrows = bool(rng.random() < 0.3)
        is_guarded = bool(rng.random() < 0.4)
        self._names = ["reward", "crash"][: 1 + is_guarded]
        self._means = 0.8 * rng.beta(0.5, 0.5, size=self._count) + 0.1
        self._harm = np.where(rng.random(self._count) < 0.4, 0.4, 0.05)
        self._clock = 0.0
        self._step = 0
        delta = float(rng.choice([0.05, 0.3]))
        if self.is_personal:
            rules = dict(list(RULES.items())[: int(rng.integers(3))])
            policy = Personalised(["mobile"], rules, delta=delta, explore=0.6)
        else:
            policy = AnytimeElimination(delta=delta, epsilon=float(rng.choice([0.0, 0.1])), rewards=(0, 1))
        self.experiment = Experiment.memory(
            ArmSet.one_hot(self._count, labels=list(LABELS[: self._count])),
            policy,
            rewards="unknown" if self.is_personal else (0, 1),
            metrics=[Metric("crash", rewards=None if self.is_personal else (0, 1))] if is_guarded else [],
            guardrails=[Guardrail("crash", 0.02)] if is_guarded else [],
            holdout=float(rng.choice([0.0, 0.0, 0.1])),
            window=10.0 if self._silent >= 0 else None,
            silence="missing" if self._silent >= 0 else "zero",
            clock=lambda: self._clock,
            key=f"{seed:064x}",
        )

    def looks(self):
        """Play to the end; yield the experiment's report after each step."""
        for _ in range(STEPS):
            self._act()
            if self.experiment.report().status == "open":
                self._play()
            self._clock += 20.0
            self._step += 1
            yield self.experiment.report()

    def _act(self):
        """Do what people do: retire an arm, pause, go on, stop."""
        experiment = self.experiment
        status = experiment.report().status
        left = [arm.label for arm in experiment.report().arms if not arm.is_retired]
        if self._retires[self._step] and len(left) > 1 and status != "stopped":
            experiment.retire(str(self._rng.choice(left)))
        if status == "paused":
            experiment.resume()
        if self._step == self._stops:
            experiment.stop()
        elif self._step == self._pauses and status == "open":
            experiment.pause()

    def _play(self):
        count = PERSONAL_STEP if self.is_personal else ORDINARY_STEP
        contexts = [{"mobile": float(self._rng.random() < 0.5)} for _ in range(count)]
        if self._loses >= 0:
            self._play_at_the_edge(count, contexts)
            return
        given = {"context": contexts} if self.is_personal else {}
        left = [arm.label for arm in self.experiment.report().arms if not arm.is_retired]
        if self._narrows and self._step % 3 == 1:
            given["available"] = left[: int(self._rng.integers(1, len(left) + 1))]
        shown = self.experiment.ask_many(count, **given)
        arms = np.array([proposal.arm for proposal in shown])
        told = self._rng.random(count) > np.where(arms == self._silent, 0.6, 0.02 * (self._silent >= 0))
        numbers = np.array([proposal.id for proposal in shown])[told]
        if len(numbers):
            values = {name: values[told] for name, values in self._values(arms, contexts).items()}
            self.experiment.tell_many(numbers.tolist(), values)

    def _play_at_the_edge(self, count, contexts):
        plan = self.experiment.edge_plan()
        units = [f"visitor {self._step}-{place}" for place in range(count)]
        if self.is_personal:
            draws = [plan.draw(unit, context) for unit, context in zip(units, contexts, strict=True)]
        else:
            draws = [plan.draw(unit) for unit in units]
        arms = np.array([draw.arm for draw in draws])
        came = np.flatnonzero((arms != self._loses) | (self._rng.random(count) > 0.6))
        if not len(came):
            return
        values = {name: values[came] for name, values in self._values(arms, contexts).items()}
        given = {"context": [contexts[place] for place in came]} if self.is_personal else {}
        self.experiment.expose(plan.plan, [units[place] for place in came], arms[came], values, **given)

    def _values(self, arms, contexts):
        """Return the rewards (n,) of visitors, by metric: the second arm is worse on telephones."""
        mobile = np.array([context["mobile"] for context in contexts])
        turn = 0.4 * (arms == 1) * (mobile - 0.5) if self.is_personal else 0.0
        values = {"reward": self._means[arms] + turn, "crash": self._harm[arms]}
        return {name: (self._rng.random(len(arms)) < values[name]).astype(float) for name in self._names}
