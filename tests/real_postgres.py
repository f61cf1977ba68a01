"""A PostgreSQL server of our own, where one can be started."""

import shutil
import tempfile
import warnings
from contextlib import contextmanager, suppress

import pytest


@contextmanager
def real_server():
    """Yield a real server, as pgserver gives it; skip the test where none can be started."""
    pgserver = pytest.importorskip(
        "pgserver", reason="pgserver, which carries a PostgreSQL, is not installed"
    )
    folder = tempfile.mkdtemp(prefix="pg-")  # short: the path of its socket may have 107 characters
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pgserver.get_server(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no PostgreSQL could be started: {error}")
    yield server
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def server_folder():
    """Yield the folder of the socket of a real server."""
    with real_server() as server:
        yield str(server.pgdata)


def url_of(server):
    """Return the URL of a database on a real server."""
    return f"postgresql+psycopg://postgres:@/postgres?host={server.pgdata}"


def kill(server):
    """Kill a server with all its processes, as when the machine loses its power."""
    import psutil  # pgserver brings it

    master = psutil.Process(server.get_pid())
    gone = [master, *master.children(recursive=True)]
    for process in gone:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(gone, timeout=30)


def start(server):
    """Start a server that was killed; it recovers from its log."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server.ensure_postgres_running()
