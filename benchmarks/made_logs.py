"""Logs of any size for benchmarks, written by DuckDB: the same rows however many threads write them."""

import shutil
from pathlib import Path

DAYS = 90
SPLIT = {"control": 0.4, "red": 0.2, "green": 0.2, "blue": 0.2}
EFFECT = 0.02  # of the last arm
FILES = 8
BYTES = 25  # a row on disk, at most
SPARE = 5e9  # bytes to leave free


def uniform(place: int) -> str:
    """Return SQL for a number in [0, 1) that depends on the row's number i and on a place from 0 to 15."""
    # Not hash(i, place): hashes of several arguments depend on each other, and arms would not be drawn with
    # the probabilities beside them.
    return f"(hash(i * 16 + {place}) / 18446744073709551616.0)"


def when(rows: int) -> str:
    """Return SQL for the time of row i: all rows are spread evenly over the days from 1 January 2025."""
    span = DAYS * 86_400 * 1_000_000
    return f"make_timestamp((1735689600000000 + i * {span}::HUGEINT // {rows})::BIGINT)"


def fixed_split(rows: int) -> str:
    """Return SQL for rows `{first}` to `{last}` of a log of four arms: a season a day, and a covariate."""
    return f"""
        SELECT
            time, arm, covariate,
            10 + 3 * sin(2 * pi() * date_part('epoch', time) / 86400) + covariate + 2 * {uniform(2)}
                + CASE arm WHEN 'blue' THEN {EFFECT} ELSE 0 END AS reward
        FROM (
            SELECT
                i, {when(rows)} AS time, 2 * {uniform(1)} AS covariate,
                (['control', 'red', 'green', 'blue'])[1 + (u > 0.4)::INT + (u > 0.6)::INT + (u > 0.8)::INT]
                    AS arm
            FROM (SELECT i, {uniform(0)} AS u FROM range({{first}}, {{last}}) AS numbers (i))
        )"""  # noqa: S608 - all of it is ours


def own_split(rows: int) -> str:
    """Return SQL for rows `{first}` to `{last}` of a log of three arms whose probabilities are each row's."""
    return f"""
        SELECT
            time, CASE WHEN u < p_a THEN 'a' WHEN u < p_a + p_b THEN 'b' ELSE 'c' END AS arm,
            10 + 3 * sin(2 * pi() * date_part('epoch', time) / 86400) + 2 * {uniform(4)} AS reward,
            p_a, p_b, 1 - p_a - p_b AS p_c,
            (hash(i * 16 + 5) % 2)::DOUBLE AS mobile, (hash(i * 16 + 6) % 24)::DOUBLE AS hour
        FROM (
            SELECT i, u, time, a / (a + b + c) AS p_a, b / (a + b + c) AS p_b
            FROM (
                SELECT
                    i, {uniform(0)} AS u, {when(rows)} AS time,
                    0.2 + {uniform(1)} AS a, 0.2 + {uniform(2)} AS b, 0.2 + {uniform(3)} AS c
                FROM range({{first}}, {{last}}) AS numbers (i)
            )
        )"""  # noqa: S608 - all of it is ours


def write(path: Path, sql: str, first: int, last: int) -> None:
    """Write some rows to a file, CSV or Parquet by its name."""
    import duckdb

    kind = "csv, header" if path.suffix == ".csv" else "parquet"
    with duckdb.connect(config={"threads": 2}) as connection:
        connection.execute("SET enable_progress_bar = false")
        query = sql.format(first=first, last=last)
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT {kind})")


def write_folder(folder: Path, rows: int) -> float:
    """Write a log of four arms as several Parquet files; return the bytes that it takes."""
    free = shutil.disk_usage(folder).free
    if free < rows * BYTES + SPARE:
        raise SystemExit(
            f"{rows:,} rows take about {rows * BYTES / 1e9:,.0f} GB, and {folder} has {free / 1e9:,.0f} GB"
            " free; name a roomier folder in TMPDIR, or ask for fewer --rows"
        )
    edges = [rows * place // FILES for place in range(FILES + 1)]
    for place in range(FILES):
        write(folder / f"{place}.parquet", fixed_split(rows), edges[place], edges[place + 1])
    return float(sum(file.stat().st_size for file in folder.iterdir()))
