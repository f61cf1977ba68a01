"""A round's offer: the features of the arms that are available to one visitor, and how to build them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError

# Products of two features and two rewards, which are summed, must stay finite.
MAX_FEATURE_MAGNITUDE = 1e50
NUMBER = f"a finite number of magnitude at most {MAX_FEATURE_MAGNITUDE:g}"
NOBODY: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Offer:
    """What one round offers: a row of features for each arm that is available to this visitor.

    Parameters
    ----------
    features : array-like (K_t, d)
        One row an available arm, finite; d is the same in all rounds of an experiment.
    labels : sequence of str, optional
        Names of the rows, all different; "0", "1", … by default.
    context : mapping of str to float, optional
        What is known of the visitor. Forecasts of the level may use it.

    Examples
    --------
    >>> offer = Offer([[0.0, 0.0], [1.0, 0.3]], labels=["as it is", "new"])
    >>> len(offer), offer.dimension
    (2, 2)
    """

    features: Array
    labels: tuple[str, ...] = ()
    context: Mapping[str, float] = field(default_factory=lambda: NOBODY)

    def __init__(
        self,
        features: ArrayLike,
        labels: Sequence[str] | None = None,
        context: Mapping[str, float] | None = None,
    ) -> None:
        try:
            rows = np.array(features, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"features of an offer are not a table of numbers: {error}") from None
        if rows.ndim != 2 or rows.shape[0] == 0 or rows.shape[1] == 0:
            raise ParameterError(
                f"features of an offer have shape {rows.shape}; one row an available arm is needed, and at"
                " least one arm and one feature"
            )
        names = tuple(str(number) for number in range(len(rows))) if labels is None else tuple(labels)
        if len(names) != len(rows):
            raise ParameterError(f"an offer has {len(names)} labels for {len(rows)} arms; give one an arm")
        if len(set(names)) < len(names):
            raise ParameterError(Argument("labels", names), " of an offer must all be different")
        bad = ~(np.abs(rows) <= MAX_FEATURE_MAGNITUDE)
        if bad.any():
            row, column = (int(place) for place in np.argwhere(bad)[0])
            raise ParameterError(
                f"features row {row} ({names[row]!r}) of an offer has {rows[row, column]} in column {column};"
                f" every feature must be {NUMBER}"
            )
        rows.flags.writeable = False
        object.__setattr__(self, "features", rows)
        object.__setattr__(self, "labels", names)
        object.__setattr__(self, "context", MappingProxyType(dict(context or {})))

    def __len__(self) -> int:
        return len(self.features)

    def __repr__(self) -> str:
        return f"Offer({len(self)} arms, {self.dimension} features)"

    @property
    def dimension(self) -> int:
        """The number of features d."""
        return int(self.features.shape[1])

    def index(self, label: str) -> int:
        """Return the row of an arm; an arm that is not offered is refused by name."""
        if label not in self.labels:
            raise ParameterError(
                f"{label!r} is not offered in this round; it offers {', '.join(self.labels)}"
            )
        return self.labels.index(label)


class Interactions:
    """Arms times context: how each arm's effect depends on who comes, in one line.

    The features of arm a for a visitor with context z are f_a ⊗ (1, z): an effect of its own for every
    feature of the arm, and a change of that effect with every column of the context. Labels alone stand for
    arms without features; the first is then the reference (control), whose features are all 0, and every
    other arm has one coefficient for itself and one for each column.

    Parameters
    ----------
    arms : ArmSet or sequence of str
        The arms, or their labels with the reference first.
    context : sequence of str
        Names of the columns that effects may depend on; empty if effects are the same for everybody.

    Attributes
    ----------
    names : tuple of str
        What each coefficient of θ stands for, e.g. ``"B"`` and ``"B × age"``.

    Examples
    --------
    >>> pages = Interactions(["A", "B", "C"], context=["mobile"])
    >>> pages.names
    ('B', 'B × mobile', 'C', 'C × mobile')
    >>> pages.offer({"mobile": 1.0}).features.tolist()
    [[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    """

    def __init__(self, arms: ArmSet | Sequence[str], context: Sequence[str] = ()) -> None:
        if isinstance(arms, ArmSet):
            self.labels = arms.labels
            self._arms = arms.features
            effects = [f"feature {column}" for column in range(arms.features.shape[1])]
        else:
            self.labels = tuple(arms)
            if len(self.labels) < 2 or len(set(self.labels)) < len(self.labels):
                raise ParameterError(Argument("arms", self.labels), " must be at least two different labels")
            self._arms = np.eye(len(self.labels))[:, 1:]
            effects = list(self.labels[1:])
        self.context = tuple(context)
        if len(set(self.context)) < len(self.context):
            raise ParameterError(Argument("context", self.context), " must be different names")
        self.names = tuple(
            effect if column is None else f"{effect} × {column}"
            for effect in effects
            for column in (None, *self.context)
        )

    def __repr__(self) -> str:
        return f"Interactions({len(self.labels)} arms, context={list(self.context)})"

    @property
    def dimension(self) -> int:
        """The number of features d."""
        return len(self.names)

    def offer(
        self, context: Mapping[str, float] | None = None, available: Iterable[str] | None = None
    ) -> Offer:
        """Return the offer for one visitor.

        Parameters
        ----------
        context : mapping of str to float
            A finite number for every column of the interactions; further ones are kept for forecasts.
        available : iterable of str, optional
            Labels of the arms that this visitor can get; all by default.
        """
        given = dict(context or {})
        row = np.array([[self.number(given, name) for name in self.context]])
        features = self.features(row)[0]
        if available is None:
            return Offer(features, self.labels, given)
        chosen = list(available)
        unknown = [label for label in chosen if label not in self.labels]
        if unknown:
            raise ParameterError(
                f"available arm {unknown[0]!r} is unknown; arms are {', '.join(self.labels)}"
            )
        if not chosen:
            raise ParameterError(
                "no arm is available in this round; offer at least one, or leave the round out"
            )
        places = [place for place, label in enumerate(self.labels) if label in chosen]
        return Offer(features[places], [self.labels[place] for place in places], given)

    def features(self, context: ArrayLike) -> Array:
        """Return features (n, K, d) for a table of contexts (n, m), columns in the order of `context`."""
        table = np.atleast_2d(np.asarray(context, dtype=np.float64))
        if table.shape[1:] != (len(self.context),):
            raise ParameterError(
                f"context has shape {table.shape}; {len(self.context)} columns are needed:"
                f" {', '.join(self.context)}"
            )
        whole = np.concatenate([np.ones((len(table), 1)), table], axis=1)
        crossed = self._arms[np.newaxis, :, :, np.newaxis] * whole[:, np.newaxis, np.newaxis, :]
        return np.asarray(crossed.reshape(len(table), len(self.labels), -1))

    @property
    def arm_features(self) -> Array:
        """The features (K, f) of the arms themselves, which are crossed with the context."""
        return self._arms

    @staticmethod
    def number(given: Mapping[str, float], name: str) -> float:
        """Return a column of a visitor's context; one that is missing or no finite number is refused."""
        if name not in given:
            raise ParameterError(
                f"context has no {name!r}, which effects depend on; it has {', '.join(given) or 'nothing'}"
            )
        try:
            value = float(given[name])
        except (TypeError, ValueError):
            raise ParameterError(f"context {name!r} is {given[name]!r}; it must be a number") from None
        if not abs(value) <= MAX_FEATURE_MAGNITUDE:
            raise ParameterError(f"context {name!r} is {value}; it must be {NUMBER}")
        return value
