"""Certificates of logs say what the analysis says, and are refused where there can be none."""

import json
from dataclasses import asdict, replace

import numpy as np
import pyarrow
import pytest

from certified_logs import LOGS, analysed, certified, found_in, rows_of, saved
from logs_samples import LABELS, made
from mutants import reseal
from orthobandit.errors import CertificateError, InputError, OutputError
from orthobandit.estimate.follow import cells as follow_cells
from orthobandit.logs import Ratio, analyse
from orthobandit.logs.reading.clock import Clock
from orthobandit.verify import BucketRule, Verdict, verify, verify_file


@pytest.mark.parametrize("name", LOGS)
def test_certificates_are_valid_and_say_what_the_analysis_says(name, tmp_path):
    analysis = analysed(name)
    analysis.save(tmp_path / "new" / "certificate.json")
    verdict = verify_file(tmp_path / "new" / "certificate.json")
    assert verdict.problems == []
    document = json.loads((tmp_path / "new" / "certificate.json").read_text(encoding="utf-8"))
    assert document == certified(name)
    gaps = [one for one in analysis.metrics[0].effects if one.verdict != "reference"]
    claim = document["claim"]
    for said, one in zip(claim["gaps"], gaps, strict=True):
        assert said["arm"] == one.arm
        # Each by its own evidence; where there are other pairs, an analysis may know more from these.
        if len(gaps) == 1:
            assert (said["verdict"], said["estimate"]) == (one.verdict, one.estimate)
            assert (said["low"], said["high"]) == one.interval
        assert said["verdict"] in (one.verdict, "undecided")
        assert said["low"] is None or said["low"] <= one.interval[0]
        assert said["high"] is None or said["high"] >= one.interval[1]
    assert claim["over"] == document["settings"]["reference"] == analysis.reference
    assert document["settings"]["delta"] == analysis.metrics[0].delta


def gap_of(name, place):
    return certified(name)["claim"]["gaps"][place]


def test_the_logs_are_as_different_as_they_are_meant_to_be():
    modes = {certified(name)["settings"]["confidence"]["name"] for name in LOGS}
    assert modes == {"asymptotic", "bounded rewards"}
    verdicts = {gap["verdict"] for name in LOGS for gap in certified(name)["claim"]["gaps"]}
    assert verdicts == {"better", "worse", "undecided"}
    entries = certified("probabilities of its own for every row")["entries"]
    assert sum(one["entry"] == "distribution" for one in entries) > 2000
    assert max(len(one.get("plans", ())) for one in certified("plans that change")["entries"]) == 2
    assert gap_of("an arm that is hardly drawn", 1)["low"] is None
    assert gap_of("an arm that is hardly drawn", 1)["estimate"] is not None
    # A bucket at the end that draws it often does not make up for what its few draws carry.
    assert gap_of("an arm that was hardly drawn until the end", 0)["low"] is None
    assert gap_of("an arm that never comes", 1)["estimate"] is None
    # The other arm's gap tells of it: no two means are further apart than 1.
    assert -1.0 <= gap_of("an arm that never comes", 1)["low"] < 0.0
    assert gap_of("gaps told by other arms", 2)["low"] is not None
    assert certified("arms with features")["settings"]["reference"] == "red"


def test_all_buckets_are_in_it_those_of_the_pilot_first():
    for name in LOGS:
        buckets = [one for one in certified(name)["entries"] if one["entry"] == "bucket"]
        stages = [one["stage"] for one in buckets]
        assert stages == sorted(stages, reverse=True)
        assert set(stages) == {"pilot", "evidence"}
        rows = sum(sum(plan["counts"]) for one in buckets for plan in one["plans"])
        assert rows == analysed(name).rows


