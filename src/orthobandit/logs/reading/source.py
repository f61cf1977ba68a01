"""Open a log wherever it lives, and query it through Ibis.

Files and frames are read by an embedded DuckDB; tables stay in their own engine. :func:`open_source` returns
an :class:`Opened`, which the rest of this package queries.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from inspect import iscoroutinefunction
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, TypeGuard

import numpy as np

from orthobandit._foundation.checks import nearest
from orthobandit._foundation.extras import optional_package
from orthobandit._foundation.release import READER_OF_OLDER
from orthobandit._foundation.types import Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import (
    Argument,
    FileFormatError,
    InputError,
    MissingExtraError,
    OrthobanditError,
    ParameterError,
    SourceError,
)
from orthobandit.estimate import Bounded, Confidence
from orthobandit.logs.question import Question
from orthobandit.logs.reading.csv_and_parquet import (
    check_files,
    find_files,
    read_files,
    read_first_row,
    read_headers,
)

REMOTE_FILES = ("http", "https", "ftp", "s3", "gs", "gcs", "az", "abfs", "file")
SAMPLE_ROWS = 10_000  # rows from which kinds of values and offsets are taken
MEMORY = "1500MB"  # beyond this DuckDB writes to a folder of its own
# `missing` of a question, by what silence means in a live experiment.
MISSING_OF_SILENCE = {"zero": "zero", "missing": "drop"}


@contextmanager
def engine(name: str, remedy: str = "") -> Iterator[None]:
    """Turn errors of an engine into :class:`SourceError`, and hide its deprecation warnings.

    Every engine has exceptions of its own, which cannot be listed: all of them mean that the log could not
    be read.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            yield
        except OrthobanditError:
            raise  # ours already name the argument and the remedy
        except Exception as error:
            raise SourceError(f"{name} cannot be read: {_words(error)}{remedy}") from None


def _words(error: Exception) -> str:
    """Return the first lines of what an engine says, without positions in SQL that nobody wrote."""
    text = str(error).strip() or type(error).__name__
    if "Compilation rule for" in text:
        return f"its engine lacks what is needed ({text}); copy the table to a Parquet file and analyse that"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = [line for line in lines if not line.startswith(("LINE ", "^", "JVM stacktrace", "at org."))]
    shown = "; ".join(kept[:3])
    return shown if len(shown) <= 400 else shown[:400] + "…"


def ibis() -> Any:
    """Return the package Ibis."""
    return optional_package("ibis", "logs", "Analysing a log")


@dataclass
class Opened:
    """A log that can be queried; close it, or use it as a context.

    Attributes
    ----------
    table : ibis.Table
    name : str
        For messages.
    is_ordered : bool
        Whether rows have numbers that a user can look up: those of files and frames.
    fields : dict
        Fields of a Question that the source itself knows, e.g. which columns an export has.
    notes : tuple of str
        What a reader should know of how it was opened.
    headers : tuple of tuple of str
        The fields of the first line of each text file.
    first_row : dict of str to str
        The fields of the first row of the first text file, as they are written.
    """

    table: Any
    name: str
    is_ordered: bool = False
    fields: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    headers: tuple[tuple[str, ...], ...] = ()
    first_row: dict[str, str] = field(default_factory=dict)
    closers: list[Callable[[], object]] = field(default_factory=list, repr=False)

    def fetch(self, expression: Any) -> Any:
        """Return the rows of an Ibis table expression as a pyarrow table."""
        with engine(self.name):
            return expression.to_pyarrow()

    def batches(self, expression: Any, rows: int) -> Iterator[Any]:
        """Yield the rows of an Ibis table expression of DuckDB as pyarrow batches of about so many rows."""
        package = ibis()
        with engine(self.name):
            connection = expression.get_backend().con
            found = connection.sql(str(package.to_sql(expression, dialect="duckdb")))
            # Before its release 1.4, DuckDB called it so.
            reader = getattr(found, "to_arrow_reader", None) or found.fetch_arrow_reader
            # What Ibis offers for it asks for a method that DuckDB 2 has given up.
            yield from reader(rows)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """Names of the columns and the Ibis types they have."""
        with engine(self.name):
            return dict(self.table.schema().items())

    @cached_property
    def sample(self) -> Any:
        """The first rows of all columns of plain types, as a pyarrow table."""
        plain = [
            name
            for name, kind in self.schema.items()
            if kind.is_numeric() or kind.is_string() or kind.is_boolean() or kind.is_temporal()
        ]
        return self.fetch(self.table.select(plain).limit(SAMPLE_ROWS))

    def close(self) -> None:
        """Close the engine, and remove its temporary files."""
        # Last in, first out: a connection goes before the folder that it writes to.
        while self.closers:
            self.closers.pop()()

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Close the log if the block fails; use it between opening a source and returning it."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> "Opened":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class Coded:
    """A column of keys as numbers: `texts[codes]`, in the order of the values; −1 for NULL."""

    codes: Whole
    texts: tuple[str, ...]


