"""Tuning in hindsight, its edges, and tuning on other arm sets than one is compared on."""

import numpy as np
import pytest

from inside.reproduction import Scope
from orthobandit.reproduction.sections.regret import (
    NARROW,
    UNTUNED,
    WIDE,
    Contender,
    Tuned,
    below,
    best,
    cross_tuned,
    edges,
    fraction,
    tried,
)


def runs_of(regret):
    """Return runs of a policy: {(variant, c): regret on each of two sets, two runs on each}."""
    rows = [
        ("BOSE", variant, scale, f"arms {place + 1}", value + change)
        for (variant, scale), values in regret.items()
        for place, value in enumerate(values)
        for change in (-1.0, 1.0)
    ]
    names = ("policy", "variant", "scale", "instance", "regret")
    return {name: np.array([row[i] for row in rows]) for i, name in enumerate(names)}


RUNS = runs_of(
    {("", 0.5): (90, 110), ("", 1.0): (300, 500), ("", 8.0): (900, 900), ("λ = 1", 0.25): (40, 60)}
)


def test_the_paper_tunes_on_its_grid_and_the_wide_one_reaches_further():
    narrow = best(tried(RUNS, "BOSE", NARROW, ("",)))
    assert (narrow.tuning, narrow.regret.value) == ("c = 1", 400.0)
    wide = best(tried(RUNS, "BOSE", WIDE))
    assert (wide.tuning, wide.regret.value) == ("λ = 1, c = 1/4", 50.0)
    assert wide.regret.error == pytest.approx(10.0)


def test_edges_are_named_with_the_size_and_the_side():
    narrow = best(tried(RUNS, "BOSE", NARROW, ("",)))
    said = edges({"(5, 10)": [narrow]})
    assert "BOSE at the smallest c (1) at (5, 10)" in said
    alone = best(tried(RUNS, "BOSE", WIDE, ("λ = 1",)))
    assert edges({"(5, 10)": [alone]}) == "no policy was best at an edge of it."


def test_one_in_the_middle_is_at_no_edge():
    found = tried(runs_of({("", 0.5): (9, 9), ("", 1.0): (5, 5), ("", 2.0): (9, 9)}), "BOSE", WIDE)
    assert best(found).edge is None


def test_who_is_below_an_untuned_policy_is_said_for_every_size():
    def one(label, scale, regret):
        return Tuned(label, "", scale, np.full(2, regret), (scale,))

    ours = one("ours", UNTUNED, 300.0)
    said = below(
        {
            "(5, 10)": [one("BOSE", 0.5, 200.0), one("SBE", 1.0, 600.0), one("exact", UNTUNED, 100.0), ours],
            "(20, 30)": [one("BOSE", 0.5, 400.0), ours],
        },
        "ours",
    )
    assert said == (
        "So tuned, at (5, 10) BOSE (c = 1/2; 200) is below ours (300);"
        " at (20, 30) nobody is below ours (300)."
    )
    assert below({"(5, 10)": [one("BOSE", 0.5, 200.0)]}, "ours") == ""


def test_nobody_profits_from_the_set_he_is_compared_on():
    found = tried(runs_of({("", 1.0): (0, 90), ("", 2.0): (80, 10)}), "BOSE", WIDE)
    # In hindsight c = 2 or 1 would have had 45; each set is tuned on the other, where the wrong one is best.
    assert cross_tuned(found).tolist() == [80.0, 90.0]


def test_fractions_are_written_as_people_do():
    assert [fraction(scale) for scale in (1 / 16, 0.5, 8.0)] == ["1/16", "1/2", "8"]


def test_a_contender_has_more_runs_where_it_may_stake_all():
    one = Contender("bose", {"delta": 0.05}, runs=(1, 2), bold_runs=(4, 10), quick={"ridge": 2.0})
    assert [one.runs_at(scale, Scope()) for scale in (UNTUNED, 0.5, 1.0)] == [1, 4, 1]
    assert one.runs_at(0.5, Scope(is_quick=False)) == 10
    assert one.settings_at("", 0.5, Scope()) == {"delta": 0.05, "ridge": 2.0, "scale": 0.5}
    assert one.settings_at("", UNTUNED, Scope(is_quick=False)) == {"delta": 0.05}