def test_a_log_that_has_grown_goes_on_from_the_head_that_it_had():
    rows = rows_of(23, [[0.5, 0.5]], gaps=[0.0, 0.5])
    early = rows.bucket < 40
    first = replace(
        rows, **{name: getattr(rows, name)[early] for name in ("arm", "bucket", "plan", "reward")}
    )
    head = saved(found_in(first))["head"]
    assert verify(saved(found_in(rows)), head).valid
    changed = replace(rows, reward=np.where(np.arange(len(rows.arm)) == 500, 3.0, rows.reward))
    assert not verify(saved(found_in(changed)), head).valid


@pytest.mark.parametrize(("least", "bounds"), [(1e3, (1e3, 1e3 + 1)), (1e9, (1e9, 1e9 + 1)), (1e3, None)])
def test_a_log_that_has_grown_goes_on_though_its_rewards_are_far_from_0(least, bounds):
    rng = np.random.default_rng(5)
    hour = np.repeat(np.arange(40), 50)
    arm = np.array(["a", "b"])[rng.integers(0, 2, len(hour))]
    # The level rises: what is taken off rewards must not follow it.
    reward = least + hour / 50 + 0.2 * rng.random(len(hour))
    rows = pyarrow.table({"hour": hour, "arm": arm, "reward": reward})
    asked = {"arm": "arm", "reward": "reward", "time": "hour", "split": "equal", "bounds": bounds}
    head = saved(analyse(rows.slice(0, 600), **asked))["head"]
    assert verify(saved(analyse(rows, **asked)), head).valid


def test_the_claim_in_a_sentence():
    claim = verify(certified("two arms of 0 and 1")).claim
    gap = gap_of("two arms of 0 and 1", 0)
    assert claim == (
        f"gaps of 'reward' over '0': '1' {gap['low']:.6g} to {gap['high']:.6g}, better;"
        " a wrong interval in at most 5 % of logs (bounded rewards from 0 to 1)"
    )
    assert "'2' -inf to inf, undecided" in verify(certified("an arm that is hardly drawn")).claim


def test_many_arms_are_not_all_named():
    found = found_in(rows_of(14, [[1 / 15] * 15]))
    claim = verify(saved(found)).claim
    assert "and 2 more; a wrong interval in at most 5 % of logs (asymptotic)" in claim


def test_alarms_are_part_of_what_is_said():
    rows = rows_of(15, [[0.5, 0.5]])
    found = found_in(replace(rows, plans=np.array([[0.9, 0.1]])))
    assert verify(saved(found)).claim.endswith("alarms were raised: sample ratio")


def test_no_row_is_in_it():
    rows = rows_of(16, [[0.5, 0.5]])
    text = json.dumps(saved(found_in(rows)))
    assert not any(f"{reward!r}"[:8] in text for reward in rows.reward.tolist())
    assert len(text) < 21_000


def test_the_record_is_no_part_of_what_was_found(tmp_path):
    found, again = (found_in(rows_of(17, [[0.5, 0.5]])) for _ in range(2))
    assert found == again
    assert "_record" not in repr(found)
    assert "_record" not in asdict(found)
    assert "_record" not in found.to_json()
    changed = replace(found, reference="1")
    with pytest.raises(CertificateError, match="save what `analyse` returned, unchanged"):
        changed.save(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("asked", "rows", "words"),
    [
        ({"fixed": True}, 600, "looked at as a whole, once: an ordinary interval has no certificate"),
        ({}, 10, "no bucket counted, so there is nothing to certify"),
    ],
)
def test_what_has_no_certificate_is_refused_in_words(asked, rows, words, tmp_path):
    found = found_in(rows_of(18, [[0.5, 0.5]], rows=rows), **asked)
    with pytest.raises(CertificateError, match=words) as caught:
        found.save(tmp_path / "c.json")
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, OutputError)
    assert not (tmp_path / "c.json").exists()


def test_a_single_bucket_is_the_pilot_and_has_none(tmp_path):
    rows = rows_of(19, [[0.5, 0.5]])
    found = found_in(replace(rows, bucket=np.zeros(len(rows.arm), dtype=int)))
    with pytest.raises(CertificateError, match="no bucket counted, so there is nothing to certify"):
        found.save(tmp_path / "c.json")


