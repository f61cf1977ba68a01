"""Check a certificate of decision: recompute its claim from plans and tallies, with numpy and nothing else.

The method is in docs/inference.md: with g(a) = (x_i − x_j)ᵀΣ⁺(x_a − μ), values_i − values_j + g(a)·residual
is unbiased for the gap of arms i, j. Entry (i, j) sums that over feeds, weighted by 1/E g², and entry (i, i)
against the rival of i in each. Row i spends Σ_j α_ij ≤ δ, and arm i goes once an entry passes its boundary.
"""

import json
import sys
from hashlib import blake2b
from math import erfc, log, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "orthobandit certificate 3"
USES = ("warm-up", "pilot", "evidence")  # of feeds, in this order
ARRAYS = ("p", "values", "counts", "sums", "squares", "largest")  # of a feed
GRID, SHARE = np.array([1 / 8000, 1 / 20, 1, 20, 8000]), np.array([0.02, 0.13, 0.7, 0.13, 0.02])  # of ρ
CLOSE = 1e-6  # of its width: what a claimed bound may differ from the recomputed one by


class Verdict:
    """What a certificate claims, in one sentence, and all that is wrong with it."""

    def __init__(self) -> None:
        self.claim, self.problems = "nothing that can be read", list[str]()

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def need(self, fact: Any, problem: str) -> None:
        """Note a problem unless a fact holds everywhere."""
        self.problems += [] if np.all(fact) else [problem]

    def same(self, name: str, claimed: float | None, found: float, room: float) -> None:
        """Note a claimed number, None if infinite, that is further from the one found than the room."""
        value = np.inf if claimed is None else claimed
        good = value == found or abs(value - found) <= room < np.inf
        self.need(good, f"{name} is claimed to be {value:.12g}; recomputed it is {found:.12g}")


def digest(document: dict[str, Any]) -> str:
    """Return the hash of all but the digest itself: it finds slips and cut files; arithmetic finds lies."""
    return blake2b(json.dumps(document | {"digest": ""}, sort_keys=True).encode()).hexdigest()


def bets_boundary(e: Any, tuning: Any, grid: Any, share: Any) -> Any:
    """Return where a mixture of bets exp(λS − λ²V/2 − λ³H/3(1 − λh)), none above 0.95/c, reaches 1/α."""
    bets, goal = 2.0 ** (np.arange(-80, 41) / 2), -np.log(tuning[0])  # bets in units of 1/√ρ
    edges = np.sqrt(grid / 2) * np.append(0.0, bets[:-1] * 2**0.25)[:, np.newaxis]
    left = np.vectorize(erfc)(edges) @ share  # of |N(0, 1/ρ)|, mixed over ρ, from each bet on
    rho, c, v, third, peak = (one[..., np.newaxis] for one in (*tuning[1:], e[2], e[4], e[5]))
    cut, bet = bets / np.sqrt(rho) >= 0.95 / c, np.minimum(bets / np.sqrt(rho), 0.95 / c)
    weight = np.where(cut, left, left - np.append(left[1:], 0.0)) * (np.cumsum(cut, axis=-1) <= 1)
    cost = np.log(np.maximum(weight, 1e-300)) - bet**2 * (v / 2 + bet * third / (3 * (1 - bet * peak)))
    low, high = 0 * goal, np.min((goal[..., np.newaxis] - cost) / bet, axis=-1)
    for _ in range(64):
        short = np.logaddexp.reduce(cost + bet * ((low + high) / 2)[..., np.newaxis], axis=-1) < goal
        low, high = np.where(short, (low + high) / 2, low), np.where(short, high, (low + high) / 2)
    return high


