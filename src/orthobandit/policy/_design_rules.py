"""Design rules of policies: by name or as a function, applied to the arms that are left."""

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_choice, check_fits
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.design import DESIGNS, Design, contrast_design
from orthobandit.errors import ParameterError, ProbabilityError
from orthobandit.estimate.plan import checked_probabilities


class HasProbabilities(Protocol):
    """What a design rule returns, e.g. a :class:`~orthobandit.design.base.Design`."""

    @property
    def probabilities(self) -> ArrayLike:
        """One probability an arm, (K,)."""
        ...


DesignRule = Callable[[ArmSet], HasProbabilities]

# The G-optimal design is for a baseline that stands still: it need not tell arms apart under another.
NAMED: dict[str, DesignRule] = {name: rule for name, rule in DESIGNS.items() if name != "g-optimal"}


def check_design(design: str | DesignRule) -> None:
    """Raise :class:`ParameterError` unless `design` is a known name or callable."""
    if not callable(design):
        check_choice("design", design, NAMED)


def design_on(design: str | DesignRule, arms: ArmSet) -> Array:
    """Return the probabilities (K,) that a design rule gives to these arms.

    The first arm is the reference of an anchor design.
    """
    result = (NAMED[design] if isinstance(design, str) else design)(arms)
    if not hasattr(result, "probabilities"):
        raise ParameterError(
            f"design={design!r} returned {type(result).__name__}; an object with `probabilities` is needed"
        )
    chosen = checked_probabilities(result.probabilities)
    if chosen.shape != (len(arms),):
        raise ProbabilityError(
            f"design={design!r} returned probabilities of shape {chosen.shape} for {len(arms)} arms"
        )
    return chosen


def pairs_of(left: Mask) -> Whole:
    """Return all pairs (m, 2) of the arms that are left (K,)."""
    chosen = np.flatnonzero(left)
    check_fits(
        f"a design for all pairs of {len(chosen):,} arms",
        16.0 * float(len(chosen)) ** 2,
        "AnytimeElimination plans for pairs with its leader alone",
    )
    first, second = np.triu_indices(len(chosen), 1)
    return np.column_stack([chosen[first], chosen[second]])


def pair_design(arms: ArmSet, left: Mask) -> Design:
    """Return the contrast design, over all arms, of all pairs of those that are left (K,)."""
    return _pair_design(arms, b"" if left.all() else left.tobytes())


@lru_cache(maxsize=64)
def _pair_design(arms: ArmSet, mask: bytes) -> Design:
    # Kept, because replications that have lost the same arms ask for it again.
    return contrast_design(arms, pairs_of(np.frombuffer(mask, dtype=np.bool_)) if mask else None)


def point_mass(arms: Whole, count: int) -> Array:
    """Return the distributions (..., count) that always play the given arms (...)."""
    return np.asarray(arms[..., np.newaxis] == np.arange(count), dtype=np.float64)
