"""Tokens: who may do what."""

import asyncio

import httpx
import pytest
import sqlalchemy as sa

from orthobandit.errors import ParameterError
from orthobandit.service import create_app
from orthobandit.service.http.auth import FRESH, ROLES, Tokens
from orthobandit.service.registry import Registry
from orthobandit.service.tables import TOKENS
from service_samples import TWO, is_problem, running, served

PAGE = "/v1/experiments/page"
# What is asked for, and which roles may.
DOORS = [
    ("GET", "/v1/experiments", {"admin", "ask-tell", "read"}),
    ("GET", PAGE, {"admin", "ask-tell", "read"}),
    ("GET", f"{PAGE}/report", {"admin", "ask-tell", "read"}),
    ("GET", f"{PAGE}/export", {"admin", "ask-tell", "read"}),
    ("GET", f"{PAGE}/certificate", {"admin", "ask-tell", "read"}),
    ("POST", f"{PAGE}/ask", {"admin", "ask-tell"}),
    ("POST", f"{PAGE}/ask-many", {"admin", "ask-tell"}),
    ("POST", f"{PAGE}/tell", {"admin", "ask-tell"}),
    ("POST", f"{PAGE}/tell-many", {"admin", "ask-tell"}),
    ("GET", f"{PAGE}/plan", {"admin", "edge"}),
    ("POST", f"{PAGE}/exposures", {"admin", "edge"}),
    ("POST", "/v1/experiments", {"admin"}),
    ("POST", f"{PAGE}/arms", {"admin"}),
    ("POST", f"{PAGE}/arms/nobody/retire", {"admin"}),
    ("POST", f"{PAGE}/pause", {"admin"}),
    ("POST", f"{PAGE}/resume", {"admin"}),
    ("POST", f"{PAGE}/stop", {"admin"}),
    ("POST", "/ofrep/v1/evaluate/flags", {"admin", "ask-tell"}),
    ("POST", "/ofrep/v1/evaluate/flags/page", {"admin", "ask-tell"}),
    ("POST", "/v1/track", {"admin", "ask-tell"}),
    ("GET", "/metrics", {"admin", "ask-tell", "read"}),
    ("GET", "/v1/tokens", {"admin"}),
    ("GET", "/v1/webhooks", {"admin"}),
    ("POST", "/v1/webhooks", {"admin"}),
    ("POST", "/v1/webhooks/nobody/test", {"admin"}),
    ("GET", "/v1/webhooks/nobody/deliveries", {"admin"}),
    ("DELETE", "/v1/webhooks/nobody", {"admin"}),
    ("POST", "/v1/tokens", {"admin"}),
    ("DELETE", "/v1/tokens/nobody", {"admin"}),
]


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    with served(tmp_path_factory.mktemp("service") / "all.db") as client:
        client.post("/v1/experiments", json=TWO)
        yield client


@pytest.fixture(scope="module")
def tokens(http):
    return {role: http.post("/v1/tokens", json={"role": role}).json()["token"] for role in ROLES}


def sent(http, method, path, token=None):
    headers = {"Authorization": f"Bearer {token}" if token else ""}
    # A body that no route takes: who is let in is told so, and nothing is changed.
    return http.request(method, path, json=["?"] if method == "POST" else None, headers=headers)


@pytest.mark.parametrize(("method", "path", "roles"), DOORS)
def test_roles_may_do_what_is_theirs(http, tokens, method, path, roles):
    assert is_problem(sent(http, method, path), 401, "unauthenticated")
    for role, token in tokens.items():
        answer = sent(http, method, path, token)
        if role in roles:
            assert answer.status_code not in (401, 403), answer.text
        else:
            assert is_problem(answer, 403, "forbidden")
            assert repr(role) in answer.json()["detail"]


def test_every_route_has_its_door(http):
    paths = http.get("/openapi.json").json()["paths"]
    found = {
        (method.upper(), path)
        for path, item in paths.items()
        for method, operation in item.items()
        if operation.get("security")
    }
    named = {
        (method, path.replace("page", "{key}").replace("nobody", "{label}" if "arms" in path else "{id}"))
        for method, path, _ in DOORS
    }
    assert found == named
    without = {path for path, item in paths.items() for one in item.values() if not one.get("security")}
    assert without == {"/healthz", "/readyz", "/edge.js"}


@pytest.mark.parametrize("change", [lambda t: t[:-1], lambda t: t + "a", lambda t: "x" + t, lambda t: "ob_"])
def test_almost_a_token_is_none(http, tokens, change):
    answer = sent(http, "GET", "/v1/experiments", change(tokens["admin"]))
    assert is_problem(answer, 401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_secret_of_another_token_is_refused(http, tokens):
    ours, theirs = tokens["read"].split("_", 2), tokens["admin"].split("_", 2)
    mixed = "_".join([*theirs[:2], ours[2]])
    assert is_problem(sent(http, "GET", "/v1/experiments", mixed), 401, "unauthenticated")


def test_tokens_are_listed_without_secrets_and_revoked(http, tokens):
    made = http.post("/v1/tokens", json={"role": "read", "name": "wall"}).json()
    assert sent(http, "GET", "/v1/experiments", made["token"]).status_code == 200
    listed = http.get("/v1/tokens")
    assert ("wall", "read") in [(one["name"], one["role"]) for one in listed.json()["tokens"]]
    assert made["token"].split("_", 2)[2] not in listed.text
    assert http.delete(f"/v1/tokens/{made['id']}").status_code == 204
    assert is_problem(sent(http, "GET", "/v1/experiments", made["token"]), 401, "unauthenticated")
    assert is_problem(http.delete(f"/v1/tokens/{made['id']}"), 404, "not-found")


def test_the_last_admin_stays(tmp_path):
    with served(tmp_path / "all.db") as http:
        [only] = http.get("/v1/tokens").json()["tokens"]
        assert is_problem(http.delete(f"/v1/tokens/{only['id']}"), 409, "conflict")
        assert http.get("/v1/tokens").status_code == 200


def test_secrets_are_not_in_the_database(tmp_path):
    registry = Registry(tmp_path / "all.db")
    text = Tokens(registry).first()
    assert text is not None
    assert Tokens(registry).first() is None
    with registry.reading() as connection:
        [row] = connection.execute(sa.select(TOKENS)).all()
    registry.close()
    secret = text.split("_", 2)[2]
    assert not any(secret in str(value) or secret.encode() == value for value in row)
    with pytest.raises(ParameterError, match="role='king' is not one of 'admin'"):
        Tokens(Registry(tmp_path / "all.db")).make("king")


def test_other_servers_notice_a_token_that_is_revoked(tmp_path):
    now = 0.0
    registry = Registry(tmp_path / "all.db")
    here, there = Tokens(registry), Tokens(registry, clock=lambda: now)
    token, text = here.make("read")
    assert asyncio.run(there.find(text)) == token
    here.revoke(token.id)
    assert asyncio.run(here.find(text)) is None
    assert asyncio.run(there.find(text)) == token  # it has not looked again
    now = FRESH
    assert asyncio.run(there.find(text)) is None
    registry.close()


def test_without_tokens_everybody_is_an_admin(tmp_path):
    app = create_app(tmp_path / "all.db", with_tokens=False)
    with running(app) as address, httpx.Client(base_url=address) as http:
        assert http.post("/v1/experiments", json=TWO).status_code == 201
        assert is_problem(http.get("/v1/tokens"), 404, "not-found")
