"""Operations: each is declared once, and hot ones refuse what is wrong as all others do."""

import pytest

from orthobandit.service.app import OPERATIONS
from service_samples import TWO, is_problem, served

HERE = "/v1/experiments/page"
HOT = [operation for operation in OPERATIONS if operation.is_hot]
ROLES = {"admin", "ask-tell", "read", "edge"}


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with served(tmp_path_factory.mktemp("service") / "all.db") as client:
        client.post("/v1/experiments", json=TWO)
        client.post(f"{HERE}/ask-many", json={"count": 3})
        client.post(f"{HERE}/tell", json={"id": 2, "reward": 1})
        yield client


def test_no_address_is_declared_twice():
    addresses = [(operation.method, operation.path) for operation in OPERATIONS]
    assert len(addresses) == len(set(addresses)) >= 25


def test_every_operation_of_the_api_needs_a_role():
    assert all(operation.role in ROLES for operation in OPERATIONS if operation.path.startswith("/v1"))


def test_hot_operations_are_compared_with_an_address_first():
    assert [operation.name for operation in HOT] == ["ask", "tell", "ask_many", "tell_many", "exposures"]
    assert OPERATIONS.index(HOT[-1]) <= len(HOT)


@pytest.mark.parametrize("operation", HOT, ids=lambda operation: operation.name)
def test_all_that_is_wrong_is_said_at_once(http, operation):
    path = operation.path.replace("{key}", "k" * 201)
    answer = http.post(path, json={"nosuch": 1}, headers={"Idempotency-Key": ""})
    assert is_problem(answer, 422, "invalid")
    pointers = [fault["pointer"] for fault in answer.json()["errors"]]
    assert {"path key", "header idempotency-key", "#/nosuch"} <= set(pointers)


@pytest.mark.parametrize("operation", HOT, ids=lambda operation: operation.name)
def test_what_cannot_be_read_is_refused(http, operation):
    path = operation.path.replace("{key}", "page")
    for content, status, kind in [
        (b"", 422, "invalid"),
        (b"[]", 422, "invalid"),
        (b'{"unit": ', 400, "malformed"),
        (b"\xff", 400, "malformed"),
        (b"[" * 100_000, 400, "malformed"),
    ]:
        answer = http.post(path, content=content, headers={"Content-Type": "application/json"})
        assert is_problem(answer, status, kind), content[:10]


@pytest.mark.parametrize(
    ("last", "body"),
    [
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
    ],
)
def test_an_idempotency_key_changes_no_answer(http, last, body):
    plain = http.post(f"{HERE}/{last}", json=body)
    keyed = http.post(f"{HERE}/{last}", json=body, headers={"Idempotency-Key": f"{last} {body}"})
    assert (keyed.status_code, keyed.text) == (plain.status_code, plain.text)
    for name in ("content-type", "content-length", "x-content-type-options"):
        assert keyed.headers[name] == plain.headers[name]
