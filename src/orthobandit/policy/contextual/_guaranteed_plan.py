"""The plan of the guaranteed modes: of all that the proof on regret allows, what seems to cost least."""

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array
from orthobandit.policy.contextual.regression import direct_into, pair_widths_into

MAX_RATIO = 8.0  # of (expected regret)² and information; the leader and its likeliest rival never need more


@compiled
def guaranteed_into(features: Array, scores: Array, norm: Array, most: float, probabilities: Array) -> None:
    """Write the distribution on two arms with the least estimated regret, of those with a proven ratio.

    Δ_a = max_b [score_b − score_a + ‖x_a − x_b‖] is the most that arm a may lose, at most `most`. The bound
    on regret holds for every plan with (qΔ_a + (1 − q)Δ_b)² ≤ 8q(1 − q)‖x_a − x_b‖² (docs/contextual.md). For
    a pair with 4Δ_aΔ_b ≤ 8‖x_a − x_b‖² these q are an interval; the end that plays the arm with the better
    score more often is taken. If nobody can beat the leader, it is played alone.

    Lengths are those of the positive semi-definite `norm` (d, d).
    """
    count = features.shape[0]
    leader = 0
    for a in range(count):
        if scores[a] > scores[leader]:
            leader = a
    # Differences from the leader: a large common feature would cost digits.
    apart = np.empty(features.shape)
    for a in range(count):
        for k in range(features.shape[1]):
            apart[a, k] = features[a, k] - features[leader, k]
    squared = np.empty((count, count))
    pair_widths_into(apart, norm, squared)
    losses = np.zeros(count)
    for a in range(count):
        for b in range(a):
            width = np.sqrt(squared[a, b])
            gap = scores[a] - scores[b]
            losses[a] = max(losses[a], width - gap)
            losses[b] = max(losses[b], width + gap)
    probabilities[:] = 0.0
    probabilities[leader] = 1.0
    if losses[leader] <= 0.0:
        return
    for a in range(count):
        losses[a] = min(losses[a], most)
    least = np.inf
    for a in range(count):
        for b in range(count):
            if a == b or scores[a] < scores[b]:
                continue
            # The larger root of (qΔ_a + (1 − q)Δ_b)² = `limit`·q(1 − q).
            limit = MAX_RATIO * squared[a, b]
            room = limit * (limit - 4.0 * losses[a] * losses[b])
            if limit <= 0.0 or room < 0.0:
                continue
            more = losses[a] - losses[b]
            share = (limit - 2.0 * losses[b] * more + np.sqrt(room)) / (2.0 * (more * more + limit))
            regret = scores[leader] - share * scores[a] - (1.0 - share) * scores[b]
            if regret < least:
                least = regret
                probabilities[:] = 0.0
                probabilities[a] = share
                probabilities[b] = 1.0 - share
    if least == np.inf:
        # Rounding alone can bring every ratio above the limit; then the least is taken.
        direct_into(apart, scores, norm, 1.0, most, probabilities)
