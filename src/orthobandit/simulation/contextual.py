"""Simulated rounds with their own features: who comes, what arms are worth to them, how the level moves."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_choice, check_whole
from orthobandit._foundation.compile import compiled_for, compiled_in_place
from orthobandit._foundation.random import compiled_stream, next_position, stream
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate.forecast.baselines import CompiledBaseline, CovariateRegression
from orthobandit.estimate.forecast.compiled import (
    NOTHING,
    REGRESSION,
    Recipe,
    forecast,
    fresh_memory,
    learn,
    learn_penalised,
    learn_regressed,
    regressed,
    regressor_count,
)
from orthobandit.estimate.forecast.contract import Forecaster
from orthobandit.estimate.forecast.kernel import KernelRegression
from orthobandit.policy.contextual.base import CompiledContextual, Steps
from orthobandit.policy.contextual.offers import Interactions
from orthobandit.simulation.compiled_rounds import FINE, REWARD_NOT_FINITE, UNSOLVED
from orthobandit.simulation.noise import NOISE_STEP, Gaussian, Noise, NoiseStep, noise_step
from orthobandit.simulation.shifts import Oblivious

__all__ = [
    "AgainstTheBest",
    "AgainstThePlan",
    "BlockOffers",
    "ContextualEnvironment",
    "ContextualResult",
    "ContextualShift",
    "GaussianOffers",
    "GrowingLevel",
    "InteractionOffers",
    "LinkedUserOffers",
    "Offers",
    "PositiveOffers",
    "ReplayedOffers",
    "SphereOffers",
    "UserItemOffers",
    "WhoComes",
    "kim_paik_setting",
    "simulate_offers",
]

BLOCK = 4_000_000  # features that are made at a time: 32 MB
# What a compiled forecast reads of the context: nothing, named columns, or smooth functions of them.
UNREAD, AS_GIVEN, SMOOTH = range(3)
CURVE = 100  # places at which regret is recorded


class Offers(ABC):
    """Who comes: features of all arms and the context of each visitor."""

    arms: int
    dimension: int
    names: tuple[str, ...] = ()

    @abstractmethod
    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:
        """Return features (n, K, d) and contexts (n, m) of the next `count` visitors."""


@dataclass(frozen=True)
class SphereOffers(Offers):
    """New arms every round: uniform on the unit sphere."""

    arms: int
    dimension: int

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: D102
        drawn = generator.normal(size=(count, self.arms, self.dimension))
        drawn /= np.linalg.norm(drawn, axis=2, keepdims=True)
        return drawn, np.zeros((count, 0))


@dataclass(frozen=True)
class GaussianOffers(Offers):
    """New arms every round: standard normal features, divided by √d."""

    arms: int
    dimension: int

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: D102
        drawn = generator.normal(size=(count, self.arms, self.dimension))
        return drawn / np.sqrt(self.dimension), np.zeros((count, 0))


@dataclass(frozen=True)
class PositiveOffers(Offers):
    """New arms every round: unit vectors with a few large, non-negative features."""

    arms: int
    dimension: int

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: D102
        weights = np.full(self.dimension, 1.0 / self.dimension)
        drawn = generator.dirichlet(weights, size=(count, self.arms))
        drawn /= np.maximum(np.linalg.norm(drawn, axis=2, keepdims=True), 1e-12)
        return drawn, np.zeros((count, 0))


@dataclass(frozen=True)
class UserItemOffers(Offers):
    """A user and a few items per round: features are all products of a user's and an item's traits.

    xᵀθ is then the bilinear value uᵀΘv of an item v to a user u. The context is that of the user.

    Parameters
    ----------
    arms : int
        Items that are offered in a round.
    user_traits, item_traits : int
        Lengths of u and v, drawn uniformly from the unit sphere.
    catalogue : int
        Number of items in all; every round offers some of them, without repetition.
    """

    arms: int
    user_traits: int
    item_traits: int
    catalogue: int = 100

    def __post_init__(self) -> None:
        for name in ("arms", "user_traits", "item_traits"):
            check_whole(name, getattr(self, name))
        check_whole("catalogue", self.catalogue, least=self.arms)
        object.__setattr__(self, "dimension", self.user_traits * self.item_traits)
        object.__setattr__(self, "names", tuple(f"u{place}" for place in range(self.user_traits)))

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: D102
        # The catalogue is the same in all runs: only who comes, and which items are offered, is chance.
        items = np.random.default_rng(self.catalogue).normal(size=(self.catalogue, self.item_traits))
        items /= np.linalg.norm(items, axis=1, keepdims=True)
        users = generator.normal(size=(count, self.user_traits))
        users /= np.linalg.norm(users, axis=1, keepdims=True)
        order = generator.random((count, self.catalogue)).argsort(axis=1)
        offered = order[:, : self.arms]
        crossed = users[:, np.newaxis, :, np.newaxis] * items[offered][:, :, np.newaxis, :]
        return np.asarray(crossed.reshape(count, self.arms, -1)), users


@dataclass(frozen=True)
class BlockOffers(Offers):
    """A reference without features, and arms with features of their own, drawn anew from the unit ball.

    Arm k > 0 has its features in block k of θ, so that arms share nothing.
    """

    arms: int
    block: int

    def __post_init__(self) -> None:
        check_whole("arms", self.arms, least=2)
        check_whole("block", self.block)
        object.__setattr__(self, "dimension", (self.arms - 1) * self.block)

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: D102
        drawn = generator.normal(size=(count, self.arms - 1, self.block))
        drawn /= np.linalg.norm(drawn, axis=2, keepdims=True)
        # A uniform number to the power 1/d is the length of a point that is uniform in the ball.
        drawn *= generator.random((count, self.arms - 1, 1)) ** (1.0 / self.block)
        features = np.zeros((count, self.arms, self.arms - 1, self.block))
        places = np.arange(self.arms - 1)
        features[:, places + 1, places] = drawn
        return features.reshape(count, self.arms, self.dimension), np.zeros((count, 0))


@dataclass(frozen=True)
class LinkedUserOffers(Offers):
    """One of several users a round, uniformly, and arms that are drawn anew from the unit sphere.

    Features are in the block of the user who comes, as :meth:`SemiGraphTS.offer` builds them; θ has a block
    of effects for every user. The context has a column for every user, 1 for the one who comes.

    Parameters
    ----------
    users, arms, effects : int
        Users there are, arms of an offer, and effects that every user has.
    """

    users: int
    arms: int
    effects: int

    def __post_init__(self) -> None:
        for name in ("users", "arms", "effects"):
            check_whole(name, getattr(self, name))
        object.__setattr__(self, "dimension", self.users * self.effects)
        object.__setattr__(self, "names", tuple(f"user {number}" for number in range(self.users)))

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: D102
        drawn = generator.normal(size=(count, self.arms, self.effects))
        drawn /= np.linalg.norm(drawn, axis=2, keepdims=True)
        users = generator.integers(self.users, size=count)
        features = np.zeros((count, self.arms, self.users, self.effects))
        features[np.arange(count), :, users] = drawn
        return features.reshape(count, self.arms, self.dimension), np.eye(self.users)[users]


class InteractionOffers(Offers):
    """The same arms for everybody, whose effects depend on the visitor's context.

    Parameters
    ----------
    interactions : Interactions
    contexts : callable
        ``contexts(generator, count)`` returns contexts (n, m) of `count` visitors; normal by default.
    """

    def __init__(
        self, interactions: Interactions, contexts: Callable[[np.random.Generator, int], Array] | None = None
    ) -> None:
        self.interactions = interactions
        self.arms = len(interactions.labels)
        self.dimension = interactions.dimension
        self.names = interactions.context
        self._contexts = contexts

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: D102
        if self._contexts is None:
            context = generator.normal(size=(count, len(self.names)))
        else:
            context = np.asarray(self._contexts(generator, count), dtype=np.float64)
        return self.interactions.features(context), context


class ReplayedOffers(Offers):
    """Offers of a log, drawn with replacement.

    Parameters
    ----------
    features : array-like (n, K, d)
    context : array-like (n, m), optional
    names : sequence of str
        Of the columns of the context.
    """

    def __init__(
        self, features: ArrayLike, context: ArrayLike | None = None, names: Sequence[str] = ()
    ) -> None:
        self._features = np.asarray(features, dtype=np.float64)
        if self._features.ndim != 3 or not self._features.size:
            raise ParameterError(f"features have shape {self._features.shape}; (n, K, d) is needed")
        rows = len(self._features)
        self._context = np.zeros((rows, 0)) if context is None else np.asarray(context, dtype=np.float64)
        if self._context.shape != (rows, len(names)):
            raise ParameterError(
                f"context has shape {self._context.shape}; one row for each of {rows} rounds and one column"
                f" for each of {len(names)} names are needed"
            )
        for what, table in (("features", self._features.reshape(rows, -1)), ("context", self._context)):
            bad = ~np.isfinite(table).all(axis=1)
            if bad.any():
                raise ParameterError(
                    f"{what} of round {int(np.argmax(bad))} have a non-finite value; every one must be a"
                    " finite number"
                )
        self.arms = int(self._features.shape[1])
        self.dimension = int(self._features.shape[2])
        self.names = tuple(names)

    def sample(self, generator: np.random.Generator, count: int) -> tuple[Array, Array]:  # noqa: D102
        rows = generator.integers(len(self._features), size=count)
        return self._features[rows], self._context[rows]


class ContextualShift(ABC):
    """A level ν_t that may depend on who comes and, through `cancels`, on the plan; never on the draw."""

    cancels: bool = False  # whether ν_t = −μ_pᵀθ, the mean of the plan in force, is added

    @abstractmethod
    def values(self, means: Array, context: Array, first: int) -> Array:
        """Return ν (n,) of rounds after the `first`, given x_aᵀθ (n, K) and contexts (n, m)."""


@dataclass(frozen=True)
class AgainstTheBest(ContextualShift):
    """ν_t = −max_a x_aᵀθ: the better the offer, the lower the level."""

    def values(self, means: Array, context: Array, first: int) -> Array:  # noqa: ARG002, D102
        return np.asarray(-means.max(axis=1))


@dataclass(frozen=True)
class AgainstThePlan(ContextualShift):
    """ν_t = −μ_pᵀθ: cancels what the plan would earn, so that rewards hide all learning."""

    cancels = True

    def values(self, means: Array, context: Array, first: int) -> Array:  # noqa: ARG002, D102
        return np.zeros(len(means))


@dataclass(frozen=True)
class GrowingLevel(ContextualShift):
    """ν_t = log(t + 1): a level that grows, more and more slowly."""

    def values(self, means: Array, context: Array, first: int) -> Array:  # noqa: ARG002, D102
        return np.asarray(np.log(first + 1.0 + np.arange(len(means))))


class WhoComes(ContextualShift):
    """ν_t = function(context): the level depends on the visitor in any way.

    Parameters
    ----------
    function : callable
        From contexts (n, m) to levels (n,).
    """

    def __init__(self, function: Callable[[Array], Array]) -> None:
        self._function = function

    def values(self, means: Array, context: Array, first: int) -> Array:  # noqa: ARG002, D102
        return np.asarray(self._function(context), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ContextualEnvironment:
    """Rewards r_t = x_{t,a}ᵀθ + ν_t + η_t; the truth is for the runner alone.

    Parameters
    ----------
    offers : Offers
        Who comes.
    theta : array-like (d,)
    shift : Oblivious or ContextualShift, optional
        The level; 0 by default.
    noise : Noise
        Standard Gaussian by default.
    """

    offers: Offers
    theta: Array
    shift: Oblivious | ContextualShift | None
    noise: Noise

    def __init__(
        self,
        offers: Offers,
        theta: ArrayLike,
        shift: Oblivious | ContextualShift | None = None,
        noise: Noise | None = None,
    ) -> None:
        coefficients = np.array(theta, dtype=np.float64)
        if coefficients.shape != (offers.dimension,) or not np.all(np.isfinite(coefficients)):
            raise ParameterError(
                f"theta has shape {coefficients.shape}; {offers.dimension} finite coefficients are needed"
            )
        if shift is not None and not isinstance(shift, Oblivious | ContextualShift):
            raise ParameterError(Argument("shift", shift), " must be an oblivious or a contextual shift")
        coefficients.flags.writeable = False
        object.__setattr__(self, "offers", offers)
        object.__setattr__(self, "theta", coefficients)
        object.__setattr__(self, "shift", shift)
        object.__setattr__(self, "noise", Gaussian() if noise is None else noise)


KIM_PAIK_EFFECT = (-0.55, 0.666, -0.09, -0.232, 0.244, 0.55, -0.666, 0.09, 0.232, -0.244)


def kim_paik_setting(level: str = "none") -> ContextualEnvironment:
    """Return the simulation of Kim & Paik (2019), as in the code they released; play 10,000 rounds.

    Two arms: the reference has no features, the other ten, uniform in the unit ball in every round; noise has
    a standard deviation of 0.1.

    Parameters
    ----------
    level : {"none", "best", "log"}
        ν = 0, minus the mean of the best arm, or log(t + 1).
    """
    shifts: dict[str, ContextualShift | None] = {
        "none": None,
        "best": AgainstTheBest(),
        "log": GrowingLevel(),
    }
    check_choice("level", level, tuple(shifts))
    return ContextualEnvironment(BlockOffers(2, 10), KIM_PAIK_EFFECT, shifts[level], Gaussian(0.1))


@dataclass(frozen=True, eq=False)
class ContextualResult:
    """What a simulation of personalised rounds found.

    Attributes
    ----------
    regret : (R,) array
        Σ max_a x_aᵀθ − x_{a_t}ᵀθ at the end.
    rounds : (C,) array of int
    curve : (R, C) array
        Regret after these rounds.
    taught : (R,) array
        Rounds in which more than one arm could be drawn.
    theta : (R, d) array
        The estimate of θ at the end.
    """

    regret: Array
    rounds: Whole
    curve: Array
    taught: Whole
    theta: Array

    def __str__(self) -> str:
        error = self.regret.std(ddof=1) / np.sqrt(len(self.regret)) if len(self.regret) > 1 else np.nan
        return f"regret {self.regret.mean():.0f} ± {error:.0f} over {len(self.regret)} runs"


@compiled_in_place
def play_offers(
    probabilities: Array,
    regressors: Array,
    features: Array,
    context: Array,
    means: Array,
    shift: Array,
    cancels: bool,
    noise_settings: Array,
    streams: tuple[Any, Any],
    recipe: Recipe,
    reads: int,
    level: Array,
    clock: int,
    settings: Any,
    memory: Any,
    i: int,
    curve: Array,
    every: int,
    totals: Array,
    plan_into: Any,
    observe: Any,
    score: Any,
    draw: NoiseStep,
) -> int:
    """Play the rounds of one block; returns how it ended.

    `probabilities` (K,) and `regressors` of the forecast are 0 at first. `totals` holds the regret so far and
    the rounds that were drawn, `level` (n,) is the forecaster's memory.
    """
    rounds, count, _ = features.shape
    for t in range(rounds):
        if plan_into(settings, memory, i, features[t], probabilities) < 0:
            return UNSOLVED
        if reads:
            regressors[0] = 1.0
            for k in range(context.shape[1]):
                regressors[1 + k] = context[t, k]
            expected = regressed(level, regressors, 0)
        else:
            expected = forecast(recipe, level, clock + t, regressors)
        # Drawn whether or not the plan leaves a choice, so that every policy meets the same positions.
        position = next_position(streams[0])
        arm = 0
        reached = 0.0
        best = means[t, 0]
        hidden = 0.0
        is_drawn = False
        # The last arm that can be drawn takes what rounding leaves of 1.
        for a in range(count):
            best = max(best, means[t, a])
            hidden += probabilities[a] * means[t, a]
            if probabilities[a] > 0.0 and not is_drawn:
                arm = a
                reached += probabilities[a]
                is_drawn = position < reached
        mean = means[t, arm] + shift[t]
        if cancels:
            mean -= hidden
        reward, _ = draw(mean, noise_settings, streams[1])
        if not np.isfinite(reward):
            return REWARD_NOT_FINITE
        totals[0] += best - means[t, arm]
        totals[1] += probabilities[arm] < 1.0
        # With the estimate from before this reward, as a live experiment would have it.
        residual = reward - score(settings, memory, i, features[t, arm])
        observe(settings, memory, i, features[t], probabilities, arm, reward, expected)
        if reads == AS_GIVEN:
            learn_regressed(level, regressors, residual, 0, recipe.rate)
        elif reads == SMOOTH:
            learn_penalised(level, regressors, residual, recipe.rate)
        else:
            learn(recipe, level, regressors, residual)
        if (clock + t + 1) % every == 0:
            curve[(clock + t + 1) // every - 1] = totals[0]
    return FINE


def play_asking(
    features: Array,
    context: Array,
    means: Array,
    shift: Array,
    cancels: bool,
    noise_settings: Array,
    streams: tuple[Any, Any],
    forecaster: Forecaster,
    names: Sequence[str],
    clock: int,
    steps: Steps,
    memory: Any,
    curve: Array,
    every: int,
    totals: Array,
    draw: NoiseStep,
) -> int:
    """Play the rounds of one block as :func:`play_offers` does, asking a forecaster before every draw."""
    rounds, count, _ = features.shape
    probabilities = np.zeros(count)
    for t in range(rounds):
        if steps.plan_into(steps.settings, memory, 0, features[t], probabilities) < 0:
            return UNSOLVED
        known = dict(zip(names, map(float, context[t]), strict=True))
        expected = forecaster.forecast(clock + t, known)
        reached = np.cumsum(probabilities)
        # Rounding may leave the last sum below 1: the last arm that can be drawn takes the rest.
        place = int(np.searchsorted(reached, next_position(streams[0]), side="right"))
        arm = min(place, int(np.flatnonzero(probabilities)[-1]))
        mean = means[t, arm] + shift[t]
        if cancels:
            # Summed in the order of the compiled loop, so that both play the same to the last bit.
            mean -= np.cumsum(probabilities * means[t])[-1]
        reward, _ = draw(mean, noise_settings, streams[1])
        if not np.isfinite(reward):
            return REWARD_NOT_FINITE
        totals[0] += means[t].max() - means[t, arm]
        totals[1] += probabilities[arm] < 1.0
        residual = reward - steps.score(steps.settings, memory, 0, features[t, arm])
        steps.observe(steps.settings, memory, 0, features[t], probabilities, arm, reward, expected.value)
        forecaster.learn(expected, residual)
        if (clock + t + 1) % every == 0:
            curve[(clock + t + 1) // every - 1] = totals[0]
    return FINE


def simulate_offers(
    policy: CompiledContextual,
    environment: ContextualEnvironment,
    *,
    horizon: int,
    replications: int,
    seed: int = 0,
) -> ContextualResult:
    """Play a contextual policy in an environment, many replications.

    The same seed brings the same visitors, noise and positions of draws to every policy. A baseline without a
    compiled step, such as :class:`~orthobandit.estimate.OnlineRegression`, is asked round by round and sees
    the visitor's context.

    Parameters
    ----------
    policy : contextual policy
    environment : ContextualEnvironment
        Who comes, what arms earn, how the level moves and how noisy rewards are.
    horizon, replications : int
        Rounds of a run, and runs.
    seed : int

    Returns
    -------
    ContextualResult
        Regret over time and at the end, and the last estimates, of each run.

    Examples
    --------
    >>> from orthobandit.policy.contextual import InformationDirected
    >>> world = ContextualEnvironment(SphereOffers(5, 3), [1.0, 0.0, 0.0], AgainstThePlan())
    >>> runs = simulate_offers(InformationDirected(), world, horizon=500, replications=2, seed=1)
    >>> bool(runs.regret.max() < 300)
    True
    """
    check_whole("horizon", horizon)
    check_whole("replications", replications)
    offers = environment.offers
    steps = policy.steps(offers.dimension)
    draw, noise_settings = noise_step(environment.noise)
    baseline = getattr(policy, "baseline", None)
    is_compiled = baseline is None or isinstance(
        baseline, CompiledBaseline | CovariateRegression | KernelRegression
    )
    recipe, reads, columns = _forecasting(baseline if is_compiled else None, offers)
    every = max(horizon // CURVE, 1)
    curve = np.zeros((replications, horizon // every))
    totals = np.zeros((replications, 2))
    theta = np.zeros((replications, offers.dimension))
    size = max(BLOCK // (offers.arms * offers.dimension), 1)
    for replication in range(replications):
        # A prime beyond any number of replications: no two (seed, replication) share a key.
        memory = policy.begin(offers.dimension, np.array([seed * 1_000_003 + replication]))
        level = fresh_memory(recipe)
        forecaster = None if baseline is None or is_compiled else baseline.forecaster()
        visitors = stream(seed, "visitors", replication)
        streams = (compiled_stream(seed, "arms", replication), compiled_stream(seed, "noise", replication))
        for clock in range(0, horizon, size):
            count = min(size, horizon - clock)
            features, context = offers.sample(visitors, count)
            means = features @ environment.theta
            world = (
                means,
                _levels(environment.shift, means, context, clock, seed, replication),
                bool(getattr(environment.shift, "cancels", False)),
                noise_settings,
                streams,
            )
            if forecaster is not None:
                record = (curve[replication], every, totals[replication])
                whole = np.ascontiguousarray(features)
                asked = (forecaster, offers.names, clock, steps, memory)
                outcome = play_asking(whole, context, *world, *asked, *record, draw)
                _check_outcome(outcome, policy, environment.noise, replication)
                continue
            regressors = context[:, columns]
            if isinstance(baseline, KernelRegression):
                regressors = baseline.features(regressors)
            width = 1 + regressors.shape[1] if reads else int(regressor_count(recipe))
            arguments = (
                np.zeros(offers.arms),
                np.zeros(width),
                np.ascontiguousarray(features),
                np.ascontiguousarray(regressors),
                *world,
                recipe,
                reads,
                level,
                clock,
                steps.settings,
                memory,
                0,
                curve[replication],
                every,
                totals[replication],
            )
            about = (steps.settings, memory, 0, features[0])
            p = np.zeros(offers.arms)
            kernel = compiled_for(
                play_offers,
                arguments,
                [
                    (0, (*about, p)),
                    (None, (*about, p, 0, 0.0, 0.0)),
                    (0.0, (steps.settings, memory, 0, p)),
                    NOISE_STEP,
                ],
            )
            outcome = kernel(*arguments, steps.plan_into, steps.observe, steps.score, draw)
            _check_outcome(outcome, policy, environment.noise, replication)
        theta[replication] = [
            steps.score(steps.settings, memory, 0, unit) for unit in np.eye(offers.dimension)
        ]
    rounds = every * np.arange(1, horizon // every + 1)
    return ContextualResult(totals[:, 0], rounds, curve, totals[:, 1].astype(np.int64), theta)


def _check_outcome(outcome: int, policy: object, noise: Noise, replication: int) -> None:
    if outcome == UNSOLVED:
        raise ParameterError(f"{policy!r} could not plan in replication {replication}")
    if outcome == REWARD_NOT_FINITE:
        raise ParameterError(f"{noise!r} returned a reward that is not finite")


def _forecasting(baseline: Any, offers: Offers) -> tuple[Recipe, int, list[int]]:
    """Return the recipe of a policy's forecaster, what it reads of the context, and which columns."""
    if baseline is None:
        return Recipe(NOTHING, 1.0, 0, np.zeros(0)), UNREAD, []
    if isinstance(baseline, CompiledBaseline):
        return baseline.recipe, UNREAD, []
    if not isinstance(baseline, CovariateRegression | KernelRegression):
        raise ParameterError(Argument("baseline", baseline), " has no compiled step")
    unknown = [name for name in baseline.names if name not in offers.names]
    if unknown:
        known = ", ".join(offers.names) or "none"
        raise ParameterError(f"the baseline asks for context {unknown[0]!r}; offers have {known}")
    columns = [offers.names.index(name) for name in baseline.names]
    is_smooth = isinstance(baseline, KernelRegression)
    size = baseline.size if isinstance(baseline, KernelRegression) else len(columns)
    # The memory of a regression on so many columns; see CovariateRegression.
    recipe = Recipe(REGRESSION, float(baseline.ridge), size, np.zeros(0))
    return recipe, SMOOTH if is_smooth else AS_GIVEN, columns


def _levels(
    shift: Oblivious | ContextualShift | None,
    means: Array,
    context: Array,
    first: int,
    seed: int,
    replication: int,
) -> Array:
    if shift is None:
        return np.zeros(len(means))
    if isinstance(shift, Oblivious):
        return shift.values(first, len(means), seed=seed, replication=replication)
    return shift.values(means, context, first)
