"""Policies, instances, shifts and noise from a kind and plain settings, as a spec gives them."""

from collections.abc import Callable, Mapping
from typing import Any

from orthobandit._named import SettingError, make_named
from orthobandit.errors import SpecError
from orthobandit.policy import POLICIES
from orthobandit.simulation import INSTANCES, NOISES, SHIFTS

Maker = Callable[..., Any]

KINDS: Mapping[str, Mapping[str, Maker]] = {
    "policy": POLICIES,
    "instance": INSTANCES,
    "shift": SHIFTS,
    "noise": NOISES,
}

# Settings of an instance that a study gives by other means.
ELSEWHERE = {"shift", "noise"}


def make(what: str, kind: str, settings: Mapping[str, Any], keys: tuple[str, ...] = ()) -> Any:
    """Build one thing; :class:`SpecError` says which entry is wrong and what it should be.

    Parameters
    ----------
    what : {"policy", "instance", "shift", "noise"}
    kind : str
        A name of that catalogue.
    settings : dict
        Keyword arguments; lists stand for tuples.
    keys : tuple of str
        Where the settings stand in the spec.

    Examples
    --------
    >>> make("policy", "sbe", {"delta": 0.1}).delta
    0.1
    """
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    try:
        return make_named(what, KINDS[what], kind, plain, hidden=ELSEWHERE)
    except SettingError as error:
        raise SpecError(str(error), (*keys, error.key) if error.key else keys) from None