def boundary(e: Any, seen: Any, tuning: Any, is_exact: bool, grid: Any = GRID, share: Any = SHARE) -> Any:
    """Return how far totals of entries (6, ...) may stray: where a mixture over a grid of ρ reaches 1/α.

    Infinite in the asymptotic mode unless events and waited draws, which were `seen`, suffice for α.
    """
    if is_exact:
        return bets_boundary(e, tuning, grid, share)
    alpha, rho = (one[..., np.newaxis] for one in tuning[:2])
    v = (e[2] + 2 * np.maximum(e[2], e[4])) / 3  # Delyon (2009)
    a = v[..., np.newaxis] + (rho := rho * grid)
    levels = np.logaddexp(0, np.log(a / rho) / 2 - np.log(2 * alpha * share))
    level = np.take_along_axis(levels, np.argmin(a * levels, -1, keepdims=True), -1)[..., 0]
    low, high = 0 * level, 100 * np.min(np.sqrt(2 * a * levels) + levels, axis=-1)
    for _ in range(64):
        s = ((low + high) / 2)[..., np.newaxis]
        parts = np.log(share) + np.log(rho / a) / 2 + s**2 / (2 * a) + np.log(2 - np.exp(-(s**2) / (2 * a)))
        short = np.logaddexp.reduce(parts, axis=-1) < -np.log(tuning[0])
        low, high = np.where(short, s[..., 0], low), np.where(short, high, s[..., 0])
    (events, waited), needed = seen, np.maximum(10, -3 * np.log(tuning[0]))
    enough = (events >= needed) & (waited >= -np.log(tuning[0])) & (e[2] >= needed * e[5] ** 2)
    return np.where(enough, high + e[5] * level, np.inf)


def geometry(x: Any, p: Any) -> tuple[Any, Any, Any]:
    """Return g[i, j, a] (K, K, K), E g² (K, K), infinite where p cannot estimate a pair, and ‖h_a‖² (K,)."""
    centred = x - p @ x
    values, vectors = np.linalg.eigh((centred * p[:, np.newaxis]).T @ centred)
    inside, rotated = values > 1e-15 * len(values) * values.max(), centred @ vectors
    outside = np.linalg.norm(rotated[:, ~inside], axis=1) > 1e-10 * np.linalg.norm(rotated, axis=1)
    white = np.where(outside[:, np.newaxis], 0.0, rotated[:, inside] / np.sqrt(values[inside]))
    apart = white[:, np.newaxis] - white
    v = (apart**2).sum(-1)
    unknown = outside | outside[:, np.newaxis] | (v <= 1e-20 * (white**2).sum(-1).max())
    return apart @ white.T, np.where(unknown, np.inf, v), (white**2).sum(-1)


