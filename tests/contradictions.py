"""What a report or an analysis must never say: a list of contradictions, empty for one that is coherent."""

import json
import re

import numpy as np

from inside.service import DECLARED, SAMPLE_RATIO, Look, find_news
from orthobandit.errors import ParameterError
from orthobandit.service.dashboard.words import advice_of, arms_of, line_of

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
    if leader is None and within is not None:
        out.append(f"no arm leads, and the leader is within {within} of the best")
    if not active or leader not in (None, *active):
        out.append(f"the leader {leader!r} is not among the arms that may be the best")
    if leader is not None and within is not None:
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
    out += _tops(report, racing, leader if won is None else won, "leads" if won is None else "has won")
    if report.alarms:
        out += ["advice to show an arm in spite of an alarm"] * report.advice.startswith("Show")
    elif report.advice.startswith("Show") != (report.declared is not None):
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


def _tops(report, racing, top, what):
    """Return the arms in the race that a table shows above the arm on top."""
    out = []
    for column in ("gap", "rate", "lift"):
        shown = {arm.label: getattr(arm, column) for arm in report.arms if arm.label in racing}
        if shown.get(top) is None:
            continue
        above = [label for label, value in shown.items() if value is not None and value > shown[top] + TINY]
        out += [f"{top!r} {what}, and the {column} of {label!r} is higher" for label in above]
    return out


def contradictions_of_surfaces(experiment, report):
    """Return where text, JSON, page, dashboard, list, webhook and certificate of an experiment disagree."""
    data = report.to_json()
    alarms, personal, advice = data["alarms"], data["personal"], data["advice"]
    best = data["declared"] if personal is None else personal["best"]
    held = data["held"] if personal is None else personal["held"]
    retired = [arm["label"] for arm in data["arms"] if arm["is_retired"]]
    left = [arm["label"] for arm in data["arms"] if not arm["is_retired"]]
    glance = experiment.glance()
    line = line_of("page", glance)
    rows = arms_of(glance)
    text, page = str(report), report.to_html()
    news = {one.kind: json.loads(one.body)["data"] for one in find_news("x", Look(1, 0.0, report), 0.0)}
    document = _document_of(experiment)
    out = []

    def never(is_so, words):
        out.extend([words] * bool(is_so))

    never(not text.startswith(advice), "text: its first sentence is another advice")
    never(_plain(advice) not in _plain(re.sub("<[^>]+>", " ", page)), "page: it has another advice")
    never((best is not None) and (held is not None), "JSON: one is declared and held back")
    recommends = advice.startswith(("Show", "Follow the rule"))
    never(recommends != (best is not None), "advice: it recommends what JSON does not declare, or not")
    never((DECLARED in news) != (data["declared"] is not None), "webhook: it declares, and JSON does not")
    is_chip_won = line["state"].kind == "won"
    never(is_chip_won != (best is not None and data["has_rivals"]), "list: its state says another winner")
    never(line["leader"] not in ("", best or data["leader"]), "list: its leader is another")
    never(
        advice_of(report).startswith("Paused") != advice.startswith("Paused"),
        "dashboard: it is paused, or not",
    )
    has_winner = any(row["has_won"] for row in rows) or "proven best" in text
    never(has_winner and best is None and held is None, "table: it names a winner, and JSON has none")
    never(
        ("proven best" in text) != ("proven best" in page), "page: its rules are tagged otherwise than text"
    )
    never(len(left) == 1 and data["has_rivals"], "JSON: one arm is left and has rivals")
    never(is_chip_won and len(left) == 1, "list: the last arm has won")
    if alarms:
        never(not advice.startswith("Do not act"), "alarm: the advice is to act")
        never(
            best is not None or held is not None or data["leader"] is not None, "alarm: JSON names the best"
        )
        never(DECLARED in news, "alarm: a webhook declares")
        never(line["leader"], "alarm: the list names a leader")
        never(document is not None, "alarm: a certificate is issued")
        never(line["alarms"] != len(alarms), "alarm: the list counts others")
        never(has_winner, "alarm: the table names a winner")
    else:
        never(advice.startswith("Do not act"), "no alarm: the advice is not to act")
    if "sample-ratio" in alarms:
        warning = news[SAMPLE_RATIO]["warning"]
        never(not warning or not any(warning in note for note in data["warnings"]), "webhook: no warning")
    if personal is not None:
        out += _contradictions_of_rules(data, text, document, retired, left)
    elif document is not None:
        claim = document["claim"]
        never(claim["declared"] != best or claim["held"] != held, "certificate: it declares another arm")
    return out


