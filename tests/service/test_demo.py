"""Made-up visitors: they drift, come in time, and lead to a winner; Ctrl-C ends server and visitors."""

import os
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

from orthobandit.cli import main
from orthobandit.errors import ParameterError
from orthobandit.service import Client
from orthobandit.service.demo import PAGES, WINDOW_SECONDS, Traffic, Visitors, show
from service_samples import served


class Clock:
    """A clock that moves when somebody waits."""

    now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += max(seconds, 0.01)


def traffic(http, visitors, **options):
    clock, lines = Clock(), []
    client = Client(str(http.base_url), http.headers["Authorization"].removeprefix("Bearer "))
    made = Traffic(client, visitors, say=lines.append, clock=clock, sleep=clock.sleep, **options)
    return client, made, lines


def test_the_baseline_drifts_and_bursts():
    visitors = Visitors(rate=100)
    assert visitors.baseline(15.0) - visitors.baseline(45.0 - 1e-9) > 0.2
    assert visitors.baseline(45.0) - visitors.baseline(45.0 - 1e-9) > 0.14
    counts = [visitors.count(step, 0.25) for step in range(400)]
    assert abs(np.mean(counts) - 25) < 1


def test_what_visitors_do_depends_on_the_page_alone_and_some_are_silent():
    labels = list(PAGES) * 2000
    heard = Visitors(rate=1, seed=3).heard(0, 30.0, list(range(len(labels))), labels)
    assert len(heard.ids) < len(labels)
    assert heard.at.min() >= 30.0
    assert heard.at.max() <= 30.0 + WINDOW_SECONDS
    best = [reward for number, reward in zip(heard.ids, heard.rewards, strict=True) if number % 5 == 4]
    # Of those who do not sign up a tenth is silent: 0.35 / (0.35 + 0.9 · 0.65) are heard to do so.
    assert abs(np.mean(best) - 0.374) < 0.05


def test_an_experiment_is_made_and_everything_is_told(tmp_path):
    with served(tmp_path / "all.db") as http:
        client, made, lines = traffic(http, Visitors(rate=40))
        with client:
            assert made.play(seconds=12.0) is None
            report = client.report("landing-page")
    assert [arm["label"] for arm in report["arms"]] == list(PAGES)
    assert report["proposals"] > 300
    assert 0 < made.told <= report["proposals"]
    assert made.late == 0
    assert lines[0].startswith("began the experiment 'landing-page'")
    assert "baseline 0.3" in lines[1]
    assert ", nobody leads yet, 5 of 5 pages left" in lines[1]
    # Which of the two depends on how many of the first visitors were silent.
    assert lines[-1].startswith(("Go on", "Too early"))


def test_it_ends_with_the_declared_arm(tmp_path, monkeypatch):
    monkeypatch.setitem(PAGES, "free month", 0.6)
    monkeypatch.setattr("inside.service.SILENT_SHARE", 0.0)
    with served(tmp_path / "all.db") as http:
        client, made, lines = traffic(http, Visitors(rate=200), key="mine")
        with client:
            client.create("mine", ["as it is", "free month"], rewards=[0, 1])
            assert made.play() == "free month"
    assert lines[-1].startswith("Show 'free month': it is the best")


def test_a_stopped_experiment_ends_it(tmp_path):
    with served(tmp_path / "all.db") as http:
        client, made, lines = traffic(http, Visitors(rate=10), key="mine")
        with client:
            client.create("mine", ["a", "b"], rewards=[0, 1])
            client.stop("mine")
            assert made.play() is None
    assert lines[-1].startswith("The experiment was stopped by hand")


def shown(port):
    """Start `demo-traffic --serve` and wait until visitors come."""
    script = "import sys; from orthobandit.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", script, "demo-traffic", "--serve", "--port", str(port), "--rate", "20"]
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline() == f"dashboard: http://127.0.0.1:{port}/ (Ctrl-C ends it)\n"
    assert process.stdout.readline().startswith("the server starts")
    line = process.stdout.readline()
    while "not ready yet" in line:
        line = process.stdout.readline()
    assert line.startswith("began the experiment")
    return process


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@pytest.mark.slow
def test_ctrl_c_ends_the_server_and_the_visitors():
    port = free_port()
    process = shown(port)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == "interrupted\n"
    with socket.create_server(("127.0.0.1", port)):  # the server has let go of it
        pass


@pytest.mark.slow
@pytest.mark.parametrize(("end", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_server_is_left_behind(end, code):
    port = free_port()
    process = shown(port)
    process.send_signal(end)  # to the visitors alone
    process.communicate(timeout=60)  # until nobody writes there any more: the server has ended
    assert process.returncode == code
    with socket.create_server(("127.0.0.1", port)):
        pass


def test_nobody_elses_server_gets_visitors():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ParameterError, match=f"port={port} is taken"):
            show(Visitors(rate=1), port=port)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rate", "0"], "--rate 0.0 must be a finite number above 0"),
        (["--url", "http://127.0.0.1:9"], "is the server running?"),
    ],
)
def test_what_is_wrong_is_said(arguments, message, capsys):
    assert main(["demo-traffic", *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_port_that_does_not_exist_is_named():
    with pytest.raises(ParameterError, match="port=99999 must be a whole number of at most 65,535"):
        show(Visitors(10.0, 0), port=99_999)
