"""The kinds of problem documents and the errors they stand for; shared with the client."""

from typing import NamedTuple

from orthobandit.errors import (
    ClosedError,
    ConflictError,
    DesignError,
    ExperimentExistsError,
    InputError,
    MissingExtraError,
    OrthobanditError,
    RewardError,
    StorageError,
    UnknownExperimentError,
    UnknownProposalError,
    VersionError,
)

PREFIX = "urn:orthobandit:problem:"
PROBLEM_JSON = "application/problem+json"


class Kind(NamedTuple):
    """A kind of problem: its HTTP status and its title."""

    status: int
    title: str


KINDS = {
    "malformed": Kind(400, "The request cannot be read"),
    "unauthenticated": Kind(401, "A valid token is needed"),
    "forbidden": Kind(403, "The token does not allow this"),
    "not-found": Kind(404, "There is nothing here"),
    "unknown-experiment": Kind(404, "There is no such experiment"),
    "unknown-proposal": Kind(404, "There is no such proposal"),
    "method": Kind(405, "This cannot be done here"),
    "too-slow": Kind(408, "The request came too slowly"),
    "exists": Kind(409, "There is already an experiment of this key"),
    "conflict": Kind(409, "The request contradicts what is on record"),
    "closed": Kind(409, "It is too late, or the experiment does not take this now"),
    "too-large": Kind(413, "The body is too large"),
    "not-json": Kind(415, "Only JSON is taken"),
    "invalid": Kind(422, "A value cannot be used"),
    "reward": Kind(422, "A reward cannot be used"),
    "too-many": Kind(429, "Too many requests"),
    "long-headers": Kind(431, "The headers are too long"),
    "internal": Kind(500, "Something went wrong in the server"),
    "missing-package": Kind(501, "The server lacks a package for this"),
    "unavailable": Kind(503, "The server or its database cannot be used now"),
    "busy": Kind(503, "The server has too much to do"),
    "newer-release": Kind(503, "A newer release than this server's has written this"),
}
# Errors and their kinds, special ones before those that they derive from.
ERRORS: tuple[tuple[type[OrthobanditError], str], ...] = (
    (UnknownExperimentError, "unknown-experiment"),
    (UnknownProposalError, "unknown-proposal"),
    (ExperimentExistsError, "exists"),
    (ConflictError, "conflict"),
    (ClosedError, "closed"),
    (StorageError, "unavailable"),
    (VersionError, "newer-release"),
    (MissingExtraError, "missing-package"),
    (RewardError, "reward"),
    (DesignError, "invalid"),
    (InputError, "invalid"),
)


def kind_of(error: OrthobanditError) -> str:
    """Return the kind of problem of an error.

    Examples
    --------
    >>> kind_of(ClosedError("paused")), kind_of(OrthobanditError("?"))
    ('closed', 'internal')
    """
    return next((kind for cls, kind in ERRORS if isinstance(error, cls)), "internal")
