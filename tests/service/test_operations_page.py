"""The page on operations names what there is, and its commands run."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import orthobandit
from inside.service import Metrics, experiment_families
from orthobandit.cli import main
from orthobandit.service import create_app
from orthobandit.service.background.webhook_events import KINDS
from service_samples import TWO, running, served, token_of

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(.*?)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SCRIPT = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(Path(orthobandit.__file__).parents[1])!r})
from orthobandit.cli import main
sys.exit(main())
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_commands_run(tmp_path):
    where = tmp_path / "experiments.db"
    with served(where) as http:
        http.post("/v1/experiments", json=TWO)
        http.post("/v1/experiments/page/ask", json={})
    command = tmp_path / "bin" / "orthobandit"
    command.parent.mkdir()
    command.write_text(SCRIPT)
    command.chmod(0o755)
    printed = ""
    with running(create_app(where)) as address:
        path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
        environment = os.environ | {"ADDRESS": address, "TOKEN": token_of(where), "PATH": path}
        for text in [text for language, text in BLOCKS if language == "sh"]:
            done = subprocess.run(  # noqa: S603
                ["bash", "-ec", text],  # noqa: S607
                env=environment,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            printed += done.stdout
    assert "page: as it should be\nnothing is wrong\n" in printed
    assert "the tables were of version" in printed
    assert '"secret":"whsec_' in printed


def test_every_metric_and_kind_is_on_the_page():
    families = [*Metrics().families(), *experiment_families({})]
    for family in families:
        assert f"`{family.name}" in PAGE, family.name
    for kind in KINDS:
        assert f"| `{kind}` |" in PAGE


def test_flags_that_the_page_names_are_there(capsys):
    helps = ""
    for command in ("serve", "db", "demo-traffic"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        helps += capsys.readouterr().out
    ours = re.findall(r"orthobandit (?:serve|db|demo-traffic)(.*)", PAGE) + re.findall(r"`(--[\w-]+)", PAGE)
    for flag in {flag for text in ours for flag in re.findall(r"--[a-z-]+", text)}:
        assert flag in helps, flag
