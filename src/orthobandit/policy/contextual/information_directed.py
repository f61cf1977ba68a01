"""Centred information-directed sampling: low regret for every visitor, whatever the level does."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_choice, check_fraction, check_positive
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, ParameterError, RewardError
from orthobandit.estimate.confidence.modes import Bounded, SubGaussian
from orthobandit.estimate.forecast.baselines import ARMA, Baseline, check_baseline
from orthobandit.estimate.plan import Plan
from orthobandit.policy.contextual._exact_sums import add_exact_round, begin_sums, exact_norm_into
from orthobandit.policy.contextual._guaranteed_plan import guaranteed_into
from orthobandit.policy.contextual.additive import (
    AdditiveMemory,
    AdditiveNoise,
    AdditiveSettings,
    additive_settings,
    begin_additive,
    observe_additive,
    plan_additive,
)
from orthobandit.policy.contextual.base import (
    CompiledContextual,
    ContextualState,
    ObserveStep,
    PlanStep,
    ScoreStep,
    Steps,
)
from orthobandit.policy.contextual.ellipsoid import (
    CertifiedMemory,
    CertifiedSettings,
    Ellipsoid,
    begin_certified,
    observe_certified,
    prior_of,
)
from orthobandit.policy.contextual.offers import Offer
from orthobandit.policy.contextual.regression import (
    SETTLED,
    CentredMemory,
    begin_centred,
    direct_into,
    dot,
    grow_ridge,
    learn_centred,
    mean_into,
    scale_into,
    score_centred,
    scores_into,
)
from orthobandit.policy.contextual.trusting import (
    TrustingMemory,
    TrustingSettings,
    begin_trusting,
    observe_trusting,
    plan_trusting,
    score_trusting,
)

# The ridge of the guaranteed mode, in rounds' worth of noise for a θ of the declared size, and where its
# boundary is tightest, in multiples of that ridge. Any values are valid; these had the least regret of a few.
RIDGE = 3.0
PRIOR = 10.0


class DirectedSettings(NamedTuple):
    """What the compiled steps of the default mode read: the radius in units of the residuals' scale."""

    radius: float


@compiled
def plan_directed(
    settings: DirectedSettings, memory: CentredMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Plan with a radius in units of the residuals' scale."""
    count, size = features.shape
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features, scaled)
    if memory.rounds[i] < SETTLED:
        grow_ridge(memory, i, scaled)
    if count == 1:
        probabilities[0] = 1.0
        return 0
    scores = np.empty(count)
    scores_into(scaled, memory.theta[i], scores)
    radius = settings.radius * np.sqrt(memory.variance[i])
    direct_into(scaled, scores, memory.inverse[i], radius, np.inf, probabilities)
    return 0


class ExactSettings(NamedTuple):
    """What the compiled steps of the guaranteed mode read.

    `low` and `high` bound the mean of every reward, `variance` is σ² of the noise, `size` bounds ‖θ‖, and
    `ridge` ρ and `prior` λ begin A and W; `noise` is about what W gains when A gains 1.
    """

    low: float
    high: float
    variance: float
    size: float
    ridge: float
    prior: float
    noise: float
    log_inverse: float


class ExactMemory(NamedTuple):
    """What R replications remember.

    A and W (R, d, d), their inverses, M = A⁻¹WA⁻¹, θ̂ (R, d) and log det(W/λ) (R,).
    """

    gram: Array
    inverse: Array
    scatter: Array
    scatter_inverse: Array
    spread: Array
    theta: Array
    growth: Array
    rounds: Whole
    taught: Whole
    key: Whole


