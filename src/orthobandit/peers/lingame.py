"""LinGame: linear rewards, proportions as a game between two learners; blind to shifts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.peers._linear_rounds import (
    LinearMemory,
    LinearSettings,
    add_linear_round,
    compare_rivals,
    has_stopped,
    unplayed,
    width_at,
)
from orthobandit.peers.tracking import GlrPolicy, gradient_into, most_behind, respond
from orthobandit.policy.every_round import ObserveStep

FIRST_MIXABILITY = 0.01  # AdaHedge's regret before the first round, as in the released code


@compiled
def hedge_into(losses: Array, rate: float, weights: Array) -> None:
    """Write the exponential weights of these losses."""
    least = losses.min()
    total = 0.0
    for a in range(losses.size):
        weights[a] = np.exp(-rate * (losses[a] - least))
        total += weights[a]
    for a in range(losses.size):
        weights[a] /= total


@compiled
def observe_game(
    settings: LinearSettings, memory: LinearMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one round, test whether to stop, let the learners play one round of the game, track them."""
    add_linear_round(settings, memory, i, arm, reward)
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    leader, rival, index = compare_rivals(settings, memory, i, width_at(settings, memory, i))
    if has_stopped(settings, memory, i, leader, index):
        memory.upcoming[i] = memory.declared[i]
        return True
    scores = memory.scores[i]
    count = scores.size
    losses = memory.losses[i, leader]
    weights = np.empty(count)
    rate = np.log(count) / memory.mixability[i, leader]
    hedge_into(losses, rate, weights)
    seen = respond(settings.features, settings.twins, weights, scores, memory.active[i], leader)
    rival = int(np.argmin(seen.values))
    gains = np.empty(count)
    gradient_into(settings.features, seen, scores, leader, rival, gains)
    spread = np.log(float(memory.step[i]))
    for a in range(count):
        # Optimism: the largest gain within the arm's own confidence interval, at most its half-width.
        root = np.sqrt(2.0 * gains[a]) + np.sqrt(2.0 * spread * memory.leverages[i, a])
        gains[a] = min(0.5 * root**2, spread)
    _incur(losses, memory.mixability[i], leader, rate, weights, gains)
    memory.tracked[i] += weights
    memory.upcoming[i] = most_behind(memory.counts[i], memory.tracked[i])
    return True


@compiled
def _incur(losses: Array, mixability: Array, answer: int, rate: float, weights: Array, gains: Array) -> None:
    """Add the losses −gains to a learner: AdaHedge (De Rooij, Van Erven, Grünwald & Koolen 2014)."""
    most = gains.max()
    expected = 0.0
    mixed = 0.0
    for a in range(losses.size):
        losses[a] -= gains[a]
        expected -= weights[a] * gains[a]
        mixed += weights[a] * np.exp(rate * (gains[a] - most))
    # The gap between the expected loss and the mix loss −(1/η)·log Σ w·exp(−η·loss), which is never larger.
    mixability[answer] += max(expected + most + np.log(mixed) / rate, 0.0)


@dataclass(frozen=True)
class LinGame(GlrPolicy):
    """LinGame (Degenne, Ménard, Shang & Valko 2020): the proportions as the saddle point of a game.

    Every arm once. Then one learner for each possible answer ℓ, AdaHedge, proposes proportions w; nature
    answers with the nearest parameter λ under which ℓ is not best; the learner gains
    ½(u_a + √(2·log t·‖x_a‖²_{V⁻¹}))² of each arm, at most log t, u_a the magnitude of x_aᵀ(θ̂ − λ); the sum of
    all w is tracked.
    V = I + Σ xxᵀ. Stop when min_j Δ̂_j²/(2‖x_ℓ − x_j‖²_{V⁻¹}) exceeds

    - "paper": (√(σ²(log(1/δ) + (d/2)·log(1 + tL²/d))) + S/√2)², L the largest norm of a feature vector;
    - "gk16": σ²·log((1 + log t)/δ), "heuristic": σ²·log((1 + t)/δ), for comparing sampling rules.

    With "paper" the declared arm is best with probability 1 − δ for linear rewards with σ-sub-Gaussian noise
    and ‖θ‖ ≤ S; asymptotically optimal as δ → 0. **Under a shift** nothing holds: arms are tracked, not
    drawn, and least squares takes the moving baseline for their merit. Departs: arms with equal features are
    no rivals; `eliminates` as in :class:`~orthobandit.peers.LinGapE`.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    eliminates : bool
        Drop arms one by one; nature then answers with rivals that are left.
    threshold : {"paper", "gk16", "heuristic"}
        The stopping rule.
    norm : float
        S.

    Examples
    --------
    >>> policy = LinGame()
    >>> policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]]))).probabilities.tolist()
    [1.0, 0.0]
    """

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_game)
    pair_bytes: ClassVar[float] = 8.0  # of the losses

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> LinearMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        shape = (len(numbers), len(arms))
        return self.linear_memory(arms, len(numbers))._replace(
            losses=np.zeros((*shape, len(arms))),
            mixability=np.full(shape, FIRST_MIXABILITY),
            # Every arm is played once before its proportions count.
            tracked=np.ones(shape),
        )
