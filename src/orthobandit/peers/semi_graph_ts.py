"""Semiparametric Thompson sampling for linked users, whose effects are close to those of their friends.

The effects of all users are one long θ, a block for each user, and an offer has features in the block of the
user who comes and zeros elsewhere (:meth:`SemiGraphTS.offer`). So one experiment, one simulator and one log
serve linked users as they serve everybody.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_positive, check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate.forecast.baselines import Baseline, RunningMean, check_baseline
from orthobandit.peers.residual_scale import FIRST
from orthobandit.peers.thompson_draws import wins_into
from orthobandit.policy.contextual.base import CompiledContextual, ObserveStep, PlanStep, ScoreStep
from orthobandit.policy.contextual.offers import Offer
from orthobandit.policy.contextual.regression import add_outer, dot, invert, mean_into, scale_into, times


class LinkedSettings(NamedTuple):
    """What the compiled steps read: λL (N, N) per user, v in units of the residuals' scale, and M."""

    links: Array
    spread: float
    draws: int


class LinkedMemory(NamedTuple):
    """What R replications remember of N users with d effects each.

    `units` (R, d) of features; B (R, N, d, d), its inverse and θ̄ = B⁻¹y (R, N, d) of every user; the
    residuals' mean square and sum of squares (R,); rounds, and those that taught something (R,); keys (R,).
    """

    units: Array
    gram: Array
    inverse: Array
    theta: Array
    variance: Array
    squares: Array
    rounds: Whole
    taught: Whole
    key: Whole


@compiled
def find_user(features: Array, size: int) -> int:
    """Return the user whose block of `size` columns is not 0 for some arm; the first if there is none."""
    count, columns = features.shape
    for k in range(columns):
        for a in range(count):
            if features[a, k] != 0.0:
                return k // size
    return 0


@compiled
def linked_estimate(settings: LinkedSettings, memory: LinkedMemory, i: int, user: int, out: Array) -> None:
    """Write θ̂_j = θ̄_j − λB_j⁻¹ Σ_{k≠j} L_jk θ̄_k, a user's estimate drawn towards those of friends."""
    users, size = memory.theta.shape[1:]
    pulled = np.zeros(size)
    for other in range(users):
        if other != user and settings.links[user, other] != 0.0:
            for k in range(size):
                pulled[k] += settings.links[user, other] * memory.theta[i, other, k]
    times(memory.inverse[i, user], pulled, out)
    for k in range(size):
        out[k] = memory.theta[i, user, k] - out[k]


@compiled
def plan_linked(
    settings: LinkedSettings, memory: LinkedMemory, i: int, features: Array, probabilities: Array
) -> int:
    """Play each arm as often as it is best under N(θ̂_j, v²Γ_j⁻¹) of the user j who comes."""
    count = features.shape[0]
    users, size = memory.theta.shape[1:]
    user = find_user(features, size)
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features[:, user * size : (user + 1) * size], scaled)
    probabilities[:] = 0.0
    if count == 1:
        probabilities[0] = 1.0
        return 0
    # Γ_j = B_j + λ² Σ_{k≠j} L_jk² B_k⁻¹; B_j holds λL_jj already.
    precision = memory.gram[i, user].copy()
    for other in range(users):
        link = settings.links[user, other]
        if other != user and link != 0.0:
            for j in range(size):
                for k in range(size):
                    precision[j, k] += link * link * memory.inverse[i, other, j, k]
    covariance = np.empty((size, size))
    invert(precision, covariance)
    theta = np.empty(size)
    linked_estimate(settings, memory, i, user, theta)
    spread = settings.spread * np.sqrt(memory.variance[i])
    wins_into(
        scaled, theta, covariance, spread, settings.draws, memory.key[i], memory.rounds[i], probabilities
    )
    return 0


