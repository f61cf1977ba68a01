"""Evidence of survivors against arms that have led: memory and time in K, for very many arms.

Sums of arms that are dropped are forgotten. What is remembered of every arm is which rivals its test, or the
proof that dropped it, rests on: if such a rival is retired, the test begins again with a share of δ of its
own, and an arm that was dropped comes back.
"""

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
from orthobandit.estimate import Tally
from orthobandit.estimate.augmented import RivalGeometry, is_doubtful
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
from orthobandit.policy.anytime.delta import RESERVE, cautious, grid_of, shares, tuned
from orthobandit.policy.anytime.fields import EVIDENCE, Description, Stage, holds
from orthobandit.policy.anytime.plans import (
    Race,
    earning_plan_of_many,
    identifying_plan_of_many,
    linear_values,
    playable,
    wide_plan,
)
from orthobandit.policy.anytime.stages import CALM, AnytimeState, rivals_of
from orthobandit.policy.contract import PlanRecord

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
# Arms up to which all have estimates, those included that were dropped and that no plan plays: a live
# experiment may show them again beside others, as the arm that guardrails compare with.
ESTIMATED = 100_000
ARRAYS = (*EVIDENCE, "rho", "scale")  # of evidence against an arm, one entry a survivor
Bits = NDArray[np.uint8]  # one bit an arm
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
    alpha : float, or (n,) array
        Probability that the bound of any one survivor is ever wrong; an array once tests have begun again.
    since : int, or (n,) array of int
        Number of the first plan whose rounds count: the arm was chosen before. An array once some entries
        have begun later than others.
    totals, weights, variances, slack, pooled, peaks : (n,) arrays
        See :class:`~orthobandit.estimate.confidence.evidence.Evidence`; one entry a survivor, in ascending
        order.
    rho, scale : (n,) arrays
        See :class:`~orthobandit.estimate.confidence.evidence.Tuning`.
    is_expected : bool
        Whether boundaries are tuned for a gap that was expected before the first round.
    """

    arm: int
    alpha: float | Array
    since: int | Whole
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
    def fresh(cls, arm: int, alpha: float | Array, since: int, tuning: Tuning) -> "Against":
        """Return the sums before the first round; one array of zeros serves all of them."""
        nothing = np.zeros(len(tuning.rho))
        nothing.flags.writeable = False
        sums = dict.fromkeys(EVIDENCE, nothing)
        is_expected = isinstance(tuning.grid, LogBets)
        return cls(arm, alpha, since, **sums, rho=tuning.rho, scale=tuning.scale, is_expected=is_expected)

    def copied(self, arm: int, alpha: float | Array) -> "Against":
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
        parts: dict[str, Any] = {name: getattr(self, name)[left] for name in ARRAYS}
        for name in ("alpha", "since"):
            if np.ndim(getattr(self, name)):
                parts[name] = getattr(self, name)[left]
        return replace(self, **parts)

    def rearranged(self, places: Whole, since: int, alpha: float | Array | None = None) -> "Against":
        """Return the entries at these places (n,); at −1, entries that begin with a plan.

        These have the level `alpha`; by default that of all others.
        """
        is_old = places >= 0
        if is_old.all():
            return self.only(places)
        parts = dict[str, Any]()
        for name in ARRAYS:
            parts[name] = np.full(len(places), 1.0 if name in ("rho", "scale") else 0.0)
            parts[name][is_old] = getattr(self, name)[places[is_old]]
        begun = np.broadcast_to(self.since, self.totals.shape)
        parts["since"] = np.where(is_old, begun[places], since)
        if alpha is not None:
            levels = np.broadcast_to(self.alpha, self.totals.shape)
            parts["alpha"] = np.where(is_old, levels[places], alpha)
        return replace(self, **parts)

    def has_begun(self, number: int) -> Mask:
        """Tell which entries (n,) count rounds of the plan with this number."""
        return np.broadcast_to(np.asarray(self.since) <= number, self.totals.shape)

    def lost(self, confidence: Confidence, shown: Shown) -> Mask:
        """Tell which survivors (n,) are proven worse than the other arm."""
        out = np.zeros(len(self.totals), dtype=np.bool_)
        against = np.maximum(-self.totals, 0.0)
        near = confidence.may_exceed(against, self.variances, self.alpha, self.scale)
        for block in self._blocks(np.flatnonzero((self.totals < 0) & near)):
            evidence = self._evidence(block, shown)
            out[block] = confidence.exceeds(replace(evidence, totals=-evidence.totals), self._tuning(block))
        return out

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
            # A form that should be 0 may be below it by rounding.
            far = 4.0 * np.sqrt(np.maximum(self.variances[rest], 0.0)) + (
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
        alpha = np.asarray(self.alpha)
        alpha = alpha[some] if alpha.ndim else alpha
        return Tuning(alpha, self.rho[some], self.scale[some], grid_of(self.is_expected))


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

    def against(self, rival: int, own: tuple[int, int] | None, counts: Mask) -> Batch:
        """Return the batch against an arm for the survivors (n,) that it counts for.

        The arm's own entry, at a place, is against a rival of its own.
        """
        parts = self._parts(self.kept, rival)
        if own is not None:
            place, second = own
            for part, mine in zip(parts, self._parts(self.kept[[place]], second), strict=True):
                part[place] = mine[0]
        factor, reach, estimates, squares, pooled = parts
        factor = factor if counts.all() else np.where(counts, factor, np.inf)
        return Batch(
            rounds=self.rounds,
            largest=self.largest,
            excess=self.excess,
            factor=factor,
            square=factor,
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
    rests_on : mapping of bits
        For each rival, the arms whose tests, or proofs that dropped them, rest on comparisons with it.
    """

    tests: Against | None = None
    led: tuple[Against, ...] = ()
    leaders: int = 0
    rests_on: Mapping[int, Bits] = field(default_factory=dict)

    def resting_on(self, rival: int, count: int) -> Mask:
        """Tell which of all arms (K,) have been compared with a rival for what is known of them."""
        if rival not in self.rests_on:
            return np.zeros(count, dtype=np.bool_)
        return _arms_of(self.rests_on[rival], count)

    def also_resting_on(self, rival: int, arms: Mask) -> "Sequences":
        """Return the evidence with a note that these arms (K,) were compared with a rival."""
        bits = np.packbits(arms)
        if rival in self.rests_on:
            bits |= self.rests_on[rival]
        return replace(self, rests_on={**self.rests_on, rival: bits})

    def resting_on_none(self, arms: Mask) -> "Sequences":
        """Return the evidence with a note that nothing is known of these arms (K,) any more."""
        others = ~np.packbits(arms)
        noted = {rival: bits & others for rival, bits in self.rests_on.items()}
        return replace(self, rests_on={rival: bits for rival, bits in noted.items() if bits.any()})

    def beaten_since(self, before: "Sequences", dropped: Mask) -> Whole:
        """Return which arm a pair has shown each of these arms (K,) to be worse than; −1 for the others."""
        rivals = sorted({*self.rests_on, *before.rests_on})
        resting = [self.resting_on(rival, len(dropped)) for rival in rivals]
        rested = [before.resting_on(rival, len(dropped)) for rival in rivals]
        # A pair puts its own proof in the place of all that an arm has rested on.
        is_new = np.any([now != then for now, then in zip(resting, rested, strict=True)], axis=0)
        beaten_by = np.full(len(dropped), -1)
        for rival, now in zip(rivals, resting, strict=True):
            beaten_by[now & is_new & dropped] = rival
        return beaten_by

    def with_room_for(self, before: int, count: int) -> "Sequences":
        """Return the notes on arms with room for more of them."""
        noted = {
            rival: np.packbits(np.pad(_arms_of(bits, before), (0, count - before)))
            for rival, bits in self.rests_on.items()
        }
        return replace(self, rests_on=noted)

    def dump(self) -> dict[str, Any]:
        """Return the evidence as plain values; arrays that two of its parts share are written once."""
        every = list(self.led) if self.tests is None else [self.tests, *self.led]
        written = list[dict[str, Any]]()
        for place, one in enumerate(every):
            head = {
                "arm": one.arm,
                "alpha": packed(one.alpha) if isinstance(one.alpha, np.ndarray) else one.alpha,
                "since": packed(one.since) if isinstance(one.since, np.ndarray) else one.since,
                "is_expected": one.is_expected,
            }
            same = [number for number, other in enumerate(every[:place]) if one.is_same_as(other)]
            if same:
                written.append({**head, "same": same[0]})
            else:
                written.append({**head, **{name: packed(getattr(one, name)) for name in ARRAYS}})
        return {
            "leaders": self.leaders,
            "counts": self.tests is not None,
            "sequences": written,
            "rests_on": {str(rival): packed(bits, compressed=True) for rival, bits in self.rests_on.items()},
        }

    @classmethod
    def load(cls, data: Mapping[str, Any], survivors: int, count: int) -> "Sequences":
        """Invert :meth:`dump`, given how many arms there are, and how many have survived."""
        every = list[Against]()
        for one in data["sequences"]:
            if "same" in one:
                arrays = {name: getattr(every[one["same"]], name) for name in ARRAYS}
            else:
                arrays = {name: unpacked(name, one[name], np.float64, (survivors,)) for name in ARRAYS}
            alpha = one["alpha"]
            since = one["since"]
            every.append(
                Against(
                    int(one["arm"]),
                    alpha if isinstance(alpha, float) else unpacked("alpha", alpha, np.float64, (survivors,)),
                    since if isinstance(since, int) else unpacked("since", since, np.int64, (survivors,)),
                    **arrays,
                    is_expected=bool(one["is_expected"]),
                )
            )
        if not data["counts"]:
            return cls(leaders=int(data["leaders"]))
        size = (count + 7) // 8
        noted = {
            int(rival): unpacked("rests_on", bits, np.uint8, (size,))
            for rival, bits in data["rests_on"].items()
        }
        return cls(every[0], tuple(every[1:]), int(data["leaders"]), noted)


