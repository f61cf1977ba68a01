"""The experiments on ratings of jokes: on a made-up table, and on the data where they are at hand."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from orthobandit import SBE, AnytimeElimination
from orthobandit.policy import LUCB, ActionElimination

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "examples" / "jester.py"))


def made_up(users=400):
    """Return ratings in which users' levels differ by far more than jokes, of which the third is best."""
    rng = np.random.default_rng(5)
    likes = np.array([0.0, 0.2, 2.5, -0.5, -1.0, 0.4, 0.1, -0.3])
    ratings = rng.normal(0, 2.5, (users, 1)) + likes + rng.normal(0, 1, (users, 8))
    return np.clip(ratings, -10, 10)


@pytest.mark.parametrize("policy", [SBE(delta=0.1, schedule="successor"), AnytimeElimination(delta=0.1)])
def test_the_best_joke_is_declared(script, policy):
    found = script["identify"](policy, made_up(), np.random.default_rng(1))
    assert found.declared == 2
    assert found.rounds < 100_000


@pytest.mark.parametrize("policy", [LUCB(delta=0.1, noise=2.0), ActionElimination(delta=0.1, noise=2.0)])
def test_a_race_played_by_compiled_steps_is_that_of_the_protocol(script, policy):
    ratings = made_up()
    found = script["race"](policy, ratings, np.random.default_rng(3))
    assert found.declared == 2
    # The same users, one round after the other through plan and observe.
    rng = np.random.default_rng(3)
    state = policy.start(script["ARMS"])
    played = 0
    while int(policy.decide(state).declared) < 0:
        if played % script["BLOCK"] == 0:
            users = rng.integers(len(ratings), size=script["BLOCK"])
        plan = policy.plan(state)
        joke = int(np.argmax(plan.probabilities))
        rating = ratings[users[played % script["BLOCK"]], joke]
        state = policy.observe(state, plan, script["tally_of"](np.array([joke]), np.array([rating])))
        played += 1
    assert (played, int(policy.decide(state).declared)) == (found.rounds, found.declared)


def test_every_published_row_is_run(script):
    assert set(script["PUBLISHED"]) <= {*script["POLICIES"], *script["RACES"]}
    assert len(script["RACES"]) == 14


def test_tallies_are_sums_by_joke(script):
    tally = script["tally_of"](np.array([0, 3, 3]), np.array([1.0, -2.0, 5.0]))
    assert tally.counts.tolist() == [1, 0, 0, 2, 0, 0, 0, 0]
    assert tally.sums[3] == 3.0
    assert tally.squares[3] == 29.0
    assert tally.largest[3] == 5.0


def test_both_designs_rank_a_clear_winner_first(script):
    assert script["ranked_first"](made_up(), 400, np.random.default_rng(2)) == (2, 2)


def test_a_missing_file_is_named(script, tmp_path):
    with pytest.raises(SystemExit, match=r"there is no file .*ratings\.csv; set JESTER"):
        script["main"](path=tmp_path / "ratings.csv")


def test_the_tables_are_printed(script, capsys):
    if not script["DATA"].is_file():
        pytest.skip(f"{script['DATA']} is not there; set JESTER to the path of jester5k_gauge8.csv")
    script["main"](runs=2)
    printed = capsys.readouterr().out
    assert "4,996 users; best joke 19, ahead by 0.662" in printed
    assert printed.count(" of 2 ") >= len(script["POLICIES"]) + len(script["RACES"])
