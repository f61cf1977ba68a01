"""BOSE: filter the arms after every round, and explore the rest with a distribution that hides the shift.

With fixed arms its memory is the centred regression seen from the arms. The filter says who may still be
best; it serves the simplest distribution too, a fair coin between the two farthest survivors. Offers are
filtered alike, with the regression of personalised policies and γ in units of the residuals' scale.
"""

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive, check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design.ball import TOLERANCE, ball_into, squared_distance
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate.forecast.baselines import Baseline, RunningMean, check_baseline
from orthobandit.peers.regression import ArmsView, begin_arms_view, learn_centred_at_plan
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.contextual.base import CompiledContextual, ScoreStep
from orthobandit.policy.contextual.base import ObserveStep as OfferObserveStep
from orthobandit.policy.contextual.base import PlanStep as OfferPlanStep
from orthobandit.policy.contextual.regression import (
    SETTLED,
    CentredMemory,
    begin_centred,
    grow_ridge,
    learn_centred,
    pair_widths_into,
    scale_into,
    score_centred,
    scores_into,
)
from orthobandit.policy.every_round import ObserveStep, PlanStep, RoundPolicy, RoundState, settle_on
from orthobandit.policy.units import UNDECLARED, Units, check_bounds, units_of

OFFERED_TOLERANCE = 1e-6  # of distributions over an offer, whose features may be on any scale


class FilterSettings(NamedTuple):
    """Features on the arms' hull (K, r), λ and γ; `is_exact` chooses between the distributions of BOSE."""

    features: Array
    ridge: float
    width: float
    is_exact: bool


@compiled
def survivors_into(inner: Array, scores: Array, width: float, survives: Mask) -> int:
    """Mark the arms that no other beats by more than γ times their distance in P (K, K); return how many."""
    squared_width = width**2
    count = 0
    for a in range(scores.size):
        survives[a] = True
        for b in range(scores.size):
            lead = scores[b] - scores[a]
            if lead > 0.0 and lead * lead > squared_width * squared_distance(inner, a, b):
                survives[a] = False
                break
        count += survives[a]
    return count


@compiled
def list_survivors(inner: Array, scores: Array, width: float) -> tuple[Whole, bool]:
    """Return the survivors (m,) and whether all of them have the same features."""
    survives = np.empty(scores.size, dtype=np.bool_)
    survivors_into(inner, scores, width, survives)
    among = np.flatnonzero(survives)
    for a in among:
        if squared_distance(inner, int(a), int(among[0])) > 0.0:
            return among, False
    return among, True


@compiled
def explore_into(inner: Array, among: Whole, is_exact: bool, probabilities: Array) -> float:
    """Write BOSE's distribution on the survivors and return its residual, or write the uniform one."""
    if is_exact:
        return float(ball_into(inner, among, probabilities))
    probabilities[:] = 0.0
    probabilities[among] = 1.0 / among.size
    return 0.0


