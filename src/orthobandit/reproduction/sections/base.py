"""What every section of a report is: cells to run, claims, and the numbers that decide them.

A :class:`Measured` number carries limits of its error; a :class:`Fit` is a power law through such numbers; a
:class:`Judgement` holds one of them against a bound that was fixed before the runs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp, inf, log, sqrt
from typing import Any, Protocol

import numpy as np
from scipy import special

from orthobandit._foundation.types import Array
from orthobandit.study.cells import Cell
from orthobandit.study.tables import Columns

# Chance that one limit lies on the wrong side of the truth. A verdict is wrong only if one particular limit
# of its number is, so a report of up to MOST_VERDICTS has none wrong with probability 1 − FAMILY.
FAMILY = 0.05
MOST_VERDICTS = 150
LEVEL = FAMILY / MOST_VERDICTS
# Limits that rest on Student's t are computed at a part of LEVEL, since skewed data pass them more often than
# they say. How often in simulation, of 8 to 100 values: at most LEVEL (.033 %) for gamma and exponential
# values and for log-normal ones up to a coefficient of variation of ½, and for ratios and geometric means up
# to a coefficient of 1 (tests/statistical/test_report_limits.py). Means of log-normal values with a
# coefficient of 1 are the exception: .03 % with 100 values, but .15 % with 20.
CAREFUL = 0.3
CAREFUL_MEAN = 0.15
MOST_SKEWED = 1.5  # the correction for skewness widens a limit by this factor at most: beyond it is not valid


@dataclass(frozen=True)
class Measured:
    """An estimate between two limits, each of which the truth passes with probability `LEVEL` at most.

    Attributes
    ----------
    value : float
        The estimate.
    error : float or None
        Its standard error; None where the limits are exact and have none.
    low, high : float
        Both equal to the value where nothing is left to chance; ±inf where one run says nothing.

    Examples
    --------
    >>> Measured.share(0, 100)
    Measured(value=0.0, error=None, low=0.0, high=0.0769...)
    """

    value: float
    error: float | None
    low: float
    high: float

    @classmethod
    def exactly(cls, value: float) -> "Measured":
        """Return a number that is computed, not sampled."""
        return cls(float(value), 0.0, float(value), float(value))

    @classmethod
    def estimate(cls, value: float, error: float, freedom: int, among: int = 1) -> "Measured":
        """Return an estimate with its standard error, which has so many degrees of freedom (Student's t).

        `among`: it is the largest of so many, for which the lower limit makes allowance.
        """
        if freedom < 1:
            return cls(float(value), None, -inf, inf)
        below = _quantile(freedom, CAREFUL / among) * float(error)
        above = _quantile(freedom, CAREFUL) * float(error)
        return cls(float(value), float(error), float(value) - below, float(value) + above)

    @classmethod
    def mean(cls, values: Any, among: int = 1) -> "Measured":
        """Return the mean of independent values (n,); `among` as in :meth:`estimate`.

        Limits are the wider of Student's t and of Hall's (1992) transformation, which takes the skewness
        of the values out of the t-statistic. Means of positive values also have an upper limit on the log
        scale, and none below 0.
        """
        found = np.asarray(values, dtype=np.float64)
        one = cls._corrected(found, among)
        if one.error is None or not np.all(found > 0):
            return one
        reach = _quantile(found.size - 1, CAREFUL_MEAN)
        high = max(one.high, _exp(log(one.value) + reach * one.error / one.value))
        return cls(one.value, one.error, max(one.low, 0.0), high)

    @classmethod
    def _corrected(cls, values: Array, among: int = 1) -> "Measured":
        """Return the mean with limits that are corrected for skewness."""
        mean = float(values.mean())
        if values.size < 2:
            return cls(mean, None, -inf, inf)
        error = _error(values)
        skewness = _skewness(values) / sqrt(values.size)
        below, _ = _skewed(_quantile(values.size - 1, CAREFUL_MEAN / among), skewness)
        _, above = _skewed(_quantile(values.size - 1, CAREFUL_MEAN), skewness)
        return cls(mean, error, mean - below * error, mean + above * error)

    @classmethod
    def geometric(cls, values: Any) -> "Measured":
        """Return the geometric mean of independent positive values (n,)."""
        return cls._corrected(np.log(np.asarray(values, dtype=np.float64))).exponentiated()

    @classmethod
    def ratio(cls, top: Any, bottom: Any, among: int = 1) -> "Measured":
        """Return mean(top)/mean(bottom) of pairs (n,), which may depend on each other within a pair.

        `among` as in :meth:`estimate`. The error is that of the linearised logarithm. Give one pair for each
        thing that was drawn independently: means over runs on one arm set, not the runs.
        """
        over = np.asarray(top, dtype=np.float64)
        under = np.asarray(bottom, dtype=np.float64)
        logarithm = log(over.mean() / under.mean())
        parts = over / over.mean() - under / under.mean()
        return cls.estimate(logarithm, _error(parts), parts.size - 1, among).exponentiated()

    @classmethod
    def share(cls, hits: int, count: int, among: int = 1) -> "Measured":
        """Return a share of independent runs with exact limits (Clopper & Pearson 1934).

        `among`: the share is the largest of so many, for which the lower limit makes allowance.
        """
        low = float(special.betaincinv(hits, count - hits + 1, LEVEL / among)) if hits else 0.0
        high = float(special.betaincinv(hits + 1, count - hits, 1 - LEVEL)) if hits < count else 1.0
        return cls(hits / count, None, low, high)

    @classmethod
    def exponent(cls, fit: "Fit", among: int = 1) -> "Measured":
        """Return the exponent of a fitted power law; `among` as in :meth:`estimate`."""
        return cls.estimate(fit.exponent, fit.error, fit.runs - 1, among)

    @classmethod
    def largest(cls, found: Sequence["Measured"]) -> "Measured":
        """Return the largest of several, each computed as one `among` so many.

        Its high limit is right if the high limit of what is truly the largest is; its low limit, if all are.
        """
        worst = max(found, key=lambda one: one.value)
        return cls(worst.value, worst.error, max(one.low for one in found), max(one.high for one in found))

    def exponentiated(self) -> "Measured":
        """Return exp of an estimate."""
        error = None if self.error is None else exp(self.value) * self.error
        return Measured(exp(self.value), error, _exp(self.low), _exp(self.high))

    def factor_from(self, number: float) -> "Measured":
        """Return by which factor, at least 1, a positive estimate is away from a known positive number.

        To seven digits, since numbers are published with few: equal ones should come out as 1.

        Examples
        --------
        >>> Measured.exactly(387_106).factor_from(387_106.00).high
        1.0
        """
        ends = [log(number / end) if end > 0 else inf for end in (self.low, self.high)]
        near = max(0.0, -ends[0], ends[1])
        away = abs(log(self.value / number))
        far = max(abs(ends[0]), abs(ends[1]))
        error = None if self.error is None else self.error / self.value * exp(away)
        return Measured(round(exp(away), 7), error, round(exp(near), 7), round(_exp(far), 7))

    def to_json(self) -> dict[str, float | None]:
        """Return plain values; None for an error or a limit that is not there."""
        return {
            "value": self.value,
            "error": self.error,
            "low": self.low if np.isfinite(self.low) else None,
            "high": self.high if np.isfinite(self.high) else None,
        }


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / sqrt(values.size)) if values.size > 1 else 0.0


def _skewness(values: Array) -> float:
    """Return the third central moment over the cube of the standard deviation; 0 where all are alike."""
    off = values - values.mean()
    spread = float(np.sqrt(np.mean(off**2)))
    # Rounding makes a spread of alike values tiny, not 0.
    if spread <= 1e-12 * float(np.abs(values).max(initial=0.0)):
        return 0.0
    return float(np.mean((off / spread) ** 3))


def _quantile(freedom: int, part: float) -> float:
    return float(special.stdtrit(freedom, 1 - part * LEVEL))


def _skewed(reach: float, a: float) -> tuple[float, float]:
    """Return how many standard errors the limits are below and above a mean; a is the skewness / √n."""
    low, high = _hall(reach, a)
    most = MOST_SKEWED * reach
    return min(max(reach, high), most), min(max(reach, -low), most)


def _hall(reach: float, a: float) -> tuple[float, float]:
    """Return where T + a(T²/3 + 1/6) + a²T³/27 is −reach and reach."""
    # Near 0 the formula is a difference of nearly equal numbers, and the correction below one part in 10⁶.
    if abs(a) < 1e-6:
        return -reach, reach
    low, high = (3 / a * (float(np.cbrt(1 + a * (end - a / 6))) - 1) for end in (-reach, reach))
    return low, high


def _exp(value: float) -> float:
    # exp overflows near 709.8; a limit that far out means that nothing is known on that side.
    return exp(value) if value < 700 else inf


@dataclass(frozen=True, eq=False)
class Fit:
    """The least-squares line through (log x, log mean y): mean y ≈ factor · x^exponent.

    Attributes
    ----------
    exponent, error : float
        The slope and its standard error, by leaving out one run at a time.
    values : (n,) array
        The fitted means.
    runs : int
        How many runs the means are over.
    """

    exponent: float
    error: float
    values: Array
    runs: int = 1

    @classmethod
    def of(cls, x: Array, y: Array) -> "Fit":
        """Fit x (n,) and positive y (n, runs).

        Examples
        --------
        >>> Fit.of(np.array([1.0, 2.0, 4.0]), np.array([[3.0, 3.0], [6.0, 6.0], [12.0, 12.0]])).exponent
        1.0
        """
        runs = y.shape[1]
        slope, intercept = _line(x, y.mean(axis=1))
        without = [
            _line(x, np.delete(y, run, axis=1).mean(axis=1))[0] for run in range(runs if runs > 1 else 0)
        ]
        values = np.exp(intercept) * np.asarray(x, dtype=float) ** slope
        if not without:
            return cls(float(slope), 0.0, values, runs)
        error = np.sqrt((runs - 1) / runs * np.sum((np.array(without) - np.mean(without)) ** 2))
        return cls(float(slope), float(error), values, runs)


def signed(fit: "Fit") -> str:
    """Return an exponent with its standard error."""
    return f"{fit.exponent:.3f} ± {fit.error:.3f}".replace("-", "−")


def _line(x: Array, y: Array) -> tuple[float, float]:
    slope, intercept = np.polyfit(np.log(x), np.log(y), 1)
    # Rounded where double precision ends, so that exact powers come out exact.
    return float(np.round(slope, 12)), float(intercept)


Data = dict[str, Columns]

# The paper's shifts as it writes them.
FORMULAS = {"sine": "ν¹ = 1 + sin 2t", "log-alternating": "ν² = ±max(log(t+1)/5, 2)"}

# What a claim can be, in the order in which a reader wants to know; and the answer to a question, which is
# asked by the report and claimed by nobody.
CLAIMS = ("refuted", "undecided", "shown")
ANSWERS = ("no", "open", "yes")
KINDS = (*CLAIMS, *ANSWERS)


@dataclass(frozen=True)
class Scope:
    """How much to run: the quick form or the full one, from which seed."""

    is_quick: bool = True
    seed: int = 1

    def pick(self, quick: int, full: int) -> int:
        """Return the size for this scope."""
        return quick if self.is_quick else full


@dataclass(frozen=True)
class Judgement:
    """One claim and the number that decides it.

    Attributes
    ----------
    name : str
        Unique within its section.
    claim : str
        What is claimed, in words.
    source : {"paper", "figure", "question", "successor", "here"}
        Who claims it; a question is asked by the report, and nobody claims the answer.
    statistic : str
        What was measured, in words.
    measured : Measured
    relation, bound
        The claim is that the truth behind `measured` is ``relation bound``, one of "≤" and "≥".

    Examples
    --------
    >>> Judgement("error", "it errs rarely", "here", "share", Measured.share(11, 40), "≤", 0.1).kind
    'undecided'
    >>> Judgement("error", "it errs rarely", "here", "share", Measured.share(0, 100), "≤", 0.1).kind
    'shown'
    """

    name: str
    claim: str
    source: str
    statistic: str
    measured: Measured
    relation: str
    bound: float

    @property
    def kind(self) -> str:
        """Return "shown" if both limits are on the right side, "refuted" if both are on the wrong one.

        Questions are answered by "yes", "no" or, where the limits do not decide, "open".
        """
        refuted, undecided, shown = ANSWERS if self.source == "question" else CLAIMS
        least, most = self.measured.low, self.measured.high
        if self.relation == "≥":
            least, most = -most, -least
        bound = self.bound if self.relation == "≤" else -self.bound
        if most <= bound:
            return shown
        return refuted if least > bound else undecided

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "name": self.name,
            "claim": self.claim,
            "source": self.source,
            "statistic": self.statistic,
            **self.measured.to_json(),
            "relation": self.relation,
            "bound": float(self.bound),
            "kind": self.kind,
        }


def tally(verdicts: Iterable[Judgement]) -> dict[str, int]:
    """Return how many claims, and how many questions, are of each kind."""
    kinds = [verdict.kind for verdict in verdicts]
    return {kind: kinds.count(kind) for kind in KINDS}


@dataclass(frozen=True)
class Chart:
    """A figure: its name within the section, what it shows in words, and how it is drawn.

    `parts` draws its panels one by one: a page sets them beside or below each other, as there is room.
    """

    name: str
    caption: str
    draw: Callable[[], Any]
    parts: Sequence[Callable[[], Any]] = ()

    @classmethod
    def of_panels(
        cls, name: str, caption: str, draw: Callable[[Any], Any], panels: Mapping[str, Any]
    ) -> "Chart":
        """Return a chart of panels by title, which `draw` can draw together or alone."""
        alone = [partial(draw, {title: panel}) for title, panel in panels.items()]
        return cls(name, caption, partial(draw, panels), alone)


@dataclass(frozen=True)
class Grid:
    """A table for people; numbers are already written out, after so many columns of words."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 2


class Section(Protocol):
    """One figure or table: cells to run, and what their numbers say.

    Everything after :meth:`cells` is a function of the joined tables alone, so it can be derived again
    from the Parquet files.
    """

    @property
    def name(self) -> str:
        """What ``--only`` calls it, e.g. ``figure-1``."""
        ...

    @property
    def title(self) -> str:
        """The heading, without jargon."""
        ...

    @property
    def plain(self) -> str:
        """What the section finds out, in one sentence for anybody."""
        ...

    @property
    def group(self) -> str:
        """The part of the report that it belongs to."""
        ...

    @property
    def claims(self) -> str:
        """What is claimed, and by whom, in a sentence or two."""
        ...

    def setting(self, scope: Scope) -> str:
        """Return what is run, in a sentence or two."""
        ...

    def cells(self, scope: Scope) -> list[Cell]:
        """Return the work."""
        ...

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return what was shown, what was refuted and what the runs leave undecided."""
        ...

    def grids(self, data: Data) -> list[Grid]:
        """Return tables for people."""
        ...

    def charts(self, data: Data) -> list[Chart]:
        """Return the figures."""
        ...
