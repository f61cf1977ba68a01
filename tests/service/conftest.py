"""A PostgreSQL of its own for tests of several servers."""

import shutil
import tempfile
import warnings

import pytest


@pytest.fixture(scope="session")
def postgres():
    """Yield the URL of a database on a real PostgreSQL server."""
    pgserver = pytest.importorskip(
        "pgserver", reason="pgserver, which carries a PostgreSQL, is not installed"
    )
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    folder = tempfile.mkdtemp(prefix="pg-")  # short: the path of its socket may have 107 characters
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = pgserver.get_server(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        pytest.skip(f"no PostgreSQL could be started: {error}")
    yield f"postgresql+psycopg://postgres:@/postgres?host={folder}"
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)
