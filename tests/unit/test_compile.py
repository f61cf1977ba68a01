"""Machine code that is kept on disk is used as long as nothing it was made of has changed."""

import subprocess
import sys

INNER = """
from orthobandit._compile import compiled

@compiled
def inner(x):
    return x + {step}
"""
OUTER = """
from orthobandit._compile import compiled
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


def called(folder):
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", CALL], cwd=folder, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


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
