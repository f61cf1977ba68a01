"""Completion, in the real shells where they are installed."""

import shutil
import subprocess

import pytest

from orthobandit.cli import COMMANDS, main

ASK = """
. "$1"; shift
COMP_WORDS=(orthobandit "$@"); COMP_CWORD=$#
_orthobandit
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def script(tmp_path, capsys):
    """Return a maker of the script of a shell."""

    def made(shell):
        assert main(["completion", shell]) == 0
        path = tmp_path / f"orthobandit.{shell}"
        path.write_text(capsys.readouterr().out)
        return path

    return made


def completed(path, *words, folder):
    """Return what bash offers after `orthobandit WORDS`, the last of which is being typed."""
    bash = shutil.which("bash")
    done = subprocess.run(  # noqa: S603
        [bash, "-c", ASK, "bash", str(path), *words], capture_output=True, text=True, check=True, cwd=folder
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_commands_options_values_and_files(script, tmp_path):
    path, folder = script("bash"), tmp_path / "work"
    folder.mkdir()
    (folder / "arms.csv").touch()
    (folder / "study.toml").touch()

    def ask(*words):
        return completed(path, *words, folder=folder)

    assert ask("si") == ["simulate"]
    assert set(COMMANDS) <= set(ask(""))
    assert ask("simulate", "--hor") == ["--horizon"]
    assert ask("simulate", "--policy", "any") == ["anytime"]
    assert ask("simulate", "--policy", "anytime", "lin") == ["linucb", "lints"]
    assert ask("simulate", "--shift", "rand") == ["random-walk"]
    assert ask("design", "arms.csv", "--method", "c") == ["centred", "contrast"]
    assert ask("design", "ar") == ["arms.csv"]
    assert ask("sweep", "st") == ["study.toml"]
    assert ask("sweep", "study.toml", "--out", "ar") == ["arms.csv"]
    assert ask("completion", "z") == ["zsh"]
    assert ask("reproduce", "--only", "figure-1") == ["figure-1"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_one_that_its_shell_can_read(script, shell):
    path = script(shell)
    for name in COMMANDS:
        assert name in path.read_text()
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([found, "-n", str(path)], check=True)  # noqa: S603
