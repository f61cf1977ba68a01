"""The fast path answers as FastAPI's routes do, and hands on whatever is not valid."""

import asyncio
import json
from types import SimpleNamespace

import pytest

from inside.service import Token
from orthobandit import ArmSet, Experiment
from orthobandit.service.app import ROUTERS
from orthobandit.service.http.auth import TOKEN
from orthobandit.service.http.fast_path import FastPath
from service_samples import TWO, served

HERE = "/v1/experiments/page"


def sent(body, path=f"{HERE}/ask", method="POST", headers=(), tokens=None, token=None):
    """Send a request; return what the short way answered, and the body that it handed on."""
    answers, handed = [], []
    experiment = Experiment.memory(ArmSet.one_hot(2, ["old", "new"]), rewards=(0, 1), key="0" * 64)
    registry = SimpleNamespace(find_open={"page": experiment}.get)
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "headers": list(headers),
        "app": SimpleNamespace(state=SimpleNamespace(registry=registry, tokens=tokens)),
    }

    if token is not None:
        scope[TOKEN] = token

    async def inner(scope, receive, send):
        handed.append((await receive())["body"])

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        answers.append(message)

    asyncio.run(FastPath(inner, ROUTERS)(scope, receive, send))
    return answers, handed


def test_what_is_in_order_is_answered_at_once():
    answers, handed = sent(b'{"unit": "ann"}')
    assert not handed
    assert [one["type"] for one in answers] == ["http.response.start", "http.response.body"]
    assert answers[0]["status"] == 200
    headers = dict(answers[0]["headers"])
    assert headers[b"content-length"] == b"%d" % len(answers[1]["body"])
    assert json.loads(answers[1]["body"])["id"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"body": b'{"unit": 7}'},
        {"body": b'{"unit": "ann"'},
        {"body": b"\xff"},
        {"body": b'{"unit": "ann", "more": 1}'},
        {"path": "/v1/experiments/other/ask"},
        {"path": f"{HERE}/report"},
        {"path": "/healthz"},
        {"method": "PUT"},
        {"headers": [(b"idempotency-key", b"k")]},
        {"tokens": "some"},
        {"tokens": "some", "token": Token("1", "", "read", 0.0)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_is_not_is_handed_on_whole(change):
    given = {"body": b'{"unit": "ann"}', **change}
    answers, handed = sent(**given)
    assert not answers
    assert handed == [given["body"]]


def test_tokens_that_are_known_are_let_in():
    assert sent(b"{}", tokens="some", token=Token("1", "", "ask-tell", 0.0))[0]


def test_both_ways_say_the_same(tmp_path):
    with served(tmp_path / "all.db") as http:
        http.post("/v1/experiments", json=TWO)
        http.post(f"{HERE}/ask-many", json={"count": 3})
        http.post(f"{HERE}/tell", json={"id": 2, "reward": 1})
        requests = [
            ("ask", {"unit": "ann"}),
            ("ask", {"unit": "ann", "available": ["nobody"]}),
            ("ask-many", {"units": ["ann", "ann"]}),
            ("tell", {"id": 2, "reward": 1}),
            ("tell", {"id": 2, "reward": 0}),
            ("tell", {"id": 99, "reward": 0}),
            ("tell", {"id": 3, "reward": 7}),
            ("tell", {"id": 3, "reward": {"sale": 1}}),
            ("tell-many", {"ids": [2, 2], "rewards": [1, 1]}),
            ("tell-many", {"ids": [2, 99], "rewards": {"reward": [0, 1]}}),
            ("exposures", {"plan": 77, "units": ["bob"], "arms": [0]}),
        ]
        for place, (last, body) in enumerate(requests):
            short = http.post(f"{HERE}/{last}", json=body)
            long = http.post(f"{HERE}/{last}", json=body, headers={"Idempotency-Key": f"k{place}"})
            assert (short.status_code, short.text) == (long.status_code, long.text), last
            for name in ("content-type", "content-length", "x-content-type-options"):
                assert short.headers[name] == long.headers[name]
