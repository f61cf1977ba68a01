"""Settings of `orthobandit serve`: each is a flag, an environment variable, and a key of a TOML file.

A flag goes before the environment, that before the file, and the file before the default. `SETTINGS` is the
only place that lists them: the command line, the reader of files and the table in the documentation follow.
"""

import tomllib
import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

from orthobandit.errors import Argument, InputWarning, ParameterError
from orthobandit.service.http.limits import MAX_BODY_BYTES, MAX_REQUESTS, RATE, ConnectionLimits

CONNECTION_LIMITS = ConnectionLimits()
PORT = 8000  # of servers that nobody gave one
PREFIX = "ORTHOBANDIT_"
TRUE = ("1", "true", "yes", "on")
FALSE = ("0", "false", "no", "off")
Kind = Literal["text", "whole", "number", "switch", "list"]
EXPECTED = {
    "text": "text",
    "whole": "a whole number",
    "number": "a number",
    "switch": "true or false",
    "list": "a list of texts",
}


class Setting(NamedTuple):
    """One setting.

    Parameters
    ----------
    name : str
        As in the flag, without ``--``, and in the file.
    kind : str
    default : object
        None stands for "not set".
    words : str
        What it does, for ``--help`` and the documentation.
    choices : tuple of str
        Values that it may have, if not any.
    metavar : str, optional
    """

    name: str
    kind: Kind
    default: Any
    words: str
    choices: tuple[str, ...] = ()
    metavar: str | None = None

    @property
    def flag(self) -> str:
        """The flag on the command line."""
        return f"--{self.name}"

    @property
    def variable(self) -> str:
        """Name of the environment variable."""
        return PREFIX + self.name.upper().replace("-", "_")

    @property
    def argument(self) -> str:
        """The name of the value in Python."""
        return self.name.replace("-", "_")


SETTINGS = (
    Setting(
        "db",
        "text",
        "orthobandit.db",
        "a SQLite file, or the URL of a database such as postgresql+psycopg://user@host/database",
        metavar="FILE|URL",
    ),
    Setting("host", "text", "127.0.0.1", "where to listen; by default on this machine only"),
    Setting("port", "whole", PORT, "the port to listen on; 0 for any that is free"),
    Setting("no-auth", "switch", False, "ask for no tokens: everybody on this machine is an admin"),
    Setting("tls-certificate", "text", None, "certificate chain for TLS, in PEM", metavar="FILE"),
    Setting("tls-key", "text", None, "private key of that certificate, in PEM", metavar="FILE"),
    Setting(
        "proxies",
        "list",
        (),
        "addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto headers are trusted",
        metavar="ADDRESS,...",
    ),
    Setting(
        "rate",
        "number",
        RATE,
        "requests per second for each token, or for each address with --no-auth; 0 for no limit",
    ),
    Setting("max-body", "whole", MAX_BODY_BYTES, "largest body of a request, in bytes", metavar="BYTES"),
    Setting(
        "max-connections",
        "whole",
        CONNECTION_LIMITS.most,
        "connections at the same time",
        metavar="COUNT",
    ),
    Setting("max-requests", "whole", MAX_REQUESTS, "requests in progress at the same time", metavar="COUNT"),
    Setting(
        "header-timeout",
        "number",
        CONNECTION_LIMITS.head_seconds,
        "seconds in which the headers must arrive",
        metavar="SECONDS",
    ),
    Setting(
        "body-timeout",
        "number",
        CONNECTION_LIMITS.body_seconds,
        "seconds in which a body must arrive, if it comes more slowly than 64 KiB per second",
        metavar="SECONDS",
    ),
    Setting(
        "log",
        "text",
        "none",
        "write a line for each request to stderr, as JSON or as text; none: errors only",
        choices=("json", "text", "none"),
    ),
    Setting("open-metrics", "switch", False, "let this machine read /metrics without a token"),
    Setting(
        "telemetry",
        "switch",
        False,
        "send traces and metrics by OpenTelemetry, as the variables OTEL_... say (extra: telemetry)",
    ),
    Setting(
        "webhooks-anywhere",
        "switch",
        False,
        "let webhooks go to http:// and to private networks; by default to https:// and this machine",
    ),
)
BY_NAME = {one.name: one for one in SETTINGS}
CONFIG = Setting("config", "text", None, "a TOML file with any of these settings", metavar="FILE")


