"""OpenFeature's own SDK asks and tells through OFREP."""

import httpx
import pytest
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode, TypeMismatchError
from openfeature.flag_evaluation import FlagType, Reason
from openfeature.hook import Hook

from orthobandit.service import create_app
from service_samples import TWO, is_problem, running, token_of

FLAGS = "/ofrep/v1/evaluate/flags"


@pytest.fixture
def server(tmp_path):
    """Yield an HTTP client and an SDK's client of a server with one experiment."""
    where = tmp_path / "all.db"
    headers = {"Authorization": f"Bearer {token_of(where)}"}
    with running(create_app(where)) as address, httpx.Client(base_url=address, headers=headers) as http:
        assert http.post("/v1/experiments", json=TWO).status_code == 201
        api.set_provider(OFREPProvider(address, headers_factory=lambda: headers))
        yield http, api.get_client()
        api.shutdown()
        api.clear_providers()


def test_the_official_sdk_gets_the_arm_that_was_drawn(server):
    http, sdk = server
    details = sdk.get_string_details("page", "old", EvaluationContext("ann", {"country": "NL"}))
    assert details.error_code is None
    asked = http.post("/v1/experiments/page/ask", json={"unit": "ann"}).json()
    assert (details.value, details.variant, details.reason) == (asked["label"], asked["label"], Reason.SPLIT)
    assert details.flag_metadata == {"proposal": asked["id"], "plan": asked["plan"], "held": False}
    units = [f"u{n}" for n in range(30)]
    values = {sdk.get_string_value("page", "?", EvaluationContext(unit)) for unit in units}
    assert values == {"old", "new"}
    assert http.get("/v1/experiments/page").json()["proposals"] == 31


def test_the_official_sdk_falls_back_where_nothing_can_be_drawn(server):
    http, sdk = server
    someone = EvaluationContext("ann")
    unknown = sdk.get_string_details("nobody", "default", someone)
    assert (unknown.value, unknown.error_code) == ("default", ErrorCode.FLAG_NOT_FOUND)
    missing = sdk.get_string_details("page", "default")
    assert (missing.value, missing.error_code) == ("default", ErrorCode.TARGETING_KEY_MISSING)
    invalid = sdk.get_string_details("page", "default", EvaluationContext("a\nb"))
    assert (invalid.value, invalid.error_code) == ("default", ErrorCode.INVALID_CONTEXT)
    http.post("/v1/experiments/page/pause", json={})
    paused = sdk.get_string_details("page", "default", someone)
    assert (paused.value, paused.error_code) == ("default", ErrorCode.GENERAL)
    assert "paused" in paused.error_message
    assert http.get("/v1/experiments/page").json()["proposals"] == 0


class TextOnly(Hook):
    """The hook of docs/service.md."""

    def before(self, hook_context, hints):  # noqa: ARG002
        if hook_context.flag_type != FlagType.STRING:
            raise TypeMismatchError("labels of arms are text: ask with get_string_details")


@pytest.mark.parametrize(("has_hook", "drawn"), [(True, 0), (False, 1)])
def test_a_hook_keeps_a_call_of_another_type_from_drawing(server, has_hook, drawn):
    http, sdk = server
    if has_hook:
        sdk.add_hooks([TextOnly()])
    details = sdk.get_boolean_details(
        "page", default_value=False, evaluation_context=EvaluationContext("ann")
    )
    assert (details.value, details.error_code) == (False, ErrorCode.TYPE_MISMATCH)
    assert http.get("/v1/experiments/page").json()["proposals"] == drawn


