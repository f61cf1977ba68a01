"""`orthobandit init`: the files are there, nothing is overwritten, and what is printed works."""

import json
import re
import shlex

import pytest

from orthobandit import ArmSet, analyse
from orthobandit.cli import main


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return the folder of the files."""
    folder = tmp_path_factory.mktemp("begin") / "first steps"
    assert main(["init", str(folder), "--json"]) == 0
    return folder


@pytest.mark.slow
def test_every_printed_command_works_as_it_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    printed = capsys.readouterr().out
    commands = re.findall(r"^  orthobandit (.*)$", printed, re.M)
    assert [command.split()[0] for command in commands] == ["design", "simulate", "sweep", "analyse"]
    for command in commands:
        jobs = ["--jobs", "1"] if command.startswith("sweep") else []
        assert main([*shlex.split(command), *jobs]) == 0, command
        assert capsys.readouterr().err == ""


def test_a_folder_with_a_space_is_made_and_named_as_a_shell_needs_it(begun, tmp_path, capsys):
    assert sorted(path.name for path in begun.iterdir()) == ["arms.csv", "log.csv", "study.toml"]
    folder = tmp_path / "it's mine"
    assert main(["init", str(folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert shlex.split(told["commands"][0]) == ["cd", str(folder)]
    assert told["files"] == [str(folder / name) for name in ("arms.csv", "study.toml", "log.csv")]


@pytest.mark.parametrize("name", ["arms.csv", "study.toml", "log.csv"])
def test_a_file_that_exists_is_left_as_it_is(tmp_path, capsys, name):
    (tmp_path / name).write_text("mine")
    assert main(["init", str(tmp_path)]) == 2
    assert f"{name} exists already and is left as it is" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "mine"


def test_the_log_misleads_plain_means_and_not_the_analysis(begun):
    labels = ArmSet.read(begun / "arms.csv").labels
    found = analyse(
        str(begun / "log.csv"),
        arm="page",
        reward="ordered",
        time="at",
        probabilities=[f"p:{label}" for label in labels],
    )
    means = {one.arm: one.mean for one in found.metrics[0].summaries}
    assert max(means, key=means.get) == "discount"
    assert found.sentence.startswith("'both' is the best arm by 'ordered' (wrong in at most 5 % of logs, ")
    truth = {"plain": 0.0, "video": -0.04, "discount": 0.1, "delivery": 0.08, "both": 0.18}
    for effect in found.metrics[0].effects:
        if effect.arm != effect.over:
            low, high = effect.interval
            assert low <= truth[effect.arm] <= high


def test_the_files_are_the_same_each_time(begun, tmp_path):
    main(["init", str(tmp_path), "--json"])
    for path in begun.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes()


def test_what_the_commands_need_besides_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("orthobandit.cli.study.EXTRAS", {"logs": "no_such_module", "parquet": "pyarrow"})
    assert main(["init", str(tmp_path / "a")]) == 0
    assert capsys.readouterr().out.endswith(
        "\nsome of them need more: pip install '.[logs]' in orthobandit's folder\n"
    )
