"""SBE: the paper's phased elimination, for low regret and for finding the best arm."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from orthobandit._checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Baseline, Estimate, Moments, OrthogonalRegression, Plan, Tally
from orthobandit.policy._design_rules import DesignRule, check_design, design_on, point_mass
from orthobandit.policy._sbe_state import SBEState
from orthobandit.policy._states import (
    check_observed,
    clear,
    dump_state,
    load_array,
    load_tally,
)
from orthobandit.policy._successor import successor_phase_rounds
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.theory import (
    adaptive_phase_rounds,
    experiments_phase_rounds,
    phase_ridge,
    theory_phase_rounds,
)

# The constants that each schedule reads; setting another one is a mistake.
CONSTANTS: dict[str, set[str]] = {
    "experiments": {"scale"},
    "theory": {"C2"},
    "adaptive": {"C2", "C3"},
    "successor": set(),
}


@dataclass(frozen=True)
class SBE:
    """Semiparametric bandits with elimination (Kim, Kim & Oh 2025, Algorithm 2).

    Phase ℓ = 1, 2, … explores the survivors with a fixed design for n_ℓ rounds, estimates all gaps from that
    phase alone with ridge β_ℓ = log(n_ℓ·ℓ(ℓ+1)/δ), and drops every arm that looks more than ε_ℓ = 2^{−ℓ}
    worse than the best-looking survivor. A sole survivor is declared best and played from then on. A phase
    that is not completed drops nothing.

    Departs: (1) d in n_ℓ is the affine dimension r of all arms, at least 1; K counts all arms in every
    phase, as in the paper. (2) Survivors that have no identifiable difference (all have the same features)
    are equally good: the one of lowest index is declared instead of exploring for ever; the others stay
    `active`. (3) The experiments' phase lengths come without a ridge in the paper; Algorithm 2's is used.
    (4) No phase is longer than `FOREVER` rounds.

    Parameters
    ----------
    delta : float
        Failure probability δ of everything that is claimed in a run.
    schedule : {"experiments", "theory", "adaptive", "successor"}
        Phase lengths: see :func:`~orthobandit.theory.experiments_phase_rounds`,
        :func:`~orthobandit.theory.theory_phase_rounds`, :func:`~orthobandit.theory.adaptive_phase_rounds`;
        "successor" are the lengths that the author of SP-BAI gives SBE in his experiments
        (:func:`~orthobandit.policy._successor.successor_phase_rounds`).
    scale : float
        c of the experiments' schedule.
    C2, C3 : float
        Constants of the other two schedules. The paper proves that some constants work; that 1 does is
        not proven.
    design : {"anchor", "centred", "contrast"} or callable
        How to explore the survivors. "anchor" is the paper's DEO with the survivor of lowest index as
        reference. All three keep ‖x_i − x_1‖ ≤ 2√r and ‖x_i − μ‖ ≤ 2√r + 1 in Σ⁻¹, which is what the paper's
        phase lengths need. A callable takes the ArmSet of survivors and returns an object with
        `probabilities`; whether it keeps these norms is up to the caller.
    horizon : int, optional
        T. Plans are cut at it; a cut phase drops nothing, and when it is reached plans have 0 rounds.
    longest : int, optional
        A phase that would last as long or longer is cut to this many rounds, and the survivor that then
        looks best is declared, as in the experiments of SP-BAI's author (5,000,000). Nothing is claimed
        then.

    Examples
    --------
    >>> policy = SBE(delta=0.1)
    >>> state = policy.start(ArmSet([[0.0], [1.0]]))
    >>> plan = policy.plan(state)
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.5, 0.5], 12)
    >>> state = policy.observe(state, plan, Tally([6, 6], [30.0, 48.0], [150.0, 384.0]))
    >>> int(policy.decide(state).declared)
    1
    """

    delta: float = 0.05
    schedule: str = "experiments"
    scale: float = 1.0
    C2: float = 1.0
    C3: float = 1.0
    design: str | DesignRule = "anchor"
    horizon: int | None = None
    longest: int | None = None

    baseline: ClassVar[Baseline | None] = None  # rewards are tallied as they are

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_choice("schedule", self.schedule, CONSTANTS)
        for name in ("scale", "C2", "C3"):
            value = check_positive(name, getattr(self, name))
            if value != 1.0 and name not in CONSTANTS[self.schedule]:
                used = " and ".join(sorted(CONSTANTS[self.schedule])) or "no constant"
                raise ParameterError(
                    f"{name}={value:g} has no effect: schedule={self.schedule!r} reads only {used}"
                )
        check_design(self.design)
        for name in ("horizon", "longest"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))

    def start(
        self, arms: ArmSet, batch: tuple[int, ...] = (), *, seed: int = 0, replications: Any = None
    ) -> SBEState:
        """Return the state before the first round; a single arm is declared at once.

        Nothing is randomised, so `seed` and `replications` have no effect.
        """
        del seed, replications
        probabilities, declared = self._settle(arms, np.ones((1, len(arms)), dtype=np.bool_))
        zeros = np.zeros(batch, dtype=np.int64)
        return SBEState(
            arms=arms,
            active=np.ones((*batch, len(arms)), dtype=np.bool_),
            phase=zeros + 1,
            length=zeros + (FOREVER if declared[0] >= 0 else self.phase_rounds(arms, 1)),
            probabilities=np.tile(probabilities[0], (*batch, 1)),
            tally=Tally.zeros(len(arms), batch),
            leader=zeros.copy(),
            declared=zeros + declared[0],
            rounds=zeros.copy(),
            plans=zeros + 1,
        )

    def phase_rounds(self, arms: ArmSet, phase: int) -> int:
        """Return n_ℓ for these arms, at most `longest` or `FOREVER`."""
        setting = (phase, self.delta, max(arms.dimension, 1), len(arms))
        if self.schedule == "theory":
            rounds = theory_phase_rounds(*setting, C2=self.C2)
        elif self.schedule == "adaptive":
            rounds = adaptive_phase_rounds(*setting, C2=self.C2, C3=self.C3)
        elif self.schedule == "successor":
            rounds = successor_phase_rounds(*setting)
        else:
            rounds = experiments_phase_rounds(*setting, scale=self.scale)
        return min(rounds, FOREVER if self.longest is None else self.longest)

    def plan(self, state: SBEState) -> Plan:
        """Return the design in force and the rounds left of its phase; `FOREVER` once an arm is declared."""
        return Plan(state.probabilities, self._left(state), number=state.plans)

    def observe(self, state: SBEState, plan: Plan, tally: Tally) -> SBEState:
        """Return the state after the tallied rounds; arms are dropped when a phase is complete."""
        check_observed(self.plan(state), plan, tally)
        merged = state.tally + tally
        state = replace(state, tally=merged, rounds=state.rounds + tally.rounds)
        done = np.asarray((state.declared < 0) & (merged.rounds == state.length))
        return self._end_phase(state, done) if done.any() else state

    def decide(self, state: SBEState) -> Decision:
        """Return what is known now.

        `epsilon` holds for the leader and for every other active arm: on the event of Lemma 11 the
        estimates of phase ℓ are off by at most ε_ℓ/2, so the best arm survives (Lemma 12) and all
        survivors are within 2ε_ℓ of it (Lemma 13). It is +inf during the first phase and 0 once an arm is
        declared. The event has probability 1 − δ if the constants are large enough, which is not known
        for those of the paper's experiments or for C2 = C3 = 1: hence the mode. Where phases are cut,
        nothing is claimed.
        """
        is_declared = state.declared >= 0
        claimed = np.where(state.phase > 1, np.ldexp(1.0, 2 - state.phase), np.inf)
        is_cut = self.longest is not None
        return Decision(
            active=state.active,
            leader=state.leader,
            declared=state.declared,
            epsilon=np.where(is_cut, np.inf, np.where(is_declared, 0.0, claimed)),
            confidence=0.0 if is_cut else 1 - self.delta,
            mode="none (phases are cut)" if is_cut else f"paper constants ({self.schedule})",
        )

    def dump(self, state: SBEState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        return dump_state(state)

    def load(self, arms: ArmSet, data: dict[str, Any]) -> SBEState:
        """Invert :meth:`dump`."""
        batch = load_array(data, "phase", np.int64).shape
        names = ("phase", "length", "leader", "declared", "rounds", "plans")
        return SBEState(
            arms=arms,
            active=load_array(data, "active", np.bool_, (*batch, len(arms))),
            probabilities=load_array(data, "probabilities", np.float64, (*batch, len(arms))),
            tally=load_tally(data, "tally", (*batch, len(arms))),
            **{name: load_array(data, name, np.int64, batch) for name in names},
        )

    def _left(self, state: SBEState) -> Whole:
        left = state.length - state.tally.rounds
        if self.horizon is not None:
            left = np.minimum(left, np.maximum(self.horizon - state.rounds, 0))
        return np.where(state.declared >= 0, FOREVER, left)

    def _end_phase(self, state: SBEState, done: Mask) -> SBEState:
        """Drop arms and make the next plan where a phase is complete."""
        active, leader, length = state.active.copy(), state.leader.copy(), state.length.copy()
        for phase in np.unique(state.phase[done]).tolist():
            ended = np.asarray(done & (state.phase == phase))
            gaps = np.where(active[ended], self._estimate(state, ended, phase).gaps, np.inf)
            leader[ended] = np.argmin(gaps, axis=-1)
            active[ended] = gaps - gaps.min(axis=-1, keepdims=True) <= np.ldexp(1.0, -phase)
            if self.phase_rounds(state.arms, phase) == self.longest:
                active[ended] = point_mass(leader[ended], len(state.arms)) > 0
            length[ended] = self.phase_rounds(state.arms, phase + 1)
        changed = np.any(active != state.active, axis=-1)
        probabilities, declared = state.probabilities.copy(), state.declared.copy()
        probabilities[changed], declared[changed] = self._settle(state.arms, active[changed])
        is_declared = declared >= 0
        return replace(
            state,
            active=active,
            phase=state.phase + done,
            length=np.where(is_declared, FOREVER, length),
            probabilities=probabilities,
            tally=clear(state.tally, done),
            leader=np.where(is_declared, declared, leader),
            declared=declared,
            plans=state.plans + done,
        )

    def _estimate(self, state: SBEState, ended: Mask, phase: int) -> Estimate:
        """Estimate the gaps (m, K) in replications that have completed this phase."""
        rounds = self.phase_rounds(state.arms, phase)
        moments = Moments.of(state.arms, Plan(state.probabilities[ended], rounds), state.tally[ended])
        ridge = phase_ridge(phase, rounds, self.delta)
        return OrthogonalRegression(ridge=ridge, delta=self.delta).solve(state.arms, moments)

    def _settle(self, arms: ArmSet, survivors: Mask) -> tuple[Array, Whole]:
        """Return what to play (m, K) and whom to declare or −1 (m,), once for each distinct row (m, K)."""
        distinct, place = np.unique(survivors, axis=0, return_inverse=True)
        probabilities = np.zeros(distinct.shape)
        declared = np.full(len(distinct), -1, dtype=np.int64)
        for row, mask in enumerate(distinct):
            left = arms if mask.all() else arms.subset(mask)
            if left.dimension:
                probabilities[row, mask] = design_on(self.design, left)
            else:
                declared[row] = np.argmax(mask)
                probabilities[row, declared[row]] = 1.0
        return probabilities[place.reshape(-1)], declared[place.reshape(-1)]
