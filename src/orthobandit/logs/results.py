"""The results of an analysis: effects, diagnostics and the recommendation, as plain data."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.frames import frame_of, write_columns
from orthobandit._foundation.json_arrays import plain_values
from orthobandit._foundation.types import Array
from orthobandit.estimate import ContrastSequence
from orthobandit.estimate.follow.cells import Feeds, Measure

Interval = tuple[float | None, float | None]  # None for an end that is not known


@dataclass(frozen=True)
class Effect:
    """The gap of an arm over another.

    Attributes
    ----------
    arm, over : str
    estimate : float or None
        None if the log cannot tell.
    interval : (float or None, float or None)
        Ends; see :attr:`Metric.mode` for when it holds.
    fixed : (float or None, float or None)
        The ordinary interval for one look.
    lift : (float or None, float or None)
        Average over all rounds relative to that of `over`, minus 1; None where the latter may be 0.
    verdict : {"better", "worse", "undecided", "reference"}
        Of a guardrail "safe" or "harmed", of a quantile "higher" or "lower".
    more_rows : (float, float, float) or None
        For an undecided arm: further rows before which the gap is decided in half of all cases if this split
        goes on, in 5 % and in 80 % of them (infinite where so many are never decided).
    """

    arm: str
    over: str
    estimate: float | None
    interval: Interval
    fixed: Interval
    lift: Interval
    verdict: str
    more_rows: tuple[float, float, float] | None


@dataclass(frozen=True)
class ArmSummary:
    """Rows, share of rows, plain mean, and the share of capped and of missing values of an arm."""

    arm: str
    rows: int
    share: float
    planned: float
    mean: float | None
    capped: float
    missing: float


@dataclass(frozen=True)
class Moment:
    """What was known at the end of a bucket: gaps over the reference arm, for the charts over time."""

    time: float
    rows: int
    level: float | None
    forecast: float | None
    estimates: tuple[float | None, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    shares: tuple[float, ...]


@dataclass(frozen=True)
class MetricResult:
    """One metric: effects against the reference arm and against the best.

    Attributes
    ----------
    name : str
    kind : {"reward", "metric", "ratio", "guardrail", "quantile"}
    mode : str
        In words: what the intervals assume, and when they hold.
    delta : float
        Probability that any gap between two arms is ever outside its interval: effects, gaps over the best
        arm and arms that can be dropped hold together. Lifts hold together at the same level, and so do all
        segments.
    margin : float or None
        Of a guardrail: the gap beyond which an arm does harm, positive if more is worse, negative if less is.
        Its verdicts are "safe", "harmed" or "undecided".
    effects : tuple of Effect
        Of every arm over the reference arm, itself included.
    against_best : tuple of Effect
        Of every arm over the arm with the largest estimate, jointly for all pairs.
    droppable : tuple of str
        Arms that are proven worse than another.
    summaries : tuple of ArmSummary
    saved : dict of str to float
        Share of the variance around a running mean that each baseline saved, and "covariates".
    baseline : str
        The one that was used most.
    level : (float or None, float or None)
        Interval of the average level of the reference arm.
    history : tuple of Moment
    is_contradicted : bool
        Whether no gaps fit the intervals of all pairs: the model is violated, and no interval is shown.
    arm_intervals : tuple of (float or None, float or None)
        Of a quantile: the interval of each arm's own quantile, which `summaries` hold as its mean.
    """

    name: str
    kind: str
    mode: str
    delta: float
    margin: float | None
    effects: tuple[Effect, ...]
    against_best: tuple[Effect, ...]
    droppable: tuple[str, ...]
    summaries: tuple[ArmSummary, ...]
    saved: dict[str, float]
    baseline: str
    level: Interval
    history: tuple[Moment, ...]
    is_contradicted: bool = False
    arm_intervals: tuple[Interval, ...] = ()


@dataclass(frozen=True)
class NonInferiority:
    """Whether an arm is shown not to be worse than the reference arm by more than a margin.

    Attributes
    ----------
    arm, over, metric : str
    margin : float
        The gap beyond which the arm is too much worse: positive if more is worse, negative if less is.
    status : {"shown", "not yet", "refuted"}
        Refuted if the arm is shown to be worse by more than the margin.
    words : str
        One sentence for a reader.
    """

    arm: str
    over: str
    metric: str
    margin: float
    status: str
    words: str


@dataclass(frozen=True)
class Diagnostic:
    """One check of the log, made before any effect is shown.

    Attributes
    ----------
    name : {"sample ratio", "missing", "constant gaps", "constant ratios", "blind buckets", "units", ...}
    status : {"fine", "note", "alarm"}
    words : str
        One sentence for a reader.
    p_value : float or None
    segment : str or None
    details : dict
        Plain numbers behind it.
    """

    name: str
    status: str
    words: str
    p_value: float | None = None
    segment: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rival:
    """Another method's estimate of one gap, its interval, and what it assumes."""

    method: str
    arm: str
    over: str
    estimate: float | None
    interval: Interval
    assumes: str


