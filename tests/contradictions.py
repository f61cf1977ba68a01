"""What a report or an analysis must never say: a list of contradictions, empty for one that is coherent."""

import numpy as np

TINY = 1e-12  # sums and differences may be off by a rounding error


def contradictions(report, epsilon=0.0):
    """Return what a live report says that cannot all be true; `epsilon` is the policy's."""
    out = []
    if "contradiction" in report.alarms:
        known = [end for arm in report.arms for end in (arm.gap, arm.low, arm.high) if end is not None]
        out += ["an interval is shown although claims contradict each other"] * bool(known)
        out += ["advice to show an arm in spite of an alarm"] * report.advice.startswith("Show")
        return out
    arms = {arm.label: arm for arm in report.arms}
    low = {label: -np.inf if arm.low is None else arm.low for label, arm in arms.items()}
    high = {label: np.inf if arm.high is None else arm.high for label, arm in arms.items()}
    racing = [label for label, arm in arms.items() if not arm.is_retired]
    active = [label for label, arm in arms.items() if arm.is_active]
    leader = report.leader
    floor, within = max(low[label] for label in racing), report.epsilon
    for label, arm in arms.items():
        if low[label] > high[label]:
            out.append(f"the interval of {label!r} is empty")
        if arm.gap is not None and not low[label] <= arm.gap <= high[label]:
            out.append(f"the estimate of {label!r} lies outside its interval")
        if arm.is_retired and arm.is_active:
            out.append(f"{label!r} is retired and may be the best")
    for label in racing:
        if label not in active and high[label] > max(high[one] for one in active):
            out.append(f"{label!r} is dropped and may be better than every arm that is left")
    if not active or leader not in active:
        out.append(f"the leader {leader!r} is not among the arms that may be the best")
    if within is not None:
        if within < 0:
            out.append(f"epsilon={within} is negative")
        if low[leader] < floor - within - TINY:
            out.append("the leader is within ε of the best, and its interval goes further down")
        if max(high[label] for label in racing) > high[leader] + within + TINY:
            out.append("the leader is within ε of the best, and another may be further above it")
    won = report.declared if report.held is None else report.held
    if won is not None:
        if won != leader:
            out.append(f"{won!r} has won and {leader!r} leads")
        if within is None or within > epsilon:
            out.append(f"{won!r} has won at ε = {epsilon:g} and is within {within} of the best")
        if epsilon == 0 and report.reference in racing and low[won] < 0:
            out.append(f"{won!r} is the best and may be worse than the reference arm")
    if report.declared is not None and report.held is not None:
        out.append("an arm is declared and held back")
    if report.advice.startswith("Show") != (report.declared is not None):
        out.append("the advice is to show an arm, and none is declared, or the other way round")
    if "no arm can be dropped" in report.advice and any(high[label] < floor for label in racing):
        out.append("no arm can be dropped, and an interval rules one out")
    _, is_listed, listed = report.advice.partition("the best is one of ")
    for label in racing if is_listed else ():
        if repr(label) in listed and high[label] < floor:
            out.append(f"{label!r} may be the best, and its interval lies below another")
    if tuple((arm.low, arm.high) for arm in report.arms) != tuple(gap[1:] for gap in report.metrics[0].gaps):
        out.append("the table of the metric shows other intervals than that of the arms")
    if report.joint > report.certainty > 0:
        out.append("everything together holds more often than its parts")
    return out
