"""The sentences of a report: advice, outlook, notes, and how sure it is."""

from typing import Any, NamedTuple

import numpy as np

from orthobandit.estimate.confidence.coherence import Coherent
from orthobandit.estimate.follow.guardrails import Judged, rail_words
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.refusals import refused_words
from orthobandit.experiment.report.conclusion import Conclusion, Standing
from orthobandit.policy.anytime import AnytimeElimination
from orthobandit.policy.anytime.forward import (
    FAR_FROM_START,
    MAX_ARMS,
    ends_of,
    race_for_gap,
    race_of,
)
from orthobandit.policy.base import Decision
from orthobandit.showing.numbers import about, duration_words, finite, risk_percent, sure_percent

# Settled proposals before which nobody needs to hear how to set up the next experiment.
FEWEST_TO_ADVISE = 100
FEW_SETTLED = 10  # visitors for each arm or rule, before which nobody should look at who leads
FEWEST_TO_FORESEE = 30  # settled proposals: level and spread of fewer are no ground for a forecast
SMALL_LIFT = 0.1  # what a forecast supposes, and its words say, while nothing is known of the gaps
MAX_FORESEEN_VISITORS = 1e9  # visitors


class Outlook(NamedTuple):
    """When an experiment may end.

    Attributes
    ----------
    words : str
        In one sentence; empty if it has ended, cannot be forecast, or the advice says it.
    expected : float or None
        Settled proposals in all before which half of the forecasts end.
    between : (float, float or None) or None
        The same for 5 % and for 80 % of them; None for an end that is not known.
    """

    words: str
    expected: float | None
    between: tuple[float, float | None] | None


NO_OUTLOOK = Outlook("", None, None)


def foresee(ledger: Ledger, state: Any, decision: Decision, conclusion: Conclusion) -> Outlook:
    """Forecast when an arm may be declared: the rule simulated forward from what is known.

    See :mod:`orthobandit.policy.anytime.forward`. Before anything is known, one arm is taken to be a tenth
    better than all others. Nothing is said of other policies, whose rules nobody has simulated.

    Parameters
    ----------
    ledger : Ledger
    state : object
        The policy's, pending rounds included.
    decision : Decision
    conclusion : Conclusion
    """
    policy = ledger.settings.policy
    # Whoever must not act need not wait either.
    is_over = conclusion.standing not in (Standing.EARLY, Standing.OPEN) or int(decision.declared) >= 0
    settled = ledger.waiting.first - 1
    if is_over or not isinstance(policy, AnytimeElimination) or settled < FEWEST_TO_FORESEE:
        return NO_OUTLOOK
    if is_early(ledger, decision):
        average = ledger.gap_intervals[0].average(ledger.feed.plans)
        if average is None or not average.deviation > 0 or len(ledger.arms) > MAX_ARMS:
            return NO_OUTLOOK
        gap = policy.epsilon or SMALL_LIFT * abs(average.estimate)
        if not gap > 0 or ledger.arms.dimension == 0:
            return NO_OUTLOOK
        guessed = race_for_gap(policy, ledger.arms, gap, average.deviation**2)
        count = guessed.rounds + ends_of(guessed, FAR_FROM_START).middle
        # No sentence of its own: the advice says it.
        return Outlook("", count, None) if count < MAX_FORESEEN_VISITORS else NO_OUTLOOK
    race = race_of(policy, state)
    if race is None:
        return NO_OUTLOOK
    # The holdout, and silent visitors that are left out, are no rounds of the race.
    soonest, middle, latest = (settled / race.rounds * rounds for rounds in ends_of(race))
    between = (settled + soonest, finite(settled + latest)) if np.isfinite(soonest) else None
    return Outlook(ending_words(soonest, latest), finite(settled + middle), between)


def ending_words(soonest: float, latest: float) -> str:
    """Say how many more visitors it may take, given when 5 % and when 80 % of the forecasts end.

    Examples
    --------
    >>> ending_words(412.0, 9_130.0)
    'In 3 of 4 cases like this, it ends after 410 to 9,100 more visitors.'
    >>> ending_words(412.0, float("inf"))
    'It may end after 410 more visitors, and may take far longer.'
    """
    if not np.isfinite(soonest):
        return "It may take far longer than it has so far."
    if not np.isfinite(latest):
        return f"It may end after {about(soonest)} more visitors, and may take far longer."
    return f"In 3 of 4 cases like this, it ends after {about(soonest)} to {about(latest)} more visitors."


