"""What the pages say is what the report says."""

import csv
import io
import json

import pytest

from dashboard_samples import in_words, visiting
from inside.experiment import EdgePlan
from orthobandit.service import Client
from orthobandit.verify import verify
from service_samples import token_of


@pytest.fixture(scope="module")
def visitor(tmp_path_factory):
    where = tmp_path_factory.mktemp("showing") / "all.db"
    with visiting(where) as found:
        with Client(str(found.http.base_url), token_of(where)) as client:
            metrics = [{"name": "seconds", "rewards": [0, 4]}]
            rails = [{"metric": "seconds", "margin": 0.5}]
            settings = {"rewards": [0, 1], "window": "7d", "holdout": 0.2, "metrics": metrics}
            client.create("page", ["old", "new", "odd"], guardrails=rails, **settings)
            for _ in range(10):
                proposals = client.ask_many("page", 100)
                ids = [one.id for one in proposals]
                seconds = [4.0 * (one.arm == 2) for one in proposals]
                rewards = [float(one.arm == 1) for one in proposals]
                client.tell_many("page", ids, {"reward": rewards, "seconds": seconds})
            waiting = client.ask_many("page", 20)
            client.tell_many("page", [one.id for one in waiting[5:]], [1.0] * 15)
            found.report = client.report("page")
        found.where = where
        yield found


def test_the_list_says_what_to_do(visitor):
    words = in_words(visitor.get(""))
    assert "page winner declared guardrail Show &#39;new&#39;: it is the best" in words
    assert "1,000 of 1,020" in words


def test_only_what_the_server_can_write_is_offered(visitor, monkeypatch):
    address = "/experiments/page/data.parquet"
    monkeypatch.setattr("orthobandit.service.dashboard.routes.find_spec", lambda name: None)
    assert address not in visitor.get("/experiments/page").text
    monkeypatch.setattr("orthobandit.service.dashboard.routes.find_spec", lambda name: name)
    assert address in visitor.get("/experiments/page").text


def test_the_page_says_what_the_report_says(visitor):
    page = visitor.get("/experiments/page")
    words = in_words(page)
    report = visitor.report
    assert "Show &#39;new&#39;: it is the best" in words
    assert "False winners ≤" not in words  # the advice says it
    assert "Settled 1,000 Awaited 20 Proposals 1,020" in words
    for arm in report["arms"]:
        assert f" {arm['settled']:,} {100 * arm['rate']:.0f} % " in words
    # So few sales of the reference arm that it may have none: gaps stand in for lifts.
    assert report["arms"][1]["lift"] is None
    assert "Difference to old" in words
    assert f"+{report['arms'][1]['gap']:.2f} (" in words
    assert "told, not settled: 1 in the mean" in words
    assert "Sample ratio arms are drawn as the plans say" in words
    assert (
        words.count("an arm is retired once it is proven above the reference arm") == 2
    )  # by metric, and state
    assert "by more than 0.5; every arm in play is cleared" in words
    assert "Guardrail on seconds has retired &#39;odd&#39;" in words
    assert "odd retired by the guardrail" in words
    assert page.text.count('class="limit"') == 2  # one for each arm but the reference
    assert "Holdout reward" in words
    assert "was retired by the guardrail on &#39;seconds&#39;" in words
    assert "seconds" in words


def test_downloads_are_whole(visitor):
    base = "/experiments/page"
    table = visitor.get(f"{base}/data.csv")
    assert len(list(csv.DictReader(io.StringIO(table.text)))) == 1020
    assert visitor.get(f"{base}/report.json").json()["advice"] == visitor.report["advice"]
    assert visitor.get(f"{base}/report.html").text.startswith("<!doctype html>")
    certificate = visitor.get(f"{base}/certificate.json")
    assert certificate.headers["content-disposition"] == 'attachment; filename="page-certificate.json"'
    assert verify(json.loads(certificate.text)).valid


