"""A PostgreSQL server of our own, where one can be started."""

import shutil
import tempfile
import warnings
from contextlib import contextmanager

import pytest


@contextmanager
def server_folder():
    """Yield the folder of the socket of a real server; skip the test where none can be started."""
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
    yield folder
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)
