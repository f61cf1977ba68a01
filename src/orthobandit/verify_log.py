"""Check a certificate of a log: recompute its intervals from plans and tallies, with numpy and verify.py.

With y = x_i − x_j, j the reference arm, and g(a) = yᵀΣ⁺(x_a − μ) of the plan that a row was drawn from,
values_i − values_j + g(a)·residual is unbiased for the gap of arm i. Each gap sums that over the plans of all
buckets, weighted by 1/E g², and spends 2α of δ. Values of the arms came from earlier buckets.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

try:
    from orthobandit import verify as decision
except ImportError:  # the two files side by side, without the package
    import verify as decision  # type: ignore[import-not-found, no-redef]

FORMAT = "orthobandit certificate of a log 3"
ARRAYS = ("counts", "sums", "squares", "largest")  # of a feed
EACH = "gmk,gk->gm"  # matrices (G, m, K) times one vector (G, K) each
NAMED = 12  # gaps that the claim names
# Multiples of a ρ that is known well, and their shares of the mixture.
NEAR = np.array([1e-6, 1e-3, 1, 1e3, 1e6]), np.array([0.025, 0.025, 0.9, 0.025, 0.025])


class Gaps(decision.Replay):
    """Evidence on m = K − 1 gaps: entries (6, m) and sizes of residuals as for decisions, events (m,)."""

    def __init__(self, document: dict[str, Any]) -> None:
        super().__init__(document)
        features, self.arm = np.array(document["features"], dtype=float), document["reference"]
        self.others = np.delete(np.arange(len(features)), self.arm)
        differ = np.any(features[self.others] != features[self.arm], axis=1, keepdims=True)
        self.contrasts = np.where(differ, self.x[self.others] - self.x[self.arm], 0.0)
        self.entries, self.plans = np.zeros((6, len(differ))), np.zeros(0)
        self.least = max(10.0, -8 * np.log(np.min(document["tuning"]["alpha"])))  # draws before one is known
        self.pulls: Any = None  # of the plans, which buckets often share with the one before
        self.events: Any = np.full(len(differ), np.inf)

    def geometry(self, p: Any) -> tuple[Any, Any]:
        """Return g (G, m, K) and E g² (G, m) of plans (G, K), infinite for gaps that they cannot estimate."""
        centred, norm = self.x - (p @ self.x)[:, np.newaxis], np.linalg.norm
        values, vectors = np.linalg.eigh(np.swapaxes(centred * p[..., np.newaxis], 1, 2) @ centred)
        tiny = 1e-15 * values.shape[1] * values.max(axis=1, initial=0.0, keepdims=True)
        inside = np.where(values > tiny, values, np.inf)[:, np.newaxis]
        y, tilt = self.contrasts @ vectors, np.maximum(1e-10, 2 * tiny / inside.min(2, initial=np.inf))
        unknown = norm(np.where(np.isinf(inside), y, 0.0), axis=2) >= tilt * norm(y, axis=2)
        there = ~unknown[..., np.newaxis] & (p > 0)[:, np.newaxis]
        g = np.where(there, y / inside @ np.swapaxes(centred @ vectors, 1, 2), 0.0)
        return g, np.where(unknown, np.inf, np.sum(y**2 / inside, axis=2))

    def add(self, p: Any, values: Any, c: Any, s: Any, q: Any, largest: Any) -> None:
        """Add a bucket: plans, counts, sums, squares, largest residuals (G, K), values of the arms (K,)."""
        whole = {"counts": c.sum(0), "sums": s.sum(0), "squares": q.sum(0), "largest": largest.max(0)}
        self.watch(whole | {"use": "evidence", "spread": 0.0}, False)
        if not np.array_equal(p, self.plans):
            self.plans, self.pulls = p, self.geometry(p)
        (g, v), n, e = self.pulls, c.sum(1, keepdims=True), self.entries
        ideal, reach, squared = 1 / v, np.abs(g).max(2), g**2
        w = np.fmin(ideal, self.scale / (self.limit * reach)) if self.exact else ideal
        share = np.divide(self.relative, self.drawn, out=np.ones(len(self.x)), where=self.drawn > 0)
        usual = np.maximum(np.where(np.isfinite(v), v, 0.0), np.einsum(EACH, squared, p * share))
        totals = n * (values[self.others] - values[self.arm]) + np.einsum(EACH, g, s)
        slack, squares = w / np.sqrt(np.maximum(ideal, 1e-300)), w**2 * np.einsum(EACH, squared, q)
        peaks = w * reach * (largest.max(1, keepdims=True) if self.exact else self.excess)
        pooled = peaks * squares if self.exact else w**2 * q.sum(1, keepdims=True) * usual
        parts = [w * totals, w * n, squares, self.bias * n * slack, pooled]
        self.entries = np.vstack([e[:5] + np.sum(parts, axis=1), np.maximum(e[5], peaks.max(0))])
        hardly = (p > 0) & (self.drawn - c.sum(0) + n[:, 0] @ p < self.least)
        carried, total = np.sum([n * ideal**2 * np.einsum(EACH, squared, p * hardly), n * ideal], axis=1)
        hidden = np.where(total > 0, carried > 0.25 * total, self.events == 0)
        self.events = np.where(hidden | (self.largest == 0), 0.0, self.scattered / np.square(self.largest))


def replay(document: dict[str, Any], verdict: decision.Verdict) -> Gaps:
    """Return the evidence after all buckets; note what cannot be."""
    now, laws = Gaps(document), np.array(document["distributions"], dtype=float)
    off = np.abs(laws.sum(1) - 1).max()
    verdict.need(off <= 1e-9 and np.all(laws >= 0), f"probabilities sum to 1 ± {off:.3g}, or one is below 0")
    for b, bucket in enumerate(document["buckets"]):
        feeds, values = bucket["feeds"], np.array(bucket["values"], dtype=float)
        c, s, q, most = (np.array([feed[name] for feed in feeds], dtype=float) for name in ARRAYS)
        places, room = np.array([feed["distribution"] for feed in feeds]), 1 + 1e-8 + 1e-15 * c
        p, top = laws[places], np.minimum(most, now.limit)
        good = (c >= 0) & (c == np.rint(c)) & ((c == 0) | (p > 0)) & (s**2 <= c * q * room)
        good &= (q <= c * top**2 * room) & (most <= np.minimum(np.sqrt(q), now.limit) * room)
        verdict.need(good, f"bucket {b}: no rounds under its plans, and in its range, have these tallies")
        verdict.need(places >= 0, f"bucket {b}: its distributions are not all listed")
        apart = values - values[0]  # columns of x are orthonormal, and its first row is 0
        off = np.abs(apart - now.x @ (now.x.T @ apart)).max()
        verdict.need(off <= 1e-7 * np.ptp(values), f"bucket {b}: values are {off:.3g} off a linear function")
        now.add(p, values, c, s, q, most)
    return now


def check_settings(document: dict[str, Any], verdict: decision.Verdict) -> None:
    """Check what follows from the mode of confidence, its words, and what the gaps spend of δ."""
    mode, delta, words = document["confidence"], document["delta"], document["claim"]["mode"]
    reach, what, alpha = np.inf, "asymptotic,", document["tuning"]["alpha"]
    if mode["name"] != "asymptotic":
        (low, high), offset = (mode["low"], mode["high"]), mode["offset"]
        reach, what = high - low, f"exact for values from {low + offset:g} to {high + offset:g};"
    verdict.same("the limit", mode["limit"], reach, 1e-12 * reach)
    verdict.same("the bias of clipping", mode["bias"], 0.0, 0.0)
    verdict.need(words.startswith(what), f"the mode is {what[:-1]!r}; claimed is {words!r}")
    good = min(alpha) > 0 and 2 * sum(alpha) <= delta * (1 + 1e-9) and delta < 1
    verdict.need(good, f"gaps spend Σ2α = {2 * sum(alpha):.12g}, δ is {delta:.12g}")


def check_claim(document: dict[str, Any], verdict: decision.Verdict) -> None:
    """Recompute estimates, ends and verdicts of all gaps."""
    now, claim, labels = replay(document, verdict), document["claim"], document["labels"]
    tuning = np.array([document["tuning"][name] for name in ("alpha", "rho", "scale")], dtype=float)
    e, known, limit = now.entries, now.entries[1] > 0, now.limit
    good = tuning.shape == e[:3].shape and np.all((tuning > 0) | ~known) and 0 <= now.arm < len(now.x)
    verdict.need(good, "every gap needs α, ρ and a scale above 0, and the reference arm is one of the arms")
    middle = np.where(known, e[0] / e[1], 0.0)
    most = decision.boundary(e, (now.events, np.inf), tuning, now.exact, *NEAR) + e[3]
    width = np.where(known, most / e[1], np.inf)
    room = decision.CLOSE * np.where(np.isfinite(width), width, np.abs(middle) + now.largest)
    low, high = np.maximum(middle - width, -limit), np.minimum(middle + width, limit)
    found = {"estimates": np.where(known, middle, np.inf), "low": low, "high": high}
    others, gaps = [label for i, label in enumerate(labels) if i != now.arm], list[str]()
    for name, right in found.items():
        for arm, one, number, near in zip(others, claim[name], right, room, strict=True):
            given = one if one is not None else -np.inf if name == "low" else np.inf
            verdict.same(f"{name} of {arm!r}", given, float(number), float(near))
    for arm, a, b, word in zip(others, claim["low"], claim["high"], claim["verdicts"], strict=True):
        fits = "better" if (a or 0) > 0 else "worse" if (b or 0) < 0 else "undecided"
        verdict.need(word == fits, f"{arm!r} is claimed to be {word}; its interval says {fits}")
        gaps.append(f"{arm!r} {-np.inf if a is None else a:.6g} to {np.inf if b is None else b:.6g}, {word}")
    more = [f"and {len(gaps) - NAMED} more"] if len(gaps) > NAMED else []
    sure = f"all with probability {1 - document['delta']:.6g} ({document['confidence']['name']})"
    alarms = [f"alarms were raised: {', '.join(document['alarms'])}"] if document["alarms"] else []
    said = "; ".join([*gaps[:NAMED], *more, sure, *alarms])
    verdict.claim = f"gaps of {document['metric']!r} over {labels[now.arm]!r}: {said}"


def verify(document: dict[str, Any]) -> decision.Verdict:
    """Return the verdict on a certificate of a log, as read from JSON."""
    verdict, fits = decision.Verdict(), document.get("digest") == decision.digest(document)
    verdict.need(fits, "the digest does not fit: something was changed")
    try:
        with np.errstate(all="ignore"):
            check_settings(document, verdict)
            check_claim(document, verdict)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        verdict.problems.append(f"the claim cannot be recomputed: {type(error).__name__}, {error}")
    return verdict


def verify_file(path: str | Path) -> decision.Verdict:
    """Return the verdict on a file, a certificate of a log or of decision; ValueError if it is neither."""
    text, spelt = Path(path).read_text(encoding="utf-8"), dict[str, float]()
    document = json.loads(text, parse_float=lambda number: spelt.setdefault(number, float(number)))
    name = document.get("format") if isinstance(document, dict) else None
    if name not in (FORMAT, decision.FORMAT):
        raise ValueError(f"it is neither an {decision.FORMAT!r} nor an {FORMAT!r}")
    verdict = verify(document) if name == FORMAT else decision.verify(document)
    wrong = [number for number, value in spelt.items() if repr(value) != number]  # in digits rounded away
    verdict.problems += [f"{number} is not how that number was written" for number in wrong]
    return verdict


if __name__ == "__main__":
    result = verify_file(sys.argv[1])
    print("\n  ".join([f"valid: {result.claim}"] if result.valid else ["NOT valid:", *result.problems]))
    sys.exit(not result.valid)