class Replay:
    """Evidence after some feeds: totals, weights, variances, slack, pooled, peaks (6, K, K), and sizes."""

    def __init__(self, document: dict[str, Any]) -> None:
        x, mode = np.array(document["features"], dtype=float), document["confidence"]
        x, spread, k = x - x[0], np.ptp(x, axis=0), len(x)
        u, s, _ = np.linalg.svd(x[:, spread > 0] / spread[spread > 0], full_matrices=False)
        self.x = u[:, s > 1e-12 * s.max(initial=0.0)]  # coordinates of the arms on their affine hull
        self.exact, self.bias, self.limit = mode["limit"] is not None, mode["bias"], mode["limit"] or np.inf
        self.scale, self.entries = np.array(document["tuning"]["scale"]), np.zeros((6, k, k))
        self.drawn, self.relative, self.largest, self.excess = np.zeros(k), np.zeros(k), 0.0, 0.0
        self.rounds, self.squared, self.scattered = 0.0, 0.0, 0.0
        self.met = np.zeros((k, k), dtype=bool)  # rivals that each arm was tested against

    def watch(self, f: dict[str, Any], is_first: bool) -> None:
        """Note how large residuals are; of the warm-up only the largest, without the first feed."""
        n, squared, largest = f["counts"].sum(), f["squares"].sum(), f["largest"].max()
        self.drawn = self.drawn + f["counts"]
        if f["use"] == "warm-up":
            self.largest, self.relative = max(self.largest, 0.0 if is_first else largest), self.drawn
            return
        self.relative = self.relative + (f["squares"] * (n / squared) if squared > 0 else f["counts"])
        if 10 * largest < self.largest <= 2 * f["spread"]:  # what was large were gaps, before they were known
            self.rounds = self.squared = self.scattered = self.largest = self.excess = 0.0
        self.rounds, self.squared = self.rounds + n, self.squared + squared
        self.scattered += max(squared - f["sums"].sum() ** 2 / n, 0.0)
        usual = max(squared / n, self.squared / self.rounds) * (2 * log(self.rounds) + 6)
        self.excess = max(self.excess, min(2 * sqrt(max(largest**2 - usual, 0.0)), largest))
        self.largest = max(self.largest, largest)

    def count(self, f: dict[str, Any], counted: Any) -> None:
        """Add a feed to entries that count it, weighted by 1/E g² or, if exact, by what the scale allows."""
        p, n, (g, v, size), each = f["p"], f["counts"].sum(), geometry(self.x, f["p"]), np.arange(len(self.x))
        share = np.divide(self.relative, self.drawn, out=np.ones_like(p), where=self.drawn > 0)
        pooled = f["squares"].sum() * np.maximum(np.where(np.isfinite(v), v, 0.0), g**2 @ (p * share))
        draws = np.maximum(self.drawn - f["counts"] + f["length"] * p, 1e-300)  # by the end of the plan
        doubt = 10 * g**2 @ (p * np.minimum(p * size, 1) / draws) * (not self.exact)
        seen = np.where(doubt > v, np.inf, v)
        totals = n * (f["values"][:, np.newaxis] - f["values"]) + g @ f["sums"]
        parts = np.stack([seen, np.abs(g[:, :, p > 0]).max(-1), totals, g**2 @ f["squares"], pooled])
        parts[:, each, each] = parts[:, each, f["rivals"]]
        ideal, (_, reach, totals, squares, pooled) = np.where(counted, 1 / parts[0], 0.0), parts
        w, e = np.minimum(ideal, self.scale / (self.limit * reach) if self.exact else np.inf), self.entries
        peak = w * reach * (min(f["largest"].max(), self.limit) if self.exact else self.excess)
        pooled, slack = peak * squares if self.exact else pooled, w / np.sqrt(np.maximum(ideal, 1e-300))
        added = [w * totals, w * n, w**2 * squares, self.bias * n * slack, w**2 * pooled]
        self.entries = np.stack([*(e[:5] + added), np.maximum(e[5], peak)])
        self.met[each, f["rivals"]] |= counted[each, each]

    def seen(self) -> tuple[float, Any]:
        """Return events, and effective draws of all entries per log(1/α) that a claim takes."""
        e, quiet = self.entries, (self.drawn > 0) & (self.relative < 0.25 * self.drawn)
        pairs = quiet | quiet[:, np.newaxis]
        pairs[np.diag_indices(len(quiet))] = quiet | (self.met & quiet).any(axis=1)
        spread = e[1] * e[2]
        gap = np.divide(e[0] ** 2, spread, out=np.full(spread.shape, np.inf), where=spread > 0)
        waited = e[1] / np.where(pairs, 50, np.clip(1.5 * gap, 4, 50))
        return (self.scattered / self.largest**2 if self.largest > 0 else 0.0), waited


