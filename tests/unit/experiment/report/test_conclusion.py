"""What an experiment concludes from its facts, by the first rule that holds."""

import pytest

from inside.experiment import Alarm, Conclusion, Facts, Standing, conclude

WON = Facts(alarms=(), has_rivals=True, winner="B", is_cleared=True, leader="B", status="open")


@pytest.mark.parametrize(
    ("changes", "standing"),
    [
        ({}, "won"),
        ({"status": "paused"}, "won"),
        ({"status": "stopped"}, "won"),
        ({"has_rivals": False}, "alone"),
        ({"is_cleared": False}, "held"),
        ({"is_cleared": False, "status": "paused"}, "paused"),
        ({"is_cleared": False, "status": "stopped"}, "stopped"),
        ({"winner": None}, "open"),
        ({"winner": None, "leader": None}, "early"),
        ({"winner": None, "leader": None, "status": "paused"}, "paused"),
    ],
)
def test_the_first_rule_that_holds_says_how_it_stands(changes, standing):
    assert conclude(WON._replace(**changes)).standing == standing


@pytest.mark.parametrize("changes", [{}, {"is_cleared": False}, {"has_rivals": False}, {"status": "paused"}])
def test_an_alarm_takes_back_whatever_was_concluded(changes):
    alarms = (Alarm("drift", "the gap of 'B' changed"),)
    assert conclude(WON._replace(alarms=alarms, **changes)) == Conclusion(Standing.ALARM, alarms)


def test_what_is_held_is_not_declared():
    held = conclude(WON._replace(is_cleared=False))
    assert (held.declared, held.held, held.leader) == (None, "B", "B")
    won = conclude(WON)
    assert (won.declared, won.held, won.leader) == ("B", None, "B")
