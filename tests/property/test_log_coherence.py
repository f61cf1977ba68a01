"""Nothing that an analysis of a log says contradicts anything else that it says."""

from dataclasses import replace

import numpy as np
import pytest

from contradictions import contradictions_of_analysis
from inside.logs import Gathered
from log_worlds import cells_from
from orthobandit.logs import Question, analysis_of

FEW, RUNS = 20, 500


def analysed(seed, *, moves=False):
    """Return the analysis of a random log: 2 to 5 arms, exact or not, looked at once or as it grows.

    If its split `moves`, every hour has one of three, and arms are compared over different hours.
    """
    rng = np.random.default_rng([28, seed])
    count = int(rng.integers(2, 6))
    rows = int(rng.choice([300, 1000, 4000]))
    hours = int(rng.choice([10, 60]))
    p = rng.dirichlet(np.full(count, 3.0)) * 0.9 + 0.1 / count
    hour = np.arange(rows) * hours // rows
    arm = rng.choice(count, rows, p=p)
    plan = np.zeros(rows, dtype=int)
    plans = p[np.newaxis]
    if moves:
        plans = rng.dirichlet(np.full(count, 0.5), 3) * 0.95 + 0.05 / count
        plan = rng.integers(0, 3, hours)[hour]
        arm = (rng.random(rows)[:, np.newaxis] > plans[plan].cumsum(axis=1)[:, :-1]).sum(axis=1)
    means = 0.15 + rng.choice([0.05, 0.2, 0.4]) * rng.random(count)
    level = 0.15 * np.sin(hour / 7.0) + 0.15
    is_binary = rng.random() < 0.6
    values = (rng.random(rows) < means[arm] + level).astype(float)
    if not is_binary:
        values = means[arm] + level + 0.3 * rng.standard_normal(rows)
    question = Question(
        "arm",
        "reward",
        time="at",
        delta=float(rng.choice([0.05, 0.3])),
        reference=str(rng.integers(count)),
        bounds=(0.0, 1.0) if is_binary and rng.random() < 0.7 else None,
        fixed=bool(rng.random() < 0.4),
    )
    cells = cells_from(hour, plan, arm, values[:, np.newaxis], plans)
    gathered = Gathered(cells, None, (), np.array([is_binary]))
    return analysis_of(gathered, question)


def check(seeds, *, moves=False):
    """Look at logs; none contradicts itself, and most say something."""
    played = {seed: analysed(seed, moves=moves) for seed in seeds}
    wrong = {seed: contradictions_of_analysis(one) for seed, one in played.items()}
    assert not {seed: words for seed, words in wrong.items() if words}
    # Where splits move, some arms are hardly drawn, and fewer logs are decided.
    least_dropping, least_won = (0.2, 0.05) if moves else (0.3, 0.1)
    assert np.mean([bool(one.metrics[0].droppable) for one in played.values()]) > least_dropping
    assert np.mean(["is the best arm" in one.sentence for one in played.values()]) > least_won
    # At 30 % an alarm that intervals contradict each other may be raised, but seldom is.
    assert np.mean([one.metrics[0].is_contradicted for one in played.values()]) < 0.05


def with_effect(metric, place, **changed):
    """Return a metric in which one effect is another."""
    effects = list(metric.effects)
    effects[place] = replace(effects[place], **changed)
    return replace(metric, effects=tuple(effects))


def test_contradictions_are_found():
    found = next(one for one in map(analysed, range(FEW)) if "is the best arm" in one.sentence)
    assert contradictions_of_analysis(found) == []
    metric = found.metrics[0]
    place, won = next(
        (place, one) for place, one in enumerate(metric.effects) if one.arm not in metric.droppable
    )
    assert won.verdict == "better"
    low, high = won.interval
    changed = {
        "verdict": with_effect(metric, place, verdict="undecided"),
        "estimate": with_effect(metric, place, estimate=high + 1.0),
        "lift": with_effect(metric, place, lift=(-0.2, -0.1)),
        "rows": with_effect(metric, place, more_rows=(1.0, 0.5, 2.0)),
        "interval": with_effect(metric, place, interval=(-1.0, high), verdict="undecided"),
        "pairs": with_effect(metric, place, interval=(low + 9.0, high + 9.0), estimate=high + 9.0),
        "droppable": replace(metric, droppable=()),
        "all dropped": replace(metric, droppable=tuple(one.arm for one in metric.effects)),
    }
    missed = [
        name
        for name, one in changed.items()
        if not contradictions_of_analysis(replace(found, metrics=(one, *found.metrics[1:])))
    ]
    assert missed == []
    assert contradictions_of_analysis(replace(found, sentence="No arm is proven best yet."))


def test_no_analysis_of_some_random_logs_contradicts_itself():
    check(range(FEW))


def test_no_analysis_of_some_logs_whose_split_moves_contradicts_itself():
    check(range(7000, 7000 + FEW), moves=True)


@pytest.mark.slow
@pytest.mark.parametrize("moves", [False, True])
def test_no_analysis_of_five_hundred_random_logs_contradicts_itself(moves):
    check(range(FEW, RUNS), moves=moves)
