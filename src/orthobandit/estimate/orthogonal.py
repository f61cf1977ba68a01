"""Orthogonalised regression: gaps between arms that no shift of the baseline can bias."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.json_arrays import brief
from orthobandit._foundation.linalg import solve_ridge
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError, ProbabilityError, TallyError
from orthobandit.estimate.plan import Plan, checked_probabilities
from orthobandit.estimate.tally import Tally


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the data say about the arms: a point, without an interval; :class:`ContrastSequence` has those.

    There is no predicted level: only differences are identified.

    Attributes
    ----------
    gaps : (..., K) array
        Estimated reward of the best-looking arm minus that of each arm; 0 for the former.
    theta : (..., d) array
        The coefficients; only differences of x_iᵀθ mean anything.
    rounds : (...) array of int
        How many rounds the estimate rests on.
    """

    gaps: Array
    theta: Array
    rounds: Whole

    __repr__ = brief

    @property
    def best(self) -> Whole:
        """The best-looking arm, shape (...); the first one on ties."""
        return np.asarray(np.argmin(self.gaps, axis=-1))


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over rounds of centred features: all that the regression needs, under changing plans.

    Features are centred with the mean of the distribution that was in force, x̃_s = x_{a_s} − μ_{p_s},
    and written in the orthonormal basis of the arms' hull. The ridge is kept out, so sums merge exactly
    across rounds, phases and workers.

    Attributes
    ----------
    gram : (..., r, r) array
        Σ x̃x̃ᵀ.
    moment : (..., r) array
        Σ x̃·reward.
    rounds : (...) array of int
    """

    gram: Array
    moment: Array
    rounds: Whole

    __repr__ = brief

    @classmethod
    def zeros(cls, arms: ArmSet, batch: tuple[int, ...] = ()) -> "Moments":
        """Return the sums over no rounds."""
        r = arms.dimension
        return cls(np.zeros((*batch, r, r)), np.zeros((*batch, r)), np.zeros(batch, dtype=np.int64))

    @classmethod
    def of(cls, arms: ArmSet, plan: Plan, tally: Tally) -> "Moments":
        """Sum over all rounds that were played under one plan."""
        _check_sizes(arms, plan, tally)
        return cls(*centred_sums(arms, plan.probabilities, tally.counts, tally.sums), tally.rounds)

    @classmethod
    def of_round(cls, arms: ArmSet, probabilities: ArrayLike, arm: int, reward: float) -> "Moments":
        """Return the summand of a single round: `arm` was drawn from `probabilities`."""
        plan = Plan(checked_probabilities(probabilities), rounds=1)
        return cls.of(arms, plan, Tally.of([arm], [reward], len(arms)))

    def __add__(self, other: "Moments") -> "Moments":
        if not isinstance(other, Moments):
            return NotImplemented
        if self.moment.shape != other.moment.shape:
            raise TallyError(
                f"moments of shape {self.moment.shape} and {other.moment.shape} cannot be merged;"
                " both must be of the same arms and batch"
            )
        return Moments(self.gram + other.gram, self.moment + other.moment, self.rounds + other.rounds)


@dataclass(frozen=True)
class OrthogonalRegression:
    """Ridge regression of rewards on centred features (Kim, Kim & Oh 2025, Equation 2).

    Solves ``θ̂ = (Σ x̃x̃ᵀ + β I)⁻¹ Σ x̃ r`` with ``x̃ = x_a − Σ_i p_i x_i`` and β = log(t/δ) by default.
    Because x̃ has mean zero given the past, a shift that was fixed before the arm was drawn adds noise
    but no bias. Departs: none; computed in the orthonormal basis of the arms' hull, which leaves θ̂ on
    that hull unchanged.

    Parameters
    ----------
    ridge : float, optional
        β > 0. By default log(t/δ) with t the number of rounds.
    delta : float
        Failure probability δ of the default ridge.

    Examples
    --------
    >>> arms = ArmSet([[0.0], [1.0]])
    >>> plan = Plan([0.5, 0.5], rounds=4)
    >>> tally = Tally.of([0, 1, 0, 1], [5.0, 6.0, 5.0, 6.0], count=2)
    >>> OrthogonalRegression(ridge=1e-12).fit(arms, [(plan, tally)]).gaps.round(6).tolist()
    [1.0, 0.0]
    """

    ridge: float | None = None
    delta: float = 0.05

    def __post_init__(self) -> None:
        if self.ridge is not None and not 0 < self.ridge < np.inf:
            raise ParameterError(f"ridge={self.ridge} must be a positive number")
        if not 0 < self.delta < 1:
            raise ParameterError(f"delta={self.delta} must lie strictly between 0 and 1")

    def fit(self, arms: ArmSet, history: Iterable[tuple[Plan, Tally]]) -> Estimate:
        """Estimate the gaps from any number of plans and what was tallied under each.

        Parameters
        ----------
        arms : ArmSet
        history : iterable of (Plan, Tally)
            All with the same leading batch axes.
        """
        parts = [Moments.of(arms, plan, tally) for plan, tally in history]
        if not parts:
            raise TallyError("history is empty; at least one (plan, tally) pair is needed")
        return self.solve(arms, sum(parts[1:], start=parts[0]))

    def solve(self, arms: ArmSet, moments: Moments) -> Estimate:
        """Estimate the gaps from sums gathered round by round or merged from elsewhere.

        Before the first round, with a ridge of one's own, all gaps are 0.
        """
        if self.ridge is None and np.any(moments.rounds < 1):
            raise TallyError(
                "the tally has no rounds, so that the default ridge log(t/δ) does not exist; observe at least"
                " one reward before estimating, or give a ridge"
            )
        if moments.moment.shape[-1] != arms.dimension:
            raise TallyError(
                f"moments have dimension {moments.moment.shape[-1]} but the arms {arms.dimension};"
                " they belong to different arms"
            )
        ridge = np.log(moments.rounds / self.delta) if self.ridge is None else self.ridge
        coefficients = solve_ridge(moments.gram, moments.moment, ridge)
        values = _rows_times(coefficients, arms.positions.T)
        gaps = values.max(axis=-1, keepdims=True) - values
        theta = _rows_times(coefficients, arms.basis)
        return Estimate(gaps, theta, moments.rounds)


def centred_sums(
    arms: ArmSet, probabilities: Array, counts: Array | Whole, sums: Array
) -> tuple[Array, Array]:
    """Return Σ x̃x̃ᵀ (..., r, r) and Σ x̃·reward (..., r), x̃ = x_a − μ_p, of rounds under one distribution.

    Parameters
    ----------
    arms : ArmSet
    probabilities : (..., K) array
        What the rounds were drawn from.
    counts, sums : (..., K) arrays
        Rounds of each arm, and what they returned in all.
    """
    mean = _rows_times(probabilities, arms.positions)
    centred = arms.positions - mean[..., np.newaxis, :]
    gram = np.swapaxes(centred * counts[..., np.newaxis], -1, -2) @ centred
    return np.asarray(gram), _rows_times(sums, centred)


def few_centred_sums(arms: ArmSet, probabilities: Array, counts: Whole, sums: Array) -> tuple[Array, Array]:
    """Return what :func:`centred_sums` does for one replication, from the arms alone that can be drawn."""
    some = np.flatnonzero(probabilities)
    positions = (arms.features[some] - arms.frame.origin) @ arms.basis.T
    centred = positions - probabilities[some] @ positions
    return np.asarray((centred.T * counts[some]) @ centred), np.asarray(sums[some] @ centred)


def _rows_times(rows: Array, matrix: Array) -> Array:
    """Return rows (..., n) @ matrix (..., n, m), one product per row.

    A single product over the whole batch would round each row differently for different batch sizes,
    and a batch must equal its single runs.
    """
    return np.asarray((rows[..., np.newaxis, :] @ matrix)[..., 0, :])


def _check_sizes(arms: ArmSet, plan: Plan, tally: Tally) -> None:
    if plan.count != len(arms):
        raise ProbabilityError(
            f"the plan has {plan.count} probabilities for {len(arms)} arms; give one per arm"
        )
    if tally.count != len(arms):
        raise TallyError(f"the tally has {tally.count} arms; the arm set has {len(arms)}; tally every arm")
    try:
        in_force = np.broadcast_to(plan.probabilities, tally.counts.shape)
    except ValueError:
        raise TallyError(
            f"the plan has batch {plan.probabilities.shape[:-1]} and the tally {tally.counts.shape[:-1]};"
            " pair every tally with the plan that was in force"
        ) from None
    played = (tally.counts > 0) & (in_force == 0)
    if played.any():
        place = tuple(int(i) for i in np.argwhere(played)[0])
        raise TallyError(
            f"arm {place[-1]} was played {tally.counts[place]} times but its plan gives it probability 0;"
            " pair every tally with the plan that was in force"
        )
    over = tally.rounds > plan.rounds
    if np.any(over):
        place = tuple(int(i) for i in np.argwhere(over)[0])
        raise TallyError(
            f"the tally has {tally.rounds[place]} rounds but its plan is in force for {plan.rounds[place]};"
            " give each plan the rounds that were played under it"
        )
