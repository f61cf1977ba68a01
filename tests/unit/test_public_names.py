"""The package's front door: every public name is there and stays, and opening it is quick."""

import json
import subprocess
import sys
from importlib import import_module

import pytest

import orthobandit
from public_names import FILE, MODULES, public_names

# Each takes a tenth of a second or more to import, and most who use the package need none of them.
HEAVY = (
    *("scipy.linalg", "scipy.special", "scipy.optimize", "scipy.stats", "matplotlib", "pandas", "polars"),
    *("pyarrow", "ibis", "duckdb", "sqlalchemy", "alembic", "fastapi", "pydantic", "httpx", "jinja2", "ray"),
    *("rich", "narwhals", "orthobandit.simulation", "orthobandit.experiment", "orthobandit.logs"),
    *("orthobandit.study", "orthobandit.service", "orthobandit.cli", "numpy", "numba"),
)


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_exists_and_is_listed(module):
    found = import_module(module)
    for name in found.__all__:
        assert getattr(found, name) is not None
        assert module == "orthobandit.service" or name in dir(found)


@pytest.mark.parametrize("module", MODULES)
def test_public_names_change_only_when_it_is_announced(module):
    kept, now = set(json.loads(FILE.read_text())[module]), set(public_names()[module])
    advice = "say so in a fragment in changes/, then run `python tests/public_names.py`"
    gone, new = sorted(kept - now), sorted(now - kept)
    assert not gone, f"gone from {module}: {gone}; deprecate first (CONTRIBUTING), and {advice}"
    assert not new, f"new in {module}: {new}; {advice}"


def test_other_names_do_not():
    with pytest.raises(AttributeError, match="no attribute 'simulat'"):
        _ = orthobandit.simulat


def test_the_version_is_that_of_the_command_line(capsys):
    from orthobandit.cli import main

    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"orthobandit {orthobandit.__version__}\n"


def loaded_after(statement):
    script = f"import sys; {statement}; print(*sorted(sys.modules))"
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    assert done.stderr == ""
    return set(done.stdout.split())


def test_nothing_heavy_is_imported_before_it_is_asked_for():
    assert not loaded_after("import orthobandit") & set(HEAVY)
    assert "orthobandit.simulation" in loaded_after("import orthobandit; orthobandit.simulate")
    assert "numpy" in loaded_after("import orthobandit; orthobandit.ArmSet")


def test_help_waits_for_no_numerics():
    arguments = ["--help"], ["--version"], ["completion", "--help"]
    for given in arguments:
        lines = [
            "from contextlib import redirect_stdout, suppress",
            "from io import StringIO",
            "from orthobandit.cli import main",
            f"with suppress(SystemExit), redirect_stdout(StringIO()): main({given})",
        ]
        script = "\n".join(lines)
        assert not loaded_after(f"exec({script!r})") & {"numpy", "numba", "scipy"}


def test_completion_and_type_checkers_see_all_names():
    assert set(orthobandit.__all__) <= set(dir(orthobandit))
    assert orthobandit.design.centred_design is orthobandit.centred_design
    every = {}
    exec("from orthobandit import *", every)
    assert set(orthobandit.__all__) <= set(every)


def test_the_half_of_scipy_that_takes_as_long_as_all_else_waits_until_it_is_used():
    names = "AnytimeElimination, Experiment, Personalised, analyse, simulate"
    slow = {"scipy.optimize", "scipy.sparse", "scipy.stats"}
    assert not loaded_after(f"from orthobandit import {names}; import orthobandit.cli.analyse") & slow


def test_every_public_module_is_imported_without_a_warning():
    loaded_after(f"import {', '.join(MODULES)}, orthobandit.cli, orthobandit.verify")


def test_the_citation_names_this_version():
    citation = (FILE.parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {orthobandit.__version__}\n" in citation