def read_settings(flags: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """Return all settings by their names in Python.

    Parameters
    ----------
    flags : mapping
        Values of flags by their names in Python; None where a flag was not given.
    environment : mapping
        As ``os.environ``. An empty variable is one that is not set.

    Raises
    ------
    ParameterError
        If a value cannot be used, or the file has a key that is no setting.

    Examples
    --------
    >>> found = read_settings({"port": 8001}, {"ORTHOBANDIT_PORT": "9", "ORTHOBANDIT_LOG": "json"})
    >>> found["port"], found["log"], found["rate"]
    (8001, 'json', 10000.0)
    """
    file = flags.get(CONFIG.argument) or environment.get(CONFIG.variable)
    stored = {} if not file else read_file(Path(file))
    found = {}
    _warn_of_unknown_variables(environment)
    for one in SETTINGS:
        written = environment.get(one.variable)
        if flags.get(one.argument) is not None:
            found[one.argument] = parse(one, flags[one.argument], one.flag)
        elif written:
            found[one.argument] = parse(one, written, one.variable)
        else:
            found[one.argument] = stored.get(one.name, one.default)
    return found


def _warn_of_unknown_variables(environment: Mapping[str, str]) -> None:
    """Warn of variables that look like settings and are none; others of the machine are no mistake."""
    known = [one.variable.removeprefix(PREFIX) for one in (CONFIG, *SETTINGS)]
    for name in environment:
        ending = name.removeprefix(PREFIX)
        if ending == name or ending in known:
            continue
        for near in get_close_matches(ending, known, 1):
            warnings.warn(
                f"{name} is not a setting; did you mean {PREFIX}{near}?", InputWarning, stacklevel=3
            )


def read_file(path: Path) -> dict[str, Any]:
    """Return the settings of a TOML file by name."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ParameterError(
            Argument("config", str(path)), f" cannot be read: {error.strerror or error}"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ParameterError(Argument("config", str(path)), f" is not TOML: {error}") from None
    for name in data:
        if name not in BY_NAME:
            near = get_close_matches(name, BY_NAME, 1)
            remedy = f"did you mean {near[0]!r}?" if near else f"the settings are {', '.join(BY_NAME)}"
            raise ParameterError(
                Argument("config", str(path)), f" has {name!r}, which is not a setting; {remedy}"
            )
    return {name: parse(BY_NAME[name], value, f"{path}: {name}") for name, value in data.items()}


def parse(setting: Setting, given: object, where: str) -> Any:
    """Return the value of a setting from text, or from a value of TOML.

    Parameters
    ----------
    setting : Setting
    given : object
    where : str
        Begins the message of an error.
    """
    wrong = ParameterError(f"{where} = {given!r} must be {EXPECTED[setting.kind]}")
    if setting.choices and given not in setting.choices:
        raise ParameterError(f"{where} = {given!r} must be one of {', '.join(setting.choices)}")
    if setting.kind == "text":
        if not isinstance(given, str):
            raise wrong
        return given
    if setting.kind == "list":
        found = given.split(",") if isinstance(given, str) else given
        if not isinstance(found, list | tuple) or not all(isinstance(one, str) for one in found):
            raise wrong
        return tuple(one.strip() for one in found if one.strip())
    if setting.kind == "switch":
        if isinstance(given, bool):
            return given
        if not isinstance(given, str) or given.lower() not in (*TRUE, *FALSE):
            raise wrong
        return given.lower() in TRUE
    # In Python a bool is a number, and `float` reads "nan"; the checks of ranges refuse that.
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        raise wrong
    try:
        number = float(given)
    except ValueError:
        raise wrong from None
    if setting.kind == "number":
        return number
    if not number.is_integer():
        raise wrong
    return int(number)


def table() -> str:
    """Return all settings as the table of the documentation."""
    lines = ["| flag, and key in the file | environment | default | what it does |", "|---|---|---|---|"]
    for one in SETTINGS:
        default = _show(one)
        lines.append(f"| `{one.flag}` | `{one.variable}` | {default} | {_escape(one.words)} |")
    return "\n".join(lines)


def _show(setting: Setting) -> str:
    if setting.kind == "switch":
        return "off"
    if setting.default in (None, ()):
        return ""
    return f"`{setting.default:g}`" if setting.kind == "number" else f"`{setting.default}`"


def _escape(words: str) -> str:
    return words.replace("|", "\\|")
