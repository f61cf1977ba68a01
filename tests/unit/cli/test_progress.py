"""Progress on terminals and in logs."""

import sys

import pytest

from orthobandit.cli import _progress
from orthobandit.cli._progress import bar


@pytest.fixture
def clock(monkeypatch):
    """Return a list whose only entry is the time in seconds."""
    now = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: now[0])
    return now


def test_a_log_gets_a_line_a_minute(clock, capsys):
    with bar("cells") as show:
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
