"""What happens when worker processes cannot start."""

import subprocess
import sys

import pytest

SCRIPT = """
from orthobandit import SBE, simulate
from orthobandit.simulation import exact_gap
simulate(SBE(), exact_gap(2, 3, 0.5, seed=1), horizon=50, replications=4, seed=0, jobs=2)
"""


@pytest.mark.slow
def test_a_script_without_a_guard_is_told_what_to_do():
    done = subprocess.run([sys.executable, "-"], input=SCRIPT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "StudyError: a worker process ended before its work was done" in done.stderr
    assert "if __name__ == '__main__':" in done.stderr
