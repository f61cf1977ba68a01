"""Evidence of survivors against arms that have led: memory and time in K, for very many arms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.checks import check_fits
from orthobandit._foundation.json_arrays import packed, sparse, unpacked, unsparse
from orthobandit._foundation.release import stamp
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Tally
from orthobandit.estimate.augmented import RivalGeometry, is_doubtful
from orthobandit.estimate.confidence.bets import BOLDEST
from orthobandit.estimate.confidence.boundaries import LogBets
from orthobandit.estimate.confidence.evidence import (
    Batch,
    Evidence,
    Tuning,
    draws_waited,
    expected_shares,
    quiet_arms,
)
from orthobandit.estimate.confidence.modes import Confidence
from orthobandit.estimate.orthogonal import few_centred_sums
from orthobandit.policy.anytime.delta import cautious, grid_of, shares, tuned
from orthobandit.policy.anytime.fields import EVIDENCE, Description, holds
from orthobandit.policy.anytime.plans import (
    Race,
    earning_plan_of_many,
    identifying_plan_of_many,
    linear_values,
    playable,
    wide_plan,
)
from orthobandit.policy.anytime.stages import CALM, AnytimeState, rivals_of

if TYPE_CHECKING:
    from orthobandit.policy.anytime.policy import AnytimeElimination

# Times longer batches are than with few arms: rounds count once the arms of a plan were drawn often enough.
RARER = 6.0
SHOWN = 5_000  # survivors up to which ε is worked out where it is for the reader alone, and can end nothing
REMEMBERED = 4  # arms that have led, against which evidence is kept: an old leader may come back
AT_A_TIME = 1 << 16  # arms whose boundaries are computed together, so that what is made on the way is small
# Arms whose upper bounds are solved for one by one; the others need only be shown to be no higher.
SOLVED = 64
MARK = "against leaders"  # in a dump, tells it from one of all pairs
VERSION = 2  # of the dump; in 1, evidence of exact modes did not say how large rounds were
ARRAYS = (*EVIDENCE, "rho", "scale")  # of evidence against an arm, one entry a survivor
TALLIED = {"counts": np.int64, "sums": np.float64, "squares": np.float64, "largest": np.float64}


@dataclass(frozen=True, eq=False)
class Shown:
    """What residuals have shown so far, on which the asymptotic mode decides whether it may speak.

    Attributes
    ----------
    events : float
        See :attr:`~orthobandit.estimate.confidence.evidence.Sizes.events`.
    quiet : (n,) array of bool
        Whether a survivor, or the arm it is held against, is quiet.
    """

    events: float
    quiet: Mask

    def only(self, some: Mask | Whole) -> "Shown":
        """Return that of some survivors."""
        return Shown(self.events, self.quiet[some])


@dataclass(frozen=True, eq=False)
class Against:
    """Sums of what each survivor is better by than another arm, with the boundary that holds for them.

    Attributes
    ----------
    arm : int
        The other arm; −1 for tests, whose rival is the leader of the moment.
    alpha : float
        Probability that the bound of any one survivor is ever wrong.
    since : int
        Number of the first plan whose rounds count: the arm was chosen before.
    totals, weights, variances, slack, pooled, peaks : (n,) arrays
        See :class:`~orthobandit.estimate.confidence.evidence.Evidence`; one entry a survivor, in ascending
        order.
    rho, scale : (n,) arrays
        See :class:`~orthobandit.estimate.confidence.evidence.Tuning`.
    is_expected : bool
        Whether boundaries are tuned for a gap that was expected before the first round.
    """

    arm: int
    alpha: float
    since: int
    totals: Array
    weights: Array
    variances: Array
    slack: Array
    pooled: Array
    peaks: Array
    rho: Array
    scale: Array
    is_expected: bool = False

    @classmethod
    def fresh(cls, arm: int, alpha: float, since: int, tuning: Tuning) -> "Against":
        """Return the sums before the first round; one array of zeros serves all of them."""
        nothing = np.zeros(len(tuning.rho))
        nothing.flags.writeable = False
        sums = dict.fromkeys(EVIDENCE, nothing)
        is_expected = isinstance(tuning.grid, LogBets)
        return cls(arm, alpha, since, **sums, rho=tuning.rho, scale=tuning.scale, is_expected=is_expected)

    def copied(self, arm: int, alpha: float) -> "Against":
        """Return evidence against another arm, at a level of its own, that shares these sums."""
        return replace(self, arm=arm, alpha=alpha)

    def is_same_as(self, other: "Against") -> bool:
        """Tell whether both share one set of sums, which is then updated and stored once."""
        return self.totals is other.totals

    def with_sums_of(self, other: "Against") -> "Against":
        """Return this evidence with the updated sums of another that it shares them with."""
        return other.copied(self.arm, self.alpha)

    def and_of(self, batch: Batch, confidence: Confidence) -> "Against":
        """Return the sums with a batch of rounds."""
        before = Evidence(**{name: getattr(self, name) for name in EVIDENCE})
        now = before.and_of(batch, self._tuning(slice(None)), confidence)
        return replace(self, **{name: getattr(now, name) for name in EVIDENCE})

    def only(self, left: Mask | Whole) -> "Against":
        """Return the entries of the survivors (n,) that are left."""
        return replace(self, **{name: getattr(self, name)[left] for name in ARRAYS})

    def lost(self, confidence: Confidence, shown: Shown) -> Mask:
        """Tell which survivors (n,) are proven worse than the other arm."""
        out = np.zeros(len(self.totals), dtype=np.bool_)
        for block in self._blocks(np.flatnonzero((self.totals < 0) & self._may_lose(confidence))):
            evidence = self._evidence(block, shown)
            out[block] = confidence.exceeds(replace(evidence, totals=-evidence.totals), self._tuning(block))
        return out

    def _may_lose(self, confidence: Confidence) -> Mask:
        """Tell which survivors (n,) are worth a closer look: no others can be proven worse.

        A normal mixture is above √(2V·log(1/2α)). A mixture of bets is at most the best of them, which gains
        λS − λ²V/2 at most.
        """
        if not confidence.is_exact:
            least = 2.0 * max(np.log(0.5 / self.alpha), 0.0) * self.variances
            return np.asarray(self.totals**2 > least)
        total = np.abs(self.totals)
        cap = BOLDEST / self.scale
        bet = np.minimum(cap, total / np.where(self.variances > 0, self.variances, 1e-300))
        return np.asarray(bet * (total - 0.5 * bet * self.variances) >= -np.log(self.alpha) - 1e-9)

    def upper_bounds(self, confidence: Confidence, shown: Shown) -> Array:
        """Return the most (n,) that each survivor can be better than the other arm; +inf if not known."""
        out = np.empty(len(self.totals))
        for block in self._blocks(np.arange(len(out))):
            evidence = self._evidence(block, shown)
            out[block] = evidence.estimates + confidence.width(evidence, self._tuning(block))
        return out

    def highest(self, confidence: Confidence, shown: Shown, among: Mask) -> float:
        """Return the largest upper bound of some survivors (n,), without computing all of them.

        A bound is at most h exactly where h less the estimate exceeds the boundary, which is asked sooner
        than the boundary is solved for.
        """
        rest = np.flatnonzero(among)
        if np.any(self.weights[rest] == 0):
            return float("inf") if rest.size else 0.0
        highest = 0.0
        while rest.size:
            # What promises to be highest first: the estimate, some standard errors and, where one round can
            # be felt, some of its largest steps.
            far = 4.0 * np.sqrt(self.variances[rest]) + (
                5.0 * self.scale[rest] if confidence.is_exact else 0.0
            )
            promise = (self.totals[rest] + far) / self.weights[rest]
            order = np.argpartition(-promise, min(SOLVED, rest.size - 1))
            first = rest[order[:SOLVED]]
            rest = rest[order[SOLVED:]]
            bounds = self.only(first).upper_bounds(confidence, shown.only(first))
            highest = max(highest, float(bounds.max()))
            if not np.isfinite(highest):
                return highest
            rest = rest[~self._below(rest, highest, confidence, shown)]
        return highest

    def _below(self, some: Whole, most: float, confidence: Confidence, shown: Shown) -> Mask:
        """Tell which of some survivors have an upper bound of at most `most`."""
        out = np.zeros(len(some), dtype=np.bool_)
        for start in range(0, len(some), AT_A_TIME):
            block = some[start : start + AT_A_TIME]
            evidence = self._evidence(block, shown)
            room = most * evidence.weights - evidence.totals
            out[start : start + len(block)] = confidence.exceeds(
                replace(evidence, totals=room), self._tuning(block)
            )
        return out

    def _blocks(self, some: Whole) -> Iterator[Whole]:
        for start in range(0, len(some), AT_A_TIME):
            yield some[start : start + AT_A_TIME]

    def _evidence(self, some: Any, shown: Shown) -> Evidence:
        parts = {name: getattr(self, name)[some] for name in EVIDENCE}
        waited = draws_waited(parts["totals"], parts["weights"], parts["variances"], shown.quiet[some])
        return Evidence(**parts, events=np.asarray(shown.events), waited=waited)

    def _tuning(self, some: Any) -> Tuning:
        return Tuning(np.asarray(self.alpha), self.rho[some], self.scale[some], grid_of(self.is_expected))


@dataclass(frozen=True, eq=False)
class Seen:
    """A batch of rounds, ready to be counted for any survivor against any arm.

    Attributes
    ----------
    kept : (n,) array of int
    geometry : RivalGeometry
        Of the plan.
    squares : list of (m,) arrays
        On the support: squared residuals and, in the asymptotic mode, the shares of them that arms should
        carry and doubts about that.
    sums : (m,) array
        Of residuals.
    values : (K,) array
        That residuals were taken from.
    total, rounds, largest, excess : float
        Σ of all squared residuals, rounds, the largest residual, and what in it is beyond light tails.
    wants_reach : bool
    """

    kept: Whole
    geometry: RivalGeometry
    squares: list[Array]
    sums: Array
    values: Array
    total: float
    rounds: float
    largest: float
    excess: float
    wants_reach: bool

    @classmethod
    def of(cls, run: AnytimeState, confidence: Confidence, geometry: RivalGeometry, tally: Tally) -> "Seen":
        """Look at a batch under a plan; what a contrast must wait for is decided before its draws."""
        s = geometry.support
        p = geometry.probabilities
        squares = [tally.squares[s]]
        if not confidence.is_exact:
            squares.append(expected_shares(p, run.relative[s], run.drawn[s]))
            squares.append(geometry.doubts(run.drawn[s] - tally.counts[s] + run.length * p))
        return cls(
            kept=np.flatnonzero(run.active),
            geometry=geometry,
            squares=squares,
            sums=tally.sums[s],
            values=run.values,
            total=float(tally.squares.sum()),
            rounds=float(tally.rounds),
            largest=float(tally.largest.max()),
            excess=float(run.excess),
            wants_reach=confidence.is_exact or float(run.excess) > 0,
        )

    def against(self, rival: int, own: tuple[int, int] | None) -> Batch:
        """Return the batch against an arm; its own entry, at a place, is against a rival of its own."""
        parts = self._parts(self.kept, rival)
        if own is not None:
            place, second = own
            for part, mine in zip(parts, self._parts(self.kept[[place]], second), strict=True):
                part[place] = mine[0]
        factor, reach, estimates, squares, pooled = parts
        return Batch(
            rounds=self.rounds,
            largest=self.largest,
            excess=self.excess,
            factor=factor,
            reach=reach,
            estimates=estimates,
            squares=squares,
            pooled=pooled,
        )

    def _parts(self, kept: Whole, rival: int) -> tuple[Array, Array, Array, Array, Array]:
        forms, estimates, reach = self.geometry.measured(
            kept, rival, self.squares, self.sums, wants_reach=self.wants_reach
        )
        estimates += self.rounds * (self.values[kept] - self.values[rival])
        factor = forms[0]
        pooled = np.zeros(len(kept))
        if len(forms) > 2:
            pooled = self.total * np.maximum(np.where(np.isfinite(factor), factor, 0.0), forms[2])
            factor = np.where(is_doubtful(factor, forms[3]), np.inf, factor)
        return factor, reach, estimates, forms[1], pooled


@dataclass(frozen=True, eq=False)
class Sequences:
    """The evidence of one replication.

    Attributes
    ----------
    tests : Against or None
        Of each survivor's claim to be best, against the leader of the moment; None before rounds count.
    led : tuple of Against
        Of each survivor against arms that have led, the newest last.
    leaders : int
        How many arms have been given such evidence so far: the m-th at δ/m(m + 1) of what bounds have.
    """

    tests: Against | None = None
    led: tuple[Against, ...] = ()
    leaders: int = 0

    def dump(self) -> dict[str, Any]:
        """Return the evidence as plain values; arrays that two of its parts share are written once."""
        every = list(self.led) if self.tests is None else [self.tests, *self.led]
        written = list[dict[str, Any]]()
        for place, one in enumerate(every):
            head = {"arm": one.arm, "alpha": one.alpha, "since": one.since, "is_expected": one.is_expected}
            same = [number for number, other in enumerate(every[:place]) if one.is_same_as(other)]
            if same:
                written.append({**head, "same": same[0]})
            else:
                written.append({**head, **{name: packed(getattr(one, name)) for name in ARRAYS}})
        return {"leaders": self.leaders, "counts": self.tests is not None, "sequences": written}

    @classmethod
    def load(cls, data: Mapping[str, Any], survivors: int) -> "Sequences":
        """Invert :meth:`dump`, given how many arms have survived."""
        every = list[Against]()
        for one in data["sequences"]:
            if "same" in one:
                arrays = {name: getattr(every[one["same"]], name) for name in ARRAYS}
            else:
                arrays = {name: unpacked(name, one[name], np.float64, (survivors,)) for name in ARRAYS}
            is_expected = bool(one.get("is_expected", False))
            every.append(
                Against(
                    int(one["arm"]),
                    float(one["alpha"]),
                    int(one["since"]),
                    **arrays,
                    is_expected=is_expected,
                )
            )
        if not data["counts"]:
            return cls(leaders=int(data["leaders"]))
        return cls(every[0], tuple(every[1:]), int(data["leaders"]))


@dataclass(frozen=True, eq=False)
class Leaders(AnytimeState):
    """Anytime elimination with evidence of survivors against leaders; leading axes (...) are replications.

    Methods that read the evidence work on a single replication, without leading axes.

    Attributes
    ----------
    sequences : (...) array of Sequences
    """

    sequences: NDArray[np.object_] = field(metadata=holds(np.object_, start=Sequences()))

    @classmethod
    def start(cls, policy: "AnytimeElimination", arms: ArmSet, batch: tuple[int, ...]) -> "Leaders":
        """Return the state before the first round; arms that are all the same settle the matter."""
        is_expected = policy.expect is not None
        state = cls.fresh(arms, batch, probabilities=wide_plan(arms), is_expected=is_expected)
        return state if arms.dimension else state.settle_at_once()

    @property
    def tests(self) -> Against | None:
        """Evidence on each survivor's claim to be best."""
        return self._evidence.tests

    @property
    def led(self) -> tuple[Against, ...]:
        """Evidence against arms that have led."""
        return self._evidence.led

    @property
    def _evidence(self) -> Sequences:
        found: Sequences = self.sequences.item()
        return found

    def _with_evidence(self, **changes: Any) -> "Leaders":
        return replace(self, sequences=np.asarray(replace(self._evidence, **changes)))

    @property
    def kept(self) -> Whole:
        """Survivors (n,), ascending: what entries of the evidence belong to."""
        return np.flatnonzero(self.active)

    def shown(self, against: Against) -> Shown:
        """Return what residuals have shown of the survivors and of the arm that they are held against."""
        quiet = quiet_arms(self.relative, self.drawn)
        rival = against.arm if against.arm >= 0 else self.leader
        return Shown(float(self.sizes.events), quiet[self.kept] | quiet[rival])

    def count(self, confidence: Confidence, tally: Tally, rivals: Whole) -> "Leaders":
        """Add a batch to the evidence that was begun before its plan."""
        tests = self.tests
        number = int(self.plans)
        leader = rival_of_most(rivals)
        if tests is None or number < tests.since:
            return self
        seen = Seen.of(self, confidence, RivalGeometry.of(self.arms, self.probabilities), tally)
        place = int(np.searchsorted(self.kept, leader))
        own = self.active[leader]
        batch = seen.against(leader, (place, int(rivals[leader])) if own else None)
        now = tests.and_of(batch, confidence)
        led = list[Against]()
        for one in self.led:
            if number < one.since:
                led.append(one)
            elif one.is_same_as(tests) and one.arm == leader:
                # While the first leader leads, its evidence and the tests are the same sums.
                led.append(one.with_sums_of(now))
            else:
                led.append(one.and_of(seen.against(one.arm, None), confidence))
        return self._with_evidence(tests=now, led=tuple(led))

    def eliminate(self, confidence: Confidence) -> "Leaders":
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
        return replace(self, active=active)._with_evidence(tests=fewer, led=led)

    def bound_lead(self, policy: "AnytimeElimination", leader: Whole, others: Mask) -> Array:
        """Return the largest upper bound of the others (K,) over the leader; +inf where it has not led."""
        if not others.any():
            return np.zeros(())
        kept = self.kept
        # Bounds of very many arms take long; where they cannot end the experiment, nobody waits for them.
        is_asked = policy.epsilon > 0 or len(kept) <= SHOWN
        for one in self.led:
            if one.arm == leader and is_asked:
                return np.asarray(one.highest(policy.confidence, self.shown(one), others[kept]))
        return np.full((), np.inf)

    def begin_evidence(self, policy: "AnytimeElimination", pilot: Array) -> "Leaders":
        """Begin the tests, and the evidence against the first leader, which is theirs while it leads."""
        if self.declared >= 0:
            return self
        for_arms, for_bounds = shares(policy)
        leader = int(self.leader)
        second = int(rivals_of(self.active, leader, self.values)[leader])
        tests = self._begin_against(policy, leader, second, pilot, for_arms)
        tests = replace(tests, arm=-1)
        return self._with_evidence(tests=tests, led=(tests.copied(leader, for_bounds / 2.0),), leaders=1)

    def follow_leader(self, policy: "AnytimeElimination") -> "Leaders":
        """Begin evidence against the leader if there is none; the oldest is forgotten if there is much."""
        if self.declared >= 0 or any(one.arm == self.leader for one in self.led):
            return self
        count = self._evidence.leaders + 1
        # Σ 1/(m(m + 1)) = 1: however many arms come to lead, their bounds spend no more than their share.
        alpha = shares(policy)[1] / (count * (count + 1))
        mine = self._begin_against(policy, int(self.leader), None, self.probabilities, alpha)
        return self._with_evidence(led=(*self.led, mine)[-REMEMBERED:], leaders=count)

    def _begin_against(
        self, policy: "AnytimeElimination", rival: int, second: int | None, seen: Array, alpha: float
    ) -> Against:
        """Return evidence against an arm that begins with the plan in force, tuned by what was `seen` (K,).

        `second`, if any, is the rival of the arm itself.
        """
        confidence = policy.confidence
        kept = self.kept
        place = int(np.searchsorted(kept, rival))
        geometry = RivalGeometry.of(self.arms, self.probabilities)
        before = RivalGeometry.of(self.arms, seen)
        gap = np.abs(self.values[kept] - self.values[rival])
        forms, _, reach = geometry.measured(kept, rival, wants_reach=confidence.is_exact)
        variance = forms[0]
        variance_before = before.variances(kept, rival)
        if second is not None:
            own = kept[[place]]
            gap[place] = abs(self.values[rival] - self.values[second])
            variance[place] = geometry.variances(own, second)[0]
            variance_before[place] = before.variances(own, second)[0]
            reach[place] = geometry.measured(own, second, wants_reach=confidence.is_exact)[2][0]
        gaps = cautious(gap, variance_before, float(self.noise) / int(self.watched), policy.expect)
        noise_and_rounds = (float(self.noise), int(self.rounds))
        tuning = tuned(np.asarray(alpha), gaps, variance, reach, policy, noise_and_rounds)
        # `tuned` gives the axes of pairs; one replication has entries (n,).
        tuning = replace(tuning, rho=tuning.rho.reshape(-1), scale=tuning.scale.reshape(-1))
        return Against.fresh(rival, alpha, int(self.plans), tuning)

    def estimates(self) -> Array:
        """Return estimated rewards (K,), up to a common level; 0 for arms that are out and not played."""
        wanted = self.active.copy()
        wanted[playable(self.arms)] = True
        some = np.flatnonzero(wanted)
        values = np.zeros(len(self.arms))
        values[some] = linear_values(self.arms, some, self.coefficients)
        return values

    def centred_sums(self, counts: Whole, sums: Array) -> tuple[Array, Array]:
        """Return Σ x̃x̃ᵀ and Σ x̃·reward of rounds under the plan in force."""
        return few_centred_sums(self.arms, self.probabilities, counts, sums)

    def differ_from(self, leader: Whole) -> Mask:
        """Tell which survivors (K,) differ from the leader in some feature."""
        features = self.arms.features
        kept = self.kept
        differ = features[kept, 0] != features[leader, 0]
        # Most arms differ in the first feature already: the others are looked at only where it is the same.
        alike = np.flatnonzero(~differ)
        differ[alike] = np.any(features[kept[alike]] != features[leader], axis=1)
        out = np.zeros(len(self.arms), dtype=np.bool_)
        out[kept] = differ
        return out

    def batch_share(self, policy: "AnytimeElimination") -> Array:
        """Return the share of the rounds so far that the next batch adds."""
        return np.asarray(max(policy.growth, min(RARER * policy.growth, CALM)))

    def redesign(self, policy: "AnytimeElimination") -> Array:
        """Return the distribution (K,) to play next."""
        leader = int(self.leader)
        others = np.flatnonzero(self.differ_from(self.leader))
        gaps = np.maximum(self.values[leader] - self.values[others], 0.0)
        information = self.gram + self.ridge * np.eye(len(self.gram))
        race = Race.of(self.arms, leader, others, gaps, information)
        if policy.goal == "earn":
            return earning_plan_of_many(race)
        return identifying_plan_of_many(race, policy.mixing, self.probabilities)

    def upper_bounds(self, confidence: Confidence, of: int | None, over: int | None) -> Array:
        """Return bounds (..., K, K) on what arms can be better by, or one row or column (..., K)."""
        k = len(self.arms)
        is_whole = of is None and over is None
        shape = (k, k) if is_whole else (k,)
        size = 8.0 * float(np.prod((*self.batch, *shape)))
        remedy = "ask for one row or one column by `of` or `over`"
        check_fits(f"upper_bounds of all pairs of {k:,} arms", size, remedy)
        out = np.full((*self.batch, *shape), np.inf)
        for at in np.ndindex(self.batch):
            run = self[at]
            table = out[at]
            for one in run.led:
                if of is not None:
                    if run.active[of]:
                        place = np.searchsorted(run.kept, [of])
                        bound = one.only(place).upper_bounds(confidence, run.shown(one).only(place))
                        table[one.arm] = bound[0]
                elif over in (None, one.arm):
                    bounds = one.upper_bounds(confidence, run.shown(one))
                    table[(run.kept, one.arm) if is_whole else run.kept] = bounds
            if is_whole:
                np.fill_diagonal(table, 0.0)
            else:
                table[of if over is None else over] = 0.0
        return out

    def dump(self) -> dict[str, Any]:
        """Return the state as plain values that survive ``json.dumps`` exactly; long arrays are packed."""
        runs = list[dict[str, Any]]()
        tallies = list[dict[str, Any]]()
        for at in np.ndindex(self.batch):
            run = self[at]
            packs = {name: one.pack(getattr(run, name)) for name, one in self._plain_fields()}
            runs.append({**packs, **run._evidence.dump()})
            tallies.append({name: sparse(getattr(run.tally, name)) for name in TALLIED})
        return {**stamp(), MARK: VERSION, "batch": list(self.batch), "runs": runs, "tallies": tallies}

    @classmethod
    def load(cls, arms: ArmSet, data: Mapping[str, Any]) -> "Leaders":
        """Invert :meth:`dump`."""
        if data[MARK] != VERSION:
            raise ParameterError(f"data[{MARK!r}] is {data[MARK]!r}; this version reads {VERSION}")
        batch = tuple(int(size) for size in data["batch"])
        arrays = dict[str, Any]()
        for name, one in cls._plain_fields():
            values = [one.unpack(name, run.get(name, one.missing), arms) for run in data["runs"]]
            arrays[name] = np.array(values, dtype=one.dtype).reshape((*batch, *one.shape(arms)))
        active = arrays["active"].reshape((-1, len(arms)))
        sequences = np.empty(len(active), dtype=np.object_)
        for place, run in enumerate(data["runs"]):
            sequences[place] = Sequences.load(run, int(np.count_nonzero(active[place])))
        tallied = [
            np.array([unsparse(name, one[name], dtype, len(arms)) for one in data["tallies"]])
            for name, dtype in TALLIED.items()
        ]
        tally = Tally(*(part.reshape((*batch, len(arms))) for part in tallied))
        return cls(arms=arms, tally=tally, sequences=sequences.reshape(batch), **arrays).frozen()

    @classmethod
    def _plain_fields(cls) -> list[tuple[str, Description]]:
        """Return names and descriptions of the fields that hold numbers."""
        return [pair for pair in cls.descriptions().items() if pair[1].dtype is not np.object_]


def rival_of_most(rivals: Whole) -> int:
    """Return the leader, given the rival of each arm: the one that most arms are tested against."""
    # Every arm but the leader has the leader for its rival, so two of any three arms name it.
    first = rivals[:3].tolist()
    return int(max(first, key=first.count))
