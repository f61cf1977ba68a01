"""Personalised experiments over HTTP: context in every request, OpenFeature's included."""

import pytest

from service_samples import is_problem, served

PAGE = {
    "key": "page",
    "arms": ["old", "new"],
    "rewards": [0, 1],
    "context": ["mobile"],
    "rules": {"new on telephones": "new if mobile >= 0.5 else old"},
}
HERE = "/v1/experiments/page"


@pytest.fixture
def http(tmp_path):
    with served(tmp_path / "all.db") as client:
        assert client.post("/v1/experiments", json=PAGE).status_code == 201
        yield client


def test_visitors_are_asked_for_with_their_context(http):
    one = http.post(f"{HERE}/ask", json={"unit": "ann", "context": {"mobile": 1}}).json()
    assert one["probabilities"] == [0.5, 0.5]
    assert http.post(f"{HERE}/ask", json={"unit": "ann"}).json()["id"] == one["id"]
    both = {"units": ["bob", "eve"], "context": [{"mobile": 0}, {"mobile": 1}]}
    many = http.post(f"{HERE}/ask-many", json=both).json()["proposals"]
    assert [shown["id"] for shown in many] == [2, 3]
    for shown in (one, *many):
        assert http.post(f"{HERE}/tell", json={"id": shown["id"], "reward": 1}).json() == {"told": 1}
    assert http.get(f"{HERE}/report").json()["settled"] == 3


def test_openfeature_gives_the_context(http):
    flag = "/ofrep/v1/evaluate/flags/page"
    found = http.post(flag, json={"context": {"targetingKey": "ann", "mobile": 1}})
    assert found.json()["variant"] in PAGE["arms"]
    missing = http.post(flag, json={"context": {"targetingKey": "bob"}})
    assert missing.status_code == 400
    assert "'mobile'" in missing.json()["errorDetails"]
    assert http.get(HERE).json()["proposals"] == 1


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        (f"{HERE}/ask", {"unit": "ann"}, "context has no 'mobile'"),
        (f"{HERE}/ask", {"unit": "ann", "context": {"tablet": 1}}, "context has no 'mobile'"),
        ("/v1/experiments", PAGE | {"key": "a", "rules": {"x": "newest"}}, "'newest' is not an arm"),
        ("/v1/experiments", PAGE | {"key": "a", "goal": "earn"}, "leave them out"),
        ("/v1/experiments", PAGE | {"key": "a", "context": None}, "give `context` as well"),
        ("/v1/experiments", PAGE | {"key": "a", "explore": 0}, "explore"),
    ],
)
def test_what_cannot_be_is_a_problem_that_says_why(http, path, body, words):
    answer = http.post(path, json=body)
    assert is_problem(answer, 422, "invalid")
    assert words in answer.json()["detail"]
    assert http.get(HERE).json()["proposals"] == 0
    assert http.get("/v1/experiments").json()["keys"] == ["page"]


def test_there_is_no_plan_to_hand_out(http):
    assert "plan for every visitor" in http.get(f"{HERE}/plan").json()["detail"]


def test_its_pages_can_be_looked_at(http):
    for number in range(40):
        shown = http.post(f"{HERE}/ask", json={"unit": str(number), "context": {"mobile": number % 2}}).json()
        http.post(f"{HERE}/tell", json={"id": shown["id"], "reward": shown["arm"]})
    for path in (f"{HERE}/report", f"{HERE}", f"{HERE}/export"):
        assert http.get(path).status_code == 200, path
