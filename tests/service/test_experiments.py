"""Experiments over HTTP: from the first request to the report."""

import csv
import io
import json

import pytest

from orthobandit import Experiment
from orthobandit.verify import verify
from service_samples import TWO, is_problem, served


def begun(http, key, **settings):
    answer = http.post("/v1/experiments", json={**TWO, "key": key, **settings})
    assert answer.status_code == 201, answer.text
    return f"/v1/experiments/{key}"


def test_the_server_is_alive_and_ready(http):
    assert http.get("/healthz").json() == {"status": "alive"}
    assert http.get("/readyz").json() == {"status": "ready"}


def test_an_experiment_is_begun_asked_told_and_reported(http):
    path = begun(http, "whole", window="7d")
    one = http.post(f"{path}/ask", json={"unit": "ann"}).json()
    assert one["id"] == 1
    assert one["label"] == ["old", "new"][one["arm"]]
    assert one["probabilities"] == [0.5, 0.5]
    assert http.post(f"{path}/ask", json={"unit": "ann"}).json() == one
    assert http.post(f"{path}/tell", json={"id": 1, "reward": 1}).json() == {"told": 1}
    many = http.post(f"{path}/ask-many", json={"count": 3}).json()["proposals"]
    assert [proposal["id"] for proposal in many] == [2, 3, 4]
    body = {"ids": [2, 3, 4], "rewards": {"reward": [0, 1, 0.5]}}
    assert http.post(f"{path}/tell-many", json=body).json() == {"told": 3, "refused": []}
    for empty in ({"ids": [], "rewards": []}, {"ids": [], "rewards": {"reward": []}}):
        assert http.post(f"{path}/tell-many", json=empty).json() == {"told": 0, "refused": []}
    report = http.get(f"{path}/report").json()
    assert (report["proposals"], report["settled"], report["awaited"]) == (4, 4, 0)
    shown = http.get(path).json()
    assert (shown["status"], shown["window"], shown["arms"]) == ("open", 604800.0, ["old", "new"])


def test_one_wrong_reward_of_many_is_refused_alone(http):
    path = begun(http, "one-by-one", metrics=[{"name": "a/b"}])
    http.post(f"{path}/ask-many", json={"count": 4})
    answer = http.post(f"{path}/tell-many", json={"ids": [1, 99, 2], "rewards": [1, 1, 7]})
    assert answer.status_code == 200
    told, [unknown, wrong] = answer.json().values()
    assert told == 1
    assert (unknown["index"], unknown["metric"], unknown["pointer"]) == (1, None, "#/ids/1")
    assert unknown["type"] == "urn:orthobandit:problem:unknown-proposal"
    assert unknown["detail"].startswith("proposal 99 was never asked for")
    assert (wrong["index"], wrong["metric"], wrong["pointer"]) == (2, "reward", "#/rewards/2")
    named = {"ids": [3, 3], "rewards": {"reward": [1, 1], "a/b": [1, 2]}}
    [refused] = http.post(f"{path}/tell-many", json=named).json()["refused"]
    assert (refused["metric"], refused["pointer"]) == ("a/b", "#/rewards/a~1b/1")
    report = http.get(f"{path}/report").json()
    assert report["refused"] == {"unknown": 1, "invalid": 1, "conflict": 1}


def test_reports_have_the_holdout_in_whole_numbers(http):
    path = begun(http, "held-back", holdout=0.5)
    ids = [one["id"] for one in http.post(f"{path}/ask-many", json={"count": 40}).json()["proposals"]]
    http.post(f"{path}/tell-many", json={"ids": ids, "rewards": [1.0] * 40})
    [[name, count, mean]] = http.get(f"{path}/report").json()["holdout"]
    assert (name, type(count), mean) == ("reward", int, 1.0)


def test_nobody_leads_before_there_is_evidence(http):
    path = begun(http, "young")
    assert http.get(path).json()["leader"] is None
    assert http.get(f"{path}/report").json()["leader"] is None
    asked = http.post(f"{path}/ask-many", json={"count": 400}).json()["proposals"]
    told = {"ids": [one["id"] for one in asked], "rewards": [one["arm"] for one in asked]}
    http.post(f"{path}/tell-many", json=told)
    assert http.get(path).json()["leader"] == "new"


