"""What releases before 0.5 have stored is refused, in one sentence that names what opens it."""

import gzip
import json
import re
import sqlite3

import pytest

from inside._foundation import older_words
from inside.estimate import Certificate
from orthobandit import SBE, AnytimeElimination, ArmSet, Experiment, analyse
from orthobandit.cli import main
from orthobandit.errors import FileFormatError, VersionError
from orthobandit.service.admin import restore, upgrade

SENTENCE = re.escape(older_words("").strip())
ARMS = ArmSet.one_hot(3)


@pytest.fixture
def database(tmp_path):
    """Return a database with the number of the tables of release 0.4.1."""
    path = tmp_path / "experiments.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE orthobandit_version (version_num VARCHAR(32) NOT NULL)")
        connection.execute("INSERT INTO orthobandit_version VALUES ('0004')")
        connection.execute("CREATE TABLE experiments (id INTEGER PRIMARY KEY, name TEXT, settings TEXT)")
    connection.close()
    return path


def test_one_sentence_names_the_release_that_opens_it_and_how_to_export():
    assert older_words("a.db") == (
        "a.db was written by a release before 0.5; release 0.4.1 (tag v0.4.1, commit 1f7f3d23) opens it, and"
        " `Experiment.open(…).export('rows.csv')` there writes rows that `orthobandit analyse rows.csv"
        " --format export` reads here"
    )


@pytest.mark.parametrize("mark", [{}, {"format": 1, "release": "0.2.0"}, {"format": 3, "release": "0.4.1"}])
@pytest.mark.parametrize("policy", [AnytimeElimination(), AnytimeElimination(pairs="leader"), SBE()])
def test_states_of_policies(policy, mark):
    with pytest.raises(VersionError, match=f"the state of the policy {SENTENCE}"):
        policy.load(ARMS, {"active": [True] * 3, **mark})


def schema_of(path):
    with sqlite3.connect(path) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()
        version = connection.execute("SELECT version_num FROM orthobandit_version").fetchall()
    connection.close()
    return tables, version


def test_databases(database):
    before = schema_of(database)
    for opened in (
        lambda: Experiment.open(database),
        lambda: Experiment.create(database, ARMS, rewards=(0, 1)),
    ):
        with pytest.raises(VersionError, match=rf"experiments\.db {SENTENCE}"):
            opened()
    with pytest.raises(VersionError, match=SENTENCE):
        upgrade(database)
    assert schema_of(database) == before


def test_the_command_line_says_it_in_one_line(database, capsys):
    assert main(["db", "upgrade", "--db", str(database)]) == 2
    [line] = capsys.readouterr().err.replace("\n  ", " ").splitlines()
    assert "release 0.4.1 (tag v0.4.1" in line


def test_backups(database, tmp_path):
    about = {"orthobandit": "backup", "format": 1, "version": "0004", "release": "0.4.1", "at": 5.0}
    (tmp_path / "old.gz").write_bytes(gzip.compress(json.dumps(about).encode() + b"\n"))
    for backup in (tmp_path / "old.gz", database):
        with pytest.raises(VersionError, match=SENTENCE):
            restore(backup, tmp_path / "restored.db")
    assert not (tmp_path / "restored.db").exists()


@pytest.mark.parametrize(
    ("name", "commit"),
    [("orthobandit certificate of a log 3", "b720d5db~1"), ("orthobandit certificate 4", "1f7f3d23")],
)
def test_certificates_name_the_verifier_that_reads_them(name, commit, tmp_path):
    path = tmp_path / "decision.json"
    path.write_text(json.dumps({"format": name, "settings": {}, "entries": [], "claim": {}}))
    with pytest.raises(FileFormatError, match=f"`git show {commit}:src/orthobandit/verify.py`"):
        Certificate.read(path)


def test_exports(tmp_path):
    path = tmp_path / "rows.csv"
    names = "proposal,at,unit,arm,plan,distribution,holdout,settled,p:a,p:b,forecast:reward,reward"
    path.write_text(f"{names}\n1,5.0,ann,a,1,1,False,True,0.5,0.5,0.0,1.0\n")
    with pytest.raises(
        FileFormatError, match=r"before 0\.4\.1.* export the experiment again with release 0\.4\.1"
    ):
        analyse(path, format="export")
