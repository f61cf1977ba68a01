"""Packages of extras: what is missing or broken is named, with the way to install it."""

import sys

import pytest

from orthobandit._foundation.extras import optional_package
from orthobandit.errors import MissingExtraError


def test_a_missing_package_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtraError,
        match=r"Parquet needs pyarrow; install it with `pip install '\.\[parquet\]'`",
    ):
        optional_package("pyarrow", "parquet", "Parquet")


def test_a_broken_package_says_what_breaks_it(monkeypatch, tmp_path):
    (tmp_path / "broken_engine.py").write_text("import a_module_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError, match=r"cannot be imported .*a_module_that_nobody_has"):
        optional_package("broken_engine", "ray", "backend='ray'")
