"""Attacks on what is claimed: worlds built to make intervals, winners and certificates wrong.

``python -m benchmarks.attack_claims NAME [RUNS [SEED]]`` plays one attack through the public interface, with
checks that share no code with the tests, and prints a line a case: runs, failures, the promised rate, and
the exact binomial probability of so many failures or more if the promise is kept. Without NAME it lists the
attacks. docs/measured.md has their numbers.
"""

import ast
import html
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow
from scipy.stats import binomtest

from benchmarks.bench_rare import main as bench_rare
from orthobandit import (
    Analysis,
    AnytimeElimination,
    ArmSet,
    Bounded,
    Environment,
    Experiment,
    Guardrail,
    Metric,
    SubGaussian,
    Tally,
    analyse,
)
from orthobandit.experiment.settings import Silence
from orthobandit.logs import Ratio
from orthobandit.peers import named_policy
from orthobandit.policy import Policy
from orthobandit.simulation import Bernoulli, Replay, misses
from orthobandit.verify import canonical, digest, heads, verify

DAYS = 30
Rows = dict[str, np.ndarray]
Way = tuple[Any, ...]  # keys and indices that lead to a part of a certificate
Document = dict[str, Any]  # what was read from JSON, or is asked of a log


def show(case: str, failed: int, runs: int, rate: float, more: str = "") -> None:
    """Print a case: the probability is one-sided, of `failed` or more of `runs`."""
    p = binomtest(failed, runs, rate, alternative="greater").pvalue if runs and 0 < rate < 1 else float("nan")
    print(f"{case:58} {failed:4} of {runs:4}  promised {rate:.4g}  p = {p:.3g}  {more}", flush=True)


# Ratios -----------------------------------------------------------------------------------------------------
# In all worlds the expected numerator is, for every arm and at every moment, the same multiple of the
# expected denominator, and an arm changes its denominator by the same factor at all times. So all arms have
# the same ratio over any rows, and every difference is 0.


