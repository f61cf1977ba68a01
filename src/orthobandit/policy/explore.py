"""One distribution for all rounds: pure exploration by a design, and uniform allocation."""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate import Baseline, Moments, OrthogonalRegression, Plan, Tally
from orthobandit.policy._states import (
    check_observed,
    check_state,
    clear,
    dump_state,
    freeze,
    load_array,
    load_tally,
)
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phases import DesignRule, check_design, design_on, point_mass
from orthobandit.policy.units import OWN_DESIGN, UNDECLARED, Units, check_bounds, units_of
from orthobandit.theory import pac_rounds


@dataclass(frozen=True, eq=False)
class ExplorationState:
    """The memory of :class:`PureExploration`; leading axes (...) are replications.

    Attributes
    ----------
    arms : ArmSet
    probabilities : (..., K) array
        The design, also after the exploration.
    tally : Tally
        What was seen while exploring.
    declared : (...) array of int
        The arm that looked best after the last planned round, −1 before.
    """

    arms: ArmSet
    probabilities: Array
    tally: Tally
    declared: Whole

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True)
class PureExploration:
    """Draw from one design, then report the best-looking arm (Kim, Kim & Oh 2025, section Pure Exploration).

    Explores for `rounds` rounds, or for as many as the PAC bound asks: the smaller of its K-dependent and
    K-independent forms (:func:`~orthobandit.theory.pac_rounds`). Estimates with ridge log(t/δ). Departs:
    where the paper stops, the reported arm is declared and played from then on; arms without any
    identifiable difference are equally good, and the first is declared at once; d is the affine dimension
    r; with `theta_bound` and `shift_bound`, ridge and PAC size are in units in which the paper's bounds hold.

    Parameters
    ----------
    rounds : int, optional
        How long to explore. Give this or `epsilon`.
    epsilon : float, optional
        Explore for as long as the PAC bound with C2 and C3 asks for, to have the leader within ε of the best
        arm. What is proven then is `decide().epsilon`, which is larger unless the constants are.
    delta : float
        Failure probability δ.
    design : {"anchor", "centred", "contrast"} or callable
        As in :class:`~orthobandit.policy.sbe.SBE`.
    C2, C3 : float
        Constants of the two forms of the PAC bound. The paper proves that some constants work; that 1 does
        is not proven.
    theta_bound, shift_bound : float, optional
        S and N with ‖θ‖ ≤ S and |ν_t| ≤ N, as in :class:`~orthobandit.policy.sbe.SBE`. Without them nothing
        is claimed.
    noise : float
        σ of the sub-Gaussian noise; read only with the bounds.

    Examples
    --------
    >>> policy = PureExploration(epsilon=0.5)
    >>> state = policy.start(ArmSet([[0.0], [1.0]]))
    >>> int(policy.plan(state).rounds)
    15
    >>> state = policy.observe(state, policy.plan(state), Tally([7, 8], [35.0, 48.0], [175.0, 288.0]))
    >>> decision = policy.decide(state)
    >>> int(decision.declared), decision.certainty, decision.mode
    (1, 0.0, 'none (bounds of θ and the shift are not declared)')
    """

    rounds: int | None = None
    epsilon: float | None = None
    delta: float = 0.05
    design: str | DesignRule = "anchor"
    C2: float = 1.0
    C3: float = 1.0
    theta_bound: float | None = None
    shift_bound: float | None = None
    noise: float = 1.0

    baseline: ClassVar[Baseline | None] = None  # rewards are tallied as they are

    def __post_init__(self) -> None:
        if (self.rounds is None) == (self.epsilon is None):
            raise ParameterError(
                Argument("rounds", self.rounds), f" and epsilon={self.epsilon}: give exactly one of the two"
            )
        if self.rounds is not None:
            check_whole("rounds", self.rounds)
        if self.epsilon is not None:
            check_positive("epsilon", self.epsilon)
        check_fraction("delta", self.delta)
        check_design(self.design)
        check_positive("C2", self.C2)
        check_positive("C3", self.C3)
        check_bounds(self.theta_bound, self.shift_bound, self.noise)

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> ExplorationState:
        """Return the state before the first round; arms without a difference are settled at once.

        Nothing is randomised, so `seed` and `replications` have no effect.
        """
        del seed, replications
        count = len(arms)
        design = design_on(self.design, arms) if arms.dimension else np.full(count, 1 / count)
        return ExplorationState(
            arms=arms,
            probabilities=np.tile(design, (*batch, 1)),
            tally=Tally.zeros(count, batch),
            declared=np.full(batch, -1 if arms.dimension else 0, dtype=np.int64),
        )

    def planned_rounds(self, arms: ArmSet) -> int:
        """Return how long these arms are explored, at most `FOREVER`."""
        if self.epsilon is None:
            return min(check_whole("rounds", self.rounds), FOREVER)
        setting = (self.epsilon / self._units(arms).reward, self.delta, max(arms.dimension, 1))
        return min(pac_rounds(*setting, len(arms), C=self.C2), pac_rounds(*setting, C=self.C3), FOREVER)

    def plan(self, state: ExplorationState) -> Plan:
        """Return the design and the rounds left, or the declared arm `FOREVER`."""
        # Two plans in all: the design, then the declared arm.
        number = 1 + (np.asarray(state.declared) >= 0)
        return Plan(self._in_force(state), self._left(state), number=number)

    def observe(self, state: ExplorationState, plan: Plan, tally: Tally) -> ExplorationState:
        """Return the state after the tallied rounds; what follows the declaration is not kept."""
        check_observed(self.plan(state), plan, tally)
        exploring = np.asarray(state.declared < 0)
        if not exploring.any():
            return state
        state = replace(state, tally=state.tally + clear(tally, ~exploring))
        done = exploring & (state.tally.rounds == self.planned_rounds(state.arms))
        return replace(state, declared=np.where(done, self._leader(state), state.declared))

    def decide(self, state: ExplorationState) -> Decision:
        """Return what is known now.

        `epsilon` is twice the largest error that is proven for a difference to the first arm
        (:func:`~orthobandit.theory.explicit_error_bound`). The claim holds with probability 1 − δ at any one
        time fixed in advance, not at all times at once, if `theta_bound`, `shift_bound` and `noise` are true;
        `mode` repeats them. Without them, or with a callable design, nothing is claimed.
        """
        why = self._why_unclaimed(state.arms)
        return Decision(
            active=np.ones(state.probabilities.shape, dtype=np.bool_),
            leader=np.where(state.declared >= 0, state.declared, self._leader(state)),
            declared=state.declared,
            epsilon=np.full(state.declared.shape, np.inf) if why else self._epsilon(state),
            certainty=0.0 if why else 1 - self.delta,
            mode=why or f"proven at a fixed time, if {self._units(state.arms).declared}",
        )

    def _units(self, arms: ArmSet) -> Units:
        return units_of(arms, self.theta_bound, self.shift_bound, self.noise)

    def _why_unclaimed(self, arms: ArmSet) -> str:
        """Return why nothing can be claimed, or ""."""
        if not arms.dimension:
            return ""
        if self.theta_bound is None:
            return UNDECLARED
        return "" if isinstance(self.design, str) else OWN_DESIGN

    def dump(self, state: ExplorationState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        return dump_state(state)

    def load(self, arms: ArmSet, data: dict[str, Any]) -> ExplorationState:
        """Invert :meth:`dump`."""
        check_state(data)
        declared = load_array(data, "declared", np.int64)
        shape = (*declared.shape, len(arms))
        probabilities = load_array(data, "probabilities", np.float64, shape)
        return ExplorationState(arms, probabilities, load_tally(data, "tally", shape), declared)

    def _in_force(self, state: ExplorationState) -> Array:
        settled = point_mass(state.declared, len(state.arms))
        return np.where(state.declared[..., np.newaxis] >= 0, settled, state.probabilities)

    def _left(self, state: ExplorationState) -> Whole:
        left = self.planned_rounds(state.arms) - state.tally.rounds
        return np.where(state.declared >= 0, FOREVER, left)

    def _leader(self, state: ExplorationState) -> Whole:
        """Return the best-looking arm (...); the first one where nothing was seen."""
        leader = np.zeros(state.declared.shape, dtype=np.int64)
        seen = np.asarray(state.tally.rounds > 0)
        if seen.any() and state.arms.dimension:
            tally = state.tally[seen]
            moments = Moments.of(state.arms, Plan(state.probabilities[seen], tally.rounds), tally)
            # The ridge log(t/δ) is for features in the paper's unit; which arm is best has no unit.
            unit = self._units(state.arms).feature
            moments = Moments(moments.gram / unit**2, moments.moment / unit, moments.rounds)
            leader[seen] = OrthogonalRegression(delta=self.delta).solve(state.arms, moments).best
        return leader

    def _epsilon(self, state: ExplorationState) -> Array:
        """Return twice the proven error (...): the leader and the best arm may both be off by it."""
        arms = state.arms
        epsilon = np.full(state.declared.shape, np.inf if arms.dimension else 0.0)
        if arms.dimension:
            # Replications of a batch may be at different rounds; the bound is the same for equal ones.
            for rounds in np.unique(state.tally.rounds[state.tally.rounds > 0]).tolist():
                ridge = math.log(rounds / self.delta)
                error = self._units(arms).largest_error(arms.dimension, len(arms), rounds, self.delta, ridge)
                epsilon[state.tally.rounds == rounds] = 2 * error
        return epsilon


@dataclass(frozen=True, eq=False)
class UniformState:
    """The memory of :class:`UniformAllocation`: the arms and what was seen (..., K)."""

    arms: ArmSet
    tally: Tally

    def __post_init__(self) -> None:
        freeze(self)


@dataclass(frozen=True)
class UniformAllocation:
    """Draw every arm with the same probability; the largest mean reward leads.

    The classical randomised experiment. Since all arms are drawn alike at all times, a shift adds noise but
    no bias to differences in means. Nothing is claimed.

    Examples
    --------
    >>> policy = UniformAllocation()
    >>> policy.plan(policy.start(ArmSet.one_hot(4))).probabilities.tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    baseline: ClassVar[Baseline | None] = None  # rewards are tallied as they are

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> UniformState:
        """Return the state before the first round; nothing is randomised."""
        del seed, replications
        return UniformState(arms, Tally.zeros(len(arms), batch))

    def plan(self, state: UniformState) -> Plan:
        """Return the uniform distribution, in force for ever."""
        counts = state.tally.counts
        return Plan(np.full(counts.shape, 1 / counts.shape[-1]), FOREVER, number=1)

    def observe(self, state: UniformState, plan: Plan, tally: Tally) -> UniformState:
        """Return the state after the tallied rounds."""
        check_observed(self.plan(state), plan, tally)
        return replace(state, tally=state.tally + tally)

    def decide(self, state: UniformState) -> Decision:
        """Return the arm of the largest mean, the first arm before any data; nothing is claimed."""
        counts = state.tally.counts
        sums = state.tally.sums
        mean = np.divide(sums, counts, out=np.full(sums.shape, -np.inf), where=counts > 0)
        batch = counts.shape[:-1]
        return Decision(
            active=np.ones(counts.shape, dtype=np.bool_),
            leader=np.asarray(np.argmax(mean, axis=-1)),
            declared=np.full(batch, -1, dtype=np.int64),
            epsilon=np.full(batch, np.inf),
            certainty=0.0,
            mode="none",
        )

    def dump(self, state: UniformState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        return dump_state(state)

    def load(self, arms: ArmSet, data: dict[str, Any]) -> UniformState:
        """Invert :meth:`dump`."""
        check_state(data)
        batch = np.shape(data.get("tally", {}).get("counts"))[:-1]  # without a tally the next line refuses
        return UniformState(arms, load_tally(data, "tally", (*batch, len(arms))))