def advise(
    ledger: Ledger,
    decision: Decision,
    coherent: Coherent,
    conclusion: Conclusion,
    judged: list[Judged],
    outlook: Outlook,
) -> str:
    """Say what to do now, in one sentence, unless there is an alarm."""
    labels = ledger.arms.labels
    declared = int(decision.declared)
    leader = labels[int(decision.leader)]
    standing = conclusion.standing
    if standing is Standing.ALONE:
        return explain_alone(ledger, conclusion)
    # A policy without guarantees still has intervals, which hold by themselves.
    if standing is Standing.WON and decision.certainty == 0:
        return (
            f"Show {conclusion.declared!r}: the policy has ended with it, and makes no claims, so go by the"
            " intervals below."
        )
    if standing in (Standing.WON, Standing.HELD):
        epsilon = float(getattr(ledger.settings.policy, "epsilon", 0.0))
        best = "the best" if epsilon == 0 else f"within {epsilon:g} of the best"
        best += " of the arms that are left" if ledger.retirements else ""
        if standing is Standing.HELD:
            return _explain_hold(ledger, declared, best, judged)
        wrong = risk_percent(1.0 - decision.certainty)
        return (
            f"Show {labels[declared]!r}: it is {best} ({decision.mode}; false winners in at most {wrong} of"
            " experiments)."
        )
    # By the intervals as well as by the policy: the sentence must not name an arm that the table rules out.
    left = [label for label, is_possible in zip(labels, coherent.possible, strict=True) if is_possible]
    in_play = len(labels) - int(ledger.feed.retired.sum())
    # A retired arm may well be better than those that are left: nobody looks any more.
    best = "the best of the arms that are left" if ledger.retirements else "the best"
    names = ", ".join(map(repr, left))
    if standing is Standing.PAUSED:
        return "Paused: nobody is assigned an arm, and rewards are still taken; resume() goes on."
    if standing is Standing.STOPPED:
        words = "The experiment was stopped by hand before it could declare an arm"
        if is_early(ledger, decision) and len(left) == in_play:
            return f"{words}, and too early to say which looks best."
        if len(left) == 1:
            return f"{words}; by the intervals only {left[0]!r} can be {best}."
        looks = "" if is_early(ledger, decision) else f"{leader!r} looks best, and "
        return f"{words}; {looks}{best} is one of {names}."
    if is_early(ledger, decision):
        # Intervals can be ahead of a policy that warms up: what they rule out is not luck any more.
        if 0 < len(left) < in_play:
            known = f"only {names} can be {best}" if len(left) == 1 else f"{best} is one of {names}"
            return f"Go on: by the intervals {known}; the policy needs more visitors to declare an arm."
        return _explain_waiting(ledger, outlook)
    if decision.certainty == 0:
        return f"Go on: {leader!r} looks best; this policy makes no claims, so go by the intervals below."
    if left == [leader]:
        return f"Go on: by the intervals only {leader!r} can be {best}, and it is about to be declared."
    if len(left) < len(labels):
        return f"Go on: {leader!r} leads, and {best} is one of {names}."
    return f"Go on: {leader!r} looks best so far, but no arm can be dropped yet."


def explain_alone(ledger: Ledger, conclusion: Conclusion) -> str:
    """Say that there is nothing to compare, and why."""
    labels = ledger.arms.labels
    why = "there is no other arm" if len(labels) == 1 else "by their features, all arms are the same"
    why += ", so that there is nothing to find out"
    if is_only_arm_left(ledger):
        why = "all other arms were retired, so that there is nothing left to compare it with"
        last = labels[int(np.argmin(ledger.feed.retired))]
        if conclusion.held is not None:
            return f"Only {last!r} is left, and guardrails have not cleared it: {why}."
        if conclusion.declared is None:
            return f"Only {last!r} is left: {why}."
    if conclusion.declared is None:
        return f"Nothing to do: {why}."
    return f"Show {conclusion.declared!r}: {why}."


def is_only_arm_left(ledger: Ledger) -> bool:
    """Tell whether all arms but one were retired, so that nothing is found out any more."""
    return len(ledger.arms) > 1 and int(ledger.feed.retired.sum()) == len(ledger.arms) - 1


def has_rivals(ledger: Ledger) -> bool:
    """Tell whether there are arms that differ, so that there is something to find out."""
    return ledger.arms.dimension > 0 and not is_only_arm_left(ledger)


def is_early(ledger: Ledger, decision: Decision) -> bool:
    """Tell whether too little is settled to say which arm looks best.

    A policy that makes claims names its first arm as the leader while it warms up, so nobody leads until the
    policy can bound how far its leader is from the best.
    """
    if not (decision.active | ledger.feed.retired).all() or int(decision.declared) >= 0:
        return False
    settled = ledger.waiting.first - 1
    is_warming_up = decision.certainty > 0 and not np.isfinite(decision.epsilon)
    return is_warming_up or settled < FEW_SETTLED * len(ledger.arms)


