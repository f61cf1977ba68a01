"""Attacks at the edges: late stakes, lopsided plans, last-minute rewards, atoms, wrong hints, units.

``python -m benchmarks.attack_extremes NAME [RUNS [SEED]]`` works as `benchmarks.attack_claims` does: every
attack goes through the public interface, is checked by code of its own, and prints a line a case.
docs/measured.md has the numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow

from benchmarks.attack_claims import Document, _misses, play_named, show
from orthobandit import (
    AnytimeElimination,
    ArmSet,
    Bounded,
    ContrastSequence,
    Environment,
    Experiment,
    Plan,
    SameShape,
    Tally,
    analyse,
)
from orthobandit.errors import ClosedError
from orthobandit.estimate import Tuning
from orthobandit.estimate.confidence.bets import Spent, bets_boundary
from orthobandit.estimate.confidence.boundaries import WIDE, tightest_rho
from orthobandit.logs import Quantile
from orthobandit.policy.contextual import Interactions, SegmentComparison
from orthobandit.simulation import Adaptive, Bernoulli, Constant, Past, Replay, StudentT, Uniform, misses

DELTAS = (1e-4, 0.05, 0.5)
GROWTH = 0.1  # of batches: fewer looks than by default, and ten times as many runs


def _ever_wrong(policy: AnytimeElimination, world: Environment, horizon: int, runs: int, seed: int) -> int:
    found = misses(policy, world, horizon=horizon, replications=runs, seed=seed)
    return int(np.count_nonzero(found.first >= 0))


# Stakes -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LateGambler(Adaptive):
    """Quiet at first; then doubles the stakes until the first arm has lost what was staked on it."""

    begin: int = 600
    most: float = 1e4

    def values(self, past: Past) -> np.ndarray:  # noqa: D102
        lead = past.sums[:, 0] - past.sums[:, 1]
        stake = np.minimum(2.0 * np.abs(lead) + 1.0, self.most)
        return np.where((past.rounds >= self.begin) & (lead > -0.1 * self.most), stake, 1e-3)


def attack_stakes(runs: int, seed: int) -> None:
    """Two equal arms whose level is 0.001 and then rises by orders of magnitude, by plan or as a gambler."""
    time = np.arange(4000)
    rising = np.minimum(1e-3 * 10.0 ** (np.maximum(time - 600, 0) / 120.0), 1e4) * np.sign(np.sin(time**1.3))
    shifts: dict[str, Any] = {"by plan": Replay(rising), "a gambler": LateGambler()}
    mode = Bounded(-1e4 - 1.0, 1e4 + 1.0)
    for name, shift in shifts.items():
        world = Environment(ArmSet.one_hot(2), [0.0, 0.0], shift, Uniform(0.5))
        for goal in ("identify", "earn"):
            for delta in DELTAS:
                policy = AnytimeElimination(delta, goal=goal, confidence=mode, growth=GROWTH)
                few = runs if name == "by plan" else max(runs // 4, 2)
                failed = _ever_wrong(policy, world, 1500, few, seed)
                show(f"stakes × 10⁷, {name}, {goal}, δ = {delta:g}", failed, few, delta)


def attack_jumps(runs: int, seed: int) -> None:
    """All rewards at one end of the range until the pilot is over, then at the other, or at either."""
    time = np.arange(1500)
    for begin in (60, 200):
        levels = {
            "to the other end": np.where(time < begin, -0.499, 0.499),
            "to and fro": np.where(time < begin, -0.4999, 0.4999 * np.sign(np.sin(time**1.3))),
            "to the middle": np.where(time < begin, -0.4999, 0.0),
        }
        for name, level in levels.items():
            world = Environment(ArmSet.one_hot(2), [0.5, 0.5], Replay(level), Bernoulli())
            for delta in DELTAS:
                policy = AnytimeElimination(delta, confidence=Bounded(0.0, 1.0), growth=GROWTH)
                failed = _ever_wrong(policy, world, 1500, runs, seed)
                show(f"a jump {name} after {begin} rounds, δ = {delta:g}", failed, runs, delta)


def attack_theory(runs: int, seed: int) -> None:
    """How often two equal arms fail, beside Brownian motion under the same boundary at the same looks.

    A test that uses its δ fails as often as the boundary is crossed by the motion that it was made for.
    """
    delta = 0.1
    growth = 0.01
    time = np.unique(np.geomspace(1.0, 1000.0, int(np.log(1000.0) / growth)))
    rng = np.random.default_rng(seed)
    # The first batch is a hundredth; the boundary is tightest where stages.py puts it for equal arms.
    for tightest in (20.0, 200.0):
        rho = np.full(len(time), float(tightest_rho(np.array(tightest), np.array(0.96 * delta))))
        tuning = Tuning(np.full(len(time), 0.96 * delta), rho, np.full(len(time), 1e-9), WIDE)
        edge = bets_boundary(Spent(time, np.zeros(len(time)), np.zeros(len(time))), tuning)
        steps = np.sqrt(np.diff(time, prepend=0.0)) * rng.standard_normal((20 * runs, len(time)))
        crossed = int(np.any(np.cumsum(steps, axis=1) > edge, axis=1).sum())
        show(f"Brownian motion, tightest at {tightest:g} first batches", crossed, 20 * runs, delta)
    for name, noise in (("0 and 1", Bernoulli()), ("uniform", Uniform(1.0))):
        means = [0.5, 0.5] if name == "0 and 1" else [0.0, 0.0]
        ends = (0.0, 1.0) if name == "0 and 1" else (-3.0, 3.0)
        world = Environment(ArmSet.one_hot(2), means, Constant(), noise)
        for goal in ("identify", "earn"):
            policy = AnytimeElimination(delta, goal=goal, confidence=Bounded(*ends))
            failed = _ever_wrong(policy, world, 40_000, runs, seed)
            show(f"two equal arms, rewards {name}, {goal}", failed, runs, delta)


# Hints and shapes -------------------------------------------------------------------------------------------


def attack_hints(runs: int, seed: int) -> None:
    """Equal arms and a gap that is expected, wrong by ×1000 both ways; bounded, with bursts, and 0 or 1."""
    time = np.arange(4000)
    burst = np.where(time % 400 < 380, -0.49, 0.0)
    for name, level in (("steady", np.zeros(4000)), ("bursts", burst)):
        for count in (2, 5):
            world = Environment(ArmSet.one_hot(count), [0.5] * count, Replay(level), Bernoulli())
            for expect in (5e-5, 0.05, 50.0):
                for delta in (0.05, 0.5):
                    mode = Bounded(0.0, 1.0)
                    policy = AnytimeElimination(delta, confidence=mode, expect=expect, growth=GROWTH)
                    failed = _ever_wrong(policy, world, 4000, runs, seed)
                    show(f"{name}, {count} arms, expect={expect:g}, δ = {delta:g}", failed, runs, delta)


def attack_shapes(runs: int, seed: int) -> None:
    """Arms of one shape, clipped where the tails begin: the best is lost; a live interval misses the gap."""
    for clip in (0.5, 2.0, 10.0):
        for delta in (0.05, 0.5):
            world = Environment(ArmSet.one_hot(3), [0.0, 0.0, -1.0], Constant(), StudentT(2.5))
            policy = AnytimeElimination(delta, confidence=SameShape(clip))
            failed = _ever_wrong(policy, world, 2000, runs, seed)
            show(f"Student, 2.5 degrees of freedom, clip {clip:g}, δ = {delta:g}", failed, runs, delta)
    wrong = spoke = 0
    few = max(runs // 20, 4)
    for run in range(few):
        rng = np.random.default_rng([seed, run])
        policy = AnytimeElimination(confidence=SameShape(1.0))
        live = Experiment.memory(ArmSet.one_hot(2), policy, rewards="unknown", key=rng.bytes(16).hex())
        is_wrong = False
        for _ in range(20):
            shown = live.ask_many(50)
            arms = np.array([one.arm for one in shown])
            noise = rng.exponential(2.0, 50)  # skewed, and the same for both
            live.tell_many([one.id for one in shown], 1.5 * arms + noise)
            arm = live.report().arms[1]
            is_wrong |= _misses((arm.low, arm.high), 1.5)
        wrong += is_wrong
        spoke += arm.low is not None
    show("live intervals of exponential arms 1.5 apart, clip 1", wrong, few, 0.05, f"{spoke} say something")


# Lopsided plans ---------------------------------------------------------------------------------------------


def attack_lopsided(runs: int, seed: int) -> None:
    """Draw an arm once in a thousand rounds, with all of the rewards or as many as the other."""
    arms = ArmSet.one_hot(2)
    p = np.array([0.999, 0.001])
    ends = np.unique(np.geomspace(50, 200_000, 60).astype(int))
    sizes = np.diff(ends, prepend=0)
    rates = {"rewards of the rare arm alone": (0.0, 0.9), "equal": (0.5, 0.5), "equal and rare": (0.01, 0.01)}
    for name, rate in rates.items():
        for is_hostile in (False, True):
            for delta in DELTAS:
                wrong = 0
                for run in range(runs):
                    rng = np.random.default_rng([seed, run])
                    sequence = ContrastSequence.start(arms, [[1, 0]], Bounded(0.0, 1.0), delta, noise=0.25)
                    lucky = 0.0
                    for size in sizes.tolist():
                        counts = np.array([0, rng.binomial(size, p[1])])
                        counts[0] = size - counts[1]
                        ones = rng.binomial(counts, rate).astype(float)
                        # A forecast from earlier rounds that makes the past's luck last, or the mean.
                        level = float(lucky > 0) if is_hostile else rate[0]
                        sums = ones - level * counts
                        squares = ones * (1 - level) ** 2 + (counts - ones) * level**2
                        most = np.where(ones > 0, 1 - level, 0.0)
                        most = np.maximum(most, np.where(counts > ones, level, 0.0))
                        tally = Tally(counts, sums, squares, most)
                        sequence = sequence.add(Plan(p, size, sequence.centre()), tally)
                        lucky += counts[1] / p[1] - counts[0] / p[0]
                        (low,), (high,) = sequence.intervals()
                        if not low <= rate[1] - rate[0] <= high:
                            wrong += 1
                            break
                how = "a hostile forecast" if is_hostile else "its level"
                show(f"0.999 : 0.001, {name}, {how}, δ = {delta:g}", wrong, runs, delta)


# Rewards at the deadline ------------------------------------------------------------------------------------


def _tell(experiment: Experiment, number: int) -> bool:
    """Tell a sale, and return whether it came in time."""
    try:
        experiment.tell(number, 1.0)
    except ClosedError:
        return False
    return True


class _Clock:
    def __init__(self) -> None:
        self.now = 1e9

    def __call__(self) -> float:
        return self.now


def _last_moment(folder: str, delta: float, seed: tuple[int, int]) -> tuple[bool, int, int]:
    """Return whether an interval was ever wrong, how many sales were told, and how many of them too late."""
    rng = np.random.default_rng(seed)
    clock = _Clock()
    path = Path(folder) / "run.db"
    live = Experiment.create(
        path,
        ArmSet.one_hot(2),
        AnytimeElimination(delta, rewards=(0, 1)),
        rewards=(0, 1),
        window=100.001,
        clock=clock,
        key=rng.bytes(16).hex(),
    )
    waiting: list[tuple[float, int, int]] = []
    is_wrong = False
    told = late = 0
    for step in range(30):
        # Nobody says anything of the other 60 %; silence is 0.
        sales = [one for one in live.ask_many(40) if rng.random() < 0.4]
        waiting += [(clock.now + 100.0, 1 - one.arm, one.id) for one in sales]
        clock.now += 50.0
        due = sorted((one for one in waiting if one[0] <= clock.now), key=lambda one: one[1])
        waiting = [one for one in waiting if one[0] > clock.now]
        answers = [_tell(live, number) for _, _, number in due]
        told += len(answers)
        late += answers.count(False)
        before = live.report().to_json()
        if step % 7 == 3:
            live.close()
            live = Experiment.open(path, clock=clock)
        report = live.report()
        if report.to_json() != before:
            print("    reopened, the report says another thing", flush=True)
            is_wrong = True
        is_wrong |= _misses((report.arms[1].low, report.arms[1].high), 0.0)
    live.close()
    return is_wrong, told, late


def attack_deadlines(runs: int, seed: int) -> None:
    """Sales of equal arms told in the last moment of their window, by arm; the store is reopened."""
    delta = 0.2
    wrong = told = late = 0
    for run in range(runs):
        with TemporaryDirectory() as folder:
            is_wrong, some, refused = _last_moment(folder, delta, (seed, run))
        wrong += is_wrong
        told += some
        late += refused
    show("sales told in the last moment", wrong, runs, delta, f"{late} of {told} were too late")


# Looks at a log ---------------------------------------------------------------------------------------------


def attack_atoms(runs: int, seed: int) -> None:
    """Quantiles of whole numbers with ties, equal arms under a ramp, one of them shown late; six looks."""
    day = np.arange(4500) // 150
    for kind in ("a ramp", "an arm that comes late"):
        for level, values in ((0.5, "0 or 1"), (0.5, "Poisson"), (0.9, "Poisson")):
            for fixed in (False, True):
                wrong = 0
                for run in range(runs):
                    rng = np.random.default_rng([seed, run])
                    share = np.linspace(0.1, 0.6, 30)[day]
                    if kind == "an arm that comes late":
                        share = np.where(day < 15, 0.0, 0.5)
                    arm = (rng.random(4500) < share).astype(int)
                    mean = np.where(day < 15, 0.4, 0.6)
                    paid = rng.random(4500) < mean if values == "0 or 1" else rng.poisson(5 * mean)
                    columns = {
                        "day": day,
                        "arm": np.array(["arm 0", "arm 1"])[arm],
                        "p0": 1 - share,
                        "p1": share,
                        "paid": paid.astype(float),
                    }
                    asked: Document = {
                        "arm": "arm",
                        "reward": "paid",
                        "time": "day",
                        "probabilities": ["p0", "p1"],
                        "metrics": {"paid": Quantile(level, tuple(np.arange(-0.5, 9.0, 0.5)))},
                        "fixed": fixed,
                        "delta": 0.1,
                    }
                    is_wrong = False
                    for until in (30,) if fixed else (5, 20, 25, 30):
                        some = {name: column[day < until] for name, column in columns.items()}
                        found = analyse(pyarrow.table(some), **asked).metrics[-1]
                        low, high = found.effects[1].interval
                        # The ends are open below: a quantile is above its lower end.
                        is_wrong |= (low is not None and low >= 0) or (high is not None and high < 0)
                    wrong += is_wrong
                when = "one look" if fixed else "four looks"
                show(f"{values}, τ = {level}, {kind}, {when}", wrong, runs, found.delta)


def attack_tiny_levels(runs: int, seed: int) -> None:
    """Lifts at one look where the reference arm earns next to nothing, or rarely much; margins at the gap."""
    rows = 3000
    worlds = {
        "rates of 0.4 %": (0.004, "rate"),
        "rates of 1 %": (0.01, "rate"),
        "one in 50 pays exponentially": (0.02, "exponential"),
        "one in 50 pays lognormally": (0.02, "lognormal"),
        "around a level of 0.02 σ": (0.02, "normal"),
        "around a level of 0.2 σ": (0.2, "normal"),
    }
    for name, (rate, kind) in worlds.items():
        for share in (0.5, 0.1):
            wrong = spoke = shown = 0
            for run in range(runs):
                rng = np.random.default_rng([seed, run])
                arm = (rng.random(rows) < share).astype(int)
                paid = (rng.random(rows) < rate).astype(float)
                if kind == "exponential":
                    paid *= rng.exponential(1.0, rows)
                if kind == "lognormal":
                    paid *= rng.lognormal(0.0, 1.0, rows)
                if kind == "normal":
                    paid = rate + rng.standard_normal(rows)
                # Arm 1 is lower by exactly the margin: "not worse by more" is false, just.
                gap = 0.1 * rate
                log = pyarrow.table(
                    {
                        "day": np.arange(rows) // 100,
                        "arm": np.array(["arm 0", "arm 1"])[arm],
                        "paid": paid,
                        "kept": paid - gap * arm,
                    }
                )
                found = analyse(
                    log,
                    arm="arm",
                    reward="paid",
                    time="day",
                    split={"arm 0": 1 - share, "arm 1": share},
                    metrics=["kept"],
                    noninferiority={"kept": -gap},
                    fixed=True,
                    delta=0.1,
                )
                lift = found.metrics[0].effects[1].lift
                wrong += _misses(lift, 0.0)
                spoke += lift != (None, None)
                shown += found.noninferiority[0].status != "not yet"
            delta = found.metrics[0].delta
            show(f"{name}, {share:.0%} of rows: lift", wrong, runs, delta, f"{spoke} say something")
            show("  a margin that is the gap: shown or refuted", shown, runs, delta)


def attack_discoveries(runs: int, seed: int) -> None:
    """Compare rules in ten segments whose rewards one wave moves: the mean share of false discoveries."""
    pages = Interactions(["A", "B"], context=["age"])
    rules = {"A for all": "A", "B for all": "B"}
    segments = {f"age {k}": (lambda offer, k=k: offer.context["age"] == k) for k in range(10)}
    delta = 0.2
    shares = []
    wrong = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        found = SegmentComparison.start(
            rules, segments, reference="A for all", confidence=Bounded(0.0, 1.0), floor=0.5, delta=delta
        )
        offers = [pages.offer({"age": float(k)}) for k in range(10)]
        wave = rng.random(1500)
        for turn in range(1500):
            age = int(rng.integers(10))
            arm = int(rng.integers(2))
            # B is better in two segments, and in the others as good as A.
            mean = 0.1 + 0.3 * wave[turn // 10] + 0.5 * (arm == 1 and age < 2)
            found = found.add(offers[age], Plan([0.5, 0.5], 1), arm, float(rng.random() < mean))
        listed = found.discoveries()
        false = sum(one.segment not in ("age 0", "age 1") for one in listed)
        shares.append(false / max(len(listed), 1))
        gains = [gain for gains in found.gains().values() for gain in gains if gain.rounds]
        truths = [
            0.5 if name in ("age 0", "age 1") else 0.0 for name, one in found.gains().items() if one[0].rounds
        ]
        wrong += any(not gain.low <= truth <= gain.high for gain, truth in zip(gains, truths, strict=True))
    show("an interval of some segment at the last look", wrong, runs, delta)
    show(
        "runs with a false discovery",
        sum(one > 0 for one in shares),
        runs,
        delta,
        f"mean {np.mean(shares):.3f}",
    )


# Units ------------------------------------------------------------------------------------------------------


def _said(features: np.ndarray, offset: float, unit: float, seed: int) -> list[Any]:
    """Return what a live experiment with bounds says, in units of its rewards."""
    rng = np.random.default_rng(seed)
    means = np.linspace(0.2, 0.7, len(features))
    live = Experiment.memory(ArmSet(features), rewards=(offset, offset + unit), key=f"{seed:032x}")
    said: list[Any] = []
    for _ in range(12):
        shown = live.ask_many(40)
        arms = np.array([one.arm for one in shown])
        ones = (rng.random(40) < means[arms]).astype(float)
        live.tell_many([one.id for one in shown], offset + unit * ones)
        report = live.report()
        ends = [None if end is None else end / unit for arm in report.arms for end in (arm.low, arm.high)]
        said.append((arms.tolist(), report.declared, tuple(report.alarms), ends))
    return said


def attack_magnitudes(runs: int, seed: int) -> None:
    """Rewards of 10¹² and 10⁻¹², 10⁹ to 10⁹ + 0.001, features of 10¹⁵⁰ and 10⁻¹⁴⁸: something else is said."""
    few = max(runs // 40, 2)
    base = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    changes: dict[str, tuple[float, float, float]] = {
        "rewards of 10¹²": (0.0, 1e12, 1.0),
        "rewards of 10⁻¹²": (0.0, 1e-12, 1.0),
        "rewards of 10⁹⁹": (0.0, 1e99, 1.0),
        "rewards of 10⁹ to 10⁹ + 0.001": (1e9, 1e-3, 1.0),
        "features × 10¹⁵⁰": (0.0, 1.0, 1e150),
        "features × 10⁻¹⁴⁸": (0.0, 1.0, 1e-148),
    }
    for name, (offset, unit, scale) in changes.items():
        differ = 0
        tolerance = 2e-2 if offset else 1e-6
        for run in range(few):
            plain = _said(base, 0.0, 1.0, seed + run)
            try:
                moved = _said(scale * base, offset, unit, seed + run)
            except Exception as error:
                print(f"    {name}: {error!r}", flush=True)
                differ += 1
                continue
            differ += any(
                one[:3] != other[:3]
                or any(
                    (a is None) != (b is None) or (a is not None and abs(a - b) > tolerance)
                    for a, b in zip(one[3], other[3], strict=True)
                )
                for one, other in zip(plain, moved, strict=True)
            )
        show(f"live, {name}: says another thing", differ, few, 0.0)


ATTACKS: dict[str, Callable[[int, int], None]] = {
    "stakes": attack_stakes,
    "jumps": attack_jumps,
    "theory": attack_theory,
    "hints": attack_hints,
    "shapes": attack_shapes,
    "lopsided": attack_lopsided,
    "deadlines": attack_deadlines,
    "atoms": attack_atoms,
    "levels": attack_tiny_levels,
    "discoveries": attack_discoveries,
    "magnitudes": attack_magnitudes,
}


if __name__ == "__main__":
    play_named(ATTACKS, runs=100, seed=2031)