def test_all_flags_come_at_once_and_not_again_while_they_stay(server):
    http, _ = server
    http.post("/v1/experiments", json={**TWO, "key": "other"})
    http.post("/v1/experiments", json={**TWO, "key": "stopped"})
    http.post("/v1/experiments/stopped/stop", json={})
    http.post("/v1/experiments", json={**TWO, "key": "visits", "sticky": False})
    http.post("/v1/experiments", json={**TWO, "key": "known", "covariates": ["basket"]})
    body = {"context": {"targetingKey": "ann"}}
    answer = http.post(FLAGS, json=body)
    flags = {flag["key"]: flag for flag in answer.json()["flags"]}
    assert sorted(flags) == ["known", "other", "page"]
    assert flags["known"]["errorCode"] == "INVALID_CONTEXT"
    assert flags["page"] == http.post(f"{FLAGS}/page", json=body).json()
    again = http.post(FLAGS, json=body, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    full = http.post(FLAGS, json={"context": {"targetingKey": "ann", "basket": 2}})
    assert all("variant" in flag for flag in full.json()["flags"])
    assert http.get("/v1/experiments/visits").json()["proposals"] == 0


@pytest.mark.parametrize("path", [FLAGS, f"{FLAGS}/page"])
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "TARGETING_KEY_MISSING"),
        ({"context": {"targetingKey": 17}}, "INVALID_CONTEXT"),
        ({"context": 1}, "PARSE_ERROR"),
        ([], "PARSE_ERROR"),
    ],
)
def test_contexts_that_cannot_be_used_are_refused_in_ofreps_words(server, path, body, code):
    answer = server[0].post(path, json=body)
    assert (answer.status_code, answer.json()["errorCode"]) == (400, code)
    assert answer.json()["errorDetails"]


def test_a_body_that_is_no_text_is_refused_in_ofreps_words(server):
    headers = {"Content-Type": "application/json"}
    for content in (b"\xff", b"{"):
        answer = server[0].post(FLAGS, content=content, headers=headers)
        assert (answer.status_code, answer.json()["errorCode"]) == (400, "PARSE_ERROR")


def test_events_are_told_to_the_experiments_that_know_the_unit(server):
    http, sdk = server
    http.post("/v1/experiments", json={**TWO, "key": "sales", "objective": "sale"})
    http.post("/v1/experiments", json={**TWO, "key": "unseen", "objective": "sale"})
    for key in ("page", "sales"):
        sdk.get_string_value(key, "?", EvaluationContext("ann"))
    event = {"unit": "ann", "event": "sale"}
    assert http.post("/v1/track", json=event).json() == {"told": ["sales"], "refused": {}}
    assert http.get("/v1/experiments/sales").json()["settled"] == 1
    assert http.get("/v1/experiments/page").json()["settled"] == 0
    again = http.post("/v1/track", json={**event, "value": 0.5}).json()
    assert again["told"] == []
    assert "the first value is final" in again["refused"]["sales"]
    note = f"'bob' has no proposal in any experiment that has a metric {event['event']!r}"
    answer = http.post("/v1/track", json={**event, "unit": "bob"}).json()
    assert answer == {"told": [], "refused": {}, "note": note}
    answer = http.post("/v1/track", json={**event, "event": "slip"}).json()
    assert answer["note"] == "no experiment has a metric 'slip'"
    assert http.get("/v1/experiments/unseen").json()["proposals"] == 0


def test_an_event_of_a_named_experiment_is_refused_as_any_reward(server):
    http, _ = server
    event = {"unit": "ann", "event": "reward", "experiment": "page"}
    assert is_problem(http.post("/v1/track", json=event), 404, "unknown-proposal")
    assert is_problem(http.post("/v1/track", json={**event, "experiment": "x"}), 404, "unknown-experiment")
    http.post("/v1/experiments/page/ask", json={"unit": "ann"})
    assert is_problem(http.post("/v1/track", json={**event, "value": 7}), 422, "reward")
    assert http.post("/v1/track", json=event).json()["told"] == ["page"]
    assert is_problem(http.post("/v1/track", json={**event, "value": 0}), 409, "conflict")


def test_an_event_with_a_key_adds_up_once(server):
    http, _ = server
    sums = {**TWO, "key": "sums", "objective": "sale", "rewards": [0, 10], "window": "7d", "add": True}
    http.post("/v1/experiments", json=sums)
    http.post("/v1/experiments/sums/ask", json={"unit": "ann"})
    for _ in range(2):
        sent = http.post(
            "/v1/track", json={"unit": "ann", "event": "sale", "value": 3}, headers={"Idempotency-Key": "17"}
        )
        assert sent.json()["told"] == ["sums"]
    assert http.get("/v1/experiments/sums/export").text.split()[-1].endswith(",3.0")
