"""Webhooks: signed, each piece of news once, tried again, given up, and never to where they should not go."""

import json
import socket
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from threading import Event, Thread

import pytest

from inside.experiment import Options
from inside.service import GUARDRAIL, NO_DATA, RETIRED, SAMPLE_RATIO, Look, Metrics, Registry, find_news
from orthobandit import AnytimeElimination, ArmSet
from orthobandit.errors import ParameterError, StorageError
from orthobandit.service.background.keeper import Keeper, KeeperLock
from orthobandit.service.background.watch import Looks
from orthobandit.service.background.webhook_delivery import (
    RETRY_SECONDS,
    Outbox,
    check_address,
    check_url,
    post,
)
from orthobandit.service.background.webhook_signatures import is_genuine, new_secret, sign
from service_samples import TWO, is_problem, served


@contextmanager
def receiver(*statuses):
    """Yield the address of somebody who listens, and what came in; answers with these statuses, then 200."""
    came, left = [], list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            came.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(left.pop(0) if left else 200)
            self.send_header("Location", "http://127.0.0.1:1/elsewhere")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", came
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Kept:
    """A database with a keeper whose clock is ours."""

    def __init__(self, where, **options):
        self.now, self.registry = time.time(), Registry(where)
        self.outbox, self.metrics = Outbox(self.registry, **options), Metrics()
        self.lock = KeeperLock(self.registry.where)
        self.keeper = self.new_keeper()

    def new_keeper(self):
        looks = Looks(self.registry)
        return Keeper(self.lock, looks, self.outbox, self.metrics, clock=lambda: self.now)

    def round(self, keeper=None):
        """Do a round, and wait until what is due has been sent."""
        keeper = keeper or self.keeper
        is_keeper = keeper.round()
        assert keeper.wait(20)
        return is_keeper

    def experiment(self, key="page", arms=2, **settings):
        return self.registry.create(
            key, ArmSet.one_hot(arms), AnytimeElimination(rewards=(0, 1)), Options(**settings)
        )


@pytest.fixture
def kept(tmp_path):
    made = Kept(tmp_path / "all.db")
    yield made
    made.lock.release()
    made.registry.close()


def declare(experiment):
    """Let one arm win."""
    while experiment.report().declared is None:
        shown = experiment.ask_many(200)
        experiment.tell_many([one.id for one in shown], [float(one.arm == 1) for one in shown])


def lose_beacons(experiment):
    """Let visitors be drawn by clients, and all who saw the first arm be lost; return the experiment."""
    plan = experiment.edge_plan()
    draws = [plan.draw(f"user {number}") for number in range(600)]
    kept = [draw for draw in draws if draw.arm]
    experiment.expose(plan.plan, [draw.unit for draw in kept], [draw.arm for draw in kept], [0.0] * len(kept))
    return experiment


# Computed with openssl: printf '<id>.<time>.<body>' | openssl dgst -sha256 -mac HMAC -macopt hexkey:<key>
VECTORS = [
    (
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    ),
    (
        "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "msg_1",
        1700000000,
        b"{}",
        "v1,LzeNxZHo3O8fwpFJpLh/0B99ugILNFJw+/9lTgx0APs=",
    ),
]


@pytest.mark.parametrize(("secret", "name", "at", "body", "wanted"), VECTORS)
def test_signatures_are_those_of_the_specification(secret, name, at, body, wanted):
    assert sign(secret, name, at, body) == wanted


def test_what_is_not_genuine_is_told():
    secret, now = new_secret(), 1_700_000_000
    given = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,other {sign(secret, 'msg_1', now, b'{}')}",
    }
    assert is_genuine(secret, given, b"{}", now + 100)
    assert not is_genuine(secret, given, b"{ }", now)
    assert not is_genuine(new_secret(), given, b"{}", now)
    assert not is_genuine(secret, given, b"{}", now + 301)
    assert is_genuine(secret, given, b"{}", now - 299)  # clocks differ
    assert not is_genuine(secret, given, b"{}", now - 301)
    assert not is_genuine(secret, given | {"webhook-id": "msg_2"}, b"{}", now)
    assert not is_genuine(secret, {}, b"{}", now)
    with pytest.raises(ParameterError, match="secret must be"):
        sign("whsec_?", "msg_1", now, b"")


