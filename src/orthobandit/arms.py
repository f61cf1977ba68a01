"""Arms: what can be played, each described by a feature vector and a label."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.affine import AffineFrame, affine_frame
from orthobandit._foundation.arm_files import arms_in, number_of, read_table, row_name, warn_of_twins
from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.frames import columns_of, is_frame
from orthobandit._foundation.types import Array
from orthobandit.errors import Argument, FeatureError, LabelError, ParameterError

MOST_ONE_HOT = 20_000  # arms, whose features fill 3 GiB
MAX_MAGNITUDE = 1e150  # squares of features must stay finite


class ArmSet:
    """The arms of an experiment.

    Parameters
    ----------
    features : array-like (K, d)
        One row per arm, of magnitude at most 1e150; a column that varies by less than 1e-150 counts as
        constant. Copied (unless it is already a read-only float64 array) and made read-only. A frame of
        pandas, polars or pyarrow is taken as by :meth:`from_frame`.
    labels : sequence of str, optional
        One distinct name per arm; by default those of a frame, else ``"0"``, ``"1"``, …

    Examples
    --------
    >>> arms = ArmSet([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], labels=["red", "green", "blue"])
    >>> len(arms), arms.dimension
    (3, 1)
    >>> arms.index("blue")
    2
    """

    def __init__(self, features: ArrayLike | Any, labels: Sequence[str] | None = None) -> None:
        if not isinstance(features, np.ndarray) and is_frame(features):
            table, index = columns_of(features)
            # Labels that are given leave every column a feature.
            features, named = arms_in(
                "the frame", table, None, None if labels is None else list(table), index
            )
            labels = named if labels is None else labels
        self._features = _checked_features(features, labels)
        self._given = None if labels is None else _checked_labels(labels, len(self._features))

    @classmethod
    def one_hot(cls, count: int, labels: Sequence[str] | None = None) -> "ArmSet":
        """Arms without shared features: row i is the i-th unit vector, the plain multi-armed bandit.

        Examples
        --------
        >>> ArmSet.one_hot(3).dimension
        2
        """
        check_whole("count", count)
        if count > MOST_ONE_HOT:
            raise ParameterError(
                Argument("count", count),
                " is too many: one-hot features of K arms are K × K numbers, here"
                f" {8 * count**2 / 2**30:,.0f} GiB; describe the arms by shared features, or use at most"
                f" {MOST_ONE_HOT:,}",
            )
        arms = cls(np.eye(count), labels)
        arms.__dict__["frame"] = _one_hot_frame(count)
        return arms

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        label: str | None = None,
        features: Sequence[str] | None = None,
    ) -> "ArmSet":
        """Read arms from a CSV, TSV or Parquet file, one row per arm.

        Parameters
        ----------
        path : str or Path
            Ends in ``.csv``, ``.tsv`` or ``.parquet``. Text files start with a header line.
        label : str, optional
            The column of labels. By default a column called ``label``, ``arm`` or ``name``, else the
            first column without a single number, else none.
        features : sequence of str, optional
            The feature columns, in this order. By default every column but the labels.
        """
        found, labels = arms_in(path, read_table(Path(path)), label, features)
        arms = cls(found, labels)
        warn_of_twins(path, arms.features, arms.labels)
        return arms

    @classmethod
    def from_frame(
        cls, frame: object, *, label: str | None = None, features: Sequence[str] | None = None
    ) -> "ArmSet":
        """Take arms from a frame of pandas, polars or pyarrow, one row per arm; ``ArmSet(frame)`` does too.

        Parameters
        ----------
        frame : DataFrame or Table
        label : str, optional
            The column of labels. By default the index of a frame of pandas if it is more than row numbers,
            else a column as in :meth:`read`.
        features : sequence of str, optional
            The feature columns, in this order. By default every column but the labels.

        Examples
        --------
        >>> import pyarrow
        >>> pages = pyarrow.table({"page": ["plain", "sale"], "price": [10.0, 8.0], "video": [0, 1]})
        >>> ArmSet.from_frame(pages, features=["video"]).labels
        ('plain', 'sale')
        """
        if not is_frame(frame):
            raise ParameterError(
                f"frame is a {type(frame).__name__}; give a DataFrame of pandas or polars, or a pyarrow Table"
            )
        table, index = columns_of(frame)
        found, labels = arms_in("the frame", table, label, features, index)
        arms = cls(found, labels)
        warn_of_twins("the frame", arms.features, arms.labels)
        return arms

    @property
    def features(self) -> Array:
        """Feature vectors (K, d), read-only."""
        return self._features

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One name an arm."""
        # Made when they are asked for: a million numbers as text weigh more than two features.
        return tuple(map(str, range(len(self)))) if self._given is None else self._given

    def __len__(self) -> int:
        return len(self._features)

    def identity(self) -> tuple[Array, tuple[str, ...]]:
        """Return what tells these arms from others: features and labels."""
        return self.features, self.labels

    def __repr__(self) -> str:
        return f"ArmSet({len(self)} arms, {self._features.shape[1]} features, dimension {self.dimension})"

    @cached_property
    def frame(self) -> AffineFrame:
        """Coordinates on the affine hull of the arms; the same for the same features, however they came."""
        count, width = self._features.shape
        if count == width > 1 and np.array_equal(self._features, np.eye(count)):
            return _one_hot_frame(count)
        return affine_frame(self._features)

    @property
    def dimension(self) -> int:
        """Affine dimension r, the rank of the differences x_i − x_1, decided without units."""
        return self.frame.dimension

    @cached_property
    def positions(self) -> Array:
        """Where the arms lie in their hull, (K, r) differences to one of them in the orthonormal basis."""
        positions = np.asarray((self._features - self.frame.origin) @ self.basis.T)
        positions.flags.writeable = False
        return positions

    @property
    def basis(self) -> Array:
        """Orthonormal rows (r, d) that span all differences between arms.

        The dimension does not depend on units, but orthonormal means so in the units given: if r < d,
        columns in units 10¹² times coarser than others leave the latter few correct digits here.
        """
        return self.frame.directions

    def index(self, label: str) -> int:
        """Return the position of the arm called `label`."""
        try:
            return self.labels.index(label)
        except ValueError:
            raise LabelError(
                Argument("label", label), f" is not an arm; the arms are {_listed(self.labels)}"
            ) from None

    def subset(self, kept: ArrayLike) -> "ArmSet":
        """Return the arms at the given positions (or where a (K,) mask is true), in this order."""
        try:
            chosen = np.atleast_1d(np.arange(len(self))[np.asarray(kept)])
        except IndexError:
            chosen = np.empty(0, dtype=np.int64)
        if chosen.ndim != 1 or not chosen.size:
            raise ParameterError(
                Argument("kept", kept),
                f" selects no arms; give positions from 0 to {len(self) - 1} or a mask of {len(self)}",
            )
        names = map(str, chosen.tolist()) if self._given is None else (self._given[i] for i in chosen)
        return ArmSet(self._features[chosen], list(names))