def encode_keys(column: Any) -> Coded:
    """Return a pyarrow column as numbers of its distinct values."""
    encoded = column.combine_chunks().dictionary_encode()
    values = encoded.dictionary.to_pylist()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    # By type first: numbers and text cannot be compared, and a column may hold both.
    order = sorted(range(len(values)), key=lambda place: (str(type(values[place])), values[place]))
    rank = np.empty(len(values) + 1, dtype=np.int64)
    rank[np.asarray(order, dtype=np.int64)] = np.arange(len(values))
    # Codes of NULL are −1, and index the last place.
    rank[-1] = -1
    return Coded(rank[codes], tuple(text_of(values[place]) for place in order))


def text_of(value: Any) -> str:
    """Return a value of a key as a label: 1.0 is "1", true is "true"."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def first_row(opened: Opened, condition: Any) -> str:
    """Return ", first in row 7" for a condition on the table, where rows have numbers."""
    if not opened.is_ordered:
        return ""
    table = opened.table.mutate(orthobandit_bad=condition, orthobandit_row=ibis().row_number())
    bad = table.filter(table.orthobandit_bad)
    row = opened.fetch(bad.aggregate(row=bad.orthobandit_row.min()))["row"][0].as_py()
    return "" if row is None else f", first in row {row + 1}"


def how_many(question: Question, count: int) -> str:
    """Return "1,200 rows", or units where these are counted."""
    return f"{count:,} {'rows' if question.unit is None else 'units'}"


class ExportedMetric(Protocol):
    """A metric of a live experiment."""

    @property
    def confidence(self) -> Confidence:
        """The mode of its intervals."""


class ExportedSettings(Protocol):
    """The settings of a live experiment that an analysis uses."""

    @property
    def arms(self) -> ArmSet: ...  # noqa: D102
    @property
    def policy(self) -> object: ...  # noqa: D102
    @property
    def reference(self) -> int: ...  # noqa: D102
    @property
    def silence(self) -> str: ...  # noqa: D102
    @property
    def names(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def metrics(self) -> Sequence[ExportedMetric]: ...  # noqa: D102


class LiveExperiment(Protocol):
    """A live experiment as a log: its draws in a file, and its settings.

    :class:`~orthobandit.Experiment` is one. It is recognised by these two names, so that logs can be analysed
    without the code of live experiments.
    """

    @property
    def settings(self) -> ExportedSettings:
        """Arms, metrics and what silence means."""

    def export(self, path: str | Path) -> None:
        """Write every proposal with its probabilities and rewards to a Parquet file."""


def open_source(source: Any, table: str | None = None) -> Opened:
    """Open a log.

    Parameters
    ----------
    source : object
        Path of a CSV, TSV (also ``.gz``) or Parquet file, a folder of these or a pattern such as
        ``"logs/*.parquet"``; a frame of pandas, polars, pyarrow or another that narwhals knows; a Spark
        frame; an Ibis table, which is asked in its own engine; a URL such as ``"postgres://…"`` or
        ``"duckdb://file.db"``, with `table`; or an :class:`~orthobandit.Experiment`.
    table : str, optional
        Name of the table of a database, also ``"schema.table"``.

    Examples
    --------
    >>> import pyarrow
    >>> with open_source(pyarrow.table({"arm": ["a", "b"], "reward": [0.0, 1.0]})) as opened:
    ...     list(opened.schema)
    ['arm', 'reward']
    """
    if isinstance(source, str) and "://" in source:
        return _from_url(source, table)
    if table is not None:
        raise ParameterError(
            Argument("table", table), f" is for databases; {_kind(source)} has only one table"
        )
    if isinstance(source, str | Path):
        return _from_files(str(source))
    if _is_live(source):
        return _from_experiment(source)
    if isinstance(source, Opened):
        return source
    module = type(source).__module__
    if module.startswith("ibis."):
        return _from_ibis(source)
    if module.startswith("pyspark."):
        return _from_spark(source)
    return _from_frame(source)


def _kind(source: Any) -> str:
    return str(source) if isinstance(source, str | Path) else f"a {type(source).__name__}"


def _duckdb() -> tuple[Any, list[Callable[[], object]]]:
    """Return a DuckDB in memory that may write to a temporary folder, and what closes it."""
    package = ibis()
    optional_package("duckdb", "logs", "Reading files and frames")
    folder = tempfile.TemporaryDirectory(prefix="orthobandit-")
    with engine("DuckDB"):
        backend = package.duckdb.connect(memory_limit=MEMORY, temp_directory=folder.name)
        backend.con.execute("SET enable_progress_bar = false")  # it would be among what we print
    return backend, [folder.cleanup, backend.disconnect]


def _from_files(path: str) -> Opened:
    """Open a file, a folder or a pattern of files."""
    files = find_files(path)
    is_text = check_files(files)
    backend, closers = _duckdb()
    opened = Opened(None, path, is_ordered=True, closers=closers)
    if is_text:
        opened.headers = read_headers(files)
        opened.first_row = read_first_row(files[0])
    with opened.kept(), engine(path, "; is it what its name says, and are all its rows of one kind?"):
        opened.table = _in_microseconds(read_files(backend, files, is_text=is_text))
    return opened


def _from_frame(source: Any) -> Opened:
    """Open a data frame of any library that narwhals knows."""
    narwhals = optional_package("narwhals", "logs", "Analysing a frame")
    name = f"the {type(source).__module__.partition('.')[0]} frame"
    try:
        frame = narwhals.from_native(source)
    except narwhals.exceptions.DuplicateError as error:
        names = [one for one in dict.fromkeys(source.columns) if list(source.columns).count(one) > 1]
        shown = ", ".join(map(repr, names[:5]))
        raise InputError(
            f"{name} has several columns of the same name: {shown}; rename or drop them"
        ) from error
    except TypeError:
        raise InputError(
            f"a source of type {type(source).__name__!r} cannot be read; give a path, a frame (pandas,"
            " polars, pyarrow), an Ibis table, a URL of a database or an Experiment"
        ) from None
    with engine(name, "; does a column hold several kinds of values?"):
        if isinstance(frame, narwhals.LazyFrame):
            frame = frame.collect(backend="pyarrow")
        rows = frame.to_arrow()
    backend, closers = _duckdb()
    opened = Opened(None, name, is_ordered=True, closers=closers)
    with opened.kept(), engine(name):
        backend.con.register("log", rows)
        opened.table = _in_microseconds(backend.table("log"))
    return opened


def _in_microseconds(table: Any) -> Any:
    """Return a DuckDB table whose nanosecond timestamps with a time zone are in microseconds.

    pandas makes such columns, and DuckDB reads them as a type of its own that Ibis does not know.
    """
    found = [name for name, kind in table.schema().items() if "TIMESTAMPTZ_NS" in str(kind)]
    return table.mutate({name: table[name].cast("timestamp('UTC')") for name in found}) if found else table


def _from_ibis(source: Any) -> Opened:
    package = ibis()
    if not isinstance(source, package.expr.types.Table):
        raise InputError(f"source is an Ibis {type(source).__name__}; give a table")
    name = getattr(source.op(), "name", None)
    return Opened(source, f"the table {name!r}" if name else "the Ibis table")


def _from_spark(source: Any) -> Opened:
    """Open a Spark frame, and restore the time zone of its session at the end."""
    package = ibis()
    session = source.sparkSession
    zone = "spark.sql.session.timeZone"
    opened = Opened(None, "the Spark frame")
    with opened.kept(), engine(opened.name):
        # The session is the caller's: it is left as it was found.
        before = session.conf.get(zone)
        opened.closers.append(lambda: session.conf.set(zone, before))  # which Ibis makes UTC
        backend = package.pyspark.connect(session)
        name = package.util.gen_name("orthobandit")
        source.createOrReplaceTempView(name)
        opened.closers.append(lambda: session.catalog.dropTempView(name))
        opened.table = backend.table(name)
    return opened


def _from_url(url: str, table: str | None) -> Opened:
    """Open a table of a database by its URL."""
    package = ibis()
    shown = _without_password(url)
    _check_url(url, shown)
    with engine(shown):
        options = {"read_only": True} if url.startswith("duckdb://") else {}
        try:
            backend = package.connect(url, **options)
        except ImportError:  # of the engine's driver
            scheme = url.partition("://")[0]
            raise MissingExtraError(
                f"{shown} needs a driver; install it with `pip install 'ibis-framework[{scheme}]'`, or do"
                " without: print the query with --sql, run it there, and give its result to --cells"
            ) from None
    opened = Opened(None, f"table {table!r} of {shown}", closers=[backend.disconnect])
    with opened.kept(), engine(shown):
        names = _tables(backend)
        if table is None:
            there = f"there are {', '.join(names)}" if names else "it has none"
            raise ParameterError(Argument("table"), f" must name the table of {shown}; {there}")
        schema, _, bare = table.rpartition(".")
        if not schema and bare not in names:
            raise ParameterError(Argument("table", table), f" is not in {shown}; {nearest(table, names)}")
        opened.table = backend.table(bare, database=schema or None)
        if backend.name == "duckdb":
            opened.table = _in_microseconds(opened.table)
    return opened


def _check_url(url: str, shown: str) -> None:
    """Refuse a URL that no engine here can open, or that would create a file."""
    scheme, _, place = url.partition("://")
    scheme = scheme.lower()
    if scheme in REMOTE_FILES:
        raise SourceError(f"{shown}: files are read from this machine; download it, and give its path")
    # Other than DuckDB, SQLite makes a file where there is none.
    path = place.partition("?")[0]
    if scheme == "sqlite" and not Path(path).is_file():
        raise SourceError(f"{shown} cannot be read: there is no file {path!r}")
    if scheme in ("postgres", "postgresql"):
        optional_package("psycopg", "postgres", "Reading a table of PostgreSQL")


def _tables(backend: Any) -> list[str]:
    if backend.name == "duckdb":  # of which Ibis asks in a way that DuckDB 2 has given up
        return [str(row[0]) for row in backend.con.execute("SHOW TABLES").fetchall()]
    return list(backend.list_tables())


def _without_password(url: str) -> str:
    """Return a URL as it may be shown."""
    scheme, _, rest = url.partition("://")
    login, at, place = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{scheme}://{user}{':***' if colon else ''}{at}{place}"


def _is_live(source: Any) -> TypeGuard[LiveExperiment]:
    """Tell whether a source is a live experiment."""
    # Asked of the class: a frame has its columns as attributes, and these may have any name.
    kind = type(source)
    return callable(getattr(kind, "export", None)) and hasattr(kind, "settings")


def _from_experiment(experiment: LiveExperiment) -> Opened:
    """Open the draws of a live experiment, exported to a temporary file."""
    if iscoroutinefunction(experiment.export):
        raise InputError(
            f"an {type(experiment).__name__} writes its draws when it is awaited; say `await"
            " experiment.export('draws.parquet')`, and analyse that file with ",
            Argument("format", "export"),
        )
    folder = tempfile.TemporaryDirectory(prefix="orthobandit-")
    try:
        path = Path(folder.name, "export.parquet")
        experiment.export(path)
        opened = _from_files(str(path))
    except BaseException:
        folder.cleanup()
        raise
    # Removed last, when the engine no longer reads from it.
    opened.closers.insert(0, folder.cleanup)
    opened.name = "the experiment"
    out = keep_settled_draws(opened)
    out.fields |= _declared_by(experiment)
    return out


def _declared_by(experiment: LiveExperiment) -> dict[str, Any]:
    """Return the experiment's reference arm, what silence means, and the ranges of its metrics."""
    settings = experiment.settings
    modes = [metric.confidence for metric in settings.metrics]
    # The policy's own mode is what the experiment's claims rest on.
    modes[0] = getattr(settings.policy, "confidence", None) or modes[0]
    ranges = {
        name: mode.reward_range
        for name, mode in zip(settings.names, modes, strict=True)
        if isinstance(mode, Bounded)
    }
    return {
        "reference": settings.arms.labels[settings.reference],
        "missing": MISSING_OF_SILENCE[settings.silence],
        **({"bounds": ranges} if ranges else {}),
    }


