"""The result of a run: regret, stops and decisions of every replication; as tables, files and a plot."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.checks import check_choice
from orthobandit._foundation.extras import pyarrow
from orthobandit._foundation.files import whole_file
from orthobandit._foundation.frames import frame_of, write_columns
from orthobandit._foundation.json_arrays import brief
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import Argument, FileFormatError, ParameterError
from orthobandit.policy import Decision
from orthobandit.showing.charts import COLOURS, axes_for, remove_clutter
from orthobandit.showing.html import html_table, html_words
from orthobandit.showing.text import text_table

# Raised when the stored form changes; an older file is then refused rather than misread.
FORMAT = "orthobandit run 2"
# The fields of a result and of its decision that have one row a replication, and what JSON numbers become.
ROW_NUMBERS = {"replications": int, "stop_times": int, "elimination_times": int, "plans": int, "clipped": int}
CLAIM_TYPES = {"active": bool, "leader": int, "declared": int}
# `regret` and `epsilon` are floats; JSON has no infinity, so ε is written by rules of its own.
ROWS = (*ROW_NUMBERS, "regret")
CLAIMS = (*CLAIM_TYPES, "epsilon")
BAND = (0.05, 0.95)  # levels of the band around a mean


@dataclass(frozen=True, eq=False)
class Summary:
    """A run in a few numbers.

    Attributes
    ----------
    checkpoints : (C,) array of int
    regret_mean, regret_error : (C,) arrays
        Mean over replications and its standard error (NaN for a single replication).
    levels : (Q,) array
    regret_quantiles : (Q, C) array
    stop_quantiles : (Q,) array
        Quantiles of the stop time; +inf where a replication never declares.
    correct, wrong : float
        Share of replications that declare a best arm, declare another.
    most_plans : int
        The largest number of plans in a replication.
    """

    checkpoints: Whole
    regret_mean: Array
    regret_error: Array
    levels: Array
    regret_quantiles: Array
    stop_quantiles: Array
    #: Share of replications that declare an arm.
    declared: float
    correct: float
    wrong: float
    most_plans: int

    __repr__ = brief


@dataclass(frozen=True, eq=False)
class RunResult:
    """The outcome of R replications on K arms at C checkpoints.

    Attributes
    ----------
    replications : (R,) array of int
        The replications' numbers, ascending.
    checkpoints : (C,) array of int
        Rounds after which the regret was noted.
    gaps : (K,) array
        The truth: mean of the best arm minus that of each arm.
    regret : (R, C) array
        Σ of the gaps of the arms played; constant after a stop.
    stop_times : (R,) array of int
        Rounds played when an arm was first declared best; −1 if none was.
    elimination_times : (R, K) array of int
        Rounds played when the arm was found inactive; −1 if it never was. A policy that plans every round is
        looked at every 1024 rounds, when it declares an arm, and at the end.
    plans : (R,) array of int
        How many different distributions were in force, one after the other.
    clipped : (R,) array of int
        Rounds in which clipping bent the model (Bernoulli and clipped rewards), among those played one by
        one; the rounds after the last plan are not played when its outcome is certain.
    decision : Decision
        What the policy said at the end.
    settings : dict
        Policy, environment, horizon and seed, for the reader.
    """

    replications: Whole
    checkpoints: Whole
    gaps: Array
    regret: Array
    stop_times: Whole
    elimination_times: Whole
    plans: Whole
    clipped: Whole
    decision: Decision
    settings: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"RunResult({self.settings.get('policy', 'policy')}: {self.replications.size} replications of"
            f" {int(self.checkpoints[-1]):,} rounds on {self.gaps.size} arms)"
        )

    def _repr_html_(self) -> str:
        cells = _cells(_row("", self))[1:]
        return html_words(repr(self)) + html_table(COLUMNS[1:], [cells], words=0)

    @property
    def declared(self) -> Whole:
        """The arm declared best at the end (R,); −1 where none is."""
        return self.decision.declared

    @cached_property
    def correct(self) -> Mask:
        """True (R,) where a best arm was declared; any arm with gap 0 is best."""
        return np.asarray((self.declared >= 0) & (self.gaps[self.declared] == 0))

    def summary(self, levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95)) -> Summary:
        """Summarise over replications, with quantiles at the given levels in [0, 1]."""
        if not all(0 <= level <= 1 for level in levels):
            raise ParameterError(Argument("levels", tuple(levels)), " must lie in [0, 1]")
        count = self.replications.size
        spread = self.regret.std(axis=0, ddof=1) if count > 1 else np.full(self.checkpoints.size, np.nan)
        # Infinite rather than left out: a policy that seldom declares would otherwise look fast.
        stops = np.where(self.stop_times < 0, np.inf, self.stop_times)
        return Summary(
            checkpoints=self.checkpoints,
            regret_mean=self.regret.mean(axis=0),
            regret_error=spread / np.sqrt(count),
            levels=np.array(levels),
            regret_quantiles=np.quantile(self.regret, levels, axis=0),
            stop_quantiles=np.quantile(stops, levels, method="higher"),
            declared=float(np.mean(self.declared >= 0)),
            correct=float(np.mean(self.correct)),
            wrong=float(np.mean((self.declared >= 0) & ~self.correct)),
            most_plans=int(self.plans.max()),
        )

    def only(self, rows: NDArray[Any]) -> "RunResult":
        """Return some replications: where a mask (R,) is true, or at the given positions in this order."""
        claims: dict[str, Any] = {name: getattr(self.decision, name)[rows] for name in CLAIMS}
        kept: dict[str, Any] = {name: getattr(self, name)[rows] for name in ROWS}
        return replace(self, decision=replace(self.decision, **claims), **kept)

    @staticmethod
    def merge(parts: Iterable["RunResult"]) -> "RunResult":
        """Join results of different replications of the same run, in the order of their numbers."""
        found = list(parts)
        claims: dict[str, Any] = {
            name: np.concatenate([getattr(part.decision, name) for part in found]) for name in CLAIMS
        }
        rows: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in found]) for name in ROWS
        }
        # A replication that counted twice would look like a second, independent run.
        if np.unique(rows["replications"]).size < rows["replications"].size:
            raise ParameterError("parts share a replication; merge results of different replications")
        joined = replace(found[0], decision=replace(found[0].decision, **claims), **rows)
        return joined.only(np.argsort(rows["replications"]))

    def to_json(self) -> dict[str, Any]:
        """Return plain values that survive ``json.dumps`` exactly; an infinite ε becomes None."""
        return to_plain(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "RunResult":
        """Return the result that :meth:`to_json` wrote down."""
        return cls(**from_plain(data))

    def write(self, path: str | Path) -> None:
        """Write to a ``.json`` or ``.parquet`` file, whole or not at all."""
        write_result(Path(path), self.to_json())

    @staticmethod
    def check_path(path: str | Path) -> None:
        """Raise :class:`FileFormatError` if a result cannot be written there, e.g. for want of pyarrow."""
        check_result_path(Path(path))

    @classmethod
    def read(cls, path: str | Path) -> "RunResult":
        """Read what :meth:`write` wrote."""
        return cls.from_json(read_result(Path(path)))

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return tidy columns: `runs`, a row per replication; `curves`, a row per replication and round."""
        return tidy_tables(self)

    def to_frame(self, table: str = "runs", *, library: str | None = None) -> Any:
        """Return one of the :meth:`tables` as a frame.

        Parameters
        ----------
        table : {"runs", "curves"}
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first that is installed.
        """
        tables = self.tables()
        return frame_of(tables[check_choice("table", table, tables)], library)

    def to_parquet(self, path: str | Path, table: str = "runs") -> None:
        """Write one of the :meth:`tables` to a Parquet file; :meth:`write` keeps the whole result instead."""
        tables = self.tables()
        write_columns(path, tables[check_choice("table", table, tables)])

    def plot(self, axes: Any = None, *, label: str | None = None) -> Any:
        """Draw the mean regret against rounds, with a band from 5 % to 95 % of runs; return the axes.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw, for several runs in one figure; a new figure by default.
        label : str, optional
            What the legend says; the policy by default.
        """
        return draw_regret(self, axes, label)

    def equals(self, other: "RunResult") -> bool:
        """Tell whether both hold the same numbers to the last bit."""
        return self.to_json() == other.to_json()


