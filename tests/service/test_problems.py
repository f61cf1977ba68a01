"""Every error is a problem document that says what to do, and nothing of the server."""

import json
import logging
import sqlite3
from contextlib import closing

import httpx
import pytest

from inside.experiment import seal
from orthobandit import Experiment
from orthobandit.errors import StorageError, VersionError
from orthobandit.service import create_app
from service_samples import TWO, is_problem, running, served

PAGE = "/v1/experiments/page"


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with served(tmp_path_factory.mktemp("service") / "all.db", body_limit=20_000) as client:
        client.post("/v1/experiments", json=TWO)
        client.post(f"{PAGE}/ask", json={})
        yield client


def pointers(answer):
    return [one["pointer"] for one in answer.json().get("errors", [])]


@pytest.mark.parametrize(
    ("path", "body", "detail"),
    [
        ("/v1/experiments", {**TWO, "key": "Not a slug"}, "#/key: use 1 to 100 small letters, digits"),
        ("/v1/experiments", {**TWO, "key": "q", "arms": "ab"}, '#/arms: must be a list, not "ab"'),
        ("/v1/experiments", {**TWO, "key": "q", "delta": "5%"}, '#/delta: must be a number, not "5%"'),
        ("/v1/experiments", {**TWO, "key": "q", "rewards": [1, 0]}, "rewards=[1, 0] must be the lowest"),
        (
            "/v1/experiments",
            {**TWO, "key": "q", "window": True},
            "#/window: must be text, or must be a number",
        ),
        ("/v1/experiments", {**TWO, "key": "q", "windows": 7}, "#/windows: there is no such field; is it"),
        (
            f"{PAGE}/tell",
            {"id": 1, "reward": "1"},
            '#/reward: must be a number, or must be an object, not "1"',
        ),
    ],
)
def test_what_cannot_be_used_is_said_in_words_of_the_api(http, path, body, detail):
    assert http.post(path, json=body).json()["detail"].startswith(detail)


@pytest.mark.parametrize(
    ("arms", "detail"),
    [
        (["", "b"], '#/arms/0: must be text of at least 1 character(s), not ""'),
        (
            [{"label": "a", "features": [1, "x"]}, {"label": "b", "features": [0, 1]}],
            '#/arms/0/features/1: must be a number, not "x"',
        ),
    ],
    ids=["label", "features"],
)
def test_only_the_arm_that_is_wrong_is_named(http, arms, detail):
    assert http.post("/v1/experiments", json={**TWO, "key": "q", "arms": arms}).json()["detail"] == detail


def test_what_is_not_there_is_named_with_what_there_is(http):
    assert http.delete(PAGE).json()["detail"] == "DELETE cannot be used here; use GET"
    assert http.get("/v2/x").json()["detail"].startswith("there is nothing at '/v2/x'; /openapi.json")
    deep = b'{"key": ' + b"[" * 15_000
    headers = {"Content-Type": "application/json"}
    for content in (deep, b"\xff{"):
        answer = http.post("/v1/experiments", content=content, headers=headers)
        assert is_problem(answer, 400, "malformed"), answer.text
        assert "send JSON in UTF-8" in answer.json()["detail"]
    assert "the body is empty" in http.post("/v1/experiments", content=b"", headers=headers).json()["detail"]


