"""Points and exponents of the scaling checks, from their tables."""

import numpy as np
from numpy.typing import NDArray

from orthobandit.study.sections.base import Data
from orthobandit.study.sections.fits import Fit
from orthobandit.study.tables import Columns, distinct, grouped, where
from orthobandit.theory import regret_bound

Array = NDArray[np.float64]


def points(data: Data, key: str) -> tuple[Array, Array]:
    """Return x (n,) and y (n, runs) of one check."""
    if key in {"anchor", "centred"}:
        rounds, errors = grouped(where(data["errors"], design=key), "round", "error")
        return rounds.astype(float), errors
    runs = where(data["runs"], check=key)
    if key == "plans":
        horizons, plans = grouped(runs, "horizon", "plans")
        return horizons.astype(float), plans
    if key == "T":
        places = [horizon for (horizon,) in distinct(runs, "horizon")]
        return np.array(places, dtype=float), np.array([_worst(where(runs, horizon=T)) for T in places])
    places = [dimension for (dimension,) in distinct(runs, "dimension")]
    return np.array(places, dtype=float), np.array([_per_root(where(runs, dimension=d)) for d in places])


def signed(fit: Fit) -> str:
    """Return an exponent with its standard error."""
    return f"{fit.exponent:.3f} ± {fit.error:.3f}".replace("-", "−")


def bound_exponent(key: str, data: Data, delta: float) -> str:
    """Return the exponent that the theorem's bound itself has at the points of a check."""
    if key not in {"T", "d"}:
        return "–"
    runs = where(data["runs"], check=key)
    places = distinct(runs, "horizon" if key == "T" else "dimension")
    bounds = []
    for (place,) in places:
        here = where(runs, **{"horizon" if key == "T" else "dimension": place})
        # As the points are made: regret against T, or regret / √T averaged over T against d.
        logs = [
            np.log(regret_bound(T, delta, d, d + 1)) - (np.log(T) / 2 if key == "d" else 0.0)
            for T, d in distinct(here, "horizon", "dimension")
        ]
        bounds.append([float(np.exp(np.mean(logs)))])
    return f"{Fit.of(np.array(places, dtype=float)[:, 0], np.array(bounds)).exponent:.3f}"


def _worst(runs: Columns) -> Array:
    """Return the regret (runs,) at the gap where its mean is largest."""
    _, regret = grouped(runs, "gap", "regret")
    return np.asarray(regret[np.argmax(regret.mean(axis=1))])


def _per_root(runs: Columns) -> Array:
    """Return worst-case regret / √T (runs,), the geometric mean over horizons."""
    horizons = [horizon for (horizon,) in distinct(runs, "horizon")]
    ratios = [_worst(where(runs, horizon=T)) / np.sqrt(T) for T in horizons]
    return np.asarray(np.exp(np.mean(np.log(ratios), axis=0)))


def fits(data: Data) -> dict[str, Fit]:
    """Return the fitted power laws."""
    return {key: Fit.of(*points(data, key)) for key in ("T", "d", "anchor", "centred")}
