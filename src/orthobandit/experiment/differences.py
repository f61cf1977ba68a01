"""What differs between the settings that an experiment was begun with and those that are given now."""

import json
from collections.abc import Mapping
from typing import Any

from orthobandit.arms import ArmSet
from orthobandit.experiment.settings import UNKNOWN, Settings

PLAIN = ("window", "silence", "sticky", "holdout", "guardrails")
# A policy that claims something has the range of the rewards as well; it is named once.
REPEATS_OF_REWARDS = ("policy.rewards", "policy.confidence")


def other_arms(wanted: ArmSet, *known: ArmSet) -> list[str]:
    """Return in words how arms differ from those of the beginning and of today; nothing if they are either.

    Examples
    --------
    >>> two, three = ArmSet.one_hot(2, ["a", "b"]), ArmSet.one_hot(3, ["a", "b", "c"])
    >>> other_arms(three, two, three), other_arms(three, two)
    ([], ["arms are 'a', 'b' there and 'a', 'b', 'c' here (`extend` adds arms)"])
    """
    if any(_are_same(wanted, arms) for arms in known):
        return []
    today = known[-1]
    if wanted.labels == today.labels:
        return ["arms have other features"]
    there, here = (", ".join(map(repr, arms.labels)) for arms in (today, wanted))
    return [f"arms are {there} there and {here} here (`extend` adds arms)"]


def other_settings(kept: Mapping[str, Any], wanted: Settings, key: str | None = None) -> list[str]:
    """Return in words which settings differ from those that are stored, but for the arms.

    Parameters
    ----------
    kept : mapping
        As they are stored.
    wanted : Settings
    key : str or None
        Of the draws, if it matters.

    Examples
    --------
    >>> from orthobandit.policy import AnytimeElimination
    >>> two = ArmSet.one_hot(2)
    >>> begun = Settings(two, AnytimeElimination(), key="0" * 32, window=60.0).to_json()
    >>> other_settings(begun, Settings(two, AnytimeElimination(delta=0.1), key="1" * 32, window=60.0))
    ['policy.delta is 0.05 there and 0.1 here']
    """
    there = _by_name(kept)
    here = _by_name(json.loads(json.dumps(wanted.to_json())))
    names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
    if "rewards" in names:
        names = [name for name in names if name not in REPEATS_OF_REWARDS]
    words = [f"{name} is {_shown(there.get(name))} there and {_shown(here.get(name))} here" for name in names]
    # Neither key is shown: they are secrets.
    return words if key in (None, kept["key"]) else [*words, "key is another one"]


def _by_name(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by the names under which they are given."""
    objective, *metrics = settings["metrics"]
    named = {
        "objective": objective["settings"]["name"],
        "rewards": objective["settings"]["rewards"] or UNKNOWN,
        "add": objective["settings"]["add"],
        "metrics": metrics,
        "reference": settings["arms"]["labels"][settings["reference"]],
        **{name: settings[name] for name in PLAIN},
    }
    policy = settings["policy"]
    if not isinstance(policy, Mapping) or "settings" not in policy:
        return {**named, "policy": policy}
    named["policy"] = str(policy["class"]).rpartition(":")[2]
    return named | {f"policy.{name}": value for name, value in policy["settings"].items()}


def _are_same(one: ArmSet, other: ArmSet) -> bool:
    return one.labels == other.labels and one.features.tolist() == other.features.tolist()


def _shown(value: Any) -> str:
    """Return a stored setting as it would be written in a call."""
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, Mapping) and "class" in value:
        inside = ", ".join(f"{name}={_shown(part)}" for name, part in value["settings"].items())
        return f"{str(value['class']).rpartition(':')[2]}({inside})"
    return repr(value)
