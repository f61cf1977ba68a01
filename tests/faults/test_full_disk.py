"""A disk without room: 503, nothing that was acknowledged is lost, and on it goes when there is room."""

import resource
import time

import httpx
import pytest

from experiment_samples import outcomes_of
from inside.service import check
from orthobandit import Experiment
from service_samples import TWO, ended, is_problem, ready, started

prlimit = pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="limits of a process are Linux's")
ROOM = 100_000  # bytes that files may still grow by


@prlimit
def test_a_full_disk_is_a_503_that_ends_when_there_is_room(tmp_path):
    where = tmp_path / "all.db"
    process, address = started(where, "--no-auth")
    try:
        ready(address)
        with httpx.Client(base_url=address, timeout=60) as http:
            http.post("/v1/experiments", json=TWO)
            largest = max(path.stat().st_size for path in tmp_path.iterdir())
            _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (largest + ROOM, most))
            told, refused = {}, None
            while refused is None:
                refused = pair(http, told)
            assert is_problem(refused, 503, "unavailable")
            assert refused.headers["retry-after"] == "2"
            assert [pair(http, told).status_code for _ in range(3)] == [503] * 3
            assert http.get("/healthz").status_code == 200
            assert is_unready(http)
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
            before = len(told)
            for _ in range(20):
                assert pair(http, told) is None
            assert len(told) == before + 20
    finally:
        ended(process)
    with Experiment.open(where, name="page") as page:
        found = {one.proposal.number: one.rewards["reward"] for one in outcomes_of(page) if one.rewards}
    assert found == told  # what was refused is not there either
    assert len(told) > 20
    assert check(where) == []


def is_unready(http):
    """Tell whether the server says so; what it tries to write is small, and may fit in a few times."""
    for _ in range(200):
        if http.get("/readyz").status_code == 503:
            return True
        time.sleep(0.1)
    return False


def pair(http, told):
    """Ask and tell; return an answer that is an error, or None."""
    asked = http.post("/v1/experiments/page/ask", json={})
    if asked.status_code != 200:
        return asked
    number = asked.json()["id"]
    answer = http.post("/v1/experiments/page/tell", json={"id": number, "reward": number % 2})
    if answer.status_code != 200:
        return answer
    told[number] = number % 2
    return None
