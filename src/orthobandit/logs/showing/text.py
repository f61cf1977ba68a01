"""An analysis as text for a terminal: the sentence, problems of the log, then tables."""

from collections.abc import Callable, Sequence
from textwrap import fill

from orthobandit.logs.results import Analysis, ArmSummary, Effect, MetricResult
from orthobandit.logs.showing.words import (
    best_words,
    certainty_words,
    diagnostic_words,
    droppable_words,
    gap_words,
    headline,
    interval_words,
    is_held_against_best,
    mean_places,
    method_rows,
    personal_tables,
    saved_words,
    segments_words,
    size_words,
    title_words,
    verdict_words,
)
from orthobandit.showing.numbers import (
    estimate_words,
    half_width,
    is_known,
    lift_words,
    more_words,
    number,
    share_words,
    span_words,
)
from orthobandit.showing.text import NAMED, printable, text_table, visible

TABLE_WIDTH = 100  # characters, as far as labels allow
Column = tuple[str, Callable[[Effect], str]]


def text_of(analysis: Analysis) -> str:
    """Return an analysis as text for a terminal.

    Parameters
    ----------
    analysis : Analysis

    Returns
    -------
    str
        The sentence first, then diagnostics that are not fine, then effects, segments, other methods,
        the value of other probabilities, and notes.
    """
    parts = [
        _wrapped(printable(headline(analysis))),
        _diagnostics(analysis),
        *(_metric(analysis, metric) for metric in analysis.metrics),
        *_personal(analysis),
        _segments(analysis),
        _rivals(analysis),
        _value(analysis),
        "\n".join(_wrapped(f"note: {printable(note)}") for note in analysis.notes),
    ]
    return "\n\n".join(filter(None, parts))


def _diagnostics(analysis: Analysis) -> str:
    """Return alarms first, then notes; a line if all is fine."""
    out = [_wrapped(f"ALARM {diagnostic_words(one)}") for one in analysis.alarms]
    if out:
        out.append("Effects below must not be believed before this is explained.")
    out += [
        _wrapped(f"check {diagnostic_words(one)}") for one in analysis.diagnostics if one.status == "note"
    ]
    fine = [one.name for one in analysis.diagnostics if one.status == "fine"]
    if fine:
        out.append(_wrapped(f"fine: {', '.join(dict.fromkeys(fine))}"))
    return "\n".join(out)


def _metric(analysis: Analysis, metric: MetricResult) -> str:
    """Return the tables of one metric, with what its intervals assume."""
    first = analysis.metrics[0]
    effects, counts = _effects(metric, has_counts=metric is first or _counts(metric) != _counts(first))
    title = f"{title_words(metric)}: {size_words(analysis)}"
    out = [_wrapped(title), effects, _wrapped(certainty_words(metric))]
    if metric.arm_intervals:
        named = [
            f"{visible(effect.arm)} {number(low)} to {number(high)}"
            for effect, (low, high) in zip(metric.effects, metric.arm_intervals, strict=True)
        ]
        out.append(_wrapped(f"intervals of the arms' own: {'; '.join(named)}"))
    if counts:
        out += ["", counts]
    if is_held_against_best(analysis, metric):
        out += ["", *_against_best(analysis, metric)]
    out += [_wrapped(printable(one.words)) for one in analysis.noninferiority if one.metric == metric.name]
    out += [_wrapped(line) for line in (saved_words(metric), _unusual(metric)) if line]
    return "\n".join(out)


def _counts(metric: MetricResult) -> list[tuple[str, int, float]]:
    return [(one.arm, one.rows, one.planned) for one in metric.summaries]


def _effects(metric: MetricResult, has_counts: bool) -> tuple[str, str]:
    """Return a table and an empty text, or two tables of the same arms if one would be too wide."""
    arms = {one.arm: one for one in metric.summaries}
    places = mean_places(metric)

    def of_arm(shown: Callable[[ArmSummary], str]) -> Callable[[Effect], str]:
        return lambda effect: shown(arms[effect.arm]) if effect.arm in arms else ""

    name: Column = ("arm", lambda effect: visible(effect.arm))
    counted: list[Column] = [
        ("rows", of_arm(lambda one: f"{one.rows:,}")),
        ("share", of_arm(lambda one: share_words(one.share))),
        ("planned", of_arm(lambda one: share_words(one.planned))),
    ]
    found: list[Column] = [
        # Of a quantile, what is shown of an arm is its quantile.
        ("quantile" if metric.kind == "quantile" else "mean", of_arm(lambda one: number(one.mean, places))),
        ("gap", gap_words),
        ("interval", interval_words),
        ("lift", lambda effect: lift_words(effect.lift)),
        ("verdict", lambda effect: verdict_words(metric, effect)),
        ("more rows (3 of 4)", lambda effect: more_words(effect.more_rows)),
    ]
    alone = _table(metric.effects, [name, *found])
    if not has_counts:
        return alone, ""
    both = _table(metric.effects, [name, *counted, *found])
    if max(map(len, both.splitlines()), default=0) <= TABLE_WIDTH:
        return both, ""
    return alone, _table(metric.effects, [name, *counted])


