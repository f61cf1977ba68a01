"""Speed of the service on loopback: one process, a SQLite file that waits for the disk at every commit.

``make bench NAMES=service`` prints the table; ``python -m benchmarks.bench_service --quick`` takes a minute.
Pairs are an ask and a tell of a new unit each, by `wrk` on 32 connections. Beside them, in the same
run and in the same way: a bare handler of the same framework that keeps each request by group commits, which
is what the machine can do today, and Optuna's ask and tell on SQLite.
"""

import argparse
import http.client
import importlib
import json
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

import numpy as np

from benchmarks.bench_experiment import optuna_pairs, rates, report, threaded
from orthobandit.service import Client

HERE = Path(__file__).parent
CONNECTIONS, WORKERS = 32, 2
BATCH = 5_000  # rewards of one request
KEY = "page"
SERVE = "import sys; from orthobandit.cli import main; sys.exit(main())"


@contextmanager
def process(*command: str, port: int) -> Iterator[str]:
    """Run a server until it is no longer needed; yields its address."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    server = subprocess.Popen(
        [sys.executable, *command], cwd=HERE.parent, env={**os.environ, **single}, stdout=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(port)
        yield address
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


def free_port() -> int:
    """Return a port that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def serving(where: str) -> Iterator[str]:
    """Run the service, without tokens: everybody on this machine is an admin."""
    port = free_port()
    with process("-c", SERVE, "serve", "--db", where, "--port", str(port), "--no-auth", port=port) as address:
        yield address


def pairs(addresses: Sequence[str], seconds: int, prefix: str) -> tuple[float, float, float]:
    """Return pairs a second of all servers together, and the worst p50 and p99 of a request in ms."""
    share = CONNECTIONS // len(addresses)
    workers = max(WORKERS // len(addresses), 1)
    command = ["wrk", f"-t{workers}", f"-c{share}", f"-d{seconds}s"]
    runs = [
        subprocess.Popen(
            [*command, "-s", str(HERE / "pairs.lua"), address, "--", KEY, f"{prefix}{place}-", "none"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for place, address in enumerate(addresses)
    ]
    found = [json.loads(run.communicate()[0].splitlines()[-1]) for run in runs]
    assert not any(one["failed"] for one in found), found
    rate = sum(one["pairs"] / one["seconds"] for one in found)
    return rate, max(one["p50"] for one in found), max(one["p99"] for one in found)


def posted(address: str, path: str, bodies: Sequence[bytes], clients: int = 3) -> float:
    """Return how long it takes to post bodies that are ready, by a few clients."""
    host = address.removeprefix("http://")

    def send(mine: Sequence[bytes]) -> None:
        connection = http.client.HTTPConnection(host, timeout=120)
        for body in mine:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text
            assert b'"refused":[{' not in text, text[:500]
        connection.close()

    start = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(send, [bodies[k::clients] for k in range(clients)]))
    return time.perf_counter() - start


def told_in_batches(client: Client, address: str, rewards: int) -> float:
    """Return rewards a second that are told in batches, of proposals that were asked for before."""
    values = np.random.default_rng(0).integers(0, 2, BATCH).tolist()
    bodies = []
    for _ in range(rewards // BATCH):
        ids = [one.id for one in client.ask_many(KEY, BATCH)]
        bodies.append(json.dumps({"ids": ids, "rewards": values}).encode())
    return len(bodies) * BATCH / posted(address, f"/v1/experiments/{KEY}/tell-many", bodies)


def at_the_edge(client: Client, address: str, exposures: int) -> float:
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
    return len(bodies) * BATCH / posted(address, f"/v1/experiments/{KEY}/exposures", bodies)


def on_sqlite(folder: str, seconds: int, many: int) -> float:
    """Print what one process does on a SQLite file; return its pairs a second."""
    with serving(f"{folder}/live.db") as address, Client(address, timeout=120) as client:
        client.create(KEY, ["a", "b", "c", "d"], rewards=[0, 1])
        pairs([address], 2, "warm-")
        rate, p50, p99 = pairs([address], seconds, "pair-")
        batch = told_in_batches(client, address, many)
        edge = at_the_edge(client, address, many)
    report("SQLite: ask+tell pairs/s", rate, 2_000, f"p50 {p50:.1f} ms a request")
    report("SQLite: p99 of a request in ms", p99, 30, least=False)
    report("SQLite: rewards/s told in batches", batch, 50_000, f"{BATCH:,} a request")
    report("SQLite: exposures/s verified, with a reward each", edge, 50_000, f"{BATCH:,} a request")
    return rate


def yardsticks(folder: str, seconds: int, rate: float) -> None:
    """Print the pairs beside a bare handler and beside Optuna, in the same run."""
    port = free_port()
    command = ("-m", "benchmarks.bare_service", f"{folder}/bare.db", str(port))
    with process(*command, port=port) as address:
        bare, p50, p99 = pairs([address], seconds, "bare-")
    note = f"{bare:,.0f} pairs/s there, p50 {p50:.1f} ms, p99 {p99:.1f} ms"
    report("SQLite: % of a bare handler with group commits", 100 * rate / bare, 74, note)
    theirs, _ = rates(lambda count: threaded(optuna_pairs(Path(folder)), count), 16, repeats=2)
    report("SQLite: times Optuna's ask and tell", rate / theirs, 30, f"{theirs:,.1f} pairs/s there")


def on_postgresql(seconds: int) -> None:
    """Print what two processes do that share one PostgreSQL."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    server_folder = importlib.import_module("real_postgres").server_folder
    with server_folder() as folder:
        where = f"postgresql+psycopg://postgres:@/postgres?host={folder}"
        with serving(where) as one, Client(one, timeout=120) as client:
            client.create(KEY, ["a", "b", "c", "d"], rewards=[0, 1])
            with serving(where) as other:
                pairs([one, other], 2, "warm-")
                rate, p50, p99 = pairs([one, other], seconds, "pair-")
    report("PostgreSQL, two servers: ask+tell pairs/s", rate, 1_500, f"p50 {p50:.1f} ms, p99 {p99:.1f} ms")


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
            rate = on_sqlite(folder, 15 // share, 300_000 // share)
            yardsticks(folder, 9 // share, rate)
    if options.only != "sqlite":
        on_postgresql(15 // share)


if __name__ == "__main__":
    main(sys.argv[1:])
