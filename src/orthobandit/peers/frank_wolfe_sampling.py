"""Frank–Wolfe sampling: linear rewards, one step towards the best proportions a round; blind to shifts."""

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
    inner,
    unplayed,
    width_at,
)
from orthobandit.peers.tracking import GlrPolicy, gradient_into, respond
from orthobandit.policy.every_round import ObserveStep


@compiled
def solve_game(payoffs: Array) -> Array:
    """Return the column player's best mixture z (K,) in max_z min_j Σ_k payoffs[j, k]·z_k.

    Dantzig's reduction: shifted so that all payoffs P are positive, the row player maximises Σ q with
    Σ_j P[j, k]·q_j ≤ 1 for every k, and z is the dual solution over its sum. The simplex method with Bland's
    rule, which never cycles, starts at the feasible q = 0.
    """
    rows, columns = payoffs.shape
    low = payoffs.min()
    unit = max(payoffs.max() - low, 1e-300)
    # Columns of the table: q, slacks, right side; its last row is the objective.
    table = np.zeros((columns + 1, rows + columns + 1))
    for k in range(columns):
        for j in range(rows):
            table[k, j] = 1.0 + (payoffs[j, k] - low) / unit
        table[k, rows + k] = 1.0
        table[k, -1] = 1.0
    table[-1, :rows] = -1.0
    basis = rows + np.arange(columns)
    for _ in range(50 * (rows + columns)):
        entering = -1
        for j in range(rows + columns):
            if table[-1, j] < -1e-12:
                entering = j
                break
        if entering < 0:
            break
        leaving = -1
        for k in range(columns):
            if table[k, entering] > 1e-12:
                if leaving < 0:
                    leaving = k
                    continue
                mine = table[k, -1] / table[k, entering]
                best = table[leaving, -1] / table[leaving, entering]
                if mine < best or (mine == best and basis[k] < basis[leaving]):
                    leaving = k
        basis[leaving] = entering
        table[leaving] /= table[leaving, entering]
        for k in range(columns + 1):
            if k != leaving:
                table[k] -= table[k, entering] * table[leaving]
    mixture: Array = np.maximum(table[-1, rows : rows + columns], 0.0)
    mixture /= mixture.sum()
    return mixture


@compiled
def is_square(number: int) -> bool:
    """Tell whether a number is the square of a whole one."""
    root = int(np.floor(np.sqrt(float(number)) + 0.5))
    return root * root == number


@compiled
def observe_sampling(
    settings: LinearSettings, memory: LinearMemory, i: int, _probabilities: Array, arm: int, reward: float
) -> bool:
    """Add one round, test whether to stop, take one Frank–Wolfe step, play the arm farthest behind."""
    add_linear_round(settings, memory, i, arm, reward)
    memory.upcoming[i] = unplayed(memory.counts[i])
    if memory.upcoming[i] >= 0:
        return True
    leader, _, index = compare_rivals(settings, memory, i, width_at(settings, memory, i))
    if has_stopped(settings, memory, i, leader, index):
        memory.upcoming[i] = memory.declared[i]
        return True
    scores = memory.scores[i]
    count = scores.size
    t = float(memory.step[i])
    weights = memory.weights[i]
    target = np.full(count, 1.0 / count)
    seen = respond(settings.features, settings.twins, weights, scores, memory.active[i], leader)
    least = seen.values.min()
    if 0.0 < least < np.inf and not is_square(memory.step[i] // count):
        # All rivals within r of the least f are taken into account: f alone is not smooth.
        near = np.flatnonzero(seen.values < least + t ** (-0.9) / count)
        gradients = np.empty((near.size, count))
        for j in range(near.size):
            gradient_into(settings.features, seen, scores, leader, near[j], gradients[j])
        if near.size == 1:
            target[:] = 0.0
            target[np.argmax(gradients[0])] = 1.0
        else:
            for j in range(near.size):
                gradients[j] -= inner(gradients[j], weights)
            target[:] = solve_game(gradients)
    weights *= (t - 1.0) / t
    weights += target / t
    found = 0
    for a in range(count):
        if weights[a] * memory.counts[i, found] > weights[found] * memory.counts[i, a]:
            found = a
    memory.upcoming[i] = found
    return True


@dataclass(frozen=True)
class FrankWolfeSampling(GlrPolicy):
    """FWS (Wang, Tzeng & Proutiere 2021): one Frank–Wolfe step of the proportions for every round.

    Every arm once. Then the proportions w take a step of length 1/t towards the mixture z that maximises the
    least directional derivative ∇f_j(w)·(z − w) over the rivals j with f_j(w) < min f + r_t, r_t = t^{−0.9}/K
    (a matrix game, solved exactly); in rounds t with ⌊t/K⌋ a square z is uniform. The arm with the largest
    w_a/N_a is played. Stops by the same tests as :class:`~orthobandit.peers.LinGame`.

    Asymptotically optimal as δ → 0 for linear rewards. **Under a shift** nothing holds: arms are tracked, not
    drawn, and least squares takes the moving baseline for their merit. Departs: θ̂ has a ridge of 1, as in
    the released code; arms with equal features are no rivals.

    Parameters
    ----------
    delta : float
        Failure probability δ.
    noise : float
        σ.
    eliminates : bool
        Drop arms one by one (:class:`~orthobandit.peers.LinGapE`).
    threshold : {"paper", "gk16", "heuristic"}
        The stopping rule; the authors' experiments have "gk16".
    norm : float
        S.

    Examples
    --------
    >>> policy = FrankWolfeSampling(threshold="gk16")
    >>> policy.plan(policy.start(ArmSet([[1.0, 0.0], [0.0, 1.0]]))).probabilities.tolist()
    [1.0, 0.0]
    """

    observe_into: ClassVar[ObserveStep] = staticmethod(observe_sampling)

    def begin(self, arms: ArmSet, seed: int, numbers: Whole) -> LinearMemory:
        """Return the memory before the first round; nothing is randomised."""
        del seed
        shape = (len(numbers), len(arms))
        return self.linear_memory(arms, len(numbers))._replace(weights=np.full(shape, 1.0 / len(arms)))
