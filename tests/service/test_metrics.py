"""What Prometheus is told, and who may see it."""

import sqlite3

from prometheus_client.parser import text_string_to_metric_families

from inside.service import Metrics, experiment_families, render_metrics
from service_samples import TWO, is_problem, served, token_of

PAGE = "/v1/experiments/page"


def samples(text):
    """Return metrics by name and labels."""
    return {
        (one.name, tuple(sorted(one.labels.items()))): one.value
        for family in text_string_to_metric_families(text)
        for one in family.samples
    }


def value(found, name, **labels):
    return found[name, tuple(sorted(labels.items()))]


def test_requests_are_counted_by_template_and_status(tmp_path):
    with served(tmp_path / "all.db") as http:
        http.post("/v1/experiments", json=TWO)
        for unit in ("user-ann", "user-bob"):
            asked = http.post(f"{PAGE}/ask", json={"unit": unit}).json()
            http.post(f"{PAGE}/tell", json={"id": asked["id"], "reward": 1})
        http.get("/v1/experiments/nowhere")
        http.get("/secret-path")
        answer = http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    found, route = samples(answer.text), "/v1/experiments/{key}"
    count = "orthobandit_http_requests_total"
    assert value(found, count, method="POST", route=f"{route}/ask", status="200") == 2
    assert value(found, count, method="GET", route=route, status="404") == 1
    assert value(found, count, method="GET", route="none", status="404") == 1
    assert value(found, "orthobandit_http_seconds_count", route=f"{route}/ask") == 2
    assert value(found, "orthobandit_http_seconds_bucket", route=f"{route}/ask", le="+Inf") == 2
    assert value(found, "orthobandit_proposals_total", experiment="page") == 2
    assert value(found, "orthobandit_settled_total", experiment="page") == 2
    assert value(found, "orthobandit_arms_left", experiment="page") == 2
    assert value(found, "orthobandit_open", experiment="page") == 1
    assert value(found, "orthobandit_alarm", experiment="page", alarm="sample-ratio") == 0
    assert value(found, "orthobandit_experiments") == 1
    for secret in ("user-", "nowhere", "secret-path", "ob_"):
        assert secret not in answer.text


def test_looks_are_renewed_when_something_happened(tmp_path):
    with served(tmp_path / "all.db") as http:
        http.post("/v1/experiments", json=TWO)
        for count in (0, 3, 5):
            if count:
                http.post(f"{PAGE}/ask-many", json={"count": count})
            found = samples(http.get("/metrics").text)
            assert value(found, "orthobandit_awaited", experiment="page") == {0: 0, 3: 3, 5: 8}[count]


def test_a_token_to_read_is_needed_unless_this_machine_is_let_in(tmp_path):
    where = tmp_path / "all.db"
    with served(where, role=None) as http:
        assert is_problem(http.get("/metrics"), 401, "unauthenticated")
        given = {"Authorization": f"Bearer {token_of(where, 'edge')}"}
        assert is_problem(http.get("/metrics", headers=given), 403, "forbidden")
        given = {"Authorization": f"Bearer {token_of(where, 'read')}"}
        assert http.get("/metrics", headers=given).status_code == 200
    with served(where, role=None, open_metrics=True) as http:
        assert http.get("/metrics").status_code == 200
        # As a proxy says it that others reach the server through.
        assert http.get("/metrics", headers={"X-Forwarded-For": "203.0.113.9"}).status_code == 401


def test_labels_cannot_be_made_up_by_callers():
    metrics = Metrics()
    for number in range(100):
        metrics.count(f"M{number}", "none", 405, 0.1)
    assert list(metrics.requests) == [("OTHER", "none", 405)]


def test_times_fall_into_the_buckets_that_hold_them():
    metrics = Metrics()
    for seconds in (0.001, 0.0011, 3.0, 99.0):
        metrics.count("GET", "/", 200, seconds)
    found = samples(render_metrics(metrics.families()).decode())
    name = "orthobandit_http_seconds"
    counts = [value(found, f"{name}_bucket", route="/", le=le) for le in ("0.001", "0.0025", "10.0", "+Inf")]
    assert counts == [1, 2, 3, 4]
    assert abs(value(found, f"{name}_sum", route="/") - 102.0021) < 1e-9


def test_one_experiment_that_is_damaged_does_not_hide_the_others(tmp_path, caplog):
    where = tmp_path / "all.db"
    with served(where) as http:
        for key in ("good", "bad"):
            http.post("/v1/experiments", json=TWO | {"key": key})
    with sqlite3.connect(where) as connection:
        connection.execute("UPDATE experiments SET settings = '{}' WHERE name = 'bad'")
    connection.close()
    with served(where) as http:
        for _ in range(3):
            found = samples(http.get("/metrics").text)
            assert value(found, "orthobandit_open", experiment="good") == 1
            assert value(found, "orthobandit_database_up") == 1
    assert caplog.text.count("'bad' cannot be looked at") == 1


def test_a_database_that_is_away_is_said():
    found = samples(render_metrics(experiment_families(None)).decode())
    assert value(found, "orthobandit_database_up") == 0
