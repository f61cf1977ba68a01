"""The question asked of a log: one table of roles, and the value that holds what was asked.

A role is an argument of :func:`~orthobandit.logs.analyse`: a column of the log, or an option of the analysis.
Its name, type and default are a field of :class:`Question` or :class:`Summary`, and the rest is the
:class:`Role` of that field. The signature, the flags of the command line, the reference and the checks that
need no log follow from this table; a new role is one entry in it.
"""

import inspect
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum, auto
from pathlib import Path
from textwrap import indent, wrap
from typing import Any, TypeVar

from orthobandit._foundation.checks import check_fraction
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate.follow.guardrails import Guardrail

MISSING = ("refuse", "zero", "drop")
OBSERVED = "observed"  # the split of a summary that nobody declared: shares as counted in each period
BASELINES = ("auto", "mean", "last", "seasonal", "autoregressive", "none")
FORMATS = ("export", "growthbook", "vw", "obp")  # of logs that are no plain table
PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}  # units of times that are numbers, in a second


class RoleKind(Enum):
    """What a role takes; how it is written as a flag and checked follows from it."""

    COLUMN = auto()
    COLUMNS = auto()
    ARM = auto()
    FILE = auto()
    CHOICE = auto()
    SWITCH = auto()
    NUMBER = auto()
    DURATION = auto()
    BUCKET = auto()
    SPLIT = auto()  # a probability by arm, or a word
    RANGE = auto()
    CAPS = auto()
    MARGINS = auto()
    QUANTILES = auto()
    RATIOS = auto()
    GUARDRAILS = auto()
    RULES = auto()


NUMBERS_BY_NAME = (RoleKind.SPLIT, RoleKind.CAPS, RoleKind.MARGINS)

# Groups of flags, in the order of the help.
LOG = "the log"
SUMMARY = "aggregated data: one row per arm and period, instead of --reward"
DRAWN = "how arms were drawn (one of)"
ARMS = "arms"
METRICS = "metrics (may be repeated)"
KNOWN_BEFORE = "known before the arm was drawn"
METHOD = "method"


@dataclass(frozen=True)
class Role:
    """What a role is, beside its name, type and default.

    Attributes
    ----------
    kind : RoleKind
    group : str
        The heading of its flag.
    line : str
        One line for the command line.
    more : str
        What the reference says instead, where more is to be said.
    flag : str
        Without dashes, if it is not the name: that of a flag which is repeated is in the singular.
    choices : tuple of str
    is_number : bool
        Whether its columns must hold numbers.
    is_of_rows : bool
        Whether it needs single rows, which a summary does not have.
    is_of_all : bool
        Whether it has no meaning beside a context: it is about the effect on all visitors together.
    """

    kind: RoleKind
    group: str
    line: str
    more: str = ""
    flag: str = ""
    choices: tuple[str, ...] = ()
    is_number: bool = False
    is_of_rows: bool = False
    is_of_all: bool = False

    @property
    def metadata(self) -> dict[str, "Role"]:
        """As the metadata of a field."""
        return {"role": self}

    def columns(self, value: Any) -> tuple[str, ...]:
        """Return the columns that a value of this role names."""
        match self.kind:
            case RoleKind.COLUMN:
                return () if value is None else (value,)
            case RoleKind.COLUMNS:
                return tuple(value)
            case RoleKind.QUANTILES | RoleKind.GUARDRAILS:
                return tuple(entry.metric for entry in value)
            case RoleKind.MARGINS:
                return tuple(value)
            case RoleKind.RATIOS:
                return tuple(side for ratio in value for side in (ratio.numerator, ratio.denominator))
            case _:
                return ()


def roles_of(kind: type) -> dict[str, Role]:
    """Return the roles of a class by name."""
    return {entry.name: entry.metadata["role"] for entry in fields(kind) if "role" in entry.metadata}


Class = TypeVar("Class", bound=type)


def describe_roles(kind: Class) -> Class:
    """Add the roles of a class to its docstring, as its attributes."""
    lines = []
    for entry in fields(kind):
        if "role" in entry.metadata:
            role = entry.metadata["role"]
            words = role.more or f"{role.line[0].upper()}{role.line[1:]}."
            shown = entry.type.__name__ if isinstance(entry.type, type) else str(entry.type)
            lines += [f"{entry.name} : {shown}", *indent("\n".join(wrap(words, 100)), "    ").split("\n")]
    section = "\n".join(["Attributes", "----------", *lines])
    kind.__doc__ = f"{inspect.cleandoc(kind.__doc__ or '')}\n\n{section}\n"
    return kind


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
            raise ParameterError(Argument("thresholds", self.thresholds), " must be a list of finite numbers")
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


