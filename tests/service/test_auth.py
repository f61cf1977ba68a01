"""Tokens: who may do what."""

import asyncio
from contextlib import suppress
from threading import Barrier, Thread

import httpx
import pytest
import sqlalchemy as sa

from inside.service import ROLES, Registry, Token, Tokens
from orthobandit.errors import ConflictError, ParameterError
from orthobandit.experiment.store.sql.service_tables import TOKENS
from orthobandit.service import create_app
from orthobandit.service.http.auth import FRESH_SECONDS
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


def test_two_admins_cannot_revoke_each_other(tmp_path, postgres):
    for where in (tmp_path / "all.db", postgres):
        registry = Registry(where)
        tokens = Tokens(registry)
        for one in tokens.all():  # of other tests, on a database that they share
            with suppress(ConflictError):
                tokens.revoke(one.id)
        for _ in range(5):
            ids = [tokens.make("admin")[0].id for _ in range(2)]
            for one in tokens.all():
                if one.id not in ids:
                    tokens.revoke(one.id)
            barrier = Barrier(2)
            refused = []

            def revoke(id_, barrier=barrier, refused=refused, tokens=tokens):
                barrier.wait()
                try:
                    tokens.revoke(id_)
                except ConflictError as error:
                    refused.append(str(error))

            threads = [Thread(target=revoke, args=(one,)) for one in ids]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(refused) == 1
            assert "is the last token of an admin" in refused[0]
            assert len(tokens.all()) == 1
        # Neither one that expires nor one for some experiments takes its place.
        [last] = tokens.all()
        tokens.make("admin", lasts="1d")
        tokens.make("admin", experiments=["page"])
        with pytest.raises(ConflictError):
            tokens.revoke(last.id)
        registry.close()


def test_tokens_expire(tmp_path, monkeypatch):
    registry = Registry(tmp_path / "all.db")
    tokens = Tokens(registry)
    token, text = tokens.make("read", lasts="1h")
    assert token.until == pytest.approx(token.at + 3600)
    assert asyncio.run(tokens.find(text)) == token
    assert tokens.remembered(text) == token
    monkeypatch.setattr("time.time", lambda: token.until)
    assert tokens.remembered(text) is None
    assert asyncio.run(tokens.find(text)) is None
    assert [one.id for one in tokens.all()] == [token.id]  # it is listed until it is revoked
    registry.close()
    for lasts in (0, "soon", -1.0):
        with pytest.raises(ParameterError, match="lasts="):
            tokens.make("read", lasts=lasts)
    for experiments in ([], "page", [""]):
        with pytest.raises(ParameterError, match="experiments="):
            tokens.make("read", experiments=experiments)


@pytest.mark.parametrize(
    ("patterns", "key", "is_for"),
    [
        (("page",), "page", True),
        (("page",), "pages", False),
        (("p*",), "page", True),
        (("*",), "any thing", True),
        (("*age", "x"), "page", True),
        (("p*g*",), "page", True),
        (("p*x*e",), "page", False),
        (("p.ge",), "page", False),
        (("a*" * 90,), "a" * 89 + "b" * 100, False),  # and at once
    ],
)
def test_stars_stand_for_anything(patterns, key, is_for):
    assert Token("1", "", "read", 0.0, patterns).is_for(key) is is_for


@pytest.fixture(scope="module")
def some(http):
    """Return tokens of each role for experiments whose key begins with `shop-`, and such an experiment."""
    http.post("/v1/experiments", json=TWO | {"key": "shop-a"})
    body = {"experiments": ["shop-*"], "lasts": "30d"}
    return {role: http.post("/v1/tokens", json=body | {"role": role}).json()["token"] for role in ROLES}


@pytest.mark.parametrize(("method", "path", "roles"), DOORS)
def test_tokens_for_some_experiments_see_no_others(http, some, method, path, roles):
    """Every door of another experiment is shut, and those of tokens and webhooks are for all or nobody."""
    for role in roles:
        answer = sent(http, method, path, some[role])
        if "page" in path or path.startswith(("/v1/tokens", "/v1/webhooks")):
            assert is_problem(answer, 403, "forbidden"), role
        else:
            assert answer.status_code != 403
        own = sent(http, method, path.replace("page", "shop-a"), some[role])
        if "page" in path:
            assert answer.status_code == 403
            assert own.status_code not in (401, 403), own.text


def test_lists_flags_and_metrics_have_only_the_experiments_of_the_token(http, some):
    given = {"headers": {"Authorization": f"Bearer {some['admin']}"}}
    assert http.get("/v1/experiments", **given).json()["keys"] == ["shop-a"]
    flags = http.post("/ofrep/v1/evaluate/flags", json={"context": {"targetingKey": "u"}}, **given).json()
    assert [one["key"] for one in flags["flags"]] == ["shop-a"]
    http.post(f"{PAGE}/ask", json={"unit": "u"})
    event = {"unit": "u", "event": "reward", "value": 1}
    assert http.post("/v1/track", json=event, **given).json() == {"told": ["shop-a"], "refused": {}}
    assert is_problem(http.post("/v1/track", json=event | {"experiment": "page"}, **given), 403, "forbidden")
    text = http.get("/metrics", **given).text
    assert 'experiment="shop-a"' in text
    assert 'experiment="page"' not in text
    assert is_problem(http.post("/v1/experiments", json=TWO | {"key": "other"}, **given), 403, "forbidden")
    assert http.post("/v1/experiments", json=TWO | {"key": "shop-b"}, **given).status_code == 201
    asked = http.post("/v1/experiments/shop-a/ask", json={"unit": "v"}, **given)
    assert asked.status_code == 200
    assert is_problem(http.post(f"{PAGE}/ask", json={"unit": "v"}, **given), 403, "forbidden")


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
    now = FRESH_SECONDS
    assert asyncio.run(there.find(text)) is None
    registry.close()


def test_without_tokens_everybody_is_an_admin(tmp_path):
    app = create_app(tmp_path / "all.db", with_tokens=False)
    with running(app) as address, httpx.Client(base_url=address) as http:
        assert http.post("/v1/experiments", json=TWO).status_code == 201
        assert is_problem(http.get("/v1/tokens"), 404, "not-found")
