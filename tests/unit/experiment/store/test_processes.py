"""Several processes share a file."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from experiment_samples import append, python
from inside.experiment import Noted, SQLStore, address, make_engine
from orthobandit.errors import StorageError

MODE = "PRAGMA journal_mode"
# Workers are forked: starting Python anew for each takes longer than all the work.
FORKED = """
import os
from orthobandit.errors import ExperimentExistsError
from inside.experiment import Noted
from inside.experiment import SQLStore

def every(work, names):
    workers = []
    for name in names:
        workers.append(os.fork())
        if workers[-1] == 0:
            work(name)
            os._exit(0)
    for worker in workers:
        assert os.waitpid(worker, 0)[1] == 0
"""

TICK = (
    FORKED
    + """
def tick(name):
    store = SQLStore(sys.argv[1])
    for count in range(25):
        with store.exclusive() as writer:
            last = writer.last()
            note = Noted(float(last), "tick", {"by": name, "count": count})
            assert writer.append([note, note]) == last + 2

every(tick, "abc")
"""
)

CREATE = (
    FORKED
    + """
def create(name):
    try:
        SQLStore(sys.argv[1]).create({"by": name})
        os.write(1, b"made " + name.encode())
    except ExperimentExistsError:
        pass

every(create, "abcdef")
"""
)

HOLD = """
from inside.experiment import SQLStore
with SQLStore(sys.argv[1]).exclusive():
    print("holds", flush=True)
    sys.stdin.readline()
"""

FORK = """
import os
from inside.experiment import Noted
from inside.experiment import SQLStore
def tick(by):
    with store.exclusive() as writer:
        writer.append([Noted(0.0, "tick", {"by": by})])
store = SQLStore(sys.argv[1])
tick("parent")
child = os.fork()
if child == 0:
    for _ in range(10):
        tick("child")
    os._exit(0)
for _ in range(10):
    tick("parent")
assert os.waitpid(child, 0)[1] == 0
print(len(list(store.entries())))
"""


@pytest.fixture
def path(tmp_path):
    store = SQLStore(tmp_path / "log.db")
    store.create({})
    store.close()
    return tmp_path / "log.db"


@pytest.mark.slow
def test_processes_that_write_at_once_lose_nothing(path):
    with python(TICK, path) as process:
        assert process.wait() == 0
    store = SQLStore(path)
    data = [entry.data for _, entry in store.entries()]
    assert len(data) == 150
    for name in "abc":
        mine = [item["count"] for item in data if item["by"] == name]
        assert mine == [count // 2 for count in range(50)]
    store.close()


@pytest.mark.slow
def test_one_of_many_processes_creates_the_experiment(tmp_path):
    with python(CREATE, tmp_path / "new.db") as process:
        made, _, name = process.stdout.read().partition(" ")
        assert process.wait() == 0
    assert (made, len(name)) == ("made", 1)
    store = SQLStore(tmp_path / "new.db")
    assert store.settings() == {"by": name}
    store.close()


@pytest.mark.slow
def test_a_store_that_another_process_keeps_is_waited_for_and_then_given_up(path):
    store = SQLStore(path, patience=0.05)
    with python(HOLD, path, stdin=-1) as process:
        assert process.stdout.readline() == "holds\n"
        with pytest.raises(StorageError, match="another process keeps it; try again"):
            append(store, [Noted(0.0, "tick", {})])
        assert list(store.entries()) == []
        process.communicate("\n")
    assert append(store, [Noted(0.0, "tick", {})]) == 1
    store.close()


@pytest.mark.slow
def test_a_store_can_be_used_on_both_sides_of_a_fork(path):
    with python(FORK, path) as process:
        assert process.stdout.read() == "21\n"
        assert process.wait() == 0


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path):
    # SQLite itself gives up at once if two change how a new file keeps its log.
    for number in range(10):
        where = address(tmp_path / f"{number}.db")
        with ThreadPoolExecutor(6) as pool:
            engines = list(pool.map(lambda _, where=where: make_engine(where, 20.0), range(6)))
            modes = list(pool.map(lambda engine: engine.connect().exec_driver_sql(MODE).scalar(), engines))
        assert modes == ["wal"] * 6
        for engine in engines:
            engine.dispose()
