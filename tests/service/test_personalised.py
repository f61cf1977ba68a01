"""Personalised experiments over HTTP: context in every request, OpenFeature's included."""

import pytest

from inside.experiment import EdgePlan
from orthobandit.verify import verify
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


def test_a_visitor_without_a_reward_who_holds_up_all_others_is_named(http):
    assert http.get(HERE).json()["advice"] == "Too early: nobody has come yet."
    units = [f"unit {number}" for number in range(30)]
    http.post(f"{HERE}/ask-many", json={"units": units, "context": [{"mobile": 1}] * 30})
    http.post(f"{HERE}/tell-many", json={"ids": list(range(2, 31)), "rewards": [1] * 29})
    advice = http.get(HERE).json()["advice"]
    assert advice.startswith("Too early: 0 of 30 visitors settled; 29 with rewards wait for proposal 1,")


def test_openfeature_gives_the_context(http):
    flag = "/ofrep/v1/evaluate/flags/page"
    found = http.post(flag, json={"context": {"targetingKey": "ann", "mobile": 1}})
    assert found.json()["variant"] in PAGE["arms"]
    missing = http.post(flag, json={"context": {"targetingKey": "bob"}})
    assert missing.status_code == 400
    assert missing.json()["errorDetails"] == "the context must have a number 'mobile'"
    truth = http.post(flag, json={"context": {"targetingKey": "bob", "mobile": True}})
    assert truth.json()["errorDetails"].endswith("number 'mobile', not true; send 1 and 0 for yes and no")
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
        (
            "/v1/experiments",
            PAGE | {"key": "a", "context": None, "rules": {}, "explore": 0.2},
            "explore=0.2 is for personalised",
        ),
    ],
)
def test_what_cannot_be_is_a_problem_that_says_why(http, path, body, words):
    answer = http.post(path, json=body)
    assert is_problem(answer, 422, "invalid")
    assert words in answer.json()["detail"]
    assert http.get(HERE).json()["proposals"] == 0
    assert http.get("/v1/experiments").json()["keys"] == ["page"]


def test_a_plan_is_handed_out_and_its_draws_are_taken(http):
    plan = EdgePlan.from_json(http.get(f"{HERE}/plan").json())
    assert plan.personal.columns == ("mobile",)
    contexts = [{"mobile": float(k % 2)} for k in range(20)]
    draws = [plan.draw(f"edge {k}", one) for k, one in enumerate(contexts)]
    body = {
        "plan": plan.plan,
        "units": [one.unit for one in draws],
        "arms": [one.arm for one in draws],
        "context": contexts,
        "rewards": [1] * 20,
    }
    body["arms"][3] = 1 - body["arms"][3]
    body["context"][4] = {"tablet": 1}
    answer = http.post(f"{HERE}/exposures", json=body).json()
    assert (answer["taken"], answer["told"]) == (18, 18)
    assert [one["pointer"] for one in answer["refused"]] == ["#/arms/3", "#/context/4"]
    assert "context has no 'mobile'" in answer["refused"][1]["detail"]


def test_a_certificate_of_rules_can_be_fetched_and_verified(http):
    shown = http.post(f"{HERE}/ask", json={"unit": "ann", "context": {"mobile": 1}}).json()
    http.post(f"{HERE}/tell", json={"id": shown["id"], "reward": 1})
    found = verify(http.get(f"{HERE}/certificate").json())
    assert found.valid
    assert "'new on telephones'" in found.claim


def test_visitors_may_bring_features(http):
    shop = {"key": "shop", "arms": ["a", "b"], "rewards": [0, 1], "features": ["price"]}
    assert http.post("/v1/experiments", json=shop).status_code == 201
    asked = {"unit": "ann", "features": {"b": [3.5]}}
    assert http.post("/v1/experiments/shop/ask", json=asked).json()["label"] == "b"
    both = {"units": ["bob", "eve"], "features": [{"a": [1]}, {"a": [1], "b": [2]}]}
    assert len(http.post("/v1/experiments/shop/ask-many", json=both).json()["proposals"]) == 2
    wrong = http.post("/v1/experiments/shop/ask", json={"unit": "mel", "features": {"b": [1, 2]}})
    assert is_problem(wrong, 422, "invalid")
    assert "features of 'b' have shape (2,)" in wrong.json()["detail"]


def test_its_pages_can_be_looked_at(http):
    for number in range(40):
        shown = http.post(f"{HERE}/ask", json={"unit": str(number), "context": {"mobile": number % 2}}).json()
        http.post(f"{HERE}/tell", json={"id": shown["id"], "reward": shown["arm"]})
    for path in (f"{HERE}/report", f"{HERE}", f"{HERE}/export"):
        assert http.get(path).status_code == 200, path
