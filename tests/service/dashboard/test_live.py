"""Pages that change by themselves: streams, versions, history; and that looking changes nothing."""

import json
import os
import re
import signal
import time
from itertools import pairwise
from threading import Thread

import httpx
import numpy as np
import pytest

from dashboard_samples import in_words, visiting
from experiment_samples import store_of
from inside.service import Registry
from orthobandit import ArmSet, Experiment
from orthobandit.service import Client
from orthobandit.service.dashboard.live import Live
from orthobandit.service.dashboard.time_series import POINT_GROWTH, History, labels_shown
from service_samples import TWO, started, token_of

PAGE = "/experiments/page"


@pytest.fixture
def registry(tmp_path):
    found = Registry(tmp_path / "all.db")
    arms = ArmSet.one_hot(2, ["old", "new"])
    Experiment.create(found.where, arms, rewards=(0, 1), name="page", key="1" * 32).close()
    yield found
    found.close()


def play(experiment, count, seed):
    rng, proposals = np.random.default_rng(seed), experiment.ask_many(count)
    rewards = [float(rng.random() < 0.1 + 0.8 * one.arm) for one in proposals]
    experiment.tell_many([one.id for one in proposals], rewards)


def events(address, cookies=None, known=""):
    """Yield the versions that a stream tells."""
    url = f"{address}/dashboard{PAGE}/events"
    with httpx.stream("GET", url, params={"known": known}, cookies=cookies, timeout=60) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in stream.iter_lines():
            if line.startswith("data: "):
                yield line.removeprefix("data: ")


def test_a_stream_says_when_something_has_changed(tmp_path):
    where = tmp_path / "all.db"
    with visiting(where) as visitor:
        address = str(visitor.http.base_url).rstrip("/")
        with Client(address, token_of(where)) as client:
            client.create(**TWO)
            page = visitor.get(PAGE)
            known = re.search(r'data-version="(\w+)"', page.text)[1]
            stream = events(address, dict(visitor.http.cookies), known)
            proposal = client.ask("page")
            version = next(stream)
            assert version != known
            client.tell("page", proposal.id, 1.0)
            assert next(stream) not in (known, version)
            stream.close()
        assert "1 of 1 visitors settled" in in_words(visitor.get(f"{PAGE}?part=live"))
        assert "<main" not in visitor.page.text
        assert visitor.get("/experiments/nosuch/events").status_code == 404
        visitor.http.cookies.clear()
        assert visitor.get(f"{PAGE}/events").url.path == "/dashboard/login"


def test_one_look_serves_all_who_watch_and_none_is_taken_when_nothing_is_new(registry, monkeypatch):
    looks = []
    live = Live(registry, History(registry), dict)
    real = live.look
    monkeypatch.setattr(live, "look", lambda key: looks.append(key) or real(key))
    for _ in range(3):
        assert live._look_at_all(["page"]).keys() <= {"page"}
        live._versions["page"] = "seen"
    assert looks == ["page"]
    registry.get("page").ask()
    live._look_at_all(["page"])
    live._look_at_all(["page"])
    assert looks == ["page", "page"]
    assert live._look_at_all([]) == {}  # nobody watches, and too little is settled for a point


def test_looking_writes_nothing_to_the_log(tmp_path):
    where = tmp_path / "all.db"
    with visiting(where) as visitor:
        with Client(str(visitor.http.base_url), token_of(where)) as client:
            client.create(**TWO)
            client.ask("page")
        visitor.get(PAGE)
        registry = Registry(where)
        before = History(registry).heads(["page"])
        for path in ("", f"{PAGE}?part=live", f"{PAGE}/charts", f"{PAGE}/trail", f"{PAGE}/stop"):
            assert visitor.get(path).status_code == 200
        assert History(registry).heads(["page"]) == before
        registry.close()


def test_the_version_changes_with_what_is_shown_and_only_then(registry):
    live = Live(registry, History(registry), dict)
    before = live.look("page").version
    registry.get("page").tick()
    assert live.look("page").version == before
    registry.get("page").pause()
    assert live.look("page").version != before


def test_points_of_intervals_are_few_however_much_is_settled(registry):
    history, page = History(registry), registry.get("page")
    for seed in range(60):
        play(page, 10, seed)
        history.keep("page", page.report())
        history.keep("page", page.report())
    found = history.charts("page", page.report())["intervals"]
    settled = found["settled"]
    assert settled[0] == 10
    assert settled[-1] == 600  # what is known now is always the last
    assert all(late >= early * POINT_GROWTH for early, late in pairwise(settled[:-1]))
    assert 20 < len(settled) < 50
    gap, low, high = found["gaps"]["new"][-1]
    arm = page.report().arms[1]
    assert (gap, low, high) == (arm.gap, arm.low, arm.high)
    widths = [high - low for _, low, high in found["gaps"]["new"]]
    assert widths[-1] < widths[0]
    another = History(registry)  # after a restart
    assert another.charts("page", page.report())["intervals"]["settled"] == settled


def test_allocation_and_baseline_are_those_of_the_log(registry):
    page = registry.get("page")
    for seed in range(30):
        play(page, 20, seed)
    found = History(registry).charts("page", page.report())
    shares = found["allocation"]["shares"]
    assert shares["old"][0] == shares["new"][0] == 0.5
    assert shares["new"][-1] == page.report().arms[1].probability == 1.0
    assert len(found["allocation"]["at"]) == len(shares["old"]) == page.glance().plan
    proposals = store_of(page).proposals([1, 600])
    level = found["baseline"]["level"]
    assert (level[0], level[-1]) == tuple(one.forecasts[0] for one in proposals)
    assert len(level) == 160
    json.dumps(found, allow_nan=False)


def test_charts_show_few_arms_and_those_in_play_first():
    many = Experiment.memory(ArmSet.one_hot(30), rewards=(0, 1))
    many.retire(1)
    labels = labels_shown(many.report())
    assert labels == ["0", "2", "3", "4", "5", "6", "7", "8"]


@pytest.mark.slow
def test_a_server_that_is_told_to_end_ends_its_streams_in_good_order(tmp_path):
    process, address = started(tmp_path / "all.db", "--no-auth")
    for _ in range(600):
        try:
            httpx.get(f"{address}/readyz")
            break
        except httpx.TransportError:
            time.sleep(0.05)
    with Client(address) as client:
        client.create(**TWO)
        client.ask("page")
    seen = []

    def watch():
        try:
            seen.extend(events(address))
            seen.append("ended")
        except httpx.HTTPError as error:  # cut off
            seen.append(error)

    thread = Thread(target=watch)
    thread.start()
    while not seen:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGTERM)
    process.wait(timeout=60)
    process.stdout.close()
    thread.join()
    assert seen[-1] == "ended"
