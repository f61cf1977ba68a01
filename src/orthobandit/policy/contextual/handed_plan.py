"""A personalised plan as data: whoever has it computes every visitor's distribution, to the last bit.

What is handed out is what planning reads: θ̂, V⁻¹, the radius and the features of the arms. Distributions
follow by additions, subtractions, multiplications, divisions, square roots and comparisons in one fixed
order. IEEE 754 fixes the result of each of them, so that another processor or another language that keeps to
the order (``service/client/edge.js``) has the same numbers, and no draw can differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array
from orthobandit.errors import ParameterError
from orthobandit.policy.contextual.offers import Interactions
from orthobandit.policy.contextual.regression import direct_into, scores_into


@compiled
def fill_shares(
    arms: Array,
    contexts: Array,
    scale: Array,
    theta: Array,
    inverse: Array,
    radius: float,
    explore: float,
    shares: Array,
) -> None:
    """Write the distribution of every visitor to `shares` (n, K).

    `arms` (K, f) and `contexts` (n, 1 + m), whose first column is 1, make features f_a ⊗ (1, z), which are
    taken times `scale` (d,), the units that θ̂ (d,) and V⁻¹ (d, d) are in.
    """
    count, effects = arms.shape
    columns = contexts.shape[1]
    scaled = np.empty((count, effects * columns))
    scores = np.empty(count)
    for visitor in range(contexts.shape[0]):
        for a in range(count):
            for j in range(effects):
                for c in range(columns):
                    k = j * columns + c
                    scaled[a, k] = arms[a, j] * contexts[visitor, c] * scale[k]
        scores_into(scaled, theta, scores)
        own = shares[visitor]
        direct_into(scaled, scores, inverse, radius, np.inf, own)
        for a in range(count):
            own[a] = (1.0 - explore) * own[a] + explore / count


@dataclass(frozen=True)
class HandedPlan:
    """What gives every visitor a distribution, as plain numbers.

    Attributes
    ----------
    arms : tuple of int
        Numbers of the arms that are offered.
    columns : tuple of str
        Of the context, in the order of the features.
    features : (K, f) nested tuples
        Of the offered arms; a visitor with context z has the features f_a ⊗ (1, z).
    scale : (d,) tuple
        Features are multiplied by it.
    theta : (d,) tuple
        θ̂, for scaled features.
    inverse : (d, d) nested tuples
        V⁻¹.
    radius : float
        β in units of rewards.
    explore : float
        Share of visitors who are drawn uniformly.

    Examples
    --------
    >>> plan = HandedPlan(
    ...     arms=(0, 1),
    ...     columns=("mobile",),
    ...     features=((0.0,), (1.0,)),
    ...     scale=(1.0, 1.0),
    ...     theta=(0.0, 0.4),
    ...     inverse=((0.1, 0.0), (0.0, 0.1)),
    ...     radius=1.0,
    ...     explore=0.1,
    ... )
    >>> plan.shares([{"mobile": 0.0}, {"mobile": 1.0}]).round(3).tolist()
    [[0.5, 0.5], [0.098, 0.902]]
    """

    arms: tuple[int, ...]
    columns: tuple[str, ...]
    features: tuple[tuple[float, ...], ...]
    scale: tuple[float, ...]
    theta: tuple[float, ...]
    inverse: tuple[tuple[float, ...], ...]
    radius: float
    explore: float

    def shares(self, contexts: Sequence[Mapping[str, float] | None]) -> Array:
        """Return the distributions (n, K) of visitors over the offered arms.

        Raises
        ------
        ParameterError
            If a column of the context is missing, or is no finite number.
        """
        table = np.array([self._row(context) for context in contexts]).reshape(len(contexts), -1)
        shares = np.empty((len(contexts), len(self.arms)))
        fill_shares(
            np.array(self.features),
            table,
            np.array(self.scale),
            np.array(self.theta),
            np.array(self.inverse),
            self.radius,
            self.explore,
            shares,
        )
        return shares

    def values(self, context: Mapping[str, float] | None) -> Array:
        """Return what each offered arm (K,) is estimated to earn of a visitor, up to the level."""
        crossed = np.outer(np.array(self.features), self._row(context)).reshape(len(self.arms), -1)
        return np.asarray(crossed @ (np.array(self.scale) * np.array(self.theta)))

    def _row(self, context: Mapping[str, float] | None) -> list[float]:
        given = context or {}
        return [1.0, *(Interactions.number(given, name) for name in self.columns)]

    def to_json(self) -> dict[str, Any]:
        """Return plain lists and numbers, which survive JSON exactly."""
        return {
            "arms": list(self.arms),
            "columns": list(self.columns),
            "features": [list(row) for row in self.features],
            "scale": list(self.scale),
            "theta": list(self.theta),
            "inverse": [list(row) for row in self.inverse],
            "radius": self.radius,
            "explore": self.explore,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "HandedPlan":
        """Invert :meth:`to_json`."""
        try:
            return cls(
                tuple(data["arms"]),
                tuple(data["columns"]),
                tuple(map(tuple, data["features"])),
                tuple(data["scale"]),
                tuple(data["theta"]),
                tuple(map(tuple, data["inverse"])),
                float(data["radius"]),
                float(data["explore"]),
            )
        except (LookupError, TypeError, ValueError) as error:
            raise ParameterError(f"a plan that was handed out cannot be read: {error!r}") from None