@pytest.mark.parametrize(
    ("path", "body", "pointer"),
    [
        ("/v1/experiments", {}, "#/key"),
        ("/v1/experiments", {**TWO, "key": "Not a slug"}, "#/key"),
        ("/v1/experiments", {**TWO, "key": "q", "windows": "7d"}, "#/windows"),
        ("/v1/experiments", {**TWO, "key": "q", "rewards": [0, "1"]}, "#/rewards/1"),
        ("/v1/experiments", {**TWO, "key": "q", "rewards": [0]}, "#/rewards"),
        ("/v1/experiments", {**TWO, "key": "q", "window": "7 moons"}, "#/window"),
        ("/v1/experiments", {**TWO, "key": "q", "delta": 2}, "#/delta"),
        ("/v1/experiments", {**TWO, "key": "q", "holdout": 1}, "#/holdout"),
        (f"{PAGE}/ask", {"unit": 17}, "#/unit"),
        (f"{PAGE}/ask", {"unit": "a\x00b"}, "#/unit"),
        (f"{PAGE}/ask", [], "#"),
        (f"{PAGE}/ask-many", {"count": 0}, "#/count"),
        (f"{PAGE}/ask-many", {"count": 1, "units": ["a"]}, "#"),
        (f"{PAGE}/tell", {"id": True, "reward": 1}, "#/id"),
        (f"{PAGE}/tell", {"id": 2**63, "reward": 1}, "#/id"),
        (f"{PAGE}/tell-many", {"ids": [1, 0], "rewards": [1, 1]}, "#/ids/1"),
        ("/v1/tokens", {"role": "king"}, "#/role"),
    ],
)
def test_what_cannot_be_used_is_named(http, path, body, pointer):
    answer = http.post(path, json=body)
    assert is_problem(answer, 422, "invalid"), answer.text
    assert any(found.startswith(pointer) for found in pointers(answer)), pointers(answer)


@pytest.mark.parametrize("rewards", [{}, {"rewards": None}, {"rewards": "any"}, {"rewards": 1}], ids=str)
def test_rewards_have_to_be_said_and_both_options_are_named(http, rewards):
    answer = http.post("/v1/experiments", json={"key": "q", "arms": ["a", "b"], **rewards})
    assert is_problem(answer, 422, "invalid"), answer.text
    [error] = answer.json()["errors"]
    assert error["pointer"] == "#/rewards"
    assert "rewards=(low, high)" in error["detail"]
    assert "rewards='unknown'" in error["detail"]
    assert http.get("/v1/experiments/q").status_code == 404


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "words"),
    [
        ("/v1/experiments", TWO, 409, "exists", "choose another key"),
        ("/v1/experiments/nobody/ask", {}, 404, "unknown-experiment", "'nobody'"),
        (f"{PAGE}/ask", {"available": ["red"]}, 422, "invalid", "red"),
        (f"{PAGE}/tell", {"id": 99, "reward": 1}, 404, "unknown-proposal", "proposal 99"),
        (f"{PAGE}/tell", {"id": 1, "reward": 7}, 422, "reward", "[0, 1]"),
        (f"{PAGE}/tell", {"id": 1, "reward": {"sales": 1}}, 422, "reward", "'sales'"),
        (f"{PAGE}/tell-many", {"ids": [1], "rewards": [1, 1]}, 422, "reward", "2 values for 1"),
        (f"{PAGE}/tell-many", {"ids": [1], "rewards": {"sales": [1]}}, 422, "reward", "'sales'"),
    ],
)
def test_errors_of_experiments_are_problems_in_their_words(http, path, body, status, kind, words):
    answer = http.post(path, json=body)
    assert is_problem(answer, status, kind), answer.text
    assert words in answer.json()["detail"]
    assert ".db" not in answer.text


def test_another_reward_is_a_conflict(http):
    assert http.post(f"{PAGE}/ask", json={}).json()["id"] == 2
    assert http.post(f"{PAGE}/tell", json={"id": 2, "reward": 1}).status_code == 200
    assert http.post(f"{PAGE}/tell", json={"id": 2, "reward": 1}).status_code == 200
    assert is_problem(http.post(f"{PAGE}/tell", json={"id": 2, "reward": 0}), 409, "conflict")


@pytest.mark.parametrize("content", [b"{", b'{"unit": "\xff"}', b"[" * 10_000, b'{"unit": "\\ud800"}'])
def test_bodies_that_are_no_json_are_refused(http, content):
    answer = http.post(f"{PAGE}/ask", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422)
    assert is_problem(answer, answer.status_code, "malformed" if answer.status_code == 400 else "invalid")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "-1e999"])
