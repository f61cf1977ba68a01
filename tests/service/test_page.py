"""The page on the service says what the server does."""

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from orthobandit.service import create_app
from orthobandit.service.app import OPERATIONS
from orthobandit.service.http.problem_kinds import KINDS
from service_samples import running, token_of

PAGE = (Path(__file__).parents[2] / "docs" / "service.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(.*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def place(tmp_path):
    where = tmp_path / "all.db"
    with running(create_app(where)) as address:
        yield address, token_of(where)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_commands_and_code_print_what_stands_below_them(place):
    address, token = place
    commands = 0
    for (language, text), (_, below) in zip(BLOCKS, [*BLOCKS[1:], ("", "")], strict=True):
        if language == "sh":
            environment = os.environ | {"ADDRESS": address, "TOKEN": token}
            done = subprocess.run(["bash", "-c", text], env=environment, capture_output=True, check=True)  # noqa: S603, S607
            answer, commands = json.loads(done.stdout), commands + 1
            if below.startswith("{"):
                assert answer == json.loads(below)
            else:
                assert "problem" not in answer.get("type", ""), answer
        elif language == "{code-block} python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, "service.md", "exec"), {"ADDRESS": address, "TOKEN": token})
            assert printed.getvalue() == below
    assert commands >= 6


def test_every_kind_of_problem_is_on_the_page():
    for kind in KINDS:
        assert f"`{kind}`" in PAGE, kind


def test_the_page_has_the_table_of_all_operations(tmp_path):
    # Sphinx makes it of OPERATIONS; see docs/_ext/operations.py.
    assert ".. operations::" in PAGE
    paths = create_app(tmp_path / "all.db").openapi()["paths"]
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert {(operation.method, operation.path_format) for operation in OPERATIONS} == described