@compiled
def plan_exact(
    settings: ExactSettings, memory: ExactMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Plan with the exact ellipsoid."""
    count, size = features.shape
    if count == 1:
        probabilities[0] = 1.0
        return 0
    norm = np.empty((size, size))
    exact_norm_into(settings, memory, i, norm)
    scores = np.empty(count)
    scores_into(features, memory.theta[i], scores)
    guaranteed_into(features, scores, norm, settings.high - settings.low, probabilities)
    return 0


@compiled
def observe_exact(
    settings: ExactSettings,
    memory: ExactMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round to the regression and to the matrix W of the ellipsoid."""
    memory.rounds[i] += 1
    if probabilities[arm] >= 1.0:
        return
    memory.taught[i] += 1
    size = features.shape[1]
    theta = memory.theta[i]
    mean = np.empty(size)
    mean_into(features, probabilities, mean)
    expected = dot(mean, theta)
    # The mean of the reward lies in [low, high]: a centre outside can only be worse.
    centre = min(max(forecast + expected, settings.low), settings.high)
    bound = max(settings.high - centre, centre - settings.low) ** 2
    error = reward - centre - (dot(features[arm], theta) - expected)
    # W gains σ²x̃x̃ᵀ + B²(x̃x̃ᵀ + 2Σ_t)/3.
    planned = 2.0 * bound / 3.0
    drawn = settings.variance + bound / 3.0
    add_exact_round(memory, i, features, mean, probabilities, arm, error, 1.0, planned, drawn)


@compiled
def score_exact(_settings: Any, memory: ExactMemory, i: int, feature: Array) -> float:
    """Return xᵀθ̂."""
    return dot(feature, memory.theta[i])


@dataclass(frozen=True)
class InformationDirected(CompiledContextual):
    """Play the two arms that buy information at the least regret, with exact propensities.

    In each round Δ_a = max_b [(x_b − x_a)ᵀθ̂ + β‖x_a − x_b‖_{V⁻¹}] is the most that arm a may lose. Of all
    pairs the one with the least Δ_aΔ_b/‖x_a − x_b‖² is played, a with probability Δ_b/(Δ_a + Δ_b); the leader
    alone where nobody can beat it. θ̂ is the centred regression, which no level can bias, not even one that
    depends on who comes. Regret is Õ(d√T) whatever the number of arms (docs/contextual.md has the proof).

    Parameters
    ----------
    radius : float
        β in units of the residuals' scale. The default serves without tuning.
    confidence : Bounded, SubGaussian or AdditiveNoise, optional
        Where the means of all rewards lie, and how they scatter. Given, :meth:`intervals` hold at all times
        at once, at every sample size and whatever the level does.
    size : float, optional
        The most that ‖θ‖ can be, in the units of the features. It narrows exact intervals early on, and is
        needed for ``play="guaranteed"``.
    delta : float
        Probability that some exact interval is ever wrong.
    ridge : float
        Penalty ρ of the regression per feature, in units of each feature's spread; of the default radius.
    baseline : Baseline
        Forecast of the level. A good one saves regret, none can bias effects.
    play : {"default", "guaranteed"}
        Which β plans are made with. With the default one exact intervals cost no regret; the guaranteed one,
        the exact anytime radius, also proves the bound on regret. It has more of it, several times as much
        for a wide range of rewards.
    trusts_level : bool
        Best of both: play by a plain regression, which also learns from rounds that play one arm alone, until
        a Hausman test finds that it contradicts the centred one; then as ever. It saves regret if the level
        does not depend on what is offered, and may cost several times as much before the test rejects.

    Examples
    --------
    >>> from orthobandit.policy.contextual import Interactions
    >>> policy = InformationDirected()
    >>> pages = Interactions(["A", "B"], context=["mobile"])
    >>> state = policy.start(pages.dimension)
    >>> policy.plan(state, pages.offer({"mobile": 1.0})).probabilities.tolist()
    [0.5, 0.5]
    """

    radius: float = 1.5
    confidence: Bounded | SubGaussian | AdditiveNoise | None = None
    size: float | None = None
    delta: float = 0.05
    ridge: float = 3.0
    baseline: Baseline = ARMA(lags=4, ridge=1.0)  # noqa: RUF009
    play: str = "default"
    trusts_level: bool = False

    def __post_init__(self) -> None:
        check_positive("radius", self.radius)
        check_positive("ridge", self.ridge)
        check_fraction("delta", self.delta)
        check_baseline(self.baseline)
        check_choice("play", self.play, ("default", "guaranteed"))
        if self.size is not None:
            check_positive("size", self.size)
        if self.confidence is not None and not isinstance(
            self.confidence, Bounded | SubGaussian | AdditiveNoise
        ):
            raise ParameterError(
                Argument("confidence", self.confidence),
                " must be Bounded(low, high), SubGaussian(low, high, sigma) or"
                " AdditiveNoise(), or be left out for a radius in units of the residuals' scale",
            )
        if self.trusts_level and self.confidence is not None:
            raise ParameterError(
                "trusts_level=True makes no exact claims: leave out confidence, or set trusts_level=False"
            )
        if isinstance(self.confidence, AdditiveNoise) and self.play != "guaranteed":
            raise ParameterError(
                f'play={self.play!r} has no exact intervals under AdditiveNoise(); set play="guaranteed" and'
                " the most that ‖θ‖ can be as `size`"
            )
        if self.play == "guaranteed" and (self.confidence is None or self.size is None):
            missing = "confidence" if self.confidence is None else "size"
            raise ParameterError(
                f'{missing} is missing: play="guaranteed" needs what is known of the noise (its range and'
                " scatter, or AdditiveNoise()) and the most that ‖θ‖ can be, in the features' units"
            )

    @property
    def is_exact(self) -> bool:
        """Whether intervals are exact at every sample size."""
        return self.confidence is not None

    def settings(  # noqa: D102
        self, dimension: int
    ) -> DirectedSettings | TrustingSettings | CertifiedSettings | ExactSettings | AdditiveSettings:
        if self.trusts_level:
            return TrustingSettings(float(self.radius))
        if isinstance(self.confidence, AdditiveNoise) and self.size is not None:
            return additive_settings(dimension, self.size, self.delta)
        if not isinstance(self.confidence, Bounded | SubGaussian):
            return DirectedSettings(float(self.radius))
        low, high = self.confidence.range
        # Noise within [low, high] is sub-Gaussian with half its length (Hoeffding 1963).
        sigma = self.confidence.sigma if isinstance(self.confidence, SubGaussian) else (high - low) / 2.0
        noise = sigma**2 + ((high - low) / 2.0) ** 2
        if self.play == "default" or self.size is None:
            return CertifiedSettings(float(self.radius), low, high, sigma**2, prior_of(dimension, noise))
        ridge = RIDGE * noise / self.size**2
        prior = PRIOR * noise * ridge
        return ExactSettings(
            low, high, sigma**2, float(self.size), ridge, prior, noise, -float(np.log(self.delta))
        )

    def begin(  # noqa: D102
        self, dimension: int, keys: Whole
    ) -> CentredMemory | TrustingMemory | CertifiedMemory | ExactMemory | AdditiveMemory:
        settings = self.settings(dimension)
        if isinstance(settings, TrustingSettings):
            return begin_trusting(dimension, self.ridge, keys)
        if isinstance(settings, AdditiveSettings):
            return begin_additive(dimension, settings, keys)
        if isinstance(settings, DirectedSettings):
            return begin_centred(dimension, self.ridge, keys)
        if isinstance(settings, CertifiedSettings):
            return begin_certified(dimension, self.ridge, settings.prior, keys)
        return ExactMemory(**begin_sums(dimension, settings.ridge, settings.prior, keys))

    plan_into: ClassVar[PlanStep] = staticmethod(plan_directed)
    observe_into: ClassVar[ObserveStep] = staticmethod(learn_centred)
    score_of: ClassVar[ScoreStep] = staticmethod(score_centred)

    def steps(self, dimension: int) -> Steps:
        """Return the compiled steps of the mode."""
        settings = self.settings(dimension)
        if isinstance(settings, TrustingSettings):
            return Steps(settings, plan_trusting, observe_trusting, score_trusting)
        if isinstance(settings, AdditiveSettings):
            return Steps(settings, plan_additive, observe_additive, score_exact)
        if isinstance(settings, ExactSettings):
            return Steps(settings, plan_exact, observe_exact, score_exact)
        if isinstance(settings, CertifiedSettings):
            return Steps(settings, plan_directed, observe_certified, score_centred)
        return super().steps(dimension)

    def observe(
        self, state: ContextualState, offer: Offer, plan: Plan, arm: int, reward: float, forecast: float = 0.0
    ) -> ContextualState:
        """Return the state after the reward of one round; a reward outside the declared range is refused."""
        if isinstance(self.confidence, Bounded | SubGaussian):
            low, high = self.confidence.reward_range
            if not low <= reward <= high and np.isfinite(reward):
                raise RewardError(
                    f"round {int(state.rounds)}: reward={reward:g} is outside the declared range"
                    f" [{low:g}, {high:g}]; declare a range that holds all rewards"
                )
        return super().observe(state, offer, plan, arm, reward, forecast)

    def intervals(self, state: ContextualState, contrasts: ArrayLike) -> tuple[Array, Array]:
        """Return lower and upper ends (n,) of zᵀθ for contrasts z (n, d), for a state without leading axes.

        With `confidence` all of them hold at all times at once with probability 1 − δ, whatever the level
        does and whichever contrasts are asked for; they are infinite where nothing is known. Otherwise they
        are ±β standard errors, as the policy uses them, and no claim is made.
        """
        rows = np.atleast_2d(np.asarray(contrasts, dtype=np.float64))
        if rows.shape[1] != state.dimension:
            raise ParameterError(
                f"contrasts have {rows.shape[1]} columns; θ has {state.dimension} coefficients"
            )
        if self.confidence is not None:
            return self.ellipsoid(state).intervals(rows)
        units = state.memory.units
        scaled = np.divide(1.0, units, out=np.zeros(state.dimension), where=units > 0)
        # Of the centred regression, also while the plain one plays.
        middle = rows @ (state.memory.theta * scaled)
        norm = state.memory.inverse * np.outer(scaled, scaled) * state.memory.variance * self.radius**2
        width = np.sqrt(np.maximum(np.einsum("nd,de,ne->n", rows, norm, rows), 0.0))
        return middle - width, middle + width

    def ellipsoid(self, state: ContextualState) -> Ellipsoid:
        """Return where θ lies at all times with probability 1 − δ, for a state without leading axes."""
        if state.rounds.ndim:
            raise ParameterError("an ellipsoid is that of one replication; the state has leading axes")
        size = np.inf if self.size is None else float(self.size)
        memory = state.memory
        settings = self.settings(state.dimension)
        if isinstance(settings, ExactSettings | AdditiveSettings):
            information = memory.gram - settings.ridge * np.eye(state.dimension)
            radius = float(np.sqrt(2.0 * settings.log_inverse + memory.growth))
            return Ellipsoid(information, memory.scatter, memory.gram @ memory.theta, radius, size)
        if isinstance(settings, DirectedSettings | TrustingSettings):
            raise ParameterError("confidence is missing: an exact ellipsoid needs the range of rewards")
        growth = float(np.linalg.slogdet(memory.scatter / settings.prior)[1])
        radius = float(np.sqrt(growth - 2.0 * np.log(self.delta)))
        units = memory.units
        both = np.outer(units, units)
        return Ellipsoid(
            memory.information * both, memory.scatter * both, memory.moment * units, radius, size
        )