def test_rewards_that_are_no_numbers_are_refused(http, number):
    content = f'{{"id": 1, "reward": {number}}}'
    answer = http.post(f"{PAGE}/tell", content=content, headers={"Content-Type": "application/json"})
    assert is_problem(answer, 422, "invalid")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_only_json_is_taken(http, kind):
    answer = http.post(f"{PAGE}/pause", headers={"Content-Type": kind} if kind else {})
    assert is_problem(answer, 415, "not-json")
    assert http.get(PAGE).json()["status"] == "open"


def test_bodies_are_limited(http):
    answer = http.post(f"{PAGE}/ask", json={"unit": "a" * 20_000})
    assert is_problem(answer, 413, "too-large")
    in_parts = http.post(
        f"{PAGE}/ask",
        content=iter([b" " * 15_000, b" " * 15_000]),
        headers={"Content-Type": "application/json"},
    )
    assert is_problem(in_parts, 413, "too-large")
    assert "20000 bytes" in in_parts.json()["detail"]


def test_unknown_paths_and_methods_are_problems(http):
    assert is_problem(http.get("/nowhere"), 404, "not-found")
    answer = http.delete("/v1/experiments")
    assert is_problem(answer, 405, "method")
    assert answer.headers["allow"] == "GET, POST"
    assert "use GET, POST" in answer.json()["detail"]


def test_a_database_that_fails_is_a_problem_to_try_again_after(http, monkeypatch, caplog):
    def failing(*_, **__):
        raise StorageError("/srv/secret/all.db: the disk is full")

    monkeypatch.setattr("orthobandit.experiment.AsyncExperiment.ask", failing)
    monkeypatch.setattr("inside.service.Registry.writing", failing)
    monkeypatch.setattr("orthobandit.service.api.health.FRESH_SECONDS", 0.0)
    with caplog.at_level(logging.ERROR, "orthobandit.service"):
        for answer in (http.post(f"{PAGE}/ask", json={}), http.get("/readyz")):
            assert is_problem(answer, 503, "unavailable")
            assert int(answer.headers["retry-after"]) > 0
            assert "secret" not in answer.text
    assert "the disk is full" in caplog.text
    assert "Traceback" not in caplog.text  # every request meets it, and it names itself
    assert http.get("/healthz").status_code == 200


