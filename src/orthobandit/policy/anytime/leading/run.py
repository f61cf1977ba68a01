"""One replication of anytime elimination with very many arms: what a finished batch changes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orthobandit._foundation.linalg import solve_ridge
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.augmented import RivalGeometry
from orthobandit.estimate.confidence.evidence import quiet_arms
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.estimate.orthogonal import few_centred_sums
from orthobandit.policy.anytime.delta import cautious, shares, tuned
from orthobandit.policy.anytime.leading.against import Against, Shown
from orthobandit.policy.anytime.leading.plans import Race, earning, identifying, linear_values, playable
from orthobandit.policy.anytime.leading.seen import Seen, different, rival_of_most
from orthobandit.policy.anytime.plans import wide_plan
from orthobandit.policy.anytime.rounds import EVIDENCE, Rounds, rivals_of
from orthobandit.policy.anytime.run import CALM, INFORMED, LONGER, REDESIGN, SHORTEST, fitted
from orthobandit.policy.anytime.settings import Settings, warm_up

# Times longer batches are than with few arms: rounds count once the arms of a plan were drawn often enough.
RARER = 6.0
SHOWN = 5_000  # survivors up to which ε is worked out where it is for the reader alone, and can end nothing
REMEMBERED = 4  # arms that have led, against which evidence is kept
EMPTY: dict[str, Any] = {
    **dict.fromkeys((*EVIDENCE, "alpha", "rho", "scale", "left"), np.zeros(0)),
    "met": np.zeros(0, dtype=np.bool_),
    "first_plan": np.zeros(0, dtype=np.int64),
}


@dataclass(frozen=True, eq=False)
class LeadingRun(Rounds):
    """A replication whose evidence is on survivors against leaders; the arrays of all pairs stay empty.

    Attributes
    ----------
    tests : Against or None
        Of each survivor's claim to be best, against the leader of the moment; None before rounds count.
    led : tuple of Against
        Of each survivor against arms that have led, the newest last.
    leaders : int
        How many arms have been given such evidence so far: the m-th at δ/m(m + 1) of what bounds have.
    """

    # One replication: what are arrays over replications elsewhere are numbers here.
    stage: Any
    length: Any
    late: Any
    rounds: Any
    designed: Any
    plans: Any
    noise: Any
    watched: Any
    squared: Any
    scattered: Any
    largest: Any
    excess: Any
    informed: Any
    leader: Any
    declared: Any
    epsilon: Any
    tests: Against | None
    led: tuple[Against, ...]
    leaders: int

    @classmethod
    def fresh(cls, arms: ArmSet) -> "LeadingRun":
        """Return the run before the first round."""
        k = len(arms)
        r = arms.dimension
        run = cls(
            active=np.ones(k, dtype=np.bool_),
            retired=np.zeros(k, dtype=np.bool_),
            stage=0,
            length=1,
            late=0,
            rounds=0,
            designed=0,
            plans=1,
            probabilities=np.array(wide_plan(arms)),
            values=np.zeros(k),
            gram=np.zeros((r, r)),
            moment=np.zeros(r),
            noise=0.0,
            watched=0,
            drawn=np.zeros(k),
            relative=np.zeros(k),
            squared=0.0,
            scattered=0.0,
            largest=0.0,
            excess=0.0,
            informed=0.0,
            **EMPTY,
            leader=0,
            declared=-1,
            epsilon=np.inf,
            tests=None,
            led=(),
            leaders=0,
        )
        return run if r else replace(run, epsilon=0.0).settled(0)

    @property
    def kept(self) -> Whole:
        """Survivors (n,), ascending: what entries of the evidence belong to."""
        return np.flatnonzero(self.active)

    def shown(self, against: Against) -> Shown:
        """Return what residuals have shown of the survivors and of the arm that they are held against."""
        quiet = quiet_arms(self.relative, self.drawn)
        rival = against.arm if against.arm >= 0 else self.leader
        return Shown(float(self._sizes().events), quiet[self.kept] | quiet[rival])

    def sequences(self) -> Iterator[Against]:
        """Yield the tests and the evidence against arms that have led."""
        if self.tests is not None:
            yield self.tests
        yield from self.led

    def _centred_sums(self, arms: ArmSet, tally: Tally, sums: Array) -> tuple[Array, Array]:
        return few_centred_sums(arms, self.probabilities, tally.counts, sums)

    def settled(self, arm: int) -> "LeadingRun":
        """Return the run with an arm declared, which alone is played from now on."""
        mass = np.zeros(len(self.active))
        mass[arm] = 1.0
        return replace(self, leader=arm, declared=arm, probabilities=mass)

    def advanced(self, policy: Settings, arms: ArmSet, tally: Tally) -> "LeadingRun":
        """Return the run after a complete batch; `tally` (K,) has what was played under the plan in force."""
        run = self.taken_in(policy.confidence, arms, tally) if tally.rounds else self
        run = replace(run, plans=self.plans + 1, late=0)
        if not self.drawn.any():
            return replace(run, length=max(warm_up(policy, arms) - 1, 1))
        if run.stage == 0:
            return run._warmed(policy, arms)
        if run.stage == 1 and run.informed < INFORMED:
            return replace(run, length=max(int(np.ceil(LONGER * run.rounds)), SHORTEST))
        is_new = run.stage == 1
        run = replace(run, stage=2, scattered=0.0) if is_new else run._eliminated(policy.confidence)
        run = run._led(arms, policy)
        if run.declared >= 0:
            return run
        run = run._planned(policy, arms, self)
        return run._begun(policy, arms, self.probabilities) if is_new else run._followed(policy, arms)

    def with_late(self, policy: Settings, arms: ArmSet, plan: Plan, tally: Tally) -> "LeadingRun":
        """Return the run with rounds of an earlier plan: see :meth:`Rounds.with_late`."""
        then = replace(self, probabilities=plan.probabilities, values=plan.values, length=0)
        rivals = plan.rivals
        count = 0
        if rivals is None or np.any(rivals < 0):
            run = replace(then._regressed(arms, tally), noise=self.noise)
        else:
            run = then.taken_in(policy.confidence, arms, tally, (rivals, int(plan.number)))
            count = int(tally.rounds)
        return replace(
            run,
            probabilities=self.probabilities,
            values=self.values,
            length=self.length,
            late=self.late + count,
        )

    def taken_in(
        self, confidence: Confidence, arms: ArmSet, tally: Tally, drawn: tuple[Whole, int] | None = None
    ) -> "LeadingRun":
        """Add rounds to the regression and, after the pilot, to the evidence.

        `drawn` has the rivals (K,) and the number of their plan, unless it is the one in force.
        """
        run = self._watched(tally)
        if self.tests is not None:
            rivals, number = drawn or (rivals_of(self.active, self.leader, self.values), self.plans)
            run = run._judged(confidence, arms, tally, rivals, number)
        return run._regressed(arms, tally)

    def _judged(
        self, confidence: Confidence, arms: ArmSet, tally: Tally, rivals: Whole, number: int
    ) -> "LeadingRun":
        """Add a batch to the evidence that was begun before its plan."""
        tests = self.tests
        leader = rival_of_most(rivals)
        if tests is None or number < tests.since:
            return self
        seen = Seen.of(self, confidence, RivalGeometry.of(arms, self.probabilities), tally)
        place = int(np.searchsorted(self.kept, leader))
        own = self.active[leader]
        batch = seen.against(leader, (place, int(rivals[leader])) if own else None)
        now = tests.and_of(batch, confidence)
        led = list[Against]()
        for one in self.led:
            if number < one.since:
                led.append(one)
            elif one.is_same_as(tests) and one.arm == leader:
                led.append(one.with_sums_of(now))
            else:
                led.append(one.and_of(seen.against(one.arm, None), confidence))
        return replace(self, tests=now, led=tuple(led))

    def _warmed(self, policy: Settings, arms: ArmSet) -> "LeadingRun":
        """Begin the pilot: see :meth:`Run._warmed`."""
        values = self._values(arms, policy.confidence)
        largest = max(self.largest - 2.0 * float(np.ptp(values)), 0.0)
        return replace(self, stage=1, length=warm_up(policy, arms), values=values, largest=largest)

    def _values(self, arms: ArmSet, confidence: Confidence) -> Array:
        """Return estimates (K,) to take residuals from; of arms that are out and not played, nothing."""
        wanted = self.active.copy()
        wanted[playable(arms)] = True
        some = np.flatnonzero(wanted)
        values = np.zeros(len(arms))
        values[some] = linear_values(arms, some, solve_ridge(self.gram, self.moment, self.ridge))
        return fitted(values, arms, confidence)

    def _eliminated(self, confidence: Confidence) -> "LeadingRun":
        """Drop every arm that fails its test, or that a survivor which has led is proven better than."""
        kept = self.kept
        tests = self.tests
        if tests is None:
            return self
        lost = tests.lost(confidence, self.shown(tests))
        for one in self.led:
            if self.active[one.arm] and not (one.is_same_as(tests) and one.alpha <= tests.alpha):
                lost |= one.lost(confidence, self.shown(one)) & (kept != one.arm)
        # Proofs in a circle contradict each other: some interval has failed, and nothing follows.
        if not lost.any() or lost.all():
            return self
        active = np.zeros_like(self.active)
        active[kept[~lost]] = True
        fewer = tests.only(~lost)
        led = tuple(
            one.with_sums_of(fewer) if one.is_same_as(tests) else one.only(~lost)
            for one in self.led
            if active[one.arm]
        )
        return replace(self, active=active, tests=fewer, led=led)

    def _led(self, arms: ArmSet, policy: Settings) -> "LeadingRun":
        """Find the leader and how far it can be from the best; declare it if that settles the matter."""
        values = self._values(arms, policy.confidence)
        kept = self.kept
        leader = int(kept[np.argmax(values[kept])])
        run = replace(self, leader=leader, values=values)
        others = different(arms, kept, leader)
        if not others.any():
            return replace(run, epsilon=0.0).settled(int(kept[0]))
        epsilon = np.inf
        is_asked = policy.epsilon > 0 or len(kept) <= SHOWN
        for one in self.led:
            if one.arm == leader and is_asked:
                epsilon = one.highest(policy.confidence, self.shown(one), others)
        run = replace(run, epsilon=epsilon)
        return run.settled(leader) if epsilon <= policy.epsilon else run

    def _planned(self, policy: Settings, arms: ArmSet, before: "LeadingRun") -> "LeadingRun":
        """Plan the next batch; the distribution stays while survivors, leader and data are much the same."""
        share = max(policy.growth, min(RARER * policy.growth, CALM))
        run = replace(self, length=max(int(np.ceil(share * self.rounds)), SHORTEST))
        same = self.leader == before.leader and np.array_equal(self.active, before.active)
        if same and self.rounds < REDESIGN * self.designed:
            return run
        others = self.kept[different(arms, self.kept, self.leader)]
        gaps = np.maximum(self.values[self.leader] - self.values[others], 0.0)
        information = self.gram + self.ridge * np.eye(len(self.gram))
        race = Race.of(arms, self.leader, others, gaps, information)
        earns = policy.goal == "earn"
        p = earning(race) if earns else identifying(race, policy.mixing, self.probabilities)
        return replace(run, probabilities=p, designed=self.rounds)

    def _begun(self, policy: Settings, arms: ArmSet, pilot: Array) -> "LeadingRun":
        """Begin the tests, and the evidence against the first leader, which is theirs while it leads."""
        for_arms, for_bounds = shares(policy)
        second = int(rivals_of(self.active, self.leader, self.values)[self.leader])
        tests = self._fresh(policy.confidence, arms, (self.leader, second), pilot, for_arms)
        tests = replace(tests, arm=-1)
        return replace(self, tests=tests, led=(tests.copied(self.leader, for_bounds / 2.0),), leaders=1)

    def _followed(self, policy: Settings, arms: ArmSet) -> "LeadingRun":
        """Begin evidence against the leader if there is none; the oldest is forgotten if there is much."""
        if any(one.arm == self.leader for one in self.led):
            return self
        count = self.leaders + 1
        alpha = shares(policy)[1] / (count * (count + 1))
        mine = self._fresh(policy.confidence, arms, (self.leader, None), self.probabilities, alpha)
        return replace(self, led=(*self.led, mine)[-REMEMBERED:], leaders=count)

    def _fresh(
        self,
        confidence: Confidence,
        arms: ArmSet,
        rivals: tuple[int, int | None],
        seen: Array,
        alpha: float,
    ) -> Against:
        """Return evidence against an arm that begins with the plan in force, tuned by what was `seen` (K,).

        The second rival, if any, is that of the arm itself.
        """
        (rival, second), kept = rivals, self.kept
        place = int(np.searchsorted(kept, rival))
        geometry = RivalGeometry.of(arms, self.probabilities)
        before = RivalGeometry.of(arms, seen)
        gap = np.abs(self.values[kept] - self.values[rival])
        forms, _, reach = geometry.measured(kept, rival, wants_reach=confidence.is_exact)
        parts = [forms[0], before.variances(kept, rival)]
        if second is not None:
            own = kept[[place]]
            gap[place] = abs(self.values[rival] - self.values[second])
            for part, one in zip(parts, (geometry, before), strict=True):
                part[place] = one.variances(own, second)[0]
            reach[place] = geometry.measured(own, second, wants_reach=confidence.is_exact)[2][0]
        gaps = cautious(gap, parts[1], self.noise, self.watched)
        tuning = tuned(np.asarray(alpha), gaps, parts[0], reach, confidence, (self.noise, self.rounds))
        tuning = replace(
            tuning, rho=tuning.rho.reshape(-1), scale=tuning.scale.reshape(-1)
        )  # of one replication
        return Against.fresh(rival, alpha, int(self.plans), tuning)
