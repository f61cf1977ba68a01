"""The log behind a certificate: entries in their order, each hashed together with all before it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orthobandit.verify import FORMAT, canonical, link


class Chain:
    """Settings, and the entries that followed, with a hash over all of them.

    Entries are kept as texts, which take a tenth of the memory of their arrays. Nothing is hashed until the
    :attr:`head` is asked for, and each entry is hashed once.

    Parameters
    ----------
    settings : dict
        What was fixed before the first entry; plain values.
    texts : sequence of str
        Entries so far, as :meth:`to_json` returned them.

    Examples
    --------
    >>> chain = Chain({"delta": 0.05})
    >>> chain.add({"entry": "plan"})
    >>> chain.head[:2], len(chain)
    ('1:', 1)
    """

    def __init__(self, settings: Mapping[str, Any], texts: Sequence[str] = ()) -> None:
        self.settings = dict(settings)
        self._texts = list(texts)
        self._hashed = 0  # entries that are in the hash
        self._hash = ""

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add an entry of plain values at the end."""
        self._texts.append(canonical(entry))

    @property
    def head(self) -> str:
        """``"number of entries:hash"``; publish it, and nothing before it can be changed unnoticed."""
        if not self._hash:
            self._hash = link(FORMAT, canonical(self.settings))
        for text in self._texts[self._hashed :]:
            self._hash = link(self._hash, text)
        self._hashed = len(self._texts)
        return f"{self._hashed}:{self._hash}"

    def entries(self) -> list[dict[str, Any]]:
        """Return all entries."""
        return [json.loads(text) for text in self._texts]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"settings": self.settings, "entries": list(self._texts)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Chain":
        """Invert :meth:`to_json`."""
        return cls(data["settings"], data["entries"])


class ChainHead:
    """The head of a chain whose entries are not kept, because they can be rebuilt from elsewhere.

    Parameters
    ----------
    settings : dict
        What was fixed before the first entry; plain values.
    count : int
        Entries so far.
    hashed : str
        The hash over all of them; empty before the first.

    Examples
    --------
    >>> long, short = Chain({"delta": 0.05}), ChainHead({"delta": 0.05})
    >>> for chain in (long, short):
    ...     chain.add({"entry": "plan"})
    >>> long.head == short.head
    True
    """

    def __init__(self, settings: Mapping[str, Any], count: int = 0, hashed: str = "") -> None:
        self.settings = dict(settings)
        self._count = count
        self._hash = hashed or link(FORMAT, canonical(self.settings))

    def __len__(self) -> int:
        return self._count

    def add(self, entry: Mapping[str, Any]) -> None:
        """Add an entry of plain values at the end."""
        self._hash = link(self._hash, canonical(entry))
        self._count += 1

    @property
    def head(self) -> str:
        """``"number of entries:hash"``, as that of a :class:`Chain` with the same entries."""
        return f"{self._count}:{self._hash}"
