"""Draws that anyone with the key can recompute: each is a keyed hash of the plan and the unit."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import blake2b
from secrets import token_hex

import numpy as np

from orthobandit._foundation.random import arms_at
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import ConflictError

PLAN = b"plan"
HOLDOUT = b"holdout"
ORDER = b"order"
OLD_KEY_DIGITS = 32  # digits of the keys of older experiments, which positions are made from without a salt
_STEP = 2.0**-53


def new_key() -> str:
    """Return a key, 64 hexadecimal digits, that nobody can guess."""
    return token_hex(32)


def salt_of(key: str, purpose: bytes, plan: int) -> str:
    """Return the secret (32 digits) behind all positions of one purpose under one plan.

    Whoever has it can compute those draws only: neither the key nor another plan's salt follows from it.

    Raises
    ------
    ConflictError
        If the key is one of an older experiment, whose draws have no salt.
    """
    if len(key) == OLD_KEY_DIGITS:
        raise ConflictError("the experiment has no salts, as its key has 32 digits; begin another")
    return blake2b(purpose + b"\0%d\0" % plan, key=bytes.fromhex(key), digest_size=16).hexdigest()


def positions(key: str, purpose: bytes, plan: int, names: Iterable[str]) -> Array:
    """Return a number in [0, 1) for every name (n,), a multiple of 2⁻⁵³.

    For anyone without the key they are independent and uniform, over all names, plans and purposes. With it,
    anyone can compute them again.

    Parameters
    ----------
    key : str
        The experiment's; no two experiments share one.
    purpose : bytes
    plan : int
        Number of the plan in force: no position is ever used under two plans.
    names : iterable of str
        The unit, or the number of the proposal.
    """
    return _numbers(_start(key, purpose, plan), names)


@lru_cache(maxsize=1024)
def _start(key: str, purpose: bytes, plan: int) -> blake2b:
    """Return the hash that every position begins with."""
    if len(key) == OLD_KEY_DIGITS:
        return blake2b(purpose + b"\0%d\0" % plan, key=bytes.fromhex(key), digest_size=8)
    return _salted(salt_of(key, purpose, plan))


def salted(salt: str, names: Iterable[str]) -> Array:
    """Return the positions (n,) of names by their salt.

    Examples
    --------
    >>> salted("00" * 16, ["=ann"])
    array([0.62124818])
    """
    return _numbers(_salted(salt), names)


def _salted(salt: str) -> blake2b:
    return blake2b(key=bytes.fromhex(salt), digest_size=8)


def _numbers(start: blake2b, names: Iterable[str]) -> Array:
    """Return a number in [0, 1) for each name: the first 53 bits of its keyed hash."""
    digests = []
    for name in names:
        one = start.copy()
        one.update(name.encode())
        digests.append(one.digest())
    if len(digests) == 1:  # the same number, by fewer steps
        return np.array([(int.from_bytes(digests[0]) >> 11) * _STEP])
    words = np.frombuffer(b"".join(digests), dtype=">u8").astype(np.uint64)
    return np.asarray((words >> np.uint64(11)).astype(np.float64) * _STEP)


def name_of(unit: str) -> str:
    """Return the text that a unit's position is hashed from; it never looks like a proposal's number."""
    return f"={unit}"


def names_of(units: Sequence[str | None], numbers: Whole, *, sticky: bool) -> list[str]:
    """Return the text that each proposal's position (n,) is hashed from: its unit, or its number."""
    if not sticky or not units:
        return [f"#{number}" for number in numbers.tolist()]
    return [
        f"#{number}" if unit is None else name_of(unit)
        for unit, number in zip(units, numbers.tolist(), strict=True)
    ]


def drawn(key: str, plan: int, cumulative: Array, names: Sequence[str]) -> Whole:
    """Return the arms (n,) drawn for these names under a plan.

    Parameters
    ----------
    key, plan, names
        As in :func:`positions`.
    cumulative : (K,) array
        Running sums of the distribution; see
        :func:`~orthobandit._foundation.random.cumulative_probabilities`.
    """
    return arms_at(cumulative, positions(key, PLAN, plan, names))


def drawn_each(key: str, plan: int, cumulative: Array, names: Sequence[str]) -> Whole:
    """Return the arms (n,) of names that have a distribution each: its running sums are a row of (n, K)."""
    at = positions(key, PLAN, plan, names)
    return np.asarray(np.sum(cumulative <= at[:, np.newaxis], axis=1), dtype=np.int64)


def held_out(key: str, share: float, names: Sequence[str]) -> Mask:
    """Return a mask (n,) of the names in the holdout; it does not depend on the plan in force."""
    if share <= 0:
        return np.zeros(len(names), dtype=np.bool_)
    return np.asarray(positions(key, HOLDOUT, 0, names) < share)
