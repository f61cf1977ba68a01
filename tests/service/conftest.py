"""A PostgreSQL of its own for tests of several servers."""

import pytest

from real_postgres import server_folder


@pytest.fixture(scope="session")
def postgres():
    """Yield the URL of a database on a real PostgreSQL server."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with server_folder() as folder:
        yield f"postgresql+psycopg://postgres:@/postgres?host={folder}"
