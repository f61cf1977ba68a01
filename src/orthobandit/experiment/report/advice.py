"""The sentences of a report: advice, outlook, notes, and how sure it is."""

from typing import NamedTuple

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.estimate.confidence.coherence import Coherent
from orthobandit.estimate.follow.guardrails import Judged, rail_words
from orthobandit.experiment.ledger.ledger import Ledger
from orthobandit.experiment.refusals import refused_words
from orthobandit.experiment.report.conclusion import Conclusion, Standing
from orthobandit.policy.base import Decision
from orthobandit.showing.numbers import about, duration_words, risk_percent, sure_percent
from orthobandit.theory import identification_limit

# Settled proposals before which nobody needs to hear how to set up the next experiment.
FEWEST_TO_ADVISE = 100
FEW_SETTLED = 10  # visitors for each arm or rule, before which nobody should look at who leads
FEWEST_TO_FORESEE = 30  # settled proposals: level and spread of fewer are no ground for a forecast
MAX_FORESEEN_ARMS = 100  # arms; a forecast of more would take longer than the rest of a report
# Rounds that anytime elimination takes, in units of the limit for any method: the median over 20 runs each of
# ten instances of 2 to 6 arms was 1.2 to 3.2, mostly near 2.
ROUNDS_OVER_LIMIT = 2.0
SMALL_LIFT = 0.1  # what a forecast supposes, and its words say, while nothing is known of the gaps
SOON_SHARE = 0.05  # of the visitors so far: what is left then is no number worth saying
MAX_FORESEEN_VISITORS = 1e9  # visitors
CLEAR_ERRORS = (
    1.3  # standard errors between the best two arms, below which a forecast says only how long at least
)


class Outlook(NamedTuple):
    """When an experiment may end: a sentence, and the number of settled proposals in all."""

    words: str
    expected: float | None


def foresee(
    ledger: Ledger, decision: Decision, coherent: Coherent, estimates: Array, conclusion: Conclusion
) -> Outlook:
    """Forecast when an arm may be declared, if the arms are as far apart as they look.

    The forecast is a multiple of the least number of rounds that any method needs on average
    (:func:`~orthobandit.theory.identification_limit`) for the arms that may be the best. While too little is
    settled to estimate gaps, the best arm is assumed to be a tenth better than the others.

    Parameters
    ----------
    ledger : Ledger
    decision : Decision
    coherent : Coherent
    estimates : (K,) array
        Of each arm's gap to the reference arm.
    conclusion : Conclusion
    """
    nothing = Outlook("", None)
    # Whoever must not act need not wait either.
    is_over = conclusion.standing not in (Standing.EARLY, Standing.OPEN) or int(decision.declared) >= 0
    may_fail = 1.0 - decision.certainty
    possible = np.flatnonzero(coherent.possible)
    if is_over or not 0 < may_fail < 0.5 or not 1 < len(possible) <= MAX_FORESEEN_ARMS:
        return nothing
    average = ledger.gap_intervals[0].average(ledger.feed.plans)
    if average is None or not average.deviation > 0 or ledger.arms.dimension == 0:
        return nothing
    settled = ledger.waiting.first - 1
    if settled < FEWEST_TO_FORESEE:
        return nothing
    epsilon = float(getattr(ledger.settings.policy, "epsilon", 0.0))
    arms = ArmSet(ledger.arms.features[possible])

    def expected(means: Array) -> float:
        """Return the expected rounds until a declaration, for arms with these means."""
        # In units of the nearest gap: the limit depends on nothing else.
        apart = float(means.max() - np.sort(means)[-2])
        if not apart > 0:
            return np.inf
        sigma = average.deviation / apart
        return ROUNDS_OVER_LIMIT * identification_limit(
            arms, means / apart, may_fail, error=0.0, sigma=sigma, gap=0.02
        )

    if is_early(ledger, decision):
        means = np.zeros(len(possible))
        means[0] = epsilon or SMALL_LIFT * abs(average.estimate)
        count = expected(means)
        if not count < MAX_FORESEEN_VISITORS:
            return nothing
        # No sentence of its own: the advice says it.
        return Outlook("", count)
    means = estimates[possible]
    order = np.argsort(means)
    best, rival = order[-1], order[-2]
    drawn = np.maximum(ledger.drawn[possible], 1)
    error = average.deviation * float(np.sqrt(1.0 / drawn[best] + 1.0 / drawn[rival]))
    is_clear = means[best] - means[rival] > CLEAR_ERRORS * error
    # Where ε can end it, it is over once the best is known to be within ε: as if it were that much better.
    means[best] += epsilon + (0.0 if is_clear else CLEAR_ERRORS * error)
    count = expected(means)
    if not count < MAX_FORESEEN_VISITORS:
        return nothing
    more = count - settled
    if is_clear:
        when = (
            "at any time now" if more <= SOON_SHARE * settled else f"after about {about(more)} more visitors"
        )
        return Outlook(f"If the arms are as far apart as they look, it may end {when}.", count)
    alike = "The best two arms look alike, so nobody can tell yet how long it takes"
    if more <= SOON_SHARE * settled:
        return Outlook(f"{alike}.", None)
    return Outlook(
        f"{alike}: about {about(more)} more visitors even if the leader is clearly better than it looks.",
        None,
    )


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
