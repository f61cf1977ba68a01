import json

import numpy as np
import pytest
from tests.unit.experiment.recorded import fed

from orthobandit.cli import main


@pytest.fixture(scope="module")
def certificate():
    return fed("bounded", means=(0.2, 0.7), rounds=400).certificate()


@pytest.fixture
def path(certificate, tmp_path):
    certificate.write(tmp_path / "decision.json")
    return tmp_path / "decision.json"


def test_a_valid_certificate_is_said_to_be_so_with_what_it_claims(path, certificate, capsys):
    assert main(["verify", str(path)]) == 0
    shown = capsys.readouterr().out
    head = certificate.document["head"]
    assert shown == (
        "valid: '1' is the best of 2 arms (bounded rewards from 0 to 1;"
        " false winners in at most 5 % of experiments)\n"
        f"head {head}\n"
    )


def test_a_head_that_was_published_is_compared(path, certificate, capsys):
    assert main(["verify", str(path), "--head", certificate.document["head"]]) == 0
    assert main(["verify", str(path), "--head", "2:0123"]) == 1
    assert "after 2 entries the head is 2:" in capsys.readouterr().out


def test_a_changed_one_is_not_and_the_numbers_are_named(path, capsys):
    path.write_text(path.read_text().replace('"delta": 0.05', '"delta": 0.04'))
    assert main(["verify", str(path)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("NOT valid")
    assert "the digest does not fit" in shown
    assert "the head is claimed to be" in shown
    assert "recomputed it is" in shown


def test_of_many_problems_the_first_and_the_last_are_shown(log, tmp_path, capsys):
    path = tmp_path / "certificate.json"
    assert main([*log, "--time", "hour", "--save", str(path)]) == 0
    document = json.loads(path.read_text())
    capsys.readouterr()
    for entry in document["entries"]:
        entry["values"] = [value + 1.0 for value in entry["values"]] if "values" in entry else []
    path.write_text(json.dumps(document))
    assert main(["verify", str(path), "--json"]) == 1
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert len(problems) > 20
    assert main(["verify", str(path)]) == 1
    shown = capsys.readouterr().out.splitlines()[1:]
    assert [line.strip() for line in shown[:10]] == problems[:10]
    assert shown[10].strip() == f"… and {len(problems) - 15:,} more (--json lists all)"
    assert [line.strip() for line in shown[11:]] == problems[-5:]


def test_json_holds_verdict_claim_and_problems(path, capsys):
    assert main(["verify", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["valid"] is True
    assert report["problems"] == []
    assert "best of 2 arms" in report["claim"]
    assert report["head"].partition(":")[0].isdecimal()


@pytest.mark.parametrize("text", ['{"format": "other"}', "[1, 2]", "no json", '{"format": "orthobandit'])
def test_foreign_and_cut_files_are_named(tmp_path, capsys, text):
    (tmp_path / "other.json").write_text(text)
    assert main(["verify", str(tmp_path / "other.json")]) == 2
    assert "other.json is not a certificate" in capsys.readouterr().err


def test_a_missing_file_is_named(tmp_path, capsys):
    assert main(["verify", str(tmp_path / "none.json")]) == 2
    assert "none.json cannot be read: No such file" in capsys.readouterr().err


@pytest.fixture
def log(tmp_path):
    """Return the flags that analyse a log of two arms, whose rewards are 0 or 1."""
    rng = np.random.default_rng(4)
    arm = rng.integers(0, 2, 3000)
    won = rng.random(3000) < 0.2 + 0.2 * arm
    lines = [f"{row // 50},{'ab'[arm[row]]},{int(won[row])}" for row in range(3000)]
    (tmp_path / "log.csv").write_text("\n".join(["hour,page,won", *lines]))
    return ["analyse", str(tmp_path / "log.csv"), "--arm", "page", "--reward", "won", "--split", "equal"]


def test_what_analyse_saves_is_valid_and_says_the_same(log, tmp_path, capsys):
    saved = tmp_path / "certificate.json"
    assert main([*log, "--time", "hour", "--save", str(saved), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == [str(saved)]
    low, high = found["metrics"][0]["effects"][1]["interval"]
    assert main(["verify", str(saved)]) == 0
    assert capsys.readouterr().out.startswith(
        f"valid: gaps of 'won' over 'a': 'b' {low:.6g} to {high:.6g}, better;"
        " a wrong interval in at most 5 % of logs (asymptotic)\nhead "
    )
    saved.write_text(saved.read_text().replace(f'"high": {high}', '"high": 0.9'))
    assert main(["verify", str(saved)]) == 1
    assert "the upper end of 'b' is claimed to be 0.9; recomputed it is" in capsys.readouterr().out


def test_what_cannot_be_saved_is_shown_with_the_reason(log, tmp_path, capsys):
    assert main([*log, "--save", str(tmp_path / "certificate.json")]) == 2
    shown = capsys.readouterr()
    assert "'b' is the best arm by 'won'" in shown.out
    assert "an ordinary interval has no certificate; name the time of each draw" in shown.err
    assert not (tmp_path / "certificate.json").exists()
