"""The small model says what the package says, and keeps its promises by itself."""

import ast
import runpy
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from orthobandit import ArmSet, OrthogonalRegression, Plan, anchor_design, centred_design
from orthobandit import Tally as PackageTally
from orthobandit.theory import experiments_phase_rounds

SCRIPT = Path(__file__).parents[2] / "examples" / "mini_orthobandit.py"
DELTA = 0.05
MOST = 1000
NULL_RUNS = 300


@pytest.fixture(scope="module")
def mini():
    return runpy.run_path(str(SCRIPT))


def wave(rounds):
    """Return a level that moves by more than any gap of these tests."""
    return 0.4 + 0.3 * np.sin(rounds / 200.0)


def test_it_is_short_and_needs_numpy_alone():
    text = SCRIPT.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    imported = {
        (node.module if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0]
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported == {"collections", "itertools", "numpy", "typing"}


@pytest.mark.parametrize("seed", range(5))
def test_the_regression_is_the_package_s_to_the_last_digits(mini, seed):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(8, 3))
    plans = rng.dirichlet(np.ones(8), size=2)
    rounds = [(rng.choice(8, 400, p=plan), rng.random(400)) for plan in plans]
    history = [(plan, mini["tally"](*one, 8)) for plan, one in zip(plans, rounds, strict=True)]
    values = mini["regression"](mini["hull"](features), history, ridge=2.0)
    tallies = [
        (Plan(plan, rounds=400), PackageTally.of(*one, 8)) for plan, one in zip(plans, rounds, strict=True)
    ]
    gaps = OrthogonalRegression(ridge=2.0).fit(ArmSet(features), tallies).gaps
    np.testing.assert_allclose(values.max() - values, gaps, rtol=0, atol=5e-15)


@pytest.mark.parametrize(("arms", "dimension"), [(5, 2), (30, 5), (30, 20), (4, 6)])
def test_designs_agree_with_the_package_s_to_four_digits(mini, arms, dimension):
    features = np.random.default_rng(arms).normal(size=(arms, dimension))
    points = mini["hull"](features)
    for name, package in (("centred_design", centred_design), ("anchor_design", anchor_design)):
        own, other = mini[name](points), package(ArmSet(features)).probabilities
        assert own.sum() == pytest.approx(1.0)
        # Where several designs are the best, their moments agree and their probabilities need not.
        for norm in (farthest_from_mean, farthest_from_first):
            if name == "centred_design" and norm is farthest_from_first:
                continue
            assert norm(points, own) == pytest.approx(norm(points, other), rel=1e-4)


def inverse_covariance(points, p):
    centred = points - p @ points
    return np.linalg.inv(centred.T @ (p[:, np.newaxis] * centred))


def farthest_from_mean(points, p):
    centred = points - p @ points
    return np.sqrt(np.einsum("ki,ij,kj->k", centred, inverse_covariance(points, p), centred).max())


def farthest_from_first(points, p):
    apart = points - points[0]
    return np.sqrt(np.einsum("ki,ij,kj->k", apart, inverse_covariance(points, p), apart).max())


def test_scores_are_right_on_average_whatever_the_forecast(mini):
    features = np.random.default_rng(1).normal(size=(6, 2))
    points = mini["hull"](features)
    p = mini["centred_design"](points)
    pairs = np.array([[0, 1], [4, 2]])
    g, variance = mini["scores"](points, p, pairs)
    theta = np.array([0.3, -0.2])
    for level in (0.0, 7.0):
        np.testing.assert_allclose(
            g @ (p * (points @ theta + level)),
            (points[pairs[:, 0]] - points[pairs[:, 1]]) @ theta,
            atol=1e-12,
        )
    np.testing.assert_allclose(variance, g**2 @ p)


@pytest.mark.statistical
@pytest.mark.parametrize("arms", [2, 3])
def test_equal_arms_are_hardly_ever_told_apart(mini, arms):
    runs = (mini["simulator"](np.zeros(arms), wave, seed) for seed in range(NULL_RUNS))
    answers = [mini["eliminate"](np.eye(arms), play, DELTA, MOST) for play in runs]
    # False alarm at most 1e-6 where the rate is δ.
    wrong = sum(answer.best >= 0 for answer in answers)
    assert binomtest(wrong, NULL_RUNS, DELTA, alternative="greater").pvalue > 1e-6
    outside = sum(bool(np.any(answer.low > 0.0)) for answer in answers)
    assert binomtest(outside, NULL_RUNS, DELTA, alternative="greater").pvalue > 1e-6


def test_bets_that_leave_out_the_squares_are_caught(mini):
    """The test above fails on wealth that grows with chance alone."""
    steps = np.random.default_rng(0).choice([-1.0, 1.0], size=(200, 1000))
    totals, squares = steps.cumsum(axis=1).max(axis=1), np.full(200, 1000.0)
    fair = np.sum(mini["wealth"](totals, squares) >= np.log(1.0 / DELTA))
    careless = np.sum(mini["wealth"](totals, 0.0 * squares) >= np.log(1.0 / DELTA))
    assert binomtest(int(fair), 200, DELTA, alternative="greater").pvalue > 1e-6
    assert binomtest(int(careless), 200, DELTA, alternative="greater").pvalue < 1e-6


def test_elimination_finds_the_best_arm_and_intervals_hold_its_lead(mini):
    values = np.array([0.0, 0.05, 0.2])
    for seed in range(10):
        play = mini["simulator"](values, wave, seed)
        answer = mini["eliminate"](np.eye(3), play, DELTA, most=20_000)
        assert answer.best == 2
        assert answer.rounds < 20_000
        low, high = answer.interval(2, 0)
        assert 0.0 < low < 0.2 < high
        assert answer.gaps[2, 0] == pytest.approx(0.2, abs=0.15)


def test_arms_that_share_features_tell_of_each_other(mini):
    features = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    play = mini["simulator"](features @ [0.12, -0.1], wave, 4)
    assert mini["eliminate"](features, play, DELTA, most=30_000).best == 1


def test_sbe_finds_the_best_arm_in_phases_of_the_paper_s_lengths(mini):
    values = np.array([0.0, 0.25, 0.05])
    for seed in range(5):
        phases = list(mini["sbe"](np.eye(3), mini["simulator"](values, wave, seed), DELTA))
        assert phases[-1][1] == [1]
        assert [rounds for rounds, _ in phases] == [
            experiments_phase_rounds(phase, DELTA, dimension=2, count=3)
            for phase in range(1, len(phases) + 1)
        ]


def test_the_script_tells_plain_means_from_what_is_right(mini, capsys):
    mini["main"]()
    printed = capsys.readouterr().out
    means, estimates = (
        next(line for line in printed.splitlines() if name in line) for name in ("plain means", "regression")
    )
    last = [float(line.rstrip("]").split()[-1]) for line in (means, estimates)]
    assert last[0] < 0.0  # the best page looks worse than the first
    assert last[1] == pytest.approx(0.2, abs=0.06)
    assert "Elimination finds page 2 after " in printed
    assert "pages left: [2]" in printed
    assert max(map(len, printed.splitlines())) <= 100