@describe_roles
@dataclass(frozen=True)
class Summary:
    """Columns of aggregated data: one row per arm and period, with count, mean and variance of its values."""

    n: str = field(
        metadata=Role(
            RoleKind.COLUMN, SUMMARY, "how many values (visitors, orders) a row stands for", is_number=True
        ).metadata
    )
    mean: str = field(metadata=Role(RoleKind.COLUMN, SUMMARY, "their mean", is_number=True).metadata)
    variance: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.COLUMN,
            SUMMARY,
            "their sample variance",
            "Their sample variance; this or `std`.",
            is_number=True,
        ).metadata,
    )
    std: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.COLUMN, SUMMARY, "their standard deviation, instead of the variance", is_number=True
        ).metadata,
    )
    smallest: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.COLUMN, SUMMARY, "the smallest value, if the table has it", is_number=True
        ).metadata,
    )
    largest: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.COLUMN, SUMMARY, "the largest value, if the table has it", is_number=True
        ).metadata,
    )
    cumulative: bool | None = field(
        default=None,
        metadata=Role(
            RoleKind.SWITCH,
            SUMMARY,
            "each row counts everything up to its time: differenced before use",
            "Whether each row counts everything up to its time, rather than its own period; None if unknown.",
        ).metadata,
    )

    @property
    def columns(self) -> dict[str, str]:
        """Columns by what they hold."""
        return {
            name: column
            for name in roles_of(Summary)
            for column in roles_of(Summary)[name].columns(getattr(self, name))
        }

    @property
    def has_ends(self) -> bool:
        """Whether the table has the smallest and the largest value."""
        return self.smallest is not None and self.largest is not None


Function = TypeVar("Function", bound=Callable[..., object])


