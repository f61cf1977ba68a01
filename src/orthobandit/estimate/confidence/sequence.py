"""Intervals for any contrasts that hold at all times at once, from (plan, tally) pairs alone."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_fraction, check_pairs, check_positive, check_whole
from orthobandit._foundation.json_arrays import brief
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError, TallyError
from orthobandit.estimate.augmented import Pulls
from orthobandit.estimate.confidence.boundaries import tightest_rho
from orthobandit.estimate.confidence.evidence import (
    Batch,
    Carried,
    Evidence,
    Seen,
    Steps,
    Tuning,
    expected_shares,
    least_draws,
)
from orthobandit.estimate.confidence.modes import Asymptotic, Confidence, check_tells_sizes
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS
from orthobandit.estimate.plan import Centre, Plan
from orthobandit.estimate.tally import Tally

SIDES = (1, 2)
LINEAR = 1e-8  # part of their spread that values may be off a linear function of the features by
ROUNDING = 1e-15  # part of their size that rounding may take them off by
MOST_PAIRED = 40  # arms; with more, only gaps to the reference arm are followed


@dataclass(frozen=True, eq=False)
class ContrastSequence:
    """A confidence sequence for each of m contrasts of arms, whatever plans are played and whatever shifts.

    Each contrast is Σ_a c_a x_aᵀθ with Σ_a c_a = 0. Begin with :meth:`start`, add every plan with its tally,
    and look at :meth:`intervals` as often as you like. Intervals hold if

    - contrasts are fixed before any of the rounds is looked at. "The leader against the rest", chosen from
      the same rounds, is not: take all pairs, with `delta` divided by their number;
    - plans are added in the order of their draws, with all rounds of each, and not as rewards arrive: which
      rewards come early can depend on the arm;
    - each plan was fixed before its rounds were drawn.

    Nothing in the data shows whether it was so.

    Attributes
    ----------
    arms : ArmSet
    coefficients : (m, K) array
    confidence : Confidence
    tuning : Tuning
        α of a boundary, ρ and, in exact modes, the scale; the last two are fixed by the first plan that can
        estimate a contrast.
    evidence : Evidence
    sides : {1, 2}
    tightest : (float, int)
        Standard deviation of a residual, and rounds, that boundaries are made tightest for.
    seen : Seen
        What residuals were like: how large, of which arms.
    carried : Carried
        Which arms the variance of each contrast rests on.

    Examples
    --------
    >>> arms = ArmSet.one_hot(3)
    >>> sequence = ContrastSequence.start(arms, [[1, 0], [2, 0]])
    >>> plan = Plan([0.4, 0.3, 0.3], rounds=6)
    >>> sequence = sequence.add(plan, Tally.of([0, 1, 2, 0, 1, 2], [0.0, 1.0, 2.0, 0.1, 1.1, 1.9], 3))
    >>> sequence.evidence.estimates.round(3).tolist()
    [1.125, 2.125]
    """

    arms: ArmSet
    coefficients: Array
    confidence: Confidence
    tuning: Tuning
    evidence: Evidence
    sides: int
    tightest: tuple[float, int]
    seen: Seen
    carried: Carried

    __repr__ = brief

    @classmethod
    def start(
        cls,
        arms: ArmSet,
        pairs: ArrayLike | None = None,
        confidence: Confidence | None = None,
        delta: ArrayLike = 0.05,
        *,
        coefficients: ArrayLike | None = None,
        sides: int = 2,
        noise: float = 1.0,
        rounds: int = 1000,
    ) -> "ContrastSequence":
        """Return the sequence before the first round.

        Parameters
        ----------
        arms : ArmSet
        pairs : array-like (m, 2) of int
            Arms (i, j), for (x_i − x_j)ᵀθ.
        confidence : Confidence, optional
            :class:`Asymptotic` by default.
        delta : float or (m,)
            Probability of ever being wrong, for each contrast; divide by m for all of them at once.
        coefficients : array-like (m, K)
            Instead of `pairs`: any contrasts of the arms; each row sums to 0.
        sides : {1, 2}
            1 for lower bounds alone, which are narrower.
        noise, rounds : float, int
            Guesses of the standard deviation of residuals and of the rounds it will take. Intervals are
            tightest there, and valid whatever they are.
        """
        if (pairs is None) == (coefficients is None):
            raise ParameterError("give pairs of arms or coefficients, one of the two")
        rows = _rows_of_pairs(arms, pairs) if pairs is not None else _checked_rows(arms, coefficients)
        if sides not in SIDES:
            raise ParameterError(f"sides={sides!r} must be 1 or 2")
        check_positive("noise", noise)
        check_whole("rounds", rounds)
        levels = np.broadcast_to(np.asarray(delta, dtype=np.float64), len(rows))
        for level in levels:
            check_fraction("delta", float(level))
        zeros = np.zeros(len(rows))
        mode = Asymptotic() if confidence is None else confidence
        check_tells_sizes(mode)
        return cls(
            arms,
            rows,
            mode,
            Tuning(levels / sides, zeros, zeros),
            Evidence(zeros, zeros, zeros, zeros),
            sides,
            (noise, rounds),
            Seen.start(len(arms)),
            Carried.start(len(rows), len(arms)),
        )

    def centre(self, values: ArrayLike | None = None) -> Centre:
        """Return what a plan of yours should carry so that residuals keep to the declared range.

        Parameters
        ----------
        values : array-like (K,), optional
            Estimated rewards, linear in the features and known before the plan begins; 0 by default.
        """
        given = np.zeros(len(self.arms)) if values is None else np.asarray(values, dtype=np.float64)
        low, high = self.confidence.range
        if np.ptp(given) > high - low:
            raise ParameterError(f"values spread by {np.ptp(given):g}, more than the declared range allows")
        return self.confidence.centre(given, np.ones(len(given), dtype=np.bool_))

    def add(self, plan: Plan, tally: Tally, pulls: Pulls | None = None) -> "ContrastSequence":
        """Return the sequence with these rounds; a contrast that the plan cannot estimate learns nothing.

        Parameters
        ----------
        plan : Plan
            Fixed before its rounds; exact modes need one with :meth:`centre`, or that of a policy in the same
            mode. Or G plans (G, K) that were in force side by side, with one centre.
        tally : Tally
            Of rewards or, if the plan has a centre, of ``plan.residuals``; (G, K) for G plans.
        pulls : Pulls, optional
            ``Pulls.of(arms.positions, coefficients, probabilities)`` of the plans, where they are at hand.
        """
        _check_shapes(plan, tally, len(self.arms))
        values = _linear_values(self.arms, plan.centre)
        if self.confidence.is_exact:
            _check_centre(self.confidence, plan)
        self.confidence.check_residuals(tally)
        p = np.atleast_2d(plan.probabilities)
        rounds = np.atleast_1d(plan.rounds)
        if pulls is None:
            pulls = Pulls.of(self.arms.positions, self.coefficients, p)
        steps = Steps(p, rounds, tally[np.newaxis] if tally.counts.ndim == 1 else tally, values[np.newaxis])
        return self.along(steps, pulls).at(0)

    def along(self, steps: Steps, pulls: Pulls) -> "Path":
        """Return the sequence after each of several steps; nothing is checked.

        Parameters
        ----------
        steps : Steps
        pulls : Pulls
            Of its plans.
        """
        tuned = self.tuned_along(pulls, steps.first)
        seen = self.seen.along(steps.whole)
        step = steps.step
        tally = steps.tally
        shares = expected_shares(steps.probabilities, seen.relative[step], seen.drawn[step])
        rounds = tally.rounds[:, np.newaxis].astype(np.float64)
        weighted = pulls.pull**2
        batch = Batch(
            rounds=rounds,
            largest=tally.largest.max(axis=-1, keepdims=True),
            excess=seen.sizes.excess[step, np.newaxis],
            factor=np.where(pulls.known, pulls.variance, np.inf),
            square=pulls.variance,
            reach=pulls.reach,
            estimates=rounds * (steps.values @ self.coefficients.T)[step] + rowwise(pulls.pull, tally.sums),
            squares=rowwise(weighted, tally.squares),
            pooled=tally.squares.sum(axis=-1, keepdims=True)
            * np.maximum(pulls.variance, rowwise(weighted, shares)),
        )
        evidence = self.evidence.along(batch, steps.first, tuned.tuning, self.confidence)
        carried = self.carried.along(steps, weighted, batch.factor)
        is_unknown = carried.rest_on_unknown(least_draws(self.tuning.alpha))
        events = np.where(is_unknown, 0.0, seen.sizes.events[:, np.newaxis])
        return Path(tuned, replace(evidence, events=events), seen, carried)

    def tuned_by(self, probabilities: ArrayLike) -> "ContrastSequence":
        """Return the sequence with boundaries fixed by distributions (G, K), before any round counts.

        Otherwise the first plan that counts fixes them; it must then have been made before its rounds.
        """
        p = np.atleast_2d(np.asarray(probabilities, dtype=np.float64))
        return replace(self, tuning=self._tuned(Pulls.of(self.arms.positions, self.coefficients, p)))

    def tuned_along(self, pulls: Pulls, first: Whole) -> "ContrastSequence":
        """Return the sequence with each contrast's boundary fixed by the first step that can estimate it.

        Parameters
        ----------
        pulls : Pulls
            Of the G plans of all steps.
        first : (S,) array of int
            The first plan of each step.
        """
        fresh = pulls.known.any(axis=0) & (self.tuning.rho == 0)
        if not fresh.any():
            return self
        known = np.logical_or.reduceat(pulls.known, first, axis=0)
        ends = np.append(first, len(pulls.known))
        out = self
        for step in np.unique(np.argmax(known[:, fresh], axis=0)):
            out = replace(out, tuning=out._tuned(pulls.of_plans(np.arange(ends[step], ends[step + 1]))))
        return out

    def with_arms(self, arms: ArmSet) -> "ContrastSequence":
        """Return the sequence for the same arms followed by new ones, on which its contrasts do not bear."""
        new = len(arms) - len(self.arms)
        return replace(
            self,
            arms=arms,
            coefficients=np.pad(self.coefficients, ((0, 0), (0, new))),
            seen=self.seen.with_arms(new),
            carried=self.carried.with_arms(new),
        )

    def intervals(self) -> tuple[Array, Array]:
        """Return lower and upper ends (m,), infinite where nothing is known; the upper if two-sided only."""
        # A contrast that no plan could estimate yet has no boundary, and needs none.
        ready = self.tuning.rho > 0
        tuning = replace(self.tuning, rho=np.where(ready, self.tuning.rho, 1.0))
        tuning = replace(tuning, scale=np.where(tuning.scale > 0, tuning.scale, 1.0))
        width = self.confidence.width(self.evidence, tuning)
        estimates = self.evidence.estimates
        high = estimates + width if self.sides == 2 else np.full(len(estimates), np.inf)
        return estimates - width, np.asarray(high)

    def to_json(self) -> dict[str, Any]:
        """Return what was learnt as plain lists that survive ``json.dumps`` exactly."""
        tuning = self.tuning
        return {
            "evidence": self.evidence.to_json(),
            "alpha": tuning.alpha.tolist(),
            "rho": tuning.rho.tolist(),
            "scale": tuning.scale.tolist(),
            "carried": self.carried.to_json(),
            **self.seen.to_json(),
        }

    def resumed(self, data: Mapping[str, Any]) -> "ContrastSequence":
        """Return the sequence, started with the same contrasts, with what :meth:`to_json` returned."""
        alpha, rho, scale = (np.array(data[name], dtype=np.float64) for name in ("alpha", "rho", "scale"))
        return replace(
            self,
            evidence=Evidence.from_json(data["evidence"]),
            tuning=Tuning(alpha, rho, scale),
            seen=Seen.from_json(data),
            carried=Carried.from_json(data["carried"], *self.coefficients.shape),
        )

    def _tuned(self, pulls: Pulls) -> Tuning:
        """Fix the boundaries of contrasts whose first counted rounds these are."""
        old = self.tuning
        (noise, rounds) = self.tightest
        fresh = pulls.known.any(axis=0) & (old.rho == 0)
        variance = np.where(pulls.known, pulls.variance, np.inf).min(axis=0)
        rho = tightest_rho(rounds * noise**2 / np.where(fresh, variance, 1.0), old.alpha)
        scale = np.ones(len(rho))
        if self.confidence.is_exact:
            scale = self.confidence.limit * (pulls.reach / pulls.variance).max(axis=0)
        return Tuning(old.alpha, np.where(fresh, rho, old.rho), np.where(fresh, scale, old.scale))


@dataclass(frozen=True, eq=False)
class Path:
    """A sequence after each of S steps: boundaries, evidence (S, m), and what was seen and carried (S,)."""

    sequence: ContrastSequence
    evidence: Evidence
    seen: Seen
    carried: Carried

    def at(self, step: int) -> ContrastSequence:
        """Return the sequence after one of the steps."""
        return replace(
            self.sequence,
            evidence=self.evidence.at(step),
            seen=self.seen.at(step),
            carried=self.carried.at(step),
        )


def rowwise(rows: Array, vectors: Array) -> Array:
    """Return the products (G, m) of matrices (G, m, K) with one vector (G, K) each."""
    return np.asarray((rows @ vectors[..., np.newaxis])[..., 0])


def _check_shapes(plan: Plan, tally: Tally, count: int) -> None:
    """Refuse tallies that do not fit their plans."""
    p = plan.probabilities
    if p.ndim > 2 or p.shape[-1] != count or tally.counts.shape != p.shape:
        raise TallyError(
            f"plan and tally have shapes {p.shape} and {tally.counts.shape};"
            f" one replication of {count} arms, ({count},), is needed"
        )
    if np.any(tally.rounds > plan.rounds):
        place = int(np.argmax(tally.rounds > plan.rounds))
        raise TallyError(
            f"the tally has {tally.rounds.flat[place]} rounds but its plan is in force for"
            f" {plan.rounds.flat[place]}; give each plan the rounds that were played under it"
        )
    if np.any((tally.counts > 0) & (p == 0)):
        raise TallyError("counts name an arm that the plan does not play")


def _linear_values(arms: ArmSet, centre: Centre | None) -> Array:
    """Return the values of a centre, zeros without one; refuse those that would leave a bias."""
    if centre is None:
        return np.zeros(len(arms))
    values = np.asarray(centre.values, dtype=np.float64)
    if arms.dimension == len(arms) - 1:
        return values  # any values are a linear function of features in general position
    # A common level is no matter of linearity, and must not hide what is.
    spread = values - values.mean()
    sizes = arms.positions - arms.positions.mean(axis=0)
    off = spread - sizes @ np.linalg.lstsq(sizes, spread, rcond=None)[0]
    if np.abs(off).max() > LINEAR * np.ptp(values) + ROUNDING * float(np.abs(values).max()):
        raise ParameterError(
            "values of the plan's centre must be linear in the features, or estimates are biased"
        )
    return values


def _check_centre(confidence: Confidence, plan: Plan) -> None:
    """Refuse plans whose residuals need not keep to what an exact mode was told."""
    centre = plan.centre
    (low, high) = confidence.range
    fits = centre is not None and centre.limit == confidence.limit
    if centre is not None:
        values = centre.values[np.atleast_2d(plan.probabilities > 0).any(axis=0)]
        room = 1e-9 * (high - low)
        fits = fits and bool(
            centre.low >= low - values.min() - room and centre.high <= high - values.max() + room
        )
    if not fits:
        raise ParameterError(
            f"the mode {confidence.name!r} needs residuals that keep to the declared range; give the plan"
            " `centre=sequence.centre()`"
        )


def _rows_of_pairs(arms: ArmSet, pairs: ArrayLike) -> Array:
    """Return coefficients (m, K) of the arms: 1 and −1."""
    checked = check_pairs(pairs, len(arms))
    every = np.eye(len(arms))
    return np.asarray(every[checked[:, 0]] - every[checked[:, 1]])


def _checked_rows(arms: ArmSet, coefficients: ArrayLike | None) -> Array:
    """Return coefficients (m, K) that are contrasts."""
    given = np.asarray(coefficients)
    if given.ndim != 2 or not len(given) or given.shape[1] != len(arms) or given.dtype.kind not in "iuf":
        raise ParameterError(
            f"coefficients have shape {given.shape} and type {given.dtype};"
            f" numbers (m, {len(arms)}), one row or more, are needed"
        )
    rows = given.astype(np.float64)
    sizes = np.abs(rows).sum(axis=1)
    if not np.all(np.isfinite(rows)) or np.any(np.abs(rows.sum(axis=1)) > 1e-12 * sizes):
        raise ParameterError("coefficients must be finite and each row sum to 0: the shift is in all rewards")
    return rows


def pairs_of(count: int, reference: int) -> Whole:
    """Return the gaps (m, 2) that are followed: to the reference arm first, then all others if few."""
    others = [arm for arm in range(count) if arm != reference]
    rows = [(arm, reference) for arm in others]
    if count <= MOST_PAIRED:
        rows += [(i, j) for place, i in enumerate(others) for j in others[:place]]
    return np.array(rows, dtype=np.int64)


def start_gaps(
    arms: ArmSet, pairs: Whole, confidence: Confidence, level: float, noise: float
) -> ContrastSequence:
    """Return the evidence on gaps before the first round.

    Parameters
    ----------
    arms : ArmSet
    pairs : (m, 2) array of int
        Arms (i, j), for the gap of i over j.
    confidence : Confidence
    level : float
        Probability that the interval of one gap is ever wrong; see the caller for how δ is shared out.
    noise : float
        Guess of the standard deviation of a residual.
    """
    return ContrastSequence.start(arms, pairs, confidence, level, noise=noise, rounds=GUESSED_ROUNDS)


def guess_noise(confidence: Confidence) -> float:
    """Return a guess of a residual's standard deviation, before any was seen.

    Only the shape of a boundary depends on it, by a logarithm; its validity does not.
    """
    # A quarter of the largest residual: half of what it can be at most, for values at both ends of the range.
    return confidence.limit / 4.0 if np.isfinite(confidence.limit) else 1.0
