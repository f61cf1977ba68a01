"""What was noticed, and what follows from it: facts first, then words.

A check, a guardrail or a diagnostic returns a :class:`Finding`; an experiment or a log as a whole comes to
one :class:`Verdict`. Code decides by their names, levels, kinds and facts. Sentences are for people: no code
reads one back, so their wording can change on any day.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Self, TypeVar

from orthobandit.errors import ParameterError

E = TypeVar("E", bound=StrEnum)

FINDING_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Level(StrEnum):
    """How much a finding matters, from least to most."""

    FINE = "fine"  # looked at, and nothing is wrong
    NOTE = "note"  # worth knowing; all claims stand
    ALARM = "alarm"  # what claims rest on does not hold: nobody may act on them

    @property
    def rank(self) -> int:
        """Return 0, 1 or 2, so that findings can be put in order."""
        return tuple(Level).index(self)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, and what it showed.

    Parameters
    ----------
    name : str
        What was looked at, in lower case with hyphens, e.g. ``"sample-ratio"``. Code goes by this.
    level : Level or str
    facts : mapping
        What the sentence is made of: numbers, text, truth values, None, and lists or mappings of them.
    sentence : str
        What was found, for people; empty only where nothing is wrong.
    remedy : str
        What to do about it.
    p_value : float, optional
        Of the test behind the finding, if there is one.
    about : str
        The arm, metric, rule or column that it is about; empty if it is about everything.

    Raises
    ------
    ParameterError
        If a field cannot mean anything.

    Examples
    --------
    >>> lost = Finding("missing", "alarm", {"share": 0.6}, "B lost 60 % of its rewards.", about="B")
    >>> lost.level is Level.ALARM, worst([lost, Finding("drift", "fine")]).name
    (True, 'missing')
    """

    name: str
    level: Level
    facts: Mapping[str, Any] = field(default_factory=dict)
    sentence: str = ""
    remedy: str = ""
    p_value: float | None = None
    about: str = ""

    def __post_init__(self) -> None:
        if not FINDING_NAME.fullmatch(self.name):
            raise ParameterError(f"name={self.name!r} of a finding must be like 'sample-ratio'")
        object.__setattr__(self, "level", _member(Level, "level", self.level))
        object.__setattr__(self, "facts", _plain_facts(self.facts))
        if self.level is not Level.FINE and not self.sentence:
            raise ParameterError(f"the finding {self.name!r} at level {self.level.value!r} needs a sentence")
        if self.p_value is not None and not 0.0 <= self.p_value <= 1.0:
            raise ParameterError(f"p_value={self.p_value} of the finding {self.name!r} must be from 0 to 1")

    def to_json(self) -> dict[str, Any]:
        """Return plain values that survive ``json.dumps`` exactly."""
        return asdict(self) | {"level": self.level.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(**data)


def worst(findings: list[Finding]) -> Finding | None:
    """Return the first finding of the highest level; None if there are none."""
    return max(findings, key=lambda finding: finding.level.rank, default=None)


class VerdictKind(StrEnum):
    """What an experiment or a log as a whole says to do."""

    DO_NOT_ACT = "do-not-act"  # an alarm rang, or claims contradict each other
    SHOW = "show"  # an arm is the best
    FOLLOW = "follow"  # a rule is the best
    HOLD = "hold"  # an arm or a rule would be the best, but guardrails have not cleared it
    PAUSED = "paused"
    STOPPED = "stopped"  # by hand, before anything was declared
    TOO_EARLY = "too-early"
    GO_ON = "go-on"
    UNDECIDED = "undecided"  # a log that is complete and leaves the question open


@dataclass(frozen=True)
class Verdict:
    """What follows from all findings and claims together; every surface says the same one.

    Only verdicts that recommend something can name an arm or a rule. So no page can praise an arm, and no
    webhook announce one, while the verdict is not to act.

    Parameters
    ----------
    kind : VerdictKind or str
    sentence : str
        For people.
    arm, rule : str, optional
        What is recommended: an arm for ``SHOW``, a rule for ``FOLLOW``, one of the two for ``HOLD``, neither
        for all others.
    risk : float, optional
        The probability that such a recommendation is wrong is at most this; None where nothing is claimed.

    Raises
    ------
    ParameterError
        If the fields contradict each other.

    Examples
    --------
    >>> Verdict("show", "Show 'B'.", arm="B", risk=0.05).names
    'B'
    >>> Verdict("do-not-act", "Do not act.", arm="B")
    Traceback (most recent call last):
    orthobandit.errors.ParameterError: a verdict 'do-not-act' recommends nothing, so it cannot name 'B'
    """

    kind: VerdictKind
    sentence: str
    arm: str | None = None
    rule: str | None = None
    risk: float | None = None

    def __post_init__(self) -> None:
        kind = _member(VerdictKind, "kind", self.kind)
        object.__setattr__(self, "kind", kind)
        if not self.sentence:
            raise ParameterError(f"a verdict {kind.value!r} needs a sentence")
        allowed = RECOMMENDED.get(kind, ())
        named = [role for role in ("arm", "rule") if getattr(self, role) is not None]
        if named and not allowed:
            raise ParameterError(
                f"a verdict {kind.value!r} recommends nothing, so it cannot name {self.names!r}"
            )
        if allowed and (len(named) != 1 or named[0] not in allowed):
            raise ParameterError(
                f"a verdict {kind.value!r} must name one {' or '.join(allowed)}, and no more"
            )
        if self.risk is not None and (not allowed or not 0.0 <= self.risk < 1.0):
            raise ParameterError(f"risk={self.risk} of a verdict {kind.value!r} means nothing")

    @property
    def names(self) -> str | None:
        """The arm or rule that is recommended, or would be but for guardrails; None if nothing is."""
        return self.rule if self.arm is None else self.arm

    def to_json(self) -> dict[str, Any]:
        """Return plain values that survive ``json.dumps`` exactly."""
        return asdict(self) | {"kind": self.kind.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(**data)


# What each kind of verdict can name.
RECOMMENDED = {
    VerdictKind.SHOW: ("arm",),
    VerdictKind.FOLLOW: ("rule",),
    VerdictKind.HOLD: ("arm", "rule"),
}


def _member(kind: type[E], name: str, value: str) -> E:
    try:
        return kind(value)
    except ValueError:
        raise ParameterError(f"{name}={value!r} must be one of {', '.join(kind)}") from None


def _plain_facts(facts: Any) -> Any:
    """Return a copy of facts; raise an error for anything that JSON would not give back as it was."""
    if facts is None or isinstance(facts, str | bool | int):
        return facts
    if isinstance(facts, float) and math.isfinite(facts):
        return facts
    if isinstance(facts, Mapping) and all(isinstance(key, str) for key in facts):
        return {key: _plain_facts(value) for key, value in facts.items()}
    if isinstance(facts, list):
        return [_plain_facts(value) for value in facts]
    raise ParameterError(
        f"{facts!r} of type {type(facts).__name__} cannot be a fact; give finite numbers, text, truth values,"
        " None, or lists and mappings of them"
    )