def spell_out(function: Function) -> Function:
    """Give a function that takes ``**asked`` the signature that it really has.

    The arguments are the roles of :class:`Question` and of :class:`Summary`, with their types; None stands
    for their defaults. So help, notebooks and the reference show every argument.
    """
    shown = inspect.signature(function)
    kept = [
        parameter
        for parameter in shown.parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    for entry in (*fields(Question), *fields(Summary)):
        if "role" in entry.metadata:
            kind = entry.type if "None" in str(entry.type) else entry.type | None  # type: ignore[operator]
            kept.append(
                inspect.Parameter(entry.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            )
    function.__signature__ = shown.replace(parameters=kept)  # type: ignore[attr-defined]
    return function


@describe_roles
@dataclass(frozen=True)
class Question:
    """The role of each column of a log, and the options of the analysis.

    `summary` is a :class:`Summary` for aggregated data; `reward` is then the column of means.
    """

    arm: str = field(metadata=Role(RoleKind.COLUMN, LOG, "the arm that was played").metadata)
    reward: str = field(
        metadata=Role(
            RoleKind.COLUMN,
            LOG,
            "the outcome; larger is better",
            "The outcome, which is the first metric; larger is better.",
            is_number=True,
        ).metadata
    )
    time: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.COLUMN,
            LOG,
            "when the arm was drawn (default: no time, one look at the whole log)",
            "When the arm was drawn: a timestamp, a date or a number. Without it the log is looked at as a"
            " whole, once.",
        ).metadata,
    )
    time_unit: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.CHOICE,
            LOG,
            "unit of times that are numbers since 1970 (default: numbers are not dates)",
            'Of numbers that count time since 1970 ("s", "ms", "us" or "ns"), so that they are times of the'
            " clock. Without it numbers are only in order.",
            choices=tuple(PER_SECOND),
        ).metadata,
    )
    unit: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.COLUMN,
            LOG,
            "users with several rows: the first row decides the arm, rewards are summed",
            "Names the unit (user): its first row decides plan, arm, time and covariates, and what follows"
            " within `window` of it adds up.",
            is_of_rows=True,
        ).metadata,
    )
    window: float | None = field(
        default=None,
        metadata=Role(
            RoleKind.DURATION,
            LOG,
            "how long rewards are summed after the first row: 30m, 12h, 7d (default: no limit)",
            "How long the rows of a unit add up after its first: seconds, or units of the time column; None"
            " for all that follows.",
            is_of_rows=True,
        ).metadata,
    )
    missing: str = field(
        default="refuse",
        metadata=Role(
            RoleKind.CHOICE,
            LOG,
            "what to do with rows without a reward (default: refuse)",
            'What to do with rows whose value is missing or not finite: "refuse", "zero" or "drop".',
            choices=MISSING,
        ).metadata,
    )
    split: Mapping[str, float] | str | None = field(
        default=None,
        metadata=Role(
            RoleKind.SPLIT,
            DRAWN,
            'the same for all rows: "a=.5 b=.5", or equal',
            '{arm: probability} or "equal", the same for all rows.',
        ).metadata,
    )
    probabilities: tuple[str, ...] = field(
        default=(),
        metadata=Role(
            RoleKind.COLUMNS,
            DRAWN,
            "one column per arm, or the one with the probability of the arm that was drawn",
            "One column per arm, in the order of the arms or named after them (``p:label``, ``p_label``,"
            " ``label``); or the one column with the probability of the arm that was drawn.",
            is_number=True,
        ).metadata,
    )
    plan: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.COLUMN,
            DRAWN,
            "which plan a row was drawn from; with --plans",
            "Names the plan; with `plans`.",
        ).metadata,
    )
    plans: str | Path | Mapping[str, Mapping[str, float]] | None = field(
        default=None,
        metadata=Role(
            RoleKind.FILE,
            DRAWN,
            "the probabilities of each plan: a column plan, and one per arm",
            "File with the columns plan and one per arm; or {plan: {arm: probability}}.",
        ).metadata,
    )
    arms: str | Path | None = field(
        default=None,
        metadata=Role(
            RoleKind.FILE,
            ARMS,
            "features of the arms (default: they have nothing in common)",
            "A file of features (:meth:`~orthobandit.ArmSet.read`); without it arms have nothing in common.",
            is_of_all=True,
        ).metadata,
    )
    reference: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.ARM, ARMS, "the arm that others are compared with (default: the first)"
        ).metadata,
    )
    metrics: tuple[str, ...] = field(
        default=(),
        metadata=Role(
            RoleKind.COLUMNS,
            METRICS,
            "another metric; its intervals hold together with the reward's",
            "Further columns, at a joint level.",
            flag="metric",
            is_number=True,
            is_of_rows=True,
            is_of_all=True,
        ).metadata,
    )
    quantiles: tuple[Quantile, ...] = field(
        default=(),
        metadata=Role(
            RoleKind.QUANTILES,
            METRICS,
            "a median (0.5) or another quantile: latency:0.95",
            "Quantiles of columns, at a joint level with all metrics.",
            flag="quantile",
            is_number=True,
            is_of_rows=True,
            is_of_all=True,
        ).metadata,
    )
    ratios: tuple[Ratio, ...] = field(
        default=(),
        metadata=Role(
            RoleKind.RATIOS,
            METRICS,
            "a metric that is a sum over a sum, such as revenue/clicks",
            flag="ratio",
            is_number=True,
            is_of_rows=True,
            is_of_all=True,
        ).metadata,
    )
    guardrails: tuple[Guardrail, ...] = field(
        default=(),
        metadata=Role(
            RoleKind.GUARDRAILS,
            METRICS,
            "a metric that no arm may raise by more than the margin; METRIC:MARGIN:lower where less is worse",
            "Metrics that no arm may make worse by more than a margin.",
            flag="guardrail",
            is_number=True,
            is_of_all=True,
        ).metadata,
    )
    noninferiority: Mapping[str, float] = field(
        default_factory=dict,
        metadata=Role(
            RoleKind.MARGINS,
            METRICS,
            "show that no arm is worse than the reference arm by more than a margin: crashed:0.002 for a"
            " rise, returned:-0.01 for a fall",
            "Margins by metric: the gap to the reference arm beyond which an arm is too much worse. Above 0"
            " where more is worse (0.002 for a share of crashes), below 0 where less is (−0.01 for a share"
            " that returns).",
            is_number=True,
            is_of_all=True,
        ).metadata,
    )
    caps: Mapping[str, float] | None = field(
        default=None,
        metadata=Role(
            RoleKind.CAPS,
            METRICS,
            "cut larger values of a metric to VALUE; fix it before you look",
            "Largest value of each metric, fixed beforehand; larger values are cut.",
            flag="cap",
            is_of_rows=True,
            is_of_all=True,
        ).metadata,
    )
    covariates: tuple[str, ...] = field(
        default=(),
        metadata=Role(
            RoleKind.COLUMNS,
            KNOWN_BEFORE,
            "a number that makes intervals narrower (may be repeated)",
            "Numbers known before the arm was drawn, which make intervals narrower.",
            flag="covariate",
            is_number=True,
            is_of_rows=True,
            is_of_all=True,
        ).metadata,
    )
    segment: str | None = field(
        default=None,
        metadata=Role(
            RoleKind.COLUMN,
            KNOWN_BEFORE,
            "groups: effects in each, and whether they differ",
            "Groups known before the arm was drawn: effects in each, and whether they differ.",
            is_of_all=True,
        ).metadata,
    )
    context: tuple[str, ...] = field(
        default=(),
        metadata=Role(
            RoleKind.COLUMNS,
            KNOWN_BEFORE,
            "numbers that effects may depend on: what would each rule have earned, who should get what",
            "Numbers known before the arm was drawn that effects may depend on, and rules look at.",
            is_number=True,
        ).metadata,
    )
    rules: Mapping[str, str] = field(
        default_factory=dict,
        metadata=Role(
            RoleKind.RULES,
            KNOWN_BEFORE,
            "a rule to judge, with --context: 'B on telephones=B if mobile >= 0.5 else A' (may be repeated)",
            'Rules to judge, by name, in words: ``{"B on telephones": "B if mobile >= 0.5 else A"}``; with'
            " `context`. That one arm is shown to all is judged as well, for every arm.",
            flag="rule",
        ).metadata,
    )
    delta: float = field(
        default=0.05,
        metadata=Role(
            RoleKind.NUMBER, METHOD, "probability that any interval is ever wrong (default .05)"
        ).metadata,
    )
    bucket: str | float | None = field(
        default=None,
        metadata=Role(
            RoleKind.BUCKET,
            METHOD,
            "minute, hour, day, week, or 15m (default: from the data)",
            '"minute", "hour", "day", "week", a number of seconds or units of the time column, or None to'
            " choose.",
        ).metadata,
    )
    baseline: str = field(
        default="auto",
        metadata=Role(
            RoleKind.CHOICE, METHOD, "forecast of a bucket's level (default auto)", choices=BASELINES
        ).metadata,
    )
    bounds: tuple[float, float] | Mapping[str, tuple[float, float]] | None = field(
        default=None,
        metadata=Role(
            RoleKind.RANGE,
            METHOD,
            "the range that rewards cannot leave, for exact intervals (booleans need none)",
            "The range of values, for the exact mode: of `reward`, or of each metric that is named. Boolean"
            " columns need none. Numbers that happen to be 0 and 1 so far do: nothing says that they"
            " stay so.",
        ).metadata,
    )
    asymptotic: bool = field(
        default=False,
        metadata=Role(
            RoleKind.SWITCH, METHOD, "asymptotic intervals even where exact ones are possible"
        ).metadata,
    )
    fixed: bool = field(
        default=False,
        metadata=Role(RoleKind.SWITCH, METHOD, "ordinary intervals, which hold for a single look").metadata,
    )
    summary: Summary | None = None

    @property
    def roles(self) -> Iterator[tuple[str, str]]:
        """The role of every column, and the column."""
        for name, role in roles_of(Question).items():
            columns = role.columns(getattr(self, name))
            # In a summary the metric is the mean, which has its role.
            if name == "reward" and self.summary is not None:
                yield from self.summary.columns.items()
                continue
            if name == "noninferiority":
                columns = () if self.summary is not None else tuple(self._margined)
            yield from ((name, column) for column in columns)

    @property
    def _margined(self) -> list[str]:
        return [name for name in self.noninferiority if name not in self.ratio_names]

    @property
    def measured(self) -> tuple[str, ...]:
        """All columns of metrics, each once: reward, metrics, guardrails, both sides of ratios."""
        # The reward first: its column is number 0 wherever columns are counted.
        names: Sequence[str] = (
            self.reward,
            *self.metrics,
            *(quantile.metric for quantile in self.quantiles),
            *(guardrail.metric for guardrail in self.guardrails),
            *self._margined,
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


# What a role that takes several holds in its tuple.
ELEMENTS: dict[RoleKind, type] = {
    RoleKind.COLUMNS: str,
    RoleKind.QUANTILES: Quantile,
    RoleKind.GUARDRAILS: Guardrail,
    RoleKind.RATIOS: Ratio,
}
# Every role by name.
ROLES = roles_of(Question) | roles_of(Summary)
SUMMARY_COLUMNS = tuple(name for name, role in roles_of(Summary).items() if role.kind is RoleKind.COLUMN)
