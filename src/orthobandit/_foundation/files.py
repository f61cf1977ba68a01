"""Write files whole or not at all, and notice damaged ones."""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

from orthobandit.errors import Argument, FileFormatError, OutputError, ParameterError

UNFINISHED_SUFFIX = ".unfinished"  # how the names of files end that are not yet whole
ABANDONED_SECONDS = 600.0  # without a change, after which nobody works on an unfinished file
SEAL_KEY = "seal"  # the key under which a sealed file keeps the hash of all its other keys


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Yield a path beside `path` to write to; it takes the place of `path` when the block ends well.

    A reader sees the whole file or what was there before; a failure leaves nothing behind and raises
    :class:`OutputError`. Folders are made; links are followed; devices are written to directly. Unfinished
    files of a killed process are removed by the next process that writes to the folder.
    """
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target = target.resolve()
        if target.exists() and not (target.is_file() or target.is_dir()):
            yield target
            return
        _remove_leftovers(target.parent)
        unfinished = target.with_name(f".{target.name}.{uuid4().hex[:8]}{UNFINISHED_SUFFIX}")
        try:
            yield unfinished
            unfinished.replace(target)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror or error}") from None


@cache
def _remove_leftovers(folder: Path) -> None:
    """Remove unfinished files that nobody has written to for a while; looked for once in each folder."""
    for path in folder.glob(f".*{UNFINISHED_SUFFIX}"):
        # Another process may remove it first, and may not have the rights.
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED_SECONDS:
                path.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


def check_folder(name: str, path: str | Path) -> None:
    """Create the folder that an argument names, to check before long work that it can be written to."""
    given = Argument(name, str(path))
    folder = Path(path)
    if not str(path):
        raise ParameterError(given, " is empty; name a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(given, f" cannot be created: {error.strerror or error}") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ParameterError(given, " cannot be written to; choose another or change its permissions")


def write_sealed(path: Path, data: dict[str, Any]) -> None:
    """Write plain values as JSON with a hash by which :func:`read_sealed` notices damage."""
    write_text(path, json.dumps(data | {SEAL_KEY: _seal(data)}, allow_nan=False))


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what :func:`write_sealed` wrote; :class:`FileFormatError` if a single character differs.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise FileFormatError(f"{path} cannot be read: {error}") from None
    if not isinstance(data, dict) or data.pop(SEAL_KEY, None) != _seal(data):
        raise FileFormatError(f"{path} has changed since it was written")
    return data


def _seal(data: dict[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True, allow_nan=False)
    return blake2b(text.encode(), digest_size=16).hexdigest()
