"""`orthobandit serve` as a process: it begins, ends and is killed."""

import os
import re
import signal
import socket
import subprocess
import sys

import httpx
import pytest

from inside.service import serve
from orthobandit.cli import main
from orthobandit.errors import ParameterError
from orthobandit.service import Client
from service_samples import TWO, ended, ready, started


@pytest.mark.slow
def test_the_first_start_shows_a_token_once(tmp_path):
    where = tmp_path / "all.db"
    process, address = started(where)
    said = ""
    while "dashboard:" not in said:  # after "preparing", where nothing was compiled before
        said += process.stdout.readline()
    ready(address)
    assert f"serves {where} at {address}" in said
    token = re.search(r"ob_\w+_[\w-]+", said)[0]
    assert f"dashboard: {address}/dashboard/login#{token}\n" in said
    with Client(address, token) as client:
        client.create(**TWO)
        assert client.experiments() == ["page"]
    assert ended(process) in (0, -signal.SIGTERM)
    process, address = started(where)
    ready(address)
    with Client(address, token) as client:
        assert client.experiments() == ["page"]
    os.kill(process.pid, signal.SIGTERM)
    process.wait(timeout=60)
    assert "token" not in process.stdout.read()
    process.stdout.close()


@pytest.mark.parametrize("arguments", [{"host": "0.0.0.0", "with_tokens": False}, {"host": "0.0.0.0"}])  # noqa: S104
def test_other_machines_are_not_let_in_without_tokens(tmp_path, arguments):
    with pytest.raises(ParameterError, match=r"host='0\.0\.0\.0' lets other machines in, and .*token"):
        serve(tmp_path / "all.db", **arguments)


def test_the_command_says_what_is_wrong(tmp_path, capsys):
    path = str(tmp_path / "all.db")
    assert main(["serve", "--db", path, "--host", "0.0.0.0", "--no-auth"]) == 2  # noqa: S104
    assert "--host 0.0.0.0 lets other machines in" in capsys.readouterr().err
    assert main(["serve", "--db", path, "--port", "99999"]) == 2
    assert "--port 99999 must be a whole number of at most" in capsys.readouterr().err
    assert main(["serve", "--db", "nosuch://x"]) == 2
    assert "no database 'nosuch' is known" in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["serve", "--db", str(tmp_path / "all.db"), "--port", str(port)]) == 2
    said = capsys.readouterr()
    assert f"--port {port} of 127.0.0.1: another program listens there: end it, or" in " ".join(
        said.err.split()
    )
    assert not said.out  # neither an address nor a token that nobody could use


@pytest.mark.slow
def test_the_address_is_said_once_the_server_answers(tmp_path):
    process, _ = started(tmp_path / "all.db", "--no-auth", port=0)
    said = ""
    while "serves" not in said:
        said = process.stdout.readline()
    address = said.rpartition(" at ")[2].strip()
    assert httpx.get(f"{address}/readyz").status_code == 200
    ended(process)


def test_a_missing_package_is_named(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve"]) == 2
    assert (
        "the service needs uvicorn; install it with `pip install '.[service]'` in orthobandit's folder"
        in " ".join(capsys.readouterr().err.split())
    )


@pytest.mark.slow
def test_the_client_needs_no_server_packages():
    script = (
        "import sys\nfor name in ('fastapi', 'uvicorn', 'sqlalchemy', 'pydantic'): sys.modules[name] = None\n"
        "from orthobandit.service import Client; Client('http://127.0.0.1:9').close()"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603
