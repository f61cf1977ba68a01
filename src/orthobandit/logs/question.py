"""The question asked of a log: the role of each column, and the options of the analysis."""

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from orthobandit._foundation.checks import check_fraction
from orthobandit.errors import ParameterError
from orthobandit.estimate.follow.guardrails import Guardrail

MISSING = ("refuse", "zero", "drop")
OBSERVED = "observed"  # the split of a summary that nobody declared: shares as counted in each period
BASELINES = ("auto", "mean", "last", "seasonal", "autoregressive", "none")
FORMATS = ("export", "growthbook", "vw", "obp")  # of logs that are no plain table


@dataclass(frozen=True)
class Ratio:
    """A metric that is a sum over a sum, such as revenue per click."""

    numerator: str
    denominator: str

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"{self.numerator}/{self.denominator}"


@dataclass(frozen=True)
class Quantile:
    """A quantile of a metric, such as the median or the 95th percentile, instead of its mean.

    Attributes
    ----------
    level : float
        Share of values at or below it: 0.5 for the median, 0.95 for the 95th percentile.
    thresholds : tuple of float
        Values at which the distribution is estimated; interval ends are among them. By default they are
        chosen from the first rows, which then do not count.
    metric : str
        Its column; given by the name under which the quantile is asked for.
    """

    level: float
    thresholds: tuple[float, ...] = ()
    metric: str = ""

    def __post_init__(self) -> None:
        check_fraction("level", self.level)
        try:
            ends = tuple(sorted({float(one) for one in self.thresholds}))
        except (TypeError, ValueError):
            ends = (math.nan,)
        if not all(math.isfinite(one) for one in ends):
            raise ParameterError(f"thresholds={self.thresholds!r} must be a list of finite numbers")
        object.__setattr__(self, "thresholds", ends)

    @property
    def name(self) -> str:
        """As it is shown.

        Examples
        --------
        >>> Quantile(0.95, metric="seconds").name, Quantile(0.5, metric="seconds").name
        ('seconds p95', 'seconds median')
        """
        return f"{self.metric} {'median' if self.level == 0.5 else f'p{100.0 * self.level:g}'}"


@dataclass(frozen=True)
class Summary:
    """Columns of aggregated data: one row per arm and period, with count, mean and variance of its values.

    Attributes
    ----------
    n, mean : str
        How many values a row stands for, and their mean.
    variance, std : str or None
        Their sample variance, or its square root: one of the two.
    smallest, largest : str or None
        Their ends, if the table has them.
    cumulative : bool or None
        Whether each row counts everything up to its time, rather than its own period; None if unknown.
    """

    n: str
    mean: str
    variance: str | None = None
    std: str | None = None
    smallest: str | None = None
    largest: str | None = None
    cumulative: bool | None = None

    @property
    def columns(self) -> dict[str, str]:
        """Columns by what they hold."""
        names = {role: getattr(self, role) for role in SUMMARY_COLUMNS}
        return {role: name for role, name in names.items() if name is not None}

    @property
    def has_ends(self) -> bool:
        """Whether the table has the smallest and the largest value."""
        return self.smallest is not None and self.largest is not None


SUMMARY_COLUMNS = ("n", "mean", "variance", "std", "smallest", "largest")
Function = TypeVar("Function", bound=Callable[..., object])


