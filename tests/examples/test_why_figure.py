"""The figure of docs/why.md shows what it says it shows."""

import runpy
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]


def test_plain_means_are_biased_and_orthogonalised_ones_are_not(tmp_path, capsys):
    script = runpy.run_path(str(ROOT / "examples" / "why_figure.py"))
    found = np.array([script["estimates"](seed) for seed in range(60)])
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert found[:, 0].mean() < 0.0
    assert np.all(np.abs(found[:, 1:].mean(axis=0) - script["GAP"]) < 5 * error[1:])
    assert error[2] < error[1] / 2
    script["main"](repeats=3, target=tmp_path / "why.png")
    assert capsys.readouterr().out.count("in 3 experiments") == 3
    assert (tmp_path / "why.png").stat().st_size > 5_000
