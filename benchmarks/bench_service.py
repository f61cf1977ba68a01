"""Speed of the service on loopback: one process, a SQLite file that waits for the disk at every commit.

``make bench NAMES=service`` prints the table; ``python -m benchmarks.bench_service --quick`` takes a minute.
Pairs are an ask and a tell of a new unit each, by `wrk` on 32 connections; then on 10 and 50 times as many,
which ask again at once when they are told to wait (503), so that one sees what the server sheds and how
long others wait. Beside them, in the same run and in the same way: a bare handler of the same framework
that keeps each request by group commits, which is what the machine can do today, and Optuna's ask and tell
on SQLite. Rates are per second of the clock, and beside them per second of the server's processor, which
other work on the machine disturbs less.
"""

import argparse
import http.client
import importlib
import json
import math
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks import has_peer
from benchmarks.bench_experiment import optuna_pairs, rates, report, threaded
from orthobandit.service import Client

HERE = Path(__file__).parent
CONNECTIONS, WORKERS = 32, 2
OVERLOADS = (10, 50)  # times as many connections
PATIENCE = 30  # seconds that wrk waits for an answer: a busy machine is slow, and that is to be seen
BATCH = 5_000  # rewards of one request
KEY = "page"
SERVE = "import sys; from orthobandit.cli import main; sys.exit(main())"


