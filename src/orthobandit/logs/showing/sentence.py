"""What to do with a log, in one sentence."""

import math

from orthobandit.logs.results import Diagnostic, Effect, MetricResult
from orthobandit.showing.numbers import about


def sentence_of(
    reward: MetricResult, others: tuple[MetricResult, ...], alarms: tuple[Diagnostic, ...]
) -> str:
    """Say what follows from the reward, from guardrails and from alarms, which come first."""
    if alarms:
        return f"Do not act on these effects yet: {alarms[0].words}"
    harmed = [
        f"{one.arm!r} hurts {metric.name!r} by more than {abs(metric.margin or 0.0):g}"
        for metric in others
        if metric.kind == "guardrail"
        for one in metric.effects
        if one.verdict == "harmed"
    ]
    said = _said(reward)
    return f"{said} But {'; '.join(harmed)}." if harmed else said


def _said(reward: MetricResult) -> str:
    compared = [one for one in reward.effects if one.verdict != "reference"]
    left = [one.arm for one in reward.effects if one.arm not in reward.droppable]
    how_sure = f"(wrong in at most {100.0 * reward.delta:g} % of logs)"
    if len(left) == 1:
        return f"{left[0]!r} is the best arm by {reward.name!r} {how_sure}.{_gain(reward, left[0])}"
    known = [one for one in compared if one.estimate is not None]
    if not known:
        return f"Nothing can be said of {reward.name!r} yet: too few rows count."
    if len(compared) == 1:
        one = compared[0]
        return f"{one.arm!r} and {one.over!r} cannot be told apart yet.{_wait(one)}"
    dropped = f" {_listed(reward.droppable)} can be dropped;" if reward.droppable else ""
    open_ones = [one for one in reward.against_best if one.verdict == "undecided"] or known
    nearest = min(open_ones, key=lambda one: abs(one.estimate or 0.0))
    if not reward.against_best:  # too many arms for all pairs: the one that looks best decides
        nearest = max(known, key=lambda one: one.estimate or 0.0)
    return f"No arm is the best for sure yet:{dropped} {len(left)} are left.{_wait(nearest)}"


def _gain(reward: MetricResult, label: str) -> str:
    one = next(one for one in reward.effects if one.arm == label)
    if one.verdict == "reference" or one.estimate is None:
        return ""
    return f" Its gap over {one.over!r} is {one.estimate:+.4g}."


def _wait(one: Effect) -> str:
    """Say how long it may take to decide on an effect."""
    if one.more_rows is None or not math.isfinite(one.more_rows[0]):
        return " As things stand, more rows would not decide."
    as_is, soonest, latest = one.more_rows
    said = f" If the gap is as estimated ({one.estimate:+.3g}), about {about(as_is)} more rows would decide;"
    if math.isfinite(latest):
        return f"{said} in 8 of 10 logs it takes {about(soonest)} to {about(latest)}."
    return (
        f"{said} in 9 of 10 logs it takes at least {about(soonest)}, and the gap may be too small for any"
        " number."
    )


def _listed(labels: tuple[str, ...], most: int = 5) -> str:
    shown = ", ".join(repr(label) for label in labels[:most])
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
