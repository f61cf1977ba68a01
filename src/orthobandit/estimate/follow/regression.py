"""Point estimates of gaps: least squares over all plans, each with a level of its own.

A contrast that is estimated pair by pair makes nothing of the rounds of other arms. Least squares does:
B − A is also (B − C) − (A − C). With n_a the rounds of arm a under one plan, N their
number, and s_a the sum of their residuals,

    L = Σ_plans (diag n − n·nᵀ/N),    b = Σ_plans (s − n·Σs/N),    x̂ = L⁺b.

Within a plan all arms are compared at one level, so a level that moves between plans moves no estimate. Under
one plan x̂ are the differences of the arms' means. Intervals do not rest on these estimates: they have their
own sums, and an estimate outside its interval is moved to the nearest end.
"""

from collections.abc import Container, Mapping
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.estimate import Tally

NULL = 1e-10  # eigenvalues below this share of the largest are 0 but for rounding
UNTOLD = 1e-6  # part of a contrast in directions that no plan told of, above which it has no estimate


class CentredRegression:
    """L and b of K arms, which grow in place.

    Rounds of a plan may come in many parts. Its sums are kept apart until it is closed, so that estimates do
    not depend on the parts.

    Parameters
    ----------
    count : int
        Number of arms.
    """

    def __init__(self, count: int) -> None:
        self._information = np.zeros((count, count))
        self._moment = np.zeros(count)
        self._open: dict[int, Array] = {}  # counts and sums (2, K) of plans that may get more rounds

    def add(self, number: int, tally: Tally) -> None:
        """Add rounds of the plan with this number."""
        before = self._open.get(number, 0.0)
        self._open[number] = before + np.stack([tally.counts, tally.sums])

    def close(self, in_use: Container[int]) -> None:
        """Centre the sums of all plans but those in use."""
        for number in [number for number in self._open if number not in in_use]:
            information, moment = _centred(self._open.pop(number))
            self._information += information
            self._moment += moment

    def copy(self) -> "CentredRegression":
        """Return sums that can grow by themselves."""
        return self.extended(0)

    def gaps(self, arms: ArmSet, reference: int) -> tuple[Array, Mask]:
        """Return each arm's gap (K,) to the reference arm, and whether the rounds so far tell of it.

        Where arms share features, gaps are linear in these.
        """
        information = self._information.copy()
        moment = self._moment.copy()
        for sums in self._open.values():
            more = _centred(sums)
            information += more[0]
            moment += more[1]
        positions = arms.positions
        contrasts = positions - positions[reference]
        values, vectors = np.linalg.eigh(positions.T @ information @ positions)
        is_told = values > NULL * max(float(values[-1]), 0.0) if len(values) else values > 0
        inverse = np.divide(1.0, values, out=np.zeros(len(values)), where=is_told)
        slope = vectors @ (inverse * (vectors.T @ (positions.T @ moment)))
        untold = np.abs(contrasts @ vectors[:, ~is_told]).sum(axis=1)
        return contrasts @ slope, untold <= UNTOLD * np.sqrt((contrasts**2).sum(axis=1))

    def extended(self, new: int) -> "CentredRegression":
        """Return the sums with `new` more arms."""
        out = CentredRegression(len(self._moment) + new)
        out._information = np.pad(self._information, (0, new))
        out._moment = np.pad(self._moment, (0, new))
        out._open = {number: np.pad(sums, ((0, 0), (0, new))) for number, sums in self._open.items()}
        return out

    def to_json(self) -> dict[str, Any]:
        """Return plain lists."""
        return {
            "information": self._information.tolist(),
            "moment": self._moment.tolist(),
            "open": {str(number): sums.tolist() for number, sums in self._open.items()},
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CentredRegression":
        """Invert :meth:`to_json`."""
        out = cls(len(data["moment"]))
        out._information[...] = data["information"]
        out._moment[...] = data["moment"]
        out._open = {int(number): np.array(sums) for number, sums in data["open"].items()}
        return out


def _centred(sums: Array) -> tuple[Array, Array]:
    """Return the terms of L (K, K) and b (K,) of one plan, from counts and sums (2, K)."""
    counts, totals = sums
    share = counts / max(counts.sum(), 1.0)
    return np.diag(counts) - np.outer(counts, share), totals - share * totals.sum()