def _document_of(experiment):
    """Return the certificate that an experiment gives now; None if it gives none."""
    try:
        return experiment.certificate().document
    except ParameterError:
        return None


def _contradictions_of_rules(data, text, document, retired, left):
    """Return what a personalised experiment says of rules that name arms which were retired."""
    personal = data["personal"]
    out = []
    names = [rule["name"] for rule in personal["rules"]]
    named = {name: {"A", "B"} if "telephones" in name else {name.removesuffix(" for all")} for name in names}
    gone = [name for name in names if named[name] & set(retired)]
    possible = {rule["name"] for rule in personal["rules"] if rule["is_possible"]}
    if possible & set(gone):
        out.append("retired: a rule that names such an arm may be best")
    if gone and text.count("names a retired arm") < len(gone):
        out.append("retired: the table does not tag the rules")
    # Gains are over the first rule, whatever became of its arm.
    praise = data["advice"].replace(f" over {names[0]!r}", "")
    if any(repr(name) in praise for name in gone):
        out.append("retired: the advice names such a rule")
    if {personal["best"], personal["held"]} & set(gone):
        out.append("retired: JSON declares such a rule")
    if document is None:
        return out
    claim = document["claim"]
    if claim["best"] not in (None, personal["best"]):
        out.append("certificate: it names another best rule")
    if claim["best"] in gone or (claim["best"] is not None and len(left) == 1):
        out.append("retired: the certificate names such a rule as the best")
    visitors = [entry for entry in document["entries"] if entry["entry"] == "visitor"]
    held = sum(entry["held"] for entry in visitors)
    alone = sum(not entry["held"] and np.count_nonzero(entry["probabilities"]) == 1 for entry in visitors)
    if held and f"{held} were held out" not in claim["sentence"]:
        out.append("certificate: its sentence does not tell of the holdout")
    if alone and f"{alone} visitors had one arm" not in claim["sentence"]:
        out.append("certificate: its sentence does not tell of offers of one arm")
    if any(repr(label) not in claim["sentence"].partition("retired")[2] for label in retired):
        out.append("certificate: its sentence does not tell of retirements")
    return out


def _plain(words):
    """Return words as they are read: without entities, line breaks and kinds of minus signs."""
    for mark, sign in (("&#39;", "'"), ("&lt;", "<"), ("&gt;", ">"), ("\u2212", "-"), ("&amp;", "&")):
        words = words.replace(mark, sign)
    return " ".join(words.split())


