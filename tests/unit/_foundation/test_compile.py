"""Machine code that is kept on disk is used as long as nothing it was made of has changed."""

import importlib
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from numba.core.errors import NumbaError

from orthobandit._foundation.compile import IN_PLACE, compiled, compiled_for, compiled_in_place

INNER = """
from orthobandit._foundation.compile import compiled

@compiled
def inner(x):
    return x + {step}
"""
OUTER = """
from orthobandit._foundation.compile import compiled
from inner import inner
{where}

@compiled
def outer(pair):
    return inner(pair.first) * pair.second
"""
PAIR = """
from typing import NamedTuple

class Pair(NamedTuple):
    first: float
    second: float
"""
CALL = """
from outer import Pair, outer
print(outer(Pair(1.0, 3.0)), sum(outer.stats.cache_hits.values()))
"""


BEGUN = """
import sys

import pytest
import time
from pathlib import Path

Path(sys.argv[1]).touch()
while len(list(Path().glob("begun-*"))) < 3:
    time.sleep(0.001)
"""
FAILING = """
from orthobandit._foundation import compile as _compile
from orthobandit._foundation.compile import compiled, typed

_compile.MAX_WAIT_SECONDS = 0.0

@compiled
def broken(x):
    return x.nothing

assert typed(broken, 1.0, [1.0]) is None
lock = _compile.Lock(broken._cache._lock._path)
print(lock.take())
other = _compile.Lock(broken._cache._lock._path)
print(other.take())
"""


def called(folder):
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", CALL], cwd=folder, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_code_is_made_anew_when_what_it_calls_or_what_it_takes_has_changed(tmp_path):
    (tmp_path / "inner.py").write_text(INNER.format(step=1.0))
    (tmp_path / "pairs.py").write_text(PAIR)
    (tmp_path / "outer.py").write_text(OUTER.format(where="from pairs import Pair"))
    assert called(tmp_path) == ["6.0", "0"]
    assert called(tmp_path) == ["6.0", "1"]
    (tmp_path / "inner.py").write_text(INNER.format(step=20.0))
    assert called(tmp_path) == ["63.0", "0"]
    assert called(tmp_path) == ["63.0", "1"]
    # The index on disk names a class whose module is gone.
    (tmp_path / "pairs.py").rename(tmp_path / "couples.py")
    (tmp_path / "outer.py").write_text(OUTER.format(where="from couples import Pair"))
    assert called(tmp_path) == ["63.0", "0"]
    assert called(tmp_path) == ["63.0", "1"]


@pytest.mark.slow
def test_processes_that_start_together_compile_once(tmp_path):
    (tmp_path / "inner.py").write_text(INNER.format(step=1.0))
    (tmp_path / "pairs.py").write_text(PAIR)
    (tmp_path / "outer.py").write_text(OUTER.format(where="from pairs import Pair"))
    code = CALL.replace("print", BEGUN + "print")
    started = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", code, f"begun-{number}"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        for number in range(3)
    ]
    printed = sorted(process.communicate()[0].split() for process in started)
    assert printed == [["6.0", "0"], ["6.0", "1"], ["6.0", "1"]]


def test_code_that_cannot_be_compiled_blocks_nobody(tmp_path):
    (tmp_path / "failing.py").write_text(FAILING)
    done = subprocess.run(
        [sys.executable, "failing.py"], cwd=tmp_path, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    # The first lock is free although compiling failed; the second is taken, and waiting has an end.
    assert done.stdout.split() == ["True", "False"]


def test_code_runs_without_the_compiler_for_debuggers_and_profilers():
    code = (
        "from orthobandit._foundation.compile import compiled, compiled_for\n"
        "twice = compiled(lambda x: 2.0 * x)\n"
        "call = compiled_for(compiled(lambda x, f: f(x)), [1.0], [(1.0, [1.0])])\n"
        "print(call(3.0, twice))\n"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.stdout == "6.0\n"


@compiled
def square(number):
    return float(number * number)


@compiled_in_place
def fill_by(out, function):
    for place in range(out.size):
        out[place] = function(place)


def test_a_function_in_place_writes_rows_and_cannot_allocate():
    # Without reference counts a fresh array would never be freed: numba must refuse it, not leak.
    @numba.njit
    def double(row):
        for k in range(row.size):
            row[k] *= 2.0

    def double_rows(rows):
        for place in range(rows.shape[0]):
            double(rows[place])

    def copy_rows(rows):
        return rows.copy().sum()

    rows = np.arange(6.0).reshape(3, 2)
    numba.njit(**IN_PLACE)(double_rows)(rows)
    assert rows.tolist() == [[0.0, 2.0], [4.0, 6.0], [8.0, 10.0]]
    with pytest.raises(NumbaError):
        numba.njit(**IN_PLACE)(copy_rows)(rows)


def test_functions_that_are_passed_keep_what_their_caller_was_compiled_with():
    made = compiled_for(fill_by, (np.zeros(3),), [(0.0, (0,))])
    out = np.zeros(3)
    made(out, square)
    assert out.tolist() == [0.0, 1.0, 4.0]
    assert made.targetoptions["_nrt"] is False


ALLOCATES = """
import numpy as np
from orthobandit._foundation.compile import compiled, compiled_in_place

@compiled
def total(row):
    return np.sort(row.copy()).sum()

@compiled_in_place
def totals(rows, out):
    for place in range(rows.shape[0]):
        out[place] = total(rows[place])
"""


def test_a_function_in_place_may_call_one_that_allocates_and_is_not_compiled_yet(tmp_path, monkeypatch):
    (tmp_path / "allocates.py").write_text(ALLOCATES)
    monkeypatch.syspath_prepend(tmp_path)
    totals = importlib.import_module("allocates").totals
    out = np.zeros(2)
    totals(np.ones((2, 3)), out)
    assert out.tolist() == [3.0, 3.0]