@dataclass(frozen=True)
class FilterPolicy(RoundPolicy):
    """BOSE without its distribution: constants, memory and decisions. Subclasses say how to explore."""

    horizon: int
    delta: float = 0.05
    constants: str = "tuned"
    scale: float = 1.0
    ridge: float | None = None
    theta_bound: float | None = field(default=None, kw_only=True)
    shift_bound: float | None = field(default=None, kw_only=True)
    noise: float = field(default=1.0, kw_only=True)

    observe_into: ClassVar[ObserveStep] = staticmethod(learn_centred_at_plan)
    pair_bytes: ClassVar[float] = 24.0  # inner products, and what is made on the way to them

    def __post_init__(self) -> None:
        check_whole("horizon", self.horizon)
        check_fraction("delta", self.delta)
        check_choice("constants", self.constants, ("tuned", "theory"))
        check_positive("scale", self.scale)
        if self.ridge is not None:
            check_positive("ridge", self.ridge)
        if self.constants == "theory" and (self.scale != 1.0 or self.ridge is not None):
            raise ParameterError(
                Argument("scale", self.scale),
                f" and ridge={self.ridge} belong to constants='tuned';"
                " constants='theory' leaves nothing to set",
            )
        check_bounds(self.theta_bound, self.shift_bound, self.noise)

    def regression_ridge(self, arms: ArmSet) -> float:
        """Return λ = 4r·log(9T) + 8·log(4T/δ), or the `ridge` that was set, in units of the squared features.

        With features x/L and V = λI + Σx̃x̃ᵀ/L², all scores and norms are as with x and V = λL²I + Σx̃x̃ᵀ.
        """
        return self._ridge(arms) * self._units(arms).feature ** 2

    def _ridge(self, arms: ArmSet) -> float:
        """Return λ in the units of the constants."""
        if self.ridge is not None:
            return float(self.ridge)
        r = max(arms.dimension, 1)
        T = self.horizon
        return 4 * r * math.log(9 * T) + 8 * math.log(4 * T / self.delta)

    def filter_width(self, arms: ArmSet) -> float:
        """Return γ in units of the rewards, by theory or tuned (:class:`~orthobandit.peers.bose.BOSE`)."""
        r = max(arms.dimension, 1)
        T = self.horizon
        unit = self._units(arms).reward
        root = math.sqrt(self._ridge(arms))
        if self.constants == "theory":
            noise = math.sqrt(27 * r * math.log(1 + 2 * T / r) + 54 * math.log(4 * T / self.delta))
            return unit * (root + noise)
        inside = r * max(math.log(T / r), 0.0) + math.log(T / self.delta)
        return unit * self.scale * (root + math.sqrt(inside))

    def _units(self, arms: ArmSet) -> Units:
        return units_of(arms, self.theta_bound, self.shift_bound, self.noise)

    def settings(self, arms: ArmSet) -> FilterSettings:
        """Return what the compiled steps read."""
        positions = np.ascontiguousarray(arms.positions)
        return FilterSettings(
            features=positions,
            ridge=self.regression_ridge(arms),
            width=self.filter_width(arms),
            is_exact=True,
        )

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> ArmsView:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        return begin_arms_view(arms.positions, self.regression_ridge(arms), len(numbers))

    def decide(self, state: RoundState) -> Decision:
        """Return what is known now.

        On the event that all contrasts are estimated within γ of their norm, dropped arms are worse and a
        sole survivor is best. It has probability 1 − δ with the theoretical constants within the horizon, if
        `theta_bound`, `shift_bound` and `noise` are true; `mode` repeats them. Without them, with tuned
        constants or beyond the horizon nothing is claimed.
        """
        packed = self.pack(state)
        settings = self.settings(state.arms)
        active = np.empty((state.rounds.size, len(state.arms)), dtype=np.bool_)
        for i in range(len(active)):
            survivors_into(packed.memory.inner[i], packed.memory.scores[i], settings.width, active[i])
        leader = np.argmax(np.where(active, packed.memory.scores, -np.inf), axis=-1)
        settled = packed.rounds == FOREVER
        leader = np.where(settled, np.argmax(packed.probabilities, axis=-1), leader)
        why = self._why_unclaimed(state.arms, packed.memory)
        batch = state.rounds.shape
        return Decision(
            active=active.reshape((*batch, -1)),
            leader=leader.reshape(batch),
            declared=np.where(settled, leader, -1).reshape(batch),
            epsilon=np.where(settled & (not why), 0.0, np.inf).reshape(batch),
            certainty=0.0 if why else 1 - self.delta,
            mode=why or self._why_claimed(state.arms),
        )

    def _why_unclaimed(self, arms: ArmSet, memory: ArmsView) -> str:
        """Return why nothing can be claimed, or ""."""
        if not arms.dimension:
            return ""
        if self.constants != "theory":
            return "none (tuned constants)"
        if self.theta_bound is None:
            return UNDECLARED
        if np.any(memory.step > self.horizon):
            return "none (played beyond the horizon of the constants)"
        return ""

    def _why_claimed(self, arms: ArmSet) -> str:
        """Return what a claim rests on."""
        return f"theory, if {self._units(arms).declared}" if arms.dimension else "arms are identical"


@compiled
def plan_ball(settings: FilterSettings, memory: ArmsView, i: int, probabilities: Array) -> int:
    """Draw survivors from BOSE's distribution, or uniformly."""
    inner = memory.inner[i]
    among, are_alike = list_survivors(inner, memory.scores[i], settings.width)
    if are_alike:
        return settle_on(among[0], probabilities)
    return 1 if explore_into(inner, among, settings.is_exact, probabilities) <= TOLERANCE else -1


@dataclass(frozen=True)
class BOSE(FilterPolicy):
    """Bandit orthogonalised semiparametric estimation (Krishnamurthy, Wu & Syrgkanis 2018, Algorithm 1).

    Every round: θ̂ = V⁻¹Σ x̃r with V = λI + Σ x̃x̃ᵀ; drop arm i if some j has θ̂ᵀ(x_j − x_i) > γ‖x_j − x_i‖_{V⁻¹}.
    A sole survivor is played and nothing is updated. Otherwise draw from a distribution p on the survivors
    with ‖x_a − μ_p‖²_{V⁻¹} ≤ tr(V⁻¹Σ_p) for each of them. Such p maximise tr(V⁻¹Σ_p): they are the dual
    solution of the smallest ball around {V^{−1/2}x_a}, found exactly
    (:func:`~orthobandit.design.ball.enclosing_ball`; residual ≤ 1e-8 or
    :class:`~orthobandit.errors.DesignError`). Two survivors get ½ each.

    Regret Õ(d√T) for oblivious and adaptive shifts with the theoretical constants. Departs: d is the affine
    dimension r; arms do not change over time, so a sole survivor is declared and played for ever; survivors
    with equal features are equally good and the first is declared.

    Parameters
    ----------
    horizon : int
        T of the constants. Playing on after it is allowed.
    delta : float
        Failure probability δ.
    constants : {"tuned", "theory"}
        λ = 4r·log(9T) + 8·log(4T/δ) in both. γ = √λ + √(27r·log(1+2T/r) + 54·log(4T/δ)) in theory, and
        c(√λ + √(r·log(T/r) + log(T/δ))) tuned.
    scale : float
        c of the tuned γ.
    ridge : float, optional
        Another λ for the tuned constants.
    theta_bound, shift_bound : float, optional
        S and N with ‖θ‖ ≤ S and |ν_t| ≤ N, for the features as they are given; both or neither. The
        constants are for ‖x‖, ‖θ‖, |ν| ≤ 1 and 1-sub-Gaussian noise; with the bounds λ and γ are multiplied
        so that they fit, and no decision depends on units. Without them nothing is claimed.
    noise : float
        σ of the sub-Gaussian noise; read only with the bounds.
    distribution : {"exact", "uniform"}
        "uniform" plays all survivors alike, as the authors' public code does; their bound of the regret is
        not proven for it.

    Examples
    --------
    >>> policy = BOSE(horizon=1000)
    >>> state = policy.start(ArmSet([[0.0, 0.0], [2.0, 0.0], [1.0, 0.5]]))
    >>> policy.plan(state).probabilities.tolist()
    [0.5, 0.5, 0.0]
    """

    distribution: str = "exact"

    plan_into: ClassVar[PlanStep] = staticmethod(plan_ball)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("distribution", self.distribution, ("exact", "uniform"))

    def settings(self, arms: ArmSet) -> FilterSettings:
        """Return what the compiled steps read."""
        return super().settings(arms)._replace(is_exact=self.distribution == "exact")


