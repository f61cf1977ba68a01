"""SBE: the paper's phased elimination, for low regret and for finding the best arm."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import count

import numpy as np

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.policy.author_rounds import successor_phase_rounds
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.phases import (
    Ahead,
    DesignRule,
    Ended,
    PhasedPolicy,
    PhasedState,
    check_design,
    design_on,
    phased_decision,
    point_mass,
    unclaimed_decision,
)
from orthobandit.policy.units import OWN_DESIGN, UNDECLARED, Units, check_bounds, units_of
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
    (4) No phase is longer than `FOREVER` rounds. (5) With `theta_bound` and `shift_bound`, features and
    rewards are divided so that the paper's bounds hold: ridge and ε_ℓ are then in these units, and no
    decision depends on the user's.

    What is claimed: nothing, unless the bounds are declared *and* phases are long enough for a bound whose
    constants are known (:func:`~orthobandit.theory.explicit_error_bound`). ``schedule="theory", C2=96`` is
    enough in all cases that were computed; the constants of the paper's experiments are not.

    Parameters
    ----------
    delta : float
        Failure probability δ of everything that is claimed in a run.
    schedule : {"experiments", "theory", "adaptive", "successor"}
        Phase lengths: see :func:`~orthobandit.theory.experiments_phase_rounds`,
        :func:`~orthobandit.theory.theory_phase_rounds`, :func:`~orthobandit.theory.adaptive_phase_rounds`;
        "successor" are the lengths that the author of SP-BAI gives SBE in his experiments
        (:func:`~orthobandit.policy.author_rounds.successor_phase_rounds`).
    scale : float
        c of the experiments' schedule.
    C2, C3 : float
        Constants of the other two schedules. The paper proves that some constants work; that 1 does is
        not proven, that 96 does is checked whenever something is claimed.
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
    theta_bound, shift_bound : float, optional
        S and N with ‖θ‖ ≤ S and |ν_t| ≤ N, for the features as they are given; both or neither. Without them
        the paper's units are taken for granted, and nothing is claimed.
    noise : float
        σ of the sub-Gaussian noise; read only with the bounds.

    Examples
    --------
    >>> policy = SBE(delta=0.1)
    >>> state = policy.start(ArmSet([[0.0], [1.0]]))
    >>> plan = policy.plan(state)
    >>> plan.probabilities.round(6).tolist(), int(plan.rounds)
    ([0.5, 0.5], 12)
    >>> from orthobandit import Tally
    >>> state = policy.observe(state, plan, Tally([6, 6], [30.0, 48.0], [150.0, 384.0]))
    >>> int(policy.decide(state).declared), policy.decide(state).certainty
    (1, 0.0)

    A claim needs bounds and long phases:

    >>> careful = SBE(delta=0.1, schedule="theory", C2=96, theta_bound=1.0, shift_bound=1.0)
    >>> careful.decide(careful.start(ArmSet([[0.0], [1.0]]))).certainty
    0.9
    """

    delta: float = 0.05
    schedule: str = "experiments"
    scale: float = 1.0
    C2: float = 1.0
    C3: float = 1.0
    design: str | DesignRule = "anchor"
    horizon: int | None = None
    longest: int | None = None
    theta_bound: float | None = None
    shift_bound: float | None = None
    noise: float = 1.0

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_choice("schedule", self.schedule, CONSTANTS)
        for name in ("scale", "C2", "C3"):
            value = check_positive(name, getattr(self, name))
            if value != 1.0 and name not in CONSTANTS[self.schedule]:
                used = " and ".join(sorted(CONSTANTS[self.schedule])) or "no constant"
                raise ParameterError(
                    Argument(name, value), f" has no effect: schedule={self.schedule!r} reads only {used}"
                )
        check_design(self.design)
        for name in ("horizon", "longest"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))
        check_bounds(self.theta_bound, self.shift_bound, self.noise)

    def phase_rounds(self, arms: ArmSet, phase: int) -> int:
        """Return n_ℓ for these arms, at most `longest` or `FOREVER`."""
        return self._phase_rounds(phase, max(arms.dimension, 1), len(arms))

    def _phase_rounds(self, phase: int, dimension: int, arms: int) -> int:
        setting = (phase, self.delta, dimension, arms)
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
        units = self._units(ended.arms)
        # β and ε_ℓ are in the paper's units, features and rewards in the user's.
        found = ended.gaps(phase_ridge(ended.phase, rounds, self.delta) * units.feature**2)
        gaps = np.where(ended.survivors, found, np.inf)
        active = gaps - gaps.min(axis=-1, keepdims=True) <= units.reward * np.ldexp(1.0, -ended.phase)
        # A phase that was cut proves nothing: as in the author's runs, what looks best is taken.
        if rounds == self.longest:
            active = point_mass(np.argmin(gaps, axis=-1), len(ended.arms)) > 0
        return -gaps, active, ended.carried

    def judge_all(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Judge all replications in one regression."""
        return self.judge(ended)

    def decide(self, state: PhasedState) -> Decision:
        """Return what is known now.

        Where something is claimed, `epsilon` holds for the leader and for every other active arm: on the
        event of Lemma 11 the estimates of phase ℓ are off by at most ε_ℓ/2, so the best arm survives (Lemma
        12) and all survivors are within 2ε_ℓ of it (Lemma 13). It is +inf during the first phase and 0 once
        an arm is declared. `mode` repeats the bounds that the claim rests on.

        Nothing is claimed (`certainty` 0, `epsilon` +inf) where phases are cut, the bounds are not declared,
        the design is a callable, or phases are too short for the event to be proven.
        """
        if not state.arms.dimension:
            return phased_decision(state, np.zeros(state.phase.shape), 1 - self.delta, "arms are identical")
        unclaimed = self._why_unclaimed(state.arms)
        if unclaimed:
            return unclaimed_decision(state, unclaimed)
        units = self._units(state.arms)
        # `phase` is the one in progress: claims rest on the one before, ℓ − 1, hence 2·2^{−(ℓ−1)}.
        claimed = np.where(state.phase > 1, units.reward * np.ldexp(1.0, 2 - state.phase), np.inf)
        return phased_decision(state, claimed, 1 - self.delta, f"proven, if {units.declared}")

    def _units(self, arms: ArmSet) -> Units:
        return units_of(arms, self.theta_bound, self.shift_bound, self.noise)

    def _why_unclaimed(self, arms: ArmSet) -> str:
        """Return why nothing can be claimed, or ""."""
        if self.longest is not None:
            return "none (phases are cut)"
        if self.theta_bound is None:
            return UNDECLARED
        if not isinstance(self.design, str):
            return OWN_DESIGN
        if not _phases_suffice(self, max(arms.dimension, 1), len(arms), self._units(arms)):
            return f"none (constants of schedule {self.schedule!r} are not known to suffice)"
        return ""

    def _left(self, state: PhasedState) -> Whole:
        left = super()._left(state)
        if self.horizon is None:
            return left
        until = np.maximum(self.horizon - state.rounds, 0)
        return np.where(state.declared >= 0, left, np.minimum(left, until))


# Depends on settings alone, and is asked for with every decision.
@lru_cache(maxsize=256)
def _phases_suffice(policy: SBE, dimension: int, arms: int, units: Units) -> bool:
    """Tell whether in every phase all x_i − x_1 are proven to be within ε_ℓ/2, but for δ/(ℓ(ℓ+1))."""
    for phase in count(1):
        rounds = policy._phase_rounds(phase, dimension, arms)
        if rounds >= FOREVER:
            break  # such a phase never ends
        ridge = phase_ridge(phase, rounds, policy.delta)
        share = policy.delta / (phase * (phase + 1))
        error = units.largest_error(dimension, arms, rounds, share, ridge)
        if error > units.reward * np.ldexp(1.0, -phase) / 2:
            return False
    return True
