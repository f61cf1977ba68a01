"""What commands print: help, results as text and as JSON, and errors."""

import json
import re

import pyarrow.csv
import pytest

from goldens.harness import check, golden_cases, need_the_same_rounding, plain_json, shortened
from goldens.logs import visits
from orthobandit.cli import COMMANDS, main

FOLDER = "commands"
ARMS = "page,price,colour\nplain,0,0\nbold,1,0\nsale,0,1\nboth,1,1\n"
ANALYSE = [
    "analyse",
    "log.csv",
    "--arm",
    "arm",
    "--reward",
    "spent",
    "--time",
    "at",
    "--split",
    "a=.5 b=.3 c=.2",
]
SIMULATE = [
    "simulate",
    "--instance",
    "near-degenerate",
    "--dimension",
    "3",
    "--horizon",
    "3000",
    "--replications",
    "3",
]
SIMULATE += ["--policy", "sbe", "ucb1"]
DESIGN = ["design", "arms.csv", "--runs", "0"]
DATABASE = ["--db", "all.db"]
# Of each case: the commands, one after the other.
CASES = {
    "design": [
        DESIGN,
        [*DESIGN, "--json"],
        [*DESIGN, "--method", "anchor", "--reference", "sale", "--bounds"],
    ],
    "design, contrast": [[*DESIGN, "--method", "contrast", "--top", "2"]],
    "simulate": [SIMULATE, [*SIMULATE, "--json"]],
    "analyse": [ANALYSE, [*ANALYSE, "--json"], [*ANALYSE, "--fixed", "--metric", "clicks"]],
    "analyse, sql": [["analyse", "shop.visits", *ANALYSE[2:], "--sql", "bigquery"]],
    "verify": [
        [*ANALYSE, "--save", "saved.json"],
        ["verify", "saved.json"],
        ["verify", "saved.json", "--json"],
    ],
    "init": [["init", "first"]],
    "db": [["db", "upgrade", *DATABASE], ["db", "check", *DATABASE], ["db", "check", *DATABASE, "--json"]],
    "errors": [
        [],
        ["nothing"],
        ["analyse"],
        ["analyse", "nowhere.csv", "--arm", "arm", "--reward", "spent"],
        ["analyse", "log.csv", "--arm", "arm", "--reward", "spend", "--time", "at", "--split", "equal"],
        ["design", "nowhere.csv"],
        ["simulate", "--policy", "best"],
        ["verify", "arms.csv"],
        ["db", "check", "--db", "nowhere.db"],
    ],
}
BY_ROUNDING = {"design, contrast"}  # arms with equal probabilities are listed by their last bits
HELP = ["orthobandit", *COMMANDS]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Make the files that commands read, in a folder of their own; help is 80 columns wide."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "arms.csv").write_text(ARMS)
    pyarrow.csv.write_csv(visits(), tmp_path / "log.csv")
    return tmp_path


def printed(command, capsys, place):
    """Return a command, its exit code and what it printed."""
    try:
        code = main(command)
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    if "--json" in command and out:
        out = plain_json(shortened(json.loads(out)))
    complaints = [f"! {line}" for line in err.splitlines()]
    lines = [f"$ orthobandit {' '.join(command)}", out.rstrip(), *complaints, f"= {code}"]
    text = "\n".join(lines).replace(str(place), "<folder>")
    return re.sub(r"\d+ here\)", "<cores> here)", re.sub(r"\d+\.?\d* ?m?s\b", "<time>", text))


@pytest.mark.parametrize("name", golden_cases(FOLDER, CASES))
def test_command(name, capsys, place):
    if name in BY_ROUNDING:
        need_the_same_rounding()
    check({f"{FOLDER}/{name}.txt": "\n\n".join(printed(command, capsys, place) for command in CASES[name])})


@pytest.mark.parametrize("name", golden_cases(FOLDER, ["help"]))
def test_help(name, capsys, place):
    commands = [["--help"], *([command, "--help"] for command in COMMANDS)]
    check({f"{FOLDER}/{name}.txt": "\n\n".join(printed(command, capsys, place) for command in commands)})