class Server(NamedTuple):
    """A server that runs: where it answers, and its process."""

    address: str
    pid: int

    def processor(self) -> float:
        """Return the seconds of the processor that it has used; NaN where nobody can tell."""
        path = Path(f"/proc/{self.pid}/stat")
        if not path.exists():
            return math.nan
        fields = path.read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def process(*command: str, port: int) -> Iterator[Server]:
    """Run a server until it is no longer needed."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    server = subprocess.Popen(
        [sys.executable, *command], cwd=HERE.parent, env={**os.environ, **single}, stdout=subprocess.DEVNULL
    )
    try:
        wait_for(port)
        yield Server(f"http://127.0.0.1:{port}", server.pid)
    finally:
        server.terminate()
        server.wait(30)


def wait_for(port: int) -> None:
    """Wait until somebody listens."""
    for _ in range(300):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise TimeoutError(f"nobody listens on {port}")


def wait_until_ready(port: int) -> None:
    """Wait until the service says that it is ready: it listens before it has compiled all it needs."""
    for _ in range(600):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        try:
            connection.request("GET", "/readyz")
            if connection.getresponse().status == 200:
                return
        finally:
            connection.close()
        time.sleep(0.1)
    raise TimeoutError(f"the service on {port} does not become ready")


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def serving(where: str) -> Iterator[Server]:
    """Run the service, without tokens: everybody on this machine is an admin."""
    port = free_port()
    # One address sends all requests here, and might meet the limit for one address.
    options = ("--db", where, "--port", str(port), "--no-auth", "--rate", "0")
    with process("-c", SERVE, "serve", *options, port=port) as server:
        wait_until_ready(port)
        yield server


class Pairs(NamedTuple):
    """Pairs a second, of the clock and of the processor; p50 and p99 of a request in ms; requests shed."""

    rate: float
    busy: float
    p50: float
    p99: float
    shed: int

    def __str__(self) -> str:
        return f"p50 {self.p50:.1f} ms, p99 {self.p99:.1f} ms, {self.busy:,.0f} a second of the processor"


def pairs(servers: Sequence[Server], seconds: int, prefix: str, connections: int = CONNECTIONS) -> Pairs:
    """Ask and tell all servers at once."""
    share, workers = connections // len(servers), max(WORKERS // len(servers), 1)
    command = ["wrk", f"-t{workers}", f"-c{share}", f"-d{seconds}s", f"--timeout={PATIENCE}s"]
    command += ["-s", str(HERE / "pairs.lua")]
    before = sum(one.processor() for one in servers)
    runs = [
        subprocess.Popen(
            [*command, one.address, "--", KEY, f"{prefix}{place}-", "none"], stdout=subprocess.PIPE, text=True
        )
        for place, one in enumerate(servers)
    ]
    found = [json.loads(run.communicate()[0].splitlines()[-1]) for run in runs]
    failed = sum(one["wrong"] + one["cut"] + one["late"] for one in found)
    if failed:
        example = next((one["example"] for one in found if one["example"]), "no answer came")
        print(f"  {failed:,} requests failed, and are not among the pairs: {example}", flush=True)
    busy = sum(one["pairs"] for one in found) / (sum(one.processor() for one in servers) - before)
    rate = sum(one["pairs"] / one["seconds"] for one in found)
    p50, p99 = (max(one[name] for one in found) for name in ("p50", "p99"))
    return Pairs(rate, busy, p50, p99, sum(one["shed"] for one in found))


def warmed(servers: Sequence[Server], client: Client) -> None:
    """Ask and tell for a while, and tell what was cut off at the end: nothing settles behind it otherwise."""
    pairs(servers, 2, "warm-")
    last = client.report(KEY)["proposals"]
    ids = range(max(1, last - 10 * CONNECTIONS), last + 1)
    client.tell_many(KEY, list(ids), [float(one % 2) for one in ids])  # as pairs.lua tells them


def posted(server: Server, last: str, bodies: Sequence[bytes], clients: int = 3) -> tuple[float, float]:
    """Post bodies of BATCH items that are ready; return items a second, of the clock and of the processor."""
    host, path = server.address.removeprefix("http://"), f"/v1/experiments/{KEY}/{last}"

    def send(mine: Sequence[bytes]) -> None:
        connection = http.client.HTTPConnection(host, timeout=120)
        for body in mine:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            assert b'"refused":[{' not in text, text[:500]
        connection.close()

    start, before = time.perf_counter(), server.processor()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(send, [bodies[k::clients] for k in range(clients)]))
    items = len(bodies) * BATCH
    return items / (time.perf_counter() - start), items / (server.processor() - before)


def told_in_batches(client: Client, server: Server, rewards: int) -> tuple[float, float]:
    """Return rewards a second that are told in batches, of proposals that were asked for before."""
    values = np.random.default_rng(0).integers(0, 2, BATCH).tolist()
    bodies = []
    for _ in range(rewards // BATCH):
        ids = [one.id for one in client.ask_many(KEY, BATCH)]
        bodies.append(json.dumps({"ids": ids, "rewards": values}).encode())
    return posted(server, "tell-many", bodies)


def at_the_edge(client: Client, server: Server, exposures: int) -> tuple[float, float]:
    """Return exposures a second that are posted in batches with their rewards, each drawn again."""
    plan, rng = client.edge_plan(KEY), np.random.default_rng(1)
    bodies = []
    for batch in range(exposures // BATCH):
        draws = [plan.draw(f"edge-{batch}-{k}") for k in range(BATCH)]
        body = {
            "plan": plan.plan,
            "units": [one.unit for one in draws],
            "arms": [one.arm for one in draws],
            "rewards": rng.integers(0, 2, BATCH).tolist(),
        }
        bodies.append(json.dumps(body).encode())
    return posted(server, "exposures", bodies)


def on_sqlite(folder: str, seconds: int, many: int) -> Pairs:
    """Print what one process does on a SQLite file; return its pairs."""
    with serving(f"{folder}/live.db") as server, Client(server.address, timeout=120) as client:
        client.create(KEY, ["a", "b", "c", "d"], rewards=[0, 1])
        warmed([server], client)
        found = pairs([server], seconds, "pair-")
        batch, batch_busy = told_in_batches(client, server, many)
        edge, edge_busy = at_the_edge(client, server, many)
        overloaded(server, seconds)
    report("SQLite: ask+tell pairs/s", found.rate, 2_000, str(found))
    report("SQLite: p99 of a request in ms", found.p99, 30, least=False)
    note = f"{BATCH:,} a request;"
    report("SQLite: rewards/s told in batches", batch, 50_000, f"{note} {batch_busy:,.0f} of the processor")
    name = "SQLite: exposures/s verified, with a reward each"
    report(name, edge, 50_000, f"{note} {edge_busy:,.0f} of the processor")
    return found


def overloaded(server: Server, seconds: int) -> None:
    """Print what the server does for many more connections than it can serve at once."""
    for times in OVERLOADS:
        found = pairs([server], seconds, f"over-{times}-", times * CONNECTIONS)
        note = f"{found}, {found.shed:,} requests shed with 503"
        print(f"SQLite, {times} times the connections: {found.rate:,.0f} pairs/s  {note}", flush=True)


def yardsticks(folder: str, seconds: int, ours: Pairs) -> None:
    """Print the pairs beside a bare handler and beside Optuna, in the same run."""
    port = free_port()
    with process("-m", "benchmarks.bare_service", f"{folder}/bare.db", str(port), port=port) as server:
        pairs([server], 1, "warm-")
        bare = pairs([server], seconds, "bare-")
    note = f"{bare.rate:,.0f} pairs/s there, {bare}"
    report("SQLite: % of a bare handler with group commits", 100 * ours.rate / bare.rate, 74, note)
    name = "SQLite: % of it by the server's processor"
    report(name, 100 * ours.busy / bare.busy, 74)
    if not has_peer("optuna"):
        return
    theirs, _ = rates(lambda count: threaded(optuna_pairs(Path(folder)), count), 16, repeats=2)
    report("SQLite: times Optuna's ask and tell", ours.rate / theirs, 30, f"{theirs:,.1f} pairs/s there")


def on_postgresql(seconds: int) -> None:
    """Print what two processes do that share one PostgreSQL."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    server_folder = importlib.import_module("real_postgres").server_folder
    with server_folder() as folder:
        where = f"postgresql+psycopg://postgres:@/postgres?host={folder}"
        with serving(where) as one, Client(one.address, timeout=120) as client:
            client.create(KEY, ["a", "b", "c", "d"], rewards=[0, 1])
            with serving(where) as other:
                warmed([one, other], client)
                found = pairs([one, other], seconds, "pair-")
    report("PostgreSQL, two servers: ask+tell pairs/s", found.rate, 1_500, str(found))


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a third of the work")
    parser.add_argument("--only", choices=["sqlite", "postgresql"], help="one database")
    options = parser.parse_args(arguments or [])
    if shutil.which("wrk") is None:
        print("skipped: wrk is not installed (apt install wrk)")
        return
    share = 3 if options.quick else 1
    print("load of the machine before:", " ".join(f"{one:.1f}" for one in os.getloadavg()))
    if options.only != "postgresql":
        with tempfile.TemporaryDirectory() as folder:
            found = on_sqlite(folder, 15 // share, 300_000 // share)
            yardsticks(folder, 9 // share, found)
    if options.only != "sqlite":
        on_postgresql(15 // share)


if __name__ == "__main__":
    main(sys.argv[1:])
