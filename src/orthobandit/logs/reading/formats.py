"""Logs that are no plain table, by the name of their format."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_choice
from orthobandit.errors import FileFormatError, ParameterError
from orthobandit.logs.reading.readers import read_export, read_exposures, read_obp
from orthobandit.logs.reading.vowpal import read_vw

FORMATS = ("export", "growthbook", "vw", "obp")


def read_as(source: Any, format: str | None, asked: dict[str, Any]) -> tuple[Any, dict[str, Any]]:  # noqa: A002
    """Return a source that can be opened, and the fields of a Question that it knows.

    Parameters
    ----------
    source : object
    format : {"export", "growthbook", "vw", "obp"} or None
        What an experiment's ``export`` wrote; exposures whose split changed from phase to phase, with `arm`,
        `time`, and `plans` as a list of ``{"from", "to", "weights"}`` or a JSON file of one; JSON lines of
        Vowpal Wabbit; a mapping of Open Bandit's arrays, or an ``.npz`` file of them. None for plain tables.
    asked : dict
        What was asked; `plans` are taken out where they are phases.
    """
    if format is None:
        return source, {}
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
    return read_exposures(source, _phases(asked.pop("plans")), variation=asked["arm"], time=asked["time"])


def _arrays(path: Any) -> dict[str, Any]:
    try:
        with np.load(Path(path), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read as arrays of Open Bandit (.npz): {error}") from None


def _phases(plans: Any) -> Any:
    if not isinstance(plans, str | Path):
        return plans
    try:
        return json.loads(Path(plans).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise FileFormatError(f"plans={str(plans)!r} cannot be read as JSON: {error}") from None
