"""Help that reads like a guide, and words for what was mistyped."""

import re
import shlex

import pytest

from orthobandit.cli import COMMANDS, every_parser, main

PARSERS = every_parser()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_a_description_and_an_example(name):
    text = PARSERS[name].format_help()
    assert PARSERS[name].description
    assert "example" in text
    assert all(action.help for action in PARSERS[name]._actions)
    assert max(map(len, text.splitlines())) <= 110


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_can_be_parsed(name):
    text = (PARSERS[name].epilog or "").replace("\\\n", " ")
    for command in re.findall(r"^  orthobandit (.*)$", text, re.M):
        words = shlex.split(command.partition(" > ")[0])
        PARSERS[words[0]].parse_args(words[1:])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["simulat"], "orthobandit: 'simulat' is not a command; did you mean simulate?"),
        (["qqq"], "orthobandit: 'qqq' is not a command; there are init, design"),
        (["simulate", "--polcy", "sbe"], "simulate: there is no option --polcy; did you mean --policy?"),
        (["simulate", "--horizn=5"], "simulate: there is no option --horizn=5; did you mean --horizon?"),
        (["design", "a.csv", "--method", "centerd"], "is not a value of --method; did you mean centred?"),
        (["verify", "a.json", "b.json"], "verify: there is no argument b.json"),
        (["simulate", "--jobs", "x"], "simulate: argument --jobs: 'x' is not a whole number"),
    ],
)
def test_the_nearest_valid_name_is_suggested(given, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert said in told
    assert "--help` lists what there is" in told
    assert len(told.splitlines()) == 2


def test_the_exit_codes_stand_in_the_help(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Exit codes: 0 done; 1 done, with a bad result" in told
    for name in COMMANDS:
        assert f" {name} " in told