@dataclass(frozen=True)
class SegmentResult:
    """Effects within a segment, and the rows it has."""

    segment: str
    rows: int
    effects: tuple[Effect, ...]


@dataclass(frozen=True)
class Heterogeneity:
    """Do segments differ in an arm's gap? A p-value for one look, and pairs of intervals that are apart."""

    arm: str
    over: str
    p_value: float | None
    apart: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Value:
    """Reward of other probabilities minus that of the logged ones, per round."""

    estimate: float
    interval: Interval
    mode: str


@dataclass(frozen=True, eq=False)
class Record:
    """The data behind the reward's gaps, for a certificate.

    Attributes
    ----------
    plans : (P, K) array
    offset : float
        What was subtracted from the reward before it was followed.
    measure : Measure
    sequence : ContrastSequence or None
        As it was in the end; None if no bucket counted.
    feeds : Feeds or None
        None if the log was looked at once.
    """

    plans: Array
    offset: float
    measure: Measure
    sequence: ContrastSequence | None
    feeds: Feeds | None


@dataclass(frozen=True)
class RuleResult:
    """What a rule would have earned over showing the reference arm to all, per row.

    Attributes
    ----------
    name : str
    text : str
        The rule in words: the label of an arm, or cases.
    estimate : float or None
        None if the log cannot tell.
    interval : (float or None, float or None)
        Holds for all rules at once; see :attr:`MetricResult.mode` for when.
    fixed : (float or None, float or None)
        The ordinary interval for one look.
    changed : int
        Rows whose visitors would have got another arm than the reference.
    is_possible : bool
        Whether the rule may be the best of all that are judged.
    """

    name: str
    text: str
    estimate: float | None
    interval: Interval
    fixed: Interval
    changed: int
    is_possible: bool


@dataclass(frozen=True)
class ContextEffect:
    """How an arm differs from the reference arm: where all columns are 0, or per unit of a column.

    Coefficients of the straight line that is closest to the effects of the visitors of the log. `column` is
    None for the effect where all columns of the context are 0.
    """

    arm: str
    over: str
    column: str | None
    estimate: float | None
    interval: Interval


@dataclass(frozen=True)
class Audience:
    """Who should get which arm: visitors with one column at either end, the others at their mean.

    `effects` are estimates of every arm's reward over the reference arm's; `best` is the arm with the
    largest.
    """

    column: str
    value: float
    best: str
    effects: tuple[float, ...]


@dataclass(frozen=True)
class Personal:
    """Rules, what they would have earned, and effects by context; with ``context=``.

    Attributes
    ----------
    rules : tuple of RuleResult
        Showing the reference arm to all comes first, with a gain of 0.
    best : str or None
        The rule that is proven to earn most of those that are judged.
    effects : tuple of ContextEffect
    audiences : tuple of Audience
    one_arm_rows : int
        Rows in which only one arm could be drawn: they carry no information, and all rules earn the same.
    replaced_rows : int
        Rows in which a rule's arm could not be drawn, so that the rule shows another.
    """

    rules: tuple[RuleResult, ...]
    best: str | None
    effects: tuple[ContextEffect, ...]
    audiences: tuple[Audience, ...]
    one_arm_rows: int
    replaced_rows: int


