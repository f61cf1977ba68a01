"""Settings of `serve`: flags before the environment before the file, and one table of all of them."""

import inspect
import json
import re
import ssl
import subprocess
import sys
import warnings
from argparse import ArgumentParser
from pathlib import Path

import httpx
import pytest

import orthobandit
from inside.cli import configure_serve
from inside.service import serve
from orthobandit.cli import main
from orthobandit.errors import InputWarning, ParameterError
from orthobandit.service.http.limits import MAX_BODY_BYTES, MAX_REQUESTS, RATE, ConnectionLimits
from orthobandit.service.settings import BY_NAME, PORT, SETTINGS, parse, read_file, read_settings, table
from processes import needs_program
from service_samples import ended, ready, started

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_a_flag_goes_before_the_environment_before_the_file(tmp_path):
    path = tmp_path / "settings.toml"
    path.write_text('port = 1\nrate = 5\nlog = "text"\nproxies = ["10.0.0.0/8"]\nno-auth = true\n')
    environment = {
        "ORTHOBANDIT_CONFIG": str(path),
        "ORTHOBANDIT_PORT": "2",
        "ORTHOBANDIT_RATE": "6.5",
        "ORTHOBANDIT_OPEN_METRICS": "yes",
        "ORTHOBANDIT_DB": "",  # as compose files leave what they do not set
    }
    found = read_settings({"port": 3, "rate": None, "config": None}, environment)
    assert found["port"] == 3
    assert found["rate"] == 6.5
    assert found["log"] == "text"
    assert found["proxies"] == ("10.0.0.0/8",)
    assert found["no_auth"] is True
    assert found["open_metrics"] is True
    assert found["db"] == "orthobandit.db"
    assert found["max_requests"] == MAX_REQUESTS
    assert read_settings({"config": None}, {}) == {one.argument: one.default for one in SETTINGS}


@pytest.mark.parametrize(
    ("name", "given", "wanted"),
    [
        ("port", "80", 80),
        ("rate", "1e3", 1000.0),
        ("rate", 5, 5.0),
        ("no-auth", "off", False),
        ("no-auth", "TRUE", True),
        ("proxies", "127.0.0.1, ::1", ("127.0.0.1", "::1")),
        ("proxies", [], ()),
    ],
)
def test_values_are_read(name, given, wanted):
    assert parse(BY_NAME[name], given, "here") == wanted


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("port", "eighty", "a whole number"),
        ("port", 80.5, "a whole number"),
        ("port", True, "a whole number"),
        ("rate", "fast", "a number"),
        ("rate", [], "a number"),
        ("no-auth", "perhaps", "true or false"),
        ("no-auth", 1, "true or false"),
        ("proxies", 7, "a list of texts"),
        ("proxies", [7], "a list of texts"),
        ("db", 7, "text"),
        ("log", "xml", "one of json, text, none"),
    ],
)
def test_values_that_cannot_be_used_are_named(name, given, message):
    with pytest.raises(ParameterError, match=f"^ORTHOBANDIT_X = .* must be {message}"):
        parse(BY_NAME[name], given, "ORTHOBANDIT_X")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("prot = 1", "has 'prot', which is not a setting; did you mean 'port'?"),
        ("zzz = 1", "the settings are db, host"),
        ("port = ", "is not TOML"),
        ("port = 'x'", "port = 'x' must be a whole number"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, text, message):
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=re.escape(message)):
        read_file(path)


def test_what_is_wrong_is_said_by_the_command(tmp_path, capsys, monkeypatch):
    assert main(["serve", "--config", str(tmp_path / "none.toml")]) == 2
    assert "cannot be read: No such file" in " ".join(capsys.readouterr().err.split())
    monkeypatch.setenv("ORTHOBANDIT_MAX_REQUESTS", "many")
    assert main(["serve"]) == 2
    assert "ORTHOBANDIT_MAX_REQUESTS = 'many' must be a whole number" in " ".join(
        capsys.readouterr().err.split()
    )
    monkeypatch.setenv("ORTHOBANDIT_MAX_REQUESTS", "0")
    monkeypatch.setenv("ORTHOBANDIT_DB", str(tmp_path / "all.db"))
    assert main(["serve"]) == 2
    assert "max_requests=0 must be" in " ".join(capsys.readouterr().err.split())
    assert main(["serve", "--max-requests", "-1"]) == 2
    assert "--max-requests -1 must be" in " ".join(capsys.readouterr().err.split())
    monkeypatch.delenv("ORTHOBANDIT_MAX_REQUESTS")
    assert main(["serve", "--proxies", "nginx"]) == 2
    assert "must be an address or a network" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "all.db").exists()  # and no token was made that nobody has seen


