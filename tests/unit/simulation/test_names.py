"""Shifts, noise and instances by name: one line in a registry makes them known everywhere."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from orthobandit.cli import main
from orthobandit.errors import ParameterError
from orthobandit.simulation import (
    INSTANCES,
    NOISES,
    SHIFTS,
    Adaptive,
    CancelBest,
    Constant,
    Formula,
    Gaussian,
    Jumps,
    Limited,
    PushLeader,
    RandomWalk,
    Replay,
    Scaled,
    Sine,
    Trend,
    named_instance,
    named_noise,
    named_shift,
    within,
)

ROUNDS = 40_000


@pytest.mark.parametrize("name", [name for name in SHIFTS if not isinstance(named_shift(name), Adaptive)])
def test_no_path_exceeds_its_bound_nor_the_limit_it_is_brought_to(name):
    shift = named_shift(name)
    assert np.abs(shift.values(0, ROUNDS)).max() <= shift.bound
    bounded = within(shift)
    assert bounded.bound <= 1
    assert np.abs(bounded.values(0, ROUNDS)).max() <= 1
    assert np.any(bounded.values(0, ROUNDS)) == (name != "none")


def test_each_kind_is_brought_within_a_limit_in_its_own_way():
    assert within(Constant(0.5)) == Constant(0.5)
    assert within(Sine()) == Scaled(Sine(), 0.5)
    assert within(Trend()) == Limited(Trend())
    assert within(RandomWalk(), 0.5) == RandomWalk(limit=0.5)
    assert within(PushLeader(3.0), 2.0) == PushLeader(2.0)
    assert within(CancelBest(0.3), 2.0) == CancelBest(0.3)


def test_bounds_of_shifts_made_from_others():
    assert Replay([0.5, -3.0]).bound == 3
    assert Jumps(levels=(1.0, -2.0)).bound == 2
    assert Scaled(Sine(), -2.0, offset=1.0).bound == 5
    assert Scaled(Trend(), 0.0, offset=1.0).bound == 1
    assert Trend(slope=0.0, intercept=-2.0).bound == 2
    assert Limited(Trend(), 0.7).bound == 0.7


class Unruly(Adaptive):
    def values(self, past):
        return np.full(past.rounds.shape, 5.0)


@dataclass(frozen=True)
class Own(Adaptive):
    limit: float = 3.0

    def values(self, past):
        return np.full(past.rounds.shape, self.limit)


def test_an_adversary_of_ones_own_with_a_limit_is_brought_within_a_smaller_one():
    assert within(Own(), 0.5) == Own(0.5)
    assert within(Own(0.2), 0.5) == Own(0.2)


def test_an_adversary_without_a_limit_cannot_be_bounded():
    with pytest.raises(ParameterError, match="no limit that could be set"):
        within(Unruly())
    with pytest.raises(ParameterError, match="limit=0"):
        within(Sine(), 0)


def test_names_take_settings_and_wrong_ones_are_refused():
    assert named_shift("constant") == Constant(1.0)
    assert named_shift("constant", level=2.0) == Constant(2.0)
    assert named_noise("gaussian", sigma=2.0).settings().tolist() == [2.0]
    assert all(named_noise(name) for name in NOISES)
    assert named_instance("one-hot", means=[0.0, 1.0]).best == 1
    for make, name in ((named_shift, "sinus"), (named_noise, "gauss"), (named_instance, "exact")):
        with pytest.raises(ParameterError, match="did you mean"):
            make(name)
    with pytest.raises(ParameterError, match="did you mean 'angle'"):
        named_instance("near-degenerate", angel=0.2)


@dataclass(frozen=True)
class Staircase(Formula):
    height: float = 0.1

    def at(self, rounds):
        return self.height * (rounds // 100)


def flat(count: int = 3, *, shift=None, noise=None):
    return named_instance("one-hot", means=[0.0] * count, shift=shift, noise=noise)


@dataclass(frozen=True)
class Silent(Gaussian):
    sigma: float = 0.0


def test_one_line_makes_a_thing_known_to_the_library_the_command_line_and_studies(
    monkeypatch, capsys, tmp_path
):
    monkeypatch.setitem(SHIFTS, "staircase", Staircase)
    monkeypatch.setitem(INSTANCES, "flat", flat)
    monkeypatch.setitem(NOISES, "silent", Silent)
    assert named_shift("staircase", height=0.5) == Staircase(0.5)
    run = ["--instance", "flat:count=4", "--shift", "staircase:height=0.2", "--noise", "silent"]
    assert main(["simulate", *run, "--horizon", "50", "--replications", "2", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["environment"]
    assert (said["arms"], said["shift"], said["noise"]) == (4, "Staircase(height=0.2)", "Silent(sigma=0.0)")
    study = tmp_path / "study.toml"
    study.write_text(
        'horizon = 50\nreplications = 2\npolicies = ["uniform"]\nshifts = ["staircase"]\n'
        'instances = ["flat"]\nnoise = "silent"\n'
    )
    # One process: others would not know what this test adds.
    assert main(["sweep", str(study), "--out", str(tmp_path / "out"), "--jobs", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"][0]["shift"] == "staircase"


def test_the_page_describes_everything_that_has_a_name():
    page = (Path(__file__).parents[3] / "docs" / "simulation.md").read_text(encoding="utf-8")
    assert [name for name in (*SHIFTS, *NOISES, *INSTANCES) if f"`{name}`" not in page] == []
