"""A plan: the distribution over arms that is in force for a number of rounds."""

from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.compile import compiled
from orthobandit._foundation.json_arrays import brief, numbers_of, plain
from orthobandit._foundation.random import draw_arms
from orthobandit._foundation.types import Array
from orthobandit.errors import Argument, ParameterError, ProbabilityError, RewardError

TOLERANCE = 1e-9  # how far a sum of probabilities may be from one
MOST_ROUNDS = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Centre:
    """What is subtracted from a reward before it is tallied, and what is checked of it.

    The residual of arm a in a round with baseline forecast m is reward − clip(m) − values_a, itself
    clipped to ± `limit` (:func:`residual_of`). All of it is fixed before the arm is drawn.

    Attributes
    ----------
    values : (..., K) array
        The policy's estimate of each arm's reward, up to a common level.
    low, high : (...) arrays
        Forecasts are clipped to [low, high]; ±inf leaves them as they are.
    limit : float
        Residuals are clipped to ± this; +inf leaves them as they are.
    rewards : tuple of float
        A reward outside this range is refused.
    """

    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    limit: float = np.inf
    rewards: tuple[float, float] = (-np.inf, np.inf)

    __repr__ = brief

    def at(self, place: tuple[int, ...]) -> "Centre":
        """Return the centre of one replication."""
        return replace(self, values=self.values[place], low=self.low[place], high=self.high[place])

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly; ±inf, which JSON has not, as null."""
        return {
            "values": self.values.tolist(),
            "low": plain(self.low),
            "high": plain(self.high),
            "limit": plain(self.limit),
            "rewards": plain(self.rewards),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Centre":
        """Invert :meth:`to_json`."""
        low, high = (numbers_of(data[name], sign) for name, sign in (("low", -np.inf), ("high", np.inf)))
        least, most = data["rewards"]
        return cls(
            values=np.array(data["values"], dtype=np.float64),
            low=low,
            high=high,
            limit=float(numbers_of(data["limit"], np.inf)),
            rewards=(float(numbers_of(least, -np.inf)), float(numbers_of(most, np.inf))),
        )

    def residuals(
        self, arms: NDArray[np.int64], rewards: ArrayLike, forecasts: ArrayLike = 0.0
    ) -> NDArray[np.float64]:
        """Return what is tallied of the rounds (n,) of one replication; refuse rewards outside the range.

        Parameters
        ----------
        arms, rewards, forecasts : (n,) arrays
            The arm, the reward and the baseline forecast of each round.

        Examples
        --------
        >>> centre = Centre(np.array([0.0, -1.0]), np.array(0.0), np.array(5.0), limit=3.0)
        >>> centre.residuals(np.array([0, 1, 1]), [2.0, 2.0, 9.0], [-1.0, 1.0, 1.0]).tolist()
        [2.0, 2.0, 3.0]
        """
        given = np.asarray(rewards, dtype=np.float64)
        made = np.asarray(forecasts, dtype=np.float64)
        if made.shape != given.shape:
            if made.shape:
                raise ParameterError(
                    f"forecasts have shape {made.shape} for rewards of shape {given.shape}; one per round"
                )
            made = np.full(given.shape, made)
        bounds = (float(self.low), float(self.high))
        out = np.empty(given.size)
        flat = (given.ravel(), made.ravel(), self.values[arms].ravel())
        wrong = _fill_residuals(*flat, bounds, float(self.limit), self.rewards, out)
        if wrong >= 0:
            self._refuse(wrong, flat[0][wrong], flat[1][wrong])
        return out.reshape(given.shape)

    def _refuse(self, row: int, reward: float, forecast: float) -> NoReturn:
        """Say what is wrong with a round."""
        low, high = self.rewards
        if not low <= reward <= high:
            raise RewardError(
                f"rewards row {row} is {reward:g}, outside the declared range [{low:g}, {high:g}]; declare a"
                " range that holds all rewards"
            )
        raise ParameterError(f"forecasts row {row} is {forecast}; every forecast must be finite")


@dataclass(frozen=True, eq=False)
class Plan:
    """Draw arms independently from `probabilities` for `rounds` rounds.

    Parameters
    ----------
    probabilities : array-like (..., K)
        Non-negative, summing to one over the last axis. Never renormalised.
    rounds : array-like (...) of int
        How long the plan is in force; broadcast over the leading axes.
    centre : Centre, optional
        What to subtract from rewards before they are tallied; nothing by default.
    number : array-like (...) of int
        Which plan of its policy it is; rounds belong to a plan by its number, not by looking alike.
    rivals : array-like (..., K) of int, optional
        The arm that each is tested against by the plan's rounds, for policies that test so; −1 where the
        rounds are no evidence. Fixed before the draws, so that rounds that come late can still be counted.

    Examples
    --------
    >>> plan = Plan([0.5, 0.25, 0.25], rounds=100)
    >>> plan.count
    3
    >>> Plan([0.5, 0.6], rounds=1)
    Traceback (most recent call last):
    orthobandit.errors.ProbabilityError: probabilities sum to 1.1; they must sum to 1
    """

    probabilities: NDArray[np.float64]
    rounds: NDArray[np.int64]
    centre: Centre | None
    number: NDArray[np.int64]
    rivals: NDArray[np.int64] | None

    __repr__ = brief

    def __init__(
        self,
        probabilities: ArrayLike,
        rounds: ArrayLike,
        centre: Centre | None = None,
        number: ArrayLike = 0,
        rivals: ArrayLike | None = None,
    ) -> None:
        object.__setattr__(self, "centre", centre)
        object.__setattr__(self, "rivals", None if rivals is None else np.asarray(rivals, dtype=np.int64))
        checked = checked_probabilities(probabilities)
        object.__setattr__(self, "probabilities", checked)
        object.__setattr__(self, "rounds", _checked_whole("rounds", rounds, checked.shape[:-1]))
        object.__setattr__(self, "number", _checked_whole("number", number, checked.shape[:-1]))

    @property
    def count(self) -> int:
        """Number of arms K."""
        return int(self.probabilities.shape[-1])

    def at(self, place: tuple[int, ...]) -> "Plan":
        """Return the plan of one replication."""
        return Plan(
            self.probabilities[place],
            self.rounds[place],
            None if self.centre is None else self.centre.at(place),
            self.number[place],
            None if self.rivals is None else self.rivals[place],
        )

    def draw(self, random: np.random.Generator | int, count: int | None = None) -> NDArray[np.int64]:
        """Draw arms independently from a plan of one replication (`at` takes one out of a batch).

        Parameters
        ----------
        random : numpy.random.Generator or int
            Where chance comes from; a whole number is the seed of a new generator, which draws the same arms
            each time.
        count : int, optional
            How many arms; all `rounds` of the plan by default.

        Returns
        -------
        (count,) array of int
            Numbers of arms; one of probability 0 is never among them.

        Examples
        --------
        >>> Plan([0.5, 0.0, 0.5], rounds=8).draw(1)
        array([2, 2, 0, 2, 0, 0, 2, 0])
        """
        if self.probabilities.ndim != 1:
            raise ParameterError(
                f"the plan has a batch {self.probabilities.shape[:-1]}; draw from plan.at(place), one by one"
            )
        size = check_whole("count", int(self.rounds) if count is None else count, least=0)
        if isinstance(random, np.random.Generator):
            return draw_arms(random, self.probabilities, size)
        return draw_arms(
            np.random.default_rng(check_whole("random", random, least=0)), self.probabilities, size
        )

    @property
    def values(self) -> NDArray[np.float64]:
        """What the centre takes for each arm's reward (..., K), up to a common level; 0 without a centre."""
        return np.zeros_like(self.probabilities) if self.centre is None else self.centre.values

    def residuals(
        self, arms: NDArray[np.int64], rewards: ArrayLike, forecasts: ArrayLike = 0.0
    ) -> NDArray[np.float64]:
        """Return what is to be tallied of rounds (n,): as :meth:`Centre.residuals`, or rewards without one.

        Examples
        --------
        >>> Plan([0.5, 0.5], rounds=2).residuals(np.array([0, 1]), [2.0, 3.0]).tolist()
        [2.0, 3.0]
        """
        if self.centre is None:
            if np.any(np.asarray(forecasts) != 0):
                raise ParameterError("forecasts mean nothing to a plan without a centre; leave them out")
            return np.asarray(rewards, dtype=np.float64)
        return self.centre.residuals(arms, rewards, forecasts)

    def to_json(self) -> dict[str, Any]:
        """Return plain lists that survive ``json.dumps`` exactly."""
        return {
            "probabilities": self.probabilities.tolist(),
            "rounds": self.rounds.tolist(),
            "number": self.number.tolist(),
            "rivals": None if self.rivals is None else self.rivals.tolist(),
            "centre": None if self.centre is None else self.centre.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Plan":
        """Invert :meth:`to_json`."""
        centre = data["centre"]
        return cls(
            data["probabilities"],
            data["rounds"],
            None if centre is None else Centre.from_json(centre),
            data["number"],
            data["rivals"],
        )


@compiled
def residual_of(
    reward: float, forecast: float, value: float, bounds: tuple[float, float], limit: float
) -> float:
    """Return what is tallied of a reward, given the forecast of its round and the value of its arm."""
    level = min(max(forecast, bounds[0]), bounds[1])
    return min(max(reward - level - value, -limit), limit)


@compiled
def _fill_residuals(
    rewards: Array,
    forecasts: Array,
    values: Array,
    bounds: tuple[float, float],
    limit: float,
    declared: tuple[float, float],
    out: Array,
) -> int:
    """Fill `out` (n,); return the first round whose reward or forecast must be refused, −1 if none."""
    for i in range(rewards.size):
        if not declared[0] <= rewards[i] <= declared[1] or not np.isfinite(forecasts[i]):
            return i
        out[i] = residual_of(rewards[i], forecasts[i], values[i], bounds, limit)
    return -1


def checked_probabilities(probabilities: ArrayLike) -> NDArray[np.float64]:
    """Return a read-only copy (..., K) or raise :class:`ProbabilityError`."""
    try:
        array = np.array(probabilities).astype(np.float64, casting="same_kind")
    except (TypeError, ValueError):
        raise ProbabilityError(
            "probabilities are not a table of real numbers; give one probability per arm, (..., K)"
        ) from None
    if not array.ndim or not array.shape[-1]:
        raise ProbabilityError(f"probabilities have shape {array.shape}; (..., K) with K ≥ 1 is needed")
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ProbabilityError(
            f"probabilities{_place(place)} is {array[place]:g}; every probability must be a number ≥ 0"
        )
    total = array.sum(axis=-1)
    off = np.abs(total - 1) > TOLERANCE
    if off.any():
        place = tuple(int(i) for i in np.argwhere(off)[0])
        raise ProbabilityError(f"probabilities{_place(place)} sum to {total[place]:.12g}; they must sum to 1")
    array.flags.writeable = False
    return array


def _place(index: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, index))}]" if index else ""


def _checked_whole(name: str, given: ArrayLike, batch: tuple[int, ...]) -> NDArray[np.int64]:
    try:
        array = np.asarray(given)
    except ValueError:
        raise ParameterError(Argument(name, given), f" is ragged; it must fit the batch {batch}") from None
    if array.dtype.kind not in "iu" or np.any((array < 0) | (array > MOST_ROUNDS)):
        raise ParameterError(Argument(name, given), " must be whole numbers from 0 to 2⁶³ − 1")
    try:
        out = np.broadcast_to(array.astype(np.int64), batch).copy()
    except ValueError:
        raise ParameterError(f"{name} has shape {array.shape}; it must fit the batch {batch}") from None
    out.flags.writeable = False
    return out