def _table(effects: Sequence[Effect], columns: Sequence[Column]) -> str:
    """Return a table of effects; columns in which there is nothing are left out."""
    filled = [(head, [shown(effect) for effect in effects]) for head, shown in columns]
    kept = [(head, cells) for head, cells in filled if any(cells)]
    return text_table([head for head, _ in kept], list(zip(*(cells for _, cells in kept), strict=True)))


def _against_best(analysis: Analysis, metric: MetricResult) -> list[str]:
    """Return the gaps over the best arm, and which arms can be dropped."""
    best = next((effect.over for effect in metric.against_best), "")
    columns: list[Column] = [
        ("arm", lambda effect: visible(effect.arm)),
        ("gap", gap_words),
        ("interval", interval_words),
        ("verdict", lambda effect: verdict_words(metric, effect)),
    ]
    rivals = [effect for effect in metric.against_best if effect.arm != effect.over]
    out = [f"against {best_words(metric, repr(visible(best)))}", _table(rivals, columns)]
    dropped = droppable_words(analysis, metric)
    return [*out, _wrapped(dropped)] if dropped else out


def _unusual(metric: MetricResult) -> str:
    """Return what was cut or missing, by arm."""
    out = []
    for what in ("capped", "missing"):
        shares = [(one.arm, getattr(one, what)) for one in metric.summaries]
        if any(share for _, share in shares):
            named = ", ".join(f"{visible(arm)} {share_words(share)}" for arm, share in shares[:NAMED])
            out.append(f"{what}: {named}{' …' if len(shares) > NAMED else ''}")
    return "; ".join(out)


def _personal(analysis: Analysis) -> list[str]:
    """Return rules, effects by context, and who should get what."""
    out = []
    for title, head, rows in personal_tables(analysis):
        # The last column of rules, of words, has no head.
        table = text_table(head, rows, last_words=0 if head[-1] else 1)
        out.append(f"{_wrapped(title)}\n{table}")
    return out


def _segments(analysis: Analysis) -> str:
    """Return the effects by segment, and whether segments differ."""
    if not analysis.segments:
        return ""
    rows = [
        [
            printable(part.segment),
            visible(effect.arm),
            f"{part.rows:,}",
            gap_words(effect),
            interval_words(effect),
            effect.verdict,
        ]
        for part in analysis.segments
        for effect in part.effects
        if effect.arm != effect.over
    ]
    table = text_table(["segment", "arm", "rows", "gap", "interval", "verdict"], rows, words=2)
    differ = [_wrapped(words) for words in segments_words(analysis)]
    return "\n".join(["by segment", table, *differ])


def _rivals(analysis: Analysis) -> str:
    """Return what other methods say of the same gaps, ours first."""
    if not analysis.rivals:
        return ""
    rows = [
        [
            rival.method,
            visible(rival.arm),
            estimate_words(rival.estimate, rival.interval),
            span_words(rival.interval),
            half_width(rival.interval),
        ]
        for rival in method_rows(analysis)
    ]
    table = text_table(["method", "arm", "gap", "interval", "half-width"], rows, words=2)
    assumed = {rival.method: rival.assumes for rival in method_rows(analysis)}
    lines = [_wrapped(f"{method}: {printable(words)}") for method, words in assumed.items() if words]
    return "\n".join([f"other methods, gaps to {printable(analysis.reference)!r}", table, *lines])


def _value(analysis: Analysis) -> str:
    """Return the value of other probabilities in a sentence; nothing if it was not asked for."""
    value = analysis.value
    if value is None or not is_known(value.estimate):
        return ""
    shown = estimate_words(value.estimate, value.interval)
    return _wrapped(
        f"other probabilities would have changed the mean reward of a row by {shown}"
        f" ({span_words(value.interval)}); {value.mode}"
    )


def _wrapped(line: str) -> str:
    return fill(line, TABLE_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
