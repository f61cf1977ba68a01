"""A run result in other forms: plain values, JSON and Parquet files, tidy columns, a curve."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orthobandit._foundation.files import pyarrow, whole_file
from orthobandit.errors import FileFormatError
from orthobandit.policy import Decision
from orthobandit.showing.figure import COLOURS, axes_for, remove_clutter

if TYPE_CHECKING:
    from orthobandit.simulation.result import RunResult

FORMAT = "orthobandit run 2"
NUMBERS = {"replications": int, "stop_times": int, "elimination_times": int, "plans": int, "clipped": int}
CLAIMS = {"active": bool, "leader": int, "declared": int}
BAND = (0.05, 0.95)  # levels of the band around a mean


def to_plain(result: "RunResult") -> dict[str, Any]:
    """Return a result as lists, numbers and strings; an infinite ε becomes None."""
    decision = result.decision
    rows = {name: getattr(result, name).tolist() for name in NUMBERS}
    rows["regret"] = result.regret.tolist()
    rows |= {name: np.asarray(getattr(decision, name)).tolist() for name in CLAIMS}
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
    rows = {len(found[name]) for name in (*NUMBERS, "regret")}
    rows |= {len(getattr(found["decision"], name)) for name in (*CLAIMS, "epsilon")}
    if len(rows) != 1 or found["regret"].shape[1:] != found["checkpoints"].shape:
        raise FileFormatError("the run result has columns of different lengths; it is damaged")
    return found


def _fields(data: dict[str, Any]) -> dict[str, Any]:
    rows = data["rows"]
    claims: dict[str, Any] = {name: np.array(rows[name], dtype=kind) for name, kind in CLAIMS.items()}
    claims["epsilon"] = np.array(
        [np.inf if value is None else value for value in rows["epsilon"]], dtype=float
    )
    fields: dict[str, Any] = {name: np.array(rows[name], dtype=kind) for name, kind in NUMBERS.items()}
    return fields | {
        "regret": np.array(rows["regret"], dtype=float),
        "checkpoints": np.array(data["checkpoints"], dtype=int),
        "gaps": np.array(data["gaps"], dtype=float),
        "decision": Decision(**claims, certainty=data["certainty"], mode=data["mode"]),
        "settings": data["settings"],
    }


def write(path: Path, data: dict[str, Any]) -> None:
    """Write plain values to a .json or .parquet file; a reader sees the whole file or none."""
    check(path)
    with whole_file(path) as unfinished:
        if path.suffix.lower() == ".json":
            unfinished.write_text(json.dumps(data, allow_nan=False), encoding="utf-8")
        else:
            _write_parquet(unfinished, data)


def check(path: Path) -> None:
    """Raise unless the file name says .json, or .parquet and pyarrow is installed."""
    suffix = path.suffix.lower()
    if suffix not in {".json", ".parquet"}:
        raise FileFormatError(f"{path} ends in {suffix!r}; a result is written to .json or .parquet")
    if suffix == ".parquet":
        pyarrow()


def read(path: Path) -> dict[str, Any]:
    """Read what :func:`write` wrote."""
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


def tidy_tables(result: "RunResult") -> dict[str, dict[str, Any]]:
    """Return the columns of `runs`, a row a replication, and of `curves`, a row a replication and round."""
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


def draw_regret(result: "RunResult", axes: Any = None, label: str | None = None) -> Any:
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