def test_what_is_not_expected_leaks_nothing_and_is_logged(http, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("password=hunter2")

    monkeypatch.setattr("orthobandit.experiment.Experiment.report", broken)
    with caplog.at_level(logging.ERROR, "orthobandit.service"):
        answer = http.get(f"{PAGE}/report")
    assert is_problem(answer, 500, "internal")
    assert "hunter2" not in answer.text
    assert "hunter2" in caplog.text


def test_other_hosts_are_refused_where_names_are_given(tmp_path):
    app = create_app(tmp_path / "all.db", with_tokens=False, hosts={"127.0.0.1"})
    with running(app) as address, httpx.Client(base_url=address) as http:
        assert http.get("/healthz").status_code == 200
        answer = http.get("/healthz", headers={"Host": "evil.example"})
        assert is_problem(answer, 400, "malformed")


def test_answers_are_not_guessed_at(http):
    assert http.get("/healthz").headers["x-content-type-options"] == "nosniff"
    assert http.get("/nowhere").headers["x-content-type-options"] == "nosniff"


def test_an_experiment_of_a_newer_release_is_refused_by_the_name_of_the_release(tmp_path):
    where = tmp_path / "all.db"
    with served(where) as client:
        client.post("/v1/experiments", json=TWO)
        client.post(f"{PAGE}/ask", json={})
    with closing(sqlite3.connect(where)) as file, file:
        [(text,)] = file.execute("SELECT state FROM snapshots")
        newer = json.dumps({**json.loads(text), "format": 1000, "release": "9.1.0"})
        file.execute("UPDATE snapshots SET state = ?, seal = ?", (newer, seal(newer.encode())))
    with pytest.raises(VersionError, match=r"orthobandit>=9\.1\.0"):
        Experiment.open(where, name="page")
    with served(where) as client:
        for answer in (client.post(f"{PAGE}/ask", json={}), client.get(f"{PAGE}/report")):
            assert is_problem(answer, 503, "newer-release")
            assert "pip install 'orthobandit>=9.1.0'" in answer.json()["detail"]
            assert str(tmp_path) not in answer.text
        # The others are served.
        assert client.post("/v1/experiments", json={**TWO, "key": "other"}).status_code == 201
        assert client.post("/v1/experiments/other/ask", json={}).status_code == 200
        assert client.get("/v1/experiments").status_code == 200


@pytest.mark.parametrize(
    ("more", "detail"),
    [
        ({"explore": 0.1}, "explore=0.1 is for personalised experiments"),
        ({"arms": [str(number) for number in range(2001)]}, "arms are 2,001 labels, and without features"),
        ({"metrics": [{"name": "m", "delta": 0.95}]}, "metric 'm': delta=0.95 lets claims be wrong"),
        ({"guardrails": [{"metric": "reward", "margin": -1}]}, "guardrail on 'reward': margin=-1.0 must be"),
        (
            {"guardrails": [{"metric": "reward", "margin": 1}]},
            "the guardrail on 'reward' has margin=1, which",
        ),
    ],
    ids=["explore", "arms", "metric", "margin", "useless margin"],
)
def test_settings_that_cannot_be_meant_are_refused_with_what_they_belong_to(http, more, detail):
    answer = http.post("/v1/experiments", json={**TWO, "key": "never", "rewards": [0, 1], **more})
    assert is_problem(answer, 422, "invalid"), answer.text
    assert answer.json()["detail"].startswith(detail)
    assert [one["pointer"] for one in answer.json().get("errors", [])] in ([], ["#/explore"])


def test_no_more_labels_are_added_than_can_be_given(http):
    http.post("/v1/experiments", json={**TWO, "key": "grows"})
    labels = [str(number) for number in range(1999)]  # short, for the size of bodies here
    answer = http.post("/v1/experiments/grows/arms", json={"arms": labels})
    assert is_problem(answer, 422, "invalid"), answer.text
    assert "arms would be 2,001 labels" in answer.json()["detail"]


def test_a_compressed_body_is_named(http):
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = http.post(f"{PAGE}/ask", content=b"\x1f\x8b", headers=headers)
    assert is_problem(answer, 415, "not-json")
    assert "without the header `Content-Encoding`" in answer.json()["detail"]


@pytest.mark.parametrize("unit", [" ", "\u2003"])
def test_a_blank_unit_is_refused_on_every_way(http, unit):
    for path, body in ((f"{PAGE}/ask", {"unit": unit}), (f"{PAGE}/ask-many", {"units": ["a", unit]})):
        answer = http.post(path, json=body)
        assert is_problem(answer, 422, "invalid"), answer.text
        assert "would be one and the same" in answer.json()["detail"]
    flag = http.post("/ofrep/v1/evaluate/flags/page", json={"context": {"targetingKey": unit}})
    assert flag.status_code == 400
    words = "would be one and the same" if unit.isprintable() else "must be printable text"
    assert words in flag.json()["errorDetails"]


@pytest.mark.parametrize("key", ["\t", "é".encode().decode("latin-1")])
def test_a_key_of_other_characters_is_refused_in_words(http, key):
    answer = http.post(f"{PAGE}/ask", json={}, headers={"Idempotency-Key": f"a{key}b".encode("latin-1")})
    assert is_problem(answer, 422, "invalid"), answer.text
    assert answer.json()["detail"] == "header idempotency-key: use printable ASCII characters"


def test_a_reason_of_several_lines_is_refused_in_words(http):
    answer = http.post(f"{PAGE}/stop", json={"reason": "a\nb"})
    assert "#/reason: use no tabs, line ends" in answer.json()["detail"]