def _drawn(rng: np.random.Generator, shares: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return day and arm of rows, evenly over the days, drawn from the distribution (days, K) of each day."""
    day = np.repeat(np.arange(len(shares)), rows // len(shares))
    edges = np.cumsum(shares, axis=1)[day]
    return day, (rng.random(len(day))[:, np.newaxis] > edges[:, :-1]).sum(axis=1)


def _ramp(low: float = 0.1, high: float = 0.5) -> np.ndarray:
    share = np.linspace(low, high, DAYS)
    return np.column_stack([1 - share, share])


def _rows(day: np.ndarray, arm: np.ndarray, shares: np.ndarray, **columns: np.ndarray) -> Rows:
    names = np.array([f"arm {place}" for place in range(shares.shape[1])])
    chances = {f"p{place}": shares[day, place] for place in range(shares.shape[1])}
    return {"day": day, "arm": names[arm], **chances, **columns}


def shared_user(rng: np.random.Generator, rows: int) -> Rows:
    """Numerator and denominator share a lognormal factor; the ratio doubles half-way through a ramp."""
    shares = _ramp()
    day, arm = _drawn(rng, shares, rows)
    user = rng.lognormal(0.0, 1.0, len(day))
    below = rng.poisson(user * np.where(arm == 1, 4.0, 2.0)).astype(float)
    above = rng.poisson(user * np.where(arm == 1, 4.0, 2.0) * np.where(day < DAYS // 2, 1.0, 2.0))
    return _rows(day, arm, shares, above=above.astype(float), below=below)


def pareto(rng: np.random.Generator, rows: int) -> Rows:
    """Pareto denominators with exponent 2.2, of which a beta-distributed share is the numerator."""
    shares = _ramp()
    day, arm = _drawn(rng, shares, rows)
    below = (1 + rng.pareto(2.2, len(day))) * np.where(arm == 1, 3.0, 1.0)
    level = 0.3 + 0.4 * day / DAYS
    return _rows(day, arm, shares, above=below * rng.beta(2 * level, 2 * (1 - level)), below=below)


def mostly_nothing(rng: np.random.Generator, rows: int) -> Rows:
    """Seven rows of ten have no denominator; what an item is worth is lognormal and doubles."""
    shares = _ramp()
    day, arm = _drawn(rng, shares, rows)
    below = (rng.random(len(day)) < np.where(arm == 1, 0.3, 0.15)) * (1.0 + rng.poisson(0.5, len(day)))
    above = below * rng.lognormal(0.0, 1.0, len(day)) * np.where(day < DAYS // 2, 1.0, 2.0)
    return _rows(day, arm, shares, above=above, below=below)


def around_zero(rng: np.random.Generator, rows: int) -> Rows:
    """Refunds: numerators fall as denominators rise, and the ratio crosses 0."""
    shares = _ramp()
    day, arm = _drawn(rng, shares, rows)
    below = rng.gamma(2.0, np.where(arm == 1, 2.0, 1.0))
    mean = np.where(arm == 1, 4.0, 2.0)
    above = (day / DAYS - 0.5) * mean - 1.5 * (below - mean) + rng.standard_normal(len(day))
    return _rows(day, arm, shares, above=above, below=below)


def split_follows_ratio(rng: np.random.Generator, rows: int) -> Rows:
    """Half of the traffic goes to the new arm on days of a high ratio, and a tenth on others."""
    high = np.arange(DAYS) % 2 == 0
    share = np.where(high, 0.5, 0.1)
    shares = np.column_stack([1 - share, share])
    day, arm = _drawn(rng, shares, rows)
    below = rng.gamma(1.0, np.where(arm == 1, 3.0, 1.0))
    above = below * np.where(high[day], 3.0, 1.0) * rng.gamma(2.0, 0.5, len(day))
    return _rows(day, arm, shares, above=above, below=below)


def one_heavy_arm(rng: np.random.Generator, rows: int) -> Rows:
    """Denominators have the same mean, exponential with one arm and lognormal with σ = 1.5 with the other."""
    shares = _ramp()
    day, arm = _drawn(rng, shares, rows)
    heavy = rng.lognormal(-(1.5**2) / 2, 1.5, len(day))
    below = np.where(arm == 1, heavy, rng.exponential(1.0, len(day)))
    level = 1 + 0.5 * np.sin(day / 4)
    return _rows(day, arm, shares, above=level * below + rng.standard_normal(len(day)), below=below)


def bots(rng: np.random.Generator, rows: int) -> Rows:
    """One row in 300 has 150 items and nearly no sale per item; the other rows make up for it."""
    shares = _ramp()
    day, arm = _drawn(rng, shares, rows)
    is_bot = rng.random(len(day)) < 1 / 300
    below = np.where(is_bot, 150.0, 1.0 + rng.poisson(1.0, len(day))) * np.where(arm == 1, 2.0, 1.0)
    mean = (150 / 300 + 2 * 299 / 300) * np.where(arm == 1, 2.0, 1.0)
    above = np.where(is_bot, 0.0, 0.5 * mean * 300 / 299 * rng.gamma(2.0, 0.5, len(day)))
    return _rows(day, arm, shares, above=above, below=below)


def three_arms(rng: np.random.Generator, rows: int) -> Rows:
    """Three arms with 1, 2 and 5 times the denominator; the second ramps up while the third ramps down."""
    first = np.linspace(0.1, 0.5, DAYS)
    shares = np.column_stack([np.full(DAYS, 0.4), first, 0.6 - first])
    day, arm = _drawn(rng, shares, rows)
    user = rng.lognormal(0.0, 0.7, len(day))
    below = user * np.array([1.0, 2.0, 5.0])[arm]
    above = below * (1 + day / DAYS) * rng.lognormal(-0.125, 0.5, len(day))
    return _rows(day, arm, shares, above=above, below=below)


RATIOS = (
    shared_user,
    pareto,
    mostly_nothing,
    around_zero,
    split_follows_ratio,
    one_heavy_arm,
    bots,
    three_arms,
)


def _misses(interval: tuple[float | None, float | None], truth: float) -> bool:
    low, high = interval
    return (low is not None and low > truth) or (high is not None and high < truth)


def _table(rows: Rows, until: int = DAYS) -> pyarrow.Table:
    kept = rows["day"] < until
    return pyarrow.table({name: column[kept] for name, column in rows.items()})


def _asked(rows: Rows, **more: Any) -> Document:
    chances = sorted(name for name in rows if name.startswith("p") and name[1:].isdigit())
    return {"arm": "arm", "reward": "above", "time": "day", "probabilities": chances, **more}


def _wrong_ratio(found: Analysis, truth: float = 0.0) -> tuple[bool, bool, float]:
    """Return whether an interval of the ratio is wrong, whether any says something, and the promised rate."""
    ratio = found.metrics[1]
    shown = [one for one in (*ratio.effects, *ratio.against_best) if one.arm != one.over]
    speaks = any(end is not None for one in shown for end in one.interval)
    return any(_misses(one.interval, truth) for one in shown), speaks, ratio.delta


def attack_ratios(runs: int, seed: int) -> None:
    """Ratios that are the same for all arms: one look at 1,500 and 6,000 rows, and six looks at a log."""
    for world in RATIOS:
        for rows, count in ((1500, runs), (6000, max(runs // 2, 1))):
            wrong = spoke = 0
            for run in range(count):
                log = world(np.random.default_rng([seed, rows, run]), rows)
                asked = _asked(log, ratios=[Ratio("above", "below")], fixed=True, delta=0.1)
                is_wrong, speaks, rate = _wrong_ratio(analyse(_table(log), **asked))
                wrong += is_wrong
                spoke += speaks
            show(f"{world.__name__}, one look, {rows} rows", wrong, count, rate, f"{spoke} say something")
        few = max(runs // 5, 1)
        wrong = spoke = 0
        for run in range(few):
            log = world(np.random.default_rng([seed, 1, run]), 12_000)
            asked = _asked(log, ratios=[Ratio("above", "below")], delta=0.1)
            looks = [_wrong_ratio(analyse(_table(log, day), **asked)) for day in range(5, DAYS + 1, 5)]
            wrong += any(look[0] for look in looks)
            spoke += any(look[1] for look in looks)
        show(f"{world.__name__}, six looks, 12,000 rows", wrong, few, looks[0][2], f"{spoke} say something")


# Lifts ------------------------------------------------------------------------------------------------------


def _lifted(
    rng: np.random.Generator, rows: int, factors: np.ndarray, level: np.ndarray, shares: np.ndarray, kind: str
) -> Rows:
    """Return rows whose mean is the level of the day times the factor of the arm."""
    day, arm = _drawn(rng, shares, rows)
    mean = level[day] * factors[arm]
    if kind == "rate":
        return _rows(day, arm, shares, above=(rng.random(len(day)) < mean).astype(float))
    if kind == "lognormal":
        return _rows(day, arm, shares, above=mean * rng.lognormal(-0.5, 1.0, len(day)))
    if kind == "rare":
        return _rows(
            day, arm, shares, above=(rng.random(len(day)) < 0.1) * mean * 10 * rng.exponential(1.0, len(day))
        )
    return _rows(day, arm, shares, above=mean + rng.standard_normal(len(day)))


def attack_lifts(runs: int, seed: int) -> None:
    """Arms that multiply a moving level, under a ramp: the lift is the factor less 1, over any rows."""
    days = np.arange(DAYS)
    moving = 1 + 0.8 * np.sin(days / 5)
    third = np.column_stack([np.full(DAYS, 0.4), _ramp()[:, 1], 0.6 - _ramp()[:, 1]])
    cases = {
        "rate that falls from 0.4 to 0.04, +20 %": (
            np.array([1, 1.2]),
            np.linspace(0.4, 0.04, DAYS),
            _ramp(),
            "rate",
        ),
        "rate of 0.03 to 0.003, equal": (np.ones(2), np.linspace(0.03, 0.003, DAYS), _ramp(), "rate"),
        "lognormal, level 0.2 to 1.8, +20 %": (np.array([1, 1.2]), moving, _ramp(), "lognormal"),
        "one row in ten pays, +50 %": (np.array([1, 1.5]), moving, _ramp(), "rare"),
        "noise of σ = 1, level 0.2 to 1.8, −40 %": (np.array([1, 0.6]), moving, _ramp(), "normal"),
        "three arms, lognormal, 0 and +30 %": (np.array([1, 1, 1.3]), moving, third, "lognormal"),
        "rate, a jump where the split jumps, equal": (
            np.ones(2),
            np.where(days < 15, 0.3, 0.03),
            np.where(days[:, np.newaxis] < 15, [[0.9, 0.1]], [[0.5, 0.5]]),
            "rate",
        ),
    }
    for name, (factors, level, shares, kind) in cases.items():
        # A rate has two modes: one for 0 and 1 declared, one for unknown bounds.
        for bounds in ((0, 1), None) if kind == "rate" else (None,):
            said = ", declared" if bounds else ""
            for is_once, rows in ((True, 2000), (False, 12_000)):
                count = runs if is_once else max(runs // 5, 1)
                wrong = spoke = 0
                for run in range(count):
                    log = _lifted(
                        np.random.default_rng([seed, rows, run]), rows, factors, level, shares, kind
                    )
                    asked = _asked(log, fixed=is_once, bounds=bounds)
                    looks = [DAYS] if is_once else range(5, DAYS + 1, 5)
                    shown = [analyse(_table(log, day), **asked).metrics[0].effects for day in looks]
                    each = [
                        (one.lift, factors[int(one.arm[-1])] - 1)
                        for look in shown
                        for one in look
                        if one.arm != one.over
                    ]
                    wrong += any(_misses(lift, truth) for lift, truth in each)
                    spoke += any(end is not None for lift, _ in each for end in lift)
                when = f"one look, {rows} rows" if is_once else "six looks, 12,000 rows"
                show(f"{name}{said}: {when}", wrong, count, 0.05, f"{spoke} say something")


# Certificates -----------------------------------------------------------------------------------------------
# Genuine certificates are made through the public interface. A forger then changes a field, or the order of
# entries, makes all hashes fit again and, where that could help, computes the claim that follows.


def _play(
    experiment: Experiment,
    rng: np.random.Generator,
    means: list[float],
    batches: int,
    seconds: list[float] | None = None,
) -> None:
    """Ask for batches of 40 and tell them."""
    chance = np.array(means)
    for _ in range(batches):
        shown = experiment.ask_many(40)
        arms = np.array([one.arm for one in shown])
        rewards = (rng.random(40) < chance[arms]).astype(float)
        told: Any = rewards
        if seconds is not None:
            told = {"reward": rewards, "seconds": rng.random(40) + np.array(seconds)[arms]}
        experiment.tell_many([one.id for one in shown], told)


def _decision(kind: str, seed: int = 0) -> Document:
    """Return a genuine certificate of a live experiment."""
    rng = np.random.default_rng([seed, len(kind)])
    arms = ArmSet.one_hot(3, labels=["old", "new", "best"])
    means = [0.2, 0.25, 0.5]
    if kind == "exact":
        run = Experiment.memory(arms, rewards=(0, 1), key="3" * 32)
        _play(run, rng, means, 20)
    elif kind == "asymptotic":
        run = Experiment.memory(arms, rewards="unknown", key="3" * 32)
        _play(run, rng, means, 20)
    elif kind == "exact, arms come and go":
        run = Experiment.memory(arms, rewards=(0, 1), key="4" * 32)
        _play(run, rng, means, 6)
        run.retire("old")
        _play(run, rng, means, 3)
        run.extend(ArmSet.one_hot(4, labels=["old", "new", "best", "late"]))
        _play(run, rng, [*means, 0.7], 20)
    elif kind == "within epsilon, features":
        square = ArmSet([[0, 0], [1, 0], [0, 1], [1, 1]], labels=["none", "red", "large", "both"])
        policy = AnytimeElimination(rewards=(0, 1), epsilon=0.2, goal="earn")
        run = Experiment.memory(square, policy, key="5" * 32)
        _play(run, rng, [0.2, 0.3, 0.4, 0.5], 30)
    else:
        run = Experiment.memory(
            arms,
            rewards=(0, 1),
            key="6" * 32,
            metrics=[Metric("seconds", rewards=(0, 5))],
            guardrails=[Guardrail("seconds", margin=0.5, worse="higher")],
        )
        _play(run, rng, means, 12 if kind == "guardrail holds back" else 60, [0.0, 2.0, 0.2])
    return run.certificate().document


def _log_certificate(kind: str, seed: int = 0) -> Document:
    """Return a genuine certificate of a log."""
    rng = np.random.default_rng([seed, len(kind)])
    if kind == "log with a ratio":
        log = three_arms(rng, 1500)
        asked = _asked(log, ratios=[Ratio("above", "below")])
    else:
        shares = np.column_stack([np.full(DAYS, 0.4), _ramp()[:, 1], 0.6 - _ramp()[:, 1]])
        kinds = "rate" if kind == "exact log" else "normal"
        log = _lifted(rng, 1500, np.array([1, 1, 1.8]), np.linspace(0.2, 0.5, DAYS), shares, kinds)
        asked = _asked(log, bounds=(0, 1) if kind == "exact log" else None)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "certificate.json"
        analyse(_table(log), **asked).save(path)
        document: Document = json.loads(path.read_text())
        return document


DECISIONS = (
    "exact",
    "asymptotic",
    "exact, arms come and go",
    "within epsilon, features",
    "guardrail holds back",
    "guardrail has cleared",
)
LOGS = ("exact log", "asymptotic log", "log with a ratio")


def certificates() -> dict[str, Document]:
    """Return genuine certificates by name, each checked to be valid."""
    made = {kind: _decision(kind) for kind in DECISIONS} | {kind: _log_certificate(kind) for kind in LOGS}
    for kind, document in made.items():
        verdict = verify(document)
        if not verdict.valid:
            raise AssertionError((kind, verdict.problems))
    return made


def _seal(document: Document) -> Document:
    *_, document["head"] = heads(document["settings"], document["entries"])
    document["digest"] = digest(document)
    return document


def _leaves(part: Any, way: Way = ()) -> Iterator[Way]:
    """Yield the way to every part, containers too."""
    if way:
        yield way
    if isinstance(part, dict):
        for name in part:
            yield from _leaves(part[name], (*way, name))
    if isinstance(part, list):
        for place, one in enumerate(part):
            yield from _leaves(one, (*way, place))


MISSING = object()


def _hostile(value: Any) -> list[Any]:
    """Return what a forger may put in the place of a value."""
    odd: list[Any] = [
        float("nan"),
        float("inf"),
        -float("inf"),
        True,
        False,
        None,
        10**400,
        -(10**30),
        "",
        "1",
        "nan",
        [],
        {},
    ]
    odd += [[value], {"value": value}, MISSING, 1e308, 5e-324, -0.0]
    if isinstance(value, int | float) and not isinstance(value, bool):
        odd += [value + 1, value - 1, -value, 2 * value, value / 2, value * 1.01, value + 1e-3, str(value)]
        odd += [float(value) * (1 + 1e-5), value + 0.2]
    if isinstance(value, str):
        odd += [value + " ", value.upper(), value[::-1], value.encode().hex()]
    if isinstance(value, list) and value:
        odd += [value[::-1], value[1:], value[:-1], value + value[:1], value * 2, [value[0]] * len(value)]
    return [one for one in odd if one is MISSING or type(one) is not type(value) or one != value]


def _changed(document: Document, way: Way, value: Any) -> Document:
    forged = deepcopy(document)
    place = forged
    for key in way[:-1]:
        place = place[key]
    if value is MISSING:
        del place[way[-1]]
    else:
        place[way[-1]] = deepcopy(value)
    return forged


def _plain(claim: Any) -> str:
    """Return a claim as text: numbers to five digits; 0, False and what is empty are the same."""
    if isinstance(claim, str | list | dict | int | float) and not claim:
        return "empty"
    if claim in (None, float("inf"), -float("inf")):
        return "None"
    if isinstance(claim, dict):
        return "{" + ", ".join(f"{name}: {_plain(part)}" for name, part in claim.items()) + "}"
    if isinstance(claim, list):
        return "[" + ", ".join(map(_plain, claim)) + "]"
    return f"{float(claim) + 0.0:.5g}" if isinstance(claim, int | float) else repr(claim)


def attack_mutants(runs: int, seed: int) -> None:
    """Single fields of genuine certificates changed to something hostile, RUNS a certificate."""
    rng = np.random.default_rng(seed)
    for kind, document in certificates().items():
        said = (verify(document).claim, _plain(document["claim"]))
        # A field of the same name and kind of entry in another place is the same target.
        targets: dict[Way, list[Way]] = {}
        for way in _leaves({name: document[name] for name in ("settings", "entries", "claim")}):
            name = tuple("*" if isinstance(key, int) else key for key in way)
            entry = document["entries"][way[1]]["entry"] if way[0] == "entries" and len(way) > 1 else ""
            targets.setdefault((entry, *name), []).append(way)
        names = sorted(targets, key=str)
        survived, crashed, refused = [], [], 0
        for run in range(runs):
            ways = targets[names[run % len(names)]]
            way = ways[int(rng.integers(len(ways)))]
            value = document
            for key in way:
                value = value[key]
            choices = _hostile(value)
            odd = choices[int(rng.integers(len(choices)))]
            forged = _changed(document, way, odd)
            try:
                is_whole = isinstance(forged.get("entries"), list) and "settings" in forged
                verdict = verify(_seal(forged) if is_whole else forged)
            except Exception as error:
                crashed.append((way, str(odd)[:30], repr(error)[:80]))
                continue
            refused += not verdict.valid
            if verdict.valid and (verdict.claim, _plain(forged["claim"])) != said:
                survived.append((way, str(odd)[:40]))
        show(f"{kind}: fields changed", len(survived), runs, 0.0, f"{refused} refused, {len(crashed)} crash")
        for one in (*survived[:8], *crashed[:8]):
            print("    ", one, flush=True)


def claim_that_follows(document: Document) -> Document:
    """Put the claim into a forged certificate that its entries lead to, as far as the verifier says it."""
    forged = document
    for _ in range(6):
        problems = verify(_seal(forged)).problems
        if any(problem.startswith(("entry", "the claim cannot", "the log ends")) for problem in problems):
            break  # no claim mends these
        before = canonical(forged["claim"])
        for problem in problems:
            _amend(forged["claim"], problem)
        if canonical(forged["claim"]) == before:
            break
    return forged


def _amend(claim: Document, problem: str) -> None:
    """Change a claim as a problem says it should be."""
    number = r"(-?[0-9.e+-]+|-?inf|nan)"
    patterns = {
        r"^what '(.*)' may lead '.*' by is claimed to be .*; recomputed it is " + number: ("bounds",),
        r"^ε is claimed to be .*; recomputed it is ()" + number: ("epsilon",),
        r"^(survivors|dropped|retired|leader|declared|held) is claimed to be .*; recomputed it is (.*)$": (),
        r"^the (sentence) is .*; the numbers say (.*)$": (),
        r"^the gap of '(.*)' is claimed to be .*; recomputed it is " + number: ("gaps", "estimate"),
        r"^the lower end of '(.*)' is claimed to be .*; recomputed it is " + number: ("gaps", "low"),
        r"^the upper end of '(.*)' is claimed to be .*; recomputed it is " + number: ("gaps", "high"),
        r"^'(.*)' is claimed to be .*; its interval says (better|worse|undecided)$": ("gaps", "verdict"),
    }
    for pattern, where in patterns.items():
        found = re.match(pattern, problem)
        if not found:
            continue
        name, text = found.groups()
        value: Any = text
        if where != ("gaps", "verdict"):
            value = None if text in ("inf", "-inf") else ast.literal_eval(text)
        if where == ():
            claim[name] = value
        elif where == ("epsilon",):
            claim["epsilon"] = value
        elif where == ("bounds",):
            claim["bounds"][name] = value
        else:
            next(gap for gap in claim["gaps"] if gap["arm"] == name)[where[1]] = value


def _numbered(entries: list[Document]) -> list[Document]:
    """Return entries whose plans, distributions and buckets are numbered without gaps."""
    entries = deepcopy(entries)
    known: dict[int, int] = {}
    plan = bucket = 0
    for entry in entries:
        if entry["entry"] == "plan":
            plan += 1
        if "plan" in entry:
            entry["plan"] = plan
        if entry["entry"] in ("plan", "distribution"):
            known[entry["distribution"]] = len(known) + 1
        if "distribution" in entry:
            entry["distribution"] = known.get(entry["distribution"], entry["distribution"])
        if entry["entry"] == "bucket":
            bucket += 1
            entry["bucket"] = bucket
    return entries


def _forgeries(document: Document, rng: np.random.Generator) -> Iterator[tuple[str, Document]]:
    """Yield forgeries that keep genuine tallies and change everything around them."""
    entries = document["entries"]
    fed = [place for place, entry in enumerate(entries) if entry["entry"] in ("rounds", "bucket")]
    plans = [place for place, entry in enumerate(entries) if entry["entry"] in ("plan", "bucket")]
    inner = [place for place in fed if place < len(entries) - 3]

    def made(new: list[Document], **settings: Any) -> Document:
        return {
            **deepcopy(document),
            "entries": deepcopy(new),
            "settings": {**document["settings"], **settings},
        }

    for place in rng.choice(inner, min(12, len(inner)), replace=False):
        place = int(place)
        yield "a feed deleted", made(entries[:place] + entries[place + 1 :])
        yield "a feed deleted, numbered anew", made(_numbered(entries[:place] + entries[place + 1 :]))
        after = next((other for other in plans if other > place), None)
        if after is not None and entries[after]["entry"] == "plan":
            cut = [entry for at, entry in enumerate(entries) if at not in (place, after)]
            yield "a feed and the plan after it deleted", made(_numbered(cut))
            gone = entries[after]["distribution"]
            cut = [entry for entry in cut if entry.get("distribution") != gone]
            yield "a whole batch deleted", made(_numbered(cut))
        yield "a feed twice", made(entries[: place + 1] + entries[place:])
        yield "a feed twice, numbered anew", made(_numbered(entries[: place + 1] + entries[place:]))
        other = int(rng.choice(inner))
        swapped = list(entries)
        swapped[place], swapped[other] = swapped[other], swapped[place]
        yield "two feeds swapped", made(_numbered(swapped))
    order = list(entries)
    shuffled = rng.permutation([order[place] for place in inner])
    for place, one in zip(inner, shuffled, strict=True):
        order[place] = one
    yield "all feeds shuffled", made(_numbered(order))
    for place in rng.choice(plans, min(20, len(plans)), replace=False):
        entry = entries[int(place)]
        if entry.get("values") is not None:
            for shift in (0.2, -0.2, 0.01):
                moved = deepcopy(entries)
                arm = int(rng.integers(len(entry["values"])))
                moved[int(place)]["values"][arm] += shift
                yield "values of one arm shifted", made(moved)
        for name in ("leader", "second"):
            for arm in range(len(entry["values"])) if name in entry else ():
                moved = deepcopy(entries)
                moved[int(place)][name] = arm
                if arm != entry[name]:
                    yield "rivals chosen afterwards", made(moved)
        if "active" in entry:
            moved = deepcopy(entries)
            moved[int(place)]["active"] = [int(rng.integers(len(entry["values"])))]
            yield "survivors chosen afterwards", made(moved)
    for delta in (1e-4, 0.01, 0.04, 0.06, 0.2, 0.5):
        yield f"δ changed to {delta:g}", made(entries, delta=delta)
    labels = document["settings"]["labels"]
    yield "labels reversed", made(entries, labels=labels[::-1])
    confidence = document["settings"]["confidence"]
    if "low" in confidence:
        for low, high in ((0.1, 1.0), (0.0, 0.9), (0.2, 0.8), (-1.0, 2.0)):
            yield "another range declared", made(entries, confidence={**confidence, "low": low, "high": high})
    for place in rng.choice(fed, min(10, len(fed)), replace=False):
        moved = deepcopy(entries)
        tallies = moved[int(place)].get("plans", [moved[int(place)]])
        for tally in tallies:
            tally["squares"] = [4 * one for one in tally["squares"]]
            tally["largest"] = [2 * one for one in tally["largest"]]
        yield "spreads out of range", made(moved)
        moved = deepcopy(entries)
        tallies = moved[int(place)].get("plans", [moved[int(place)]])
        for tally in tallies:
            tally["squares"] = [0.01 * one for one in tally["squares"]]
        yield "spreads too small for their sums", made(moved)


def _decided(claim: Document) -> Any:
    """Return what somebody would act on."""
    if "gaps" in claim:
        return [gap["verdict"] for gap in claim["gaps"]]
    return claim["declared"], claim["held"], sorted(claim["dropped"])


def attack_forgeries(runs: int, seed: int) -> None:
    """Certificates rearranged with the claim that would follow; valid ones with another decision."""
    tried: Counter[str] = Counter()
    valid: Counter[str] = Counter()
    other: Counter[str] = Counter()
    bound: Counter[str] = Counter()
    for kind, document in certificates().items():
        entries = document["entries"]
        all_heads = list(heads(document["settings"], entries))
        genuine = _decided(document["claim"])
        for turn in range(max(runs // 50, 1)):
            for name, forged in _forgeries(document, np.random.default_rng([seed, turn])):
                forged = claim_that_follows(forged)
                verdict = verify(forged)
                tried[name] += 1
                valid[name] += verdict.valid
                is_other = verdict.valid and _decided(forged["claim"]) != genuine
                other[name] += is_other
                if verdict.valid:
                    # Published before the first draw, and in the end.
                    bound[name] += verify(forged, all_heads[0]).valid and verify(forged, all_heads[-1]).valid
                if is_other:
                    print(f"    {kind}: {name}: {verdict.claim}", flush=True)
    for name, count in tried.items():
        more = f"{valid[name]} valid in all, {bound[name]} of them go on from the published heads"
        show(f"{name}: valid and another decision", other[name], count, 0.0, more)


# Coherence --------------------------------------------------------------------------------------------------


class RandomExperiment:
    """An experiment with random arms, settings, delays and changes, and what is true of it."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.now = 1e9
        count = int(rng.integers(2, 13))
        self.is_exact = bool(rng.random() < 0.5)
        self.epsilon = float(rng.choice([0.0, 0.0, 0.1, 0.3]))
        self.goal = str(rng.choice(["identify", "earn"]))
        self.delta = float(rng.choice([0.05, 0.2, 0.01]))
        self.labels = [f"arm {place}" for place in range(count)]
        # A few arms are equal: nothing may tell these apart for sure.
        self.means = np.round(rng.uniform(0.1, 0.9, count), 1) if rng.random() < 0.7 else np.full(count, 0.5)
        self.harm = np.where(rng.random(count) < 0.2, 2.0, 0.0)
        self.harm[0] = 0.0
        self.has_guardrail = bool(rng.random() < 0.4)
        self.silence: Silence = "zero" if rng.random() < 0.5 else "missing"
        rewards: Any = (0.0, 1.0) if self.is_exact else "unknown"
        confidence: Document = {"rewards": (0, 1)} if self.is_exact else {}
        policy = AnytimeElimination(delta=self.delta, epsilon=self.epsilon, goal=self.goal, **confidence)
        self.run = Experiment.memory(
            ArmSet.one_hot(count, labels=self.labels),
            policy,
            rewards=rewards,
            window=250.0,
            silence=self.silence,
            holdout=float(rng.choice([0.0, 0.1])),
            metrics=[Metric("seconds", rewards=(0, 5))] if self.has_guardrail else [],
            guardrails=[Guardrail("seconds", margin=0.5, worse="higher")] if self.has_guardrail else [],
            clock=lambda: self.now,
            key=rng.bytes(16).hex(),
        )
        self.retired: set[int] = set()
        self.waiting: list[tuple[float, int, Any]] = []

    @property
    def truths(self) -> np.ndarray:
        """Mean rewards, less what is lost by silence that counts as zero (a tenth, of every arm)."""
        return 0.9 * self.means if self.silence == "zero" else self.means

    def step(self) -> None:
        """Ask for some, tell what is due, and now and then take an arm out or add one."""
        rng = self.rng
        shown = self.run.ask_many(int(rng.integers(20, 200)))
        for one in shown:
            reward = float(rng.random() < self.means[one.arm])
            told: Any = reward
            if self.has_guardrail:
                told = {"reward": reward, "seconds": float(rng.random() + self.harm[one.arm])}
            if rng.random() < 0.9:
                late = rng.exponential(30.0) if rng.random() < 0.3 else 0.0
                self.waiting.append((self.now + min(late, 99.0), one.id, told))
        self.now += float(rng.uniform(1, 100))
        due = [one for one in self.waiting if one[0] <= self.now]
        self.waiting = [one for one in self.waiting if one[0] > self.now]
        for _, number, told in due:
            self.run.tell(number, told)
        self.now += 1.0
        left = [place for place in range(len(self.means)) if place not in self.retired]
        if rng.random() < 0.03 and len(left) > 2:
            place = int(rng.choice(left[1:]))
            report = self.run.report()
            if not report.arms[place].is_retired and sum(not arm.is_retired for arm in report.arms) > 2:
                self.run.retire(self.labels[place])
        if rng.random() < 0.03 and len(self.means) < 12:
            self.labels.append(f"arm {len(self.labels)}")
            self.means = np.append(self.means, round(float(rng.uniform(0.1, 0.9)), 1))
            self.harm = np.append(self.harm, 0.0)
            self.run.extend(ArmSet.one_hot(len(self.labels), labels=self.labels))
        self.retired = {place for place, arm in enumerate(self.run.report().arms) if arm.is_retired}


def _bounds_of(arm: Document) -> tuple[float, float]:
    low = -np.inf if arm["low"] is None else float(arm["low"])
    return low, np.inf if arm["high"] is None else float(arm["high"])


def disagreements(run: Experiment, epsilon: float) -> list[str]:
    """Return in what the text, the page, JSON, certificate and webhooks of an experiment differ."""
    report = run.report()
    plain = json.loads(json.dumps(report.to_json()))
    text = str(report)
    page = html.unescape(report.to_html())
    claim = run.certificate().document["claim"]
    problems = [f"the certificate: {one}" for one in run.certificate().verdict.problems]
    arms = {arm["label"]: arm for arm in plain["arms"]}
    alarmed = bool(plain["alarms"])
    # The same facts in all places.
    problems += [
        f"{name}: {claim[name]} in the certificate, {plain[name]} in JSON"
        for name in ("leader", "declared", "held")
        if claim[name] != plain[name] and not alarmed
    ]
    if sorted(claim["retired"]) != sorted(name for name, arm in arms.items() if arm["is_retired"]):
        problems.append("retired arms differ from the certificate's")
    out = sorted(name for name, arm in arms.items() if not arm["is_active"] and not arm["is_retired"])
    if sorted(claim["dropped"]) != out:
        problems.append(f"dropped: {claim['dropped']} in the certificate, {out} in JSON")
    if (
        plain["epsilon"] is not None
        and claim["epsilon"] is not None
        and plain["epsilon"] > claim["epsilon"] + 1e-9
    ):
        problems.append("the certificate is surer of the leader than the report")
    if plain["advice"] not in text or plain["advice"] not in page:
        problems.append("the advice is not the same everywhere")
    for warning in plain["warnings"]:
        if warning not in text:
            problems.append("a warning is not in the text")
    words: dict[str, list[str]] = {"winner": [], "dropped": [], "retired": []}
    for line in text.splitlines():
        for name in arms:
            if line.startswith(f"  {name} ") and "reference" not in line.split(name)[0]:
                for word in words:
                    if word in line.rpartition("  ")[2].split(", "):
                        words[word].append(name)
    if plain["declared"] is not None and words["winner"] != [plain["declared"]]:
        problems.append(f"the text calls {words['winner']} winner, {plain['declared']} is declared")
    if plain["declared"] is None and words["winner"] and plain["held"] is None:
        problems.append(f"the text calls {words['winner']} winner, and none is declared")
    # What follows from one statement may not be denied by another.
    won = plain["declared"] or plain["held"]
    if alarmed:
        if plain["advice"].startswith("Show"):
            problems.append(f"advice to show an arm in spite of {plain['alarms']}")
        return problems
    if (plain["declared"] is not None) != plain["advice"].startswith(f"Show {plain['declared']!r}"):
        problems.append("the advice and the declaration differ")
    if won is not None:
        mine = _bounds_of(arms[won])
        for name, arm in arms.items():
            if arm["is_retired"]:
                continue
            low, high = _bounds_of(arm)
            if low > mine[1] + epsilon + 1e-9:
                problems.append(f"{won} has won and {name} is better for sure")
            if epsilon == 0 and (high > mine[1] + 1e-9 or low > mine[0] + 1e-9):
                problems.append(f"{won} is the best, and the interval of {name} reaches beyond its own")
        if not arms[won]["is_active"] or arms[won]["is_retired"]:
            problems.append(f"{won} has won and is out")
    lead = _bounds_of(arms[claim["leader"]])
    for name, bound in claim["bounds"].items():
        ahead = _bounds_of(arms[name])[0] - lead[1]
        if bound is not None and not arms[name]["is_retired"] and ahead > bound + 1e-9:
            problems.append(f"the certificate's bound of {name} is below what its interval says")
    for name, arm in arms.items():
        low, high = _bounds_of(arm)
        if low > high:
            problems.append(f"the interval of {name} is empty")
        if arm["gap"] is not None and not low - 1e-12 <= arm["gap"] <= high + 1e-12:
            problems.append(f"the gap of {name} is outside its interval")
    share = sum(arm["probability"] for arm in arms.values())
    if abs(share - 1) > 1e-9:
        problems.append(f"shares sum to {share}")
    if any(arm["probability"] > 0 and arm["is_retired"] for arm in arms.values()):
        problems.append("a retired arm is shown")
    if sum(arm["settled"] for arm in arms.values()) > plain["settled"]:
        problems.append("more is settled of the arms than of all")
    return problems


def attack_coherence(runs: int, seed: int) -> None:
    """Random experiments, looked at in every form after every step; and whether what they say is true."""
    incoherent = looks = over_time = 0
    wrong = {True: Counter[str](), False: Counter[str]()}  # by mode
    promised = {True: 0.0, False: 0.0}
    false_winners = declared_runs = 0
    for run in range(runs):
        world = RandomExperiment(np.random.default_rng([seed, run]))
        seen: dict[str, tuple[float, float]] = {}
        is_incoherent = is_wrong = has_declared = has_false_winner = is_apart = False
        for _ in range(int(world.rng.integers(5, 40))):
            world.step()
            looks += 1
            problems = disagreements(world.run, world.epsilon)
            if problems and not is_incoherent:
                print(f"    run {run}: {problems[:3]}", flush=True)
            is_incoherent |= bool(problems)
            report = world.run.report()
            truth = world.truths - world.truths[0]
            for place, arm in enumerate(report.arms):
                low = -np.inf if arm.low is None else arm.low
                high = np.inf if arm.high is None else arm.high
                is_wrong |= bool(low > truth[place] + 1e-9 or high < truth[place] - 1e-9)
                before = seen.get(arm.label, (-np.inf, np.inf))
                is_apart |= low > before[1] + 1e-9 or high < before[0] - 1e-9
                seen[arm.label] = (max(before[0], low), min(before[1], high))
            if report.declared is not None:
                has_declared = True
                racing = [world.truths[place] for place, arm in enumerate(report.arms) if not arm.is_retired]
                mine = world.truths[world.labels.index(report.declared)]
                has_false_winner |= mine < max(racing) - world.epsilon - 1e-9
        incoherent += is_incoherent
        over_time += is_apart
        declared_runs += has_declared
        false_winners += has_false_winner
        wrong[world.is_exact]["failed"] += is_wrong or has_false_winner
        wrong[world.is_exact]["runs"] += 1
        promised[world.is_exact] += world.delta
    show("experiments that say two things at a look", incoherent, runs, 0.0, f"{looks} looks")
    show("intervals that are apart from earlier ones", over_time, runs, 0.0)
    show("false winners", false_winners, runs, 0.05, f"{declared_runs} declared one")
    for is_exact, counted in wrong.items():
        mode = "exact" if is_exact else "asymptotic"
        rate = promised[is_exact] / max(counted["runs"], 1)
        show(f"something wrong at any look, {mode}, mixed δ", counted["failed"], counted["runs"], rate)


# Units ------------------------------------------------------------------------------------------------------

SETTINGS: dict[str, Document] = {
    "sbe": {"schedule": "theory", "C2": 96.0, "theta_bound": 1.0, "shift_bound": 1.0},
    "explore": {"epsilon": 0.5, "theta_bound": 1.0, "shift_bound": 1.0, "C2": 4.0},
}


def _followed(policy: Policy[Any], arms: ArmSet, seed: int, unit: float, horizon: int) -> list[Any]:
    """Return all that a policy says in a run. Rewards, in `unit`, do not depend on the features."""
    rng = np.random.default_rng(seed)
    means = np.linspace(0.0, 0.6, len(arms.features))
    state = policy.start(arms)
    said: list[Any] = []
    clock = 0
    while clock < horizon:
        plan = policy.plan(state)
        rounds = min(int(plan.rounds), horizon - clock)
        if rounds <= 0:
            break
        drawn = (rng.random((rounds, 1)) > np.cumsum(plan.probabilities)[:-1]).sum(axis=1)
        level = 0.3 * np.sin((clock + np.arange(rounds)) / 50)
        rewards = unit * (means[drawn] + level + 0.4 * rng.uniform(-1, 1, rounds))
        state = policy.observe(state, plan, Tally.of(drawn, plan.residuals(drawn, rewards), len(means)))
        clock += rounds
        found = policy.decide(state)
        lead = (int(found.leader), int(found.declared), found.active.tolist(), rounds)
        said.append((lead, np.round(np.asarray(plan.probabilities), 6).tolist(), float(found.epsilon) / unit))
    return said


def attack_units(runs: int, seed: int) -> None:
    """Features times 0.03, moved by 5, or turned, and rewards times 1000: the same claims in all units."""
    base = np.random.default_rng(1).uniform(-0.5, 0.5, (5, 2))
    turn = np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
    changes: dict[str, tuple[np.ndarray, float, float]] = {
        # name: features, unit of rewards, and what θ is divided by
        "features × 0.03": (0.03 * base, 1.0, 0.03),
        "features × 30": (30.0 * base, 1.0, 30.0),
        "features + 5": (base + 5.0, 1.0, 1.0),
        "features turned": (base @ turn, 1.0, 1.0),
        "rewards × 1000": (base, 1000.0, 1.0),
        "rewards × 0.001": (base, 0.001, 1.0),
    }

    def variants(unit: float, scale: float) -> Iterator[tuple[str, Policy[Any]]]:
        bounds = {"theta_bound": unit / scale, "shift_bound": unit, "noise": unit}
        for name, given in SETTINGS.items():
            own = {**given, **bounds}
            if name == "explore":
                own["epsilon"] = 0.5 * unit
            yield name, named_policy(name, **own)
        for goal in ("identify", "earn"):
            for pairs in ("all", "leader"):
                how: Document = {"goal": goal, "pairs": pairs, "delta": 0.05}
                yield f"anytime, {goal}, {pairs}, asymptotic", AnytimeElimination(**how)
                limits = {"low": -2.0 * unit, "high": 2.0 * unit}
                yield (
                    f"anytime, {goal}, {pairs}, bounded",
                    AnytimeElimination(confidence=Bounded(**limits), **how),
                )
                noisy = SubGaussian(sigma=0.5 * unit, **limits)
                yield f"anytime, {goal}, {pairs}, sub-Gaussian", AnytimeElimination(confidence=noisy, **how)

    few = max(runs // 40, 2)
    original = dict(variants(1.0, 1.0))
    kept = {
        (name, run): _followed(policy, ArmSet(base), seed + run, 1.0, 3000)
        for name, policy in original.items()
        for run in range(few)
    }
    for change, (features, unit, scale) in changes.items():
        differ = []
        for name, policy in variants(unit, scale):
            if float(policy.decide(policy.start(ArmSet(features))).certainty) == 0.0:
                differ.append(f"{name} claims nothing")
                continue
            for run in range(few):
                mine = _followed(policy, ArmSet(features), seed + run, unit, 3000)
                theirs = kept[name, run]
                same = [one[0] for one in mine] == [one[0] for one in theirs] and all(
                    np.allclose(one[1], other[1], atol=1e-3)
                    and (one[2] == other[2] or abs(one[2] - other[2]) <= 1e-3 * abs(other[2]))
                    for one, other in zip(mine, theirs, strict=True)
                )
                if not same:
                    differ.append(f"{name}, run {run}")
        show(
            f"{change}: runs that say something else",
            len(differ),
            few * len(original),
            0.0,
            "; ".join(differ[:4]),
        )


# Exact modes, rare rewards, late rows -----------------------------------------------------------------------


def attack_exact(runs: int, seed: int) -> None:
    """Bursts and rising stakes against the exact modes, with 2 and 200 arms, at δ = 0.0001, 0.05 and 0.5."""
    time = np.arange(20_000)
    levels = {
        "rare, then bursts": np.where(time % 2000 < 1950, -0.495, 0.0),
        "stakes that rise": 0.49 * np.sin(time / 3) * np.minimum(time / 10_000, 1.0) ** 2,
        "all or nothing": 0.49 * np.sign(np.sin(time**1.3)),
        "one level, then the other": np.where(time < 3000, -0.49, 0.49),
    }
    for name, level in levels.items():
        for count, horizon in ((2, 10_000), (200, 6000)):
            means = np.full(count, 0.5)
            means[0] += 0.001
            world = Environment(ArmSet.one_hot(count), means, Replay(level), Bernoulli())
            for delta in (1e-4, 0.05, 0.5):
                for goal in ("identify", "earn"):
                    policy = AnytimeElimination(delta, goal=goal, confidence=Bounded(0.0, 1.0))
                    times = runs if count == 2 else max(runs // 10, 4)
                    found = misses(policy, world, horizon=horizon, replications=times, seed=seed)
                    failed = int(np.count_nonzero(found.first >= 0))
                    show(f"{name}, {count} arms, {goal}, δ = {delta:g}", failed, times, delta)


def attack_skewed_logs(runs: int, seed: int) -> None:
    """Equal arms in logs split 99:1 whose level jumps: exact intervals after every bucket."""
    days = np.arange(DAYS)
    levels = {
        "bursts": np.where(days % 10 == 9, 0.9, 0.01),
        "rising stakes": np.linspace(0.001, 0.5, DAYS),
        "all or nothing": np.where(days % 2 == 0, 0.999, 0.001),
    }
    for name, level in levels.items():
        for count in (2, 41):
            rest = np.full(count - 1, 0.01 if count == 2 else 0.6 / (count - 1))
            shares = np.tile(np.append(1 - rest.sum(), rest), (DAYS, 1))
            for delta in (1e-4, 0.05, 0.5):
                wrong = 0
                times = max(runs // 4, 2)
                for run in range(times):
                    rng = np.random.default_rng([seed, run, count])
                    log = _lifted(rng, 9000, np.ones(count), level, shares, "rate")
                    found = analyse(_table(log), **_asked(log, bounds=(0, 1), delta=delta))
                    ends = [
                        (low, high)
                        for moment in found.metrics[0].history
                        for low, high in zip(moment.lows, moment.highs, strict=True)
                    ]
                    ends += [one.interval for one in found.metrics[0].effects if one.arm != one.over]
                    wrong += any(_misses(pair, 0.0) for pair in ends)
                show(f"99:1, {name}, {count} arms, δ = {delta:g}", wrong, times, delta)


def attack_late_rows(runs: int, seed: int) -> None:
    """Growing logs with rows that come days late, analysed daily and stopped when decided."""
    level = 2.0 * np.sin(np.arange(DAYS) / 3)
    shares = _ramp(0.2, 0.6)
    for kind in ("by chance", "at weekends", "the new arm's alone"):
        for mode in ("asymptotic", "exact"):
            stopped = wrong = 0
            times = max(runs // 4, 2)
            for run in range(times):
                rng = np.random.default_rng([seed, run])
                if mode == "exact":
                    log = _lifted(rng, 6000, np.ones(2), 0.3 + 0.1 * level, shares, "rate")
                else:
                    log = _lifted(rng, 6000, np.ones(2), level, shares, "normal")
                late = rng.random(6000) < 0.3
                if kind == "at weekends":
                    late &= log["day"] % 7 >= 5
                if kind == "the new arm's alone":
                    late &= log["arm"] == "arm 1"
                comes = log["day"] + np.where(late, rng.integers(1, 4, 6000), 0)
                for day in range(4, DAYS, 3):
                    seen = {name: column[comes <= day] for name, column in log.items()}
                    bounds = (0, 1) if mode == "exact" else None
                    found = analyse(pyarrow.table(seen), **_asked(log, bounds=bounds))
                    effect = found.metrics[0].effects[1]
                    if _misses(effect.interval, 0.0):
                        wrong += not found.alarms
                        stopped += 1
                        break
            show(f"late {kind}, {mode}", wrong, times, 0.05, f"{stopped} with those that alarm")


def attack_rare(runs: int, seed: int) -> None:
    """Rare large rewards: the frontier that docs/measured.md states, on other seeds."""
    bench_rare(runs, seed)


ATTACKS: dict[str, Callable[[int, int], None]] = {
    "ratios": attack_ratios,
    "lifts": attack_lifts,
    "mutants": attack_mutants,
    "forgeries": attack_forgeries,
    "coherence": attack_coherence,
    "units": attack_units,
    "exact": attack_exact,
    "skewed": attack_skewed_logs,
    "late": attack_late_rows,
    "rare": attack_rare,
}


def play_named(attacks: Mapping[str, Callable[[int, int], None]], *, runs: int, seed: int) -> None:
    """Play the attack that the command line names, with its runs and seed if given; or list the attacks."""
    if len(sys.argv) < 2 or sys.argv[1] not in attacks:
        print("\n".join(f"{name:12} {attack.__doc__}" for name, attack in attacks.items()))
        return
    given = [int(number) for number in sys.argv[2:4]]
    attacks[sys.argv[1]](*(given + [runs, seed][len(given) :]))


if __name__ == "__main__":
    play_named(ATTACKS, runs=200, seed=2029)
