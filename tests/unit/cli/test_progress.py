"""Progress on terminals and in logs."""

import sys
import time

import pytest

from inside.study import Cell, Costs, in_order
from orthobandit.cli._progress import TimeLeft, bar


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose only entry is the time in seconds."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_a_minute(clock, capsys):
    with bar("cells") as show:
        show(0, 100)
        for minute in range(1, 4):
            clock[0] = 100.0 + 60 * minute
            show(10 * minute, 100)
            show(10 * minute, 100)
    assert capsys.readouterr().err.splitlines() == [
        "cells 10%, 0:09:00 left",
        "cells 20%, 0:08:00 left",
        "cells 30%, 0:07:00 left",
    ]


def test_what_was_finished_before_says_nothing_about_speed(clock, capsys):
    with bar() as show:
        show(50, 100)
        clock[0] += 60
        show(60, 100, "sbe")
    assert capsys.readouterr().err == "sbe 60%, 0:04:00 left\n"


def test_a_terminal_sees_a_bar_from_the_start(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with bar("a design") as show:
        assert "a design" in capsys.readouterr().err
        show(1, 4, "sbe")
    drawn = capsys.readouterr().err
    assert "sbe" in drawn
    assert "25%" in drawn


def test_short_work_leaves_logs_alone(capsys):
    with bar("work") as show:
        show(1, 2)
    assert capsys.readouterr().err == ""


def test_a_log_hears_also_while_nothing_is_finished(monkeypatch, capsys):
    monkeypatch.setattr("inside.cli.LOG_SECONDS", 0.02)
    with bar("cells") as show:
        show(0, 10)
        said, end = "", time.monotonic() + 30
        while "cells 0%\n" not in said and time.monotonic() < end:
            time.sleep(0.01)
            said += capsys.readouterr().err
    assert "cells 0%\n" in said


def test_the_time_left_counts_down_between_reports(clock):
    left = TimeLeft()
    left.update(0, 100)
    assert left.left() is None
    clock[0] += 100
    left.update(10, 100)
    assert left.left() == pytest.approx(900)
    clock[0] += 50
    assert left.left() == pytest.approx(850)
    clock[0] += 5000
    assert left.left() is None  # it was misjudged: "0:00:00 left" would be wrong
    left.update(100, 100)
    assert left.left() == 0


def test_the_time_left_is_right_within_a_factor_of_two_after_a_tenth(clock):
    # Two workers; what cells say of their cost is wrong by a factor of up to a hundred, kind by kind.
    kinds = {"fast": (1.0, 1.0, 60), "slow": (1.0, 40.0, 20), "huge": (0.2, 20.0, 30)}
    # cost as said, seconds, number of cells
    cells = {
        Cell("math:hypot", {"policy": {"kind": kind}, "n": n}, cost=cost): seconds
        for kind, (cost, seconds, count) in kinds.items()
        for n in range(count)
    }
    costs, left, free, ends = Costs(cells), TimeLeft(), [100.0, 100.0], []
    for cell in in_order(cells):
        begin = min(free)
        free[free.index(begin)] = begin + cells[cell]
        ends.append((begin + cells[cell], cell))
    whole, wrong, naive, done = max(free) - 100.0, [], [], 0.0
    total = sum(cell.cost for cell in cells)
    left.update(*costs.progress())
    for end, cell in sorted(ends, key=lambda item: item[0]):
        clock[0] = end
        costs.finish(cell, cells[cell])
        left.update(*costs.progress())
        done += cell.cost
        truth = whole - (end - 100.0)
        if 0.1 * whole < end - 100.0 < 0.95 * whole:
            wrong.append(max(left.left() / truth, truth / left.left()))
            guess = (end - 100.0) * (total - done) / done
            naive.append(max(guess / truth, truth / guess))
    assert len(wrong) > 40
    assert max(wrong) < 2 < max(naive)


def test_a_log_that_hears_late_of_the_end_has_no_time_left(clock, capsys):
    with bar("cells") as show:
        show(0, 10)
        clock[0] += 50
        show(10, 10)
        clock[0] += 10
        show(10, 10)
        clock[0] += 75
        show(10, 10)
    assert capsys.readouterr().err.splitlines()[-1] == "cells 100%, 0:00:00 left"


def test_no_time_is_left_once_all_is_done(clock):
    left = TimeLeft()
    left.update(0.0, 10.0)
    clock[0] += 50
    left.update(10.0, 10.0)
    clock[0] += 2  # the report comes after the last part
    assert left.left() == 0.0
