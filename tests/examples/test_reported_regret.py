"""The paper's reported regret beside ours: what the table says of given numbers, and of few runs."""

import runpy
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "reported_regret.py"


@pytest.fixture(scope="module")
def example():
    return runpy.run_path(str(SCRIPT))


def test_ratios_are_of_means_and_ranges_by_arm_set(example):
    line = example["row"]("ν²", np.array([110.0, 180.0]), np.array([100.0, 200.0]))
    assert line.split() == ["ν²", "145", "±", "35", "110–", "180", "0.967", "0.90–1.10"]


def test_our_arms_cost_more_than_the_reported_regret(example):
    found = example["regrets"](example["SHIFTS"]["ν¹"], sets=4, runs=4)
    assert found.shape == (4,)
    assert np.all(found > example["REPORTED"]["ν¹"])
