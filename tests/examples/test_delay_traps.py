"""What the page on live experiments says of late and missing rewards."""

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "examples" / "delay_traps.py"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    ("world", "truth"),
    [
        pytest.param(((0.10, 0.12), (1.0, 1.0), 0.15), 0.02, id="dropping the silent"),
        pytest.param(((0.26, 0.26), (72.0, 24.0), 1.0), 0.0, id="counting on arrival"),
    ],
)
def test_the_trap_misleads_and_the_experiment_does_not(script, world, truth):
    # Seed and key are fixed, so this is no matter of luck.
    trap, gap, width = script["estimates"](script["World"](*world), visits=100_000)
    assert trap > truth + 0.02
    assert abs(gap - truth) < width < 0.02
