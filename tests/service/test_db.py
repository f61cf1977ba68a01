"""`orthobandit db`: copies are whole, restore into any database, and what is wrong is found."""

import gzip
import json
import sqlite3
import stat
from itertools import count
from threading import Event, Thread

import pytest
import sqlalchemy as sa

from inside.service import ROLES, Kept, Registry, back_up, check, restore
from orthobandit import AnytimeElimination, ArmSet, Experiment
from orthobandit.cli import main
from orthobandit.cli import service as commands
from orthobandit.errors import FileFormatError, ParameterError, StorageError, VersionError
from service_samples import served, token_of

NUMBERS = count()
SALES = {
    "key": "sales",
    "arms": ["old", "new", "newer"],
    "rewards": [0, 9],
    "window": "7d",
    "add": True,
    "covariates": ["age"],
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Return a file with two experiments, a token and a request that is remembered."""
    where = tmp_path_factory.mktemp("filled") / "all.db"
    with served(where) as http:
        http.post("/v1/experiments", json=SALES)
        http.post("/v1/experiments", json={"key": "page", "arms": ["a", "b"], "rewards": [0, 1]})
        body = {"units": [f"Ünit {n}" for n in range(40)], "covariates": [{"age": n / 7} for n in range(40)]}
        http.post("/v1/experiments/sales/ask-many", json=body)
        told = {"ids": list(range(1, 31)), "rewards": [n / 3 % 3 for n in range(30)]}
        headers = {"Idempotency-Key": "k"}
        assert http.post("/v1/experiments/sales/tell-many", json=told, headers=headers).status_code == 200
        for number in range(1, 61):
            http.post("/v1/experiments/page/ask", json={})
            http.post("/v1/experiments/page/tell", json={"id": number, "reward": number % 2})
    return where


@pytest.fixture
def empty(request, tmp_path):
    """Return where to restore to: a file that is not there, or a new database on PostgreSQL."""
    if request.param == "sqlite":
        return tmp_path / "restored.db"
    url, name = request.getfixturevalue("postgres"), f"restored_{next(NUMBERS)}"
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url.replace("/postgres?", f"/{name}?")


EITHER = pytest.mark.parametrize("empty", ["sqlite", "postgresql"], indirect=True)


def contents(path):
    return [(table.name, row) for table, row in Kept(path).rows()]


@EITHER
@pytest.mark.parametrize("name", ["copy.jsonl.gz", "copy.db"])
def test_a_copy_restores_into_any_database(filled, empty, tmp_path, name):
    rows = back_up(filled, tmp_path / name)
    assert rows["experiments"] == 2
    assert rows["proposals"] == 100
    assert rows["service_tokens"] == 1
    assert rows["requests"] > 0
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert restore(tmp_path / name, empty) == rows
    back_up(empty, tmp_path / "again.jsonl.gz")
    first = tmp_path / "first.jsonl.gz"
    back_up(filled, first)
    assert contents(tmp_path / "again.jsonl.gz") == contents(first)
    assert check(empty) == []
    # Life goes on where it stood.
    with Experiment.open(empty, name="sales") as sales:
        assert sales.report().proposals == 40
        assert sales.ask(unit="Ünit 3", covariates={"age": 1.0}).id == 4
    registry = Registry(empty)
    registry.create("third", ArmSet.one_hot(2), AnytimeElimination(rewards=(0, 1)))
    assert registry.page(9) == ["page", "sales", "third"]
    registry.close()


def test_a_token_is_good_after_a_restore(filled, tmp_path):
    text = token_of(filled)
    back_up(filled, tmp_path / "copy.gz")
    restore(tmp_path / "copy.gz", tmp_path / "new.db")
    with served(tmp_path / "new.db", role=None) as http:
        given = {"Authorization": f"Bearer {text}"}
        assert http.get("/v1/experiments", headers=given).json()["keys"] == ["page", "sales"]


@pytest.mark.parametrize("name", ["copy{}.db", "copy{}.gz"])
def test_copies_are_whole_while_a_server_writes(tmp_path, name):
    where, is_over = tmp_path / "all.db", Event()
    with served(where) as http:
        http.post("/v1/experiments", json={"key": "page", "arms": ["a", "b"], "rewards": [0, 1]})

        def write():
            number = 0
            while not is_over.is_set():
                number = http.post("/v1/experiments/page/ask", json={}).json()["id"]
                http.post("/v1/experiments/page/tell", json={"id": number, "reward": 1})

        thread = Thread(target=write)
        thread.start()
        sizes = [back_up(where, tmp_path / name.format(number))["proposals"] for number in range(4)]
        is_over.set()
        thread.join()
    assert sizes == sorted(sizes)
    assert sizes[-1] > 0
    for number in range(4):
        assert (
            restore(tmp_path / name.format(number), tmp_path / f"{number}.db")["proposals"] == sizes[number]
        )
        assert check(tmp_path / f"{number}.db") == []


@EITHER
def test_nothing_is_overwritten(filled, empty, tmp_path):
    back_up(filled, tmp_path / "copy.gz")
    with pytest.raises(ParameterError, match="exists already"):
        back_up(filled, tmp_path / "copy.gz")
    restore(tmp_path / "copy.gz", empty)
    with pytest.raises(StorageError, match="has rows in 'events', and nothing is overwritten"):
        restore(tmp_path / "copy.gz", empty)
    assert check(empty) == []


def lines(path):
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.readlines()


def rewritten(path, change):
    text = lines(path)
    change(text)
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(text)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (lambda text: text.pop(5), FileFormatError, "has changed since it was written"),
        (lambda text: text.pop(), FileFormatError, "has changed since it was written"),
        (lambda text: text.insert(3, text[2].replace("sales", "sale")), FileFormatError, "has changed since"),
        (lambda text: text.__setitem__(0, "{}\n"), FileFormatError, "is not a backup"),
        (
            lambda text: text.__setitem__(0, text[0].replace('"version":"0', '"version":"9')),
            VersionError,
            "restore it with that one",
        ),
    ],
)
def test_a_damaged_copy_is_refused_and_leaves_nothing(filled, tmp_path, change, kind, message):
    path = tmp_path / "copy.gz"
    back_up(filled, path)
    rewritten(path, change)
    with pytest.raises(kind, match=message):
        restore(path, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_half_a_copy_is_refused(filled, tmp_path):
    path = tmp_path / "copy.gz"
    back_up(filled, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(FileFormatError, match="not a backup, or is incomplete"):
        restore(path, tmp_path / "new.db")
    path.write_text("no gzip")
    with pytest.raises(FileFormatError, match="not a backup, or is incomplete"):
        restore(path, tmp_path / "new.db")


def tampered(filled, tmp_path, statement):
    back_up(filled, tmp_path / "odd.db")
    with sqlite3.connect(tmp_path / "odd.db") as connection:
        connection.execute(statement)
    connection.close()
    return tmp_path / "odd.db"


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE rewards SET value = 0.5 WHERE proposal = 7 AND experiment = 1",
            "has changed since it was written",
        ),
        ("DELETE FROM proposals WHERE number = 3 AND experiment = 1", "has changed since it was written"),
        ("INSERT INTO plans VALUES (1, 'plan', 1, 3)", "distribution 1 was noted more than once"),
        ("UPDATE experiments SET settings = '{}' WHERE id = 2", "settings have changed since"),
    ],
)
def test_check_finds_what_was_changed(filled, tmp_path, statement, message, capsys):
    where = tampered(filled, tmp_path, statement)
    assert main(["db", "check", "--db", str(where)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert message in said
    assert said.endswith("1 finding")


def test_commands_say_what_they_did(filled, tmp_path, capsys):
    copy, new = str(tmp_path / "c.gz"), str(tmp_path / "n.db")
    assert main(["db", "backup", copy, "--db", str(filled)]) == 0
    assert capsys.readouterr().out == f"wrote {copy}: 2 experiments, 100 proposals, 90 rewards\n"
    assert main(["db", "restore", copy, "--db", new, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["proposals"] == 100
    assert main(["db", "check", "--db", new]) == 0
    assert capsys.readouterr().out == "page: as it should be\nsales: as it should be\nnothing is wrong\n"
    assert main(["db", "upgrade", "--db", new]) == 0
    assert capsys.readouterr().out == "the tables were of version 0005 already\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["backup"], "`orthobandit db backup` needs a FILE"),
        (["check", "x"], "`orthobandit db check` takes no FILE"),
        (["check", "--db", "nowhere.db"], "nowhere.db has no experiments; check the place"),
        (["upgrade", "--db", "nowhere.db"], "nowhere.db has no experiments"),
        (["backup", "c.gz", "--db", "nowhere.db"], "nowhere.db has no experiments"),
        (["restore", "nowhere.gz", "--db", "n.db"], "path='nowhere.gz' is not a file"),
        (["check", "--db", "nosuch://x"], "no database 'nosuch' is known"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["db", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert list(tmp_path.iterdir()) == []


def test_a_lost_token_is_replaced(filled, tmp_path, capsys):
    where = tmp_path / "all.db"
    where.write_bytes(filled.read_bytes())
    assert main(["db", "token", "--db", str(where), "--role", "read", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert main(["db", "token", "--db", str(where)]) == 0
    said, _, text = capsys.readouterr().out.strip().rpartition(" ")
    assert said == "token of the role admin, shown only now:"
    with served(where, role=None) as http:
        for token, status in ((made["token"], 403), (text, 201), ("ob_0123456789ab_no", 401)):
            headers = {"Authorization": f"Bearer {token}"}
            answer = http.post("/v1/tokens", json={"role": "read", "name": "new"}, headers=headers)
            assert answer.status_code == status


def test_a_token_is_made_in_no_other_place_and_roles_are_for_tokens(filled, tmp_path, capsys):
    assert main(["db", "token", "--db", str(tmp_path / "slip.db")]) == 2
    assert not (tmp_path / "slip.db").exists()
    assert main(["db", "check", "--db", str(filled), "--role", "read"]) == 2
    assert "--role is for `orthobandit db token`" in capsys.readouterr().err


def test_a_restored_file_is_for_its_owner_alone(filled, tmp_path):
    back_up(filled, tmp_path / "copy.gz")
    restore(tmp_path / "copy.gz", tmp_path / "new.db")
    assert stat.S_IMODE((tmp_path / "new.db").stat().st_mode) == 0o600


def test_the_command_offers_the_roles_that_there_are():
    assert set(commands.ROLES) == set(ROLES)
