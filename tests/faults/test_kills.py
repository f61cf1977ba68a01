"""The server is killed, or its PostgreSQL is, under load: what was acknowledged is there, once."""

import signal

import pytest

from fault_load import Load
from real_postgres import kill, real_server, start, url_of
from service_samples import ended, ready, started

FEW = 60  # writes between two kills


def times(short, long):
    return pytest.mark.parametrize("kills", [short, pytest.param(long, marks=pytest.mark.slow)])


@times(3, 50)
def test_acknowledged_rewards_survive_kills_of_the_server(tmp_path, kills):
    where = tmp_path / "all.db"
    process, address = started(where, "--no-auth")
    ready(address)
    load, port = Load(address), address.rpartition(":")[2]
    with load.running():
        for _ in range(kills):
            load.wait_for(FEW)
            assert ended(process, signal.SIGKILL) == -signal.SIGKILL
            process, _ = started(where, "--no-auth", port=port)
            ready(address)
        load.wait_for(FEW)
    ended(process)
    assert load.count >= FEW * (kills + 1)
    load.check(where)


@times(2, 20)
def test_acknowledged_rewards_survive_kills_of_postgresql(kills):
    with real_server() as server:
        where = url_of(server)
        process, address = started(where, "--no-auth")
        ready(address)
        load = Load(address)
        with load.running():
            for _ in range(kills):
                load.wait_for(FEW)
                kill(server)
                start(server)
                load.wait_for(1)
            load.wait_for(FEW)
        assert process.poll() is None  # the same server, all the time
        ended(process)
        load.check(where)