@compiled
def observe_linked(
    settings: LinkedSettings,
    memory: LinkedMemory,
    i: int,
    features: Array,
    probabilities: Array,
    arm: int,
    reward: float,
    forecast: float,
) -> None:
    """Add one round to its user's sums: B_j += x̃x̃ᵀ + Σ_t, y_j += 2x̃r."""
    count = features.shape[0]
    size = memory.theta.shape[2]
    user = find_user(features, size)
    scaled = np.empty((count, size))
    scale_into(memory.units[i], features[:, user * size : (user + 1) * size], scaled)
    estimate = np.empty(size)
    linked_estimate(settings, memory, i, user, estimate)
    residual = reward - forecast - dot(scaled[arm], estimate)
    memory.rounds[i] += 1
    # The first residuals hold what θ̂ did not know yet, not what rewards scatter.
    if memory.rounds[i] > FIRST:
        memory.squares[i] += residual * residual
        memory.variance[i] = memory.squares[i] / (memory.rounds[i] - FIRST)
    if probabilities[arm] >= 1.0:
        return
    memory.taught[i] += 1
    gram = memory.gram[i, user]
    theta = memory.theta[i, user]
    mean = np.empty(size)
    centred = np.empty(size)
    moment = np.empty(size)
    mean_into(scaled, probabilities, mean)
    # y = Bθ̄ before the round; B changes below.
    times(gram, theta, moment)
    for k in range(size):
        centred[k] = scaled[arm, k] - mean[k]
        moment[k] += 2.0 * centred[k] * (reward - forecast)
    add_outer(gram, centred, 1.0)
    for a in range(count):
        if probabilities[a] > 0.0:
            for k in range(size):
                centred[k] = scaled[a, k] - mean[k]
            add_outer(gram, centred, probabilities[a])
    invert(gram, memory.inverse[i, user])
    times(memory.inverse[i, user], moment, theta)


@compiled
def score_linked(settings: LinkedSettings, memory: LinkedMemory, i: int, feature: Array) -> float:
    """Return xᵀθ̂ of the user whose block has features."""
    size = memory.theta.shape[2]
    user = find_user(feature.reshape(1, feature.size), size)
    estimate = np.empty(size)
    linked_estimate(settings, memory, i, user, estimate)
    total = 0.0
    for k in range(size):
        if memory.units[i, k] > 0.0:
            total += feature[user * size + k] / memory.units[i, k] * estimate[k]
    return total


