"""Completion, in the real shells where they are installed."""

import os
import pty
import select
import shutil
import subprocess
import time
from contextlib import contextmanager

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


# Everything that completion adds is noted in a file; Ctrl-G notes the line, and empties it.
ZSHRC = """
fpath=($SCRIPTS $fpath); autoload -Uz compinit; compinit -u -d $SCRIPTS/.dump
[[ -e $SCRIPTS/sourced ]] && . $SCRIPTS/sourced
compadd() {
  local -a found
  if [[ ${@[(i)-[OAD]*]} -gt $# ]]; then
    builtin compadd -O found "$@"
    print -rl -- $found >> $NOTES
  fi
  builtin compadd "$@"
}
note() { print -r -- "line:$BUFFER" >> $NOTES; BUFFER=''; }
zle -N note; bindkey '^G' note; bindkey '^I' complete-word; unsetopt automenu listbeep
"""


class Zsh:
    """A zsh at a terminal of its own."""

    def __init__(self, terminal, notes):
        self._terminal, self._notes = terminal, notes

    def ask(self, *words):
        """Return what is offered after `orthobandit WORDS`, the last of which is being typed."""
        self._notes.write_text("")
        os.write(self._terminal, f"orthobandit {' '.join(words)}\t\x07".encode())
        for _ in range(600):
            if select.select([self._terminal], [], [], 0.05)[0]:
                os.read(self._terminal, 65536)
            *offered, last = self._notes.read_text().split("\n")[:-1] or [""]
            if last.startswith("line:"):
                return sorted({one.strip() for one in offered if one.strip()})
            time.sleep(0)
        raise AssertionError("zsh does not answer")


@contextmanager
def zsh_at_work(folder, scripts):
    """Yield a zsh that finds completions in a folder, as a user's does."""
    notes = scripts / "notes"
    (scripts / ".zshrc").write_text(ZSHRC)
    ours, its = pty.openpty()
    settings = {"ZDOTDIR": str(scripts), "SCRIPTS": str(scripts), "NOTES": str(notes), "TERM": "dumb"}
    process = subprocess.Popen(  # noqa: S603
        [shutil.which("zsh"), "-d", "-i"],
        stdin=its,
        stdout=its,
        stderr=its,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(scripts)} | settings,
        start_new_session=True,
    )
    os.close(its)
    try:
        yield Zsh(ours, notes)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def work(tmp_path):
    """Return a folder with files to complete."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "arms.csv").touch()
    (folder / "study.toml").touch()
    return folder


# What is typed, and what is offered, by every shell.
TYPED = [
    (["si"], ["simulate"]),
    (["simulate", "--hor"], ["--horizon"]),
    (["simulate", "--policy", "any"], ["anytime"]),
    (["simulate", "--policy", "anytime", "ling"], ["lingame", "lingape"]),
    (["simulate", "--policy", "anytime", "--shift", "rand"], ["random-walk"]),
    (["design", "arms.csv", "--method", "c"], ["centred", "contrast"]),
    (["design", "ar"], ["arms.csv"]),
    (["sweep", "study.toml", "--out", "ar"], ["arms.csv"]),
    (["completion", "z"], ["zsh"]),
    (["db", "ba"], ["backup"]),
    (["db", "backup", "ar"], ["arms.csv"]),
    (["reproduce", "--only", "figure-1", "figure-3", "figure-4"], ["figure-4"]),
    (["--ver"], ["--version"]),
]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_at_the_first_key(script, work, tmp_path):
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    script("zsh").rename(scripts / "_orthobandit")
    with zsh_at_work(work, scripts) as zsh:
        for words, offered in TYPED:
            assert zsh.ask(*words) == offered, words
        assert set(COMMANDS) <= {one.partition(" ")[0] for one in zsh.ask("")}


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_by_a_script_that_is_sourced(script, work, tmp_path):
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    script("zsh").rename(scripts / "sourced")
    with zsh_at_work(work, scripts) as zsh:
        assert zsh.ask("si") == ["simulate"]


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_as_a_user_sees_it(script, work, tmp_path):
    completions, programs = tmp_path / "fish" / "completions", tmp_path / "bin"
    completions.mkdir(parents=True)
    programs.mkdir()
    script("fish").rename(completions / "orthobandit.fish")
    program = programs / "orthobandit"  # fish completes only what there is
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    settings = {"PATH": path, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "TERM": "dumb"}
    lines = [f"complete -C 'orthobandit {' '.join(words)}'; echo =" for words, _ in [*TYPED, ([""], [])]]
    done = subprocess.run(  # noqa: S603
        [shutil.which("fish"), "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=True,
        cwd=work,
        env=settings,
    )
    assert done.stderr == ""
    *answers, commands, _ = done.stdout.split("=\n")
    for (words, offered), answer in zip(TYPED, answers, strict=True):
        assert sorted(line.partition("\t")[0] for line in answer.splitlines()) == offered, words
    assert set(COMMANDS) <= {line.partition("\t")[0] for line in commands.splitlines()}


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_bash_completes_commands_options_values_and_files(script, work):
    path = script("bash")
    for words, offered in TYPED:
        assert sorted(completed(path, *words, folder=work)) == offered, words
    assert set(COMMANDS) <= set(completed(path, "", folder=work))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_is_one_that_its_shell_can_read(script, shell):
    path = script(shell)
    for name in COMMANDS:
        assert name in path.read_text()
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"no {shell} here")
    subprocess.run([found, "-n", str(path)], check=True)  # noqa: S603
