"""A child of ``os.fork`` can use an experiment, whatever the parent's threads were doing."""

import pytest

from experiment_samples import python
from orthobandit import Experiment

# A thread of the parent is inside a commit when the process is forked: its transaction is open and all locks
# are held. It ends its commit while the fork waits for it ("soon"), or long after the fork ("late").
FORK = """
import os, signal, threading, time
from orthobandit import ArmSet, Experiment
from orthobandit.experiment import forks
from orthobandit.errors import ForkError
from orthobandit.experiment.commit.group_commit import SharedLedger

where, kind, when = sys.argv[1:]
arms = ArmSet.one_hot(3)
if kind == "memory":
    live = Experiment.memory(arms, rewards=(0, 1))
else:
    live = Experiment.create(where, arms, rewards=(0, 1))
live.tell(live.ask().id, 1.0)
inside, may_end = threading.Event(), threading.Event()
append = SharedLedger._append

def slow(self, turn, writer):
    append(self, turn, writer)
    inside.set()
    may_end.wait(20)

SharedLedger._append = slow
thread = threading.Thread(target=live.ask)
thread.start()
assert inside.wait(20)
SharedLedger._append = append
if when == "soon":
    threading.Timer(0.1, may_end.set).start()
else:
    forks.PATIENCE_SECONDS = 0.05
child = os.fork()
if child == 0:
    signal.alarm(20)
    if kind == "file" and when == "late":
        try:
            live.ask()
        except ForkError as error:
            assert "spawn" in str(error)
        else:
            raise AssertionError("the child wrote beside its parent")
    else:
        for _ in range(3):
            live.tell(live.ask().id, 0.0)
        assert live.replay().is_equal
        if kind == "memory":
            assert live.report().proposals == (5 if when == "soon" else 4)
    live.close()
    live.close()
    sys.exit(0)
may_end.set()
thread.join()
for _ in range(3):
    live.tell(live.ask().id, 1.0)
assert os.waitpid(child, 0)[1] == 0
assert live.replay().is_equal
print(live.report().proposals)
live.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "when", "proposals"),
    [("file", "soon", 8), ("file", "late", 5), ("memory", "soon", 5), ("memory", "late", 5)],
)
def test_a_fork_during_a_commit_hangs_nobody(kind, when, proposals, tmp_path):
    with python(FORK, tmp_path / "live.db", kind, when) as process:
        assert process.stdout.read() == f"{proposals}\n"
        assert process.wait() == 0
    if kind == "file":
        with Experiment.open(tmp_path / "live.db") as live:
            assert live.report().proposals == proposals
            assert live.audit().passed
