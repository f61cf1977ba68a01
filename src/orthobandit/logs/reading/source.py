"""Reach a log wherever it lives: files and frames through an embedded DuckDB, tables in their own engine."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from orthobandit._foundation.checks import nearest
from orthobandit._foundation.files import optional_package
from orthobandit.arms import ArmSet
from orthobandit.errors import FileFormatError, InputError, ParameterError
from orthobandit.estimate import Bounded, Confidence
from orthobandit.logs.reading.engine import Opened, engine, ibis

MEMORY = "1500MB"  # beyond this DuckDB writes to a folder of its own
PARQUET = (".parquet", ".pq")
UTF_16 = (b"\xff\xfe", b"\xfe\xff")  # the byte order marks
TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".txt")


class ExportedMetric(Protocol):
    """A metric of a live experiment."""

    @property
    def confidence(self) -> Confidence:
        """The mode of its intervals."""


class ExportedSettings(Protocol):
    """What an analysis takes over from the settings of a live experiment."""

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

    :class:`~orthobandit.Experiment` is one. It is known by these two names, so that logs can be analysed
    without the code, and the database, of live experiments.
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
        raise ParameterError(f"table={table!r} is for databases; {_kind(source)} has only one table")
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
    files = _files_of(path)
    is_parquet = files[0].lower().endswith(PARQUET)
    # An engine would name columns that are not there, and not say that the file is empty.
    for file in files:
        if Path(file).stat().st_size == 0:
            raise FileFormatError(f"{file} is empty; a log has a header and one row a draw")
        if not is_parquet and _begins_with(file, UTF_16):
            raise FileFormatError(
                f"{file} is text in UTF-16, as some spreadsheets save it; save it as UTF-8 (CSV UTF-8)"
            )
    backend, closers = _duckdb()
    opened = Opened(None, path, is_ordered=True, is_text=not is_parquet, closers=closers)
    read = backend.read_parquet if is_parquet else backend.read_csv
    with opened.kept(), engine(path, "; is it what its name says, and are all its rows of one kind?"):
        opened.table = read(files, union_by_name=True)
    return opened


def _begins_with(path: str, marks: tuple[bytes, ...]) -> bool:
    """Tell whether a file begins with one of some marks."""
    with Path(path).open("rb") as file:
        return file.read(max(map(len, marks))).startswith(marks)


def _files_of(path: str) -> Sequence[str]:
    """Return the files that a path, a folder or a pattern names, all of one kind, sorted."""
    place = Path(path)
    if place.is_dir():
        found = sorted(str(one) for one in place.rglob("*") if one.is_file() and not one.name.startswith("."))
        files = [one for one in found if one.lower().endswith((*PARQUET, *TEXT))]
        remedy = f"{path} has no .parquet, .csv or .tsv file in it"
    elif any(sign in path for sign in "*?[") and not place.exists():
        files = sorted(str(one) for one in _matching(place) if one.is_file())
        remedy = f"no file is called {path}"
    else:
        files = [path] if place.is_file() else []
        remedy = f"{path} is not a file, a folder, a pattern such as logs/*.csv or a URL such as postgres://…"
    if not files:
        raise FileFormatError(remedy)
    kinds = {
        "parquet" if one.lower().endswith(PARQUET) else "text" if one.lower().endswith(TEXT) else one
        for one in files
    }
    if not kinds <= {"parquet", "text"}:
        other = min(kinds - {"parquet", "text"})
        raise FileFormatError(f"{other} does not end in .csv, .tsv, .csv.gz or .parquet; these can be read")
    if len(kinds) > 1:
        raise FileFormatError(
            f"{path} has both Parquet and text files; name one kind, as in {path}/*.parquet"
        )
    return files


def _matching(pattern: Path) -> Iterator[Path]:
    """Yield the files that a pattern names, which may begin anywhere."""
    return Path(pattern.anchor or ".").glob(str(pattern.relative_to(pattern.anchor)))


def _from_frame(source: Any) -> Opened:
    narwhals = optional_package("narwhals", "logs", "Analysing a frame")
    name = f"the {type(source).__module__.partition('.')[0]} frame"
    try:
        frame = narwhals.from_native(source)
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
        opened.table = backend.table("log")
    return opened


def _from_ibis(source: Any) -> Opened:
    package = ibis()
    if not isinstance(source, package.expr.types.Table):
        raise InputError(f"source is an Ibis {type(source).__name__}; give a table")
    name = getattr(source.op(), "name", None)
    return Opened(source, f"the table {name!r}" if name else "the Ibis table")


def _from_spark(source: Any) -> Opened:
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
    package = ibis()
    shown = _without_password(url)
    with engine(shown):
        options = {"read_only": True} if url.startswith("duckdb://") else {}
        backend = package.connect(url, **options)
    opened = Opened(None, f"table {table!r} of {shown}", closers=[backend.disconnect])
    with opened.kept(), engine(shown):
        names = _tables(backend)
        if table is None:
            raise ParameterError(f"table= must name the table of {shown}; there are {', '.join(names)}")
        schema, _, bare = table.rpartition(".")
        if not schema and bare not in names:
            raise ParameterError(f"table={table!r} is not in {shown}; {nearest(table, names)}")
        opened.table = backend.table(bare, database=schema or None)
    return opened


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
    if iscoroutinefunction(experiment.export):
        raise InputError(
            f"an {type(experiment).__name__} writes its draws when it is awaited; say `await"
            " experiment.export('draws.parquet')`, and analyse that file with format='export'"
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
    out = of_export(opened)
    out.fields |= _declared_by(experiment)
    return out


def _declared_by(experiment: LiveExperiment) -> dict[str, Any]:
    """Return what the experiment was set up with: its reference, what silence means, ranges of metrics."""
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
        "missing": "zero" if settings.silence == "zero" else "drop",
        **({"bounds": ranges} if ranges else {}),
    }


def of_export(opened: Opened) -> Opened:
    """Return an opened export: settled draws that are not of the holdout, and the columns it has as fields.

    Exports of releases before 0.3 do not say what was settled; then all draws are kept, and a note says so.
    """
    with opened.kept():
        return _only_settled(opened)


def _only_settled(opened: Opened) -> Opened:
    names = list(opened.schema)
    rewards = [name for name in names if f"forecast:{name}" in names]
    if not rewards or not {"at", "arm", "holdout"} <= set(names):
        raise FileFormatError(
            f"{opened.name} is not the export of an experiment: its columns are {', '.join(names)}"
        )
    table = opened.table
    kept = ~_is_true(table.holdout)
    if "settled" in names:
        kept = kept & _is_true(table.settled)
        awaited = table.filter(~_is_true(table.settled))
        count = int(opened.fetch(awaited.aggregate(n=awaited.count()))["n"][0].as_py())
        if count:
            opened.notes += (f"{count:,} draws whose rewards are still awaited are left out",)
    else:
        opened.notes += (
            "the export has no column 'settled', so draws whose rewards were still awaited count as they are:"
            " export it again with this release, or leave out draws younger than the window",
        )
    opened.table = table.filter(kept)
    # Rows were filtered: numbers would no longer be those of the file.
    opened.is_ordered = False
    opened.fields = {
        "arm": "arm",
        "time": "at",
        "reward": rewards[0],
        "probabilities": tuple(name for name in names if name.startswith("p:")),
    }
    return opened


def _is_true(column: Any) -> Any:
    """Return whether a column of booleans, or of their names in a CSV file, is true."""
    return column.cast("string").lower().isin(["true", "1"])
