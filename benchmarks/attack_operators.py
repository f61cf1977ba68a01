"""Attacks by what operators and analysts do while an experiment runs, and by units that nobody tried.

``python -m benchmarks.attack_operators NAME [RUNS [SEED]]`` works as `benchmarks.attack_claims` does: every
attack goes through the public interface, is checked by code of its own, and prints a line a case.
docs/measured.md has the numbers.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow

from benchmarks.attack_claims import (
    DAYS,
    Document,
    Rows,
    _asked,
    _drawn,
    _misses,
    _ramp,
    _rows,
    _table,
    claim_that_follows,
    play_named,
    show,
)
from orthobandit import AnytimeElimination, ArmSet, Experiment, Guardrail, Metric, analyse
from orthobandit.errors import ClosedError
from orthobandit.logs import Ratio
from orthobandit.verify import verify

# Segments and arms that come late ---------------------------------------------------------------------------


def attack_late_segments(runs: int, seed: int) -> None:
    """Segments that come one a day, equal arms: an interval of one is wrong at some look."""
    shares = np.full((DAYS, 2), 0.5)
    for mode in ("exact", "asymptotic"):
        for delta in (0.05, 0.5):
            wrong = apart = 0
            times = max(runs // 4, 2)
            for run in range(times):
                rng = np.random.default_rng([seed, run])
                day, arm = _drawn(rng, shares, 9000)
                # Whoever comes is of one of the segments that exist by then, the newest as often as any.
                segment = (rng.random(len(day)) * (1 + day)).astype(int)
                level = 0.2 + 0.6 * rng.random(DAYS)[segment]
                if mode == "exact":
                    reward = (rng.random(len(day)) < level).astype(float)
                else:
                    reward = level + rng.standard_normal(len(day))
                log = _rows(day, arm, shares, above=reward, segment=np.char.add("s", segment.astype(str)))
                asked = _asked(
                    log, segment="segment", delta=delta, bounds=(0, 1) if mode == "exact" else None
                )
                is_wrong = is_apart = False
                for until in range(2, DAYS + 1, 2):
                    found = analyse(_table(log, until), **asked)
                    ends = [part.effects[1].interval for part in found.segments]
                    is_wrong |= any(_misses(one, 0.0) for one in ends)
                    is_apart |= any(one.apart for one in found.heterogeneity)
                wrong += is_wrong
                apart += is_apart
            show(f"{DAYS} segments, one a day, {mode}, δ = {delta:g}", wrong, times, delta, f"{apart} apart")


def attack_late_arms(runs: int, seed: int) -> None:
    """Equal arms that are added to a log and to the question while it is analysed, one every three days."""
    for mode in ("exact", "asymptotic"):
        for delta in (0.05, 0.5):
            wrong = 0
            times = max(runs // 4, 2)
            for run in range(times):
                rng = np.random.default_rng([seed, run])
                counts = 2 + np.arange(DAYS) // 3
                shares = np.array(
                    [np.r_[np.full(one, 1 / one), np.zeros(counts[-1] - one)] for one in counts]
                )
                day, arm = _drawn(rng, shares, 9000)
                level = 0.3 + 0.2 * np.sin(day / 4)
                if mode == "exact":
                    reward = (rng.random(len(day)) < level).astype(float)
                else:
                    reward = level + rng.standard_normal(len(day))
                log = {
                    "day": day,
                    "arm": np.array([f"arm {place}" for place in range(counts[-1])])[arm],
                    "plan": np.char.add("with ", counts[day].astype(str)),
                    "above": reward,
                }
                is_wrong = False
                for until in range(3, DAYS + 1, 3):
                    # Whoever asks knows the arms so far.
                    plans = {
                        f"with {count}": {f"arm {place}": 1 / count for place in range(count)}
                        for count in np.unique(counts[:until]).tolist()
                    }
                    found = analyse(
                        _table(log, until),
                        arm="arm",
                        reward="above",
                        time="day",
                        plan="plan",
                        plans=plans,
                        delta=delta,
                        bounds=(0, 1) if mode == "exact" else None,
                    )
                    effects = found.metrics[0].effects
                    is_wrong |= any(_misses(one.interval, 0.0) for one in effects if one.arm != one.over)
                wrong += is_wrong
            show(f"2 to {counts[-1]} arms, {mode}, δ = {delta:g}", wrong, times, delta)


# Settings that change between looks -------------------------------------------------------------------------


def attack_rebucketed(runs: int, seed: int) -> None:
    """Buckets of seven widths, all tried at every look until one decides."""
    level = 0.3 + 0.2 * np.sin(np.arange(DAYS) / 3)
    widths = (0.25, 0.5, 1, 2, 3, 5, 7)
    for mode in ("exact", "asymptotic"):
        for delta in (0.05, 0.5):
            alone = any_width = 0
            times = max(runs // 4, 2)
            for run in range(times):
                rng = np.random.default_rng([seed, run])
                shares = _ramp(0.2, 0.6)
                day, arm = _drawn(rng, shares, 4500)
                if mode == "exact":
                    reward = (rng.random(len(day)) < level[day]).astype(float)
                else:
                    reward = level[day] + rng.standard_normal(len(day))
                log = _rows(day, arm, shares, above=reward)
                log["day"] = day + np.sort(rng.random(len(day)))
                order = np.argsort(log["day"], kind="stable")
                log = {name: column[order] for name, column in log.items()}
                missed = dict.fromkeys(widths, False)
                for until in range(6, DAYS + 1, 6):
                    for width in widths:
                        asked = _asked(
                            log, bucket=width, delta=delta, bounds=(0, 1) if mode == "exact" else None
                        )
                        effect = analyse(_table(log, until), **asked).metrics[0].effects[1]
                        missed[width] |= _misses(effect.interval, 0.0)
                alone += missed[1]
                any_width += any(missed.values())
            show(f"buckets of a day, {mode}, δ = {delta:g}", alone, times, delta)
            show("  the best of seven widths, not promised", any_width, times, delta)


# Denominators that vanish -----------------------------------------------------------------------------------


def _vanishing(rng: np.random.Generator, rows: int, kind: str) -> tuple[Rows, np.ndarray, np.ndarray]:
    """Return rows, and what numerator and denominator of both arms (days, 2) are on average.

    From day 12 to 16 the new arm has no denominator, and most of the traffic.
    """
    shares = _ramp()
    shares[12:17] = [0.2, 0.8]
    day, arm = _drawn(rng, shares, rows)
    rate = np.where(np.arange(DAYS) < 15, 1.0, 2.0) if kind == "the ratio doubles" else np.full(DAYS, 1.5)
    below_mean = np.column_stack([np.full(DAYS, 2.0), np.full(DAYS, 4.0)])
    below_mean[12:17, 1] = 0.0
    above_mean = rate[:, np.newaxis] * below_mean
    below = rng.poisson(below_mean[day, arm]).astype(float)
    noise = rng.standard_normal(len(day))
    if kind == "numerators without a denominator":
        # Refunds and bonuses: they cancel over time, and come where there is no denominator too.
        noise = noise * np.where((arm == 1) & (below == 0), 6.0, 1.0)
    above = rate[day] * below + noise
    return _rows(day, arm, shares, above=above, below=below), above_mean, below_mean


def attack_zero_denominators(runs: int, seed: int) -> None:
    """Denominators that are 0 for one arm during a burst of traffic for it."""
    per_day = {1500: 50, 6000: 200}
    for kind in ("the same ratio", "the ratio doubles", "numerators without a denominator"):
        for rows in per_day:
            wrong = spoke = 0
            for run in range(runs):
                log, above, below = _vanishing(np.random.default_rng([seed, rows, run]), rows, kind)
                ratios = above.sum(axis=0) / below.sum(axis=0)
                asked = _asked(log, ratios=[Ratio("above", "below")], fixed=True, delta=0.1)
                effect = analyse(_table(log), **asked).metrics[1].effects[1]
                wrong += _misses(effect.interval, ratios[1] - ratios[0])
                spoke += effect.interval != (None, None)
            show(f"{kind}, one look, {rows} rows", wrong, runs, 0.05, f"{spoke} say something")
        wrong = spoke = 0
        few = max(runs // 4, 2)
        for run in range(few):
            log, above, below = _vanishing(np.random.default_rng([seed, 1, run]), 12_000, kind)
            is_wrong = speaks = False
            for until in range(9, DAYS + 1, 3):
                # The first day is the pilot, which is not counted.
                ratios = above[1:until].sum(axis=0) / below[1:until].sum(axis=0)
                asked = _asked(log, ratios=[Ratio("above", "below")], delta=0.1)
                effect = analyse(_table(log, until), **asked).metrics[1].effects[1]
                is_wrong |= _misses(effect.interval, ratios[1] - ratios[0])
                speaks |= effect.interval != (None, None)
            wrong += is_wrong
            spoke += speaks
        show(f"{kind}, eight looks, 12,000 rows", wrong, few, 0.05, f"{spoke} say something")


# Certificates with the entries of another -------------------------------------------------------------------


def _twin(seed: int, means: tuple[float, ...]) -> tuple[Document, list[str]]:
    """Return the certificate of an experiment, and the head published before every batch of 40."""
    rng = np.random.default_rng(seed)
    run = Experiment.memory(ArmSet.one_hot(3), rewards=(0, 1), key="7" * 32)
    published = [run.head()]
    for _ in range(25):
        shown = run.ask_many(40)
        arms = [one.arm for one in shown]
        run.tell_many([one.id for one in shown], (rng.random(40) < np.array(means)[arms]).astype(float))
        published.append(run.head())
    return run.certificate().document, published


def _log_of(rng: np.random.Generator, gap: float) -> Rows:
    shares = np.full((DAYS, 2), 0.5)
    day, arm = _drawn(rng, shares, 6000)
    reward = (rng.random(len(day)) < 0.3 + gap * arm).astype(float)
    return _rows(day, arm, shares, above=reward)


def _saved(table: pyarrow.Table, asked: Document) -> Document:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        analyse(table, **asked).save(path)
        document: Document = json.loads(path.read_text())
        return document


def attack_swapped_feeds(runs: int, seed: int) -> None:
    """Entries of one experiment in another's certificate, same settings and key; two metrics of a log."""
    tried = valid = fitting = 0
    for run in range(max(runs // 10, 2)):
        mine, published = _twin(seed + 2 * run, (0.3, 0.3, 0.3))
        other, _ = _twin(seed + 2 * run + 1, (0.2, 0.3, 0.6))
        for cut in range(1, min(len(mine["entries"]), len(other["entries"]))):
            forged = deepcopy(mine)
            forged["entries"] = mine["entries"][:cut] + deepcopy(other["entries"][cut:])
            forged = claim_that_follows(forged)
            tried += 1
            is_valid = verify(forged).valid
            valid += is_valid
            # What was published on the way must expose it; the last head before the cut cannot.
            later = [one for one in published if int(one.partition(":")[0]) > cut]
            fitting += is_valid and all(verify(forged, one).valid for one in later)
    show(
        "two experiments spliced: unnoticed by later heads",
        fitting,
        tried,
        0.0,
        f"{valid} valid without heads",
    )
    tried = valid = fitting = 0
    for run in range(max(runs // 10, 2)):
        rng = np.random.default_rng([seed, run])
        mine = _log_of(rng, 0.0)
        other = _log_of(rng, 0.1)
        asked = _asked(mine, bounds=(0, 1))
        documents = [_saved(_table(one), asked) for one in (mine, other)]
        head = _saved(_table(mine, DAYS // 2), asked)["head"]
        for cut in range(1, len(documents[0]["entries"])):
            forged = deepcopy(documents[0])
            forged["entries"] = forged["entries"][:cut] + deepcopy(documents[1]["entries"][cut:])
            forged = claim_that_follows(forged)
            tried += 1
            is_valid = verify(forged).valid
            valid += is_valid
            is_earlier = cut < int(head.partition(":")[0])
            fitting += is_valid and is_earlier and verify(forged, head).valid
    show(
        "two metrics spliced: unnoticed by a later head", fitting, tried, 0.0, f"{valid} valid without heads"
    )


def attack_growing_heads(runs: int, seed: int) -> None:
    """Certificates of a growing log that do not go on from the head of yesterday's."""
    ranges = {"0 or 1": (0.0, 1.0), "1,000 to 1,001": (1e3, 1.0), "around 10⁹": (1e9, 100.0)}
    for name, (offset, unit) in ranges.items():
        for kind in ("exact", "asymptotic"):
            broken = 0
            times = max(runs // 10, 2)
            for run in range(times):
                rng = np.random.default_rng([seed, run])
                shares = _ramp()
                day, arm = _drawn(rng, shares, 6000)
                level = 0.1 + 0.8 * day / DAYS
                values = np.clip(level + 0.1 * rng.uniform(-1, 1, len(day)), 0, 1)
                if offset == 0:
                    values = (rng.random(len(day)) < level).astype(float)
                log = _rows(day, arm, shares, above=offset + unit * values)
                asked = _asked(log, bounds=(offset, offset + unit) if kind == "exact" else None)
                made = [_saved(_table(log, until), asked) for until in (5, 10, 20, DAYS)]
                broken += any(not verify(after, before["head"]).valid for before, after in pairwise(made))
            show(f"rewards {name}, {kind}: heads that do not go on", broken, times, 0.0)


# What is not settled yet ------------------------------------------------------------------------------------


def attack_unsettled(runs: int, seed: int) -> None:
    """One reward holds up all others; the operator, who knows them, retires arms when that helps arm 0."""
    delta = 0.2
    means = np.full(6, 0.5)
    means[1] = 0.501
    for kind in ("at random", "when unsettled rewards help"):
        wrong = ended = 0
        for run in range(runs):
            rng = np.random.default_rng([seed, run])
            experiment = Experiment.memory(
                ArmSet.one_hot(6), AnytimeElimination(delta, rewards=(0, 1)), key=rng.bytes(16).hex()
            )
            left = [5, 4, 3, 2]
            for _ in range(40):
                shown = experiment.ask_many(60)
                arms = np.array([one.arm for one in shown])
                rewards = (rng.random(60) < means[arms]).astype(float)
                # All but the first are told, so none is settled yet.
                experiment.tell_many([one.id for one in shown[1:]], rewards[1:])
                ahead = rewards[arms == 0].sum() - rewards[arms == 1].sum()
                helps = ahead >= 4 if kind != "at random" else rng.random() < 0.1
                if left and helps:
                    experiment.retire(left.pop())
                experiment.tell(shown[0].id, rewards[0])
                report = experiment.report()
                if report.declared is not None or not report.arms[1].is_active:
                    break
            is_wrong = not report.arms[1].is_active or report.declared not in (None, "1")
            wrong += is_wrong
            ended += report.declared is not None
        show(f"arms retired {kind}: the best is lost, δ = {delta:g}", wrong, runs, delta, f"{ended} declared")


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def attack_chosen_arrivals(runs: int, seed: int) -> None:
    """Rewards told in an order that the outcome chooses, some after their window, with looks all the time."""
    delta = 0.2
    wrong = accepted = tried = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        clock = Clock()
        experiment = Experiment.memory(
            ArmSet.one_hot(2),
            AnytimeElimination(delta, rewards=(0, 1)),
            window=10.0,
            silence="zero",
            clock=clock,
            key=rng.bytes(16).hex(),
        )
        waiting: list[tuple[float, int]] = []  # deadline and id of sales that were not told yet
        is_wrong = False
        for _ in range(60):
            clock.now += 1.0
            shown = experiment.ask_many(50)
            sold = rng.random(50) < 0.3
            for one, is_sale in zip(shown, sold, strict=True):
                if not is_sale:
                    continue  # silence is a zero
                if one.arm == 0:
                    experiment.tell(one.id, 1.0)  # at once
                else:
                    waiting.append((clock.now + 10.0, one.id))
            # Sales of arm 1 come at the very last moment, and a few of them after it.
            for _, number in [one for one in waiting if clock.now < one[0] <= clock.now + 1.0]:
                if rng.random() < 0.2:
                    continue
                experiment.tell(number, 1.0)
                waiting = [one for one in waiting if one[1] != number]
            for _, number in [one for one in waiting if one[0] <= clock.now]:
                tried += 1
                try:
                    experiment.tell(number, 1.0)
                    accepted += 1
                except ClosedError:
                    pass  # as documented
                waiting = [one for one in waiting if one[1] != number]
            report = experiment.report()
            # A fifth of the sales of arm 1 are lost: its rate is 0.24, and 0.06 below that of arm 0.
            is_wrong |= _misses((report.arms[1].low, report.arms[1].high), -0.06)
            is_wrong |= report.declared == "1"
        wrong += is_wrong
    show("sales of one arm at once, of the other at the end", wrong, runs, delta)
    show("rewards accepted after their window", accepted, tried, 0.0)


# Splits that chase within a bucket --------------------------------------------------------------------------


def attack_chasing(runs: int, seed: int) -> None:
    """Probabilities that follow the rewards of the same bucket, and a level that answers every draw."""
    rows = 3000
    for mode in ("exact", "asymptotic"):
        for delta in (0.05, 0.5):
            wrong = 0
            for run in range(runs):
                rng = np.random.default_rng([seed, run])
                uniform = rng.random((rows, 2))
                noise = rng.standard_normal(rows)
                arm = np.zeros(rows, dtype=int)
                share = np.zeros(rows)
                reward = np.zeros(rows)
                lead = 0.0
                last = 0
                for place in range(rows):
                    if place % 100 == 0:
                        lead = 0.0
                    # As soon as arm 1 leads in this bucket it gets little traffic, so that its luck stays.
                    share[place] = 0.05 if lead > 2 else 0.95 if lead < -2 else 0.5
                    level = 0.8 if last == 0 else 0.2
                    arm[place] = uniform[place, 0] < share[place]
                    if mode == "exact":
                        reward[place] = uniform[place, 1] < level
                    else:
                        reward[place] = level + noise[place]
                    lead += (2 * arm[place] - 1) * (reward[place] - 0.5)
                    last = arm[place]
                log = {
                    "day": np.arange(rows) // 100,
                    "arm": np.where(arm == 1, "arm 1", "arm 0"),
                    "p0": 1 - share,
                    "p1": share,
                    "above": reward,
                }
                asked = _asked(log, delta=delta, bounds=(0, 1) if mode == "exact" else None)
                found = analyse(pyarrow.table(log), **asked).metrics[0]
                ends = [(moment.lows[0], moment.highs[0]) for moment in found.history]
                ends.append(found.effects[1].interval)
                wrong += any(_misses(one, 0.0) for one in ends)
            show(f"chasing within buckets, {mode}, δ = {delta:g}", wrong, runs, delta)


# Units ------------------------------------------------------------------------------------------------------


def _live(offset: float, unit: float, seed: int, *, is_exact: bool) -> list[Any]:
    """Return what a live experiment says at every look, in units of its rewards."""
    rng = np.random.default_rng(seed)
    means = np.array([0.2, 0.3, 0.6])
    rewards: Any = (offset, offset + unit) if is_exact else "unknown"
    run = Experiment.memory(
        ArmSet.one_hot(3),
        rewards=rewards,
        metrics=[Metric("seconds", rewards=(0, 5 * unit))],
        guardrails=[Guardrail("seconds", margin=0.5 * unit, worse="higher")],
        key=f"{seed:032x}",
    )
    said: list[Any] = []
    for _ in range(20):
        shown = run.ask_many(40)
        arms = np.array([one.arm for one in shown])
        values = (
            (rng.random(40) < means[arms]).astype(float) if is_exact else means[arms] + rng.normal(size=40)
        )
        seconds = rng.random(40) * unit
        run.tell_many([one.id for one in shown], {"reward": offset + unit * values, "seconds": seconds})
        report = run.report()
        ends = [None if end is None else end / unit for arm in report.arms for end in (arm.low, arm.high)]
        states = [(arm.is_active, arm.is_retired) for arm in report.arms]
        said.append(((report.declared, report.held, report.leader, states, tuple(report.alarms)), ends))
    return said


def _same(one: Any, other: Any, tolerance: float) -> bool:
    """Tell whether two lists of numbers and None are the same within a tolerance."""
    return len(one) == len(other) and all(
        a == b or (a is not None and b is not None and abs(a - b) <= tolerance * max(1.0, abs(b)))
        for a, b in zip(one, other, strict=True)
    )


def attack_scales(runs: int, seed: int) -> None:
    """Rewards × 10⁶ and × 10⁻⁶, or far from 0: live experiments and logs that say another thing."""
    few = max(runs // 20, 2)
    changes = {
        "× 10⁶": (0.0, 1e6, 1e-6),
        "× 10⁻⁶": (0.0, 1e-6, 1e-6),
        "+ 1,000": (1e3, 1.0, 1e-6),
        "+ 10⁶": (1e6, 1.0, 1e-4),
        "+ 10⁹": (1e9, 1.0, 1e-2),
    }
    for name, (offset, unit, tolerance) in changes.items():
        # Without bounds a live forecast has to learn a level that is far from 0: plans differ a little.
        for is_exact in (True,) if offset else (True, False):
            differ = 0
            for run in range(few):
                plain = _live(0.0, 1.0, seed + run, is_exact=is_exact)
                moved = _live(offset, unit, seed + run, is_exact=is_exact)
                differ += any(
                    one[0] != other[0] or not _same(one[1], other[1], tolerance)
                    for one, other in zip(plain, moved, strict=True)
                )
            mode = "exact" if is_exact else "asymptotic"
            show(f"live, rewards {name}, {mode}: says another thing", differ, few, 0.0)
        for kind in ("exact", "asymptotic", "one look", "a ratio"):
            differ = 0
            for run in range(few):
                said = []
                for shift, scale in ((0.0, 1.0), (offset, unit)):
                    rng = np.random.default_rng([seed, run])
                    shares = _ramp()
                    day, arm = _drawn(rng, shares, 3000)
                    level = 0.5 + 0.2 * np.sin(day / 4) + 0.1 * arm
                    if kind == "exact":
                        values = (rng.random(len(day)) < level).astype(float)
                    else:
                        values = level + 0.3 * rng.standard_normal(len(day))
                    below = rng.poisson(3.0, len(day)) * scale
                    log = _rows(day, arm, shares, above=shift + scale * values, below=below)
                    more: Document = {"bounds": (shift, shift + scale)} if kind == "exact" else {}
                    if kind == "one look":
                        more = {"fixed": True}
                    if kind == "a ratio":
                        more = {"ratios": [Ratio("above", "below")]}
                    found = analyse(_table(log), **_asked(log, **more))
                    metric = found.metrics[-1]
                    by = 1.0 if kind == "a ratio" else scale
                    ends = [
                        None if end is None else end / by for one in metric.effects for end in one.interval
                    ]
                    if shift == 0.0 and kind != "a ratio":
                        ends += [end for one in metric.effects for end in one.lift]
                    said.append(([one.verdict for one in metric.effects], ends))
                # A ratio whose numerator is counted from elsewhere is another ratio.
                if kind == "a ratio" and offset:
                    continue
                first, second = said
                is_same = first[0] == second[0] and _same(first[1][: len(second[1])], second[1], tolerance)
                differ += not is_same
            show(f"log, rewards {name}, {kind}: says another thing", differ, few, 0.0)


# A guardrail without its reference --------------------------------------------------------------------------


def attack_retired_reference(runs: int, seed: int) -> None:
    """Guardrails whose reference arm is retired early, and added again as another arm: harm is declared."""
    sales = np.array([0.1, 0.5, 0.52, 0.1])
    crashes = np.array([0.01, 0.01, 0.06, 0.01])
    labels = ["old", "new", "harmful", "old again"]
    for added in (False, True):
        declared = refused = 0
        for run in range(max(runs // 5, 2)):
            rng = np.random.default_rng([seed, run])
            experiment = Experiment.memory(
                ArmSet.one_hot(3, labels=labels[:3]),
                rewards=(0, 1),
                objective="sale",
                metrics=[Metric("crash", rewards=(0, 1))],
                guardrails=[Guardrail("crash")],
                key=rng.bytes(16).hex(),
            )
            is_declared = False
            for step in range(30):
                shown = experiment.ask_many(200)
                arms = np.array([one.arm for one in shown])
                told = {
                    "sale": (rng.random(200) < sales[arms]).astype(float),
                    "crash": (rng.random(200) < crashes[arms]).astype(float),
                }
                experiment.tell_many([one.id for one in shown], told)
                if step == 1:
                    try:
                        experiment.retire("old")
                    except ValueError as error:
                        refused += 1
                        print("    refused:", error) if run == 0 else None
                if step == 3 and added:
                    experiment.extend(ArmSet.one_hot(4, labels=labels))
                report = experiment.report()
                is_declared |= report.declared == "harmful"
            declared += is_declared
        what = "retired and added again" if added else "retired"
        show(f"reference {what}: harm declared", declared, max(runs // 5, 2), 0.05, f"{refused} refusals")


ATTACKS: dict[str, Callable[[int, int], None]] = {
    "segments": attack_late_segments,
    "arms": attack_late_arms,
    "buckets": attack_rebucketed,
    "denominators": attack_zero_denominators,
    "swapped": attack_swapped_feeds,
    "heads": attack_growing_heads,
    "unsettled": attack_unsettled,
    "arrivals": attack_chosen_arrivals,
    "chasing": attack_chasing,
    "scales": attack_scales,
    "reference": attack_retired_reference,
}


if __name__ == "__main__":
    play_named(ATTACKS, runs=100, seed=2030)
