"""A state as it is at one moment, taken in a blink and written out later, while the experiment goes on.

What is long in a state is what waits for rewards. It is written once and then only taken away, but for the
rewards themselves, of which a copy is made; so that it can be packed later, from where it is.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from orthobandit._foundation.json_arrays import packed

if TYPE_CHECKING:
    from orthobandit.experiment.ledger.ledger import Ledger


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Return a long array as it is kept."""
    return packed(array, compressed=True)


@dataclass(frozen=True, eq=False)
class Later:
    """An array that stays as it is, to be packed later."""

    array: NDArray[Any]


def take_snapshot(ledger: "Ledger") -> dict[str, Any]:
    """Return the state of a ledger, which may change then; :func:`write_out` makes JSON of it."""
    picture = ledger.to_json(Later)
    for level in picture["levels"]:
        level["memory"] = deepcopy(level["memory"])  # a forecaster of somebody else may give what it works on
    return picture


def write_out(picture: Mapping[str, Any]) -> dict[str, Any]:
    """Return a taken snapshot as :meth:`Ledger.to_json` would have returned it then.

    Examples
    --------
    >>> import numpy as np
    >>> picture = {"waiting": {"first": 1, "arms": Later(np.array([2]))}, "levels": []}
    >>> write_out(picture)["waiting"]["arms"]["shape"]
    [1]
    """
    return {
        **picture,
        "waiting": _packed(picture["waiting"]),
        "levels": [_packed(level) for level in picture["levels"]],
    }


def _packed(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: pack(one.array) if isinstance(one, Later) else one for name, one in parts.items()}
