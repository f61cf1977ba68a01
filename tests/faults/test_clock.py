"""Clocks that jump, or differ between servers: the order of draws is kept, and no window ends too soon."""

from itertools import pairwise

import pytest

from experiment_samples import outcomes_of
from inside.service import check
from orthobandit import AnytimeElimination, ArmSet, Experiment
from orthobandit.errors import ClosedError

DAY, WINDOW = 86_400.0, 60.0


class Clock:
    now = 1_700_000_000.0

    def __call__(self):
        self.now += 0.01
        return self.now


def begun(where, clock, **settings):
    policy = AnytimeElimination(rewards=(0, 1))
    return Experiment.create(where, ArmSet.one_hot(3), policy, clock=clock, window=WINDOW, **settings)


def play(experiment, rounds=40):
    for _ in range(rounds):
        one = experiment.ask()
        experiment.tell(one.id, float(one.arm == 1))


def times(experiment):
    return [(one.proposal.number, one.proposal.at) for one in outcomes_of(experiment)]


def is_in_order(found):
    return [number for number, _ in found] == list(range(1, len(found) + 1)) and all(
        one[1] <= next_[1] for one, next_ in pairwise(found)
    )


@pytest.mark.parametrize("jumps", [(DAY, -DAY), (-DAY, DAY), (DAY, DAY), (-DAY, -DAY)])
def test_jumps_of_a_day_keep_the_order_of_draws(tmp_path, jumps):
    clock, where = Clock(), tmp_path / "all.db"
    with begun(where, clock) as page:
        for jump in (0.0, *jumps):
            clock.now += jump
            play(page)
        assert is_in_order(times(page))
        assert page.replay().is_equal
        assert page.audit().passed
        assert page.report().settled == 120
    assert check(where) == []


def test_a_clock_that_goes_back_ends_no_window_too_soon(tmp_path):
    clock = Clock()
    with begun(tmp_path / "all.db", clock) as page:
        play(page)
        first = clock.now
        page.tick()
        clock.now -= DAY
        silent = page.ask()
        clock.now += DAY - 1.0  # less than the window after it was drawn
        assert page.report().awaited == 1
        clock.now = first + 2 * WINDOW
        assert page.report().awaited == 0
        with pytest.raises(ClosedError, match="its window of 1 minute has passed"):
            page.tell(silent.id, 1.0)


def test_what_was_drawn_while_the_clock_was_ahead_is_still_taken(tmp_path):
    clock = Clock()
    with begun(tmp_path / "all.db", clock) as page:
        clock.now += DAY
        ahead = page.ask()
        clock.now -= DAY
        behind = page.ask()
        clock.now += 10.0
        page.tell(ahead.id, 1.0)
        page.tell(behind.id, 1.0)
        assert page.report().settled == 2


def test_servers_whose_clocks_are_a_day_apart_agree(tmp_path):
    fast, slow, where = Clock(), Clock(), tmp_path / "all.db"
    fast.now += DAY
    with begun(where, fast) as one, Experiment.open(where, clock=slow) as other:
        for _ in range(20):
            play(one, 3)
            play(other, 3)
            shown = other.ask()
            one.tell(shown.id, 1.0)
        assert is_in_order(times(one))
        assert one.report().settled == other.report().settled == 140
        assert one.replay().is_equal
        assert other.replay().is_equal
