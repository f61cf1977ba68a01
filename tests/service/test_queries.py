"""Query parameters: mistyped ones are refused, and those of others' clients and probes are not."""

import pytest

from service_samples import TWO, is_problem, served


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with served(tmp_path_factory.mktemp("service") / "all.db") as client:
        assert client.post("/v1/experiments", json={**TWO, "key": "page"}).status_code == 201
        yield client


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        (
            "/v1/experiments?limt=5",
            "query limt: there is no such parameter; those of this address: 'limit' and 'after'",
        ),
        (
            "/v1/experiments/page/report?x=",
            "query x: there is no such parameter; those of this address: none",
        ),
        (
            "/v1/experiments/page/export?format=csv&Raw=1&b",
            "query Raw: there is no such parameter; those of this address: 'format' and 'raw'",
        ),
        ("/v1/tokens?a=1&a=2", "query a: there is no such parameter; those of this address: none"),
    ],
)
def test_a_mistyped_parameter_is_named_with_those_that_there_are(http, path, detail):
    answer = http.get(path)
    assert is_problem(answer, 422, "invalid")
    assert answer.json()["detail"].startswith(detail)
    assert answer.json()["errors"][0]["pointer"].startswith("query ")


@pytest.mark.parametrize(
    ("what", "body"),
    [("ask", {}), ("ask-many", {"count": 2}), ("tell", {"id": 1, "reward": 1}), ("pause", {})],
)
def test_a_write_with_a_parameter_changes_nothing(http, what, body):
    path = "/v1/experiments/page"
    before = http.get(path).json()
    assert is_problem(http.post(f"{path}/{what}?unit=ann", json=body), 422, "invalid")
    assert http.get(path).json() == before


def test_parameters_that_there_are_still_work(http):
    assert http.get("/v1/experiments?limit=5&after=a").json() == {"keys": ["page"], "next": None}
    assert http.get("/v1/experiments/page/export?format=csv&raw=true").status_code == 200


def test_probes_and_flags_may_have_any(http):
    for path in ("/healthz?x=1", "/readyz?x=1", "/metrics?x=1", "/openapi.json?x=1"):
        assert http.get(path).status_code == 200, path
    context = {"context": {"targetingKey": "ann"}}
    assert http.post("/ofrep/v1/evaluate/flags?x=1", json=context).status_code == 200
    assert http.post("/ofrep/v1/evaluate/flags/page?x=1", json=context).status_code == 200


def test_whoever_has_no_token_is_told_that_first(http):
    answer = http.get("/v1/experiments?limt=5", headers={"Authorization": ""})
    assert is_problem(answer, 401, "unauthenticated")