def _explain_waiting(ledger: Ledger, outlook: Outlook) -> str:
    """Say how much is known and what is still awaited."""
    settled = ledger.waiting.first - 1
    window = ledger.settings.window
    if not settled and np.isfinite(window):
        return too_early_words(
            ledger, f"; each does with its reward, or {duration_words(window)} after its draw"
        )
    if not settled:
        return too_early_words(
            ledger, "; each does with its reward, so report zeros too, or begin with a `window`"
        )
    if outlook.expected is not None:
        epsilon = float(getattr(ledger.settings.policy, "epsilon", 0.0))
        what = f"to be sure within {epsilon:g}" if epsilon else "to find an arm that is 10 % better"
        return too_early_words(ledger, f", about {about(outlook.expected)} expected {what}")
    if settled < FEW_SETTLED * len(ledger.arms):
        return too_early_words(ledger, ", so which arm looks best is luck")
    return too_early_words(ledger, ", not enough yet to say which arm is best")


def too_early_words(ledger: Ledger, ending: str) -> str:
    """Say that it is too early for advice, and how many visitors have settled.

    The sentence closes with `ending`, unless one proposal holds up the others, which is then said instead.
    """
    asked = ledger.waiting.next - 1
    if not asked:
        return "Too early: nobody has come yet."
    held_up = explain_held_up(ledger)
    if held_up:
        ending = f"; {held_up}"
    return f"Too early: {ledger.waiting.first - 1:,} of {asked:,} visitors settled{ending}."


def explain_held_up(ledger: Ledger, fewest: int = FEW_SETTLED) -> str:
    """Say which proposal holds up the rewards of later ones; nothing if fewer than `fewest` wait.

    Rewards enter in the order of draws, so that one proposal can hold up all that came after it.
    """
    told = len(ledger.waiting.provisional(0)[0])
    if told < fewest:
        return ""
    window = ledger.settings.window
    lacking = _not_told(ledger)
    objective = ledger.settings.names[0]
    why = "which has none yet"
    if objective not in lacking:
        told -= 1  # the one that is waited for
        why = f"of which {lacking[0]!r} is not told yet" if lacking else "final at the end of its window"
    if not told:
        return ""
    who = "1 with a reward waits" if told == 1 else f"{told:,} with rewards wait"
    held_up = f"{who} for proposal {ledger.waiting.first:,}, {why}"
    if np.isfinite(window) and why == "final at the end of its window":
        return held_up
    if np.isfinite(window):
        # A visitor who stays silent is no fault, and nobody needs to do anything.
        return f"{held_up}; it settles {duration_words(window)} after its draw at the latest"
    return f"{held_up}: tell it, or begin with a `window` after which such a proposal counts as silent"


def _not_told(ledger: Ledger) -> list[str]:
    """Return the metrics that have no value yet for the oldest proposal that is not settled."""
    first = np.array([ledger.waiting.first])
    return [
        name
        for place, name in enumerate(ledger.settings.names)
        if np.isnan(ledger.waiting.told(place, first)).any()
    ]


def _explain_hold(ledger: Ledger, declared: int, best: str, held_by: list[Judged]) -> str:
    """Say why an arm that has won on the objective is not declared."""
    label = ledger.arms.labels[declared]
    settings = ledger.settings
    # Clearing is noted when a bucket closes: between two of them all may be cleared and the arm still held.
    open_rails = [one for one in held_by if not one.cleared[declared]] or held_by
    names = " and ".join(dict.fromkeys(repr(one.rail.metric) for one in open_rails))
    known = f"it may be worse by {float(open_rails[0].most[declared]):.3g}"
    if not np.isfinite(open_rails[0].most[declared]):
        known = "nothing is known of it there"
    if ledger.feed.retired[settings.reference]:
        todo = "the reference arm is retired, so no more will be known: look at that metric yourself"
    else:
        todo = f"it is declared once more than {open_rails[0].limit:.3g} is ruled out"
    return (
        f"Go on: {label!r} is {best} by {settings.names[0]!r}, but the guardrail on {names} has not cleared"
        f" it ({known}); {todo}."
    )


def level_words(certainty: float, joint: float, metric: str) -> str:
    """Say at which level statements about the objective hold.

    Examples
    --------
    >>> level_words(0.95, 0.95, "sales").partition("; ")[2]
    "with the intervals of 'sales', all of it holds together in at least 95 %."
    """
    if not certainty:
        share = sure_percent(1.0 - joint)
        return f"All intervals of {metric!r} hold together in at least {share} of experiments."
    return (
        f"False winners in at most {risk_percent(1.0 - certainty)} of experiments; with the intervals of"
        f" {metric!r}, all of it holds together in at least {sure_percent(1.0 - joint)}."
    )


