"""A state as it is at one moment, taken in a blink and written out later, while the experiment goes on.

All of a state that changes in place is short, but for what waits for rewards: that is copied at once and
packed later.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from orthobandit._plain import packed

if TYPE_CHECKING:
    from orthobandit.experiment.ledger import Ledger


def pack(array: NDArray[Any]) -> dict[str, Any]:
    """Return a long array as it is kept."""
    return packed(array, compressed=True)


class Later:
    """A copy of an array, to be packed later."""

    def __init__(self, array: NDArray[Any]) -> None:
        self.array = array.copy()


def taken(ledger: "Ledger") -> dict[str, Any]:
    """Return the state of a ledger, which may change then; :func:`written_out` makes JSON of it."""
    picture = ledger.to_json(Later)
    for level in picture["levels"]:
        level["memory"] = deepcopy(level["memory"])  # a forecaster of somebody else may give what it works on
    return picture


def written_out(picture: Mapping[str, Any]) -> dict[str, Any]:
    """Return what :func:`taken` has taken, as :meth:`Ledger.to_json` would have returned it then.

    Examples
    --------
    >>> import numpy as np
    >>> picture = {"waiting": {"first": 1, "arms": Later(np.array([2]))}, "levels": []}
    >>> written_out(picture)["waiting"]["arms"]["shape"]
    [1]
    """
    return {
        **picture,
        "waiting": _packed(picture["waiting"]),
        "levels": [_packed(level) for level in picture["levels"]],
    }


def _packed(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: pack(one.array) if isinstance(one, Later) else one for name, one in parts.items()}