@dataclass(frozen=True, eq=False)
class Leaders(AnytimeState):
    """Anytime elimination with evidence of survivors against leaders; leading axes (...) are replications.

    Methods that read the evidence work on a single replication, without leading axes.

    Attributes
    ----------
    restarts : (..., K) array of int
        How often the test of each arm has begun again. The first time takes half of what is kept in reserve
        of δ, the second a quarter, and so on.
    sequences : (...) array of Sequences
    """

    restarts: Whole = field(metadata=holds(np.int64, "K", is_sparse=True))
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
        if tests is None or not any(one.has_begun(number).any() for one in (tests, *self.led)):
            return self
        leader = rival_of_most(rivals)
        seen = Seen.of(self, confidence, RivalGeometry.of(self.arms, self.probabilities), tally)
        place = int(np.searchsorted(self.kept, leader))
        own = (place, int(rivals[leader])) if self.active[leader] else None
        counts = self._tests_counted(tests.has_begun(number), leader, own)
        now = tests.and_of(seen.against(leader, own, counts), confidence)
        led = list[Against]()
        for one in self.led:
            has_begun = one.has_begun(number)
            if not has_begun.any():
                led.append(one)
            elif one.is_same_as(tests) and one.arm == leader:
                # While the first leader leads, its evidence and the tests are the same sums.
                led.append(one.with_sums_of(now))
            else:
                led.append(one.and_of(seen.against(one.arm, None, has_begun), confidence))
        run = self._with_evidence(tests=now, led=tuple(led))
        return run._note_rivals(leader, own, counts)

    def _tests_counted(self, has_begun: Mask, leader: int, own: tuple[int, int] | None) -> Mask:
        """Tell which tests (n,) rounds count for: not those against an arm that has been retired since."""
        if self.retired[leader]:
            return np.zeros_like(has_begun)
        if own is not None and self.retired[own[1]]:
            return np.asarray(has_begun & (np.arange(len(has_begun)) != own[0]))
        return has_begun

    def _note_rivals(self, leader: int, own: tuple[int, int] | None, counts: Mask) -> "Leaders":
        """Note which rivals the tests (n,) that rounds were counted for rest on."""
        tested = np.zeros(len(self.arms), dtype=np.bool_)
        tested[self.kept[counts]] = True
        evidence = self._evidence
        if own is not None and tested[leader]:
            tested[leader] = False
            evidence = evidence.also_resting_on(own[1], np.arange(len(tested)) == leader)
        return replace(self, sequences=np.asarray(evidence.also_resting_on(leader, tested)))

    def eliminate(self, confidence: Confidence) -> "Leaders":
        """Drop every arm that fails its test, or that a survivor which has led is proven better than."""
        kept = self.kept
        tests = self.tests
        if tests is None:
            return self
        lost = tests.lost(confidence, self.shown(tests))
        beaten_by = np.full(len(self.active), -1)
        for one in self.led:
            if self.active[one.arm] and not (one.is_same_as(tests) and np.all(one.alpha <= tests.alpha)):
                worse = one.lost(confidence, self.shown(one)) & (kept != one.arm)
                lost |= worse
                beaten_by[kept[worse]] = one.arm
        # Proofs in a circle contradict each other: some interval has failed, and nothing follows.
        if not lost.any() or lost.all():
            return self
        active = np.zeros_like(self.active)
        active[kept[~lost]] = True
        return self._with_survivors_alone(active, beaten_by)

    def drop(self, record: PlanRecord) -> "Leaders":
        """Return one run with the survivors of a record alone, and their evidence."""
        if not np.any(self.active & ~record.active):
            return self.changed(active=record.active)
        return self._with_survivors_alone(record.active, record.details["beaten_by"])

    def _with_survivors_alone(self, active: Mask, beaten_by: Whole) -> "Leaders":
        """Return one run in which fewer arms (K,) survive; `beaten_by` is −1 where a test dropped the arm."""
        evidence = self._evidence
        tests = evidence.tests
        if tests is None:
            return self.changed(active=active)
        stays = active[self.kept]
        fewer = tests.only(stays)
        led = tuple(
            one.with_sums_of(fewer) if one.is_same_as(tests) else one.only(stays)
            for one in evidence.led
            if active[one.arm]
        )
        for one in evidence.led:
            out = beaten_by == one.arm
            if out.any():
                # Whatever its test says, an arm that a pair has dropped is out as long as the other is in.
                evidence = evidence.resting_on_none(out).also_resting_on(one.arm, out)
        evidence = replace(evidence, tests=fewer, led=led)
        return replace(self, active=active, sequences=np.asarray(evidence))

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

    def begin(self, begins_to_count: Mask, record: PlanRecord) -> "Leaders":
        """Begin the tests, or evidence against the leader, that began with the record's plan, if any did."""
        details = record.details
        if "bound_alpha" not in details or not details["bound_alpha"]:
            return self
        leader = int(record.leader)
        tuning = Tuning(
            details["bound_alpha"],
            details["rho"][self.kept],
            details["scale"][self.kept],
            grid_of(bool(self.is_expected)),
        )
        alpha = float(details["bound_alpha"])
        count = self._evidence.leaders + 1
        if not begins_to_count:
            mine = Against.fresh(leader, alpha, int(self.plans), tuning)
            return self._with_evidence(led=(*self.led, mine)[-REMEMBERED:], leaders=count)
        tests = Against.fresh(-1, float(details["test_alpha"]), int(self.plans), tuning)
        return self._with_evidence(tests=tests, led=(tests.copied(leader, alpha),), leaders=count)

    def details_since(self, counted: "Leaders") -> Mapping[str, NDArray[Any]]:
        """Return which arm beat each that the newest plan dropped, and the tuning of what began with it."""
        details = dict[str, NDArray[Any]]()
        dropped = counted.active & ~self.active
        if dropped.any():
            details["beaten_by"] = self._evidence.beaten_since(counted._evidence, dropped)
        if self._evidence.leaders > counted._evidence.leaders:
            newest = self.led[-1]
            tests = self.tests if counted.tests is None else None
            details["test_alpha"] = np.asarray(0.0 if tests is None else tests.alpha)
            details["bound_alpha"] = np.asarray(newest.alpha)
            for name in ("rho", "scale"):
                details[name] = np.zeros(len(dropped))
                details[name][self.kept] = getattr(newest, name)
        return details

    def without_arm(self, policy: "AnytimeElimination", arm: int) -> "Leaders":
        """Return one run without an arm; what rested on it begins again with the plan to come.

        Tests of arms that have met it begin again, and arms that were dropped by such a test, or by a pair
        with it, come back. Sums of arms that come back were forgotten, so all bounds begin again with theirs.
        """
        retired = self.retired | (np.arange(len(self.arms)) == arm)
        again = self._evidence.resting_on(arm, len(retired)) & ~retired
        active = (self.active | again) & ~retired
        if not active.any():
            # All others were dropped for the sake of arms that are gone: nothing is known of them.
            active = ~retired
            again = ~retired
        return replace(self, retired=retired)._with_survivors(policy, active, again)

    def _with_survivors(self, policy: "AnytimeElimination", active: Mask, again: Mask) -> "Leaders":
        """Return one run in which these arms (K,) survive, and tests of some begin again.

        Tests of survivors that were out so far must be among those that begin again.
        """
        tests = self.tests
        if tests is None:
            return replace(self, active=active)
        restarts = self.restarts + again
        before = self.kept
        kept = np.flatnonzero(active)
        at = np.searchsorted(before, kept)
        next_plan = int(self.plans) + 1
        alpha = RESERVE * policy.delta * 2.0 ** -restarts[kept].astype(np.float64)
        # With arms that come back, bounds begin anew for all, at the level of the next leader in line.
        is_back = bool(np.any(active & ~self.active))
        led = () if is_back else tuple(one.only(at) for one in self.led if active[one.arm])
        evidence = replace(
            self._evidence.resting_on_none(again | self.retired),
            tests=tests.rearranged(np.where(again[kept], -1, at), next_plan, alpha),
            led=led,
        )
        return replace(self, active=active, restarts=restarts, sequences=np.asarray(evidence))

    def conclude(self, policy: "AnytimeElimination", arm: int, active: Mask) -> "Leaders":
        """Return one run in which somebody else has declared an arm, and these arms (K,) survive."""
        again = np.asarray(active & ~self.active)
        out = np.asarray(self.active & ~active)
        run = self._with_survivors(policy, active, again)
        # Arms that are out by that claim alone come back should the arm be retired.
        return replace(run, sequences=np.asarray(run._evidence.also_resting_on(arm, out)))

    def with_arms(self, policy: "AnytimeElimination", arms: ArmSet) -> "Leaders":
        """Return one run with more arms, whose tests and bounds begin with the plan to come.

        The row of a new arm has all of its δ before it, and those of the others spend nothing: they are
        compared with new arms as soon as these lead, as with any leader.
        """
        before = len(self.arms)
        run = self.grow(arms)
        tests = self.tests
        if tests is None:
            return run
        new = len(arms) - before
        places = np.append(np.arange(len(tests.totals)), np.full(new, -1))
        next_plan = int(self.plans) + 1
        evidence = replace(
            self._evidence.with_room_for(before, len(arms)),
            tests=tests.rearranged(places, next_plan, shares(policy)[0]),
            led=tuple(one.rearranged(places, next_plan) for one in self.led),
        )
        return replace(run, sequences=np.asarray(evidence))

    def tune_new(self, policy: "AnytimeElimination") -> "Leaders":
        """Tune the boundaries of entries that have counted nothing yet, and begin with the plan in force."""
        if self.stage < Stage.COUNTING or self.declared >= 0:
            return self
        tests = self.tests
        if tests is None:
            return self.begin_evidence(policy, self.probabilities)
        leader = int(self.leader)
        second = int(rivals_of(self.active, leader, self.values)[leader])
        tests = self._tuned_anew(policy, tests, leader, second)
        led = tuple(self._tuned_anew(policy, one, one.arm, None) for one in self.led)
        return self._with_evidence(tests=tests, led=led).follow_leader(policy)

    def _tuned_anew(
        self, policy: "AnytimeElimination", one: Against, rival: int, second: int | None
    ) -> Against:
        fresh = one.weights == 0
        if not fresh.any():
            return one
        anew = self._begin_against(policy, rival, second, self.probabilities, one.alpha)
        return replace(
            one,
            rho=np.where(fresh, anew.rho, one.rho),
            scale=np.where(fresh, anew.scale, one.scale),
            since=np.where(fresh, int(self.plans), one.since),
        )

    def _begin_against(
        self,
        policy: "AnytimeElimination",
        rival: int,
        second: int | None,
        seen: Array,
        alpha: float | Array,
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
        """Return estimated rewards (K,), up to a common level.

        Of very many arms, 0 for those that are out and not played.
        """
        wanted = self.active.copy()
        wanted[playable(self.arms)] = True
        some = np.flatnonzero(wanted)
        values = np.zeros(len(self.arms))
        coefficients = self.coefficients
        values[some] = linear_values(self.arms, some, coefficients)
        if len(some) < len(values) <= ESTIMATED:
            rest = np.flatnonzero(~wanted)
            values[rest] = linear_values(self.arms, rest, coefficients)
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
        if not self.retired.any():
            return self._plan_for(policy, race, self.probabilities)
        left = ~self.retired
        p = np.zeros(len(self.arms))
        p[left] = self._plan_for(policy, race.without(self.retired), self.probabilities[left])
        return p

    def _plan_for(self, policy: "AnytimeElimination", race: Race, now: Array) -> Array:
        if policy.goal == "earn":
            return earning_plan_of_many(race)
        return identifying_plan_of_many(race, policy.mixing, now)

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
        return {**stamp(), MARK: True, "batch": list(self.batch), "runs": runs, "tallies": tallies}

    @classmethod
    def load(cls, arms: ArmSet, data: Mapping[str, Any]) -> "Leaders":
        """Invert :meth:`dump`."""
        batch = tuple(int(size) for size in data["batch"])
        arrays = dict[str, Any]()
        for name, one in cls._plain_fields():
            values = [one.unpack(name, run[name], arms) for run in data["runs"]]
            arrays[name] = np.array(values, dtype=one.dtype).reshape((*batch, *one.shape(arms)))
        active = arrays["active"].reshape((-1, len(arms)))
        sequences = np.empty(len(active), dtype=np.object_)
        for place, run in enumerate(data["runs"]):
            sequences[place] = Sequences.load(run, int(np.count_nonzero(active[place])), len(arms))
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


def _arms_of(bits: Bits, count: int) -> Mask:
    """Return a mask (K,) of the arms whose bits are set."""
    return np.unpackbits(bits, count=count).astype(np.bool_)


def rival_of_most(rivals: Whole) -> int:
    """Return the leader, given the rival of each arm: the one that most arms are tested against."""
    # Every arm but the leader has the leader for its rival, so two of any three arms name it.
    first = rivals[:3].tolist()
    return int(max(first, key=first.count))
