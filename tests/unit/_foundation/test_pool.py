"""The pool of workers: what it yields, and that it leaves no process behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

from orthobandit._foundation.pool import in_processes
from orthobandit.errors import StudyError
from processes import has_members

SCRIPT = """
import ctypes, sys, time
from pathlib import Path
from orthobandit._foundation.pool import in_processes

def work(number):
    if {is_kernel_silent}:
        ctypes.CDLL(None).prctl(1, 0)  # PR_SET_PDEATHSIG: no signal when the parent ends
    Path({folder!r}, str(number)).touch()
    time.sleep(600)

if __name__ == "__main__":
    list(in_processes(work, [1, 2], 2, remedy=""))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals differ")
@pytest.mark.parametrize("is_kernel_silent", [False, True], ids=["by signal", "by pipe alone"])
def test_workers_end_with_a_parent_that_is_killed(tmp_path, is_kernel_silent):
    if is_kernel_silent and sys.platform != "linux":
        pytest.skip("the other case has the pipe alone here")
    marks = tmp_path / "marks"
    marks.mkdir()
    script = tmp_path / "work.py"
    script.write_text(SCRIPT.format(is_kernel_silent=is_kernel_silent, folder=str(marks)))
    process = subprocess.Popen([sys.executable, str(script)], start_new_session=True)  # noqa: S603
    deadline = time.monotonic() + 60
    while len(list(marks.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(list(marks.iterdir())) == 2
    process.kill()
    process.wait()
    while has_members(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    remain = has_members(process.pid)
    if remain:
        os.killpg(process.pid, signal.SIGKILL)
    assert not remain


def test_one_job_works_here_and_in_order():
    seen = []
    assert list(in_processes(seen.append, [3, 1, 2], 1, remedy="")) == [(3, None), (1, None), (2, None)]
    assert seen == [3, 1, 2]


def test_several_jobs_yield_everything_with_its_item():
    assert sorted(in_processes(abs, [-1, -2, -3], 2, remedy="")) == [(-3, 3), (-2, 2), (-1, 1)]


@pytest.mark.slow
def test_a_worker_that_dies_ends_with_the_remedy():
    with pytest.raises(StudyError, match="ended before its work was done: try again"):
        list(in_processes(os._exit, [1, 1], 2, remedy="try again"))


def test_an_error_in_a_worker_is_the_error_here():
    with pytest.raises(ZeroDivisionError):
        list(in_processes((1).__floordiv__, [1, 0], 2, remedy=""))
