"""Logs of many kinds, and what is asked of them: each case is a table and the arguments of `analyse`."""

from datetime import datetime, timedelta
from functools import cache

import numpy as np
import pyarrow

from orthobandit import Guardrail
from orthobandit.logs import Quantile, Ratio, analyse

BEGIN = datetime(2025, 3, 3)
HALF = {"a": 0.5, "b": 0.5}
THIRDS = {"a": 0.5, "b": 0.3, "c": 0.2}
FIRST, LAST = [0.5, 0.3, 0.2], [0.2, 0.2, 0.6]


def exact(values):
    """Return values whose sums do not round: heads are then the same in whichever order rows are read."""
    return np.round(64.0 * values) / 64.0


@cache
def visits(seed=1, rows=3000, hours=48, arm_count=3, turn=1.0):
    """Return a log with columns of every kind, whose level moves over the day.

    Parameters
    ----------
    turn : float
        Share of the rows after which the plan changes; 1 if it does not.
    """
    rng = np.random.default_rng(seed)
    hour = np.sort(rng.integers(0, hours, rows))
    late = hour >= turn * hours
    shares = np.array([FIRST, LAST]) if arm_count == 3 else np.full((2, arm_count), 1.0 / arm_count)
    chances = shares[late.astype(int)]
    arm = (rng.random(rows)[:, np.newaxis] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
    level = np.sin(2 * np.pi * hour / 24)
    before = rng.standard_normal(rows)
    phone = (rng.random(rows) < 0.5).astype(float)
    gap = np.array([0.0, 0.3, -0.2, 0.1, 0.0, 0.2])[arm]
    labels = np.array(list("abcdef"))
    columns = {
        "at": [BEGIN + timedelta(hours=int(step)) for step in hour],
        "hour": hour,
        "arm": labels[arm],
        "plan": np.where(late, "late", "early"),
        "spent": exact(5.0 + 2.0 * level + gap + before + 0.5 * rng.standard_normal(rows)),
        "bought": (rng.random(rows) < 0.4 + 0.1 * level + 0.2 * gap + 0.3 * phone * (arm == 1)).astype(float),
        "seconds": exact(rng.exponential(10.0, rows) * (1.0 + 0.3 * gap)),
        "clicks": 1.0 + rng.poisson(2.0, rows),
        "sales": exact(np.where(rng.random(rows) < 0.05, rng.exponential(20.0, rows), 0.0)),
        "crashed": (rng.random(rows) < 0.05 + 0.05 * (arm == 2)).astype(float),
        "before": exact(before),
        "phone": phone,
        "country": np.array(["de", "fr", "uk"])[rng.integers(0, 3, rows)],
        "user": rng.integers(0, rows // 3, rows),
        "chance": chances[np.arange(rows), arm],
    }
    columns |= {f"p:{label}": chances[:, number] for number, label in enumerate(labels[:arm_count])}
    return pyarrow.table(columns)


def with_column(table, name, values):
    """Return the table with other values in a column."""
    return table.set_column(table.column_names.index(name), name, pyarrow.array(values))


@cache
def summary(cumulative=False, days=14, ends=False):
    """Return counts, means and variances of a day and an arm."""
    rng = np.random.default_rng(9)
    rows, totals = [], {}
    for day in range(days):
        for label, share in HALF.items():
            count = int(rng.binomial(400, share))
            values = exact(3.0 + np.sin(day) + 0.4 * (label == "b") + rng.standard_normal(count))
            seen = np.concatenate([totals.get(label, []), values])
            totals[label] = seen
            shown = seen if cumulative else values
            row = {"day": BEGIN + timedelta(days=day), "arm": label, "n": len(shown)}
            row |= {"mean": shown.mean(), "variance": shown.var(ddof=1), "std": shown.std(ddof=1)}
            rows.append(row | ({"low": shown.min(), "high": shown.max()} if ends else {}))
    return pyarrow.Table.from_pylist(rows)


@cache
def users(seed=4, rows=3000, mixed=0):
    """Return a log in which each of 1,000 users keeps one arm, but in one row of every `mixed`."""
    rng = np.random.default_rng(seed)
    user = np.sort(rng.integers(0, 1000, rows))
    arm = (np.random.default_rng(5).random(1000) < 0.5).astype(int)[user]
    if mixed:
        arm = np.where(np.arange(rows) % mixed == mixed - 1, 1 - arm, arm)
    hour = np.sort(rng.integers(0, 48, rows))
    table = {
        "at": [BEGIN + timedelta(hours=int(step)) for step in hour],
        "user": user,
        "arm": np.array(["a", "b"])[arm],
        "spent": exact(rng.exponential(2.0, rows) + 0.2 * arm),
        "clicks": 1.0 + rng.poisson(1.0, rows),
    }
    return pyarrow.table(table)


def asked(reward="spent", **more):
    return {"arm": "arm", "reward": reward, "time": "at", "split": THIRDS, **more}


RULES = {"b on phones": "b if phone >= 0.5 else a", "c for those who spent": "c if before > 0 else a"}
CHANCES = ("p:a", "p:b", "p:c")
# Of each case: the function that returns its table, and the arguments of `analyse`.
CASES = {
    "three arms": (visits, asked()),
    "two buckets": (lambda: visits(hours=2), asked()),
    "one bucket": (lambda: visits(hours=1), asked()),
    "few rows": (lambda: visits(rows=60), asked()),
    "small delta": (visits, asked(delta=0.001)),
    "another reference": (visits, asked(reference="b")),
    "buckets of a day": (lambda: visits(hours=200), asked(bucket="day")),
    "buckets of 15 minutes": (visits, asked(bucket=900.0)),
    "time as a number": (visits, asked(time="hour")),
    "no time": (visits, asked(time=None)),
    "one look": (visits, asked(fixed=True)),
    "one look at several metrics": (
        visits,
        asked(fixed=True, metrics=("seconds", "bought"), quantiles=(Quantile(0.5, metric="seconds"),)),
    ),
    "no effect": (lambda: visits(seed=2), asked("clicks")),
    "rare and large": (visits, asked("sales")),
    "rare and large, capped": (visits, asked("sales", caps={"sales": 30.0})),
    "six arms": (lambda: visits(arm_count=6), asked(split="equal")),
    # Modes
    "exact": (visits, asked("bought", bounds=(0, 1))),
    "exact, no bounds": (visits, asked("bought")),
    "exact, wide bounds": (visits, asked(bounds=(-5, 15))),
    "exact, told to be asymptotic": (visits, asked("bought", bounds=(0, 1), asymptotic=True)),
    "booleans": (
        lambda: with_column(visits(), "bought", np.asarray(visits()["bought"]) > 0),
        asked("bought"),
    ),
    # How arms were drawn
    "probabilities": (lambda: visits(turn=0.5), asked(split=None, probabilities=CHANCES)),
    "probability of the arm that was drawn": (visits, asked(split=None, probabilities=("chance",))),
    "plans": (
        lambda: visits(turn=0.5),
        asked(
            split=None,
            plan="plan",
            plans={
                "early": dict(zip("abc", FIRST, strict=True)),
                "late": dict(zip("abc", LAST, strict=True)),
            },
        ),
    ),
    "exact with plans that change": (
        lambda: visits(turn=0.5),
        asked("bought", split=None, probabilities=CHANCES, bounds=(0, 1)),
    ),
    "arms with features": (visits, asked(arms="arms.csv")),
    "sample ratio that is wrong": (visits, asked(split={"a": 0.4, "b": 0.4, "c": 0.2})),
    "sample ratio that is nearly wrong": (visits, asked(split={"a": 0.552, "b": 0.2688, "c": 0.1792})),
    "other probabilities": (visits, asked(), {"value": {"a": 0.2, "b": 0.6, "c": 0.2}}),
    "compared with other methods": (visits, asked(), {"compare": True}),
    # Baselines and covariates
    **{
        f"baseline {name}": (visits, asked(baseline=name))
        for name in ("mean", "last", "seasonal", "autoregressive", "none")
    },
    "a covariate": (visits, asked(covariates=("before",))),
    "two covariates": (visits, asked("bought", covariates=("before", "phone"))),
    "segments": (visits, asked(segment="country")),
    "segments, exact": (visits, asked("bought", segment="country", bounds=(0, 1))),
    # Metrics
    "several metrics": (visits, asked(metrics=("bought", "seconds", "clicks"))),
    "several metrics, ranges": (visits, asked(metrics=("bought", "clicks"), bounds={"bought": (0, 1)})),
    "a ratio": (visits, asked(ratios=(Ratio("spent", "clicks"),))),
    "a ratio, no time": (visits, asked(time=None, ratios=(Ratio("spent", "clicks"),))),
    "a ratio of users": (
        users,
        {
            "arm": "arm",
            "reward": "spent",
            "time": "at",
            "unit": "user",
            "split": HALF,
            "ratios": (Ratio("spent", "clicks"),),
        },
    ),
    "quantiles": (
        visits,
        asked(quantiles=(Quantile(0.5, metric="seconds"), Quantile(0.9, metric="seconds"))),
    ),
    "quantiles with thresholds": (
        visits,
        asked(quantiles=(Quantile(0.75, thresholds=tuple(range(1, 40)), metric="seconds"),)),
    ),
    "guardrails": (
        visits,
        asked(guardrails=(Guardrail("crashed", margin=0.1), Guardrail("seconds", margin=5.0))),
    ),
    "a guardrail against less": (visits, asked(guardrails=(Guardrail("bought", margin=0.2, worse="lower"),))),
    "non-inferiority": (visits, asked(noninferiority={"crashed": 0.1, "bought": -0.2})),
    "users": (users, {"arm": "arm", "reward": "spent", "time": "at", "unit": "user", "split": HALF}),
    "users, a window": (
        users,
        {"arm": "arm", "reward": "spent", "time": "at", "unit": "user", "split": HALF, "window": 36_000.0},
    ),
    "users, some in several arms": (
        lambda: users(mixed=120),
        {"arm": "arm", "reward": "spent", "time": "at", "unit": "user", "split": HALF},
    ),
    # Values that are missing
    "missing, dropped": (
        lambda: with_column(
            visits(), "spent", np.where(np.arange(3000) % 50 == 0, np.nan, np.asarray(visits()["spent"]))
        ),
        asked(missing="drop"),
    ),
    "missing, zero": (
        lambda: with_column(
            visits(), "bought", np.where(np.arange(3000) % 50 == 0, np.nan, np.asarray(visits()["bought"]))
        ),
        asked("bought", missing="zero"),
    ),
    "missing more of one arm": (
        lambda: with_column(
            visits(),
            "spent",
            np.where(
                (np.arange(3000) % 3 == 0) & (np.asarray(visits()["arm"]) == "b"),
                np.nan,
                np.asarray(visits()["spent"]),
            ),
        ),
        asked(missing="drop"),
    ),
    # Rules
    "rules": (visits, asked("bought", context=("phone", "before"), rules=RULES)),
    "rules, exact": (visits, asked("bought", context=("phone", "before"), rules=RULES, bounds=(0, 1))),
    "rules, one look": (visits, asked("bought", context=("phone",), fixed=True)),
    "rules, probabilities": (
        lambda: visits(turn=0.5),
        asked(
            "bought",
            split=None,
            probabilities=CHANCES,
            context=("phone",),
            rules={"b on phones": RULES["b on phones"]},
        ),
    ),
    # Summaries
    "summary": (
        summary,
        {"arm": "arm", "time": "day", "split": HALF, "n": "n", "mean": "mean", "variance": "variance"},
    ),
    "summary of standard deviations": (
        summary,
        {"arm": "arm", "time": "day", "split": HALF, "n": "n", "mean": "mean", "std": "std"},
    ),
    "summary, cumulative": (
        lambda: summary(cumulative=True),
        {
            "arm": "arm",
            "time": "day",
            "split": HALF,
            "n": "n",
            "mean": "mean",
            "variance": "variance",
            "cumulative": True,
        },
    ),
    "summary with ends": (
        lambda: summary(ends=True),
        {
            "arm": "arm",
            "time": "day",
            "split": HALF,
            "n": "n",
            "mean": "mean",
            "variance": "variance",
            "smallest": "low",
            "largest": "high",
        },
    ),
    "summary without a split": (
        summary,
        {"arm": "arm", "time": "day", "n": "n", "mean": "mean", "variance": "variance"},
    ),
    "summary, no time": (
        lambda: summary(days=1),
        {"arm": "arm", "split": HALF, "n": "n", "mean": "mean", "variance": "variance"},
    ),
}


def analysed(name):
    """Return the analysis of a case."""
    make, arguments, *more = CASES[name]
    return analyse(
        make(), **{key: value for key, value in arguments.items() if value is not None}, **dict(*more)
    )
