"""Policies, instances, shifts and noise from a kind and plain settings, as a spec gives them."""

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

from orthobandit.errors import InputError, SpecError
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


def nearest(name: object, valid: Any) -> str:
    """Return what to say about an unknown name: the nearest valid one, or all of them."""
    names = sorted(valid)
    near = get_close_matches(str(name).lower(), names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"the names are {', '.join(names)}" if names else "there are none"


def settings_of(what: str, kind: str) -> dict[str, inspect.Parameter]:
    """Return the settings that a kind of thing takes."""
    parameters = inspect.signature(KINDS[what][kind]).parameters
    return {name: value for name, value in parameters.items() if name not in ELSEWHERE}


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
    if kind not in KINDS[what]:
        raise SpecError(f"unknown {what} {kind!r}; {nearest(kind, KINDS[what])}", (*keys, "kind"))
    known = settings_of(what, kind)
    for name in settings:
        if name not in known:
            said = nearest(name, known)
            raise SpecError(f"{what} {kind!r} has no setting {name!r}; {said}", (*keys, name))
    for name, parameter in known.items():
        if name not in settings and parameter.default is parameter.empty:
            raise SpecError(f"{what} {kind!r} needs the setting {name!r}", keys)
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    try:
        return KINDS[what][kind](**plain)
    except (InputError, TypeError) as error:
        # Messages begin with the name of the setting that is wrong.
        named = str(error).partition("=")[0]
        raise SpecError(str(error), (*keys, named) if named in settings else keys) from None
