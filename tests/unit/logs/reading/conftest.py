"""A real PostgreSQL and a real Spark, each started once, where they can be."""

import os
import shutil
import warnings

import pytest

from real_postgres import server_folder


@pytest.fixture(scope="session")
def postgres():
    """Yield the URL of a PostgreSQL server of our own."""
    with server_folder() as folder:
        yield f"postgresql://postgres:@/postgres?host={folder}"


@pytest.fixture(scope="session")
def spark():
    """Yield a Spark session on this machine, as small as it can be."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed")
    if shutil.which("java") is None and not os.environ.get("JAVA_HOME"):
        pytest.skip("Spark needs Java, which is not installed")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "ERROR",
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = sql.SparkSession.builder.master("local[1]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
    yield session
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session.stop()
