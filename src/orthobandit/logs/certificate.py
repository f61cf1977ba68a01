"""Certificates of log analyses: plans, tallies and intervals of the reward, for anybody to recompute."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orthobandit._foundation.types import Array
from orthobandit.errors import CertificateError
from orthobandit.estimate import ContrastSequence
from orthobandit.estimate.certificate import Certificate, Chain, describe_mode
from orthobandit.estimate.follow.buckets import ROWS
from orthobandit.estimate.follow.cells import MOST_FEEDS, MOST_NUMBERS, Bucket, Feeds
from orthobandit.logs.results import Analysis, Record
from orthobandit.verify import STAGES

# Where buckets begin, of cells that were not cut out of a log by a rule.
NO_RULE = {"width": None, "origin": None, "doubles_after": None}


def save(analysis: Analysis, record: Record | None, path: str | Path) -> None:
    """Write the certificate of an analysis as a JSON file, whole or not at all.

    Raises
    ------
    CertificateError
        If there can be none.
    """
    certify(analysis, record).write(path)


def certify(analysis: Analysis, record: Record | None) -> Certificate:
    """Return the certificate of the gaps of the reward: plain lists, numbers and words, and no user's reward.

    Parameters
    ----------
    analysis : Analysis
    record : Record or None
        None for an analysis that did not come from a log.
    """
    if analysis.personal is not None:
        raise CertificateError(
            "an analysis of rules has no certificate: what rules earn is certified in live experiments only;"
            " leave out context to certify the gaps between arms"
        )
    if record is None:
        raise CertificateError("the analysis has no log to rest on; save what `analyse` returned, unchanged")
    if record.feeds is None:
        raise CertificateError(
            "the log was looked at as a whole, once: an ordinary interval has no certificate; name the time"
            " of each draw, and leave out fixed"
        )
    if record.sequence is None:
        raise CertificateError("no bucket counted, so there is nothing to certify; the log has too few rows")
    if analysis.metrics[0].is_contradicted:
        raise CertificateError(
            "no gaps fit the intervals of all pairs of arms, so nothing is claimed; see the analysis's alarms"
        )
    if not record.feeds.are_kept:
        raise CertificateError(
            f"there are {record.feeds.count:,} pairs of a bucket and a plan; a certificate lists at most"
            f" {MOST_FEEDS:,}, and {MOST_NUMBERS:,} counts of arms; choose longer buckets, or analyse a part"
            " of the arms or of the time"
        )
    chain = Chain(_settings(analysis, record, record.sequence))
    # In the order of time, each hashed with all before it: no bucket can be left out or moved unseen.
    for entry in _entries(record.plans, record.feeds):
        chain.add(entry)
    try:
        return Certificate.make(chain, _claim(analysis))
    except CertificateError as error:
        raise CertificateError(f"the certificate would not be valid: {error}; please report it") from None


def _settings(analysis: Analysis, record: Record, sequence: ContrastSequence) -> dict[str, Any]:
    """Return the settings that were fixed before the log was read."""
    mode = describe_mode(sequence.confidence)
    if sequence.confidence.is_exact:
        # The reward lies between low and high once the offset is taken off.
        mode["offset"] = record.offset
    return {
        "kind": "log",
        "metric": analysis.metrics[0].name,
        "labels": list(sequence.arms.labels),
        "features": sequence.arms.features.tolist(),
        "reference": sequence.arms.labels[record.measure.reference],
        "confidence": mode,
        "delta": record.measure.delta,
        "buckets": {**NO_RULE, **analysis.bucket_rule, "fewest_rows": ROWS},
    }


def _entries(plans: Array, feeds: Feeds) -> Iterator[dict[str, Any]]:
    """Yield all buckets in the order of time, and each distribution before the first bucket that has it."""
    numbers: dict[int, int] = {}
    place = 0
    for stage, buckets in ((STAGES[1], feeds.pilot()), (STAGES[2], feeds.counted())):
        for bucket in buckets:
            for plan in bucket.plans.tolist():
                if plan not in numbers:
                    numbers[plan] = len(numbers) + 1
                    probabilities = plans[plan].tolist()
                    yield {
                        "entry": "distribution",
                        "distribution": numbers[plan],
                        "probabilities": probabilities,
                    }
            place += 1
            yield {
                "entry": "bucket",
                "bucket": place,
                "begins": bucket.begins,
                "stage": stage,
                "values": bucket.values.tolist(),
                "plans": _plans(bucket, numbers),
            }


def _plans(bucket: Bucket, numbers: dict[int, int]) -> list[dict[str, Any]]:
    """Return the plans of a bucket, each with its row of the tally."""
    columns = bucket.tally.to_json()
    rows = zip(bucket.plans.tolist(), *columns.values(), strict=True)
    return [{"distribution": numbers[plan], **dict(zip(columns, row, strict=True))} for plan, *row in rows]


def _claim(analysis: Analysis) -> dict[str, Any]:
    """Return the claim: the reward's gaps over the reference arm, with unknown ends as null."""
    reward = analysis.metrics[0]
    return {
        "metric": reward.name,
        "over": analysis.reference,
        "gaps": [
            {
                "arm": one.arm,
                "estimate": one.estimate,
                "low": one.interval[0],
                "high": one.interval[1],
                "verdict": one.verdict,
            }
            for one in reward.effects
            if one.arm != one.over
        ],
        "alarms": [one.name for one in analysis.alarms],
    }
