"""What a user may ask of a contrast design, checked and brought to common coordinates."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit._affine import AffineFrame, affine_frame
from orthobandit._types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.design._contrasts import AllPairs, Contrasts, Listed
from orthobandit.errors import ParameterError


def support_mask(arms: ArmSet, support: ArrayLike | None) -> Mask:
    """Return which arms (K,) may be played."""
    count = len(arms)
    if support is None:
        return np.ones(count, dtype=np.bool_)
    given = np.asarray(support)
    if given.dtype == np.bool_ and given.shape == (count,):
        mask = given.copy()
    elif given.dtype.kind in "iu" and given.ndim == 1 and np.all((given >= 0) & (given < count)):
        mask = np.zeros(count, dtype=np.bool_)
        mask[given] = True
    else:
        raise ParameterError(f"support must be a mask of {count} booleans or arm numbers 0 to {count - 1}")
    if not mask.any():
        raise ParameterError("support is empty; at least one arm must be played")
    return mask


def contrast_set(
    arms: ArmSet,
    contrasts: ArrayLike | None,
    weights: ArrayLike | None,
    reference: int | None,
    allowed: Mask,
) -> tuple[Array, Contrasts] | None:
    """Return all arms (K, r) and the contrasts in the same coordinates, or None if all contrasts are zero."""
    features = arms.features
    if contrasts is not None and reference is not None:
        raise ParameterError("give contrasts or reference, not both")
    everywhere = bool(allowed.all())
    frame = arms.frame if everywhere else affine_frame(features[allowed])
    if contrasts is None and not everywhere:
        _require_range(frame, features[allowed], features - features[allowed][0], "arm")
    rows = frame.coordinates(features)
    if contrasts is None and reference is None:
        if weights is not None:
            raise ParameterError("weights need contrasts or a reference to belong to")
        return (rows, AllPairs(rows)) if frame.dimension else None
    if reference is not None:
        listed = rows - rows[reference]
    else:
        listed = _listed(frame, features, rows, np.asarray(contrasts), allowed)
    scaled = listed * np.sqrt(_checked_weights(weights, len(listed)))[:, np.newaxis]
    scaled = scaled[np.any(scaled != 0, axis=1)]
    return (rows, Listed(scaled)) if len(scaled) else None


def _listed(
    frame: AffineFrame, features: Array, rows: Array, given: NDArray[np.generic], allowed: Mask
) -> Array:
    count, width = features.shape
    if given.ndim == 2 and not len(given):
        raise ParameterError("contrasts are empty; give at least one, or None for all pairs")
    if given.dtype.kind in "iu" and given.ndim == 2 and given.shape[1] == 2:
        pairs = given.astype(np.int64)
        if np.any((pairs < 0) | (pairs >= count)):
            raise ParameterError(f"contrasts name an arm outside 0 to {count - 1}")
        first, second = pairs[:, 0], pairs[:, 1]
        if not allowed.all():
            _require_range(frame, features[allowed], features[first] - features[second], "contrast")
        return np.asarray(rows[first] - rows[second])
    if given.dtype.kind != "f" or given.ndim != 2 or given.shape[1] != width:
        raise ParameterError(
            f"contrasts have shape {given.shape} and type {given.dtype}; pairs of arms (m, 2) of int or"
            f" difference vectors (m, {width}) of float are needed"
        )
    vectors = given.astype(np.float64)
    if not np.all(np.isfinite(vectors)):
        raise ParameterError("contrasts have a non-finite entry")
    _require_range(frame, features[allowed], vectors, "contrast")
    return replace(frame, origin=np.zeros(width)).coordinates(vectors)


def _require_range(frame: AffineFrame, played: Array, differences: Array, what: str) -> None:
    """Refuse differences that the played arms cannot estimate."""
    spread = played - played[0]
    together = affine_frame(np.concatenate([spread, differences]), through_zero=True)
    if together.dimension == frame.dimension:
        return
    for row, difference in enumerate(differences):
        if affine_frame(np.vstack([spread, difference]), through_zero=True).dimension > frame.dimension:
            raise ParameterError(
                f"{what} {row} lies outside what the playable arms span, so no design estimates it;"
                " allow more arms or leave it out"
            )


def _checked_weights(weights: ArrayLike | None, count: int) -> Array:
    if weights is None:
        return np.ones(count)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (count,):
        raise ParameterError(
            f"weights have shape {array.shape}; one for each of the {count} contrasts is needed"
        )
    if not np.all(np.isfinite(array) & (array >= 0)):
        raise ParameterError("weights must be finite and not negative")
    return array
