"""Guardrails: metrics by which no arm may be worse, and what is known of each arm by them.

An arm is *harmed* once it is proven worse than the reference arm by more than the margin; it is retired. It
is *cleared* once it is proven worse by no more than margin and harm together. Whatever the truth is, one of
the two happens in the end, as long as both arms are drawn; an arm that is neither waits, and is not declared.

In a personalised experiment rules are judged instead, beside the reference arm for all: a rule that is
harmed, or not cleared, is not declared. No arm is retired: it may harm some visitors and serve others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real

import numpy as np

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.types import Array, Mask
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate import Plan
from orthobandit.estimate.follow.rounds import GapIntervals

HARM = 0.2  # standard deviations of a metric that an arm may be worse by when it is declared, unless said
SIDES = ("higher", "lower")


@dataclass(frozen=True)
class Guardrail:
    """Retire an arm once it is proven worse than the reference arm by more than a margin.

    Parameters
    ----------
    metric : str
    margin : float
        At least 0, in units of the metric.
    worse : {"higher", "lower"}
        Which side is worse.
    harm : float, optional
        A live experiment declares no arm that may still be worse by more than the margin and this together.
        By default 0.2 standard deviations of the metric.
    """

    metric: str
    margin: float = 0.0
    worse: str = "higher"
    harm: float | None = None

    def __post_init__(self) -> None:
        check_choice("worse", self.worse, SIDES)
        if not isinstance(self.metric, str):
            raise ParameterError(Argument("metric", self.metric), " must be the name of a metric")
        if not _is_number(self.margin) or not 0 <= self.margin < np.inf:
            raise ParameterError(Argument("margin", self.margin), " must be a finite number of at least 0")
        if self.harm is not None and not (_is_number(self.harm) and 0 < self.harm < np.inf):
            raise ParameterError(
                Argument("harm", self.harm),
                " must be a finite number above 0, or left out: no finite experiment shows"
                " that an arm does no harm at all",
            )

    @property
    def reason(self) -> str:
        """Why an arm was retired, for reports."""
        return f"by the guardrail on {self.metric!r}"


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True, eq=False)
class Judged:
    """What one guardrail's intervals say of each of K arms, or of each rule of a personalised experiment.

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


def judge(rail: Guardrail, intervals: GapIntervals, plans: Mapping[int, Plan]) -> Judged:
    """Judge every arm by the intervals of a guardrail's metric.

    Parameters
    ----------
    rail : Guardrail
    intervals : GapIntervals
        Of its metric.
    plans : dict
        Distributions by number.
    """
    _, low, high = intervals.intervals(plans)
    return judge_ends(rail, low, high, intervals.deviation)


def judge_ends(rail: Guardrail, low: Array, high: Array, deviation: float) -> Judged:
    """Judge by the ends (K,) of what each arm, or rule, has of a metric beyond the reference.

    Parameters
    ----------
    rail : Guardrail
    low, high : (K,) arrays
    deviation : float
        Standard deviation of the metric; NaN before anything is known.
    """
    # Both are how much worse it is, whichever side is worse.
    least, most = (low, high) if rail.worse == "higher" else (-high, -low)
    harm = HARM * deviation if rail.harm is None else rail.harm
    return Judged(rail, least, most, rail.margin + harm)


def rail_words(rail: Guardrail, *, is_personal: bool = False) -> str:
    """Return one sentence on what a guardrail does: to arms, or to rules of a personalised experiment.

    Examples
    --------
    >>> rail_words(Guardrail("seconds", 0.5))
    'an arm is retired once it is proven above the reference arm by more than 0.5'
    >>> rail_words(Guardrail("crash"), is_personal=True)
    'a rule is ruled out while it is proven above the reference arm for all'
    """
    side = {"higher": "above", "lower": "below"}[rail.worse]
    more = f" by more than {rail.margin:g}" if rail.margin else ""
    if is_personal:
        return f"a rule is ruled out while it is proven {side} the reference arm for all{more}"
    return f"an arm is retired once it is proven {side} the reference arm{more}"