def contradictions_of_analysis(analysis):
    """Return what an analysis of a log says that cannot all be true."""
    out = []
    for metric in analysis.metrics:
        if metric.kind not in ("reward", "metric"):
            continue
        gaps = {one.arm: one for one in metric.effects}
        against = {one.arm: one for one in metric.against_best}
        for one in (*metric.effects, *metric.against_best):
            out += [f"{one.arm!r} over {one.over!r}: {words}" for words in _of_effect(one)]
        if metric.is_contradicted:
            known = [
                one for one in gaps.values() if one.verdict != "reference" and one.interval != (None, None)
            ]
            out += ["an interval is shown although intervals contradict each other"] * bool(known)
            continue
        low, high = ({arm: _ends(one)[side] for arm, one in gaps.items()} for side in (0, 1))
        left = [arm for arm in gaps if arm not in metric.droppable]
        if not left:
            out.append("every arm can be dropped")
            continue
        best = next((one.over for one in metric.against_best), None)
        out += [f"{best!r} looks best and can be dropped"] * (best in metric.droppable)
        floor = max(low.values())
        out += _tops_of_log(gaps, against, best)
        for arm in gaps:
            if high[arm] < floor - TINY and arm not in metric.droppable:
                out.append(f"{arm!r} may be the best, and its interval lies below another")
            if arm in metric.droppable and low[arm] > max(high[one] for one in left) + TINY:
                out.append(f"{arm!r} can be dropped, and lies above all that are left")
        for arm, one in against.items():
            if one.verdict == "better":
                out.append(f"{arm!r} is better than {best!r}, which looks best")
            if one.verdict == "worse" and arm not in metric.droppable:
                out.append(f"{arm!r} is worse than {best!r} and cannot be dropped")
            back = _ends(gaps[best])
            there = _ends(one)
            # The gap over the reference arm is that over the best arm and that of the best arm, added up.
            if there[0] + back[0] > high[arm] + TINY or there[1] + back[1] < low[arm] - TINY:
                out.append(f"gaps of {arm!r} over {best!r} and the reference arm do not fit")
        if len(left) == 1:
            (won,) = left
            out += [f"{won!r} is left, and {best!r} looks best"] * (best is not None and best != won)
            if gaps[won].verdict not in ("better", "reference"):
                out.append(f"{won!r} is the best and not better than the reference arm")
            if gaps[won].verdict == "reference" and any(one.verdict == "better" for one in gaps.values()):
                out.append("the reference arm is the best and another is better")
    reward = analysis.metrics[0]
    left = [one.arm for one in reward.effects if one.arm not in reward.droppable]
    said = analysis.sentence
    if analysis.alarms:
        out += ["an alarm is not what the sentence begins with"] * (not said.startswith("Do not act"))
    elif left and (len(left) == 1) != said.startswith(f"{left[0]!r} is the best arm"):
        out.append(f"{left} are left, and the sentence is: {said}")
    elif "can be dropped;" in said and not reward.droppable:
        out.append("the sentence drops an arm that the table does not")
    return out


def _tops_of_log(gaps, against, best):
    """Return the arms of a log that are shown above the one that looks best, in either table."""
    top = None if best is None else gaps[best].estimate
    if top is None:
        return []
    known = {arm: effect.estimate for arm, effect in gaps.items() if effect.estimate is not None}
    out = [
        f"{best!r} looks best, and the gap of {arm!r} is higher" for arm in known if known[arm] > top + TINY
    ]
    over = {arm: effect.estimate for arm, effect in against.items() if effect.estimate is not None}
    return out + [f"{arm!r} is above {best!r}, which looks best" for arm in over if over[arm] > TINY]


def _ends(effect):
    low, high = effect.interval
    return (-np.inf if low is None else low, np.inf if high is None else high)


def _of_effect(one):
    """Return what an effect says against itself."""
    low, high = _ends(one)
    if one.verdict == "reference":
        return ["the reference arm has a gap to itself"] * (one.interval != (0.0, 0.0))
    out = ["its interval is empty"] * (low > high)
    if one.estimate is not None and not low <= one.estimate <= high:
        out.append("its estimate lies outside its interval")
    sign = "better" if low > 0 else "worse" if high < 0 else "undecided"
    out += [f"it is {one.verdict}, and its interval says {sign}"] * (one.verdict != sign)
    lift_low, lift_high = one.lift
    if one.verdict == "better" and lift_high is not None and lift_high < 0:
        out.append("it is better and its lift is negative")
    if one.verdict == "worse" and lift_low is not None and lift_low > 0:
        out.append("it is worse and its lift is positive")
    if one.verdict == "undecided" and None not in one.lift and not lift_low <= 0 <= lift_high:
        out.append("it is undecided and its lift is not 0")
    if one.interval == (None, None) and one.lift != (None, None):
        out.append("nothing is known of its gap, and something of its lift")
    if (one.more_rows is not None) and one.verdict != "undecided":
        out.append("it is decided and has rows to go")
    if one.more_rows is not None and not one.more_rows[1] <= one.more_rows[0] <= one.more_rows[2]:
        out.append(f"rows to go are not in their range: {one.more_rows}")
    return out