def test_a_declared_arm_is_told_once(kept):
    page = kept.experiment()
    with receiver() as (url, came):
        _, secret = kept.outbox.make(url)
        assert kept.round()
        assert came == []
        declare(page)
        for _ in range(3):
            kept.round()
        kept.round(kept.new_keeper())  # as after a restart
    [(headers, body)] = came
    assert is_genuine(secret, headers, body, time.time())
    data = json.loads(body)
    assert data["type"] == "experiment.declared"
    assert data["data"]["experiment"] == "page"
    assert data["data"]["arm"] == "1"
    assert data["data"]["advice"].startswith("Show '1'")
    assert data["data"]["head"] == page.head()
    assert kept.metrics.webhooks == {"sent": 1, "failed": 0, "dead": 0}


def test_a_new_webhook_is_not_told_what_is_old(kept):
    declare(kept.experiment())
    kept.round()
    with receiver() as (url, came):
        kept.outbox.make(url)
        kept.round()
        kept.experiment("other", arms=3).retire(2)
        kept.round()
    [(_, body)] = came
    assert json.loads(body)["type"] == "experiment.arm_retired"
    assert json.loads(body)["data"]["reason"] == "by hand"


def test_only_wanted_kinds_are_told(kept):
    page = kept.experiment(arms=3)
    with receiver() as (url, came):
        kept.outbox.make(url, [NO_DATA])
        page.retire(2)
        kept.round()
        assert came == []
        kept.now += 4000
        kept.round()
        kept.round()
        assert len(came) == 1
        page.ask()
        kept.now += 4000
        kept.round()
        assert len(came) == 2  # another silence
    assert len({headers["webhook-id"] for headers, _ in came}) == 2


def test_what_fails_is_tried_again_with_the_same_name_and_given_up_at_last(kept):
    page = kept.experiment(arms=3)
    with receiver(*[500] * 20) as (url, came):
        made, _ = kept.outbox.make(url, [RETIRED])
        page.retire(2)
        kept.round()
        for delay in RETRY_SECONDS:
            kept.round()
            before = len(came)
            kept.now += delay - 1
            kept.round()
            assert len(came) == before
            kept.now += 2
            kept.round()
            assert len(came) == before + 1
        kept.now += 1e7
        kept.round()
    tries = [headers["webhook-id"] for headers, _ in came]
    assert len(tries) == len(RETRY_SECONDS) + 1
    assert len(set(tries)) == 1
    states = {one.kind: (one.state, one.tries) for one in kept.outbox.deliveries(made.id, 10)}
    assert states[RETIRED] == ("dead", len(RETRY_SECONDS) + 1)
    assert kept.metrics.webhooks["dead"] == 1


def test_a_server_that_dies_before_it_has_noted_what_it_sent_sends_again(kept, monkeypatch):
    page = kept.experiment(arms=3)
    with receiver() as (url, came):
        kept.outbox.make(url)
        page.retire(2)

        def dies(*_):
            raise StorageError("the database is away")

        with monkeypatch.context() as broken:
            broken.setattr(kept.outbox, "settle", dies)
            kept.round()
        kept.round(kept.new_keeper())
        kept.round(kept.new_keeper())
    assert len(came) == 2
    assert came[0][0]["webhook-id"] == came[1][0]["webhook-id"]
    assert came[0][1] == came[1][1]


def test_one_who_is_gone_is_told_nothing_more(kept):
    page = kept.experiment(arms=4)
    with receiver(410) as (url, came):
        kept.outbox.make(url)
        page.retire(2)
        kept.round()
        page.retire(3)
        kept.round()
    assert len(came) == 1
    assert [one.is_off for one in kept.outbox.all()] == [True]


