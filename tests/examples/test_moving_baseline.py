"""The demonstration shows what it says it shows."""

import runpy
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "moving_baseline.py"


@pytest.fixture(scope="module")
def demo():
    return runpy.run_path(str(SCRIPT))


def test_only_orthogonalised_regression_finds_the_best_offer(demo):
    columns = demo["estimate"]()
    truth = columns["true gap"]
    best = int(np.argmin(truth))
    assert np.abs(columns["orthogonalised"] - truth).max() < 0.15
    assert int(np.argmin(columns["orthogonalised"])) == best
    for name in ("OLS", "OLS + intercept"):
        assert np.abs(columns[name] - truth).max() > 0.5
        assert int(np.argmin(columns[name])) != best


def test_every_run_gives_the_same_numbers(demo):
    first, second = demo["estimate"](), demo["estimate"]()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_the_table_has_a_line_an_offer_and_a_conclusion(demo, capsys):
    demo["main"]()
    printed = capsys.readouterr().out
    for label in demo["OFFERS"].labels:
        assert f"\n{label} " in printed
    assert "largest error" in printed
    assert "'5 % off + free delivery', which is the best." in printed
    assert max(map(len, printed.splitlines())) <= 100
