"""Which release this is, and which format its stored states have.

The version is written here and nowhere else. It rises whenever stored states or planning change.
"""

from collections.abc import Mapping
from typing import Any

from orthobandit.errors import VersionError

__version__ = "0.5.0.dev0"

# Format of the states of policies and experiments, and of notes in a log. It rises by one when what is
# written changes so that earlier releases cannot read it. What 0.5.0 stores, every later release opens.
STATE_FORMAT = 4
# The last release that opens what releases before 0.5 have stored.
READER_OF_OLDER = "0.4.1"


def stamp() -> dict[str, Any]:
    """Return what is written beside everything that is stored: its format, and the release that wrote it."""
    return {"format": STATE_FORMAT, "release": __version__}


def without_stamp(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return something stored without what :func:`stamp` has added to it."""
    return {name: value for name, value in data.items() if name not in stamp()}


def older_words(what: str) -> str:
    """Return what to do with something that a release before 0.5 has stored.

    Examples
    --------
    >>> older_words("experiments.db")
    "experiments.db was written by a release before 0.5; release 0.4.1 (tag v0.4.1, commit 1f7f3d23) opens
    it, and `Experiment.open(…).export('rows.csv')` there writes rows that `orthobandit analyse rows.csv
    --format export` reads here"
    """
    return (
        f"{what} was written by a release before 0.5; release {READER_OF_OLDER} (tag v{READER_OF_OLDER},"
        " commit 1f7f3d23) opens it, and `Experiment.open(…).export('rows.csv')` there writes rows that"
        " `orthobandit analyse rows.csv --format export` reads here"
    )


def check_format(what: str, data: Mapping[str, Any]) -> None:
    """Raise :class:`VersionError`, which names the release to use, unless something stored is of this format.

    Examples
    --------
    >>> check_format("the state", {"format": 1000, "release": "9.1"})
    Traceback (most recent call last):
    orthobandit.errors.VersionError: the state was written by release 9.1 in a format (1000) that release
    0.5.0.dev0 does not know (it knows 4): `pip install 'orthobandit>=9.1'`
    """
    number = data.get("format", 0)
    if number == STATE_FORMAT:
        return
    if isinstance(number, int) and number < STATE_FORMAT:
        raise VersionError(older_words(what))
    release = data.get("release")
    raise VersionError(
        f"{what} was written by release {release} in a format ({number}) that release {__version__} does"
        f" not know (it knows {STATE_FORMAT}): `pip install 'orthobandit>={release}'`"
    )