def test_redirects_are_not_followed(kept):
    page = kept.experiment(arms=3)
    with receiver(302) as (url, came):
        made, _ = kept.outbox.make(url)
        page.retire(2)
        kept.round()
    assert len(came) == 1
    [delivery] = kept.outbox.deliveries(made.id, 10)
    assert (delivery.state, delivery.answer) == ("waiting", "302 Found")


def test_alarms_and_guardrails_have_their_kinds(kept):
    report = lose_beacons(kept.experiment(arms=3)).report()
    odd = replace(report, retirements=(("1", "by the guardrail on 'refunds'"), ("2", "by hand")))
    found = {one.kind: one for one in find_news("page", Look(9, kept.now, odd), kept.now)}
    assert found.keys() == {SAMPLE_RATIO, GUARDRAIL, RETIRED}
    message = json.loads(found[SAMPLE_RATIO].body)["data"]
    assert message["warning"].startswith("'0' was drawn ")
    assert message["alarms"] == ["sample-ratio"]
    assert f"ALARM: {message['warning']}" in report.warnings
    again = {one.kind: one.id for one in find_news("page", Look(99, kept.now + 1, odd), kept.now + 1)}
    assert again == {kind: one.id for kind, one in found.items()}


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("http://example.org/", "must begin with https://"),
        ("ftp://example.org/", "must be like https://host/path"),
        ("https:///path", "must be like"),
        ("https://user:secret@example.org/", "no user, password or fragment"),
        ("https://example.org/#there", "no user, password or fragment"),
        ("https://example.org:99999/", "cannot be read"),
    ],
)
def test_addresses_that_are_refused(url, message):
    with pytest.raises(ParameterError, match=message) as caught:
        check_url(url, anywhere=False)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "10.0.0.5",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "fd00::1",
        "fe80::1",
        "fec0::1",
        "ff0e::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "::8.8.8.8",
        "64:ff9b::10.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::8.8.8.8",
        "2002:a00:1::1",
        "2002:7f00:1::1",
        "2001:0:4136:e378:8000:63bf:f5ff:fffe",
    ],
)
def test_private_networks_are_not_called(address, monkeypatch):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = [(family, socket.SOCK_STREAM, 6, "", (address, 443))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("it was called"))
    answer = post("https://innocent.example/", {}, b"{}")
    assert answer.status is None
    assert "is not a public address; the server allows it with --webhooks-anywhere" in answer.words


TUNNELLED = pytest.param(
    "2002:808:808::1",
    marks=pytest.mark.skipif(
        not ip_address("2002:808:808::1").is_global, reason="newer Pythons call no 6to4 address public"
    ),
)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "64:ff9b::8.8.8.8", TUNNELLED])
def test_public_addresses_are_called(address):
    check_address("example.org", address, is_secure=True)
    with pytest.raises(ParameterError, match="is not a public address"):
        check_address("example.org", address, is_secure=False)


@contextmanager
def dribbler():
    """Yield the address of somebody who answers one byte at a time, and never ends."""
    is_over = Event()

    def answer(one):
        with one, suppress(OSError):
            one.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not is_over.wait(0.05):
                one.sendall(b"a")

    def accept(listener):
        with suppress(OSError):
            while True:
                Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=accept, args=(listener,), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/hook"
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)


def test_a_delivery_has_one_deadline_for_all_of_it(monkeypatch):
    monkeypatch.setattr("inside.service.DELIVERY_SECONDS", 0.3)
    with dribbler() as url:
        answer = post(url, {}, b"{}")
    assert answer.status is None
    assert "longer than 0.3 s" in answer.words or "timed out" in answer.words


def test_a_name_that_is_never_found_has_the_same_deadline(monkeypatch):
    is_over = Event()
    monkeypatch.setattr("inside.service.DELIVERY_SECONDS", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: is_over.wait(20))
    assert "could not be looked up within 0.1 s" in post("https://innocent.example/", {}, b"{}").words
    is_over.set()


