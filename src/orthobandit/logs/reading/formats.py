"""Logs of other tools that are no plain table: exports, GrowthBook, Vowpal Wabbit, Open Bandit.

Every reader returns ``(source, fields)``: ``analyse(source, **fields)`` asks the first question, and fields
can be added or changed.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_choice, nearest
from orthobandit._foundation.extras import pyarrow
from orthobandit._foundation.types import Array, Whole
from orthobandit.errors import Argument, FileFormatError, InputError, InputWarning, ParameterError
from orthobandit.logs.question import FORMATS, PER_SECOND
from orthobandit.logs.reading.clock import seconds_of, when_of
from orthobandit.logs.reading.source import Opened, ibis, keep_settled_draws, open_source

Fields = dict[str, Any]
PHASE = "phase"  # the column of plans that exposure tables get
FOREVER = 1e300
MAX_NAMED_PLANS = 1000  # distributions that are kept by name; more are columns
COST = "_label_cost"
CHOSEN = "_label_action"
PROBABILITY = "_label_probability"


def read_export(source: Any) -> tuple[Opened, Fields]:
    """Read what :meth:`orthobandit.Experiment.export` wrote; draws of the holdout are left out.

    The reward is the experiment's first metric.
    """
    opened = open_source(source)
    return keep_settled_draws(opened), opened.fields


def read_exposures(
    source: Any,
    phases: Sequence[Mapping[str, Any]],
    *,
    variation: str,
    time: str,
    table: str | None = None,
    time_unit: str | None = None,
) -> tuple[Opened, Fields]:
    """Read a table of exposures whose split changed from phase to phase, as those of GrowthBook.

    Parameters
    ----------
    source : object
        As for :func:`~orthobandit.logs.reading.source.open_source`, with `table`.
    phases : sequence of mappings
        ``{"from": …, "to": …, "weights": {arm: probability}}``: ISO times or numbers, `to` excluded, and left
        out or None where a phase goes on.
    variation, time : str
        Columns of the arm and of when it was drawn.
    table : str, optional
    time_unit : {"s", "ms", "us", "ns"}, optional
        Of times that are numbers since 1970, those of phases too.

    Examples
    --------
    >>> import pyarrow
    >>> rows = pyarrow.table({"variation": ["a", "b", "b"], "day": [1, 2, 5], "paid": [0.0, 1.0, 1.0]})
    >>> opened, fields = read_exposures(
    ...     rows,
    ...     [
    ...         {"from": 0, "to": 4, "weights": {"a": 0.5, "b": 0.5}},
    ...         {"from": 4, "weights": {"a": 0.1, "b": 0.9}},
    ...     ],
    ...     variation="variation",
    ...     time="day",
    ... )
    >>> fields["plan"], list(fields["plans"])
    ('phase', ['phase 1', 'phase 2'])
    >>> opened.close()
    """
    if not phases:
        raise ParameterError("phases is empty; give one {'from', 'to', 'weights'} a phase")
    plans = {f"{PHASE} {number}": dict(phase["weights"]) for number, phase in enumerate(phases, 1)}
    spans = _spans(phases, 1.0 if time_unit is None else PER_SECOND[time_unit])
    opened = open_source(source, table)
    with opened.kept():
        if time not in opened.schema:
            raise InputError(
                Argument("time", time), f": {opened.name} has no such column; {nearest(time, opened.schema)}"
            )
        when, is_clock = when_of(opened, time, time_unit)
        seconds = seconds_of(when, is_clock=is_clock)
        cases = [
            ((seconds >= begin) & (seconds < end), name)
            for name, (begin, end) in zip(plans, spans, strict=True)
        ]
        opened.table = opened.table.mutate(**{PHASE: ibis().cases(*cases, else_=None)})
    # It is cached, and the table has one more column now.
    opened.__dict__.pop("schema", None)
    return opened, {"arm": variation, "time": time, "plan": PHASE, "plans": plans}


def _spans(phases: Sequence[Mapping[str, Any]], per_second: float) -> list[tuple[float, float]]:
    """Return the begin and end of each phase; phases must not overlap."""
    spans: list[tuple[float, float]] = []
    for number, phase in enumerate(phases, 1):
        begin = _moment(phase.get("from"), -FOREVER, per_second)
        end = _moment(phase.get("to"), FOREVER, per_second)
        # Phases that overlap would give a row two distributions.
        if begin >= end or (spans and begin < spans[-1][1]):
            raise ParameterError(
                f"phases: number {number} begins before the one before it ended, or ends first"
            )
        spans.append((begin, end))
    return spans


def _moment(value: Any, absent: float, per_second: float) -> float:
    """Return the time of a phase in seconds, or as the number it is."""
    if value is None or value == "":
        return absent
    if isinstance(value, int | float):
        return float(value) / per_second
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
        if isinstance(moment, date) and not isinstance(moment, datetime):
            moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
        return float((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    except (ValueError, AttributeError):
        raise ParameterError(f"phases: {value!r} is not an ISO time such as 2025-03-01T00:00") from None


def read_obp(feedback: Mapping[str, Any]) -> tuple[Any, Fields]:
    """Read the arrays of a bandit feedback of Open Bandit (``obp``), in the order of its rounds.

    Parameters
    ----------
    feedback : mapping
        ``action`` (n,) and ``reward`` (n,); ``action_dist`` or ``pi_b`` (n, K) or (n, K, L), with
        ``position`` (n,) if L > 1; without these ``pscore`` (n,), the probability of the action alone.

    Examples
    --------
    >>> log = {"action": [0, 1, 1], "reward": [1, 0, 1], "pi_b": [[0.4, 0.6], [0.4, 0.6], [0.4, 0.6]]}
    >>> read_obp(log)[1]["split"]
    {'0': 0.4, '1': 0.6}
    """
    for key in ("action", "reward"):
        if key not in feedback:
            raise InputError(f"the feedback has no {key!r}; its keys are {', '.join(map(str, feedback))}")
    action = np.asarray(feedback["action"], dtype=np.int64)
    columns: dict[str, Any] = {"round": np.arange(len(action)), "arm": action.astype(str)}
    columns["reward"] = _sized("reward", feedback["reward"], len(action))
    fields: Fields = {"arm": "arm", "reward": "reward", "time": "round"}
    if feedback.get("position") is not None:
        columns["position"] = np.asarray(feedback["position"], dtype=np.int64)
    given = feedback.get("action_dist", feedback.get("pi_b"))
    if given is not None:
        fields |= _distribution_fields(
            columns, _chosen(np.asarray(given, dtype=np.float64), feedback, len(action))
        )
    elif feedback.get("pscore") is not None:
        columns["pscore"] = _sized("pscore", feedback["pscore"], len(action))
        fields["probabilities"] = ("pscore",)
    else:
        raise InputError("the feedback has neither 'pi_b' nor 'action_dist' nor 'pscore': no probabilities")
    return pyarrow()[0].table(columns), fields


def _sized(name: str, values: ArrayLike, size: int) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (size,):
        raise InputError(f"{name!r} has shape {array.shape}; the feedback has {size} rounds")
    return array


def _chosen(p: Array, feedback: Mapping[str, Any], size: int) -> Array:
    """Return the distributions (n, K) of the positions that were filled."""
    if p.ndim == 3 and p.shape[2] == 1:
        p = p[:, :, 0]
    if p.ndim == 3:
        if feedback.get("position") is None:
            raise InputError(f"the distributions are of {p.shape[2]} positions; 'position' must say which")
        p = p[np.arange(len(p)), :, np.asarray(feedback["position"], dtype=np.int64)]
    if p.ndim != 2 or len(p) != size:
        raise InputError(f"the distributions have shape {p.shape}; (rounds, actions) = ({size}, K) is needed")
    return p


def _distribution_fields(columns: dict[str, Any], p: Array) -> Fields:
    """Express distributions (n, K) as a split if all are equal, as plans if few differ, else as columns."""
    labels = [str(arm) for arm in range(p.shape[1])]
    distributions, which = np.unique(p, axis=0, return_inverse=True)
    numbers: Whole = which.reshape(-1)
    # The shortest statement: plans by name group better than columns of floats, and read better.
    if len(distributions) == 1:
        return {"split": dict(zip(labels, distributions[0].tolist(), strict=True))}
    if len(distributions) <= MAX_NAMED_PLANS:
        columns["plan"] = numbers
        listed = enumerate(distributions.tolist())
        plans = {str(place): dict(zip(labels, one, strict=True)) for place, one in listed}
        return {"plan": "plan", "plans": plans}
    columns |= {f"p:{label}": p[:, place] for place, label in enumerate(labels)}
    return {"probabilities": tuple(f"p:{label}" for label in labels)}


def read_vw(path: str | Path) -> tuple[Any, dict[str, Any]]:
    """Read decisions that Vowpal Wabbit logged as JSON lines (``.json`` or ``.dsjson``).

    ``a`` lists the numbers of the actions (from 1) in the order of their probabilities ``p``; the one that
    was taken is ``_label_Action``, else the first of ``a``. The reward is minus ``_label_cost``. Lines that
    are no decisions are counted in a warning.

    Returns
    -------
    source : pyarrow.Table
        Columns line, at (where there is ``Timestamp``), arm, reward, and p:<action> (or p).
    fields : dict
        Of a Question.
    """
    decisions, others = _decisions(Path(path))
    if not decisions:
        raise FileFormatError(f"{path} has no decision: no line with {COST!r}")
    if others:
        warnings.warn(
            f"{path}: {others:,} lines have no {COST!r} and are left out", InputWarning, stacklevel=2
        )
    columns: dict[str, Any] = {
        "line": [number for number, _ in decisions],
        "arm": [str(one["arm"]) for _, one in decisions],
        "reward": [one["reward"] for _, one in decisions],
    }
    fields: dict[str, Any] = {"arm": "arm", "reward": "reward", "time": "line"}
    if all(one["at"] for _, one in decisions):
        columns["at"] = [one["at"] for _, one in decisions]
        fields["time"] = "at"
    if all(one["p"] for _, one in decisions):
        count = max(max(one["p"]) for _, one in decisions)
        p = np.zeros((len(decisions), count))
        for row, (_, one) in enumerate(decisions):
            p[row, np.array(list(one["p"])) - 1] = list(one["p"].values())
        columns |= {f"p:{action + 1}": p[:, action] for action in range(count)}
        fields["probabilities"] = tuple(f"p:{action + 1}" for action in range(count))
    else:
        columns["p"] = [one["own"] for _, one in decisions]
        fields["probabilities"] = ("p",)
    return pyarrow()[0].table(columns), fields


def _decisions(path: Path) -> tuple[list[tuple[int, dict[str, Any]]], int]:
    """Return (line number, decision) of every decision, and the number of other lines."""
    found = []
    others = 0
    try:
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                entry = _entry(path, number, line)
                if COST in entry:
                    found.append((number, _decision(path, number, entry)))
                else:
                    others += 1
    except (OSError, UnicodeDecodeError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from None
    return found, others


def _entry(path: Path, number: int, line: str) -> dict[str, Any]:
    """Return a line as a mapping; labels are written in several ways: _label_cost and _label_Cost."""
    try:
        data = json.loads(line)
    except ValueError as error:
        raise FileFormatError(f"{path} line {number} is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise FileFormatError(f"{path} line {number} is not a JSON object")
    return {key.lower() if key.startswith("_label_") else key: value for key, value in data.items()}


def _decision(path: Path, number: int, entry: dict[str, Any]) -> dict[str, Any]:
    """Return one logged decision of Vowpal Wabbit: arm, reward, time and probabilities."""
    actions = entry.get("a") or []
    p = entry.get("p") or []
    try:
        if len(actions) != len(p):
            raise ValueError(f"'a' has {len(actions)} actions, 'p' {len(p)} probabilities")
        probabilities = {int(action): float(value) for action, value in zip(actions, p, strict=True)}
        if min(probabilities, default=1) < 1:
            raise ValueError("actions are numbered from 1")
        return {
            "arm": int(entry[CHOSEN] if CHOSEN in entry else actions[0]),
            # 0 − x and not −x: a cost of 0 is a reward of 0, not of −0.
            "reward": 0.0 - float(entry[COST]),
            "own": float(entry.get(PROBABILITY, np.nan)),
            "at": entry.get("Timestamp"),
            "p": probabilities,
        }
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise FileFormatError(f"{path} line {number} is not a decision that can be read: {error}") from None


def read_as(source: Any, format: str, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]]:  # noqa: A002
    """Return a source that can be opened, and the fields of a Question that it knows.

    Parameters
    ----------
    source : object
    format : {"export", "growthbook", "vw", "obp"}
        What an experiment's ``export`` wrote; exposures whose split changed from phase to phase, with `arm`,
        `time`, and `plans` as a list of ``{"from", "to", "weights"}`` or a JSON file of one; JSON lines of
        Vowpal Wabbit; a mapping of Open Bandit's arrays, or an ``.npz`` file of them.
    asked : dict
        What was asked; `plans` are taken out where they are phases.
    """
    check_choice("format", format, FORMATS)
    if format == "export":
        return read_export(source)
    if format == "vw":
        return read_vw(source)
    if format == "obp":
        return read_obp(source if isinstance(source, Mapping) else _arrays(source))
    for name in ("arm", "time", "plans"):
        if asked.get(name) is None:
            raise ParameterError(
                f"{name}= is missing; exposures need the columns arm and time, and their phases as plans: a"
                ' JSON file with a list of {"from": …, "to": …, "weights": {arm: probability}}'
            )
    phases = _phases(asked.pop("plans"))
    unit = asked.get("time_unit")
    if unit is not None:
        check_choice("time_unit", unit, PER_SECOND)
    return read_exposures(source, phases, variation=asked["arm"], time=asked["time"], time_unit=unit)


def _arrays(path: Any) -> dict[str, Any]:
    """Return the arrays of an .npz file."""
    try:
        with np.load(Path(path), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, AttributeError) as error:
        if isinstance(error, OSError) and not Path(path).is_file():
            raise FileFormatError(f"{path} is not a file") from None
        raise FileFormatError(
            f"{path} is not an .npz file of plain arrays, which the feedback of Open Bandit is read from;"
            " pickled files are not read, for they can run any code: load it where you trust it, and save it"
            " with np.savez('log.npz', action=…, reward=…, pi_b=…)"
        ) from None


def _phases(plans: Any) -> Any:
    if not isinstance(plans, str | Path):
        return plans
    try:
        return json.loads(Path(plans).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileFormatError(Argument("plans", str(plans)), f" cannot be read as JSON: {error}") from None
