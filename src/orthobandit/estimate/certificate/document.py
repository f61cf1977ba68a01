"""The document of a certificate: settings, entries, claim, head and digest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orthobandit._foundation.files import write_text
from orthobandit.errors import CertificateError, FileFormatError
from orthobandit.estimate.certificate.chain import Chain
from orthobandit.estimate.confidence.modes import Confidence, RoundedMeans, SameShape, SubGaussian
from orthobandit.showing.html import html_words
from orthobandit.verify import FORMAT, Verdict, check_format, digest, verify


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claim, and the plans and tallies behind it.

    It holds sums per plan and arm, and no reward of any user. :mod:`orthobandit.verify`, one file that needs
    numpy alone, recomputes the claim from it.

    Attributes
    ----------
    document : dict
        Plain lists, numbers and strings; numbers survive JSON exactly.
    """

    document: dict[str, Any]

    @classmethod
    def make(cls, chain: Chain, claim: Mapping[str, Any]) -> "Certificate":
        """Return the certificate of a claim, to which its sentence is added.

        Raises
        ------
        CertificateError
            If the claim does not follow from the chain.
        """
        document: dict[str, Any] = {
            "format": FORMAT,
            "settings": chain.settings,
            "entries": chain.entries(),
            "claim": {"sentence": "", **claim},
            "head": chain.head,
            "digest": "",
        }
        document["digest"] = digest(document)
        # The sentence is what the verifier makes of the numbers; all else must be right already.
        verdict = verify(document)
        document["claim"]["sentence"] = verdict.claim
        document["digest"] = digest(document)
        wrong = [problem for problem in verdict.problems if not problem.startswith("the sentence is ''")]
        if wrong:
            raise CertificateError(f"the claim does not follow from what was recorded: {wrong[0]}")
        return cls(document)

    @property
    def verdict(self) -> Verdict:
        """The verdict of :func:`orthobandit.verify.verify`."""
        return verify(self.document)

    def __repr__(self) -> str:
        return f"Certificate({self._claim})"

    def __str__(self) -> str:
        """Return the claim and the head; :attr:`verdict` says whether it is valid."""
        return f"{self._claim}\nhead {self.document.get('head', '')}"

    def _repr_html_(self) -> str:
        return html_words(self._claim, f"head {self.document.get('head', '')}")

    @property
    def _claim(self) -> str:
        """The sentence of its claim, or that it has none."""
        claim = self.document.get("claim")
        return str(claim.get("sentence", "")) if isinstance(claim, dict) else "no claim"

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        return self.document

    def write(self, path: str | Path) -> None:
        """Write a JSON file, whole or not at all."""
        write_text(path, json.dumps(self.document, allow_nan=False, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read a file that :meth:`write` wrote; :attr:`verdict` says whether it is valid."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{path} cannot be read: {error}") from None
        try:
            check_format(document)
        except ValueError as error:
            raise FileFormatError(f"{path} is not a certificate that can be read: {error}") from None
        return cls(document)


def describe_mode(confidence: Confidence) -> dict[str, Any]:
    """Return a mode of confidence and its numbers, as a certificate's settings name them."""
    if isinstance(confidence, SameShape):
        return {"name": confidence.name, "clip": float(confidence.clip)}
    if not confidence.is_exact:
        return {"name": confidence.name}
    low, high = confidence.range
    described: dict[str, Any] = {"name": confidence.name, "low": low, "high": high}
    if isinstance(confidence, RoundedMeans):
        described |= {"error": float(confidence.error)}
    if isinstance(confidence, SubGaussian):
        described |= {"sigma": float(confidence.sigma), "tail": float(confidence.tail)}
    return described


def finite(number: float) -> float | None:
    """Return a number, or None for one that is infinite: JSON has no infinity."""
    return float(number) if np.isfinite(number) else None
