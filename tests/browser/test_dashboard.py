"""The dashboard in a real browser: create, play, a winner; keyboard, phone, dark; nothing leaves the host."""

import os
from pathlib import Path

import pytest

from browser_samples import RATES, enter, play, serious, watched
from orthobandit.service import Client, create_app
from service_samples import running, token_of

SHOTS = os.environ.get("ORTHOBANDIT_SHOTS")  # a folder for pictures of all pages
GRACE = "orthobandit.service.dashboard.actions.UNDO_SECONDS"
# Each colour and each width once; all four for pictures.
SIZES = [("light", 1200), ("dark", 390)] + [("dark", 1200), ("light", 390)] * bool(SHOTS)


@pytest.fixture(scope="module")
def axe():
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield the address of a server with one experiment that has a winner, and one without, and a token."""
    where = tmp_path_factory.mktemp("browser") / "all.db"
    with running(create_app(where)) as address:
        token = token_of(where)
        with Client(address, token) as client:
            client.create("won", list(RATES), rewards=[0, 1], window="7d")
            play(client, "won", 12)
            client.create("fresh", list(RATES), rewards=[0, 1])
            client.create("young", list(RATES), rewards=[0, 1])
            play(client, "young", 1)
            client.tell_many("young", [one.id for one in client.ask_many("young", 30)][5:], [1.0] * 25)
        yield address, token


@pytest.mark.smoke
def test_create_play_and_see_the_winner(chromium, server):
    address, token = server
    with watched(chromium, address) as page:
        enter(page, address, token)
        assert "#" not in page.url  # the token is not left in the address, nor in the history
        page.click("text=New experiment")
        page.fill("#key", "signup")
        page.fill("#arms", "\n".join(RATES))
        page.fill("#epsilon", "0.2")
        page.fill("#daily", "1000")
        page.click("button:has-text('Preview')")
        assert "About" in page.inner_text("#shown .forecast")
        page.click("text=Begin the experiment")
        page.wait_for_url(f"{address}/dashboard/experiments/signup")
        assert "nobody has asked yet" in page.inner_text("[data-part=advice]")
        assert f"{address}/v1/experiments/signup/ask" in page.inner_text("[data-part=start]")
        page.evaluate("window.isSamePage = true")
        with Client(address, token) as client:
            play(client, "signup", 15, seed=1)
        page.wait_for_selector("[data-part=advice]:has-text('Show \\'short form\\': it is within 0.2')")
        assert page.inner_text(".chip.won >> nth=0") == "winner declared"
        assert page.inner_text("[data-part=start]").strip() == ""
        assert page.evaluate("window.isSamePage")  # the server said so; nobody has loaded it again
        for name in ("intervals", "allocation", "baseline"):
            page.wait_for_selector(f"#chart-{name} canvas")
        page.hover("#chart-allocation .u-over")
        assert "short form" in page.inner_text("#readout-allocation")
        page.click("#numbers-intervals summary")
        assert "short form" in page.inner_text("#numbers-intervals")


@pytest.mark.parametrize("has_scripts", [True, False])
def test_metrics_and_guardrails_are_filled_in_row_by_row(chromium, server, axe, has_scripts):
    address, token = server
    key = f"guarded-{has_scripts}".lower()
    with watched(chromium, address, java_script_enabled=has_scripts) as page:
        page.goto(f"{address}/dashboard/login")
        page.fill("#token", token)
        page.click("button:has-text('Log in')")
        page.goto(f"{address}/dashboard/new")
        page.fill("#key", key)
        page.fill("#arms", "\n".join(RATES))
        page.click("text=Add a metric")
        if has_scripts:
            assert page.evaluate("document.activeElement.id") == "metric-1-name"
        page.fill("#metric-1-name", "seconds")
        page.fill("#metric-1-low", "0")
        page.fill("#metric-1-high", "4")
        page.select_option("#metric-1-worse", "higher")
        page.fill("#metric-1-margin", "1")
        page.click("text=Add another metric")
        page.click("[aria-label='Remove metric 2']")
        assert page.query_selector("#metric-2-name") is None
        page.press("#key", "Enter")  # previews; it neither adds a row nor begins
        assert "seconds" in page.inner_text("#shown .watched")
        assert "#metric" not in page.url
        if has_scripts:
            assert serious(axe.run(page)) == []
        page.click("#shown >> text=Begin the experiment")
        page.wait_for_url(f"{address}/dashboard/experiments/{key}")
        assert '"seconds": 1' in page.inner_text("[data-part=start]")
        with Client(address, token) as client:
            for _ in range(3):
                proposals = client.ask_many(key, 100)
                seconds = [4.0 * (one.label == "with video") for one in proposals]
                rewards = {"reward": [0.5] * 100, "seconds": seconds}
                client.tell_many(key, [one.id for one in proposals], rewards)
        if not has_scripts:
            page.reload()
        page.wait_for_selector("[data-part=health] .acted:has-text(\"has retired 'with video'\")")
        page.wait_for_selector("[data-part=metrics] tr.out:has-text('retired by the guardrail')")


def test_retire_undo_and_stop(chromium, server, axe, monkeypatch):
    address, token = server
    monkeypatch.setattr(GRACE, 600.0)
    with watched(chromium, address) as page:
        enter(page, address, token)
        page.goto(f"{address}/dashboard/experiments/young")
        page.click("a[aria-label='Retire with video']")
        page.click("text=Leave it as it is")
        page.click("a[aria-label='Retire with video']")
        page.click("button:has-text('Retire it')")
        page.wait_for_selector("form.notice:has-text('with video is about to be retired')")
        assert serious(axe.run(page)) == []
        page.click("button:has-text('Undo')")
        page.wait_for_selector("form.notice", state="detached")
        page.click("#pause")
        page.click("#resume")
        monkeypatch.setattr(GRACE, 2.0)
        page.click("#stop")
        page.fill("#reason", "seen enough")
        page.click("button:has-text('Stop it')")
        page.wait_for_selector("[data-part=advice]:has-text('was stopped by hand')", timeout=30_000)
        assert page.query_selector("form.notice") is None
        page.click("text=Audit trail")
        assert "stopped: seen enough" in page.inner_text("main")
        assert "asked to retire 'with video', undone" in page.inner_text("main")
        page.click("text=Compute them again")
        assert "Yes: all 130 draws" in page.inner_text("[role=status]")
        page.click("text=Log out")
        page.goto(f"{address}/dashboard/experiments/young")
        assert "/dashboard/login" in page.url


@pytest.mark.parametrize(("scheme", "width"), SIZES)
def test_pages_are_for_everybody(chromium, server, axe, scheme, width):
    """No serious finding of axe, nothing beside the screen, on every page."""
    address, token = server
    paths = ["/login", "", "/new", "/experiments/won", "/experiments/won/trail?check=draws"]
    paths += ["/experiments/fresh", "/experiments/young", "/experiments/won/retire?arm=as+it+is", "/nosuch"]
    with watched(chromium, address, color_scheme=scheme, viewport={"width": width, "height": 900}) as page:
        for path in paths:
            page.goto(f"{address}/dashboard{path}")
            if path == "/experiments/won":
                page.wait_for_selector("#chart-intervals canvas")
                for one in page.query_selector_all("details"):
                    one.evaluate("node => { node.open = true }")
            assert serious(axe.run(page)) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
            if SHOTS:
                name = path.strip("/").replace("/", "-").partition("?")[0] or "list"
                page.screenshot(path=Path(SHOTS) / f"{name}-{width}-{scheme}.png", full_page=True)
            if path == "/login":
                enter(page, address, token)


@pytest.mark.parametrize(
    "stray",
    [
        "document.body.setAttribute('style', 'color: red')",
        "document.body.append(Object.assign(document.createElement('script'), {text: 'window.x = 1'}))",
        "fetch('http://127.0.0.2:9/').catch(() => null)",
        "document.body.append(Object.assign(new Image(), {src: 'http://127.0.0.2:9/x.png'}))",
    ],
)
def test_what_is_inline_or_from_elsewhere_is_blocked_and_noticed(chromium, server, stray):
    address, _ = server

    def visit():
        with watched(chromium, address) as page:
            page.goto(f"{address}/dashboard/login")
            page.evaluate(stray)
            page.wait_for_timeout(200)
            if page.evaluate("window.x") is not None:
                pytest.fail("a script has run that is not the server's own")

    with pytest.raises(AssertionError):
        visit()


def test_the_keyboard_is_enough_and_focus_is_seen_and_kept(chromium, server):
    address, token = server
    with watched(chromium, address) as page:
        page.goto(f"{address}/dashboard/login")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.focus("#token")
        page.keyboard.type(token)
        page.keyboard.press("Enter")
        page.wait_for_url(f"{address}/dashboard")
        seen = set()
        for _ in range(12):
            page.keyboard.press("Tab")
            seen.add(page.evaluate("document.activeElement.textContent.trim()"))
            width = page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
            assert width >= 2
        assert {"Experiments", "New experiment", "won", "Log out"} <= seen
        page.goto(f"{address}/dashboard/experiments/won")
        page.focus("#pause")
        with Client(address, token) as client:
            play(client, "won", 1, seed=2)
        page.wait_for_selector("[data-part=numbers]:has-text('1,300')")
        assert page.evaluate("document.activeElement.id") == "pause"


def test_the_first_experiment_comes_into_an_empty_list(chromium, tmp_path):
    where = tmp_path / "all.db"
    token = token_of(where)
    with running(create_app(where)) as address, watched(chromium, address) as page:
        enter(page, address, token)
        assert "Nothing runs yet" in page.inner_text("main")
        with Client(address, token) as client:
            client.create("landing", list(RATES), rewards="unknown")
        page.wait_for_selector("#list >> text=landing")
        assert "New experiment" in page.inner_text("main")


def test_a_page_says_that_its_server_is_away_and_goes_on_when_it_is_back(chromium, server):
    address, token = server
    context = chromium.new_context()
    page = context.new_page()
    enter(page, address, token)
    page.clock.install()
    page.route("**/events*", lambda route: route.fulfill(status=502, body="no server"))
    with page.expect_response("**/events*"):
        page.goto(f"{address}/dashboard/experiments/won")
    assert not page.is_visible("#away")
    page.clock.fast_forward(6000)
    page.wait_for_selector("#away:has-text('The server does not answer')")
    page.unroute("**/events*")
    page.clock.fast_forward(4000)
    page.wait_for_selector("#away", state="hidden")
    context.close()


def test_pages_say_what_matters_without_scripts(chromium, server):
    address, token = server
    with watched(chromium, address, java_script_enabled=False) as page:
        page.goto(f"{address}/dashboard/login")
        page.fill("#token", token)
        page.click("button:has-text('Log in')")
        page.click("text=won")
        assert "short form" in page.inner_text("[data-part=advice]")
        page.click("#numbers-allocation summary")
        assert page.is_visible("#numbers-allocation table")