def test_a_receiver_that_dribbles_holds_nobody(kept):
    """Neither the keeper, which goes on with its rounds, nor other receivers, nor the end of the server."""
    page = kept.experiment(arms=4)
    with dribbler() as slow, receiver() as (url, came):
        kept.outbox.make(slow)
        kept.outbox.make(url)
        page.retire(2)
        kept.keeper.round()
        until_sent(came, 1)
        page.retire(3)
        kept.keeper.round()
        until_sent(came, 2)
        assert not kept.keeper.wait(0)  # the first message is still on its way to the slow one
        begin = time.monotonic()
        kept.keeper.stop()
        assert time.monotonic() < begin + 10


def until_sent(came, count):
    until = time.monotonic() + 5
    while len(came) < count:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_name_that_points_here_is_not_called_over_http(monkeypatch):
    monkeypatch.setattr(socket, "create_connection", lambda *_, **__: pytest.fail("it was called"))
    assert "must begin with https://" in post("http://innocent.example/", {}, b"{}").words


def test_nobody_there_is_a_failure_and_no_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    answer = post(f"http://127.0.0.1:{port}/", {}, b"{}")
    assert answer.status is None
    assert answer.words.startswith("no connection")


def test_admins_make_test_and_remove_webhooks(tmp_path):
    with served(tmp_path / "all.db") as http, receiver(200, 500) as (url, came):
        made = http.post("/v1/webhooks", json={"url": url, "kinds": ["experiment.declared"]})
        assert made.status_code == 201
        secret, path = made.json()["secret"], f"/v1/webhooks/{made.json()['id']}"
        [listed] = http.get("/v1/webhooks").json()["webhooks"]
        assert (listed["url"], listed["kinds"], "secret" in listed) == (url, ["experiment.declared"], False)
        assert http.post(f"{path}/test", json={}).json() == {"status": 200, "answer": "200 OK"}
        assert http.post(f"{path}/test", json={}).json()["status"] == 500
        assert all(is_genuine(secret, headers, body, time.time()) for headers, body in came)
        assert json.loads(came[0][1])["type"] == "webhook.test"
        assert http.get(f"{path}/deliveries").json() == {"deliveries": []}
        assert http.delete(path).status_code == 204
        for answer in (http.delete(path), http.post(f"{path}/test", json={}), http.get(f"{path}/deliveries")):
            assert is_problem(answer, 404, "not-found")
        assert is_problem(http.post("/v1/webhooks", json={"url": "http://example.org"}), 422, "invalid")
        wrong = http.post("/v1/webhooks", json={"url": url, "kinds": ["experiment.declare"]})
        assert is_problem(wrong, 422, "invalid")
        assert "experiment.declared" in wrong.json()["detail"]


def test_a_server_sends_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr("inside.service.ROUND_SECONDS", 0.05)
    with receiver() as (url, came), served(tmp_path / "all.db") as http:
        http.post("/v1/experiments", json=TWO | {"arms": ["a", "b", "c"]})
        http.post("/v1/webhooks", json={"url": url})
        http.post("/v1/experiments/page/arms/c/retire", json={})
        for _ in range(200):
            if came:
                break
            time.sleep(0.05)
    assert json.loads(came[0][1])["data"]["arm"] == "c"


def test_two_servers_on_postgresql_send_once(postgres):
    kept, other = Kept(postgres), Kept(postgres)
    try:
        with receiver(500) as (url, came):
            made, _ = kept.outbox.make(url, ["experiment.arm_retired"])
            other.experiment("hooked", arms=3).retire(1)
            assert [kept.round(), other.round()] == [True, False]
            kept.lock.release()
            other.now += RETRY_SECONDS[0] + 1
            assert other.round()
            other.round()
            kept.outbox.remove(made.id)
        mine = [headers["webhook-id"] for headers, body in came if b'"hooked"' in body]
        assert len(mine) == 2  # refused once, and taken over by the other server
        assert len(set(mine)) == 1
    finally:
        for one in (kept, other):
            one.lock.release()
            one.registry.close()


def test_delays_grow():
    assert list(RETRY_SECONDS) == sorted(RETRY_SECONDS)