class OfferedSettings(NamedTuple):
    """γ in units of the residuals' scale, and `is_exact` as above."""

    radius: float
    is_exact: bool


@compiled
def plan_offered(
    settings: OfferedSettings, memory: CentredMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Draw the survivors of an offer from BOSE's distribution, or uniformly."""
    count = features.shape[0]
    scaled = np.empty(features.shape)
    scale_into(memory.units[i], features, scaled)
    if memory.rounds[i] < SETTLED:
        grow_ridge(memory, i, scaled)
    scores = np.empty(count)
    squared = np.empty((count, count))
    scores_into(scaled, memory.theta[i], scores)
    pair_widths_into(scaled, memory.inverse[i], squared)
    # Inner products from the first arm: ⟨y_a − y_0, y_b − y_0⟩ = (w_a0 + w_b0 − w_ab)/2.
    inner = np.empty((count, count))
    for a in range(count):
        for b in range(count):
            inner[a, b] = (squared[a, 0] + squared[b, 0] - squared[a, b]) / 2.0
    survives = np.empty(count, dtype=np.bool_)
    probabilities[:] = 0.0
    if survivors_into(inner, scores, settings.radius * np.sqrt(memory.variance[i]), survives) == 1:
        probabilities[np.argmax(survives)] = 1.0
        return 0
    residual = explore_into(inner, np.flatnonzero(survives), settings.is_exact, probabilities)
    return 0 if residual <= OFFERED_TOLERANCE else -1


@dataclass(frozen=True)
class ContextualBOSE(CompiledContextual):
    """BOSE (Krishnamurthy, Wu & Syrgkanis 2018), contextual as published.

    Drop arm a of the offer if another has (x_b − x_a)ᵀθ̂ > γ‖x_a − x_b‖_{V⁻¹}; play one survivor alone, and
    else a distribution with ‖x_a − μ‖²_{V⁻¹} ≤ tr(V⁻¹Σ) for all survivors: the dual of the smallest enclosing
    ball, solved exactly. Departs: γ is in units of the residuals' scale instead of a bound on them, the ridge
    is 1 per feature instead of 4d·log(9T) + 8·log(4T/δ), and a running mean is taken off rewards; with the
    published constants regret is several times as large. The authors' public code plays the survivors
    uniformly (``explore="uniform"``).

    Parameters
    ----------
    radius : float
        γ in units of the residuals' scale.
    explore : {"ball", "uniform"}
    ridge : float
        Per feature, in units of each feature's spread.
    baseline : Baseline
        Forecast of the level.

    Examples
    --------
    >>> from orthobandit.policy.contextual import Offer
    >>> policy = ContextualBOSE()
    >>> policy.plan(policy.start(1), Offer([[0.0], [1.0]])).probabilities.tolist()
    [0.5, 0.5]
    """

    radius: float = 1.0
    explore: str = "ball"
    ridge: float = 1.0
    baseline: Baseline = RunningMean()  # noqa: RUF009

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_positive("ridge", self.ridge)
        check_choice("explore", self.explore, ("ball", "uniform"))
        check_baseline(self.baseline)

    def settings(self, dimension: int) -> OfferedSettings:  # noqa: ARG002
        """Return what the compiled steps read."""
        return OfferedSettings(float(self.radius), self.explore == "ball")

    def begin(self, dimension: int, keys: Whole) -> CentredMemory:
        """Return the memory before the first round."""
        return begin_centred(dimension, self.ridge, keys)

    plan_into: ClassVar[OfferPlanStep] = staticmethod(plan_offered)
    observe_into: ClassVar[OfferObserveStep] = staticmethod(learn_centred)
    score_of: ClassVar[ScoreStep] = staticmethod(score_centred)
