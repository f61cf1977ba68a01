"""Evidence that a release draws from plans which another release made, and it would not have made.

The other release plays distributions of its own, far from those of this one, and takes turns with it on one
log. Of each run, S = Σ w(ĝ − g) is taken, which the policy's evidence on the gap g of two arms has added up:
with weights, centres and rivals that were fixed before the draws it is a martingale. Its mean over runs is
compared with 0 by a normal test, whose false alarms come less than once in 10⁹, all pairs together; and the
claims of each run are compared with the truth.
"""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from inside.experiment import Ledger
from inside.policy import AllPairs
from orthobandit import AnytimeElimination, ArmSet, Experiment
from orthobandit.estimate import NoBaseline
from release_samples import another_release

pytestmark = pytest.mark.statistical

FALSE_ALARM = 1e-9
RUNS = 40
MEANS = np.array([0.35, 0.45, 0.5])
BATCHES = 14
SIZE = 25
PAIRS = [(1, 0), (2, 0), (2, 1)]
DELTA = 0.1


@contextmanager
def other_planner():
    """Plan as another release: in other batches, and by a distribution of its own."""
    with another_release(40), pytest.MonkeyPatch.context() as patch:
        patch.setattr(AllPairs, "redesign", lambda *given: np.array([0.6, 0.3, 0.1]))
        yield


def played(settings, seed, *, in_turns):
    """Return the ledger of this release after a log that another has written, alone or in turns with it."""
    rng = np.random.default_rng(seed)
    settings = replace(settings, key=f"{seed:064x}")
    theirs = Ledger(settings)
    mine = Ledger(settings)
    for place in range(BATCHES):
        if in_turns and place % 2:
            entries = _visit(mine, place, rng)
            with other_planner():
                _read(theirs, entries)
        else:
            with other_planner():
                entries = _visit(theirs, place, rng)
            _read(mine, entries)
    return mine


def _visit(ledger, place, rng):
    """Draw a batch and tell its rewards, whose level moves; return the entries for the log."""
    asked = ledger.ask(float(place + 1), (), SIZE)
    level = 0.25 * np.sin((asked.first + np.arange(SIZE)) / 20.0)
    rewards = (rng.random(SIZE) < MEANS[asked.arms] + level).astype(np.float64)
    ledger.tell_checked("reward", asked.first + np.arange(SIZE), rewards)
    entries = list(ledger.outbox)
    ledger.outbox.clear()
    return entries


def _read(ledger, entries):
    for entry in entries:
        ledger.apply(entry)


@pytest.mark.parametrize("in_turns", [False, True])
def test_evidence_from_plans_of_another_release_is_unbiased(in_turns):
    # Nothing forecasts the level, so that evidence is biased at once if it goes by other probabilities than
    # those on record.
    policy = AnytimeElimination(rewards=(0, 1), delta=DELTA, baseline=NoBaseline())
    experiment = Experiment.memory(ArmSet.one_hot(3), policy, key="0" * 64)
    sums = np.zeros((RUNS, len(PAIRS)))
    wrong = 0
    differing = 0
    for seed in range(RUNS):
        ledger = played(experiment.settings, seed, in_turns=in_turns)
        state = ledger.feed.now()
        for column, (one, other) in enumerate(PAIRS):
            gap = MEANS[one] - MEANS[other]
            sums[seed, column] = state.totals[one, other] - state.weights[one, other] * gap
        wrong += not state.active[int(np.argmax(MEANS))]
        differing += ledger.feed.differences.count > 0
    assert differing == RUNS
    z = sums.mean(axis=0) / (sums.std(axis=0, ddof=1) / np.sqrt(RUNS))
    assert np.abs(z).max() < norm.isf(FALSE_ALARM / (2 * len(PAIRS))), z
    assert wrong <= binom.isf(FALSE_ALARM, RUNS, DELTA)