@dataclass(frozen=True)
class Analysis:
    """The result of :func:`analyse`. Prints as a sentence and tables; see also `to_json` and `html`.

    Attributes
    ----------
    sentence : str
        What to do, in one sentence.
    rows : int
    buckets : int
    bucket : str
        Their length, in words.
    reference : str
    labels : tuple of str
    metrics : tuple of MetricResult
        The reward first.
    diagnostics : tuple of Diagnostic
    segments : tuple of SegmentResult
    heterogeneity : tuple of Heterogeneity
    rivals : tuple of Rival
        With ``compare=True``.
    value : Value or None
        With ``value=``.
    noninferiority : tuple of NonInferiority
        Of every guardrail, and of metrics with ``noninferiority=``.
    personal : Personal or None
        Rules and effects by context, with ``context=``.
    notes : tuple of str
    is_clock : bool
        Whether times are seconds since 1970.
    bucket_rule : dict
        The rule for the boundaries of all buckets, in units of the time column: ``width``, ``origin``, and
        ``doubles_after``, the number of widths after which buckets double with time (None if never). It
        depends only on the kind of the column and the first rows, so a log that has grown continues the
        sequence of the shorter one. Empty without time.
    """

    sentence: str
    rows: int
    buckets: int
    bucket: str
    reference: str
    labels: tuple[str, ...]
    metrics: tuple[MetricResult, ...]
    diagnostics: tuple[Diagnostic, ...]
    segments: tuple[SegmentResult, ...] = ()
    heterogeneity: tuple[Heterogeneity, ...] = ()
    rivals: tuple[Rival, ...] = ()
    value: Value | None = None
    noninferiority: tuple[NonInferiority, ...] = ()
    personal: Personal | None = None
    notes: tuple[str, ...] = ()
    is_clock: bool = True
    bucket_rule: dict[str, Any] = field(default_factory=dict)
    # What a certificate rests on, of analyses that come from a log: no part of what was found.
    _record: ClassVar[Record | None] = None

    @property
    def alarms(self) -> tuple[Diagnostic, ...]:
        """Diagnostics because of which effects must not be believed."""
        return tuple(one for one in self.diagnostics if one.status == "alarm")

    def to_json(self) -> dict[str, Any]:
        """Return plain values; ends that are not known are null."""
        values: dict[str, Any] = plain_values(asdict(self))
        return values

    def __repr__(self) -> str:
        names = ", ".join(metric.name for metric in self.metrics)
        alarms = f", {len(self.alarms)} alarms" if self.alarms else ""
        return f"Analysis({self.rows:,} rows, {len(self.labels)} arms, {names}{alarms})"

    def _repr_html_(self) -> str:
        # Imported here, as everything that shows: results are plain data, and what shows them imports
        # results.
        from orthobandit.logs.showing.frames import notebook_of

        return notebook_of(self)

    def to_frame(self, table: str = "effects", *, library: str | None = None) -> Any:
        """Return what was found as a frame.

        Parameters
        ----------
        table : {"effects", "arms", "history", "checks", "segments", "rivals", "rules", "context"}
            A row per metric and arm: gaps over the reference arm, or rows and means; a row per metric, bucket
            and arm, for effects as they were known at the time; a row per check of the log; a row per segment
            and arm; a row per arm and other method, with ``compare=True``; with
            ``context=``, a row per rule, and a row per arm and column of the context.
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first that is installed.
        """
        from orthobandit.logs.showing.frames import tables_of

        tables = tables_of(self)
        return frame_of(tables[check_choice("table", table, tables)], library)

    def to_parquet(self, path: str | Path, table: str = "effects") -> None:
        """Write one of the tables of :meth:`to_frame` to a Parquet file."""
        from orthobandit.logs.showing.frames import tables_of

        tables = tables_of(self)
        write_columns(path, tables[check_choice("table", table, tables)])

    def plot(self, axes: Any = None) -> Any:
        """Draw the gaps of the reward over the reference arm with their intervals; return the axes.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default. :meth:`figure` shows the history too.
        """
        from orthobandit.logs.showing.figure import draw_effects

        return draw_effects(self, axes)

    def save(self, path: str | Path) -> None:
        """Write a certificate of the reward's gaps, for :func:`orthobandit.verify.verify_file`.

        Raises
        ------
        CertificateError
            If the intervals are for one look, nothing was counted, or the certificate would be too large.
        """
        from orthobandit.logs.certificate import save

        save(self, self._record, path)

    def html(self, title: str = "") -> str:
        """Return a self-contained HTML page: sentence, diagnostics, effects, charts.

        Parameters
        ----------
        title : str
            Title of the page, such as the name of a file; shown above the sentence, with the last day.
        """
        from orthobandit.logs.showing.page import page_of

        return page_of(self, title)

    def figure(self) -> Any:
        """Return effects and their history as a matplotlib figure."""
        from orthobandit.logs.showing.figure import figure_of

        return figure_of(self)

    def __str__(self) -> str:
        from orthobandit.logs.showing.text import text_of

        return text_of(self)