def replay(document: dict[str, Any], verdict: Verdict) -> list[tuple[Any, tuple[float, Any]]]:
    """Return evidence and what was seen before the first and after every feed; note what cannot be."""
    now, since, each = Replay(document), np.array(document["since"]), np.arange(len(document["features"]))
    # Entries that began when an arm was retired or added count no rounds that were drawn before.
    first = np.array(document.get("first_plan", np.zeros_like(since)))
    stage, newest, out, retired, feeds = (
        0,
        0,
        [(now.entries, now.seen())],
        document["retired"],
        document["feeds"],
    )
    known = [np.ptp(f["values"][: f["arms"]]) for f in feeds if f["use"] != "warm-up" and f["length"]]
    lost = [[rival in retired for rival in feed["rivals"]] for feed in feeds]
    anew = np.diag([any(row[i] for row in lost[: since[i, i]]) for i in each])
    for n, feed in enumerate(feeds):
        f: dict[str, Any] = feed | {"p": document["distributions"][feed["distribution"]]}
        f |= {name: np.array(f[name], dtype=float) for name in ARRAYS}
        (p, values, c, s, q, most), k, use = (f[name] for name in ARRAYS), f["arms"], USES.index(f["use"])
        f["spread"], room = float(np.ptp(values[:k])), 1 + 1e-8 + 1e-15 * c
        verdict.need(abs(p.sum() - 1) <= 1e-9, f"feed {n}: probabilities sum to {p.sum():.12g}, not to 1")
        good = (p >= 0) & (c >= 0) & (c == np.rint(c)) & (c <= c.sum() * np.ceil(p)) & (s**2 <= c * q * room)
        good &= (q <= c * np.minimum(most, now.limit) ** 2 * room) & (most <= np.sqrt(q) * room)
        verdict.need(good, f"feed {n}: {c} rounds under {p} cannot sum to {s}, squared {q}, at most {most}")
        x, values = now.x[:k] - now.x[0], values[:k] - values[0]
        off = np.abs(values - x @ np.linalg.lstsq(x, values, rcond=None)[0]).max()
        verdict.need(off <= 1e-7 * f["spread"], f"feed {n}: values are {off:.3g} off a linear function")
        good = stage <= use <= stage + 1 and (f["plan"] > newest or not f["length"])
        verdict.need(good, f"feed {n}: {f['use']} of plan {f['plan']} after {USES[stage]} of plan {newest}")
        if stage < use == 1:  # the gaps, now known, are taken off what the warm-up saw
            now.largest = max(now.largest - 2 * (known or [0.0])[0], 0.0)
        now.scattered *= not stage < use == 2  # whether it may speak is for rounds that count to say
        stage, newest = use, f["plan"] if f["length"] else newest  # those restricted to some arms come first
        now.watch(f, n == 0)
        if stage == 2:
            there = np.maximum(each, each[:, np.newaxis]) < k
            good = ~there | (((since <= n) | anew) & (f["rivals"] != each)[:, np.newaxis])
            good &= (first <= f["plan"]) | (since > n) | (not f["length"])
            verdict.need(good, f"feed {n}: an arm is its own rival, or a test leaves the feed out")
            now.count(f, there & (since <= n) & (first <= f["plan"]) & ~np.diag(lost[n]))
        out.append((now.entries, now.seen()))
    return out


def check_settings(document: dict[str, Any], verdict: Verdict) -> None:
    """Check what follows from the mode of confidence, and what every row spends of δ."""
    mode, tuning, delta = (document[name] for name in ("confidence", "tuning", "delta"))
    reach = np.inf if mode["name"] == "asymptotic" else mode["high"] - mode["low"]
    z, sigma = sqrt(-log(mode["tail"])), mode["sigma"]
    verdict.same("the limit", mode["limit"], reach + sigma * sqrt(2) * z, 1e-12 * (reach + sigma))
    verdict.same("the bias of clipping", mode["bias"], sigma * sqrt(2 * pi) * erfc(z), 1e-12 * sigma)
    if any(feed["use"] == "evidence" for feed in document["feeds"]):
        for i, (row, spent) in enumerate(zip(tuning["alpha"], tuning["spent"], strict=True)):
            good = min(row) > 0 and sum(row) <= spent * (1 + 1e-9) and spent <= delta * (1 + 1e-9)
            verdict.need(good, f"row {i} spends Σα = {sum(row):.12g} of {spent:.12g}, δ is {delta:.12g}")


