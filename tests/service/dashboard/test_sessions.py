"""Who is let in, for how long, and what they may do."""

import re
import sqlite3

import httpx
import pytest

from dashboard_samples import Visitor, in_words, visiting
from inside.service import BLANK, Registry, Token, Tokens
from orthobandit import AnytimeElimination, ArmSet
from orthobandit.service import Client, create_app
from orthobandit.service.dashboard.access import SESSION_SECONDS, Sessions
from service_samples import TWO, running, token_of


@pytest.fixture
def where(tmp_path):
    return tmp_path / "all.db"


def test_a_token_lets_in_and_nothing_else_does(where):
    with visiting(where, role=None) as visitor:
        for path in ("", "/new", "/experiments/page", "/experiments/page/trail", "/nosuch"):
            assert visitor.get(path).url.path == "/dashboard/login"
        for wrong in ("", "x", "ob_0_0", token_of(where)[:-1]):
            page = visitor.log_in(wrong)
            assert page.status_code == 401
            assert "This token is not known" in in_words(page)
        assert visitor.log_in(token_of(where)).url.path == "/dashboard"
        assert "Nothing runs yet" in in_words(visitor.get(""))


def test_scripts_cannot_read_the_cookie_and_other_sites_cannot_send_it(where):
    token = token_of(where)
    with running(create_app(where)) as address:
        for proxy, is_secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
            visitor = Visitor(address)
            visitor.http.follow_redirects = False
            form = httpx.get(f"{address}/dashboard/login")
            hidden = re.search(r'name="form_token" value="(\w+)"', form.text)[1]
            answer = visitor.http.post(
                "/dashboard/login",
                data={"form_token": hidden, "token": token},
                headers=proxy | {"Cookie": f"ob_form={form.cookies['ob_form']}"},
            )
            assert answer.status_code == 303
            cookie = answer.headers["set-cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=strict" in cookie
            assert f"Max-Age={SESSION_SECONDS:.0f}" in cookie
            assert ("Secure" in cookie) == is_secure
            visitor.http.close()


def test_a_copy_of_the_database_lets_nobody_in(where):
    with visiting(where) as visitor:
        secret = visitor.http.cookies["ob_session"]
        with sqlite3.connect(where) as connection:
            (kept,) = connection.execute("select id from service_sessions").fetchone()
        assert secret.encode() not in b"".join(path.read_bytes() for path in where.parent.iterdir())
        with httpx.Client(base_url=visitor.http.base_url, cookies={"ob_session": kept.hex()}) as thief:
            assert thief.get("/dashboard").status_code == 303


def test_a_session_ends_with_its_token_its_time_and_on_all_servers(where):
    registry = Registry(where)
    now = [1000.0]
    tokens, sessions = Tokens(registry), Sessions(registry, lambda: now[0])
    tokens.make("admin")  # who stays
    token, _ = tokens.make("admin")
    other, _ = tokens.make("read")
    first, second = sessions.begin(token), sessions.begin(other)
    assert sessions.find(first).token == Token(*token)
    tokens.revoke(token.id)
    assert sessions.find(first) is None
    assert sessions.find(second).token.role == "read"
    brief, _ = tokens.make("read", lasts=60.0)
    third = sessions.begin(brief)
    assert sessions.find(third).token == brief
    now[0] = brief.until
    assert sessions.find(third) is None
    now[0] = 1000.0 + SESSION_SECONDS
    assert sessions.find(second) is None
    assert sessions.find(None) is sessions.find("x" * 1000) is None
    registry.close()


def test_those_who_see_some_experiments_see_no_others(where):
    registry = Registry(where)
    for key in ("page", "shop-a"):
        registry.create(key, ArmSet.one_hot(2), AnytimeElimination(rewards=(0, 1)))
    _, text = Tokens(registry).make("admin", experiments=["shop-*"])
    registry.close()
    with visiting(where, role=None) as visitor:
        visitor.log_in(text)
        listed = visitor.get("").text
        assert "shop-a" in listed
        assert "/dashboard/experiments/page" not in listed
        assert visitor.get("/experiments/shop-a").status_code == 200
        for part in ("", "/charts", "/events", "/trail", "/report.json", "/data.csv", "/stop"):
            assert visitor.get(f"/experiments/page{part}").status_code == 403
        visitor.get("/experiments/shop-a")
        assert visitor.post("/experiments/page/pause").status_code == 403
        assert visitor.post("/experiments/shop-a/pause").status_code == 200
        visitor.get("/new")
        fields = BLANK | {"key": "other", "arms": "a\nb", "do": "begin"}
        assert visitor.post("/new", **fields).status_code == 403
        visitor.get("/new")
        assert visitor.post("/new", **fields | {"key": "shop-b"}).status_code == 200
    registry = Registry(where)
    assert registry.page(9) == ["page", "shop-a", "shop-b"]
    registry.close()


def test_logging_out_ends_the_session_on_another_server_too(where):
    token = token_of(where)
    with running(create_app(where)) as one, running(create_app(where)) as two:
        visitor = Visitor(one)
        visitor.log_in(token)
        with httpx.Client(base_url=two, cookies={"ob_session": visitor.http.cookies["ob_session"]}) as again:
            assert again.get("/dashboard").status_code == 200
            assert visitor.post("/logout").url.path == "/dashboard/login"
            assert again.get("/dashboard").status_code == 303
        visitor.http.close()


def test_those_who_may_look_cannot_act(where):
    with visiting(where, role="read") as visitor:
        with Client(str(visitor.http.base_url), token_of(where)) as client:
            client.create(**TWO)
        page = visitor.get("/experiments/page")
        assert page.status_code == 200
        assert not {"Pause", "Stop…", "Retire…"} & set(in_words(page).split())
        assert visitor.get("").text.count("/dashboard/new") == 0
        assert visitor.get("/new").status_code == 403
        visitor.get("/experiments/page")
        for path in ("/pause", "/stop", "/retire", "/undo"):
            answer = visitor.post(f"/experiments/page{path}", arm="new")
            assert answer.status_code == 403
            assert "Your token may only read" in in_words(answer)
        assert visitor.get("/experiments/page/data.csv").status_code == 200


def test_a_token_that_sees_no_pages_is_told_so(where):
    with visiting(where, role=None) as visitor:
        page = visitor.log_in(token_of(where, "edge"))
        assert page.status_code == 403
        assert "has the role 'edge', which sees no pages" in in_words(page).replace("&#39;", "'")


@pytest.mark.parametrize("to", ["//elsewhere.example", "https://elsewhere.example/dashboard", "/v1/tokens"])
def test_the_login_leads_nowhere_else(where, to):
    with visiting(where, role=None) as visitor:
        visitor.get("/login", params={"to": to})
        assert visitor.post("/login", token=token_of(where), to=to).url.path == "/dashboard"


def test_without_tokens_everybody_here_is_an_admin(where):
    with visiting(where, role=None, with_tokens=False) as visitor:
        assert "no tokens: everybody on this machine is an admin" in in_words(visitor.get(""))
        assert visitor.get("/login").url.path == "/dashboard"
        assert visitor.http.get("/").url.path == "/dashboard"
