"""Servers for tests: one for each module, and a PostgreSQL for tests of several servers."""

import pytest

from real_postgres import server_folder
from service_samples import served


@pytest.fixture(scope="session")
def postgres():
    """Yield the URL of a database on a real PostgreSQL server."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with server_folder() as folder:
        yield f"postgresql+psycopg://postgres:@/postgres?host={folder}"


@pytest.fixture(scope="module")
def http(tmp_path_factory):
    """Yield a client of a server that all tests of a module share."""
    with served(tmp_path_factory.mktemp("service") / "all.db") as client:
        yield client
