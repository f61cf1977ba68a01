"""Policies by name, for the command line and for sweeps."""

from collections.abc import Callable, Mapping
from typing import Any

from orthobandit._checks import check_choice
from orthobandit._named import make_named, settings_of
from orthobandit.policy.base import Policy
from orthobandit.policy.explore import PureExploration
from orthobandit.policy.sbe import SBE

# A policy's settings are the arguments of its maker.
POLICIES: Mapping[str, Callable[..., Policy[Any]]] = {
    "sbe": SBE,
    "explore": PureExploration,
}


def named_policy(name: str, **settings: Any) -> Policy[Any]:
    """Return the policy of this name, a key of ``POLICIES``, with the given settings.

    Examples
    --------
    >>> named_policy("sbe", delta=0.1) == SBE(delta=0.1)
    True
    """
    return make_named("policy", POLICIES, name, settings)


def policy_settings(name: str) -> tuple[str, ...]:
    """Return the settings that the policy of this name takes.

    Examples
    --------
    >>> policy_settings("sbe")
    ('delta', 'schedule', 'scale', 'C2', 'C3', 'design', 'horizon')
    """
    return settings_of(POLICIES[check_choice("policy", name, POLICIES)])