@pytest.mark.parametrize(("limit", "most"), [("MOST_FEEDS", 40), ("MOST_NUMBERS", 100)])
def test_what_is_too_much_is_not_kept(limit, most, monkeypatch, tmp_path):
    monkeypatch.setattr(follow_cells, limit, most)
    found = found_in(rows_of(20, [[0.5, 0.5]]))
    assert list(found._record.feeds) == []
    with pytest.raises(CertificateError, match="there are 60 pairs of a bucket and a plan"):
        found.save(tmp_path / "c.json")


def test_a_certificate_that_cannot_be_recomputed_is_not_written(tmp_path):
    found = found_in(rows_of(21, [[0.5, 0.5]]))
    metric = found.metrics[0]
    wrong = replace(metric.effects[1], estimate=7.0)
    object.__setattr__(found, "metrics", (replace(metric, effects=(metric.effects[0], wrong)),))
    with pytest.raises(CertificateError, match=r"would not be valid: .* the gap of '1' is claimed to be 7;"):
        found.save(tmp_path / "c.json")


def test_the_rule_of_buckets_is_in_it_and_every_bucket_keeps_to_it():
    log = made(3000)
    columns = tuple(f"p:{label}" for label in LABELS)
    found = analyse(log, arm="arm", time="at", probabilities=columns, reward="revenue")
    document = saved(found)
    rule = document["settings"]["buckets"]
    assert rule == {**found.bucket_rule, "fewest_rows": 4}
    assert set(rule) == {"width", "origin", "doubles_after", "fewest_rows"}
    bucket = next(one for one in document["entries"] if one.get("bucket") == 3)
    bucket["begins"] += 0.25 * rule["width"]
    problems = verify(reseal(document)).problems
    assert any("by the rule of buckets, none begins at" in one for one in problems)


@pytest.mark.parametrize("place", [0, 1, 7, 4999, 5000, 5002, 9998, 10_000, 10_004, 19_996, 20_000, 40_000])
def test_buckets_begin_where_the_clock_says(place):
    clock = Clock("at", width=0.5, origin=3.0, doubles=True)
    rule = BucketRule({**clock.rule, "fewest_rows": 4}, Verdict())
    assert rule.at(clock.begins(np.array([place]))[0])
    assert not rule.at(clock.begins(np.array([place]))[0] + 0.1)
    if place >= 5000:  # buckets are longer than a width there
        assert not rule.at(clock.begins(np.array([place + 1]))[0])


def test_it_cannot_be_written_to_a_folder(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        analysed("two arms of 0 and 1").save(tmp_path)


@pytest.mark.parametrize(
    "asked",
    [
        {"reward": "revenue", "covariates": ("age", "clicks")},
        {"reward": "bought", "metrics": ("revenue",), "caps": {"revenue": 20.0}, "segment": "country"},
        {"reward": "revenue", "unit": "user", "bucket": 1800.0, "bounds": (0.0, 1000.0)},
        {"reward": "clicks", "missing": "drop", "ratios": (Ratio("revenue", "clicks"),)},
    ],
    ids=["covariates", "metrics and segments", "units", "ratios"],
)
def test_whatever_is_asked_of_a_log_its_certificate_is_valid(asked):
    log, columns = made(3000, holes="missing" in asked), tuple(f"p:{label}" for label in LABELS)
    found = analyse(log, arm="arm", time="at", probabilities=columns, **asked)
    document = saved(found)
    assert document["settings"]["metric"] == asked["reward"]
    assert document["settings"]["delta"] == found.metrics[0].delta == 0.05 / len(found.metrics)
    assert verify(document).valid


def test_a_mode_that_tells_signs_alone_has_no_gaps():
    forged = json.loads(json.dumps(certified("plans that change")))
    forged["settings"]["confidence"] = {"name": "asymptotic, same-shape noise", "clip": 2.0}
    assert "the mode 'asymptotic, same-shape noise' has no intervals" in verify(reseal(forged)).problems