def check_arms(arms: object) -> None:
    """Raise `ParameterError` for features that stand where an :class:`ArmSet` should."""
    if not isinstance(arms, ArmSet):
        raise ParameterError(f"arms is a {type(arms).__name__}; wrap the features in ArmSet(...)")


def _one_hot_frame(count: int) -> AffineFrame:
    origin = np.eye(count)[0]
    transform = np.eye(count)[:, 1:]
    # Rows of the Helmert matrix: orthonormal, and each orthogonal to the vector of ones.
    steps = np.arange(1, count)
    helmert = np.tril(np.ones((count - 1, count)))
    helmert[np.arange(count - 1), steps] = -steps
    directions = helmert / np.sqrt(steps * (steps + 1.0))[:, np.newaxis]
    return AffineFrame(origin, directions, transform, is_delicate=False)


def _checked_features(features: ArrayLike, labels: Sequence[str] | None) -> Array:
    try:
        given = np.asarray(features)
        if np.iscomplexobj(given):
            raise FeatureError("features are complex; every feature must be a real number")
        array = np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        if isinstance(error, FeatureError):
            raise
        raise FeatureError(_not_a_table(features, labels)) from None
    if array.ndim != 2 or given.ndim != 2:
        raise FeatureError(f"features have shape {given.shape}; a table (K, d) is needed, one row per arm")
    if not array.size:
        raise FeatureError(f"features have shape {array.shape}; at least one arm and one feature are needed")
    if not (array.max() <= MAX_MAGNITUDE and array.min() >= -MAX_MAGNITUDE):
        _refuse_extreme(array, labels)
    if np.may_share_memory(array, given) and given.flags.writeable and not isinstance(features, list | tuple):
        array = array.copy()
    array.flags.writeable = False
    return array


def _refuse_extreme(array: Array, labels: Sequence[str] | None) -> NoReturn:
    """Raise :class:`FeatureError` for the first feature that is not finite or is too large; there is one."""
    row, column = (int(i) for i in np.argwhere(~(np.abs(array) <= MAX_MAGNITUDE))[0])
    value = array[row, column]
    kind = "a non-finite value" if not np.isfinite(value) else f"the value {value:g}"
    raise FeatureError(
        f"features {row_name(row, labels)} has {kind} in column {column}; every feature must be a finite"
        f" number of magnitude at most {MAX_MAGNITUDE:g}"
    )


def _not_a_table(features: ArrayLike, labels: Sequence[str] | None) -> str:
    """Say which row keeps `features` from being a table of numbers."""
    rows = list(features) if isinstance(features, Sequence | np.ndarray) else []
    for row, entries in enumerate(rows):
        name = row_name(row, labels)
        if isinstance(entries, str) or not isinstance(entries, Sequence | np.ndarray):
            return f"features {name} is {entries!r}; every arm needs a row of finite numbers"
        if len(entries) != len(rows[0]):
            return (
                f"features {name} has {len(entries)} entries but row 0 has {len(rows[0])};"
                " every arm needs the same number of features"
            )
        for column, value in enumerate(entries):
            if number_of(value) is None:
                return (
                    f"features {name} has {value!s} in column {column}; every feature must be a finite number"
                )
    return "features are not a table of numbers; every arm needs a row of finite numbers"


def _checked_labels(labels: Sequence[str], count: int) -> tuple[str, ...]:
    if isinstance(labels, str):
        raise LabelError(Argument("labels", labels), " is one string; give a list with one label per arm")
    given: tuple[Any, ...] = tuple(labels)
    if None in given:
        raise LabelError(f"labels row {given.index(None)} is None; every arm needs a name of its own")
    names = tuple(str(label) for label in given)
    for row, name in enumerate(names):
        if not name.strip():
            raise LabelError(f"labels row {row} is empty; every arm needs a name of its own")
    if len(names) != count:
        raise LabelError(f"labels has {len(names)} entries for {count} arms; give one label per arm")
    if len(set(names)) < count:
        first: dict[str, int] = {}
        for row, name in enumerate(names):
            if name in first:
                raise LabelError(
                    f'labels rows {first[name]} and {row} are both "{name}"; every arm needs its own label'
                )
            first[name] = row
    return names


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)} in all)"
