"""What the pages say is what the report says."""

import csv
import io
import json

import pytest

from dashboard_samples import in_words, visiting
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
    assert "Guardrail on seconds an arm is retired once it is proven above the reference arm" in words
    assert "by more than 0.5; it has retired &#39;odd&#39;" in words
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