COLUMNS = ("policy", "regret ± s.e.", "median", "95 %", "declared", "wrong", "stop, median", "plans")


def compare(results: Mapping[str, RunResult]) -> list[dict[str, Any]]:
    """Return one row per run, as plain JSON values; None where a number does not exist.

    Regret is at the horizon; `declared` and `wrong` are shares of replications, `wrong` None when nothing was
    declared that could be wrong; `stop_median` is None when half of the replications or more declare nothing;
    `plans` is the most that one replication made.

    Runs of different horizons have regrets that cannot be compared; `horizon` says which is which.
    """
    if not isinstance(results, Mapping):
        raise ParameterError(
            f"results is a {type(results).__name__}; give a dict of runs by name, such as {{'sbe': result}}"
        )
    for name, result in results.items():
        if not isinstance(result, RunResult):
            raise ParameterError(
                f"results[{name!r}] is a {type(result).__name__}; give what simulate() returns"
            )
    return [_row(name, result) | {"horizon": int(result.checkpoints[-1])} for name, result in results.items()]


def _row(name: str, result: RunResult) -> dict[str, Any]:
    summary = result.summary((0.5, 0.95))
    error = summary.regret_error[-1]
    stop = summary.stop_quantiles[0]
    return {
        "policy": name,
        "settings": result.settings["policy"],
        "regret_mean": float(summary.regret_mean[-1]),
        "regret_error": float(error) if np.isfinite(error) else None,
        "regret_median": float(summary.regret_quantiles[0, -1]),
        "regret_95": float(summary.regret_quantiles[1, -1]),
        "declared": summary.declared,
        "wrong": summary.wrong if summary.declared else None,
        "stop_median": int(stop) if np.isfinite(stop) else None,
        "plans": summary.most_plans,
        "clipped_rounds": int(result.clipped.sum()),
    }


