"""Claims by segment: no interval of any segment is wrong too often, and no discovery is false too often."""

import numpy as np
import pytest
from scipy.stats import binom

from orthobandit.estimate import Bounded, Plan
from orthobandit.policy.contextual import Interactions, Segment, SegmentComparison

pytestmark = [pytest.mark.statistical, pytest.mark.slow]

RUNS, ROUNDS, EVERY, DELTA = 200, 240, 30, 0.1
PAGES = Interactions(["A", "B"], context=["age"])
RULES = {"A for all": "A", "B for all": "B", "B over 60": lambda offer: "AB"[int(offer.context["age"] > 60)]}
SEGMENTS = [Segment({"age": (low, low + 20.0)}) for low in (20.0, 40.0)]


def look(seed, effect, share):
    """Play one run; tell whether an interval was ever wrong, and whether a discovery was ever false."""
    rng = np.random.default_rng([seed, 91])
    found = SegmentComparison.start(
        RULES,
        SEGMENTS,
        reference="A for all",
        confidence=Bounded(0.0, 1.0),
        delta=DELTA,
        floor=min(share, 1 - share),
    )
    sums = {name: np.zeros(2) for name in found.comparisons}
    wrong = false = False
    for t in range(1, ROUNDS + 1):
        age = float(rng.integers(20, 80))
        arm = int(rng.random() < share)
        gain = effect if age < 60 else 0.0
        # The level depends on who comes, and on the hour.
        level = 0.3 + 0.3 * (age > 50) * (t % 7 < 3)
        offer = PAGES.offer({"age": age})
        sums[found.segment_of(offer)] += gain, gain * (age > 60)
        reward = float(rng.random() < level + gain * arm)
        found = found.add(offer, Plan([1 - share, share], 1), arm, reward, forecast=0.4)
        if t % EVERY:
            continue
        for name, gains in found.gains().items():
            for gain_of, total in zip(gains, sums[name], strict=True):
                if gain_of.rounds:
                    truth = total / gain_of.rounds
                    wrong |= not gain_of.low - 1e-12 <= truth <= gain_of.high + 1e-12
        for one in found.discoveries():
            place = found.comparisons[one.segment].compared.index(one.rule)
            false |= sums[one.segment][place] <= 0
    return wrong, false


@pytest.mark.parametrize("effect", [0.0, 0.3, -0.3])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_claims_of_all_segments_hold_at_all_times(effect, share):
    seen = np.array([look(seed, effect, share) for seed in range(RUNS)])
    # False-alarm rate 1e-6 for each of the 12 cases. A run with a false discovery counts in full: where all
    # discoveries are false the expected share is the chance of any.
    assert (seen.sum(axis=0) <= binom.isf(1e-6, RUNS, DELTA)).all()
