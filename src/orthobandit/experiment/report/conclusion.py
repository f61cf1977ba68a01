"""What an experiment concludes, from which every surface makes its own words.

Text, JSON, page, dashboard, webhooks, metrics and certificates of ordinary and of personalised experiments
ask this one value whether an arm, or a rule, leads, has won or is held back, and whether anything may be
believed at all. They do not judge alarms, guardrails or retirements by themselves.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from orthobandit.experiment.ledger.ledger import PAUSED, STOPPED
from orthobandit.experiment.report.alarms import Alarm


class Standing(StrEnum):
    """How an experiment stands; :data:`RULES` says when."""

    ALARM = "alarm"  # nothing that it claims can be believed
    ALONE = "alone"  # there is nothing to compare
    WON = "won"  # an arm or a rule is declared
    PAUSED = "paused"
    STOPPED = "stopped"  # before anything was declared
    HELD = "held"  # an arm or a rule has won, and a guardrail has not cleared it
    EARLY = "early"  # nobody can say yet which looks best
    OPEN = "open"  # one looks best, and nothing is proven


class Facts(NamedTuple):
    """What a conclusion rests on. Candidates are arms, or the rules of a personalised experiment.

    Parameters
    ----------
    alarms : tuple of Alarm
    has_rivals : bool
        Whether there are two candidates or more that differ.
    winner : str or None
        The candidate that is proven best by the objective, or within ε of it.
    is_cleared : bool
        Whether guardrails, if there are any, have nothing against the winner.
    leader : str or None
        The candidate that looks best; None while it is too early to say.
    status : {"open", "paused", "stopped"}
    """

    alarms: tuple[Alarm, ...]
    has_rivals: bool
    winner: str | None
    is_cleared: bool
    leader: str | None
    status: str


class Conclusion(NamedTuple):
    """How an experiment stands, and what it says of its arms or rules: nothing while there is an alarm.

    Parameters
    ----------
    standing : Standing
    alarms : tuple of Alarm
    leader : str or None
        What looks best.
    declared : str or None
        What is proven best, or within ε of it, and cleared by every guardrail.
    held : str or None
        What is proven best while a guardrail has not cleared it.
    """

    standing: Standing
    alarms: tuple[Alarm, ...] = ()
    leader: str | None = None
    declared: str | None = None
    held: str | None = None

    @property
    def has_won(self) -> bool:
        """Whether an arm or a rule has won against others."""
        return self.standing is Standing.WON

    @property
    def may_lead(self) -> bool:
        """Whether anything may be called the leader, now or later."""
        return self.standing not in (Standing.ALARM, Standing.ALONE)


# The first rule that holds says how an experiment stands.
RULES: tuple[tuple[Standing, Callable[[Facts], bool]], ...] = (
    (Standing.ALARM, lambda facts: bool(facts.alarms)),
    (Standing.ALONE, lambda facts: not facts.has_rivals),
    (Standing.WON, lambda facts: facts.winner is not None and facts.is_cleared),
    (Standing.PAUSED, lambda facts: facts.status == PAUSED),
    (Standing.STOPPED, lambda facts: facts.status == STOPPED),
    (Standing.HELD, lambda facts: facts.winner is not None),
    (Standing.EARLY, lambda facts: facts.leader is None),
    (Standing.OPEN, lambda facts: True),  # noqa: ARG005 - whatever the facts are
)


def conclude(facts: Facts) -> Conclusion:
    """Return what follows from the facts.

    Examples
    --------
    >>> won = Facts((), True, "B", True, "B", "open")
    >>> conclude(won).standing.value, conclude(won).declared
    ('won', 'B')
    >>> alarmed = conclude(won._replace(alarms=(Alarm("drift", "the gap of 'B' changed"),)))
    >>> alarmed.standing.value, alarmed.declared, alarmed.leader
    ('alarm', None, None)
    """
    standing = next(standing for standing, holds in RULES if holds(facts))
    if standing is Standing.ALARM:
        return Conclusion(standing, facts.alarms)
    return Conclusion(
        standing,
        leader=facts.leader,
        declared=facts.winner if facts.is_cleared else None,
        held=None if facts.is_cleared else facts.winner,
    )
