"""Snapshots: a state frozen quickly at one moment and written out later, while the experiment goes on.

The long part of a state is its open proposals. Their rows are written once and later removed, never changed,
except for the rewards, which are copied. So the rows can be packed later, from where they are.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from orthobandit._foundation.json_arrays import packed

if TYPE_CHECKING:
    from orthobandit.experiment.ledger.ledger import Ledger

# Entries after which a snapshot is stored, so that opening need not start at the first; later, a tenth.
SNAPSHOT_ENTRIES = 2_000


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Return a long array in its stored form."""
    return packed(array, compressed=True)


@dataclass(frozen=True, eq=False)
class Later:
    """An array that will not change, to be packed later."""

    array: NDArray[Any]


def is_snapshot_due(newest: int, kept: int) -> bool:
    """Tell whether to store a snapshot, given the newest entry and that of the last snapshot.

    Examples
    --------
    >>> is_snapshot_due(2_000, 0), is_snapshot_due(51_999, 50_000), is_snapshot_due(55_600, 50_000)
    (True, False, True)
    """
    return newest - kept >= max(SNAPSHOT_ENTRIES, newest // 10)


def take_snapshot(ledger: "Ledger") -> dict[str, Any]:
    """Freeze the state of a ledger, which may change afterwards; :func:`write_out` turns it into JSON."""
    taken = ledger.to_json(Later)
    for level in taken["levels"]:
        level["memory"] = deepcopy(level["memory"])  # a forecaster of somebody else may give what it works on
    return taken


def write_out(taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return a snapshot in the form that :meth:`Ledger.to_json` had when it was taken.

    Examples
    --------
    >>> import numpy as np
    >>> taken = {"waiting": {"first": 1, "arms": Later(np.array([2]))}, "levels": []}
    >>> write_out(taken)["waiting"]["arms"]["shape"]
    [1]
    """
    return {
        **taken,
        "waiting": _packed(taken["waiting"]),
        "levels": [_packed(level) for level in taken["levels"]],
    }


def _packed(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: pack(one.array) if isinstance(one, Later) else one for name, one in parts.items()}