def test_a_new_experiment_is_where_the_answer_says(http):
    answer = http.post("/v1/experiments", json={**TWO, "key": "found"})
    assert http.get(answer.headers["location"]).json() == answer.json()


def test_no_answer_has_the_key_of_the_draws(tmp_path):
    where = tmp_path / "all.db"
    with served(where) as http:
        path = begun(http, "secret")
        http.post(f"{path}/ask", json={"unit": "ann"})
        kinds = ("", "/report", "/certificate", "/export")
        answers = [http.get(path + kind).text for kind in kinds]
    with Experiment.open(where, name="secret") as experiment:
        assert len(experiment.settings.key) == 64
        assert not any(experiment.settings.key in text for text in answers)


def test_settings_are_those_of_the_library(http):
    settings = {
        "arms": [{"label": "a", "features": [0, 1]}, {"label": "b", "features": [1, 0.5]}],
        "rewards": [0, 1],
        "epsilon": 0.1,
        "goal": "earn",
        "covariates": ["basket"],
        "window": 60,
        "silence": "missing",
        "sticky": False,
        "reference": "b",
        "holdout": 0.25,
        "objective": "sale",
        "metrics": [{"name": "seconds", "rewards": [0, 10]}],
        "guardrails": [{"metric": "seconds", "margin": 0.5}],
    }
    path = begun(http, "settings", **settings)
    shown = http.get(path).json()
    assert {name: shown[name] for name in ("window", "silence", "sticky", "reference", "holdout")} == {
        name: settings[name] for name in ("window", "silence", "sticky", "reference", "holdout")
    }
    assert shown["metrics"] == ["sale", "seconds"]
    asked = http.post(f"{path}/ask", json={"unit": "ann", "available": ["a"], "covariates": {"basket": 3}})
    assert asked.json()["label"] == "a"
    told = {"id": 1, "reward": {"sale": 1, "seconds": 2.5}}
    assert http.post(f"{path}/tell", json=told).status_code == 200


def test_a_gap_that_is_expected_reaches_the_policy(tmp_path):
    where = f"sqlite:///{tmp_path / 'one.db'}"
    with served(tmp_path / "one.db") as client:
        begun(client, "hinted", expect=0.05)
        refused = client.post("/v1/experiments", json={**TWO, "key": "other", "expect": 0})
        assert refused.status_code == 422
        assert "expect=0" in refused.text
    assert Experiment.open(where, name="hinted").settings.policy.expect == 0.05


def test_more_than_a_thousand_arms_are_begun_asked_told_changed_and_certified(http):
    arms = [{"label": f"arm {i}", "features": [i % 7, i % 11, i / 1000]} for i in range(1100)]
    path = begun(http, "many", arms=arms)
    for _ in range(6):
        asked = http.post(f"{path}/ask-many", json={"count": 100}).json()["proposals"]
        rewards = [float(one["arm"] % 7 > 3) for one in asked]
        told = http.post(f"{path}/tell-many", json={"ids": [one["id"] for one in asked], "rewards": rewards})
        assert told.json() == {"told": 100, "refused": []}
    new = [{"label": "late", "features": [3.0, 3.0, 0.5]}]
    assert len(http.post(f"{path}/arms", json={"arms": new}).json()["arms"]) == 1101
    leader = http.get(f"{path}/report").json()["leader"]
    assert http.post(f"{path}/arms/{leader}/retire", json={}).json()["retired"] == [leader]
    assert verify(http.get(f"{path}/certificate").json()).problems == []


def test_experiments_are_listed_page_by_page(tmp_path):
    with served(tmp_path / "all.db") as http:
        assert http.get("/v1/experiments").json() == {"keys": [], "next": None}
        for key in ("c", "a", "b"):
            begun(http, key)
        first = http.get("/v1/experiments", params={"limit": 2}).json()
        assert first == {"keys": ["a", "b"], "next": "b"}
        rest = http.get("/v1/experiments", params={"limit": 2, "after": first["next"]}).json()
        assert rest == {"keys": ["c"], "next": None}