def test_pages_that_are_not_there_say_so(visitor):
    for path in ("/nosuch", "/experiments/nosuch", "/experiments/nosuch/trail", "/experiments/page/nosuch"):
        page = visitor.get(path)
        assert page.status_code == 404
        assert "There is n" in in_words(page)
    assert visitor.get("/").url.path == "/dashboard"
    assert visitor.get("/static/nosuch.js").status_code == 404
    green = visitor.get("/static/winner.css")
    assert green.status_code == 200
    assert "--good:" in green.text
    assert "--good:" not in visitor.get("/static/dashboard.css").text  # its one home is shared with reports
    assert visitor.get("/static/../sessions.py").status_code == 404


def test_arms_that_are_alike_have_no_winner(visitor):
    with Client(str(visitor.http.base_url), token_of(visitor.where)) as client:
        arms = [{"label": label, "features": [1, 2]} for label in "ab"]
        client.create("alike", arms, rewards=[0, 1])
    words = in_words(visitor.get("/experiments/alike"))
    assert "nothing to find out" in words
    assert "by their features, all arms are the same" in words
    for word in ("winner declared", "nobody has asked", " leads "):
        assert word not in words


@pytest.fixture
def at_the_edge(tmp_path):
    """Yield a visitor of the dashboard, and a function that begins an experiment and sends exposures."""
    where = tmp_path / "all.db"
    with visiting(where) as found:
        headers = {"Authorization": f"Bearer {token_of(where)}"}

        def post(key, rewards, is_lost=lambda arm, place: False):
            way = f"/v1/experiments/{key}"
            body = {"key": key, "arms": ["old", "new"], "rewards": [0, 1], "window": "7d"}
            found.http.post("/v1/experiments", json=body, headers=headers).raise_for_status()
            data = found.http.get(f"{way}/plan", headers=headers).json()
            plan = EdgePlan(**data)
            drawn = [plan.draw(f"user-{number}") for number in range(len(rewards))]
            for place, (one, reward) in enumerate(zip(drawn, rewards, strict=True)):
                if is_lost(one.arm, place):
                    continue
                body = {"plan": plan.plan, "units": [one.unit], "arms": [one.arm], "rewards": [reward]}
                answer = found.http.post(f"{way}/exposures", json=body, headers=headers)
                assert answer.json()["taken"] == 1

        yield found, post


def test_an_alarm_is_said_once_on_the_page_and_nothing_contradicts_it(at_the_edge):
    visitor, post = at_the_edge
    # Of those who saw the second arm four in five are lost before anybody hears of them.
    post("lossy", [place % 2 for place in range(400)], lambda arm, place: arm == 1 and place % 5)
    words = in_words(visitor.get("/experiments/lossy"))
    assert words.count("not drawn as the plans say") == 1
    assert "Sample ratio see the alarm above" in words
    assert "times instead of" in words
    assert "While there is an alarm, intervals and error rates need not hold" in words
    for claim in ("False winners", "leads", "winner"):
        assert claim not in words
    assert "1 alarm" in in_words(visitor.get(""))


def test_the_page_says_which_proposal_holds_up_others(at_the_edge):
    visitor, post = at_the_edge
    post("edge", [None, 1, 0, None])
    words = in_words(visitor.get("/experiments/edge"))
    held_up = "2 with rewards wait for proposal 1, which has none yet; it settles 7 days after its draw"
    assert f"{held_up} at the latest." in words


def test_shares_and_levels_have_as_many_digits_as_mean_something(tmp_path):
    where = tmp_path / "all.db"
    with visiting(where) as found, Client(str(found.http.base_url), token_of(where)) as client:
        metrics = [{"name": "seconds", "rewards": [0, 4], "delta": 0.05 / 3}]
        client.create("page", ["old", "new"], rewards=[0, 1], metrics=metrics, delta=0.05 / 3)
        words = in_words(found.get("/experiments/page"))
    assert "all intervals hold in at least 98.33 % of experiments" in words
    assert "False winners ≤ 1.67 % of experiments" in words