def test_there_is_one_definition():
    """The documentation's table, the flags and the defaults of `serve` are those of `SETTINGS`."""
    assert table() in PAGE
    parser = ArgumentParser()
    configure_serve(parser)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    assert flags == {"-h", "--help", "--config", *(one.flag for one in SETTINGS)}
    taken = inspect.signature(serve).parameters
    for one in SETTINGS:
        if one.name not in ("db", "no-auth"):
            assert taken[one.argument].default == one.default, one.name
    limits = ConnectionLimits()
    assert BY_NAME["rate"].default == RATE
    assert BY_NAME["max-body"].default == MAX_BODY_BYTES
    assert BY_NAME["max-requests"].default == MAX_REQUESTS
    assert BY_NAME["max-connections"].default == limits.most
    assert BY_NAME["header-timeout"].default == limits.head_seconds
    assert BY_NAME["body-timeout"].default == limits.body_seconds


def test_telemetry_that_is_not_installed_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.instrumentation.fastapi", None)
    assert main(["serve", "--db", str(tmp_path / "all.db"), "--telemetry"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "sending telemetry needs opentelemetry" in said
    assert "pip install '.[telemetry]'" in said
    assert not (tmp_path / "all.db").exists()


def make_certificate(folder):
    key = folder / "key.pem"
    certificate = folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    return certificate, key


@needs_program("openssl")
def test_files_for_tls_must_belong_together(tmp_path, capsys):
    certificate, key = make_certificate(tmp_path)
    where = ["--db", str(tmp_path / "all.db")]
    assert main(["serve", *where, "--tls-certificate", str(certificate)]) == 2
    assert "needs the other of --tls-certificate and --tls-key" in " ".join(capsys.readouterr().err.split())
    assert main(["serve", *where, "--tls-certificate", str(key), "--tls-key", str(certificate)]) == 2
    assert "must be PEM files that the server may read" in " ".join(capsys.readouterr().err.split())


@pytest.mark.slow
@needs_program("openssl")
def test_the_server_speaks_tls(tmp_path):
    certificate, key = make_certificate(tmp_path)
    files = ("--tls-certificate", str(certificate), "--tls-key", str(key))
    process, address = started(tmp_path / "all.db", "--no-auth", *files)
    try:
        said = ""
        while "serves" not in said:
            said = process.stdout.readline()
        secure = address.replace("http://", "https://")
        assert secure in said
        context = ssl.create_default_context(cafile=str(certificate))
        assert httpx.get(f"{secure}/readyz", verify=context).json() == {"status": "ready"}
    finally:
        ended(process)


@pytest.mark.slow
def test_a_server_takes_its_settings_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("ORTHOBANDIT_NO_AUTH", "true")
    monkeypatch.setenv("ORTHOBANDIT_RATE", "1")
    process, address = started(tmp_path / "all.db")
    try:
        ready(address)
        answers = [httpx.get(f"{address}/v1/experiments").status_code for _ in range(4)]
        assert answers[-1] == 429
    finally:
        ended(process)


def test_the_files_to_deploy_have_settings_that_are_there():
    assert read_file(DEPLOY / "orthobandit.toml")["proxies"] == ("127.0.0.1",)
    variables = {one.variable for one in SETTINGS}
    for path in DEPLOY.iterdir():
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"\b(ORTHOBANDIT_[A-Z_]+)\b[=:]", text):
            assert name in variables, (path.name, name)
    assert {path.name for path in DEPLOY.iterdir() if path.name != "README.md"} == set(
        re.findall(r"^\| `(.+?)` \|", (DEPLOY / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    )


def test_the_image_runs_commands_that_are_there():
    """The image cannot be built where there is no base image: its commands are run here."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    [check] = re.findall(r"^    CMD (\[.*\])$", text, re.MULTILINE)
    compile(json.loads(check)[2], "health check", "exec")
    [command] = re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert json.loads(command) == ["orthobandit", "serve"]
    [prepare] = re.findall(r'^RUN python -c "(.*)"$', text, re.MULTILINE)
    compile(prepare, "prepare", "exec")
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE)
    for name in " ".join(copied).split():
        assert (ROOT / name).exists(), name
    extras = re.search(r"'\.\[(.*)\]'", text)[1].split(",")
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in extras:
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def test_the_first_token_can_be_made_without_a_server(tmp_path, capsys):
    where = tmp_path / "all.db"
    assert main(["db", "token", "--db", str(where)]) == 2
    assert not where.exists()
    capsys.readouterr()
    assert main(["db", "token", "--new", "--db", str(where), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["role"] == "admin"
    assert where.stat().st_mode & 0o077 == 0
    some = ["--role", "read", "--experiments", "shop-*,page", "--lasts", "1d"]
    assert main(["db", "token", "--db", str(where), "--json", *some]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["experiments"] == ["shop-*", "page"]
    assert made["until"] == pytest.approx(made["at"] + 86_400)
    assert main(["db", "check", "--db", str(where), "--lasts", "1d"]) == 2


@needs_program("systemd-analyze")
@pytest.mark.parametrize("name", ["orthobandit.service", "orthobandit@.service"])
def test_systemd_takes_the_units(tmp_path, name):
    text = (DEPLOY / name).read_text(encoding="utf-8")
    program = tmp_path / "orthobandit"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / name.replace("@", "@8001")
    unit.write_text(text.replace("/opt/orthobandit/bin/orthobandit", str(program)))
    done = subprocess.run(  # noqa: S603
        ["systemd-analyze", "verify", str(unit)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    if "Failed to" in done.stderr and unit.name not in done.stderr:
        pytest.skip(f"systemd-analyze does not run here: {done.stderr[:200]}")
    assert "Unknown" not in done.stderr, done.stderr
    assert done.returncode == 0, done.stderr


@needs_program("docker")
def test_compose_takes_the_file(monkeypatch):
    monkeypatch.setenv("POSTGRES_PASSWORD", "x")
    path = str(DEPLOY / "compose.yaml")
    done = subprocess.run(  # noqa: S603
        ["docker", "compose", "-f", path, "config", "--quiet"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    if "is not a docker command" in done.stderr or "unknown shorthand flag" in done.stderr:
        pytest.skip("docker has no compose here")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--port", "abc"], "'abc' is not a whole number"),
        (["serve", "--rate", "fast"], "--rate 'fast' must be a number"),
        (["serve", "--no-auth=yes"], "--no-auth is a switch and takes no value; leave 'yes' out"),
        (["db", "token", "--lasts", "-1d"], "--lasts needs a value; write --lasts=VALUE"),
        (["demo-traffic", "--url", "nonsense"], "--url nonsense must be the address of a server, such as"),
        (["demo-traffic", "--url", "ftp://x"], "--url ftp://x must be the address of a server, such as"),
        (["demo-traffic", "--serve", "--url", "http://x"], "--url is for a server that runs already"),
        (["demo-traffic", "--serve", "--token", "x"], "--token is for a server that runs already"),
        (["demo-traffic", "--port", "8001"], "--port is for --serve"),
        (["demo-traffic", "--token", "ob_x\n"], "without blanks or line ends, as the server printed it"),
    ],
)
def test_options_that_cannot_be_meant_are_named(arguments, words, capsys):
    with pytest.raises(SystemExit) as ended_with:
        raise SystemExit(main(arguments))
    said = capsys.readouterr().err
    assert ended_with.value.code == 2
    assert words in " ".join(said.split())
    assert "Traceback" not in said


def test_a_token_for_keys_that_cannot_be_is_refused(tmp_path, capsys):
    made = ["db", "token", "--new", "--db", str(tmp_path / "all.db"), "--experiments"]
    assert main([*made, "signup,shop-*,*"]) == 0
    for key in ("Signup", "two words", ""):
        assert main([*made, f"signup,{key}"]) == 2
        assert "experiments=" in capsys.readouterr().err


def test_a_variable_that_is_nearly_a_setting_is_named():
    with pytest.warns(InputWarning, match="ORTHOBANDIT_PROT is not a setting; did you mean ORTHOBANDIT_PORT"):
        read_settings({}, {"ORTHOBANDIT_PROT": "1"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_settings({}, {"ORTHOBANDIT_TOKEN": "ob_x", "ORTHOBANDIT_DATABASE": "x", "PATH": "x"})


def test_the_port_has_one_home():
    source = Path(orthobandit.__file__).parent
    written = [
        (path.relative_to(source).as_posix(), line.strip())
        for path in sorted(source.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(rf"(?i)port.*\b{PORT}\b|:{PORT}\b", line)
    ]
    example = 'Of the server, e.g. ``"http://127.0.0.1:8000"``.'
    home = "PORT = 8000  # of servers that nobody gave one"
    assert written == [("service/client/client.py", example), ("service/settings.py", home)]
    assert str(PORT) not in (ROOT / "Makefile").read_text().partition("serve: ")[2]
    assert BY_NAME["port"].default == inspect.signature(serve).parameters["port"].default == PORT
