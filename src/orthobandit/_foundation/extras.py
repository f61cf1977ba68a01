"""Optional packages: import what an extra brings, or say how to install it."""

from importlib import import_module
from typing import Any

from orthobandit.errors import MissingExtraError


def optional_package(name: str, extra: str, what: str) -> Any:
    """Import a package that comes with an extra; :class:`MissingExtraError` says how to install it.

    Parameters
    ----------
    name : str
        The module, e.g. ``"pyarrow.parquet"``.
    extra : str
        The extra of this package that brings it.
    what : str
        What needs it, to begin the message.
    """
    try:
        return import_module(name)
    except ImportError as error:
        top = name.partition(".")[0]
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == top
        cause = "" if is_missing else f", which cannot be imported ({error})"
        raise MissingExtraError(
            f"{what} needs {top}{cause}; install it with `pip install '.[{extra}]'` in orthobandit's folder"
        ) from None


def pyarrow() -> tuple[Any, Any]:
    """Return pyarrow and its Parquet module."""
    return optional_package("pyarrow", "parquet", "Parquet"), optional_package(
        "pyarrow.parquet", "parquet", "Parquet"
    )
