"""Which gaps of a metric are followed, and the evidence on them before the first round counts."""

import numpy as np

from orthobandit._foundation.types import Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate import Confidence, ContrastSequence
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS

MOST_PAIRED = 40  # arms; with more, only gaps to the reference arm are followed


def pairs_of(count: int, reference: int) -> Whole:
    """Return the gaps (m, 2) that are followed: to the reference arm first, then all others if few."""
    others = [arm for arm in range(count) if arm != reference]
    rows = [(arm, reference) for arm in others]
    if count <= MOST_PAIRED:
        rows += [(i, j) for place, i in enumerate(others) for j in others[:place]]
    return np.array(rows, dtype=np.int64)


def start_gaps(
    arms: ArmSet, pairs: Whole, confidence: Confidence, level: float, noise: float
) -> ContrastSequence:
    """Return the evidence on gaps before the first round.

    Parameters
    ----------
    arms : ArmSet
    pairs : (m, 2) array of int
        Arms (i, j), for the gap of i over j.
    confidence : Confidence
    level : float
        Probability that the interval of one gap is ever wrong; see the caller for how δ is shared out.
    noise : float
        Guess of the standard deviation of a residual.
    """
    return ContrastSequence.start(arms, pairs, confidence, level, noise=noise, rounds=GUESSED_ROUNDS)


def guess_noise(confidence: Confidence) -> float:
    """Return a guess of a residual's standard deviation, before any was seen.

    Only the shape of a boundary depends on it, by a logarithm; its validity does not.
    """
    # A quarter of the largest residual: half of what it can be at most, for values at both ends of the range.
    return confidence.limit / 4.0 if np.isfinite(confidence.limit) else 1.0