def guardrail_words(ledger: Ledger, decision: Decision, judged: list[Judged]) -> tuple[str, ...]:
    """Say what each guardrail does, which arms it has not cleared, and at which joint level they act."""
    out = []
    in_play = np.asarray(decision.active) & ~ledger.feed.retired
    in_play[ledger.settings.reference] = False
    for one in judged:
        open_arms = np.flatnonzero(in_play & ~one.cleared & ~ledger.feed.cleared).tolist()
        waiting = ", ".join(_may_be_worse(ledger, one, arm) for arm in open_arms)
        state = f"not cleared yet: {waiting}" if waiting else "every arm in play is cleared"
        if waiting and np.isfinite(one.limit):
            limit = f"{one.limit:.3g}, margin and harm together,"
            state += f"; an arm is cleared once more than {limit} is ruled out"
        out.append(f"Guardrail on {one.rail.metric!r}: {rail_words(one.rail)}; {state}.")
    if judged:
        # Two guardrails on one metric share its intervals, and so its δ.
        guarded = {ledger.metric(rail.metric) for rail in ledger.settings.guardrails}
        wrong = sum(ledger.gap_intervals[place].delta for place in guarded)
        out.append(
            "A guardrail retires a harmless arm, or clears a harmful one, in at most"
            f" {risk_percent(min(wrong, 1.0))} of experiments."
        )
    return tuple(out)


def _may_be_worse(ledger: Ledger, one: Judged, arm: int) -> str:
    label = ledger.arms.labels[arm]
    most = float(one.most[arm])
    if not np.isfinite(most):
        return f"{label!r} (nothing is known of it)"
    return f"{label!r} (may be worse by {most:.3g})"


def list_notes(ledger: Ledger, advice: str) -> list[str]:
    """Return what a reader must know before believing the claims, beside alarms.

    What `advice` says already is left out.
    """
    settings = ledger.settings
    settled = int(ledger.drawn.sum())
    out = []
    # With a window, waiting ends by itself.
    held_up = "" if np.isfinite(settings.window) else explain_held_up(ledger)
    if held_up and held_up not in advice:
        in_order = ledger.waiting.first - 1
        out.append(f"{in_order:,} of {ledger.waiting.next - 1:,} proposals are settled; {held_up}")
    out += _say_what_never_came(ledger, settled)
    if settings.silence == "missing" and ledger.silent.any():
        out.append(
            f"{int(ledger.silent.sum()):,} of {settled:,} proposals were silent and are left out: claims hold"
            " only if silence does not depend on the arm or the reward"
        )
    if ledger.refused:
        out.append(refused_words(ledger.refused))
    # A policy that counts late rounds leaves some out as well, once it has declared an arm: none is missed.
    if ledger.feed.unused and not hasattr(settings.policy, "late"):
        out.append(
            f"{ledger.feed.unused:,} of {settled:,} settled proposals came after their phase, and the policy"
            " could not use them; AnytimeElimination can"
        )
    if ledger.retirements:
        who = "; ".join(f"{ledger.arms.labels[arm]!r} was retired {why}" for arm, why in ledger.retirements)
        out.append(
            f"{who}. Claims are about the best of the arms that are left, and hold as often as said if what"
            f" was retired did not depend on {settings.names[0]!r}; where it did, they are wrong more often"
        )
    for name, level in zip(settings.names, ledger.level_forecasts, strict=True):
        if level.stood_in:
            out.append(
                f"{level.stood_in:,} forecasts of {name!r} were not finite; its mean stood in for them"
            )
    if not ledger.gap_intervals[0].confidence.is_exact and settled >= FEWEST_TO_ADVISE:
        out.append(
            "claims are asymptotic: if rewards have bounds, declare them with rewards=(low, high) next time"
        )
    return out


def _say_what_never_came(ledger: Ledger, settled: int) -> list[str]:
    """Name the metrics that nobody seems to report: where silence counts as 0, they look like good news."""
    if settled < FEWEST_TO_ADVISE:
        return []
    out = []
    for place, (name, intervals) in enumerate(zip(ledger.settings.names, ledger.gap_intervals, strict=True)):
        average = intervals.average(ledger.feed.plans)
        if average is None:
            continue
        if place == 0 and int(ledger.silent.sum()) < settled:
            continue  # zeros were told
        if ledger.settings.silence == "missing" and np.isnan(average.estimate):
            out.append(f"no value of {name!r} was ever told, so nothing is known of it; is it reported?")
        elif average.estimate == 0.0 and average.deviation == 0.0:
            what = "was ever told" if place == 0 else "other than 0 was ever told"
            out.append(
                f"no value of {name!r} {what}, and silence counts as 0: make sure that it is reported before"
                " you believe what is said of it"
            )
    return out
