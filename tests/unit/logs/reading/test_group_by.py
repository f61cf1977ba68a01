"""Cells are what a loop over rows makes of a log."""

import numpy as np
import pytest

from logs_samples import LABELS, by_key, gathered, looped, made, same
from orthobandit import Guardrail
from orthobandit.logs import Ratio

P = tuple(f"p:{label}" for label in LABELS)
COLUMNS = ("bought", "revenue", "clicks", "age")
PAIRS = np.array([[1, 0, 0, 1], [0, 1, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]], dtype=bool)
FULL = {
    "time": "at",
    "probabilities": P,
    "metrics": ("revenue",),
    "ratios": (Ratio("revenue", "clicks"),),
    "guardrails": (Guardrail("clicks", 0.1),),
    "covariates": ("age",),
    "segment": "country",
    "caps": {"revenue": 20.0},
}


def test_cells_are_what_a_loop_makes_of_the_log():
    found = gathered(made(), **FULL)
    assert found.cells.columns == COLUMNS
    assert (found.cells.width, found.cells.is_clock, found.units) == (3600.0, True, None)
    same(by_key(found), looped(made(), COLUMNS, segment="country", caps={"revenue": 20.0}, pairs=PAIRS))
    assert found.is_binary.tolist() == [True, False, False, False]
    assert np.all(np.diff(found.cells.bucket) >= 0)


def test_a_file_of_text_and_a_frame_are_the_same(tmp_path):
    import pyarrow.csv

    pyarrow.csv.write_csv(made(), tmp_path / "log.csv")
    same(by_key(gathered(tmp_path / "log.csv", **FULL)), by_key(gathered(made(), **FULL)))


@pytest.mark.parametrize("missing", ["zero", "drop"])
def test_missing_values_are_counted_and_left_out_or_zero(missing):
    fields = FULL | {"missing": missing}
    found = gathered(made(holes=True), **fields)
    expected = looped(
        made(holes=True), COLUMNS, segment="country", caps={"revenue": 20.0}, pairs=PAIRS, missing=missing
    )
    same(by_key(found), expected)
    assert found.cells.missing.sum(axis=0).tolist() == [0, 20, 10, 0]