def comparison_table(rows: list[dict[str, Any]]) -> str:
    """Return the rows of :func:`compare` as a table to read, with the horizons where they differ."""
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ParameterError(f"rows is a {type(rows).__name__}; give what compare() returns")
    if len({row["horizon"] for row in rows}) <= 1:
        return text_table(COLUMNS, [_cells(row) for row in rows])
    cells = [(row["policy"], f"{row['horizon']:,}", *_cells(row)[1:]) for row in rows]
    return text_table((COLUMNS[0], "rounds", *COLUMNS[1:]), cells)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    error = "" if row["regret_error"] is None else f" ± {row['regret_error']:,.1f}"
    stop = "never" if row["stop_median"] is None else f"{row['stop_median']:,}"
    return (
        row["policy"],
        f"{row['regret_mean']:,.1f}{error}",
        f"{row['regret_median']:,.1f}",
        f"{row['regret_95']:,.1f}",
        f"{100 * row['declared']:.1f} %",
        "–" if row["wrong"] is None else f"{100 * row['wrong']:.1f} %",
        stop,
        f"{row['plans']}",
    )


def to_plain(result: RunResult) -> dict[str, Any]:
    """Return a result as lists, numbers and strings; an infinite ε becomes None."""
    decision = result.decision
    rows = {name: getattr(result, name).tolist() for name in ROW_NUMBERS}
    rows["regret"] = result.regret.tolist()
    rows |= {name: np.asarray(getattr(decision, name)).tolist() for name in CLAIM_TYPES}
    rows["epsilon"] = [float(value) if np.isfinite(value) else None for value in decision.epsilon]
    return {
        "format": FORMAT,
        "settings": result.settings,
        "checkpoints": result.checkpoints.tolist(),
        "gaps": result.gaps.tolist(),
        "certainty": float(decision.certainty),
        "mode": decision.mode,
        "rows": rows,
    }


