"""SBE: the paper's phased elimination, for low regret and for finding the best arm."""

from dataclasses import dataclass

import numpy as np

from orthobandit._checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.policy._design_rules import DesignRule, check_design, design_on, point_mass
from orthobandit.policy._phases import (
    Ahead,
    Ended,
    PhasedPolicy,
    PhasedState,
    phased_decision,
    unclaimed_decision,
)
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.spbai import successor_phase_rounds
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
class SBE(PhasedPolicy):
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
        (:func:`~orthobandit.policy.spbai.successor_phase_rounds`).
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
    >>> from orthobandit import Tally
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

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the design of the survivors and n_ℓ; a design of the same survivors is kept."""
        rounds = self.phase_rounds(ahead.arms, ahead.phase)
        if ahead.last is not None:
            return ahead.last, rounds
        probabilities = np.zeros(len(ahead.arms))
        probabilities[ahead.survivors] = design_on(self.design, ahead.left)
        return probabilities, rounds

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Keep the arms that look at most ε_ℓ worse than the best; the best alone if the phase was cut."""
        rounds = self.phase_rounds(ended.arms, ended.phase)
        found = ended.gaps(phase_ridge(ended.phase, rounds, self.delta))
        gaps = np.where(ended.survivors, found, np.inf)
        active = gaps - gaps.min(axis=-1, keepdims=True) <= np.ldexp(1.0, -ended.phase)
        if rounds == self.longest:
            active = point_mass(np.argmin(gaps, axis=-1), len(ended.arms)) > 0
        return -gaps, active, ended.carried

    def judge_all(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Judge all replications in one regression."""
        return self.judge(ended)

    def decide(self, state: PhasedState) -> Decision:
        """Return what is known now.

        `epsilon` holds for the leader and for every other active arm: on the event of Lemma 11 the
        estimates of phase ℓ are off by at most ε_ℓ/2, so the best arm survives (Lemma 12) and all
        survivors are within 2ε_ℓ of it (Lemma 13). It is +inf during the first phase and 0 once an arm is
        declared. The event has probability 1 − δ if the constants are large enough, which is not known
        for those of the paper's experiments or for C2 = C3 = 1: hence the mode. Where phases are cut,
        nothing is claimed.
        """
        if self.longest is not None:
            return unclaimed_decision(state, "none (phases are cut)")
        claimed = np.where(state.phase > 1, np.ldexp(1.0, 2 - state.phase), np.inf)
        return phased_decision(state, claimed, 1 - self.delta, f"paper constants ({self.schedule})")

    def _left(self, state: PhasedState) -> Whole:
        left = super()._left(state)
        if self.horizon is None:
            return left
        until = np.maximum(self.horizon - state.rounds, 0)
        return np.where(state.declared >= 0, left, np.minimum(left, until))
