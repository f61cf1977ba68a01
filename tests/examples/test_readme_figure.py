"""README's picture shows what it says it shows."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "examples" / "readme_figure.py"))


@pytest.fixture(scope="module")
def results(script):
    return script["season_runs"](40)


def test_the_season_misleads_the_others_alone(script, results):
    last = {name: script["shares"](result)[-1] for name, result in results.items()}
    assert last.pop("orthobandit") > 0.9
    assert max(last.values()) < 0.8


def test_the_picture_is_small_and_the_same_bytes_each_time(script, results, tmp_path):
    for name in ("one.svg", "two.svg"):
        script["draw"](results, tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert 5_000 < (ROOT / "docs" / "readme.svg").stat().st_size < 60_000
