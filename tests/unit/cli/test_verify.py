import json

import pytest
from tests.unit.experiment.fed import fed

from orthobandit.cli import main


@pytest.fixture(scope="module")
def certificate():
    return fed("bounded", means=(0.2, 0.7), rounds=400).certificate()


@pytest.fixture
def path(certificate, tmp_path):
    certificate.write(tmp_path / "decision.json")
    return tmp_path / "decision.json"


def test_a_valid_certificate_is_said_to_be_so_with_what_it_claims(path, capsys):
    assert main(["verify", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown == "valid: '1' is the best of 2 arms, with probability 0.95 (bounded rewards)\n"


def test_a_changed_one_is_not_and_the_numbers_are_named(path, capsys):
    path.write_text(path.read_text().replace('"delta": 0.05', '"delta": 0.04'))
    assert main(["verify", str(path)]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("NOT valid")
    assert "the digest does not fit" in shown
    assert "δ is 0.04" in shown


def test_json_holds_verdict_claim_and_problems(path, capsys):
    assert main(["verify", str(path), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["valid"] is True
    assert report["problems"] == []
    assert "best of 2 arms" in report["claim"]


@pytest.mark.parametrize("text", ['{"format": "other"}', "[1, 2]", "no json", '{"format": "orthobandit'])
def test_foreign_and_cut_files_are_named(tmp_path, capsys, text):
    (tmp_path / "other.json").write_text(text)
    assert main(["verify", str(tmp_path / "other.json")]) == 2
    assert "other.json is not a certificate" in capsys.readouterr().err


def test_a_missing_file_is_named(tmp_path, capsys):
    assert main(["verify", str(tmp_path / "none.json")]) == 2
    assert "none.json cannot be read: No such file" in capsys.readouterr().err
