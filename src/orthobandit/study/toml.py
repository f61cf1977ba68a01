"""Read a study from TOML; a mistake is reported with its line and the nearest valid name."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Any

from orthobandit._foundation.checks import nearest
from orthobandit._foundation.registry import SettingError, maker_of
from orthobandit.errors import FileFormatError, SpecError
from orthobandit.study.spec import KINDS, Part, Sweep

PARTS = {"policies": "policy", "instances": "instance", "shifts": "shift"}
KEYS = {field.name for field in fields(Sweep)} - {"labels", "seconds_a_round"} | {"name"}


def read_spec(path: str | Path) -> Sweep:
    """Return the study that a TOML file describes.

    The keys are those of :class:`Sweep`. `policies`, `instances` and `shifts` are tables by name with a
    `kind` and its settings, or a list of kinds; a sub-table `grid` of lists makes one entry for every
    combination of its values.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        return from_plain(_located(tomllib.loads(text), file.parent))
    except FileNotFoundError:
        raise FileFormatError(f"{file} is not a file") from None
    except UnicodeDecodeError:
        raise FileFormatError(f"{file} cannot be read as text; save it as UTF-8") from None
    except OSError as error:
        raise FileFormatError(f"{file} cannot be read as a TOML file: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{file} is not a TOML file that can be read: {error}") from None
    except SpecError as error:
        line = line_of(text, error.keys)
        raise SpecError(f"{file} line {line}: {error}" if line else f"{file}: {error}", error.keys) from None


def _located(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Read paths of arms relative to the folder of the study, wherever it is run from."""
    instances = data.get("instances")
    for entry in instances.values() if isinstance(instances, dict) else ():
        if isinstance(entry, dict) and entry.get("kind") == "file" and isinstance(entry.get("path"), str):
            entry["path"] = str(folder / entry["path"])
    return data


def from_plain(data: Mapping[str, Any]) -> Sweep:
    """Return the study that nested plain values describe."""
    for key in data:
        if key not in KEYS:
            raise SpecError(f"unknown key {key!r}; {nearest(key, KEYS)}", (key,))
    for key in ("policies", "instances", "shifts", "horizon"):
        if key not in data:
            raise SpecError(f"the key {key!r} is missing")
    if not isinstance(data.get("name", ""), str):
        raise SpecError(f"name={data['name']!r} must be a text", ("name",))
    settings: dict[str, Any] = {key: value for key, value in data.items() if key != "name"}
    for key, what in PARTS.items():
        settings[key] = _parts(key, what, data[key])
    if "noise" in data:
        settings["noise"] = _noise(data["noise"])
    for key in ("seeds", "checkpoints"):
        if key in data:
            if not isinstance(data[key], list):
                raise SpecError(f"{key}={data[key]!r} must be a list of whole numbers", (key,))
            settings[key] = tuple(data[key])
    return Sweep(**settings)


def _parts(key: str, what: str, data: Any) -> dict[str, Part]:
    if isinstance(data, list):
        _check_distinct(key, data, (key,))
        data = {str(kind): {"kind": kind} for kind in data}
    if not isinstance(data, Mapping):
        raise SpecError(f"{key} must be tables like [{key}.NAME], or a list of kinds", (key,))
    found: dict[str, Part] = {}
    for name, entry in data.items():
        found |= _expanded(name, what, entry, (key, name))
    return found


def _noise(data: Any) -> Part:
    entry = {"kind": data} if isinstance(data, str) else data
    if isinstance(entry, Mapping) and "grid" in entry:
        raise SpecError("noise takes no grid: a study has one noise", ("noise", "grid"))
    return next(iter(_expanded("noise", "noise", entry, ("noise",)).values()))


def _expanded(name: str, what: str, entry: Any, keys: tuple[str, ...]) -> dict[str, Part]:
    """Return one part, or one for each combination of a grid's values."""
    if not isinstance(entry, Mapping):
        raise SpecError(f"{what} {name!r} must be a table with a kind and settings", keys)
    kind = entry.get("kind", name)
    try:
        maker_of(what, KINDS[what], kind)
    except SettingError as error:
        raise SpecError(error, (*keys, "kind") if "kind" in entry else keys) from None
    settings = {key: value for key, value in entry.items() if key not in {"kind", "grid"}}
    grid = entry.get("grid", {})
    if not isinstance(grid, Mapping) or not all(
        isinstance(values, list) and values for values in grid.values()
    ):
        raise SpecError("grid must be a table of lists, e.g. grid = { scale = [1, 2] }", (*keys, "grid"))
    if not grid:
        return {name: Part(kind, settings, keys)}
    for setting, values in grid.items():
        _check_distinct(f"grid of {name!r}: {setting}", values, (*keys, setting))
    return {
        " ".join([name, *(f"{key}={value}" for key, value in zip(grid, values, strict=True))]): Part(
            kind, settings | dict(zip(grid, values, strict=True)), keys
        )
        for values in product(*grid.values())
    }


def _check_distinct(what: str, values: list[Any], keys: tuple[str, ...]) -> None:
    for place, value in enumerate(values):
        if value in values[:place]:
            raise SpecError(f"{what} has {value!r} twice; leave one out", keys)


def line_of(text: str, keys: tuple[str, ...]) -> int | None:
    r"""Return the line, from 1, on which the entry that `keys` lead to begins; its nearest parent's if none.

    Found by reading ever more lines: a statement begins after the last line up to which the text was
    valid. So every form that TOML allows is understood.

    Examples
    --------
    >>> line_of('a = 1\n[b]\nc = [\n  1]\n', ("b", "c"))
    3
    """
    while keys:
        # A setting may stand in the sub-table `grid`.
        for place in (keys, (*keys[:-1], "grid", keys[-1])):
            line = _line_of_entry(text.splitlines(), place)
            if line is not None:
                return line
        keys = keys[:-1]
    return None


def _line_of_entry(lines: list[str], keys: tuple[str, ...]) -> int | None:
    begin = 0
    for number in range(1, len(lines) + 1):
        try:
            data: Any = tomllib.loads("\n".join(lines[:number]))
        except tomllib.TOMLDecodeError:
            continue
        for key in keys:
            data = data.get(key) if isinstance(data, dict) else None
        if data is not None:
            return begin + 1
        begin = number
    return None