def keep_settled_draws(opened: Opened) -> Opened:
    """Return an opened export, its columns as fields: settled draws that are not of the holdout."""
    with opened.kept():
        return _only_settled(opened)


def _only_settled(opened: Opened) -> Opened:
    """Filter an export to settled draws outside the holdout, and set its columns as fields."""
    names = list(opened.schema)
    rewards = [name for name in names if f"forecast:{name}" in names]
    if not rewards or not {"at", "arm", "holdout"} <= set(names):
        raise FileFormatError(
            f"{opened.name} is not the export of an experiment: its columns are {', '.join(names)}"
        )
    if not {"settled", "silence"} <= set(names):
        raise FileFormatError(
            f"{opened.name} was exported by a release before 0.4.1, which did not say how silence counts;"
            f" export the experiment again with release {READER_OF_OLDER}, which opens it"
        )
    table = opened.table
    awaited = table.filter(~_is_true(table.settled))
    count = int(opened.fetch(awaited.aggregate(n=awaited.count()))["n"][0].as_py())
    if count:
        opened.notes += (f"{count:,} draws whose rewards are still awaited are left out",)
    opened.table = table.filter(~_is_true(table.holdout) & _is_true(table.settled))
    # Rows were filtered: numbers would no longer be those of the file.
    opened.is_ordered = False
    opened.fields = {
        "arm": "arm",
        "time": "at",
        "reward": rewards[0],
        "probabilities": tuple(name for name in names if name.startswith("p:")),
        "missing": _missing_by_silence(opened),
    }
    return opened


def _missing_by_silence(opened: Opened) -> str:
    """Return what to do with empty cells of an export: its column ``silence`` says how they count."""
    silences = opened.fetch(opened.table.select("silence").distinct())["silence"].to_pylist()
    if not set(silences) <= set(MISSING_OF_SILENCE) or len(silences) > 1:
        raise FileFormatError(
            f"{opened.name}: the column 'silence' has the values {', '.join(map(repr, silences))}; an export"
            " has 'zero' in all rows, or 'missing' in all. Analyse exports of several experiments one by one"
        )
    return MISSING_OF_SILENCE[silences[0]] if silences else "refuse"


def _is_true(column: Any) -> Any:
    """Return whether a column of booleans, or of their names in a CSV file, is true."""
    return column.cast("string").lower().isin(["true", "1"])