def from_plain(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of the result that :func:`to_plain` wrote down."""
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise FileFormatError(f"the data is not a run result; it must say format = {FORMAT!r}")
    try:
        found = _fields(data)
    except (KeyError, TypeError, ValueError) as error:
        raise FileFormatError(f"the run result is incomplete or damaged ({error!r})") from None
    rows = {len(found[name]) for name in ROWS}
    rows |= {len(getattr(found["decision"], name)) for name in CLAIMS}
    if len(rows) != 1 or found["regret"].shape[1:] != found["checkpoints"].shape:
        raise FileFormatError("the run result has columns of different lengths; it is damaged")
    return found


def _fields(data: dict[str, Any]) -> dict[str, Any]:
    rows = data["rows"]
    claims: dict[str, Any] = {name: np.array(rows[name], dtype=kind) for name, kind in CLAIM_TYPES.items()}
    claims["epsilon"] = np.array(
        [np.inf if value is None else value for value in rows["epsilon"]], dtype=float
    )
    fields: dict[str, Any] = {name: np.array(rows[name], dtype=kind) for name, kind in ROW_NUMBERS.items()}
    return fields | {
        "regret": np.array(rows["regret"], dtype=float),
        "checkpoints": np.array(data["checkpoints"], dtype=int),
        "gaps": np.array(data["gaps"], dtype=float),
        "decision": Decision(**claims, certainty=data["certainty"], mode=data["mode"]),
        "settings": data["settings"],
    }


def write_result(path: Path, data: dict[str, Any]) -> None:
    """Write plain values to a .json or .parquet file; a reader sees the whole file or none."""
    check_result_path(path)
    with whole_file(path) as unfinished:
        if path.suffix.lower() == ".json":
            unfinished.write_text(json.dumps(data, allow_nan=False), encoding="utf-8")
        else:
            _write_parquet(unfinished, data)


def check_result_path(path: Path) -> None:
    """Raise unless the file name says .json, or .parquet and pyarrow is installed."""
    suffix = path.suffix.lower()
    if suffix not in {".json", ".parquet"}:
        raise FileFormatError(f"{path} ends in {suffix!r}; a result is written to .json or .parquet")
    if suffix == ".parquet":
        pyarrow()


def read_result(path: Path) -> dict[str, Any]:
    """Read what :func:`write_result` wrote."""
    suffix = path.suffix.lower()
    if suffix not in {".json", ".parquet"}:
        raise FileFormatError(f"{path} ends in {suffix!r}; a result is read from .json or .parquet")
    if not path.is_file():
        raise FileFormatError(f"{path} is not a file")
    if suffix == ".parquet":
        return _read_parquet(path)
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read as JSON: {error}") from None
    return data


def _write_parquet(path: Path, data: dict[str, Any]) -> None:
    arrow, parquet = pyarrow()
    # What belongs to the run as a whole goes into the metadata of the file, so that rows stay a plain table.
    rest = {name: value for name, value in data.items() if name != "rows"}
    table = arrow.table(data["rows"])
    parquet.write_table(table.replace_schema_metadata({"orthobandit": json.dumps(rest)}), path)


def _read_parquet(path: Path) -> dict[str, Any]:
    arrow, parquet = pyarrow()
    try:
        table = parquet.read_table(path)
    except (arrow.ArrowException, OSError) as error:
        raise FileFormatError(f"{path} cannot be read as Parquet: {error}") from None
    described = (table.schema.metadata or {}).get(b"orthobandit")
    if described is None:
        raise FileFormatError(f"{path} is a Parquet file but not a run result")
    data: dict[str, Any] = json.loads(described)
    return data | {"rows": {name: table.column(name).to_pylist() for name in table.column_names}}


def tidy_tables(result: RunResult) -> dict[str, dict[str, Any]]:
    """Return tidy columns: `runs`, a row per replication, and `curves`, a row per replication and round."""
    marks = result.checkpoints.size
    numbers = result.replications
    runs = {
        "replication": numbers.tolist(),
        "regret": result.regret[:, -1].tolist(),
        "stop_time": result.stop_times.tolist(),
        "declared": result.declared.tolist(),
        "is_correct": result.correct.tolist(),
        "plans": result.plans.tolist(),
    }
    curves = {
        "replication": np.repeat(numbers, marks).tolist(),
        "round": np.tile(result.checkpoints, numbers.size).tolist(),
        "regret": result.regret.reshape(-1).tolist(),
    }
    return {"curves": curves, "runs": runs}


def draw_regret(result: RunResult, axes: Any = None, label: str | None = None) -> Any:
    """Draw the mean regret with its band; further runs on the same axes get further colours."""
    drawn = axes_for(axes)
    summary = result.summary(BAND)
    rounds = np.append(0, summary.checkpoints)
    mean, low, high = (np.append(0.0, values) for values in (summary.regret_mean, *summary.regret_quantiles))
    name = str(result.settings.get("policy", "")) if label is None else label
    colour = COLOURS[len(drawn.lines) % len(COLOURS)]
    drawn.plot(rounds, mean, linewidth=1.8, label=name, color=colour)
    drawn.fill_between(rounds, low, high, color=colour, alpha=0.18, linewidth=0)
    drawn.set_xlabel("rounds")
    drawn.set_ylabel("regret (units of reward)")
    drawn.set_xlim(left=0)
    drawn.set_ylim(bottom=0)
    drawn.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    drawn.set_title("line: mean over replications; band: 5 % to 95 % of them", loc="left", fontsize="medium")
    drawn.legend(frameon=False, fontsize="small")
    return remove_clutter(drawn)
