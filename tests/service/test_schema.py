"""The OpenAPI description holds for what is sent to the server, however odd."""

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup, ServerError
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from orthobandit.service import create_app
from service_samples import TWO, running, token_of

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    where = tmp_path_factory.mktemp("service") / "all.db"
    headers = {"Authorization": f"Bearer {token_of(where)}"}
    with running(create_app(where)) as address:
        for key in ("page", "a"):
            answer = httpx.post(f"{address}/v1/experiments", json={**TWO, "key": key}, headers=headers)
            assert answer.status_code == 201
        yield address, headers


def schema_of(address):
    return schemathesis.openapi.from_url(f"{address}/openapi.json")


def test_every_operation_has_a_summary_and_its_problems(server):
    paths = httpx.get(f"{server[0]}/openapi.json").json()["paths"]
    assert len(paths) >= 15
    for path, item in paths.items():
        for method, operation in item.items():
            assert operation["summary"], (method, path)
            if path.startswith("/v1"):
                assert {"401", "403", "422", "503"} <= set(operation["responses"]), (method, path)
            for status, answer in operation["responses"].items():
                is_ofrep = path.startswith("/ofrep") and status in ("400", "404")  # has its own words
                if status >= "400" and not is_ofrep:
                    assert list(answer["content"]) == ["application/problem+json"], (method, path, status)


def statuses_of(operation, mode, headers):
    """Send a few requests, and return the statuses of their answers, which are as documented."""
    found = []

    @settings(
        max_examples=8,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), is_known=st.integers(0, 3))
    def send(case, is_known):
        if is_known and "key" in (case.path_parameters or {}):
            case.path_parameters["key"] = "page"
        found.append(case.call_and_validate(headers=headers, checks=CHECKS).status_code)

    send()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_whatever_is_sent_has_a_documented_answer(server, mode):
    address, headers = server
    found = {}
    for result in schema_of(address).get_all_operations():
        operation = result.ok()
        # Nothing that is sent to those three can be wrong.
        if mode == GenerationMode.POSITIVE or operation.path not in ("/healthz", "/readyz", "/edge.js"):
            found[operation.label] = statuses_of(operation, mode, headers)
    assert len(found) >= 18
    wanted = range(200, 300) if mode == GenerationMode.POSITIVE else range(400, 500)
    assert sum(any(one in wanted for one in statuses) for statuses in found.values()) >= 15, found


@pytest.mark.slow
def test_an_answer_that_is_not_documented_is_found(server, monkeypatch):
    def broken(*_):
        raise RuntimeError

    monkeypatch.setattr("orthobandit.experiment.Experiment.pause", broken)
    operation = schema_of(server[0])["/v1/experiments/{key}/pause"]["POST"]
    with pytest.raises((FailureGroup, ServerError)):
        statuses_of(operation, GenerationMode.POSITIVE, server[1])