def test_experiments_pause_resume_and_stop(http):
    path = begun(http, "states")
    assert http.post(f"{path}/pause", json={}).json()["status"] == "paused"
    assert is_problem(http.post(f"{path}/ask", json={}), 409, "closed")
    assert http.post(f"{path}/resume", json={}).json()["status"] == "open"
    assert http.post(f"{path}/ask", json={}).status_code == 200
    assert http.post(f"{path}/stop", json={"reason": "enough"}).json()["status"] == "stopped"
    assert is_problem(http.post(f"{path}/resume", json={}), 409, "closed")
    assert http.post(f"{path}/tell", json={"id": 1, "reward": 1}).status_code == 200


def test_arms_come_and_go(http):
    path = begun(http, "arms")
    assert http.post(f"{path}/arms", json={"arms": ["a/b", "newest"]}).json()["arms"] == [
        "old",
        "new",
        "a/b",
        "newest",
    ]
    assert http.post(f"{path}/arms/a%2Fb/retire", json={}).json()["retired"] == ["a/b"]
    assert is_problem(http.post(f"{path}/arms/nobody/retire", json={}), 404, "not-found")
    twice = http.post(f"{path}/arms", json={"arms": ["old"]})
    assert is_problem(twice, 422, "invalid")
    odd = http.post(f"{path}/arms", json={"arms": [{"label": "x", "features": [1.0]}]})
    assert is_problem(odd, 422, "invalid")
    assert "features" in odd.json()["detail"]


def test_reports_are_pages_for_browsers(http):
    path = begun(http, "page")
    answer = http.get(f"{path}/report", headers={"Accept": "text/html,*/*;q=0.8"})
    assert answer.headers["content-type"].startswith("text/html")
    assert answer.text.startswith("<!doctype html>")
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_certificates_are_verified(http):
    path = begun(http, "certain")
    ids = [one["id"] for one in http.post(f"{path}/ask-many", json={"count": 200}).json()["proposals"]]
    http.post(f"{path}/tell-many", json={"ids": ids, "rewards": [1.0] * 200})
    document = json.loads(http.get(f"{path}/certificate").text)
    assert verify(document).valid


def test_every_proposal_is_exported(http):
    path = begun(http, "exported")
    http.post(f"{path}/ask-many", json={"units": ["ann", "bob"]})
    http.post(f"{path}/tell", json={"id": 2, "reward": 0.5})
    answer = http.get(f"{path}/export")
    assert 'filename="exported.csv"' in answer.headers["content-disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [(row["unit"], row["reward"]) for row in rows] == [("ann", ""), ("bob", "0.5")]
    assert http.get(f"{path}/export", params={"format": "parquet"}).content[:4] == b"PAR1"
    assert is_problem(http.get(f"{path}/export", params={"format": "xls"}), 422, "invalid")


@pytest.mark.parametrize("what", ["", "/report", "/certificate"])
def test_what_has_not_changed_is_not_sent_again(http, what):
    path = begun(http, f"etag{what.replace('/', '-')}")
    first = http.get(path + what)
    again = http.get(path + what, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    http.post(f"{path}/arms", json={"arms": ["newest"]})
    changed = http.get(path + what, headers={"If-None-Match": first.headers["etag"]})
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]


def test_lists_and_pages_have_tags_of_their_own(http):
    path = begun(http, "tags")
    tag = http.get("/v1/experiments").headers["etag"]
    assert http.get("/v1/experiments", headers={"If-None-Match": f'"x", W/{tag}'}).status_code == 304
    json_tag = http.get(f"{path}/report").headers["etag"]
    page = {"Accept": "text/html", "If-None-Match": json_tag}
    assert http.get(f"{path}/report", headers=page).status_code == 200


def test_two_servers_share_a_database(tmp_path):
    where = tmp_path / "all.db"
    with served(where) as one, served(where) as other:
        path = begun(one, "shared")
        first = one.post(f"{path}/ask", json={"unit": "ann"}).json()
        assert other.post(f"{path}/ask", json={"unit": "ann"}).json() == first
        assert other.post(f"{path}/ask", json={"unit": "bob"}).json()["id"] == 2
        assert one.post(f"{path}/tell", json={"id": 2, "reward": 1}).status_code == 200
        assert other.get(f"{path}/report").json()["proposals"] == 2