def check_claim(document: dict[str, Any], verdict: Verdict) -> None:
    """Recompute proofs against dropped arms, the bounds of the leader's column, ε and the declaration."""
    claim, x, retired, labels = (document[name] for name in ("claim", "features", "retired", "labels"))
    history, is_exact = replay(document, verdict), document["confidence"]["limit"] is not None
    tuning = np.array([document["tuning"][name] for name in ("alpha", "rho", "scale")])
    survivors, leader, drops = claim["survivors"], claim["leader"], claim["dropped"]
    named = sorted([*survivors, *retired, *(drop["arm"] for drop in drops)])
    good = named == [*range(len(x))] and leader in survivors
    verdict.need(good, f"survivors, dropped and retired are {named} of {len(x)} arms, the leader is {leader}")
    for i, j, n in ((drop["arm"], drop["rival"], drop["feed"]) for drop in drops):
        at, (e, (events, waited)) = (slice(None), i, i if j is None else j), history[n + 1]
        total, most = e[at][0], boundary(e[at], (events, waited[at[1:]]), tuning[at], is_exact) + e[at][3]
        fact = e[at][1] > 0 and -total >= most * (1 - CLOSE) and j not in retired and min(at[1:]) >= 0
        verdict.need(fact, f"arm {i} is not dropped at feed {n}: {total:.9g} is not below −{most:.9g}")
    e, (events, waited) = history[-1][0][:, :, leader], history[-1][1]
    width = (boundary(e, (events, waited[:, leader]), tuning[:, :, leader], is_exact) + e[3]) / e[1]
    bounds = np.where(e[1] > 0, e[0] / e[1] + width, np.inf)
    for i in {*range(len(x))} - {leader}:
        verdict.same(f"what arm {i} may lead by", claim["bounds"][i], float(bounds[i]), CLOSE * width[i])
    epsilon = float(max([0.0, *(bounds[i] for i in survivors if x[i] != x[leader])]))
    verdict.same("ε", claim["epsilon"], epsilon, CLOSE * np.max(width, initial=0, where=np.isfinite(width)))
    good = claim["declared"] is None or (claim["declared"] == leader and epsilon <= document["epsilon"])
    verdict.need(good, f"arm {claim['declared']} is declared; the leader {leader} is within {epsilon:.12g}")
    what = f"within {epsilon:.6g} of the best" if epsilon else "the best"
    sure = f"with probability {1 - document['delta']:.6g} ({document['confidence']['name']})"
    verdict.claim = f"{labels[leader]!r} is {what} of {len(x) - len(retired)} arms, {sure}"


def verify(document: dict[str, Any]) -> Verdict:
    """Return the verdict on a certificate, as read from JSON."""
    verdict = Verdict()
    verdict.need(document.get("digest") == digest(document), "the digest does not fit: something was changed")
    try:
        with np.errstate(all="ignore"):
            check_settings(document, verdict)
            check_claim(document, verdict)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        verdict.problems.append(f"the claim cannot be recomputed: {type(error).__name__}, {error}")
    return verdict


def verify_file(path: str | Path) -> Verdict:
    """Return the verdict on a file; ValueError if it is no certificate, OSError if it cannot be read."""
    text, spelt = Path(path).read_text(encoding="utf-8"), dict[str, float]()
    document = json.loads(text, parse_float=lambda number: spelt.setdefault(number, float(number)))
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"it is not an {FORMAT!r}")
    verdict = verify(document)
    for number, value in spelt.items():  # no digit may change, not even one that is rounded away
        verdict.need(repr(value) == number, f"{number} is not how that number was written")
    return verdict


if __name__ == "__main__":
    found = verify_file(sys.argv[1])
    print("\n  ".join([f"valid: {found.claim}"] if found.valid else ["NOT valid:", *found.problems]))
    sys.exit(not found.valid)
