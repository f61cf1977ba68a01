"""Which release this is, and which format its stored states have.

The version is written here and nowhere else. It rises whenever stored states or planning change.
"""

from collections.abc import Mapping
from typing import Any

from orthobandit.errors import VersionError

__version__ = "0.4.1"

# Format of the states of policies and experiments, and of notes in a log. It rises by one when what is
# written changes so that earlier releases cannot read it; earlier formats are brought up to date when read.
STATE_FORMAT = 4
# Up to release 0.2.0 states and notes did not say who had written them.
UNSTAMPED_FORMAT = 1
UNSTAMPED_RELEASE = "0.2.0"


def stamp() -> dict[str, Any]:
    """Return what is written beside everything that is stored: its format, and the release that wrote it."""
    return {"format": STATE_FORMAT, "release": __version__}


def without_stamp(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return something stored without what :func:`stamp` has added to it."""
    return {name: value for name, value in data.items() if name not in stamp()}


def release_of(data: Mapping[str, Any]) -> str:
    """Return the release that has written something stored.

    Examples
    --------
    >>> release_of({"format": 2, "release": "0.3.0"}), release_of({})
    ('0.3.0', '0.2.0')
    """
    return str(data.get("release", UNSTAMPED_RELEASE))


def check_format(what: str, data: Mapping[str, Any]) -> None:
    """Raise :class:`VersionError`, which names the release to use, if something stored is of a newer format.

    Examples
    --------
    >>> check_format("the state", {"format": 1000, "release": "9.1"})
    Traceback (most recent call last):
    orthobandit.errors.VersionError: the state was written by release 9.1 in a format (1000) that release
    ... does not know (it knows up to 4): `pip install 'orthobandit>=9.1'`
    """
    found = data.get("format", UNSTAMPED_FORMAT)
    if not isinstance(found, int) or found > STATE_FORMAT:
        release = release_of(data)
        raise VersionError(
            f"{what} was written by release {release} in a format ({found}) that release {__version__} does"
            f" not know (it knows up to {STATE_FORMAT}): `pip install 'orthobandit>={release}'`"
        )