def spell_out(function: Function) -> Function:
    """Give a function that takes ``**asked`` the signature that it really has.

    The arguments are the fields of :class:`Question` and of :class:`Summary`, with their types; None stands
    for their defaults. These two classes stay the only list of them, and help, notebooks and the reference
    show every argument.
    """
    shown = inspect.signature(function)
    kept = [one for one in shown.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
    of_rows = [one for one in fields(Question) if one.name != "summary"]
    for one in (*of_rows, *fields(Summary)):
        kind = one.type if "None" in str(one.type) else one.type | None  # type: ignore[operator]
        kept.append(
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        )
    function.__signature__ = shown.replace(parameters=kept)  # type: ignore[attr-defined]
    return function


@dataclass(frozen=True)
class Question:
    """The role of each column of a log, and the options of the analysis.

    Attributes
    ----------
    arm, reward : str
        Columns: the arm that was played, and its reward (the first metric).
    time : str or None
        When the arm was drawn: a timestamp, a date or a number. Without it the log is looked at as a whole,
        once.
    time_unit : {"s", "ms", "us", "ns"} or None
        Of numbers that count time since 1970, so that they are times of the clock. Without it numbers are
        only in order.
    arms : str or None
        A file of features (:meth:`~orthobandit.ArmSet.read`); without it arms have nothing in common.
    probabilities : tuple of str
        One column per arm, in the order of the arms or named after them (``p:label``, ``p_label``,
        ``label``); or the one column with the probability of the arm that was drawn.
    plan : str or None
        Column that names the plan; with `plans`.
    plans : str, mapping or None
        File with the columns plan and one per arm; or {plan: {arm: probability}}.
    split : mapping or "equal" or None
        {arm: probability}, the same for all rows.
    unit : str or None
        Column that names the unit (user): its first row decides plan, arm, time and covariates, and what
        follows within `window` of it adds up.
    window : float or None
        Seconds, or units of the time column; None for all that follows.
    missing : {"refuse", "zero", "drop"}
        What to do with rows whose value is missing or not finite.
    covariates : tuple of str
        Numbers known before the arm was drawn.
    segment : str or None
        A column known before the arm was drawn.
    context : tuple of str
        Numbers known before the arm was drawn that effects may depend on, and rules look at.
    rules : mapping of str to str
        Rules to judge, by name, in words: ``{"B on telephones": "B if mobile >= 0.5 else A"}``; with
        `context`. That one arm is shown to all is judged as well, for every arm.
    metrics : tuple of str
        Further columns, at a joint level.
    quantiles : tuple of Quantile
        Quantiles of columns, at a joint level with all metrics.
    guardrails : tuple of Guardrail
    noninferiority : mapping of str to float
        Margins by metric: the gap to the reference arm beyond which an arm is too much worse. Above 0 where
        more is worse (0.002 for a share of crashes), below 0 where less is (−0.01 for a share that returns).
    ratios : tuple of Ratio
    caps : mapping of str to float
        Largest value of each metric, fixed beforehand; larger values are cut.
    bucket : str or float or None
        "minute", "hour", "day", "week", a number of seconds or units of the time column, or None to choose.
    reference : str or None
        Arm that others are compared with; the first by default.
    delta : float
        Probability that any interval is ever wrong.
    bounds : (float, float) or mapping of str to (float, float) or None
        The range of values, for the exact mode: of `reward`, or of each metric that is named. Boolean columns
        need none. Numbers that happen to be 0 and 1 so far do: nothing says that they stay so.
    asymptotic : bool
        Whether to use the asymptotic mode even where the exact mode is possible.
    baseline : {"auto", "mean", "last", "seasonal", "autoregressive", "none"}
    fixed : bool
        Whether to give ordinary fixed-sample intervals, for a single look.
    summary : Summary or None
        Of aggregated data; `reward` is then the column of means.
    """

    arm: str
    reward: str
    time: str | None = None
    time_unit: str | None = None
    arms: str | Path | None = None
    probabilities: tuple[str, ...] = ()
    plan: str | None = None
    plans: str | Path | Mapping[str, Mapping[str, float]] | None = None
    split: Mapping[str, float] | str | None = None
    unit: str | None = None
    window: float | None = None
    missing: str = "refuse"
    covariates: tuple[str, ...] = ()
    segment: str | None = None
    context: tuple[str, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    quantiles: tuple[Quantile, ...] = ()
    guardrails: tuple[Guardrail, ...] = ()
    noninferiority: Mapping[str, float] = field(default_factory=dict)
    ratios: tuple[Ratio, ...] = ()
    caps: Mapping[str, float] | None = None
    bucket: str | float | None = None
    reference: str | None = None
    delta: float = 0.05
    bounds: tuple[float, float] | Mapping[str, tuple[float, float]] | None = None
    asymptotic: bool = False
    baseline: str = "auto"
    fixed: bool = False
    summary: Summary | None = None

    @property
    def measured(self) -> tuple[str, ...]:
        """All columns of metrics, each once: reward, metrics, guardrails, both sides of ratios."""
        # The reward first: its column is number 0 wherever columns are counted.
        names: Sequence[str] = (
            self.reward,
            *self.metrics,
            *(quantile.metric for quantile in self.quantiles),
            *(guardrail.metric for guardrail in self.guardrails),
            *(name for name in self.noninferiority if name not in self.ratio_names),
            *(side for ratio in self.ratios for side in (ratio.numerator, ratio.denominator)),
        )
        return tuple(dict.fromkeys(names))

    @property
    def ratio_names(self) -> tuple[str, ...]:
        """Ratios as they are shown."""
        return tuple(ratio.name for ratio in self.ratios)

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """The declared range of each metric that has one."""
        if self.bounds is None:
            return {}
        return dict(self.bounds) if isinstance(self.bounds, Mapping) else {self.reward: self.bounds}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns whose sums and products are needed: metrics, then covariates and the context."""
        # Metrics first, so that they have the same numbers with and without others.
        known_before = (*self.covariates, *self.context)
        return (*self.measured, *(name for name in known_before if name not in self.measured))
