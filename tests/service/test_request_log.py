"""One line of each request, with nothing in it that is not for a log."""

import io
import json
import logging
import re

import httpx
import pytest

from inside.service import configure_logging, token_id
from orthobandit.errors import ParameterError
from orthobandit.service import create_app
from service_samples import TWO, is_problem, running, served, token_of


@pytest.fixture
def restored():
    """Put the loggers back as they were."""
    names = ("orthobandit", "uvicorn", "orthobandit.requests")
    loggers = [logging.getLogger(name) for name in names]
    before = [(one.handlers, one.propagate, one.level) for one in loggers]
    yield
    for one, (handlers, propagate, level) in zip(loggers, before, strict=True):
        one.handlers, one.propagate = handlers, propagate
        one.setLevel(level)


def lines(style, where, call, **options):
    """Serve, let somebody call, and return what was written."""
    written = io.StringIO()
    configure_logging(style, written)
    with served(where, **options) as http:
        call(http)
    return written.getvalue().splitlines()


def test_a_line_of_json_says_what_came_of_a_request(tmp_path, restored):
    where, token = tmp_path / "all.db", []

    def call(http):
        token.append(http.headers["authorization"].split("_", 2))  # a secret may have such signs, too
        http.post("/v1/experiments", json=TWO, headers={"X-Request-Id": "from-the-proxy"})
        http.get("/v1/experiments?after=secret-query")
        http.post("/v1/experiments/page/ask", json={"unit": "user-ann"})
        http.get("/v1/tokens", headers={"Authorization": "Bearer ob_000000000000_wrong"})

    found = [json.loads(line) for line in lines("json", where, call)]
    assert [(one["method"], one["route"], one["status"]) for one in found] == [
        ("POST", "/v1/experiments", 201),
        ("GET", "/v1/experiments", 200),
        ("POST", "/v1/experiments/{key}/ask", 200),
        ("GET", "/v1/tokens", 401),
    ]
    assert found[0]["request"] == "from-the-proxy"
    assert [one["token"] for one in found] == [token[0][1]] * 3 + [None]
    assert all(one["ms"] > 0 and one["level"] == "info" and one["at"].endswith("+00:00") for one in found)
    for secret in ("user-ann", "secret-query", token[0][2], "wrong"):
        assert secret not in json.dumps(found)


def test_lines_for_people_and_none(tmp_path, restored):
    def call(http):
        http.get("/healthz")

    [line] = lines("text", tmp_path / "all.db", call)
    assert re.fullmatch(r"[\d-]{10} [\d:]{8} [0-9a-f]{16} GET /healthz 200 [\d.]+ \w{12}", line)
    assert lines("none", tmp_path / "all.db", call) == []


def test_the_id_of_a_request_is_the_callers_only_if_it_is_plain(tmp_path):
    with served(tmp_path / "all.db") as http:
        assert (
            http.get("/healthz", headers={"X-Request-Id": "abcd-1234"}).headers["x-request-id"] == "abcd-1234"
        )
        for odd in ("short", "with space and more", '"quoted-text"', "x" * 65):
            made = http.get("/healthz", headers={"X-Request-Id": odd}).headers["x-request-id"]
            assert re.fullmatch("[0-9a-f]{16}", made)


@pytest.mark.parametrize("style", ["json", "none"])
def test_an_error_has_its_trace_in_the_log_and_its_id_in_the_answer(tmp_path, restored, style):
    written = io.StringIO()
    configure_logging(style, written)
    app = create_app(tmp_path / "all.db")

    @app.get("/broken")
    async def broken():
        raise RuntimeError("the password is 1234")

    with running(app) as address:
        answer = httpx.get(f"{address}/broken")
    assert is_problem(answer, 500, "internal")
    request = answer.headers["x-request-id"]
    assert answer.json()["instance"] == f"urn:orthobandit:request:{request}"
    assert "1234" not in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    text = written.getvalue()
    assert text.count("RuntimeError: the password is 1234") == 1
    assert request in text
    if style == "json":
        first = json.loads(text.splitlines()[0])
        assert first["request"] == request
        assert first["trace"].startswith("Traceback")


def test_an_unknown_style_is_refused():
    with pytest.raises(ParameterError, match="log='xml'"):
        configure_logging("xml")
    assert token_id(b"Bearer ob_XYZ_secret") is None


def test_tokens_are_named_by_their_id_alone(tmp_path):
    text = token_of(tmp_path / "all.db")
    assert token_id(f"Bearer {text}".encode()) == text.split("_")[1]
