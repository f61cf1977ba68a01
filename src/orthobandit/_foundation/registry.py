"""Look things up by name: ``sbe:scale=2`` becomes a class and its settings; unknown names raise.

An error suggests the nearest valid name.
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from orthobandit._foundation.checks import nearest
from orthobandit.errors import InputError, ParameterError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Setting = int | float | str
T = TypeVar("T")


def parse_named(text: str) -> tuple[str, dict[str, Setting]]:
    """Return the name and the settings of ``name`` or ``name:setting=value,setting=value``.

    A name may itself be ``module:Name``, for a class or function of the user's own.

    Examples
    --------
    >>> parse_named("sbe:schedule=theory,C2=0.5")
    ('sbe', {'schedule': 'theory', 'C2': 0.5})
    >>> parse_named("mine:Greedy:epsilon=0.1")
    ('mine:Greedy', {'epsilon': 0.1})
    """
    name, _, rest = text.partition(":")
    own, _, more = rest.partition(":")
    if own.replace(".", "").isidentifier():
        name = f"{name}:{own}"
        rest = more
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


class SettingError(ParameterError):
    """A name or a setting is wrong.

    Attributes
    ----------
    key : str
        The setting; ``"kind"`` for the name itself, ``""`` when the settings do not fit each other.
    """

    def __init__(self, message: str | InputError, key: str = "") -> None:
        super().__init__(*message.words if isinstance(message, InputError) else (message,))
        self.key = key


class WithOwn(dict[str, Callable[..., T]]):
    """Makers by name; beside those that are listed, ``module:Name`` and entry points of the user's own.

    Parameters
    ----------
    what : str
        What is made, e.g. ``"policy"``.
    known : dict of str to callable
        What is listed.
    group : str
        The group of entry points, e.g. ``"orthobandit.policies"``.

    Examples
    --------
    >>> makers = WithOwn("shift", {"none": dict}, "orthobandit.shifts")
    >>> list(makers), "collections:OrderedDict" in makers, makers["collections:OrderedDict"]
    (['none'], True, <class 'collections.OrderedDict'>)
    """

    def __init__(self, what: str, known: Mapping[str, Callable[..., T]], group: str) -> None:
        super().__init__(known)
        self._what = what
        self._group = group

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or is_own(name) or self._entry(name) is not None

    def __missing__(self, name: str) -> Callable[..., T]:
        if is_own(name):
            return self._imported(name)
        entry = self._entry(name)
        if entry is None:
            raise KeyError(name)
        return self._checked(name, entry.load())

    def _entry(self, name: object) -> "EntryPoint | None":
        from importlib.metadata import entry_points  # costs time, and is seldom needed

        return next((entry for entry in entry_points(group=self._group) if entry.name == name), None)

    def _imported(self, name: str) -> Callable[..., T]:
        module, _, path = name.partition(":")
        if super().__contains__(module):
            example = "sbe:delta=0.1,scale=2"
            raise SettingError(f"{name!r}: {path!r} must be setting=value, as in {example}", "kind")
        try:
            found: object = import_module(module)
        except ImportError as error:
            raise SettingError(
                f"{self._what} {name!r}: the module {module!r} cannot be imported ({error}); it must lie"
                " here, or be installed",
                "kind",
            ) from None
        for part in path.split("."):
            if not hasattr(found, part):
                names = [word for word in vars(found) if not word.startswith("_")]
                raise SettingError(
                    f"{self._what} {name!r}: {module} has no {part!r}; {nearest(part, names)}", "kind"
                )
            found = getattr(found, part)
        return self._checked(name, found)

    def _checked(self, name: str, found: object) -> Callable[..., T]:
        if not callable(found):
            raise SettingError(
                f"{self._what} {name!r} is {found!r}; a class, or a function that returns one, is needed",
                "kind",
            )
        return found


def is_own(name: object) -> bool:
    """Tell whether a name has the form ``module:Name``."""
    if not isinstance(name, str):
        return False
    module, colon, path = name.partition(":")
    parts = [*module.split("."), *path.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def maker_of(what: str, makers: Mapping[str, Callable[..., T]], name: object) -> Callable[..., T]:
    """Return the maker of this name; an unknown name raises an error that suggests the nearest one."""
    if not isinstance(name, str) or name not in makers:
        raise SettingError(f"unknown {what} {name!r}; {nearest(name, makers)}", "kind")
    return makers[name]


def make_named(
    what: str,
    makers: Mapping[str, Callable[..., T]],
    name: str,
    settings: Mapping[str, object],
    hidden: Collection[str] = (),
) -> T:
    """Call the maker of this name; :class:`SettingError` names what is wrong and the nearest valid name.

    Parameters
    ----------
    what : str
        What is made, e.g. ``"policy"``.
    makers : dict of str to callable
    name : str
    settings : dict
        Arguments of the maker.
    hidden : collection of str
        Arguments that are given by other means.
    """
    maker = maker_of(what, makers, name)
    defaults = {
        key: item.default for key, item in inspect.signature(maker).parameters.items() if key not in hidden
    }
    for setting, value in settings.items():
        _check_setting(what, name, setting, value, defaults)
    for setting, default in defaults.items():
        if default is inspect.Parameter.empty and setting not in settings:
            raise SettingError(f"{what} {name!r} needs the setting {setting!r}, as in {name}:{setting}=…")
    try:
        return maker(**settings)
    except InputError as error:
        raise SettingError(error, error.field if error.field in settings else "") from None
    except TypeError as error:
        raise SettingError(str(error)) from None


def _check_setting(what: str, name: str, setting: str, value: object, defaults: Mapping[str, object]) -> None:
    if not defaults:
        raise SettingError(f"{what} {name!r} takes no settings; leave out {setting!r}", setting)
    if setting not in defaults:
        raise SettingError(
            f"{what} {name!r} has no setting {setting!r}; {nearest(setting, defaults)}", setting
        )
    default = defaults[setting]
    if isinstance(default, int | float) and isinstance(value, str):
        raise SettingError(f"{what} {name!r}: {setting}={value!r} must be a number", setting)
    if isinstance(default, int) and isinstance(value, float):
        raise SettingError(f"{what} {name!r}: {setting}={value!r} must be a whole number", setting)


def _value(text: str) -> Setting:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
