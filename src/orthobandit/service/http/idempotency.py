"""``Idempotency-Key``: a write that is sent twice is done once, and answered the same.

The key is stored in the same commit as the write, so that neither a crash nor another server can come between
the two. A write that was refused is not remembered; sending it again tries it again.
"""

from hashlib import blake2b
from typing import Annotated

from fastapi import Depends, Header, Request
from pydantic import BaseModel

from orthobandit.experiment import Experiment
from orthobandit.experiment.commit.requests import MAX_KEY_LENGTH
from orthobandit.service.http.problems import PRINTABLE_ASCII

IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=MAX_KEY_LENGTH,
        pattern=PRINTABLE_ASCII,
        description="A key of this write and no other, remembered for a week. The same key and body again are"
        " answered as before; with another body, or elsewhere in the experiment, it is a conflict.",
        examples=["0b6f8f0e4ad94f6c"],
    ),
]


class Keyed:
    """The key of a request, if it has one.

    Parameters
    ----------
    path : str
        Of the request.
    key : str or None
    """

    def __init__(self, path: str, key: str | None) -> None:
        self._path = path
        self.key = key

    def once(self, experiment: Experiment, body: BaseModel | None = None) -> Experiment:
        """Return the experiment for one write; with a key, a repeated write is done once."""
        if self.key is None:
            return experiment
        text = "" if body is None else body.model_dump_json()
        # Path and body are part of it, so that a key cannot be used for two different writes.
        words = blake2b(f"{self._path}\n{text}".encode(), digest_size=16).hexdigest()
        return experiment.once(self.key, words)


async def read_key(request: Request, idempotency_key: IdempotencyKey = None) -> Keyed:
    """Return the key of a request. A coroutine, since FastAPI runs plain functions in threads."""
    return Keyed(request.scope["path"], idempotency_key)


Once = Annotated[Keyed, Depends(read_key)]
