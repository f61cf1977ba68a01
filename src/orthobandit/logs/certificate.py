"""Certificates of what a log says: plans, tallies and intervals of the reward, for anybody to recompute."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit._files import write_text
from orthobandit._types import Array, Whole
from orthobandit.errors import CertificateError
from orthobandit.estimate import Confidence, ContrastSequence, Tally
from orthobandit.logs.effects import finite, gaps_of, verdict_of
from orthobandit.logs.feeds import MOST_FEEDS, MOST_NUMBERS, Feeds
from orthobandit.logs.follow import Follower
from orthobandit.logs.measure import Measure
from orthobandit.logs.results import Analysis
from orthobandit.verify import digest
from orthobandit.verify_log import FORMAT, verify


@dataclass(frozen=True, eq=False)
class Record:
    """What the gaps of the reward rest on.

    Attributes
    ----------
    plans : (P, K) array
    offset : float
        What was taken from the reward before it was followed.
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


def with_record(analysis: Analysis, follower: Follower) -> Analysis:
    """Return the analysis, which from now on can be saved, with what its reward was followed by."""
    cells, measure = follower.cells, follower.measure
    offset = float(cells.offset[measure.column])
    record = Record(cells.plans, offset, measure, follower.sequence, follower.feeds)
    # It is no field: neither equal analyses nor their JSON need to hold the same record.
    object.__setattr__(analysis, "_record", record)
    return analysis


def save(analysis: Analysis, record: Record | None, path: str | Path) -> None:
    """Write the certificate of an analysis as a JSON file, whole or not at all.

    Raises
    ------
    CertificateError
        If there can be none.
    """
    document = document_of(analysis, record)
    write_text(path, json.dumps(document, allow_nan=False, ensure_ascii=False) + "\n")


def document_of(analysis: Analysis, record: Record | None) -> dict[str, Any]:
    """Return the certificate of the gaps of the reward: plain lists, numbers and words, and no user's reward.

    Parameters
    ----------
    analysis : Analysis
    record : Record or None
        None for an analysis that did not come from a log.
    """
    if record is None:
        raise CertificateError("the analysis has no log to rest on; save what `analyse` returned, unchanged")
    if record.feeds is None:
        raise CertificateError(
            "the log was looked at as a whole, once: an ordinary interval has no certificate; name the time"
            " of each draw, and leave out fixed"
        )
    if record.sequence is None:
        raise CertificateError("no bucket counted, so there is nothing to certify; the log has too few rows")
    if not record.feeds.are_kept:
        raise CertificateError(
            f"there are {record.feeds.count:,} pairs of a bucket and a plan; a certificate lists at most"
            f" {MOST_FEEDS:,}, and {MOST_NUMBERS:,} counts of arms; choose longer buckets, or analyse a part"
            " of the arms or of the time"
        )
    document = _basis(analysis, record, record.sequence, record.feeds)
    document["claim"] = _claim(analysis, record.sequence)
    document["digest"] = digest(document)
    verdict = verify(document)
    if not verdict.valid:
        raise CertificateError(f"the certificate would not be valid: {verdict.problems[0]}; please report it")
    return document


def _basis(analysis: Analysis, record: Record, sequence: ContrastSequence, feeds: Feeds) -> dict[str, Any]:
    """Return everything but the claim; distributions are listed once and numbered."""
    arms, tuning = sequence.arms, sequence.tuning
    used = np.unique(np.concatenate([plans for plans, _, _ in feeds]))
    return {
        "format": FORMAT,
        "metric": analysis.metrics[0].name,
        "labels": list(arms.labels),
        "features": arms.features.tolist(),
        "reference": record.measure.reference,
        "confidence": _mode(sequence.confidence, record.offset),
        "delta": record.measure.delta,
        "alarms": [one.name for one in analysis.alarms],
        "tuning": {
            name: getattr(tuning, name)[: len(arms) - 1].tolist() for name in ("alpha", "rho", "scale")
        },
        "distributions": record.plans[used].tolist(),
        "buckets": [
            {"values": values.tolist(), "feeds": _feeds(np.searchsorted(used, plans), tally)}
            for plans, values, tally in feeds
        ],
    }


def _feeds(places: Whole, tally: Tally) -> list[dict[str, Any]]:
    """Return the plans (G,) of a bucket, each with its row of the tally (G, K)."""
    columns = tally.to_json()
    rows = zip(places.tolist(), *columns.values(), strict=True)
    return [dict(zip(("distribution", *columns), row, strict=True)) for row in rows]


def _mode(confidence: Confidence, offset: float) -> dict[str, Any]:
    """Return a mode by its numbers; the reward lies between low and high once the offset is taken off."""
    known, (low, high) = confidence.is_exact, confidence.range
    return {
        "name": confidence.name,
        "low": low if known else None,
        "high": high if known else None,
        "offset": offset if known else None,
        "limit": confidence.limit if known else None,
        "bias": confidence.bias,
    }


def _claim(analysis: Analysis, sequence: ContrastSequence) -> dict[str, Any]:
    """Return the reward's gaps over the reference arm, each by its own evidence; unknown ends as null.

    What an analysis shows is narrower where other pairs of arms tell more: these are not in a certificate.
    """
    gaps, count = gaps_of(sequence), len(analysis.labels) - 1
    low = [finite(end) for end in gaps.low[:count]]
    high = [finite(end) for end in gaps.high[:count]]
    return {
        "estimates": [finite(one) for one in gaps.estimates[:count]],
        "low": low,
        "high": high,
        "verdicts": [verdict_of(ends) for ends in zip(low, high, strict=True)],
        "mode": analysis.metrics[0].mode,
    }
