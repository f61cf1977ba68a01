"""Forms of other sites are refused, and pages run nothing but the server's own files."""

import httpx
import pytest

from dashboard_samples import INLINE, in_words, visiting
from orthobandit.service import Client
from orthobandit.service.dashboard.access import form_token
from service_samples import TWO, is_problem, token_of

NASTY = '<script>alert("x")</script>'


@pytest.fixture(scope="module", params=[True, False], ids=["tokens", "no tokens"])
def visitor(request, tmp_path_factory):
    where = tmp_path_factory.mktemp("forms") / "all.db"
    role = "admin" if request.param else None
    with visiting(where, role=role, with_tokens=request.param) as found:
        with Client(str(found.http.base_url), token_of(where)) as client:
            client.create(**TWO)
            client.create("nasty", [NASTY, "b"], rewards=[0, 1])
            client.tell("nasty", client.ask("nasty").id, 1.0)
        yield found


def status_of(visitor):
    page = visitor.get("/experiments/page")
    return "paused" if "Paused:" in in_words(page) else "open"


@pytest.mark.parametrize("token", ["", "0", "é", form_token("of another session, or of none")])
def test_a_form_without_the_right_token_is_refused(visitor, token):
    visitor.get("/experiments/page")
    answer = visitor.post("/experiments/page/pause", form_token=token)
    assert answer.status_code == 403
    assert "The form is too old, or not from this server" in in_words(answer)
    assert status_of(visitor) == "open"


def test_a_form_without_cookies_is_refused(visitor):
    visitor.get("/experiments/page")
    kept = dict(visitor.http.cookies)
    visitor.http.cookies.clear()
    answer = visitor.post("/experiments/page/pause")
    assert answer.status_code == 403 or answer.url.path == "/dashboard/login"
    visitor.http.cookies.update(kept)
    assert status_of(visitor) == "open"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://elsewhere.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_form_of_another_site_is_refused_whatever_its_token(visitor, headers):
    visitor.get("/experiments/page")
    answer = visitor.post("/experiments/page/pause", headers=headers)
    assert answer.status_code == 403
    assert "The form is not from a page of 127.0.0.1" in in_words(answer)
    assert status_of(visitor) == "open"


def test_a_form_of_its_own_is_taken(visitor):
    visitor.get("/experiments/page")
    own = {"Origin": str(visitor.http.base_url).rstrip("/"), "Sec-Fetch-Site": "same-origin"}
    assert visitor.post("/experiments/page/pause", headers=own).status_code == 200
    assert status_of(visitor) == "paused"
    visitor.post("/experiments/page/resume")
    assert status_of(visitor) == "open"


def test_forms_are_taken_nowhere_else(visitor):
    address = f"{visitor.http.base_url}/v1/experiments/page/pause"
    answer = httpx.post(address, data={"a": "b"}, headers={"Authorization": f"Bearer {visitor.token}"})
    assert is_problem(answer, 415, "not-json")


def test_a_form_that_is_too_large_or_broken_is_refused(visitor):
    visitor.get("/new")
    large = {"file": ("arms.csv", b"x" * (9 * 2**20), "text/csv")}
    assert visitor.post("/new", files=large, key="x").status_code == 413
    broken = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = visitor.http.post("/dashboard/new", content=b"--y\r\n", headers=broken)
    assert 400 <= answer.status_code < 500


def test_every_page_allows_its_own_files_and_nothing_inline(visitor):
    paths = ["", "/new", "/login", "/experiments/nasty", "/experiments/nasty/trail"]
    paths += ["/experiments/nasty/stop", "/experiments/nasty/retire?arm=b"]
    paths += ["/experiments/nosuch", "/experiments/nasty?part=live"]
    for path in paths:
        page = visitor.get(path)
        policy = page.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert not INLINE.search(page.text.replace("&lt;script", "")), path
        assert NASTY not in page.text
        assert page.headers["cache-control"] == "private, no-store"