@dataclass(frozen=True)
class SemiGraphTS(CompiledContextual):
    """Semiparametric Thompson sampling on a graph of users (Choi, Kim, Paik & Paik 2022).

    User j has effects θ_j and, as in semiparametric Thompson sampling, sums of their own rounds alone,
    B_j = λL_jj·I + Σ (x̃x̃ᵀ + Cov_π), y_j = 2Σ x̃r, θ̄_j = B_j⁻¹y_j. The graph's Laplacian L couples users when
    arms are chosen: θ̃ ~ N(θ̂_j, v²Γ_j⁻¹) with

        θ̂_j = θ̄_j − λB_j⁻¹ Σ_{k≠j} L_jk θ̄_k,    Γ_j = B_j + λ² Σ_{k≠j} L_jk² B_k⁻¹,

    and each arm is played as often as it is best in `draws` samples. Departs: v is in units of the residuals'
    scale, λ is per feature in units of each feature's spread, and a running mean is taken off rewards, where
    the released code takes an intercept per user: ``CovariateRegression`` with a column a user does that.
    The released code adds λL to B_j in Γ_j once more, for the user whom a loop had reached last instead of
    j (docs/errata.md); here it is not added.

    Parameters
    ----------
    laplacian : array-like (N, N)
        Of the graph of users: a positive diagonal and rows that sum to 0. :meth:`of_links` builds it.
    penalty : float
        λ: how close the effects of linked users are taken to be.
    spread : float
        v in units of the residuals' scale.
    draws : int
        Samples of the posterior a round.
    baseline : Baseline
        Forecast of the level.

    Examples
    --------
    >>> policy = SemiGraphTS.of_links(3, [(0, 1), (1, 2)])
    >>> policy.laplacian
    ((1.0, -1.0, 0.0), (-1.0, 2.0, -1.0), (0.0, -1.0, 1.0))
    >>> offer = policy.offer(1, [[0.0, 0.0], [1.0, 0.5]], labels=["nothing", "a walk"])
    >>> offer.features[1].tolist()
    [0.0, 0.0, 1.0, 0.5, 0.0, 0.0]
    >>> state = policy.start(offer.dimension)
    >>> bool(policy.plan(state, offer).probabilities.min() > 0.2)
    True
    """

    laplacian: tuple[tuple[float, ...], ...]
    penalty: float = 1.0
    spread: float = 2.0
    draws: int = 64
    baseline: Baseline = RunningMean()  # noqa: RUF009

    def __post_init__(self) -> None:
        matrix = np.array(self.laplacian, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.all(np.isfinite(matrix)):
            raise ParameterError(f"laplacian has shape {matrix.shape}; (N, N) finite numbers are needed")
        diagonal = np.diag(matrix)
        if np.any(diagonal <= 0):
            raise ParameterError(
                f"user {int(np.argmax(diagonal <= 0))} has no link: the diagonal of the laplacian must be"
                " positive; link every user to another, or leave unlinked users out"
            )
        off = np.abs(matrix.sum(axis=1))
        if np.any(off > 1e-9 * diagonal):
            raise ParameterError(f"row {int(np.argmax(off))} of the laplacian does not sum to 0")
        check_positive("penalty", self.penalty)
        check_positive("spread", self.spread)
        check_whole("draws", self.draws, least=2)
        check_baseline(self.baseline)
        object.__setattr__(self, "laplacian", tuple(tuple(row) for row in matrix.tolist()))

    @classmethod
    def of_links(
        cls,
        users: int,
        links: Iterable[tuple[int, int]],
        *,
        penalty: float = 1.0,
        spread: float = 2.0,
        draws: int = 64,
        baseline: Baseline | None = None,
    ) -> "SemiGraphTS":
        """Return the policy for so many users and links between pairs of them, each of weight 1."""
        matrix = np.zeros((users, users))
        for first, second in links:
            if first == second or not (0 <= first < users and 0 <= second < users):
                raise ParameterError(
                    f"link ({first}, {second}) is not between two users; users are 0 to {users - 1}"
                )
            matrix[first, second] = matrix[second, first] = -1.0
        np.fill_diagonal(matrix, -matrix.sum(axis=1))
        laplacian = tuple(tuple(row) for row in matrix.tolist())
        return cls(laplacian, penalty, spread, draws, RunningMean() if baseline is None else baseline)

    @property
    def users(self) -> int:
        """The number of users N."""
        return len(self.laplacian)

    def offer(
        self,
        user: int,
        features: ArrayLike,
        labels: Sequence[str] | None = None,
        context: Mapping[str, float] | None = None,
    ) -> Offer:
        """Return the offer of arms with these features (K, d) to one user: (K, N·d), zeros for the others."""
        if not 0 <= user < self.users:
            raise ParameterError(Argument("user", user), f" is unknown; users are 0 to {self.users - 1}")
        rows = np.atleast_2d(np.asarray(features, dtype=np.float64))
        blocks = np.zeros((len(rows), self.users, rows.shape[1]))
        blocks[:, user] = rows
        return Offer(blocks.reshape(len(rows), -1), labels, context)

    def settings(self, dimension: int) -> LinkedSettings:  # noqa: D102
        scale = self.penalty * self._effects(dimension)
        return LinkedSettings(scale * np.array(self.laplacian), float(self.spread), int(self.draws))

    def begin(self, dimension: int, keys: Whole) -> LinkedMemory:  # noqa: D102
        count = len(keys)
        size = self._effects(dimension)
        diagonal = np.diag(self.settings(dimension).links)[:, np.newaxis, np.newaxis]
        prior = diagonal * np.eye(size)
        return LinkedMemory(
            units=np.zeros((count, size)),
            gram=np.broadcast_to(prior, (count, *prior.shape)).copy(),
            inverse=np.broadcast_to(np.eye(size) / diagonal, (count, *prior.shape)).copy(),
            theta=np.zeros((count, self.users, size)),
            variance=np.ones(count),
            squares=np.zeros(count),
            rounds=np.zeros(count, dtype=np.int64),
            taught=np.zeros(count, dtype=np.int64),
            key=np.asarray(keys, dtype=np.int64),
        )

    def _effects(self, dimension: int) -> int:
        if dimension % self.users:
            raise ParameterError(
                f"offers have {dimension} features, which is no multiple of {self.users} users; build them"
                " with the policy's `offer`"
            )
        return dimension // self.users

    plan_into: ClassVar[PlanStep] = staticmethod(plan_linked)
    observe_into: ClassVar[ObserveStep] = staticmethod(observe_linked)
    score_of: ClassVar[ScoreStep] = staticmethod(score_linked)
