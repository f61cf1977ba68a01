"""Certificates of decision: what a claim rests on, in kilobytes, for anybody to recompute."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._files import write_text
from orthobandit._types import Array, Whole
from orthobandit.errors import FileFormatError, ParameterError
from orthobandit.estimate import Confidence, Evidence, SubGaussian, Tuning
from orthobandit.estimate.boundaries import WIDE
from orthobandit.experiment.book import Book
from orthobandit.experiment.feeds import IGNORED, Feed
from orthobandit.policy.anytime import AnytimeElimination, AnytimeState
from orthobandit.verify import FORMAT, Verdict, digest, replay, verify


@dataclass(frozen=True, eq=False)
class Certificate:
    """A claim of :class:`~orthobandit.AnytimeElimination`, and the plans, tallies and tuning behind it.

    It holds sums per plan and arm, and no reward of any user. :mod:`orthobandit.verify`, one file that needs
    numpy alone, recomputes the claim from it.

    Attributes
    ----------
    document : dict
        Plain lists, numbers and strings; numbers survive JSON exactly.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = AnytimeElimination(rewards=(0, 1))
    >>> certificate = Certificate.of(policy, policy.start(ArmSet.one_hot(3)), [])
    >>> certificate.document["claim"]["survivors"], certificate.verdict.valid
    ([0, 1, 2], True)
    """

    document: dict[str, Any]

    @classmethod
    def of(
        cls,
        policy: AnytimeElimination,
        state: AnytimeState,
        feeds: Sequence[Feed],
        since: ArrayLike | None = None,
    ) -> "Certificate":
        """Write down what is claimed now.

        Parameters
        ----------
        policy : AnytimeElimination
        state : AnytimeState
            Of one replication.
        feeds : sequence of Feed
            All that the policy was fed, in order.
        since : array-like (K, K) of int, optional
            The first feed that each entry of the evidence counts: tests start anew when an arm that they were
            against is retired. By default all feeds count.

        Raises
        ------
        ParameterError
            If the claim does not follow from the feeds.
        """
        if state.stage.shape:
            raise ParameterError(f"state has replications {state.stage.shape}; give one of them")
        count = len(state.arms)
        first = np.zeros((count, count), dtype=np.int64) if since is None else np.asarray(since)
        if first.shape != (count, count) or first.dtype.kind not in "iu":
            raise ParameterError(
                f"since has shape {first.shape}; ({count}, {count}) whole numbers are needed"
            )
        used = np.array([feed.use != IGNORED for feed in feeds], dtype=np.int64)
        first = np.append(0, np.cumsum(used))[np.clip(first, 0, len(used))]
        kept = [feed for feed in feeds if feed.use != IGNORED]
        document = _basis(policy, state, kept, first)
        document["claim"] = _claim(policy, state, _dropped(document, policy, state))
        document["digest"] = digest(document)
        verdict = verify(document)
        if not verdict.valid:
            raise ParameterError(
                f"feeds do not give what the state claims: {verdict.problems[0]}; give all that the policy"
                " was fed, in order"
            )
        return cls(document)

    @property
    def verdict(self) -> Verdict:
        """What :func:`orthobandit.verify.verify` says of it."""
        return verify(self.document)

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        return self.document

    def write(self, path: str | Path) -> None:
        """Write a JSON file, whole or not at all."""
        write_text(path, json.dumps(self.document, allow_nan=False, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, path: str | Path) -> "Certificate":
        """Read what :meth:`write` wrote; whether it is valid, :attr:`verdict` says."""
        try:
            document = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise FileFormatError(f"{path} cannot be read: {error}") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise FileFormatError(f"{path} is not an {FORMAT!r}")
        return cls(document)


def _basis(
    policy: AnytimeElimination, state: AnytimeState, feeds: Sequence[Feed], since: Whole
) -> dict[str, Any]:
    """Return everything but the claim."""
    distributions: list[list[float]] = []
    return {
        "format": FORMAT,
        "labels": list(state.arms.labels),
        "features": state.arms.features.tolist(),
        "retired": np.flatnonzero(state.retired).tolist(),
        "confidence": _mode(policy.confidence),
        "delta": policy.delta,
        "epsilon": policy.epsilon,
        "tuning": {
            "alpha": state.alpha.tolist(),
            "rho": state.rho.tolist(),
            "scale": state.scale.tolist(),
            "spent": (policy.delta - state.left).tolist(),
        },
        "since": since.tolist(),
        "first_plan": state.first_plan.tolist(),
        "feeds": [_feed(feed, len(state.arms), distributions) for feed in feeds],
        "distributions": distributions,
    }


def _mode(confidence: Confidence) -> dict[str, Any]:
    """Return a mode by its numbers; noise of scale 0 where rewards are bounded."""
    known, (low, high) = confidence.is_exact, confidence.range
    sigma, tail = (confidence.sigma, confidence.tail) if isinstance(confidence, SubGaussian) else (0.0, 1.0)
    return {
        "name": confidence.name,
        "low": low if known else None,
        "high": high if known else None,
        "sigma": float(sigma),
        "tail": float(tail),
        "limit": confidence.limit if known else None,
        "bias": confidence.bias,
    }


def _feed(feed: Feed, count: int, distributions: list[list[float]]) -> dict[str, Any]:
    """Return a feed with entries for arms that came later; a distribution is listed once and numbered."""
    before = feed.plan.count
    rivals = [-1] * before if feed.plan.rivals is None else feed.plan.rivals.tolist()
    probabilities = _padded(feed.plan.probabilities, count)
    if probabilities not in distributions:
        distributions.append(probabilities)
    return {
        "plan": int(feed.plan.number),
        "use": feed.use,
        "arms": before,
        "length": feed.length,
        "distribution": distributions.index(probabilities),
        "values": _padded(feed.plan.values, count),
        "rivals": [*rivals, *[0] * (count - before)],
        **{name: _padded(np.array(column), count) for name, column in feed.tally.to_json().items()},
    }


def _padded(given: Array | Whole, count: int) -> list[Any]:
    return [*given.tolist(), *[given.dtype.type(0).item()] * (count - len(given))]


def _dropped(
    document: dict[str, Any], policy: AnytimeElimination, state: AnytimeState
) -> list[dict[str, Any]]:
    """Return for every dropped arm the first feed after which an entry of its row was proof, and which."""
    tuning = Tuning(state.alpha, state.rho, state.scale, grid=WIDE)
    left, found = ~(state.active | state.retired), list[dict[str, Any]]()
    with np.errstate(all="ignore"):
        history = replay(document, Verdict()) if left.any() else []
    for feed, (e, (events, waited)) in enumerate(history, start=-1):
        evidence = Evidence(-e[0], e[1], e[2], e[3], e[4], e[5], np.asarray(events), waited)
        proven = policy.confidence.exceeds(evidence, tuning) & (e[1] > 0)
        proven &= ~state.retired  # better than i, but out of the race
        for arm in np.flatnonzero(left & np.any(proven, axis=1)):
            rival = None if proven[arm, arm] else int(np.argmax(proven[arm]))
            found.append({"arm": int(arm), "feed": feed, "rival": rival})
            left[arm] = False
    if left.any():
        raise ParameterError(
            f"feeds have no proof against arm {int(np.argmax(left))}, which was dropped; give all that the"
            " policy was fed, in order"
        )
    return found


def _claim(policy: AnytimeElimination, state: AnytimeState, dropped: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the claim as the policy makes it; infinite numbers as null."""
    leader, declared = int(state.leader), int(state.declared)
    bounds = policy.upper_bounds(state)[:, leader]
    features = state.arms.features
    others = state.active & np.any(features != features[leader], axis=1)
    # Rounds that came late may have moved the bounds since ε was last looked at.
    epsilon = max(float(bounds[others].max(initial=0.0)), 0.0)
    return {
        "survivors": np.flatnonzero(state.active).tolist(),
        "dropped": dropped,
        "leader": leader,
        "declared": declared if declared >= 0 else None,
        "epsilon": epsilon if np.isfinite(epsilon) else None,
        "bounds": [bound if np.isfinite(bound) else None for bound in bounds.tolist()],
    }


def certified(book: Book) -> Certificate:
    """Return the certificate of what a policy has claimed."""
    if not isinstance(book.policy, AnytimeElimination):
        raise ParameterError(f"{type(book.policy).__name__} gives no certificates; AnytimeElimination does")
    return Certificate.of(book.policy, book.state, book.feeds.all(), book.since)
