"""Writes that are sent again are answered again, and not done twice."""

import pytest

from orthobandit.service.http.idempotency import Keyed
from service_samples import TWO, is_problem, served

SUMS = {**TWO, "key": "sales", "rewards": [0, 10], "window": "7d", "add": True}
SALES = "/v1/experiments/sales"


def sent(http, path, body, key="k"):
    return http.post(path, json=body, headers={"Idempotency-Key": key})


def begun(http, key):
    assert http.post("/v1/experiments", json={**SUMS, "key": key}).status_code == 201
    return f"/v1/experiments/{key}"


def value(http, path):
    return float(http.get(f"{path}/export").text.split()[-1].split(",")[-1])


def test_the_same_key_and_body_have_the_same_answer_also_after_a_restart(tmp_path):
    where = tmp_path / "all.db"
    with served(where) as http:
        assert http.post("/v1/experiments", json=SUMS).status_code == 201
        asked = sent(http, f"{SALES}/ask", {}, "ask")
        many = sent(http, f"{SALES}/ask-many", {"count": 2}, "ask-many")
        told = sent(http, f"{SALES}/tell", {"id": 3, "reward": 2}, "tell")
    with served(where) as http:
        assert sent(http, f"{SALES}/ask", {}, "ask").content == asked.content
        assert sent(http, f"{SALES}/ask-many", {"count": 2}, "ask-many").content == many.content
        assert sent(http, f"{SALES}/tell", {"id": 3, "reward": 2}, "tell").content == told.content
        assert http.get(f"{SALES}/report").json()["proposals"] == 3
        assert value(http, SALES) == 2


def test_without_a_key_values_add_up(http):
    path = begun(http, "sums")
    http.post(f"{path}/ask", json={})
    for _ in range(2):
        http.post(f"{path}/tell", json={"id": 1, "reward": 2})
        sent(http, f"{path}/tell", {"id": 1, "reward": 1})
    assert value(http, path) == 5


def test_the_same_key_with_another_body_or_path_is_a_conflict(http):
    path = begun(http, "other")
    assert sent(http, f"{path}/ask", {"unit": "ann"}).status_code == 200
    for elsewhere, body in ((f"{path}/ask", {"unit": "bob"}), (f"{path}/pause", {})):
        answer = sent(http, elsewhere, body)
        assert is_problem(answer, 409, "conflict")
        assert "'k' was used for another request" in answer.json()["detail"]
    assert http.get(path).json()["proposals"] == 1


def test_the_same_body_at_another_path_is_another_request():
    class Noted:
        def once(self, key, words):
            return key, words

    first, again, elsewhere = (
        Keyed(path, "k").once(Noted())
        for path in ("/v1/experiments/a/stop", "/v1/experiments/a/stop", "/v1/experiments/b/stop")
    )
    assert first == again
    assert first[0] == elsewhere[0] == "k"
    assert first[1] != elsewhere[1]


def test_what_was_refused_is_tried_anew(http):
    path = begun(http, "refused")
    assert is_problem(sent(http, f"{path}/tell", {"id": 1, "reward": 1}), 404, "unknown-proposal")
    http.post(f"{path}/ask", json={})
    assert sent(http, f"{path}/tell", {"id": 1, "reward": 1}).status_code == 200


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("pause", {}),
        ("resume", {}),
        ("stop", {"reason": "x"}),
        ("arms", {"arms": ["z"]}),
        ("arms/new/retire", {}),
    ],
)
def test_changes_of_an_experiment_can_be_repeated(http, what, body):
    path = begun(http, f"change-{what.replace('/', '-')}-{len(body)}")
    first = sent(http, f"{path}/{what}", body)
    assert first.status_code == 200
    assert sent(http, f"{path}/{what}", body).content == first.content


def test_an_experiment_can_be_begun_twice_with_a_key_if_it_is_the_same(http):
    first = sent(http, "/v1/experiments", {**TWO, "key": "twice"})
    assert first.status_code == 201
    again = sent(http, "/v1/experiments", {**TWO, "key": "twice"})
    assert (again.status_code, again.content) == (201, first.content)
    assert is_problem(sent(http, "/v1/experiments", {**TWO, "key": "twice", "delta": 0.1}), 409, "exists")
    assert is_problem(http.post("/v1/experiments", json={**TWO, "key": "twice"}), 409, "exists")


@pytest.mark.parametrize("key", ["", "k" * 201])
def test_keys_that_cannot_be_kept_are_refused(http, key):
    path = begun(http, f"keys-{len(key)}")
    answer = sent(http, f"{path}/ask", {}, key)
    assert is_problem(answer, 422, "invalid")
    assert "idempotency-key" in answer.json()["detail"].lower()
