"""Neither the order of rows nor how they are spread over files changes what is found."""

from itertools import pairwise

import pyarrow.parquet
from hypothesis import given, settings
from hypothesis import strategies as st

from logs_samples import LABELS, by_key, gathered, made, same

P = tuple(f"p:{label}" for label in LABELS)
FIELDS = {
    "time": "at",
    "probabilities": P,
    "covariates": ("age",),
    "segment": "country",
    "metrics": ("revenue",),
}


@settings(max_examples=6)
@given(st.permutations(range(60)), st.lists(st.integers(0, 60), max_size=3), st.booleans())
def test_rows_in_any_order_and_any_files(tmp_path_factory, order, cuts, has_units):
    fields = FIELDS | ({"unit": "user"} if has_units else {})
    log, folder = made(60, holes=True), tmp_path_factory.mktemp("parts")
    moved, edges = log.take(order), [0, *sorted(cuts), 60]
    for place, (begin, end) in enumerate(pairwise(edges)):
        pyarrow.parquet.write_table(moved.slice(begin, end - begin), folder / f"{place}.parquet")
    expected = gathered(log, missing="drop", **fields)
    found = gathered(folder, missing="drop", **fields)
    same(by_key(found), by_key(expected))
    assert found.units == expected.units
