"""Processes that die at any moment lose nothing that was acknowledged, and leave nothing half."""

import os
import signal
import time

import numpy as np
import pytest

from experiment_samples import append, next_block, python, texts, told
from inside.experiment import Noted, SQLStore, encode_entry

# Forks a worker for each line it reads: starting Python anew takes longer than all the work.
WORK = """
import os
from experiment_samples import next_block
from inside.experiment import SQLStore

def work():
    store = SQLStore(sys.argv[1])
    while True:
        with store.exclusive() as writer:
            last, first = writer.last(), 1
            if last:
                [(_, newest)] = writer.entries(last - 1)
                first = int(newest.proposals[-1]) + 1
            seq = writer.append(next_block(last, first)[0])
            if seq % 5 == 0:
                writer.keep(seq, {"after": seq})
        os.write(1, b"%d\\n" % seq)

for line in sys.stdin:
    worker = os.fork()
    if worker == 0:
        work()
    os.write(1, b"worker %d\\n" % worker)
    os.waitpid(worker, 0)
    os.write(1, b"dead\\n")
"""


def killed(process, acknowledged, delay):
    """Let a worker go on until it has acknowledged so many blocks, and a bit longer; return the last seq."""
    process.stdin.write("go\n")
    process.stdin.flush()
    lines, worker = [], None
    while worker is None or len(lines) < acknowledged:
        line = process.stdout.readline()
        if line.startswith("worker"):
            worker = int(line.split()[1])
        else:
            lines.append(int(line))
    time.sleep(delay)
    os.kill(worker, signal.SIGKILL)
    while (line := process.stdout.readline()) != "dead\n":
        lines.append(int(line))
    return lines[-1]


def check_log(path, acknowledged):
    """Check that the log is a whole number of blocks and has all that was acknowledged."""
    store = SQLStore(path)
    found = texts(store)
    wanted, first = [], 1
    while len(wanted) < len(found):
        block, first = next_block(len(wanted), first)
        wanted += [encode_entry(entry) for entry in block]
    assert found == wanted
    assert len(found) >= acknowledged
    outcomes = list(store.table())
    assert [outcome.proposal.number for outcome in outcomes] == list(range(1, first))
    assert all(outcome.rewards == {"signup": np.cos(n)} for n, outcome in enumerate(outcomes, 1))
    kept = store.snapshot()
    assert kept is None or kept == (kept[0], {"after": kept[0]})
    store.close()


@pytest.mark.parametrize("kills", [6, pytest.param(50, marks=pytest.mark.slow)])
def test_what_was_acknowledged_survives_a_kill_at_a_random_moment(tmp_path, kills):
    path, rng = tmp_path / "log.db", np.random.default_rng(kills)
    store = SQLStore(path)
    store.create({})
    store.close()
    with python(WORK, path, stdin=-1) as process:
        for _ in range(kills):
            check_log(path, killed(process, int(rng.integers(1, 30)), rng.uniform(0, 0.02)))
        process.stdin.close()
        assert process.wait() == 0


HOLD = """
from experiment_samples import asked, told
from inside.experiment import SQLStore
import time
with SQLStore(sys.argv[1]).exclusive() as writer:
    writer.append([asked(1, 3), told(1, 3)])
    writer.keep(2, {"half": True})
    print("holds", flush=True)
    time.sleep(600)
"""


def test_a_process_that_dies_in_its_block_leaves_nothing_and_frees_the_store(tmp_path):
    store = SQLStore(tmp_path / "log.db")
    store.create({})
    with python(HOLD, tmp_path / "log.db") as process:
        assert process.stdout.readline() == "holds\n"
        assert texts(store) == []
        process.kill()
    assert (texts(store), store.snapshot(), list(store.table())) == ([], None, [])
    assert append(store, [Noted(0.0, "tick", {})]) == 1


def test_the_log_of_these_tests_would_show_a_lost_entry(tmp_path):
    store = SQLStore(tmp_path / "log.db")
    store.create({})
    block, first = next_block(0, 1)
    append(store, [*block, *next_block(len(block), first)[0][:-1], told(first, at=2.0)])
    store.close()
    with pytest.raises(AssertionError):
        check_log(tmp_path / "log.db", 1)
