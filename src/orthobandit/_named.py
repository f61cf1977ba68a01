"""Things by name: ``sbe:scale=2`` becomes a maker and its settings; what is unknown is refused by name."""

import inspect
from collections.abc import Callable, Mapping
from typing import TypeVar

from orthobandit._checks import check_choice
from orthobandit.errors import ParameterError

Setting = int | float | str
T = TypeVar("T")


def parse_named(text: str) -> tuple[str, dict[str, Setting]]:
    """Return the name and the settings of ``name`` or ``name:setting=value,setting=value``.

    Examples
    --------
    >>> parse_named("sbe:schedule=theory,C2=0.5")
    ('sbe', {'schedule': 'theory', 'C2': 0.5})
    """
    name, _, rest = text.partition(":")
    settings: dict[str, Setting] = {}
    for item in filter(None, rest.split(",")):
        setting, equals, value = item.partition("=")
        if not (setting and equals and value):
            raise ParameterError(f"{text!r}: {item!r} must be setting=value, as in sbe:delta=0.1,scale=2")
        if setting in settings:
            raise ParameterError(f"{text!r} gives {setting} twice")
        settings[setting] = _value(value)
    return name, settings


def settings_of(maker: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of the arguments that a maker takes."""
    return tuple(inspect.signature(maker).parameters)


def make_named(
    what: str, makers: Mapping[str, Callable[..., T]], name: str, settings: Mapping[str, object]
) -> T:
    """Call the maker of this name; a wrong name or setting is refused with the nearest valid one."""
    maker = makers[check_choice(what, name, makers)]
    defaults = {key: item.default for key, item in inspect.signature(maker).parameters.items()}
    for setting, value in settings.items():
        if not defaults:
            raise ParameterError(f"{name} takes no settings; leave out {setting!r}")
        default = defaults[check_choice(f"setting of {name}", setting, defaults)]
        if isinstance(default, int | float) and isinstance(value, str):
            raise ParameterError(f"{name}: {setting}={value!r} must be a number")
        if isinstance(default, int) and isinstance(value, float):
            raise ParameterError(f"{name}: {setting}={value!r} must be a whole number")
    for setting, default in defaults.items():
        if default is inspect.Parameter.empty and setting not in settings:
            raise ParameterError(f"{name} needs the setting {setting}, as in {name}:{setting}=…")
    return maker(**settings)


def _value(text: str) -> Setting:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
