"""What guardrails know of each arm: harmed, cleared, or not known yet.

An arm is *harmed* once it is proven worse than the reference arm by more than the margin; it is retired. It
is *cleared* once it is proven worse by no more than margin and harm together. Whatever the truth is, one of
the two happens in the end, as long as both arms are drawn; an arm that is neither waits, and is not declared.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.types import Array, Mask
from orthobandit.estimate import Plan
from orthobandit.experiment.ledger.intervals import Track
from orthobandit.experiment.settings import Guardrail

HARM = 0.2  # standard deviations of a metric that an arm may be worse by when it is declared, unless said


@dataclass(frozen=True, eq=False)
class Judged:
    """What one guardrail knows.

    Attributes
    ----------
    rail : Guardrail
    least, most : (K,) arrays
        How much worse than the reference arm each arm is, at least and at most.
    limit : float
        Arms that are worse by no more than this are cleared; NaN before anything is known.
    """

    rail: Guardrail
    least: Array
    most: Array
    limit: float

    @property
    def harmed(self) -> Mask:
        """Tell which arms (K,) are proven worse by more than the margin."""
        return np.asarray(self.least > self.rail.margin)

    @property
    def cleared(self) -> Mask:
        """Tell which arms (K,) are proven not to be worse than the limit."""
        return np.asarray(self.most <= self.limit)


def judge(rail: Guardrail, track: Track, plans: Mapping[int, Plan]) -> Judged:
    """Return what a guardrail knows from the intervals of its metric.

    Parameters
    ----------
    rail : Guardrail
    track : Track
        Of its metric.
    plans : dict
        Distributions by number.
    """
    _, low, high = track.intervals(plans)
    least, most = (low, high) if rail.worse == "higher" else (-high, -low)
    harm = HARM * track.deviation if rail.harm is None else rail.harm
    return Judged(rail, least, most, rail.margin + harm)


def rail_words(rail: Guardrail) -> str:
    """Return what a guardrail does.

    Examples
    --------
    >>> rail_words(Guardrail("seconds", 0.5))
    'an arm is retired once it is proven above the reference arm by more than 0.5'
    """
    side = {"higher": "above", "lower": "below"}[rail.worse]
    more = f" by more than {rail.margin:g}" if rail.margin else ""
    return f"an arm is retired once it is proven {side} the reference arm{more}"
