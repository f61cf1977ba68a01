"""The files in `deploy`, and what the page on operations says of Prometheus, as these programs take them."""

import os
import re
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from processes import needs_program
from real_postgres import real_server, url_of
from service_samples import TWO, ended, ready, started, token_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
DEPLOY = ROOT / "deploy"
JSON = {"Content-Type": "application/json"}
FOLDERS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def block(language, start):
    """Return the block of a language that starts so."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return next(text for text in found if text.startswith(start))


def done(*command):
    """Return what a command that went well has said."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


@contextmanager
def nginx(folder, addresses):
    """Run nginx with the page's settings in front of two servers; yields where it answers."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    made = (
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=localhost",
        "-days",
        "2",
    )
    done(*made, "-keyout", str(key), "-out", str(certificate))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    site = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    for old, new in {
        "127.0.0.1:8001": addresses[0].removeprefix("http://"),
        "127.0.0.1:8002": addresses[1].removeprefix("http://"),
        "listen 443": f"listen 127.0.0.1:{port}",
        "experiments.example.org": "localhost",
        "/etc/ssl/certs/experiments.pem": str(certificate),
        "/etc/ssl/private/experiments.key": str(key),
    }.items():
        assert old in site
        site = site.replace(old, new)
    temporary = "".join(f"{name}_temp_path {folder / name};\n" for name in FOLDERS)
    # Workers of root are somebody else's otherwise, who may not write here.
    user = "user root;\n" if os.getuid() == 0 else ""
    main = f"{user}daemon off;\npid {folder / 'pid'};\nerror_log {folder / 'error.log'};\nevents {{}}\n"
    settings = folder / "nginx.conf"
    settings.write_text(f"{main}http {{\naccess_log off;\n{temporary}{site}}}\n")
    settled = ("nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(settings))
    assert "test is successful" in done(*settled, "-t")
    process = subprocess.Popen(settled)  # noqa: S603
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=30)


def answering(http):
    """Wait until the proxy answers."""
    for _ in range(600):
        with suppress(httpx.TransportError):
            if http.get("/readyz").status_code == 200:
                return
        time.sleep(0.05)
    raise AssertionError("nginx does not answer")


def logged_in(http, token):
    """Log in to the dashboard through a proxy, as a browser does; returns the cookie."""
    login = http.get("/dashboard/login")
    form = re.search(r'name="form_token" value="(\w+)"', login.text)[1]
    origin = {"Origin": str(http.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    fields = {"token": token, "to": "/dashboard", "form_token": form}
    return http.post("/dashboard/login", data=fields, headers=origin)


@pytest.mark.slow
@needs_program("nginx")
@needs_program("openssl")
def test_nginx_in_front_of_two_servers_on_one_postgres(tmp_path):
    with real_server() as database:
        where = url_of(database)
        token = token_of(where)
        settings = str(DEPLOY / "orthobandit.toml")
        processes, addresses = zip(*(started(where, "--config", settings) for _ in range(2)), strict=True)
        try:
            for address in addresses:
                ready(address)
            with nginx(tmp_path, addresses) as proxy, httpx.Client(base_url=proxy, verify=False) as http:  # noqa: S501
                answering(http)
                _through(http, token)
                ended(processes[0])
                api = {"Authorization": f"Bearer {token}"}
                asked = [http.post("/v1/experiments/page/ask", json={}, headers=api) for _ in range(6)]
                assert [one.status_code for one in asked] == [200] * 6  # by the one that is left
        finally:
            for process in processes:
                if process.poll() is None:
                    ended(process)


def _through(http, token):
    """Try what a proxy may break: addresses, forms, cookies, large bodies, streams."""
    api = {"Authorization": f"Bearer {token}"}
    assert http.post("/v1/experiments", json=TWO, headers=api).status_code == 201
    assert http.get("/metrics", headers=api).status_code == 404
    large = http.post("/v1/experiments/page/tell", content=b" " * (8 * 2**20 + 1), headers=api | JSON)
    assert large.status_code == 413
    assert large.headers["content-type"] == "application/problem+json"
    answer = logged_in(http, token)
    assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard")
    assert "Secure" in answer.headers["set-cookie"]
    shown = http.get("/dashboard/experiments/page").text
    assert f"{http.base_url}/v1/experiments/page/ask" in shown  # what it tells programs to ask
    proposal = http.post("/v1/experiments/page/ask", json={"unit": "one"}, headers=api).json()
    with http.stream("GET", "/dashboard/experiments/page/events?known=nothing", timeout=10) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"  # at once, and not when the stream has ended
        http.post("/v1/experiments/page/tell", json={"id": proposal["id"], "reward": 1}, headers=api)
        assert next(line for line in lines if line.startswith("event:")) == "event: changed"


@needs_program("promtool")
def test_prometheus_takes_the_settings(tmp_path):
    (tmp_path / "token").write_text("ob_")
    scrape, rules = tmp_path / "prometheus.yml", tmp_path / "rules.yml"
    text = block("yaml", "rule_files")
    for old, new in {"orthobandit.token": tmp_path / "token", "orthobandit.rules.yml": rules}.items():
        assert f"/etc/prometheus/{old}" in text
        text = text.replace(f"/etc/prometheus/{old}", str(new))
    scrape.write_text(text)
    rules.write_text(block("yaml", "groups"))
    assert "SUCCESS: 6 rules found" in done("promtool", "check", "config", str(scrape))
