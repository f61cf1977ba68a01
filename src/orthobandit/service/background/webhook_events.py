"""Webhook events: what happens to an experiment that is worth a message, and the message itself.

Each event is recorded once, under an id that follows from what happened.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, NamedTuple

from orthobandit.service.background.watch import Look

DECLARED = "experiment.declared"
RETIRED = "experiment.arm_retired"
SAMPLE_RATIO = "experiment.sample_ratio"
NO_DATA = "experiment.no_data"
GUARDRAIL = "experiment.guardrail"
KINDS = (DECLARED, RETIRED, SAMPLE_RATIO, NO_DATA, GUARDRAIL)
NO_DATA_SECONDS = 3600.0  # without a question or a reward after which an open experiment has no data


class News(NamedTuple):
    """An event of an experiment that a webhook may report.

    Parameters
    ----------
    id : str
        Follows from the event, so that every server finds the same one.
    experiment, kind : str
    at : float
        When it was noticed.
    body : str
        JSON, as it is sent.
    """

    id: str
    experiment: str
    kind: str
    at: float
    body: str


def find_news(key: str, look: Look, now: float) -> Iterator[News]:
    """Yield every event of an experiment so far; nearly all have been recorded before.

    Parameters
    ----------
    key : str
        Of the experiment.
    look : Look
    now : float
        Seconds since the epoch.
    """
    report = look.report

    def news(kind: str, fact: str, **data: Any) -> News:
        """Return an event with an id made from what happened, and its message."""
        name = blake2b(f"{key}\n{kind}\n{fact}".encode(), digest_size=16).hexdigest()
        known = {"advice": report.advice, "proposals": report.proposals, "settled": report.settled}
        # Whoever receives it can hold a later certificate against it, and must know what speaks against it.
        known |= {"head": report.head, "alarms": list(report.alarms)}
        return News(
            f"msg_{name}", key, kind, now, write_message(kind, now, {"experiment": key, **data, **known})
        )

    if report.declared is not None:
        # Arms that come and go open the question again.
        fact = f"{report.declared}\n{len(report.arms)}\n{len(report.retirements)}"
        yield news(DECLARED, fact, arm=report.declared, certainty=report.certainty)
    for arm, reason in report.retirements:
        kind = GUARDRAIL if reason.startswith("by the guardrail") else RETIRED
        yield news(kind, arm, arm=arm, reason=reason)
    for alarm in report.conclusion.alarms:
        if alarm.name == "sample-ratio":
            yield news(SAMPLE_RATIO, "", warning=alarm.details)
    if report.status == "open" and report.declared is None and now - look.at >= NO_DATA_SECONDS:
        yield news(NO_DATA, str(look.seq), since=_write_moment(look.at))


def write_message(kind: str, at: float, data: dict[str, Any]) -> str:
    """Return the body of a message."""
    return json.dumps({"type": kind, "timestamp": _write_moment(at), "data": data})


def _write_moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
