"""Progress on terminals and in logs."""

import sys

import pytest

from orthobandit.cli import _bars
from orthobandit.cli._bars import _left, bar, counter, steps_left


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose only entry is the time in seconds."""
    now = [100.0]
    monkeypatch.setattr(_bars.time, "monotonic", lambda: now[0])
    return now


def test_time_left_is_told_from_the_speed_so_far():
    assert _left(10.0, 10, 70) == "  1:10 left"
    assert _left(60.0, 1, 100) == "  1:40:00 left"
    assert _left(10.0, 0, 80) == ""


def test_a_log_gets_a_line_a_minute(clock, capsys):
    with steps_left() as show:
        for minute in range(1, 4):
            clock[0] = 100.0 + 60 * minute
            show(10 * minute, 100)
            show(10 * minute, 100)
    assert capsys.readouterr().err.splitlines() == [
        "[##..................]  10%  9:00 left",
        "[####................]  20%  8:00 left",
        "[######..............]  30%  7:00 left",
    ]


def test_what_was_finished_before_says_nothing_about_speed(clock, capsys):
    with steps_left() as show:
        show(50, 100)
        clock[0] += 60
        show(60, 100)
    assert capsys.readouterr().err == "[############........]  60%  4:00 left\n"


def test_a_terminal_has_one_line_that_is_cleared(clock, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with bar(4) as show:
        show("sbe", 1)
        clock[0] += 5
        show("sbe", 2)
    assert capsys.readouterr().err == (
        "\rsbe  [#####...............]  25%\033[K\rsbe  [##########..........]  50%  0:10 left\033[K\r\033[K"
    )


def test_short_work_leaves_logs_alone(capsys):
    with counter("pass", "gap") as show, bar(3) as draw:
        assert show is None
        assert draw is None
    with steps_left() as step:
        step(1, 2)
    assert capsys.readouterr().err == ""
