"""Check a certificate: recompute what an experiment or an analysis claims, with numpy and nothing else.

    python verify.py decision.json
    python verify.py decision.json --head "37:1f6c…"     # against a head that was published earlier

A certificate has four parts. `settings` say what was fixed before the first draw. `entries` say what
happened, in order: plans, and sums of rewards under each. `claim` says what is concluded. `head` and
`digest` are hashes. This file believes settings and entries, and recomputes all that follows from them:
stages, estimated values, leaders and rivals, how δ is split, how boundaries are tuned, when arms are
dropped, every bound, the claim. The certificate repeats some of these numbers for the reader; one that
differs is a problem.

The method (docs/inference.md): x_a are the features of arm a, drawn with probability p_a; μ and Σ are mean
and covariance of x under p. For arms i and j let g(a) = (x_i − x_j)ᵀΣ⁺(x_a − μ). A residual is a reward
minus a forecast of the level minus the value of its arm, both fixed before the draw. Then

    ψ = values_i − values_j + g(a)·residual

has mean (x_i − x_j)ᵀθ, the gap of the two arms, whatever the level does. Sums of ψ, weighted by 1/E g²,
stray from the truth by more than a boundary with probability at most α, at all times at once. The sections
below are: hashes; boundaries; modes; tallies; geometry; experiments; experiments with very many arms; logs;
rules; the verdict.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator
from hashlib import blake2b
from html import escape
from math import ceil, erfc, log, pi, sqrt
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "orthobandit certificate 5"
OLDER = "orthobandit certificate"  # how the names of earlier formats begin; they end with a number
# The commits whose verify.py reads earlier formats, by number: releases 0.2.0 (1) and 0.4.1 (4), and between.
READERS = {"1": "3de0c815", "2": "227bab44~1", "3": "b720d5db~1", "4": "1f7f3d23"}
CLOSE = 1e-6  # relative difference of a claimed number from the recomputed one that rounding may explain
NEARLY = 1e-7  # the same for estimated values, relative to how much they differ between arms or scatter
ROUNDING = 1e-13  # the same where arms seem equal, relative to the largest residual
NOT_NEAR = "not yet known to be near the best"  # what is claimed of the leader before there is evidence
TINY = 1e-100  # stands in for a gap or a variance of zero


class Verdict:
    """What a certificate claims, in one sentence, and all that is wrong with it."""

    def __init__(self) -> None:
        self.claim = "nothing that can be read"
        self.head = ""
        self.problems: list[str] = []

    @property
    def valid(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def __str__(self) -> str:
        """Return whether the certificate is valid, what it claims, and what is wrong with it, a line each."""
        lines = [f"{'valid' if self.valid else 'NOT VALID'}: {self.claim}"]
        return "\n".join([*lines, *(f"  wrong: {problem}" for problem in self.problems)])

    def __repr__(self) -> str:
        state = "valid" if self.valid else f"not valid, {len(self.problems):,} problems"
        return f"Verdict({state}: {self.claim})"

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        wrong = "".join(f"<li>{escape(problem)}</li>" for problem in self.problems)
        state = "Valid" if self.valid else "Not valid"
        return f"<p><b>{state}:</b> {escape(self.claim)}</p>" + (f"<ul>{wrong}</ul>" if wrong else "")

    def need(self, fact: Any, problem: str) -> None:
        """Note a problem unless a fact holds everywhere."""
        if not np.all(fact):
            self.problems.append(problem)

    def same(self, name: str, claimed: float | None, found: float, room: float) -> None:
        """Note a problem if a claimed number, None if infinite, is not within `room` of the one found."""
        value = np.inf if claimed is None else claimed
        good = value == found or abs(value - found) <= room < np.inf
        self.need(good, f"{name} is claimed to be {value:.12g}; recomputed it is {found:.12g}")


def check_names(what: str, part: dict[str, Any], names: set[str], verdict: Verdict) -> None:
    """Note a problem if names are missing, or are there that nothing here checks."""
    odd = sorted(set(part) ^ names)
    verdict.need(not odd, f"{what} must have the parts {sorted(names)}; missing or odd are {odd}")


# Hashes -----------------------------------------------------------------------------------------------------


def canonical(part: Any) -> str:
    """Return the one text of a part of a certificate that is hashed."""
    return json.dumps(part, sort_keys=True, separators=(",", ":"))


def digest(document: dict[str, Any]) -> str:
    """Return the hash of all but the digest itself: it reveals damage, and the recomputation reveals lies."""
    return blake2b(canonical(document | {"digest": ""}).encode()).hexdigest()


def link(before: str, text: str) -> str:
    """Return the next hash of the chain, from the one before and the text of an entry."""
    return blake2b(f"{before}\n{text}".encode(), digest_size=20).hexdigest()


def heads(settings: Any, entries: list[Any]) -> Iterator[str]:
    """Yield the head of the chain before the first entry, and after each: ``"number of entries:hash"``.

    No entry and no setting can change, be added or be left out without changing all heads from there on. So a
    head that was published binds everything up to it.
    """
    hashed = link(FORMAT, canonical(settings))
    yield f"0:{hashed}"
    for number, entry in enumerate(entries, start=1):
        hashed = link(hashed, canonical(entry))
        yield f"{number}:{hashed}"


def check_published(document: dict[str, Any], published: str, verdict: Verdict) -> None:
    """Check that the log of a certificate goes on from a head that was published earlier."""
    count = published.partition(":")[0]
    known = {head.partition(":")[0]: head for head in heads(document["settings"], document["entries"])}
    if count not in known:
        verdict.problems.append(
            f"the head {published!r} was published after {count!r} entries; the certificate has"
            f" {len(document['entries'])}: it was cut, or is older than the head"
        )
        return
    verdict.need(
        known[count] == published.strip(),
        f"after {count} entries the head is {known[count]}, and {published.strip()} was published:"
        " the log was changed since, or is another one",
    )


# Boundaries -------------------------------------------------------------------------------------------------
# Evidence on a contrast is six numbers: total Σwψ, weight Σw, variance Σ(w·g·residual)², slack for
# clipping, pooled (what the variance should be on average; in exact modes a bound of the sum of cubes), and
# peak (the largest |w·g·residual|). Tuning is three: α, ρ (where the boundary is tightest), scale (most
# that any round may move the total by). A mixture of supermartingales ever reaches 1/α with probability at
# most α (Ville).

TOTAL, WEIGHT, VARIANCE, SLACK, POOLED, PEAK = range(6)
ALPHA, RHO, SCALE = range(3)
STEPS = 2.0 ** (np.arange(-80, 41) / 2)  # bets that are mixed over, in units of 1/√ρ
BOLDEST = 0.95  # highest bet, in units of the one that a single round could ruin
RUINOUS = BOLDEST * (1 + 1e-9)  # beyond it by more than rounding
NO_LIMIT = 1e-300  # scale of bets that nothing cuts
# The asymptotic mode says nothing at a level α before it has seen so many events (see Sizes.events), or so
# many in units of log(1/α) if that is more.
EVENTS = 10.0
EVENTS_PER_LEVEL = 3.0


class Grid:
    """Multiples of ρ that are mixed over, their shares, and the shares of bets of each step or more."""

    def __init__(self, multiples: list[float], shares: list[float]) -> None:
        self.multiples = np.array(multiples)
        self.shares = np.array(shares)
        edges = np.append(0.0, STEPS[:-1] * 2**0.25)[:, np.newaxis]
        self.from_each_on = np.vectorize(erfc)(edges * np.sqrt(self.multiples / 2)) @ self.shares


class LogBets:
    """Distributions of a bet's logarithm in units of 1/√ρ, normal around 0; shares as those of a Grid."""

    def __init__(self, deviations: list[float], shares: list[float]) -> None:
        self.deviations = np.array(deviations)
        self.shares = np.array(shares)
        edges = np.append(-np.inf, np.log(STEPS[:-1] * 2**0.25))[:, np.newaxis]
        self.from_each_on = np.vectorize(erfc)(edges / (sqrt(2) * self.deviations)) @ self.shares / 2


WIDE = Grid([1 / 8000, 1 / 20, 1, 20, 8000], [0.02, 0.13, 0.7, 0.13, 0.02])  # where ρ is a guess: experiments
NEAR = Grid([1e-6, 1e-3, 1, 1e3, 1e6], [0.025, 0.025, 0.9, 0.025, 0.025])  # where it is known better: logs
EXPECTED = LogBets([0.5, 2.5], [0.8, 0.2])  # where 1/√ρ suits a gap that was expected


def log_bets(total: Any, e: Any, tuning: Any, grid: Grid | LogBets) -> Any:
    """Return the logarithm of a mixture of bets exp(λS − λ²V/2 − λ³H/(3(1 − λh))) at S = `total`.

    V, H and h are variance, pooled and peak. λ is distributed as |N(0, 1/ρ)|, mixed over multiples of ρ, or
    log-normally around 1/√ρ, on steps of √2; all bets above 0.95/scale are made at 0.95/scale. Bets above
    0.95/h, which exceed that only where no scale was declared, are lost.
    """
    rho = tuning[RHO][..., np.newaxis]
    scale = tuning[SCALE][..., np.newaxis]
    variance, cubes, peak = (e[part][..., np.newaxis] for part in (VARIANCE, POOLED, PEAK))
    highest = BOLDEST / scale
    is_cut = STEPS / np.sqrt(rho) >= highest
    bet = np.minimum(STEPS / np.sqrt(rho), highest)
    # The first bet that is cut takes the share of all above it; those above it count no more.
    left = grid.from_each_on
    share = np.where(is_cut, left, left - np.append(left[1:], 0.0))
    share = share * (np.cumsum(is_cut, axis=-1) <= 1)
    is_lost = bet * peak > RUINOUS
    room = np.where(is_lost, 1.0, 1 - bet * peak)
    cost = np.where(is_lost, np.inf, bet**2 * (variance / 2 + bet * cubes / (3 * room)))
    return np.logaddexp.reduce(
        np.log(np.maximum(share, 1e-300)) - cost + bet * np.asarray(total)[..., np.newaxis], axis=-1
    )


def log_normals(total: Any, e: Any, tuning: Any, grid: Grid | LogBets) -> Any:
    """Return the logarithm of a mixture of normal mixtures at S = `total`, in the asymptotic mode.

    V is a third of the squares seen and two thirds of their expectation (Delyon 2009). S is first reduced by
    peak·l for rare events, l being the exponent of the component with the lowest boundary. Log-normal bets
    pay for rare events as if their size was the bound of all rounds.
    """
    v = (e[VARIANCE] + 2 * np.maximum(e[VARIANCE], e[POOLED])) / 3
    if isinstance(grid, LogBets):
        known = np.stack([e[TOTAL], e[WEIGHT], v, e[SLACK], e[PEAK] * v, e[PEAK]])
        unlimited = np.stack([tuning[ALPHA], tuning[RHO], np.full_like(tuning[SCALE], NO_LIMIT)])
        return log_bets(total, known, unlimited, grid)
    multiples = grid.multiples
    shares = grid.shares
    rho = tuning[RHO][..., np.newaxis] * multiples
    a = v[..., np.newaxis] + rho
    levels = np.logaddexp(0, np.log(a / rho) / 2 - np.log(2 * tuning[ALPHA][..., np.newaxis] * shares))
    level = np.take_along_axis(levels, np.argmin(a * levels, axis=-1)[..., np.newaxis], axis=-1)[..., 0]
    s = np.maximum(total - e[PEAK] * level, 0.0)[..., np.newaxis]
    exponent = s**2 / (2 * a)
    parts = np.log(shares) + np.log(rho / a) / 2 + exponent + np.log(2 - np.exp(-exponent))
    return np.logaddexp.reduce(parts, axis=-1)


def may_speak(e: Any, events: Any, waited: Any, alpha: Any, factor: float = 1.0) -> Any:
    """Tell on which contrasts the asymptotic mode has seen enough to claim something at a level α.

    There must be events enough, and of each contrast variance enough that no single round could carry much of
    it. `waited` (see Run.waited) must have come to log(1/α). `factor` exaggerates what was seen, for what may
    be a matter of rounding.
    """
    level = -np.log(alpha)
    needed = np.maximum(EVENTS, EVENTS_PER_LEVEL * level)
    is_calm = factor * e[VARIANCE] >= needed * e[PEAK] ** 2
    return (factor * np.asarray(events) >= needed) & is_calm & (factor * np.asarray(waited) >= level)


def known_events(carried: Any, events: float, alpha: Any) -> Any:
    """Return the events that contrasts (m,) of a log may count: none while they rest on arms hardly drawn.

    `carried` (3, m, K) is what each arm should carry of the variance of each, if residuals are alike, and Σ c
    and Σ c² of what its draws carry: of everything that counted, as the sums themselves, and not of what came
    last. An arm is known as well as from (Σ c)²/Σ c² draws that carry alike.
    """
    expected, pulled, squared = carried
    least = max(DRAWN, -PER_LEVEL * log(alpha.min()))
    is_unknown = (pulled == 0) | (pulled**2 < least * squared)
    unknown = np.where(is_unknown, expected, 0.0).sum(axis=1)
    return np.where(unknown > HIDDEN * expected.sum(axis=1), 0.0, events)


def carried_by(part: Any, expected: Any, counts: Any) -> Any:
    """Return what rounds of plans carry (3, G, m, K), of which a draw carries `part`: see `known_events`.

    `expected` and `counts` are the draws of each arm that were to come, and those that came.
    """
    return np.stack([part * expected, part * counts, part**2 * counts])


def is_reached(total: Any, e: Any, speaks: Any, tuning: Any, is_exact: bool, grid: Grid | LogBets) -> Any:
    """Tell where totals, less their slack, have reached the boundary, among contrasts that may speak."""
    s = total - e[SLACK]
    goal = -np.log(tuning[ALPHA])
    # No mixture is above 2·exp(S²/2V): most entries need not be looked at any closer.
    found = (s > 0) & (s**2 >= 2 * e[VARIANCE] * (goal - log(2))) & speaks
    mixture = log_bets if is_exact else log_normals
    found[found] = mixture(s[found], e[:, found], tuning[:, found], grid) >= goal[found]
    return found


def boundary(e: Any, speaks: Any, tuning: Any, is_exact: bool, grid: Grid | LogBets) -> Any:
    """Return where the mixture reaches 1/α, by bisection; infinite for contrasts that may not speak yet."""
    mixture = log_bets if is_exact else log_normals
    goal = -np.log(tuning[ALPHA])
    low = np.zeros_like(goal)
    high = np.sqrt(e[VARIANCE] + tuning[RHO]) + e[PEAK]
    for _ in range(200):
        is_short = mixture(high, e, tuning, grid) < goal
        if not is_short.any():
            break
        high = np.where(is_short, 2 * high, high)
    for _ in range(64):
        middle = (low + high) / 2
        is_short = mixture(middle, e, tuning, grid) < goal
        low, high = np.where(is_short, middle, low), np.where(is_short, high, middle)
    return np.where(speaks, high, np.inf)


def tightest_rho(variance: Any, alpha: Any) -> Any:
    """Return the ρ whose boundary is tightest near a variance (Howard et al. 2021, §3.5)."""
    double = -2 * np.log(alpha)
    return variance / (double + np.log1p(double))


# Modes ------------------------------------------------------------------------------------------------------


class Mode:
    """What was declared: nothing, the range of rewards, or the range of means and the scale of noise."""

    def __init__(self, settings: dict[str, Any], verdict: Verdict) -> None:
        given = settings["confidence"]
        self.name = given["name"]
        self.low, self.high = -np.inf, np.inf
        self.limit = np.inf
        self.bias = 0.0
        self.words = self.name
        self.takes_values = True  # whether sums estimate gaps, and not their signs alone
        self.is_exact = not self.name.startswith("asymptotic")
        self.is_bounded = self.name == "bounded rewards"
        if self.name == "asymptotic, same-shape noise":
            # Residuals, from which no values of arms are taken, are clipped.
            self.takes_values = False
            self.limit = float(given["clip"])
            verdict.need(0 < self.limit < np.inf, f"residuals cannot be clipped at {self.limit}")
            self.words = f"{self.name}, clipped at {self.limit:.12g}"
            return
        if not self.is_exact:
            verdict.need(self.name == "asymptotic", f"no mode is called {self.name!r}")
            return
        verdict.need(self.is_bounded or self.name == "sub-Gaussian noise", f"no mode is called {self.name!r}")
        self.low, self.high = float(given["low"]), float(given["high"])
        verdict.need(-np.inf < self.low < self.high < np.inf, f"{self.low} to {self.high} is no range")
        self.limit = self.high - self.low
        offset = given.get("offset", 0.0)
        ends = f"{self.low + offset:.12g} to {self.high + offset:.12g}"
        self.words = f"{self.name} from {ends}"
        if "error" in given:
            # Means were rounded; Σ p·|g| ≤ √v times what that moves them by is added to every interval.
            self.bias = float(given["error"])
            verdict.need(self.is_bounded and 0 < self.bias < np.inf, f"{self.bias} is no error of means")
            self.words += f", means rounded by up to {self.bias:.12g}"
        if not self.is_bounded:
            # Residuals are clipped where noise is rarer than 2·tail; the bias is the integral of
            # 2·exp(−z²/2σ²) beyond the clip.
            sigma = float(given["sigma"])
            tail = float(given["tail"])
            verdict.need(sigma > 0 and 0 < tail < 1, f"σ = {sigma} and tail = {tail} must be above 0")
            self.limit += sigma * sqrt(-2 * log(tail))
            self.bias = sigma * sqrt(2 * pi) * erfc(sqrt(-log(tail)))
            self.words = f"{self.name} of scale {sigma:.12g} (tail {tail:.12g}), means from {ends}"

    def check_tells_sizes(self, verdict: Verdict) -> None:
        """Note a problem if intervals are claimed in a mode whose sums show only signs of gaps."""
        verdict.need(self.takes_values, f"the mode {self.name!r} has no intervals")


# Tallies ----------------------------------------------------------------------------------------------------


class Tally:
    """Sums of the residuals of each arm: counts, sums, squares and the largest magnitude, (K,) or (G, K)."""

    def __init__(self, counts: Any, sums: Any, squares: Any, largest: Any) -> None:
        self.counts = np.asarray(counts, dtype=float)
        self.sums = np.asarray(sums, dtype=float)
        self.squares = np.asarray(squares, dtype=float)
        self.largest = np.asarray(largest, dtype=float)

    @classmethod
    def read(cls, given: dict[str, Any]) -> "Tally":
        """Take the tally out of an entry."""
        return cls(*(given[name] for name in ("counts", "sums", "squares", "largest")))

    @classmethod
    def zeros(cls, count: int) -> "Tally":
        """Return the tally of no rounds."""
        return cls(*np.zeros((4, count)))

    def plus(self, other: "Tally") -> "Tally":
        """Return both together."""
        return Tally(
            self.counts + other.counts,
            self.sums + other.sums,
            self.squares + other.squares,
            np.maximum(self.largest, other.largest),
        )

    def padded(self, more: int) -> "Tally":
        """Return the tally with so many more arms, which were not drawn."""
        return Tally(
            *(np.pad(one, (0, more)) for one in (self.counts, self.sums, self.squares, self.largest))
        )

    @property
    def rounds(self) -> float:
        """Rounds of all arms."""
        return float(self.counts.sum())


def check_tally(where: str, p: Any, tally: Tally, low: Any, high: Any, verdict: Verdict) -> None:
    """Note a problem if no residuals between low and high (K,), drawn from p, can have such a tally."""
    n = tally.counts
    s = tally.sums
    q = tally.squares
    most = tally.largest
    shapes = {np.shape(p), n.shape, s.shape, q.shape, most.shape}
    verdict.need(
        len(shapes) == 1, f"{where}: counts, sums, squares, largest and probabilities differ in shape"
    )
    numbers = np.stack([n, s, q, most])
    verdict.need(np.isfinite(numbers), f"{where}: a number is not finite")
    verdict.need((n >= 0) & (n == np.rint(n)), f"{where}: counts {n} are not whole numbers")
    verdict.need((n == 0) | (np.asarray(p) > 0), f"{where}: an arm was drawn that the plan does not play")
    room = 1 + 1e-8 + 1e-15 * n
    verdict.need((n > 0) | ((s == 0) & (q == 0) & (most == 0)), f"{where}: sums of an arm that was not drawn")
    verdict.need(s**2 <= n * q * room, f"{where}: sums {s} are too large for squares {q}")
    verdict.need(most <= np.sqrt(q) * room, f"{where}: the largest residuals {most} exceed √squares")
    verdict.need(q <= n * most**2 * room, f"{where}: squares {q} are too large for the largest {most}")
    if np.all(np.isfinite(low)):
        edge = np.maximum(np.abs(low), np.abs(high))
        verdict.need(
            (n == 0) | (most <= edge * (1 + 1e-9)), f"{where}: residuals {most} leave the declared range"
        )
        # (u − low)(high − u) ≥ 0 for each residual u: squares are largest if all lie at the ends.
        widest = (low + high) * s - n * low * high
        verdict.need(q <= widest + 1e-8 * n * edge**2, f"{where}: residuals spread beyond the declared range")


def check_probabilities(where: str, p: Any, verdict: Verdict) -> None:
    """Note a problem if p is not a distribution."""
    good = np.all(p >= 0) and abs(p.sum() - 1) <= 1e-9
    verdict.need(good, f"{where}: probabilities {p} are not at least 0, or sum to {p.sum():.12g}")


class Sizes:
    """How large residuals were so far: what the asymptotic mode may say depends on it."""

    def __init__(self, count: int) -> None:
        self.rounds = self.squared = self.scattered = self.largest = self.excess = 0.0
        self.drawn = np.zeros(count)  # rounds of each arm
        self.relative = np.zeros(count)  # its squares, in units of what they were on average for all arms

    def add(self, tally: Tally) -> None:
        """Take in rounds of one time."""
        n = tally.rounds
        squared = tally.squares.sum()
        largest = tally.largest.max()
        self.drawn = self.drawn + tally.counts
        self.relative = self.relative + (tally.squares * (n / squared) if squared > 0 else tally.counts)
        self.rounds += n
        self.squared += squared
        self.scattered += scatter_of(tally)
        # The largest square of n light-tailed residuals rarely exceeds (2·log n + 6) times their mean.
        usual = max(squared / n, self.squared / self.rounds) * (2 * log(self.rounds) + 6)
        self.excess = max(self.excess, min(2 * sqrt(max(largest**2 - usual, 0.0)), largest))
        self.largest = max(self.largest, largest)

    def forget(self) -> None:
        """Begin anew, except for the draws of each arm."""
        self.rounds = self.squared = self.scattered = self.largest = self.excess = 0.0

    @property
    def events(self) -> float:
        """Scatter in units of the largest square."""
        return self.scattered / self.largest**2 if self.largest > 0 else 0.0

    @property
    def loudness(self) -> Any:
        """How much larger squares of each arm (K,) are than those of all; 1 if it was never drawn."""
        return np.divide(self.relative, self.drawn, out=np.ones_like(self.drawn), where=self.drawn > 0)


def scatter_of(tally: Tally) -> float:
    """Return the sum of squares around the mean of all arms."""
    return max(float(tally.squares.sum() - tally.sums.sum() ** 2 / max(tally.rounds, 1.0)), 0.0)


# Geometry ---------------------------------------------------------------------------------------------------


def hull(features: Any) -> Any:
    """Return coordinates (K, r) of the arms on their affine hull, in units that suit each feature."""
    x = features - features[0]
    spread = np.ptp(x, axis=0)
    u, s, _ = np.linalg.svd(x[:, spread > 0] / spread[spread > 0], full_matrices=False)
    # Arms with the same features get the same coordinates, to the last digit.
    _, first, which = np.unique(features, axis=0, return_index=True, return_inverse=True)
    return u[first[which.ravel()]][:, s > 1e-12 * s.max(initial=0.0)]


class PairGeometry:
    """What a distribution p over arms can say of all pairs: g(a) (K, K, K) and v = E g² (K, K).

    v is infinite for pairs that p cannot estimate. `size` (K,) is ‖Σ^(−1/2)(x_a − μ)‖², `reach` (K, K) the
    largest |g(a)| over arms that can be drawn.
    """

    def __init__(self, x: Any, p: Any) -> None:
        around = x - x[np.argmax(p)]
        centred = around - p @ around
        values, vectors = np.linalg.eigh((centred * p[:, np.newaxis]).T @ centred)
        inside = values > 1e-15 * len(values) * values.max(initial=0.0)
        rotated = centred @ vectors
        length = np.linalg.norm(rotated, axis=1)
        outside = np.linalg.norm(rotated[:, ~inside], axis=1) > 1e-10 * length
        white = np.where(outside[:, np.newaxis], 0.0, rotated[:, inside] / np.sqrt(values[inside]))
        apart = white[:, np.newaxis] - white
        self.g = apart @ white.T
        self.size = (white**2).sum(axis=-1)
        v = (apart**2).sum(axis=-1)
        # Nearer than this to each other, two arms differ by little more than rounding.
        is_equal = v <= 1e-20 * np.maximum(self.size[:, np.newaxis], self.size)
        self.v = np.where(outside | outside[:, np.newaxis] | is_equal, np.inf, v)
        self.reach = np.abs(self.g[:, :, p > 0]).max(axis=-1)


class RivalGeometry:
    """What a distribution p over arms can say of arms against one rival, for very many arms.

    As in a PairGeometry, but g(a) of one rival at a time, over the arms that can be drawn.
    """

    def __init__(self, x: Any, p: Any) -> None:
        self.x = x
        self.drawn = np.flatnonzero(p > 0)
        around = x[self.drawn] - x[np.argmax(p)]
        p = p[self.drawn]
        centred = around - p @ around
        values, vectors = np.linalg.eigh((centred * p[:, np.newaxis]).T @ centred)
        inside = values > 1e-15 * len(values) * values.max(initial=0.0)
        self.inside = vectors[:, inside] / np.sqrt(values[inside])
        self.outside = vectors[:, ~inside]
        self.white = centred @ self.inside  # (m, r)
        self.size = (self.white**2).sum(axis=-1)

    def against(self, arms: Any, rival: int) -> tuple[Any, Any, Any]:
        """Return g(a) (n, m), v (n,) and reach (n,) of some arms (n,) against a rival."""
        y = self.x[arms] - self.x[rival]
        white = y @ self.inside
        v = (white**2).sum(axis=-1)
        is_outside = np.linalg.norm(y @ self.outside, axis=1) > 1e-10 * np.linalg.norm(y, axis=1)
        least = 1e-20 * self.size[self.drawn == rival].sum()
        v = np.where(is_outside | (v <= least), np.inf, v)
        g = np.where(np.isfinite(v)[:, np.newaxis], white, 0.0) @ self.white.T
        # Experiments look for the farthest arm in single precision, and add what rounding can hide.
        rounding = SINGLE * np.sqrt(self.size.max(initial=0.0) * np.where(np.isfinite(v), v, 0.0))
        return g, v, np.abs(g).max(axis=-1, initial=0.0) + rounding


def with_rivals(pairs: Any, rivals: Any) -> Any:
    """Return entries (K, K) of pairs with those of each arm and its rival on the diagonal."""
    out = np.array(pairs, dtype=float)
    each = np.arange(len(rivals))
    out[each, each] = out[each, rivals]
    return out


# Experiments ------------------------------------------------------------------------------------------------
# Entries are, in order: "plan" (a new plan, before its first draw), "distribution" (the plan in force
# restricted to the arms that were available), "rounds" (what was returned under one of these), "retire",
# "extend" and "clear". Rounds of the plan in force complete a batch; then arms are dropped and the next plan
# follows. Rounds of any other distribution are late: they count at once, with the values and rivals that were
# fixed when it was made.
#
# While guardrails watch an arm in play, plans may be drawn from with a share of the reference arm mixed in:
# `drawn` of a plan's entry has these probabilities. Such rounds count like late ones, for what they were
# drawn from. A declared arm is held back until "clear" says that guardrails have nothing against it.

# What evidence is kept on: all pairs of arms, or with very many arms the survivors against leaders.
ALL_PAIRS = "all pairs"
LEADERS = "leaders"
STAGES = ("warm-up", "pilot", "evidence")
PILOT = {"identify": 10, "earn": 5}  # rounds per dimension of the warm-up, and again of the pilot
INFORMED = 8.0  # events that end the pilot
LONGER = 0.5  # share of the rounds so far that a pilot goes on by while it has seen too little
SHORTEST = 10  # rounds of a batch
CALM = 0.1  # share of the rounds so far that a batch may add while no arm is near its end
FINER = 4.0  # times less that it adds near the end of an arm, where a gap is expected
SETTLED = 10.0  # times smaller residuals are, once differences between arms that dwarf noise are known
RIDGE = 0.1  # of the regression, in units of one round's information
# weights of earlier batches and of the newest in the variance of a residual
EARLIER = 0.7
NEWEST = 0.3
RESERVE = 0.01  # share of δ for arms that come and go
SHOWN = 0.02  # share of δ for intervals that are shown beside the claims; no claim here may spend it
# Shares of the rest for the bounds of all pairs: with ε > 0, and without. The tests of the arms have what
# they leave: .485 δ, and .960 δ.
BOUNDS_THAT_STOP = 0.5
BOUNDS_TO_READ = 0.01
SHARED = 0.2  # share of that which is split evenly, whatever the pilot says
CAUTION = 0.5  # standard errors that gaps of the pilot are shrunk by
SURE = 3.0  # the same where a gap is expected, which only clearly larger ones replace
# boundaries are tightest at EARLY of the expected decision, in these limits
EARLY = 0.3
LEAST_BATCHES = {"identify": 24.0, "earn": 6.0}
MOST_BATCHES = 600.0
RARER = 6.0  # times more that a batch adds with very many arms, up to CALM
REMEMBERED = 4  # arms that have led, against which bounds are kept with very many arms
SINGLE = 1e-5  # rounding in single precision of g(a), in units of the two lengths that it is a product of
FEWEST_DRAWS = 1e-9  # stands in for no draws, so that g(a) = 0 up to rounding raises no doubt
DRAWN = 10.0  # draws of one arm that the variance of a pair must be known as well as from, to count
# Effective draws of a pair, in units of log(1/α), before the asymptotic mode claims anything on it: WAIT
# where residuals are ordinary, QUIET_WAIT where they do not tell how large an event can be. In between, as
# many as PER_SQUARED_GAP times the squared gap in units of a round's variance.
WAIT = 4.0
QUIET_WAIT = 50.0
PER_SQUARED_GAP = 1.5
QUIET = 0.25  # mean square of an arm's residuals, in units of all arms', below which the arm is quiet


def shares_of_delta(delta: float, epsilon: float) -> tuple[float, float]:
    """Return what the row of each arm spends of δ on its test, and on its bounds."""
    spent = (1 - RESERVE - SHOWN) * delta
    part = BOUNDS_THAT_STOP if epsilon > 0 else BOUNDS_TO_READ
    return (1 - part) * spent, part * spent


def cautious_gaps(values: Any, v: Any, noise: float, rounds: float, expect: float | None = None) -> Any:
    """Return lower estimates (K, K) of the gaps between arms, never zero; or the gap that is expected."""
    error = np.sqrt(np.where(np.isfinite(v), v, 0.0) * noise / rounds)
    gap = np.abs(values[:, np.newaxis] - values)
    if expect is not None:
        return np.maximum(gap - SURE * error, expect)
    return np.maximum(gap - CAUTION * error, np.maximum(0.1 * error, TINY))


def split_delta(delta: float, gaps: Any, v: Any, noise: float) -> Any:
    """Split δ over the bounds of each row, so that all are expected to decide at about the same time.

    α_ij = exp(−n·gap²/(2·v·noise)) with the n at which a row sums to δ, mixed with an even split.
    """
    count = len(gaps)
    known = np.isfinite(v) & ~np.eye(count, dtype=bool)
    rate = np.where(known, gaps**2 / (2 * np.where(known, v, 1.0) * noise), np.inf)
    low, high = np.full(count, -60.0), np.full(count, 80.0)  # of log n
    for _ in range(60):
        middle = (low + high) / 2
        is_too_much = np.exp(-np.exp(middle)[:, np.newaxis] * rate).sum(axis=1) > delta
        low, high = np.where(is_too_much, middle, low), np.where(is_too_much, high, middle)
    alpha = (1 - SHARED) * np.exp(-np.exp(high)[:, np.newaxis] * rate) + SHARED * delta / max(count - 1, 1)
    np.fill_diagonal(alpha, 0.0)
    spent = alpha.sum(axis=1, keepdims=True)
    return alpha * np.minimum(1.0, delta * (1 - 1e-12) / np.maximum(spent, delta / 2))


def ridge_solution(gram: Any, moment: Any, rounds: float) -> Any:
    """Return the coefficients of a ridge regression, given its sums over so many rounds."""
    mean = np.trace(gram) / rounds
    shifted = gram + RIDGE * (mean if mean > 0 else TINY) * np.eye(len(gram))
    scale = np.sqrt(np.diagonal(shifted))
    return np.linalg.solve(shifted / scale[:, np.newaxis] / scale, moment / scale) / scale


def waited_draws(e: Any, is_quiet: Any) -> Any:
    """Return how far contrasts have waited: they may speak at a level α once this is log(1/α).

    c·log(1/α) draws hide an event that comes once in c draws with probability at most α, whatever its
    size. c is larger where spread tells little of that: of quiet arms, and where gaps dwarf the spread.
    """
    spread = e[VARIANCE] * e[WEIGHT]
    squared_gap = np.where(spread > 0, e[TOTAL] ** 2 / np.where(spread > 0, spread, 1.0), np.inf)
    draws = np.where(is_quiet, QUIET_WAIT, np.clip(PER_SQUARED_GAP * squared_gap, WAIT, QUIET_WAIT))
    return e[WEIGHT] / draws


class Run:
    """An experiment, replayed entry by entry; where rounding may decide, the entry of the plan does."""

    def __init__(self, settings: dict[str, Any], verdict: Verdict) -> None:
        self.verdict = verdict
        self.mode = Mode(settings, verdict)
        self.delta = float(settings["delta"])
        self.epsilon = float(settings["epsilon"])
        self.goal = settings["goal"]
        self.growth = float(settings["growth"])
        self.pilot = settings["pilot"]
        evidence = settings["evidence"]
        verdict.need(evidence in (ALL_PAIRS, LEADERS), f"evidence is kept on {evidence!r}")
        expect = settings["expect"]
        self.expect = None if expect is None else float(expect)
        self.grid = WIDE if self.expect is None else EXPECTED
        verdict.need(self.expect is None or 0 < self.expect < np.inf, f"a gap of {expect} is expected")
        verdict.need(0 < self.delta < 1 and self.epsilon >= 0, f"δ = {self.delta}, ε = {self.epsilon}")
        verdict.need(0 < self.growth < np.inf, f"batches grow by {self.growth}")
        self.labels = list(settings["labels"])
        self.features = np.array(settings["features"], dtype=float)
        self.hull = hull(self.features)
        k, d = self.features.shape
        named = len(self.labels) == k and len(set(self.labels)) == k
        verdict.need(named and np.isfinite(self.features).all(), f"{k} arms need features and a name each")
        is_alone = self.hull.shape[1] == k - 1 and self.epsilon == 0
        verdict.need(self.mode.takes_values or is_alone, f"{self.mode.name!r} tells signs of gaps alone")
        self.active = np.ones(k, dtype=bool)
        self.retired = np.zeros(k, dtype=bool)
        self.stage = 0
        self.length = 1
        self.late = 0.0
        self.rounds = 0.0
        self.leader = 0
        self.declared = -1
        self.values = np.zeros(k)
        self.level = np.zeros(k)  # weights of the arms whose average value is 0: the first plan
        self.gram = np.zeros((d, d))
        self.moment = np.zeros(d)
        self.noise = 0.0
        self.sizes = Sizes(k)
        self.informed = 0.0
        self.magnitude = 0.0  # of the largest residual so far
        self.own_delta = (1 - SHOWN) * self.delta  # what the row of each arm may spend of δ in all
        self.batch = Tally.zeros(k)  # rounds of the plan in force, if it is drawn from as it was made
        self.is_mixed = False  # whether it is drawn from with a share of another arm
        self.plan = 0
        self.second = 0
        self.where = ""
        self.current = 0  # number of the newest distribution
        self.in_force = 0  # number of the plan's own distribution
        self.probabilities = np.zeros(k)  # of the plan in force, as it was made
        self.distributions: dict[int, dict[str, Any]] = {}
        self.geometries: dict[bytes, Any] = {}
        self.changed: tuple[str, int] | None = ("start", 0)  # what the next plan answers to
        self.begin_evidence(k)

    def begin_evidence(self, k: int) -> None:
        """Make room for evidence on all pairs of so many arms."""
        self.evidence = np.zeros((6, k, k))
        self.tuning = np.ones((3, k, k))
        self.tuning[ALPHA] = 0.5
        self.left = np.full(k, self.own_delta)  # what the row of each arm has left of δ
        self.met = np.zeros((k, k), dtype=bool)  # which rivals each arm was tested against
        self.first_plan = np.zeros((k, k), dtype=int)  # number of the first plan that each entry counts

    # The entries

    def follow(self, number: int, entry: dict[str, Any]) -> None:
        """Take in an entry."""
        self.where = f"entry {number}"
        kind = entry["entry"]
        is_over = self.declared < 0 and self.batch.rounds + self.late >= self.length
        is_due = self.changed is not None or is_over
        if is_due != (kind == "plan"):
            self.verdict.problems.append(
                f"{self.where}: a plan is {'due' if is_due else 'not due'}, not {kind!r}"
            )
        if kind == "plan":
            self.begin_plan(entry)
        elif kind == "distribution":
            base = self.distributions[self.in_force]
            self.verdict.need(entry["plan"] == self.plan, f"{self.where}: it is of plan {self.plan}")
            self.add_distribution(entry, base | {"p": np.array(entry["probabilities"], dtype=float)})
        elif kind == "rounds":
            self.add_rounds(entry)
        elif kind == "retire":
            arm = int(entry["arm"])
            good = 0 <= arm < len(self.labels) and not self.retired[arm] and np.sum(~self.retired) > 1
            self.verdict.need(good, f"{self.where}: arm {arm} cannot be retired")
            self.close_batch()
            self.changed = ("retire", arm)
        elif kind == "extend":
            self.close_batch()
            self.changed = ("extend", self.add_arms(entry))
        elif kind == "clear":
            arm = int(entry["arm"])
            good = self.is_held and arm == self.declared
            self.verdict.need(good, f"{self.where}: arm {arm} is not held back, so it cannot be cleared")
            self.changed = ("clear", arm)
        else:
            raise ValueError(f"no entry is a {kind!r}")

    def add_distribution(self, entry: dict[str, Any], given: dict[str, Any]) -> None:
        """Remember what arms are drawn from, before they are drawn; numbers have no gaps."""
        self.current += 1
        number = entry["distribution"]
        self.verdict.need(
            number == self.current, f"{self.where}: distribution {number} follows {self.current - 1}"
        )
        self.verdict.need(given["p"].shape == self.active.shape, f"{self.where}: probabilities of other arms")
        check_probabilities(self.where, given["p"], self.verdict)
        self.distributions[self.current] = given

    def add_rounds(self, entry: dict[str, Any]) -> None:
        """Take in rounds: of the plan in force, or late ones."""
        number = entry["distribution"]
        tally = Tally.read(entry)
        given = self.distributions[number]
        self.check_rounds(given, tally)
        self.magnitude = max(self.magnitude, float(tally.largest.max()))
        if number == self.in_force and not self.is_mixed:
            self.rounds += tally.rounds
            self.batch = self.batch.plus(tally)
        elif self.declared < 0 and tally.rounds:
            self.rounds += tally.rounds
            if given["rivals"] is None:  # no evidence, but it helps the estimates
                noise = self.noise
                self.regress(given, tally)
                self.noise = noise
            else:
                self.absorb(given, tally, length=0)
                self.late += tally.rounds

    def check_rounds(self, given: dict[str, Any], tally: Tally) -> None:
        """Check a tally against its distribution and the declared range.

        Forecasts are kept to [low − min value, high − max value] of the arms that the plan plays.
        """
        values = given["values"]
        mode = self.mode
        low = high = np.full(len(values), np.inf)
        if np.isfinite(mode.limit):
            low, high = np.full(len(values), -mode.limit), np.full(len(values), mode.limit)
        if mode.is_bounded:
            played = values[given["played"]]
            low = np.maximum(low, mode.low - max(mode.high - played.max(), mode.low - played.min()) - values)
            high = np.minimum(high, mode.high - (mode.low - played.min()) - values)
        check_tally(self.where, given["p"], tally, low, high, self.verdict)

    # What rounds teach

    def geometry(self, p: Any) -> Any:
        """Return the geometry of a distribution, which often stays for many plans."""
        key = p.tobytes()
        if key not in self.geometries:
            self.geometries = {key: self.geometry_of(p)}
        return self.geometries[key]

    def geometry_of(self, p: Any) -> Any:
        """Return what a distribution can say of all pairs."""
        return PairGeometry(self.hull, p)

    def absorb(self, given: dict[str, Any], tally: Tally, length: float) -> None:
        """Take in a batch: sizes of residuals, evidence after the pilot, and the regression."""
        self.watch(given, tally)
        if self.stage == 2:
            self.count(given, tally, length)
        self.regress(given, tally)

    def watch(self, given: dict[str, Any], tally: Tally) -> None:
        """Note how large residuals are; in the warm-up only the largest, leaving out the very first batch."""
        sizes = self.sizes
        largest = float(tally.largest.max())
        if self.stage == 0:
            sizes.drawn = sizes.drawn + tally.counts
            sizes.relative = sizes.drawn
            sizes.largest = max(sizes.largest, largest if self.rounds > tally.rounds else 0.0)
            return
        # What was large were differences between arms, before they were known: nothing that noise did.
        if SETTLED * largest < sizes.largest <= 2 * np.ptp(given["values"]):
            sizes.forget()
            self.informed = 0.0
        sizes.add(tally)
        self.informed += scatter_of(tally) / largest**2 if largest > 0 else 0.0

    def taken_values(self, given: dict[str, Any]) -> Any:
        """Return the values (K,) that residuals under a plan were taken from."""
        values = given["values"]
        return values if self.mode.takes_values else np.zeros_like(values)

    def count(self, given: dict[str, Any], tally: Tally, length: float) -> None:
        """Add a batch to the evidence on all pairs; entry (i, i) is the test of arm i against its rival."""
        p = given["p"]
        values = self.taken_values(given)
        rivals = given["rivals"]
        mode = self.mode
        at = self.geometry(p)
        n = tally.rounds
        sizes = self.sizes
        totals = n * (values[:, np.newaxis] - values) + at.g @ tally.sums
        squares = at.g**2 @ tally.squares
        v = at.v
        pooled = np.zeros_like(at.v)
        if not mode.is_exact:
            known = np.where(np.isfinite(v), v, 0.0)
            pooled = tally.squares.sum() * np.maximum(known, at.g**2 @ (p * sizes.loudness))
            # Pairs wait whose variance rests on arms with few draws, as the plan foresaw: no draw can choose.
            draws = np.maximum(sizes.drawn - tally.counts + length * p, FEWEST_DRAWS)
            doubt = at.g**2 @ (p * np.minimum(p * at.size, 1.0) / draws)
            v = np.where(DRAWN * doubt > v, np.inf, v)
        parts = (with_rivals(one, rivals) for one in (v, at.reach, totals, squares, pooled))
        v, reach, totals, squares, pooled = parts
        # Rounds drawn before an entry began do not count: whoever chose that moment may have known them.
        has_begun = self.first_plan <= given["plan"]
        v = np.where(has_begun, v, np.inf)
        # A test against an arm that has been retired since is no matter any more.
        lost = self.retired[rivals] | ~np.diagonal(has_begun)
        v[np.flatnonzero(lost), np.flatnonzero(lost)] = np.inf
        w = np.where(np.isfinite(v), 1 / v, 0.0)
        if mode.is_exact:
            w = np.minimum(w, self.tuning[SCALE] / (mode.limit * np.maximum(reach, 1e-300)))
        peak = w * reach * (min(tally.largest.max(), mode.limit) if mode.is_exact else sizes.excess)
        e = self.evidence
        e[TOTAL] += w * totals
        e[WEIGHT] += w * n
        e[VARIANCE] += w**2 * squares
        e[SLACK] += mode.bias * n * w * np.sqrt(np.where(np.isfinite(v), v, 1.0))
        e[POOLED] += peak * w**2 * squares if mode.is_exact else w**2 * pooled
        e[PEAK] = np.maximum(e[PEAK], peak)
        each = np.arange(len(rivals))
        self.met[each, rivals] |= ~lost

    def regress(self, given: dict[str, Any], tally: Tally) -> None:
        """Add a batch to the regression behind `values`, weighted by what its residuals scatter."""
        p = given["p"]
        values = self.taken_values(given)
        centred = self.features - p @ self.features
        scatter = tally.squares.sum() / tally.rounds
        noise = scatter
        if self.stage == 1 and self.sizes.rounds > 0:
            earlier = max(self.sizes.rounds - tally.rounds, 0.0)
            noise = earlier * self.noise + tally.rounds * self.unexplained(centred, tally)
            noise /= max(earlier + tally.rounds, 1.0)
        if self.stage == 2:
            noise = EARLIER * self.noise + NEWEST * scatter
        # A quiet batch counts no more than the batches before: where events are rare it has seen none. Before
        # the first event a batch counts for nothing.
        unit = max(scatter, self.noise if self.stage == 2 else noise)
        if unit <= 0:
            unit = np.inf
        self.gram = self.gram + (centred.T * tally.counts) @ centred / unit
        self.moment = self.moment + (tally.sums + tally.counts * values) @ centred / unit
        self.noise = noise

    def unexplained(self, centred: Any, tally: Tally) -> float:
        """Return the variance of residuals of the pilot around a regression on the features of their arms.

        The values of the pilot are a first guess, and their errors no noise of later rounds. A batch that is
        too short for so many features is taken as it is.
        """
        squares = float(tally.squares.sum())
        left = tally.rounds - self.hull.shape[1]
        if 2 * left < tally.rounds:
            return squares / tally.rounds
        moment = tally.sums @ centred
        solved = ridge_solution((centred.T * tally.counts) @ centred, moment, tally.rounds)
        return float(max(squares - solved @ moment, 0.0) / left)

    def estimates(self) -> Any:
        """Return the estimated rewards (K,), up to a common level: a ridge regression."""
        solved = ridge_solution(self.gram, self.moment, max(self.rounds, 1.0))
        return (self.features - self.features[0]) @ solved

    def fitted(self, estimates: Any) -> Any:
        """Return the values that residuals are taken from: 0 on average, no wider than the declared range."""
        span = self.mode.high - self.mode.low
        spread = np.ptp(estimates)
        values = estimates - estimates @ self.level
        return values * (span / spread) if spread > span else values

    # Plans

    @property
    def warm_up(self) -> int:
        """Rounds of the warm-up, and the fewest of the pilot."""
        if self.pilot is not None:
            return max(int(self.pilot) // 2, 1)
        return PILOT[self.goal] * (int(self.hull.shape[1]) + 1)

    def close_batch(self) -> None:
        """Count the rounds of a batch that a change of arms ends before it is complete."""
        if self.batch.rounds and self.declared < 0:
            self.absorb(self.distributions[self.in_force], self.batch, self.length)
            self.length -= int(self.batch.rounds) if self.stage < 2 else 0
        self.batch = Tally.zeros(len(self.labels))

    def begin_plan(self, entry: dict[str, Any]) -> None:
        """End a batch, or follow a change of arms; check what the entry of the next plan says."""
        p = entry["probabilities"]
        p = self.probabilities if p is None else np.array(p, dtype=float)
        change, about = self.changed or ("batch", 0)
        self.changed = None
        self.plan += 1
        self.verdict.need(entry["plan"] == self.plan, f"{self.where}: plan {entry['plan']}, not {self.plan}")
        fresh: Any = True  # which boundaries are to be tuned, if gaps are given
        gaps = None
        if change == "start":
            self.level = p
            if not self.hull.shape[1]:  # all arms are the same
                self.declared = 0
        elif change == "batch":
            gaps = self.end_batch(entry)
        elif change != "clear":
            fresh = self.retire(about) if change == "retire" else self.extend(about)
            self.reopen(entry, change)
            if self.stage == 2 and self.declared < 0:
                gaps = self.gaps_under(p)
        self.check_plan(entry, p)
        if gaps is not None:
            self.tune(p, gaps, fresh)
        self.follow_leader(p)

    def gaps_under(self, p: Any) -> Any:
        """Return what boundaries that begin after a change of arms are tuned by, given the plan p to come."""
        rounds = max(self.length, 1)
        return cautious_gaps(self.estimates(), self.geometry(p).v, self.noise, rounds, self.expect)

    def follow_leader(self, p: Any) -> None:
        """Begin evidence against the leader under the plan p, where there is none on all pairs."""

    def end_batch(self, entry: dict[str, Any]) -> Any:
        """Absorb a complete batch and move on; return the gaps to tune by if the pilot ends here."""
        is_first = not self.sizes.drawn.any()
        before = self.distributions[self.in_force]
        if self.batch.rounds:
            self.absorb(before, self.batch, self.length)
        self.batch = Tally.zeros(len(self.labels))
        self.late = 0.0
        gaps = None
        if is_first:
            self.length = max(self.warm_up - 1, 1)
        elif self.stage == 0:
            self.stage = 1
            self.length = self.warm_up
            self.values = self.fitted(self.estimates())
            # Residuals of the warm-up held the differences between arms.
            self.sizes.largest = max(self.sizes.largest - 2 * float(np.ptp(self.values)), 0.0)
        elif self.stage == 1:
            # Rounding may decide whether there were enough events: then the entry says it.
            is_over = self.informed >= INFORMED
            if abs(self.informed - INFORMED) <= CLOSE:
                is_over = entry["stage"] == STAGES[2]
            self.length = max(ceil(LONGER * self.rounds), SHORTEST)
            if is_over:
                gaps = self.end_pilot(entry, self.probabilities)
        else:
            self.eliminate(entry)
            self.lead(entry)
            self.pace(entry)
        return gaps

    def end_pilot(self, entry: dict[str, Any], p: Any) -> Any:
        """Split δ, and begin to count."""
        v = self.geometry(p).v
        estimates = self.estimates()
        gaps = cautious_gaps(estimates, v, self.noise, self.sizes.rounds)
        for_arms, for_pairs = shares_of_delta(self.delta, self.epsilon)
        self.tuning[ALPHA] = split_delta(for_pairs, gaps, v, self.noise)
        np.fill_diagonal(self.tuning[ALPHA], for_arms)
        self.left = self.left - for_arms - for_pairs
        self.stage = 2
        if self.expect is not None:
            gaps = cautious_gaps(estimates, v, self.noise, self.sizes.rounds, self.expect)
        self.sizes.scattered = 0.0  # whether the asymptotic mode may speak is for rounds that count to say
        self.lead(entry)
        self.pace(entry)
        return gaps

    def tune(self, p: Any, gaps: Any, fresh: Any) -> None:
        """Fix ρ and scale of entries that have counted no round yet, for the plan p that begins."""
        rivals = self.rivals()
        at = self.geometry(p)
        alpha = self.tuning[ALPHA]
        v, reach, gaps = (with_rivals(one, rivals) for one in (at.v, at.reach, gaps))
        v = np.where(np.isfinite(v), v, 1.0)
        batch = self.rounds * self.noise / v
        decision = -2 * np.log(alpha) * (self.noise / gaps) ** 2
        least = LEAST_BATCHES[self.goal] * batch
        rho = tightest_rho(np.clip(EARLY * decision, least, MOST_BATCHES * batch), alpha)
        if self.expect is not None:
            rho = np.maximum(self.noise / gaps, TINY) ** 2  # the bet that suits a gap is gap/noise
        scale = self.mode.limit * np.maximum(reach, 1e-12) / v if self.mode.is_exact else np.ones_like(v)
        self.tuning[RHO] = np.where(fresh, rho, self.tuning[RHO])
        self.tuning[SCALE] = np.where(fresh, scale, self.tuning[SCALE])

    def proven(self, factor: float) -> Any:
        """Tell in entry (i, j) if j is proven better than i; on the diagonal, if i fails its test.

        `factor` exaggerates the evidence, for what may be a matter of rounding.
        """
        e = self.evidence
        return is_reached(
            -e[TOTAL] * factor, e, self.speaks(factor), self.tuning, self.mode.is_exact, self.grid
        )

    def speaks(self, factor: float = 1.0) -> Any:
        """Tell which entries (K, K) may say anything; in exact modes, all."""
        if self.mode.is_exact:
            return np.ones(self.met.shape, dtype=bool)
        waited = self.waited(factor)
        return may_speak(self.evidence, self.sizes.events, waited, self.tuning[ALPHA], factor)

    def waited(self, factor: float = 1.0) -> Any:
        """Return how far entries (K, K) have waited; see waited_draws."""
        quiet = self.quiet(factor)
        is_quiet = quiet[:, np.newaxis] | quiet
        # A test rests on the arm and on all rivals that it has met.
        np.fill_diagonal(is_quiet, quiet | np.any(self.met & quiet, axis=1))
        return waited_draws(self.evidence, is_quiet)

    def quiet(self, factor: float = 1.0) -> Any:
        """Tell which arms (K,) have scattered much less than others: their events may be still to come."""
        return (self.sizes.drawn > 0) & (self.sizes.relative * factor < QUIET * self.sizes.drawn)

    def eliminate(self, entry: dict[str, Any]) -> None:
        """Drop every arm that fails its test, or that some survivor is proven better than."""
        pairs = self.active & self.active[:, np.newaxis]
        self.take_active(entry, self.active, pairs)

    def take_active(self, entry: dict[str, Any], candidates: Any, pairs: Any) -> None:
        """Take the survivors from an entry: candidates that are not proven worse by any of the `pairs`."""
        possible, certain = (np.any(self.proven(factor) & pairs, axis=1) for factor in (1 + CLOSE, 1 - CLOSE))
        self.take_survivors(entry, candidates, candidates & possible, candidates & certain)

    def claimed_survivors(self, entry: dict[str, Any]) -> Any:
        """Return the survivors (K,) as an entry has them: those of the plan before, if it has none."""
        claimed = np.zeros_like(self.active)
        claimed[entry["active"] if entry["active"] is not None else np.flatnonzero(self.active)] = True
        return claimed

    def take_survivors(self, entry: dict[str, Any], candidates: Any, possible: Any, certain: Any) -> None:
        """Take the survivors from an entry, and check that the others are proven worse.

        Rounding may decide whether something is proven: candidates that are `possible` may have been
        dropped, and those that are `certain` must have been. If all candidates are proven worse, proofs
        contradict each other, and nothing follows.
        """
        claimed = self.claimed_survivors(entry)
        gone = candidates & ~claimed
        is_proven = (
            not np.any(claimed & ~candidates) and np.all(possible[gone]) and not np.any(claimed & certain)
        )
        is_circle = np.array_equal(claimed, candidates) and np.array_equal(possible, candidates)
        names = [self.labels[i] for i in np.flatnonzero(claimed)]
        self.verdict.need(
            claimed.any() and (is_proven or is_circle),
            f"{self.where}: that {names} survive does not follow; proven worse are"
            f" {[self.labels[i] for i in np.flatnonzero(possible)]}",
        )
        self.active = claimed

    def lead(self, entry: dict[str, Any]) -> None:
        """Find the leader, and whether it can be declared: all survivors are alike, or within ε of it."""
        estimates = self.estimates()
        self.values = self.fitted(estimates)
        self.leader = self.take_best(entry["leader"], self.active, estimates, "leader")
        others = self.others()
        self.declared = -1
        if not others.any():
            self.leader = self.declared = int(np.argmax(self.active))
            return
        # Rounding may decide: then the entry does.
        if self.is_near(others, 1 - CLOSE) or (
            entry["declared"] is not None and self.is_near(others, 1 + CLOSE)
        ):
            self.declared = self.leader

    def is_near(self, others: Any, factor: float) -> bool:
        """Tell whether all others are proven to be at most ε better than the leader."""
        found = self.evidence_over_leader(factor)
        if found is None:
            return False
        e, tuning, speaks = (part[..., others] for part in found)
        total = self.epsilon * e[WEIGHT] - e[TOTAL]
        is_within = is_reached(total * factor, e, speaks, tuning, self.mode.is_exact, self.grid)
        return bool(np.all((e[WEIGHT] > 0) & is_within))

    def evidence_over_leader(self, factor: float = 1.0) -> tuple[Any, Any, Any] | None:
        """Return evidence and tuning of all arms over the leader, and which may speak, if any.

        All have a last axis (K,).
        """
        at = self.leader
        return self.evidence[:, :, at], self.tuning[:, :, at], self.speaks(factor)[:, at]

    def take_best(self, claimed: Any, among: Any, values: Any, what: str) -> int:
        """Take an arm from an entry if no other among some is better by more than rounding."""
        best = int(np.argmax(np.where(among, values, -np.inf)))
        if claimed == best or not among.any():
            return best
        room = NEARLY * float(np.ptp(values)) + ROUNDING * self.magnitude
        is_good = isinstance(claimed, int) and 0 <= claimed < len(values) and among[claimed]
        is_good = is_good and values[claimed] >= values[best] - room
        self.verdict.need(
            is_good, f"{self.where}: the {what} is claimed to be arm {claimed}; recomputed it is {best}"
        )
        return int(claimed) if is_good else best

    def others(self) -> Any:
        """Tell which survivors (K,) have other features than the leader."""
        return self.active & np.any(self.features != self.features[self.leader], axis=1)

    def rivals(self) -> Any:
        """Return the arm (K,) that each is tested against: the leader, and the leader its runner-up."""
        rivals = np.full(len(self.active), self.leader)
        rivals[self.leader] = self.second
        return rivals

    def pace(self, entry: dict[str, Any]) -> None:
        """Set the length of the next batch: longer while no arm is near its end."""
        if self.declared >= 0:
            return
        share, least, most, is_noiseless = self.paces()
        wanted = share * self.rounds
        claimed = entry["length"]
        if is_noiseless and isinstance(claimed, int):
            # Rewards without noise: sums and their variances are rounding, and so is their ratio. Any length
            # that a ratio could give is taken as it is; when to look at the evidence changes no claim.
            shortest = max(ceil(least * self.rounds * (1 - 1e-9)), SHORTEST)
            longest = max(ceil(most * self.rounds * (1 + 1e-9)), SHORTEST)
            if shortest <= claimed <= longest:
                self.length = claimed
                return
        # The next whole number above may be a matter of rounding.
        near = {max(ceil(wanted * factor), SHORTEST) for factor in (1 - 1e-9, 1, 1 + 1e-9)}
        self.length = claimed if claimed in near else max(ceil(wanted), SHORTEST)

    def paces(self) -> tuple[float, float, float, bool]:
        """Return the share of the rounds so far that a batch adds, its limits, and if it may be rounding."""
        against = np.where(self.active, -np.diagonal(self.evidence[TOTAL]), 0.0)
        variances = np.diagonal(self.evidence[VARIANCE])
        goal = np.sqrt(np.maximum(1 - np.log(np.diagonal(self.tuning[ALPHA])), 1.0))
        reached = np.maximum(against, 0.0) / np.sqrt(2 * np.where(variances > 0, variances, np.inf))
        away = float(np.min(np.maximum(goal - reached, 0.0)))
        most = self.growth if self.epsilon > 0 else max(self.growth, CALM)
        least = self.growth if self.expect is None else self.growth / FINER
        share = min(max(away**2, least), most)
        return share, least, most, bool(np.any(self.active & self.is_noiseless()))

    def is_noiseless(self) -> Any:
        """Tell which arms (K,) have a gap whose standard deviation is no more than rounding."""
        deviations = np.sqrt(np.maximum(np.diagonal(self.evidence[VARIANCE]), 0.0))
        return deviations <= ROUNDING * self.magnitude * np.diagonal(self.evidence[WEIGHT])

    def check_plan(self, entry: dict[str, Any], p: Any) -> None:
        """Check what the entry of a plan says, and remember the plan.

        Its values are used as they are written, since residuals were taken from these.
        """
        need = self.verdict.need
        where = self.where
        need(
            entry["stage"] == STAGES[self.stage],
            f"{where}: the stage is {STAGES[self.stage]}, not {entry['stage']}",
        )
        declared = None if self.declared < 0 else self.declared
        need(
            entry["declared"] == declared,
            f"{where}: {entry['declared']} is declared; recomputed it is {declared}",
        )
        need(entry["leader"] == self.leader, f"{where}: the leader is {self.leader}, not {entry['leader']}")
        length = None if self.declared >= 0 else self.length
        need(
            entry["length"] == length, f"{where}: the batch is to last {length} rounds, not {entry['length']}"
        )
        survivors = np.flatnonzero(self.active).tolist()
        need(
            entry["active"] in (None, survivors), f"{where}: survivors are {survivors}, not {entry['active']}"
        )
        values = np.array(entry["values"], dtype=float)
        off = np.abs(values - self.values).max() if values.shape == self.values.shape else np.inf
        # Where arms seem equal, their values are all rounding, in units of what residuals are.
        room = NEARLY * max(float(np.ptp(self.values)), 1e-3 * sqrt(self.noise)) + ROUNDING * self.magnitude
        need(off <= room, f"{where}: values {values} are {off:.3g} off those recomputed, {self.values}")
        self.values = values
        runners_up = self.active & (np.arange(len(values)) != self.leader)
        self.second = self.take_best(entry["second"], runners_up, values, "runner-up")
        need(not p[self.retired].any(), f"{where}: an arm is played that was retired")
        need(
            self.declared < 0 or p[self.declared] == 1,
            f"{where}: once an arm is declared, it is played alone",
        )
        # Late rounds are no evidence if they were drawn in the warm-up of the asymptotic mode, or when an arm
        # was declared.
        is_evidence = self.declared < 0 and (self.mode.is_exact or self.stage > 0)
        rivals = self.rivals() if is_evidence else None
        self.probabilities = p
        self.is_mixed = entry["drawn"] is not None
        drawn = np.array(entry["drawn"], dtype=float) if self.is_mixed else p
        need(not drawn[self.retired].any(), f"{where}: an arm is drawn that was retired")
        given = {"p": drawn, "values": values, "rivals": rivals, "played": drawn > 0, "plan": self.plan}
        given["leader"] = self.leader
        self.add_distribution(entry, given)
        self.in_force = self.current

    @property
    def is_held(self) -> bool:
        """Whether the declared arm is held back, since guardrails still compare it with the reference arm."""
        return self.declared >= 0 and self.is_mixed

    # Arms that come and go

    def retire(self, arm: int) -> Any:
        """Take an arm out; return which entries start anew, at half of what their row has left of δ.

        Tests that met the arm as a rival are void, and begin again with the plan that begins now. Arms that
        only these, or the arm itself, had dropped come back.
        """
        self.retired[arm] = True
        again = self.met[:, arm] & (self.stage == 2)
        each = np.flatnonzero(again)
        self.evidence[:, each, each] = 0.0
        self.tuning[ALPHA, each, each] = self.left[each] / 2
        self.left[each] /= 2
        self.met[each] = False
        self.first_plan[each, each] = self.plan
        return np.diag(again)

    def check_return(self, entry: dict[str, Any]) -> None:
        """Take the arms that are left after one was retired, those included that have come back."""
        self.take_active(entry, ~self.retired, np.broadcast_to(~self.retired, self.met.shape))

    def reopen(self, entry: dict[str, Any], change: str) -> None:
        """Go on under a new plan after a change of arms."""
        if change == "retire":
            self.check_return(entry)
        self.lead(entry)
        if self.declared < 0:
            left = self.length - int(self.late)
            self.length = max(ceil(self.growth * self.rounds), SHORTEST) if self.stage == 2 else left
            self.late = 0.0

    def add_arms(self, entry: dict[str, Any]) -> int:
        """Make room for new arms, which follow those so far; return how many there were before."""
        before, width = self.features.shape
        features = np.array(entry["features"], dtype=float)
        old = features[:before]
        goes_on = len(features) > before and np.array_equal(old[:, :width], self.features)
        goes_on = goes_on and not old[:, width:].any() and np.isfinite(features).all()
        goes_on = goes_on and list(entry["labels"])[:before] == self.labels
        self.labels = list(entry["labels"])
        goes_on = goes_on and len(set(self.labels)) == len(self.labels) == len(features)
        self.verdict.need(goes_on, f"{self.where}: the arms do not go on from those so far")
        self.features = features
        self.hull = hull(features)
        self.geometries = {}
        self.level = np.array(entry["level"], dtype=float)
        check_probabilities(self.where, self.level, self.verdict)
        more = len(features) - before
        wider = features.shape[1] - width
        self.active = np.pad(self.active, (0, more), constant_values=True)
        self.retired = np.pad(self.retired, (0, more))
        # Old arms have 0 in the new features, so nothing that was learnt of the others changes.
        self.gram = np.pad(self.gram, (0, wider))
        self.moment = np.pad(self.moment, (0, wider))
        self.sizes.drawn = np.pad(self.sizes.drawn, (0, more))
        self.sizes.relative = np.pad(self.sizes.relative, (0, more))
        self.batch = Tally.zeros(len(features))
        self.add_evidence(before, len(features))
        self.probabilities = np.pad(self.probabilities, (0, more))
        # Earlier plans never play new arms; values of these follow from the features that they share.
        x = features - features[0]
        shares = np.linalg.lstsq(x[:before].T, x[before:].T, rcond=None)[0].T
        for given in self.distributions.values():
            values = given["values"]
            given["values"] = np.append(values, values[0] + shares @ (values - values[0]))
            given["p"] = np.pad(given["p"], (0, more))
            given["played"] = np.pad(given["played"], (0, more))
            given["rivals"] = None if given["rivals"] is None else np.pad(given["rivals"], (0, more))
        return int(before)

    def add_evidence(self, before: int, count: int) -> None:
        """Make room for evidence on new arms, which counts from the plan on that is due and plays them."""
        more = count - before
        self.evidence = np.pad(self.evidence, ((0, 0), (0, more), (0, more)))
        self.met = np.pad(self.met, (0, more))
        tuning = np.ones((3, count, count))
        tuning[ALPHA] = 0.5
        tuning[:, :before, :before] = self.tuning
        self.tuning = tuning
        self.left = np.append(self.left, np.full(more, self.own_delta))
        first_plan = np.full((count, count), self.plan + 1)
        first_plan[:before, :before] = self.first_plan
        self.first_plan = first_plan

    def extend(self, before: int) -> Any:
        """Share δ out to new entries, and return which they are.

        New pairs of old arms get half of what their row has left, new arms what all had at first.
        """
        count = len(self.labels)
        if self.stage == 2:
            for_arms, for_pairs = shares_of_delta(self.delta, self.epsilon)
            alpha = self.tuning[ALPHA]
            spent = np.full(count, for_arms + for_pairs)
            spent[:before] = self.left[:before] / 2
            alpha[:before, before:] = (spent[:before] / (count - before))[:, np.newaxis]
            alpha[before:] = for_pairs / (count - 1)
            new = np.arange(before, count)
            alpha[new, new] = for_arms
            self.left = self.left - spent
        is_old = np.arange(count) < before
        return ~(is_old[:, np.newaxis] & is_old)

    # The claim

    def bounds(self) -> tuple[Any, Any]:
        """Return how much better than the leader each arm (K,) may be at most, and the widths of that."""
        found = self.evidence_over_leader()
        if found is None:
            nothing = np.full(len(self.labels), np.inf)
            return nothing, nothing
        e, tuning, speaks = found
        weight = np.where(e[WEIGHT] > 0, e[WEIGHT], 1.0)
        width = (boundary(e, speaks, tuning, self.mode.is_exact, self.grid) + e[SLACK]) / weight
        width = np.where((e[WEIGHT] > 0) & self.mode.takes_values, width, np.inf)
        return np.where(e[WEIGHT] > 0, e[TOTAL] / weight + width, np.inf), width

    def check_spending(self) -> None:
        """Check that no row spends more than its δ."""
        need = self.verdict.need
        spent = (self.own_delta - self.left) * (1 + 1e-9)
        alpha = self.tuning[ALPHA]
        need(self.stage < 2 or np.all(alpha.sum(axis=1) <= spent), "a row spends more than its share of δ")
        need(np.all(self.left >= -1e-9 * self.delta), "a row spends more than δ")


# Experiments with very many arms ----------------------------------------------------------------------------
# There is no evidence on pairs of arms neither of which has led. Each arm has its test, against the leader of
# the moment, and bounds over arms that have led: the m-th of these at 1/(m(m + 1)) of what bounds have of δ,
# so that all of them spend no more than that. What was known of an arm is forgotten when it is dropped. But
# for each arm it is noted which rivals its test, or the proof that dropped it, rests on: if one of them is
# retired, the test begins again, at half, a quarter, … of what is kept of δ for arms that come and go.


class Sums:
    """Evidence of all arms (K,) over one arm that has led, or in their tests, and how it is tuned."""

    def __init__(self, arm: int, alpha: Any, count: int, since: int) -> None:
        self.arm = arm
        self.evidence = np.zeros((6, count))
        self.tuning = np.ones((3, count))
        self.tuning[ALPHA] = alpha
        self.since = np.full(count, since)  # number of the first plan that each entry counts

    def restart(self, arms: Any, alpha: Any, since: int) -> None:
        """Begin entries (K,) again."""
        self.evidence[:, arms] = 0.0
        self.tuning[:, arms] = 1.0
        self.tuning[ALPHA, arms] = alpha
        self.since[arms] = since

    def add_arms(self, count: int, alpha: float, since: int) -> None:
        """Make room for so many arms in all."""
        more = Sums(self.arm, alpha, count - len(self.since), since)
        self.evidence = np.concatenate([self.evidence, more.evidence], axis=1)
        self.tuning = np.concatenate([self.tuning, more.tuning], axis=1)
        self.since = np.append(self.since, more.since)


class LeaderRun(Run):
    """An experiment with very many arms, replayed entry by entry."""

    def begin_evidence(self, k: int) -> None:
        """Begin without evidence: there is none before the pilot ends."""
        self.tests: Sums | None = None
        self.led: list[Sums] = []
        self.leaders = 0  # arms that have been given bounds over them so far
        self.restarts = np.zeros(k)  # of each test
        self.listed: list[int] = []  # survivors before an arm was retired
        self.rests_on: dict[int, Any] = {}  # for each rival, the arms (K,) that have been compared with it

    def geometry_of(self, p: Any) -> Any:
        """Return what a distribution can say of arms against any rival."""
        return RivalGeometry(self.hull, p)

    # What rounds teach

    def count(self, given: dict[str, Any], tally: Tally, length: float) -> None:
        """Add a batch to the tests, and to the bounds over arms that have led."""
        if self.tests is None:
            return
        leader = given["leader"]
        second = int(given["rivals"][leader])
        counted = self.active & (self.tests.since <= given["plan"]) & (not self.retired[leader])
        counted[leader] &= not self.retired[second]
        others = counted & (np.arange(len(counted)) != leader)
        self.add_batch(self.tests, leader, others, given, tally, length)
        self.note(leader, others)
        if counted[leader]:
            own = np.arange(len(counted)) == leader
            self.add_batch(self.tests, second, own, given, tally, length)
            self.note(second, own)
        for one in self.led:
            self.add_batch(one, one.arm, self.active & (one.since <= given["plan"]), given, tally, length)

    def note(self, rival: int, arms: Any) -> None:
        """Note that what is known of some arms (K,) rests on comparisons with a rival."""
        if arms.any():
            self.rests_on[rival] = self.rests_on.get(rival, np.zeros_like(arms)) | arms

    def add_batch(
        self, one: Sums, rival: int, arms: Any, given: dict[str, Any], tally: Tally, length: float
    ) -> None:
        """Add a batch to the evidence of some arms (K,) over a rival, as Run.count does for all pairs."""
        rows = np.flatnonzero(arms)
        if not len(rows):
            return
        mode = self.mode
        sizes = self.sizes
        values = self.taken_values(given)
        at = self.geometry(given["p"])
        s = at.drawn
        p = given["p"][s]
        g, v, reach = at.against(rows, rival)
        n = tally.rounds
        totals = n * (values[rows] - values[rival]) + g @ tally.sums[s]
        squares = g**2 @ tally.squares[s]
        pooled = np.zeros_like(v)
        if not mode.is_exact:
            known = np.where(np.isfinite(v), v, 0.0)
            pooled = tally.squares.sum() * np.maximum(known, g**2 @ (p * sizes.loudness[s]))
            draws = np.maximum(sizes.drawn[s] - tally.counts[s] + length * p, FEWEST_DRAWS)
            doubt = g**2 @ (p * np.minimum(p * at.size, 1.0) / draws)
            v = np.where(DRAWN * doubt > v, np.inf, v)
        w = np.where(np.isfinite(v), 1 / v, 0.0)
        if mode.is_exact:
            w = np.minimum(w, one.tuning[SCALE, rows] / (mode.limit * np.maximum(reach, 1e-300)))
        peak = w * reach * (min(tally.largest.max(), mode.limit) if mode.is_exact else sizes.excess)
        e = one.evidence
        e[TOTAL, rows] += w * totals
        e[WEIGHT, rows] += w * n
        e[VARIANCE, rows] += w**2 * squares
        e[SLACK, rows] += mode.bias * n * w * np.sqrt(np.where(np.isfinite(v), v, 1.0))
        e[POOLED, rows] += peak * w**2 * squares if mode.is_exact else w**2 * pooled
        e[PEAK, rows] = np.maximum(e[PEAK, rows], peak)

    # Plans

    def end_pilot(self, entry: dict[str, Any], p: Any) -> Any:
        """Begin to count; return the distribution that gaps were seen under."""
        self.stage = 2
        self.sizes.scattered = 0.0  # whether the asymptotic mode may speak is for rounds that count to say
        self.lead(entry)
        self.pace(entry)
        return p if self.declared < 0 else None

    def gaps_under(self, p: Any) -> Any:
        """Return the distribution that gaps were seen under: the plan to come."""
        return p

    def tune(self, p: Any, gaps: Any, fresh: Any) -> None:  # noqa: ARG002 - what is fresh shows by itself
        """Fix ρ and scale of entries that have counted nothing, and count the plan p that begins."""
        seen = gaps
        if self.tests is None:
            for_arms, for_bounds = shares_of_delta(self.delta, self.epsilon)
            self.tests = Sums(-1, for_arms, len(self.labels), self.plan)
            self.tune_against(self.tests, self.leader, self.second, p, seen)
            first = Sums(self.leader, for_bounds / 2, len(self.labels), self.plan)
            first.tuning[[RHO, SCALE]] = self.tests.tuning[[RHO, SCALE]]
            self.led = [first]
            self.leaders = 1
            return
        self.tune_against(self.tests, self.leader, self.second, p, seen)
        for one in self.led:
            self.tune_against(one, one.arm, None, p, seen)

    def tune_against(self, one: Sums, rival: int, second: int | None, p: Any, seen: Any) -> None:
        """Tune entries that have counted nothing; `second` is the rival of the rival itself, if any."""
        fresh = self.active & (one.evidence[WEIGHT] == 0)
        own = np.arange(len(fresh)) == rival
        self.tune_rows(one, np.flatnonzero(fresh & ~own if second is not None else fresh), rival, p, seen)
        if second is not None and fresh[rival]:
            self.tune_rows(one, np.array([rival]), second, p, seen)

    def tune_rows(self, one: Sums, rows: Any, rival: int, p: Any, seen: Any) -> None:
        """Tune the entries of some arms (n,) over a rival for the plan p; gaps were seen under another."""
        if not len(rows):
            return
        v_seen = RivalGeometry(self.hull, seen).against(rows, rival)[1]
        _, v, reach = self.geometry(p).against(rows, rival)
        error = np.sqrt(np.where(np.isfinite(v_seen), v_seen, 0.0) * self.noise / self.sizes.rounds)
        gap = np.abs(self.values[rows] - self.values[rival])
        gaps = np.maximum(gap - CAUTION * error, np.maximum(0.1 * error, TINY))
        v = np.where(np.isfinite(v), v, 1.0)
        alpha = one.tuning[ALPHA, rows]
        batch = self.rounds * self.noise / v
        decision = -2 * np.log(alpha) * (self.noise / gaps) ** 2
        least = LEAST_BATCHES[self.goal] * batch
        rho = tightest_rho(np.clip(EARLY * decision, least, MOST_BATCHES * batch), alpha)
        if self.expect is not None:
            rho = np.maximum(self.noise / np.maximum(gap - SURE * error, self.expect), TINY) ** 2
        one.tuning[RHO, rows] = rho
        one.tuning[SCALE, rows] = (
            self.mode.limit * np.maximum(reach, 1e-12) / v if self.mode.is_exact else 1.0
        )
        one.since[rows] = self.plan

    def follow_leader(self, p: Any) -> None:
        """Begin bounds over the leader if there are none; the oldest are forgotten if there are many."""
        is_followed = any(one.arm == self.leader for one in self.led)
        if self.tests is None or self.stage < 2 or self.declared >= 0 or is_followed:
            return
        self.leaders += 1
        for_bounds = shares_of_delta(self.delta, self.epsilon)[1]
        alpha = for_bounds / (self.leaders * (self.leaders + 1))
        mine = Sums(self.leader, alpha, len(self.labels), self.plan)
        self.tune_against(mine, self.leader, None, p, p)
        self.led = [*self.led, mine][-REMEMBERED:]

    def speaks_of(self, one: Sums, factor: float = 1.0) -> Any:
        """Tell which entries (K,) may say anything; in exact modes, all."""
        if self.mode.is_exact:
            return np.ones(len(self.labels), dtype=bool)
        quiet = self.quiet(factor)
        waited = waited_draws(one.evidence, quiet | quiet[one.arm if one.arm >= 0 else self.leader])
        return may_speak(one.evidence, self.sizes.events, waited, one.tuning[ALPHA], factor)

    def lost(self, one: Sums, factor: float) -> Any:
        """Tell which survivors (K,) are proven worse than the arm, or fail their tests."""
        e = one.evidence
        speaks = self.speaks_of(one, factor) & self.active
        found = is_reached(-e[TOTAL] * factor, e, speaks, one.tuning, self.mode.is_exact, self.grid)
        return found & (np.arange(len(found)) != one.arm)

    def eliminate(self, entry: dict[str, Any]) -> None:
        """Drop every arm that fails its test, or that a survivor which has led is proven better than."""
        if self.tests is None:
            return
        before = self.active
        every = [self.tests, *self.led]
        possible, certain = (
            np.any([self.lost(one, factor) for one in every], axis=0) for factor in (1 + CLOSE, 1 - CLOSE)
        )
        by_pairs = [(one.arm, self.lost(one, 1 + CLOSE)) for one in self.led]
        self.take_survivors(entry, before, possible, certain)
        for arm, worse in by_pairs:
            out = worse & before & ~self.active
            if out.any():
                self.forget(out)
                self.note(arm, out)
        self.led = [one for one in self.led if self.active[one.arm]]

    def forget(self, arms: Any) -> None:
        """Forget which rivals the knowledge of some arms (K,) rested on."""
        left = {rival: noted & ~arms for rival, noted in self.rests_on.items()}
        self.rests_on = {rival: noted for rival, noted in left.items() if noted.any()}

    def paces(self) -> tuple[float, float, float, bool]:
        """Return the share of the rounds so far that a batch adds, which is always the same."""
        share = max(self.growth, min(RARER * self.growth, CALM))
        return share, share, share, False

    # Arms that come and go

    def retire(self, arm: int) -> Any:
        """Take an arm out; tests that rest on it begin again, and arms that it helped to drop come back.

        If any come back, all bounds begin again.
        """
        before = self.active
        self.listed = np.flatnonzero(before).tolist()
        self.retired[arm] = True
        again = self.rests_on.get(arm, np.zeros_like(before)) & ~self.retired
        self.active = (before | again) & ~self.retired
        if not self.active.any():
            again = ~self.retired
            self.active = ~self.retired
        if self.tests is not None:
            self.restarts = self.restarts + again
            kept = RESERVE * self.delta * 2.0**-self.restarts
            self.tests.restart(again, kept[again], self.plan)
            self.forget(again | self.retired)
            is_back = np.any(self.active & ~before)
            self.led = [] if is_back else [one for one in self.led if one.arm != arm]
        return True

    def check_return(self, entry: dict[str, Any]) -> None:
        """Check that the entry has the arms that are left, those included that have come back."""
        left = np.flatnonzero(self.active).tolist()
        claimed = self.listed if entry["active"] is None else entry["active"]
        self.verdict.need(
            claimed == left, f"{self.where}: {claimed} are said to be left; it should be {left}"
        )

    def add_evidence(self, before: int, count: int) -> None:
        """Make room for evidence on new arms, which counts from the plan on that is due and plays them."""
        self.restarts = np.pad(self.restarts, (0, count - before))
        self.rests_on = {rival: np.pad(arms, (0, count - before)) for rival, arms in self.rests_on.items()}
        if self.tests is not None:
            self.tests.add_arms(count, shares_of_delta(self.delta, self.epsilon)[0], self.plan + 1)
            for one in self.led:
                one.add_arms(count, one.tuning[ALPHA, 0], self.plan + 1)

    def extend(self, before: int) -> Any:
        """Share out no δ: the row of a new arm has a δ of its own, and bounds over it begin once it leads."""
        return before

    # The claim

    def evidence_over_leader(self, factor: float = 1.0) -> tuple[Any, Any, Any] | None:
        """Return evidence and tuning of all arms over the leader, and which may speak, if any.

        All have a last axis (K,).
        """
        for one in self.led:
            if one.arm == self.leader:
                # Of an arm that is out, nothing is known any more.
                e = np.where(self.active, one.evidence, 0.0)
                return e, one.tuning, self.speaks_of(one, factor)
        return None

    def check_spending(self) -> None:
        """Check that no row spends more than its δ."""
        for_arms, for_bounds = shares_of_delta(self.delta, self.epsilon)
        spent = for_arms + for_bounds + RESERVE * self.delta * (1 - 2.0**-self.restarts)
        self.verdict.need(spent <= self.own_delta * (1 + 1e-9), "a row spends more than δ")


def check_experiment(document: dict[str, Any], verdict: Verdict) -> None:
    """Replay an experiment, and compare what follows with what is claimed."""
    claim = document["claim"]
    has_many = document["settings"]["evidence"] == LEADERS
    run = LeaderRun(document["settings"], verdict) if has_many else Run(document["settings"], verdict)
    for number, entry in enumerate(document["entries"], start=1):
        run.follow(number, entry)
    is_over = run.declared < 0 and run.batch.rounds + run.late >= run.length
    verdict.need(run.changed is None and not is_over, "the log ends where the next plan is due")
    run.check_spending()

    def named(arms: Any) -> list[str]:
        return [run.labels[i] for i in np.flatnonzero(arms)]

    leader = run.labels[run.leader]
    found = {
        "survivors": named(run.active),
        "dropped": named(~run.active & ~run.retired),
        "retired": named(run.retired),
        "leader": leader,
        "declared": None if run.declared < 0 or run.is_held else run.labels[run.declared],
        "held": run.labels[run.declared] if run.is_held else None,
    }
    for name, right in found.items():
        verdict.need(
            claim[name] == right, f"{name} is claimed to be {claim[name]!r}; recomputed it is {right!r}"
        )
    bounds, width = run.bounds()
    bounds[run.leader] = 0.0
    verdict.need(list(claim["bounds"]) == run.labels, f"bounds are claimed of {list(claim['bounds'])}")
    for i, label in enumerate(run.labels):
        room = CLOSE * width[i] if i != run.leader else 0.0
        verdict.same(f"what {label!r} may lead {leader!r} by", claim["bounds"][label], float(bounds[i]), room)
    others = run.others()
    epsilon = float(max(bounds[others].max(initial=0.0), 0.0))
    room = CLOSE * np.max(width[others], initial=0.0, where=np.isfinite(width[others]))
    verdict.same("ε", claim["epsilon"], epsilon, room)
    near = claim["epsilon"]
    what = NOT_NEAR if near is None else f"within {near:.6g} of the best" if near else "the best"
    sure = f"false winners in at most {100 * run.delta:.12g} % of experiments"
    out = f"; retired: {', '.join(map(repr, found['retired']))}" if run.retired.any() else ""
    held = "; guardrails have not cleared it: held back" if run.is_held else ""
    arms = int(np.sum(~run.retired))
    verdict.claim = f"{leader!r} is {what} of {arms} arms ({run.mode.words}; {sure}){held}{out}"
    check_names("the claim", claim, {*found, "bounds", "epsilon", "sentence"}, verdict)


# Logs -------------------------------------------------------------------------------------------------------
# Entries are "distribution" (what arms were drawn from, numbered when it is first met) and "bucket": the
# rows of a stretch of time, by distribution. The first buckets are the pilot, which only tells how much
# residuals scatter; theirs are around the mean of the bucket. All later ones count for the gaps of all pairs
# of arms, which hold together; with many arms, for the gaps over the reference arm alone. What is claimed of
# the latter is what follows from all of them.

PILOT_ROWS = 20  # that a pilot has at least, or PER_ARM for each arm
PER_ARM = 5
GUESSED_ROUNDS = 10_000  # at which intervals are made tightest; they hold at any number
PER_LEVEL = (
    8.0  # draws of an arm, in units of log(1/α), before the asymptotic mode rests on it; at least DRAWN
)
HIDDEN = 0.25  # share of the variance of a gap that may rest on arms with fewer draws
MOST_PAIRED = 40  # arms; with more, only gaps over the reference arm are followed
NAMED = 12  # gaps that the sentence names
TIMES = "gmk,gk->gm"  # matrices (G, m, K) times one vector (G, K) each


class BucketRule:
    """Where buckets of a log may begin: fixed before any row counts, so that nobody chose it by the result.

    Bucket k begins k widths after the origin. If buckets double, then from n·2^(L − 1) to n·2^L widths after
    the origin each is 2^L widths long, n being `doubles_after`. Buckets with few rows are joined to the next:
    then the first one's beginning is theirs.
    """

    def __init__(self, given: dict[str, Any], verdict: Verdict) -> None:
        check_names(
            "the rule of buckets", given, {"width", "origin", "doubles_after", "fewest_rows"}, verdict
        )
        self.width = given["width"]  # None for cells that were not cut by a rule
        self.origin = given["origin"]
        self.doubles_after = given["doubles_after"]
        if self.width is not None:
            good = 0 < self.width < np.inf and abs(self.origin) < np.inf
            verdict.need(good, f"no buckets are {self.width} wide from {self.origin} on")
        if self.doubles_after is not None and not self.doubles_after >= 1:
            raise ValueError(f"buckets cannot double after {self.doubles_after} widths")

    def at(self, begins: float) -> bool:
        """Tell whether a bucket may begin at a time."""
        if self.width is None:
            return True
        widths = round((begins - self.origin) / self.width)
        length = 1
        while self.doubles_after is not None and widths >= self.doubles_after * length:
            length *= 2
        # Times are computed as this is; they differ by rounding at most.
        is_near = abs(self.origin + widths * self.width - begins) <= 1e-9 * max(self.width, abs(begins))
        return bool(is_near and widths % length == 0)


class Log:
    """A log, replayed bucket by bucket: evidence (6, m) on m gaps, those to the reference arm first."""

    def __init__(self, settings: dict[str, Any], verdict: Verdict) -> None:
        self.verdict = verdict
        self.mode = Mode(settings, verdict)
        self.mode.check_tells_sizes(verdict)
        self.labels = list(settings["labels"])
        self.metric = settings["metric"]
        self.features = np.array(settings["features"], dtype=float)
        k = len(self.features)
        named = len(self.labels) == len(set(self.labels)) == k > 1
        verdict.need(named and np.isfinite(self.features).all(), f"{k} arms need features and a name each")
        self.reference = self.labels.index(settings["reference"])
        self.others = np.delete(np.arange(k), self.reference)
        self.hull = hull(self.features)
        pairs = [(arm, self.reference) for arm in self.others]
        if k <= MOST_PAIRED:
            pairs += [(i, j) for place, i in enumerate(self.others) for j in self.others[:place]]
        self.first, self.second = np.array(pairs).T
        m = len(pairs)
        differ = np.any(self.features[self.first] != self.features[self.second], axis=1, keepdims=True)
        self.contrasts = np.where(differ, self.hull[self.first] - self.hull[self.second], 0.0)
        self.delta = float(settings["delta"])
        self.buckets_begin = BucketRule(settings["buckets"], verdict)
        verdict.need(0 < self.delta < 1, f"δ = {self.delta}")
        # Each gap has two sides, and all hold together with probability 1 − δ.
        self.tuning = np.zeros((3, m))
        self.tuning[ALPHA] = self.delta / (2 * m)
        self.evidence = np.zeros((6, m))
        self.sizes = Sizes(k)
        self.carried = np.zeros((3, m, k))  # variance of each gap that rests on each arm, of all buckets
        self.values = np.zeros(k)
        self.error = 0.0  # standard error of the least known gap, in whose units values may be off
        self.distributions: list[Any] = []
        self.in_pilot: set[int] = set()
        self.pilot_rows = 0.0
        self.pilot_squares = 0.0
        self.has_pilot_ended = False
        self.buckets = 0
        self.begins = -np.inf
        self.where = ""
        self.pulls: tuple[Any, Any, Any] | None = None  # distributions, g and v, which buckets often share

    def follow(self, number: int, entry: dict[str, Any], largest: float) -> None:
        """Take in an entry of a log whose largest residual is given."""
        self.where = f"entry {number}"
        if entry["entry"] == "distribution":
            p = np.array(entry["probabilities"], dtype=float)
            self.distributions.append(p)
            count = len(self.distributions)
            given = entry["distribution"]
            self.verdict.need(given == count, f"{self.where}: distribution {given} is number {count}")
            self.verdict.need(p.shape == self.values.shape, f"{self.where}: probabilities of other arms")
            check_probabilities(self.where, p, self.verdict)
        elif entry["entry"] == "bucket":
            self.add_bucket(entry, largest)
        else:
            raise ValueError(f"no entry is a {entry['entry']!r}")

    def add_bucket(self, entry: dict[str, Any], largest: float) -> None:
        """Take in the rows of a bucket, all of which are numbered, from the first of the log on."""
        need = self.verdict.need
        where = self.where
        self.buckets += 1
        need(entry["bucket"] == self.buckets, f"{where}: bucket {entry['bucket']} is number {self.buckets}")
        begins = float(entry["begins"])
        need(begins > self.begins, f"{where}: it begins at {begins}, the one before at {self.begins}")
        need(self.buckets_begin.at(begins), f"{where}: by the rule of buckets, none begins at {begins}")
        self.begins = begins
        plans = entry["plans"]
        numbers = [int(plan["distribution"]) for plan in plans]
        good = (
            min(numbers) > 0 and max(numbers) <= len(self.distributions) and len(set(numbers)) == len(numbers)
        )
        need(good, f"{where}: its distributions are not all listed before, or one comes twice")
        p = np.array([self.distributions[n - 1] for n in numbers])
        tally = Tally(*([plan[name] for plan in plans] for name in ("counts", "sums", "squares", "largest")))
        values = np.array(entry["values"], dtype=float)
        is_pilot = not self.ends_pilot(entry["stage"], largest)
        need(
            entry["stage"] == STAGES[1 if is_pilot else 2],
            f"{where}: a bucket of the {entry['stage']} cannot be here",
        )
        room = NEARLY * max(float(np.ptp(self.values)), self.error)
        off = np.abs(values - self.values).max()
        need(off <= room, f"{where}: values {values} are {off:.3g} off those recomputed, {self.values}")
        low = high = np.full(len(values), np.inf)
        if self.mode.is_bounded:
            low = self.mode.low - max(self.mode.high - values.max(), self.mode.low - values.min()) - values
            high = self.mode.high - (self.mode.low - values.min()) - values
        check_tally(where, p, tally, low, high, self.verdict)
        if is_pilot:
            self.pilot_rows += tally.rounds
            self.pilot_squares += float(tally.squares.sum())
            self.in_pilot.update(numbers)
            off = abs(float(tally.sums.sum())) / sqrt(max(tally.rounds * float(tally.squares.sum()), TINY))
            is_rounding = float(tally.squares.sum()) <= 1e-12 * largest**2 * tally.rounds
            need(
                off <= 1e-6 or is_rounding,
                f"{where}: residuals of the pilot are not around the mean of the bucket",
            )
            return
        if not self.has_pilot_ended:
            self.has_pilot_ended = True
            self.tune(np.array([self.distributions[n - 1] for n in sorted(self.in_pilot)]))
        self.count(p, values, tally)
        self.learn_values()

    def ends_pilot(self, stage: str, largest: float) -> bool:
        """Tell whether the pilot is over: it has rows enough and, in the asymptotic mode, scatter."""
        if self.has_pilot_ended:
            return True
        if self.pilot_rows < max(PILOT_ROWS, PER_ARM * len(self.labels)):
            return False
        if self.mode.is_exact:
            return True
        # Scatter that may be rounding may be called none.
        is_rounding = self.pilot_squares <= 1e-12 * largest**2 * self.pilot_rows
        return self.pilot_squares > 0 and not (is_rounding and stage == STAGES[1])

    def tune(self, p: Any) -> None:
        """Fix ρ and scale of gaps that have none and that some of the distributions (G, K) can estimate."""
        g, v = self.geometry(p)
        fresh = np.isfinite(v).any(axis=0) & (self.tuning[RHO] == 0)
        noise = sqrt(self.pilot_squares / self.pilot_rows) or min(self.mode.limit / 4, 1.0)
        rho = tightest_rho(GUESSED_ROUNDS * noise**2 / v.min(axis=0), self.tuning[ALPHA])
        reach = np.abs(g).max(axis=2)
        scale = self.mode.limit * (reach / v).max(axis=0) if self.mode.is_exact else np.ones_like(rho)
        self.tuning[RHO] = np.where(fresh, rho, self.tuning[RHO])
        self.tuning[SCALE] = np.where(fresh, scale, self.tuning[SCALE])

    def geometry(self, p: Any) -> tuple[Any, Any]:
        """Return g (G, m, K) and v (G, m) of distributions (G, K); v is infinite where they cannot tell."""
        if self.pulls is not None and np.array_equal(p, self.pulls[0]):
            return self.pulls[1:]
        around = self.hull - self.hull[np.argmax(p, axis=1)][:, np.newaxis]
        centred = around - p[:, np.newaxis] @ around
        values, vectors = np.linalg.eigh(np.swapaxes(centred * p[..., np.newaxis], 1, 2) @ centred)
        tiny = 1e-15 * values.shape[1] * values.max(axis=1, initial=0.0, keepdims=True)
        inside = np.where(values > tiny, values, np.inf)[:, np.newaxis]
        y = self.contrasts @ vectors
        # What sticks out of the span of the drawn arms by more than rounding cannot be estimated.
        tilt = np.maximum(1e-10, 2 * tiny / inside.min(axis=2, initial=np.inf))
        sticks_out = np.linalg.norm(np.where(np.isinf(inside), y, 0.0), axis=2)
        is_unknown = sticks_out >= tilt * np.linalg.norm(y, axis=2)
        is_there = ~is_unknown[..., np.newaxis] & (p > 0)[:, np.newaxis]
        g = np.where(is_there, y / inside @ np.swapaxes(centred @ vectors, 1, 2), 0.0)
        v = np.where(is_unknown, np.inf, np.sum(y**2 / inside, axis=2))
        self.pulls = (p, g, v)
        return g, v

    def count(self, p: Any, values: Any, tally: Tally) -> None:
        """Add a bucket to the evidence: distributions (G, K), values of the arms (K,), tally (G, K)."""
        self.tune(p)
        whole = Tally(tally.counts.sum(0), tally.sums.sum(0), tally.squares.sum(0), tally.largest.max(0))
        self.sizes.add(whole)
        mode = self.mode
        sizes = self.sizes
        g, v = self.geometry(p)
        n = tally.counts.sum(axis=1, keepdims=True)
        reach = np.abs(g).max(axis=2)
        ideal = 1 / v
        w = ideal
        if mode.is_exact:
            w = np.minimum(ideal, self.tuning[SCALE] / (mode.limit * np.maximum(reach, 1e-300)))
        totals = n * (values[self.first] - values[self.second]) + np.einsum(TIMES, g, tally.sums)
        squares = w**2 * np.einsum(TIMES, g**2, tally.squares)
        usual = np.maximum(np.where(np.isfinite(v), v, 0.0), np.einsum(TIMES, g**2, p * sizes.loudness))
        most = np.minimum(tally.largest.max(axis=1, keepdims=True), mode.limit)
        peaks = w * reach * (most if mode.is_exact else sizes.excess)
        pooled = peaks * squares if mode.is_exact else w**2 * tally.squares.sum(axis=1, keepdims=True) * usual
        e = self.evidence
        e[TOTAL] += (w * totals).sum(axis=0)
        e[WEIGHT] += (w * n).sum(axis=0)
        e[VARIANCE] += squares.sum(axis=0)
        e[SLACK] += (mode.bias * n * w * np.sqrt(np.where(np.isfinite(v), v, 1.0))).sum(axis=0)
        e[POOLED] += pooled.sum(axis=0)
        e[PEAK] = np.maximum(e[PEAK], peaks.max(axis=0))
        part = ideal[..., np.newaxis] ** 2 * g**2
        parts = carried_by(part, (n * p)[:, np.newaxis], tally.counts[:, np.newaxis])
        self.carried += parts.sum(axis=1)

    def learn_values(self) -> None:
        """Estimate the values for the next bucket: each gap shrunk by how much of its square is noise."""
        e = self.evidence[:, : len(self.others)]  # gaps to the reference arm
        is_known = e[WEIGHT] > 0
        weight = np.where(is_known, e[WEIGHT], 1.0)
        gaps = np.where(is_known, e[TOTAL] / weight, 0.0)
        variance = e[VARIANCE] if self.mode.is_exact else np.maximum(e[VARIANCE], e[POOLED])
        noise = variance / weight**2
        self.error = float(np.sqrt(np.max(np.where(is_known, noise, 0.0))))
        total = gaps**2 + noise
        values = np.zeros(len(self.values))
        values[self.others] = gaps * gaps**2 / np.where(total > 0, total, 1.0)
        if self.hull.shape[1] < len(values) - 1:  # not any values are linear in the features
            positions = orthonormal(self.features, self.reference, self.hull.shape[1])
            values = positions @ (np.linalg.pinv(positions) @ values)
        span = self.mode.high - self.mode.low
        self.values = values if np.ptp(values) <= span else np.zeros(len(values))

    def intervals(self) -> tuple[Any, Any, Any, Any]:
        """Return estimates, lower and upper ends of the gaps (m,), and how far rounding may move these."""
        e = self.evidence
        is_known = self.evidence[WEIGHT] > 0
        limit = self.mode.high - self.mode.low
        tuning = np.where(is_known, self.tuning, np.array([[0.5], [1.0], [1.0]]))
        middle = np.where(is_known, e[TOTAL] / e[WEIGHT], np.inf)
        # Gaps of a log have waited by another rule, which is in their events.
        events = known_events(self.carried, self.sizes.events, self.tuning[ALPHA])
        speaks = self.mode.is_exact | may_speak(e, events, np.inf, tuning[ALPHA])
        width = (boundary(e, speaks, tuning, self.mode.is_exact, NEAR) + e[SLACK]) / e[WEIGHT]
        width = np.where(is_known, width, np.inf)
        low = np.where(is_known, np.maximum(middle - width, -limit), -limit)
        high = np.where(is_known, np.minimum(middle + width, limit), limit)
        room = CLOSE * np.where(
            np.isfinite(width), width, np.abs(np.where(is_known, middle, 0.0)) + self.error
        )
        return middle, low, high, room

    def claims(self) -> tuple[Any, Any, Any, Any]:
        """Return what follows from all gaps for those to the reference arm (K − 1,); see `intervals`."""
        middle, low, high, room = self.intervals()
        k = len(self.labels)
        if k > MOST_PAIRED:
            return middle, low, high, room
        # Entry (i, j) bounds the gap of i over j from above; those of i over k and k over j add up to one.
        upper = np.full((k, k), np.inf)
        rooms = np.zeros((k, k))
        np.fill_diagonal(upper, 0.0)
        upper[self.first, self.second] = high
        upper[self.second, self.first] = -low
        rooms[self.first, self.second] = rooms[self.second, self.first] = room
        size = np.abs(upper[np.isfinite(upper)]).max()
        for arm in range(k):
            through = upper[:, arm, np.newaxis] + upper[arm]
            is_shorter = through < upper
            rooms = np.where(is_shorter, rooms[:, arm, np.newaxis] + rooms[arm], rooms)
            upper = np.where(is_shorter, through, upper)
        self.verdict.need(np.diag(upper).min() >= -1e-9 * size, "no gaps fit the intervals of all pairs")
        count = k - 1
        first = self.first[:count]
        second = self.second[:count]
        high = upper[first, second]
        low = np.minimum(-upper[second, first], high)
        middle = middle[:count]
        middle = np.where(np.isfinite(middle), np.clip(middle, low, high), middle)
        is_worse = (upper < 0).any(axis=1)  # than another arm
        middle = self.below_best(middle, low, high, is_worse)
        return middle, low, high, np.maximum(rooms[first, second], rooms[second, first])

    def below_best(self, middle: Any, low: Any, high: Any, is_worse: Any) -> Any:
        """Return estimates (K − 1,) moved within their intervals, none above that of the best arm.

        That is the one with the largest estimate of those not proven worse than another.
        """
        estimates, lows, highs = (np.insert(part, self.reference, 0.0) for part in (middle, low, high))
        known = np.isfinite(estimates)
        best = np.argmax(np.where(known & ~is_worse, estimates, -np.inf))
        top = max(estimates[best], min(np.max(lows[known]), highs[best]))
        moved = np.maximum(np.minimum(estimates, top), lows)
        moved[best] = top
        return np.delete(np.where(known, moved, estimates), self.reference)


def orthonormal(features: Any, reference: int, dimension: int) -> Any:
    """Return positions (K, r) of the arms around one of them, in an orthonormal basis of their hull."""
    x = features - features[reference]
    _, _, rows = np.linalg.svd(x, full_matrices=False)
    return x @ rows[:dimension].T


def verdict_of(low: float, high: float) -> str:
    """Say on which side of 0 an interval lies."""
    return "better" if low > 0 else "worse" if high < 0 else "undecided"


def check_log(document: dict[str, Any], verdict: Verdict) -> None:
    """Replay a log, and compare estimates, intervals and verdicts with what is claimed."""
    claim = document["claim"]
    now = Log(document["settings"], verdict)
    buckets = [entry for entry in document["entries"] if entry["entry"] == "bucket"]
    largest = max((max(plan["largest"]) for entry in buckets for plan in entry["plans"]), default=0.0)
    for number, entry in enumerate(document["entries"], start=1):
        now.follow(number, entry, largest)
    verdict.need(now.has_pilot_ended, "no bucket counted")
    estimates, lows, highs, rooms = now.claims()
    said = []
    for place, gap in enumerate(claim["gaps"]):
        label = now.labels[now.others[place]]
        room = float(rooms[place])
        low, high = float(lows[place]), float(highs[place])
        verdict.need(gap["arm"] == label, f"a gap is claimed of {gap['arm']!r}; it is that of {label!r}")
        verdict.same(f"the gap of {label!r}", gap["estimate"], float(estimates[place]), room)
        claimed_low = -np.inf if gap["low"] is None else gap["low"]
        verdict.same(f"the lower end of {label!r}", claimed_low, low, room)
        verdict.same(f"the upper end of {label!r}", gap["high"], high, room)
        claimed_high = np.inf if gap["high"] is None else gap["high"]
        word = verdict_of(claimed_low, claimed_high)
        verdict.need(
            gap["verdict"] == word, f"{label!r} is claimed to be {gap['verdict']}; its interval says {word}"
        )
        said.append(f"{label!r} {claimed_low:.6g} to {claimed_high:.6g}, {word}")
        check_names(f"the gap of {label!r}", gap, {"arm", "estimate", "low", "high", "verdict"}, verdict)
    check_names("the claim", claim, {"metric", "over", "gaps", "alarms", "sentence"}, verdict)
    verdict.need(isinstance(claim["alarms"], list), f"alarms are a list, not {claim['alarms']!r}")
    verdict.need(len(said) == len(now.others), f"{len(said)} gaps are claimed of {len(now.labels)} arms")
    reference = now.labels[now.reference]
    for name, right in {"metric": now.metric, "over": reference}.items():
        verdict.need(claim[name] == right, f"{name} is claimed to be {claim[name]!r}; it is {right!r}")
    more = [f"and {len(said) - NAMED} more"] if len(said) > NAMED else []
    sure = f"a wrong interval in at most {100 * now.delta:.12g} % of logs ({now.mode.words})"
    alarms = [f"alarms were raised: {', '.join(claim['alarms'])}"] if claim["alarms"] else []
    verdict.claim = (
        f"gaps of {now.metric!r} over {reference!r}: {'; '.join([*said[:NAMED], *more, sure, *alarms])}"
    )


# Rules ------------------------------------------------------------------------------------------------------
# Entries are "visitor" (when an arm is drawn: what it was drawn from, estimated values of the arms, a
# forecast of the level, and the columns of the context that rules look at) and "reward" (when it settles, in
# the order of draws). A rule chooses an arm for every visitor. With z = 1{rule's arm} − 1{reference's arm},
#
#     ψ = Σ_a z_a·values_a + z_arm/p_arm·residual
#
# has the mean of what the rule earns over the reference, of this visitor, whatever the level does. Every
# visitor weighs the same: the mean of ψ estimates what the rule would have earned on the visitors so far.

GUESSED_VISITORS = 1000  # at which intervals are made tightest; they hold at any number
GUESSED_NOISE = 0.25  # of residuals, in units of the declared range; 1 where none was declared
COMPARISONS: dict[str, Any] = {
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    ">": np.greater,
}
CONDITION = re.compile(rf"(.+?)\s*({'|'.join(COMPARISONS)})\s*(\S+)")


class WrittenRule:
    """A rule in words, "B if mobile >= 0.5 and hour < 8 else A": the arm of the first case that holds."""

    def __init__(self, text: str, labels: list[str], columns: list[str]) -> None:
        self.cases: list[tuple[int, list[tuple[str, str, float]]]] = []
        rest = text.strip()
        while rest not in labels:
            # A label may hold the words of the grammar, so the longest one is meant.
            label = max((one for one in labels if rest.startswith(f"{one} if ")), key=len)
            words, _, rest = rest[len(f"{label} if ") :].partition(" else ")
            rest = rest.strip()
            given = []
            for one in words.split(" and "):
                match = CONDITION.fullmatch(one.strip())
                if match is None or match[1] not in columns or not np.isfinite(float(match[3])):
                    raise ValueError(f"the rule {text!r} has no condition {one!r}")
                given.append((match[1], match[2], float(match[3])))
            self.cases.append((labels.index(label), given))
        self.cases.append((labels.index(rest), []))

    def arm(self, context: dict[str, float], offered: Any) -> int:
        """Return the arm for a visitor; where it is not offered the reference arm, or the first that is."""
        for arm, given in self.cases:
            if all(COMPARISONS[sign](context[column], bound) for column, sign, bound in given):
                wanted = arm
                break
        return next(arm for arm in (wanted, 0, int(np.argmax(offered))) if offered[arm])


class Spread:
    """How values scatter: their number, mean, squares around it, and the largest deviation (Welford 1962)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean = self.scattered = self.largest = 0.0

    def add(self, value: float) -> None:
        """Take in a value."""
        off = value - self.mean
        self.largest = max(self.largest, abs(off)) if self.count else 0.0
        self.count += 1
        self.mean += off / self.count
        self.scattered += off * (value - self.mean)

    @property
    def events(self) -> float:
        """Scatter in units of the largest square."""
        return self.scattered / self.largest**2 if self.largest > 0 else 0.0


class RuleRun:
    """A personalised experiment, replayed visitor by visitor: evidence (6, m) on all rules but the first."""

    def __init__(self, settings: dict[str, Any], verdict: Verdict) -> None:
        self.verdict = verdict
        self.mode = Mode(settings, verdict)
        self.mode.check_tells_sizes(verdict)
        self.labels = list(settings["labels"])
        self.columns = list(settings["columns"])
        k = len(self.labels)
        verdict.need(len(set(self.labels)) == k > 1, f"{k} arms need a name each")
        texts = [(f"{label} for all", label) for label in self.labels]
        texts += [(name, text) for name, text in settings["written"]]
        self.names = [name for name, _ in texts]
        verdict.need(len(set(self.names)) == len(texts), "rules need a name each")
        self.rules = [WrittenRule(text, self.labels, self.columns) for _, text in texts]
        looked_at = {one[0] for rule in self.rules for _, given in rule.cases for one in given}
        verdict.need(looked_at == set(self.columns), f"rules look at {sorted(looked_at)}, not {self.columns}")
        self.delta = float(settings["delta"])
        explore = float(settings["explore"])
        verdict.need(0 < self.delta < 1 and 0 < explore < 1, f"δ = {self.delta} and explore = {explore}")
        self.silence = settings["silence"]
        verdict.need(self.silence in ("zero", "missing"), f"silence counts as {self.silence!r}")
        names = {"kind", "labels", "columns", "written", "confidence", "delta", "explore"}
        check_names("settings", settings, names | {"silence", "holdout", "key", "experiment"}, verdict)
        self.holdout = float(settings["holdout"])
        verdict.need(0 <= self.holdout < 1, f"the holdout is {self.holdout}")
        self.floor = explore / k
        m = len(texts) - 1
        self.tuning = np.zeros((3, m))
        # Each gain has two sides, and all hold together with probability 1 − δ.
        self.tuning[ALPHA] = self.delta / (2 * m)
        self.tuning[SCALE] = self.mode.limit / self.floor if self.mode.is_exact else 1.0
        self.evidence = np.zeros((6, m))
        self.different = np.zeros(m, dtype=int)
        self.drawn = np.zeros(k)
        self.squared = np.zeros(k)  # Σ residual² of each arm
        self.carried = np.zeros((3, m, k))  # variance of each gain that rests on each arm
        self.rewards = Spread()
        self.residuals = Spread()
        self.excess = 0.0
        self.visitors = 0
        self.settled = 0
        self.missing = 0
        self.held = 0  # visitors of the holdout
        self.alone = 0  # others whose offer had one arm
        self.offered = np.zeros(k, dtype=int)  # others whose offer had each arm
        self.retired: set[int] = set()
        self.waiting: list[dict[str, Any]] = []  # visitors without a reward, in the order of draws
        self.next = 0
        self.where = ""

    def follow(self, number: int, entry: dict[str, Any]) -> None:
        """Take in an entry."""
        self.where = f"entry {number}"
        if entry["entry"] == "visitor":
            self.meet(entry)
        elif entry["entry"] == "reward":
            self.settle(entry)
        elif entry["entry"] == "retire":
            self.retire(entry)
        else:
            raise ValueError(f"no entry is a {entry['entry']!r}")

    def meet(self, entry: dict[str, Any]) -> None:
        """Check a visitor, who must be the next one, and wait for the reward unless it is in the holdout."""
        verdict = self.verdict
        where = self.where
        self.visitors += 1
        names = {"entry", "visitor", "plan", "probabilities", "values", "context", "forecast", "arm", "held"}
        check_names(where, entry, names, verdict)
        given = entry["visitor"]
        verdict.need(given == self.visitors, f"{where}: visitor {given} is number {self.visitors}")
        p = np.array(entry["probabilities"], dtype=float)
        verdict.need(p.shape == self.drawn.shape, f"{where}: probabilities of other arms")
        check_probabilities(where, p, verdict)
        least = p[p > 0].min()
        verdict.need(
            least >= self.floor * (1 - 1e-9), f"{where}: {least:.12g} is below the share that is explored"
        )
        values = np.array(entry["values"], dtype=float)
        good = values.shape == p.shape and np.isfinite(values).all() and np.isfinite(entry["forecast"])
        verdict.need(good, f"{where}: values and forecast must be finite numbers")
        context = entry["context"]
        check_names(f"{where}: the context", context, set(self.columns), verdict)
        verdict.need(np.isfinite(list(context.values())), f"{where}: the context is not finite")
        arm = entry["arm"]
        is_arm = type(arm) is int and 0 <= arm < len(p) and p[arm] > 0
        verdict.need(is_arm, f"{where}: arm {arm!r} cannot have been drawn")
        verdict.need(type(entry["held"]) is bool, f"{where}: held is {entry['held']!r}")
        verdict.need(
            type(entry["plan"]) is int and entry["plan"] >= 0, f"{where}: {entry['plan']!r} is no plan"
        )
        if entry["held"]:
            verdict.need(arm == 0, f"{where}: the holdout is shown the first arm")
            verdict.need(self.holdout > 0, f"{where}: it is held out, and nobody is to be")
            self.held += 1
        else:
            self.waiting.append(entry)
            self.offered += p > 0
            self.alone += int(np.count_nonzero(p) == 1)

    def retire(self, entry: dict[str, Any]) -> None:
        """Take an arm out: rules that name it cannot be the best any more. One arm stays."""
        check_names(self.where, entry, {"entry", "arm"}, self.verdict)
        arm = entry["arm"]
        is_left = type(arm) is int and 0 <= arm < len(self.labels) and arm not in self.retired
        self.verdict.need(is_left, f"{self.where}: arm {arm!r} cannot be retired")
        self.retired.add(arm)
        self.verdict.need(len(self.retired) < len(self.labels), f"{self.where}: all arms are retired")

    def settle(self, entry: dict[str, Any]) -> None:
        """Count the reward of the visitor who has waited longest: no other may settle before."""
        verdict = self.verdict
        check_names(self.where, entry, {"entry", "visitor", "reward"}, verdict)
        met = self.waiting[self.next]
        self.next += 1
        given = entry["visitor"]
        verdict.need(
            given == met["visitor"], f"{self.where}: visitor {given} settles before {met['visitor']}"
        )
        reward = entry["reward"]
        if reward is None:
            self.missing += 1
            verdict.need(self.silence == "missing", f"{self.where}: a reward is missing, and silence is 0")
            return
        good = np.isfinite(reward) and (not self.mode.is_bounded or self.mode.low <= reward <= self.mode.high)
        verdict.need(good, f"{self.where}: {reward} is outside the declared range")
        self.count(met, float(reward))

    def count(self, met: dict[str, Any], reward: float) -> None:
        """Add a visitor to the evidence on every rule."""
        mode = self.mode
        p = np.array(met["probabilities"], dtype=float)
        values = np.array(met["values"], dtype=float)
        arm = met["arm"]
        offered = p > 0
        chosen = np.array([rule.arm(met["context"], offered) for rule in self.rules])
        z = np.eye(len(p))[chosen[1:]] - np.eye(len(p))[chosen[0]]
        g = np.divide(z, p, out=np.zeros_like(z), where=offered)
        # Values that differ by more than rewards can are shrunk; forecasts are clipped to what they leave.
        spread = np.ptp(values[offered])
        if spread > mode.high - mode.low:
            values = values * ((mode.high - mode.low) / spread)
        low = mode.low - values[offered].min()
        level = min(max(met["forecast"], low), max(mode.high - values[offered].max(), low))
        residual = float(np.clip(reward - level - values[arm], -mode.limit, mode.limit))
        x = g[:, arm] * residual
        factor = g**2 @ p
        self.rewards.add(reward)
        self.residuals.add(residual)
        self.drawn[arm] += 1
        self.squared[arm] += residual**2
        fresh = (self.tuning[RHO] == 0) & (factor > 0)
        noise = GUESSED_NOISE * (mode.high - mode.low) if mode.is_exact else 1.0
        guess = tightest_rho(GUESSED_VISITORS * noise**2 * factor, self.tuning[ALPHA])
        self.tuning[RHO] = np.where(fresh, guess, self.tuning[RHO])
        e = self.evidence
        if mode.is_exact:
            e[PEAK] = np.maximum(e[PEAK], np.abs(x))
            e[POOLED] += np.abs(x) ** 3
        else:
            seen = self.residuals
            mean = seen.scattered / seen.count + seen.mean**2
            usual = mean * (2 * log(seen.count) + 6)
            self.excess = max(self.excess, min(2 * sqrt(max(residual**2 - usual, 0.0)), abs(residual)))
            e[PEAK] = np.maximum(e[PEAK], np.abs(g).max(axis=1) * self.excess)
            # Squares that are expected are larger where arms that were louder so far may be drawn.
            whole = self.squared.sum() / self.drawn.sum()
            loud = np.divide(
                self.squared, self.drawn * whole, out=np.ones(len(p)), where=self.drawn * whole > 0
            )
            e[POOLED] += np.maximum(factor, g**2 @ (p * loud)) * residual**2
        e[TOTAL] += z @ values + x
        e[WEIGHT] += 1.0
        e[VARIANCE] += x**2
        e[SLACK] += mode.bias * np.sqrt(factor)
        self.settled += 1
        self.different += np.any(z != 0, axis=1)
        self.carried += carried_by(g**2, p, np.arange(len(p)) == arm)

    def intervals(self) -> tuple[Any, Any, Any]:
        """Return estimates and half-widths of the gains (m,), and how far rounding may move them."""
        e = self.evidence
        is_ready = self.tuning[RHO] > 0
        tuning = np.where(is_ready, self.tuning, np.array([[0.5], [1.0], [1.0]]))
        tuning[ALPHA] = self.tuning[ALPHA]
        seen = min(self.rewards.events, self.residuals.events)
        events = known_events(self.carried, seen, self.tuning[ALPHA])
        speaks = self.mode.is_exact | may_speak(e, events, np.inf, self.tuning[ALPHA])
        n = max(self.settled, 1)
        width = (boundary(e, speaks, tuning, self.mode.is_exact, WIDE) + e[SLACK]) / n
        # A rule that never differed earns the same, exactly.
        width = np.where(is_ready, width, 0.0 if self.settled else np.inf)
        middle = e[TOTAL] / n
        scatter = np.abs(middle) + np.sqrt(np.maximum(e[VARIANCE], e[POOLED])) / n
        return middle, width, CLOSE * np.where(np.isfinite(width), width, scatter)


def check_rules(document: dict[str, Any], verdict: Verdict) -> None:
    """Replay a personalised experiment, and compare gains of rules with what is claimed."""
    claim = document["claim"]
    now = RuleRun(document["settings"], verdict)
    for number, entry in enumerate(document["entries"], start=1):
        now.follow(number, entry)
    reference, *others = now.names
    verdict.need(len(claim["gains"]) == len(others), f"gains are claimed of {len(claim['gains'])} rules")
    names = {"rule", "estimate", "low", "high", "different", "verdict"}
    found_intervals = now.intervals()
    ends = {reference: (0.0, 0.0)}
    said = []
    for place, gain in enumerate(claim["gains"]):
        name = others[place]
        middle, width, room = (float(part[place]) for part in found_intervals)
        low = -np.inf if gain["low"] is None else gain["low"]
        high = np.inf if gain["high"] is None else gain["high"]
        verdict.need(gain["rule"] == name, f"a gain is claimed of {gain['rule']!r}; it is that of {name!r}")
        verdict.same(f"the gain of {name!r}", gain["estimate"], middle, room)
        verdict.same(f"the lower end of {name!r}", low, middle - width, room)
        verdict.same(f"the upper end of {name!r}", high, middle + width, room)
        different = int(now.different[place])
        verdict.need(
            gain["different"] == different and type(gain["different"]) is int,
            f"{name!r} is claimed to differ on {gain['different']} visitors; recomputed {different}",
        )
        word = verdict_of(low, high)
        verdict.need(
            gain["verdict"] == word, f"{name!r} is claimed to be {gain['verdict']}; its interval says {word}"
        )
        check_names(f"the gain of {name!r}", gain, names, verdict)
        ends[name] = (low, high)
        said.append(f"{name!r} {low:.6g} to {high:.6g}, {word}")
    # Nobody can be shown what a rule with a retired arm says; with one arm left there is nothing to compare.
    named = [{arm for arm, _ in rule.cases} for rule in now.rules]
    kept = [name for name, arms in zip(now.names, named, strict=True) if not arms & now.retired]
    most = max((ends[name][0] for name in kept), default=0.0)
    possible = [name for name in kept if ends[name][1] >= most]
    is_alone = len(now.labels) - len(now.retired) < 2
    best = possible[0] if len(possible) == 1 and not is_alone else None
    retired = [now.labels[arm] for arm in sorted(now.retired)]
    found = {
        "over": reference,
        "visitors": now.settled,
        "missing": now.missing,
        "possible": possible,
        "best": best,
        "retired": retired,
        "held": now.held,
        "alone": now.alone,
        "offered": dict(zip(now.labels, now.offered.tolist(), strict=True)),
    }
    for name, right in found.items():
        same = claim[name] == right and type(claim[name]) is type(right)
        verdict.need(same, f"{name} is claimed to be {claim[name]!r}; it is {right!r}")
    check_names("the claim", claim, {*found, "gains", "sentence"}, verdict)
    more = [f"and {len(said) - NAMED} more"] if len(said) > NAMED else []
    sure = f"a wrong interval in at most {100 * now.delta:.12g} % of experiments ({now.mode.words})"
    whose = " that name no retired arm" if retired else ""
    proven = [f"{best!r} is the best of {len(kept)} rules{whose}"] if best is not None else []
    left = [f"rewards of {now.missing} more are missing"] if now.missing else []
    if now.alone or now.held:
        left.append(f"{now.alone} visitors had one arm, {now.held} were held out")
    if retired:
        left.append(f"retired: {', '.join(map(repr, retired))}")
    words = "; ".join([*said[:NAMED], *more, *proven, sure, *left])
    verdict.claim = f"earned over {reference!r} per visitor, of {now.settled}: {words}"


# The verdict ------------------------------------------------------------------------------------------------

KINDS = {"decision": check_experiment, "log": check_log, "rules": check_rules}


def verify(document: dict[str, Any], published: str | None = None) -> Verdict:
    """Return the verdict on a certificate, as read from JSON.

    Parameters
    ----------
    document : dict
    published : str, optional
        A head of the log that was published earlier: the certificate must go on from it.
    """
    if not isinstance(document, dict):
        raise TypeError(
            f"document={document!r} must be a certificate as read from JSON;"
            " for a file, call verify_file(path)"
        )
    verdict = Verdict()
    verdict.need(document.get("digest") == digest(document), "the digest does not fit: something was changed")
    parts = {"format", "settings", "entries", "claim", "head", "digest"}
    check_names("the certificate", document, parts, verdict)
    verdict.need(
        document.get("format") == FORMAT, f"the format is {document.get('format')!r}, not {FORMAT!r}"
    )
    try:
        *_, verdict.head = heads(document["settings"], document["entries"])
        claimed = document["head"]
        verdict.need(
            claimed == verdict.head, f"the head is claimed to be {claimed}; recomputed it is {verdict.head}"
        )
        with np.errstate(all="ignore"):
            KINDS[document["settings"]["kind"]](document, verdict)
        said = document["claim"]["sentence"]
        verdict.need(said == verdict.claim, f"the sentence is {said!r}; the numbers say {verdict.claim!r}")
        if published is not None:
            check_published(document, published, verdict)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        verdict.problems.append(f"the claim cannot be recomputed: {type(error).__name__}, {error}")
    return verdict


def check_format(document: Any) -> None:
    """Raise ValueError, saying why, unless a document is a certificate of this format."""
    name = document.get("format") if isinstance(document, dict) else None
    if name == FORMAT:
        return
    words = name.rsplit(" ", 1) if isinstance(name, str) else []
    if len(words) == 2 and words[0].startswith(OLDER) and words[1] in READERS:
        raise ValueError(
            f"it is an {name!r}, which an earlier verify.py reads: `git show"
            f" {READERS[words[1]]}:src/orthobandit/verify.py`; this one reads {FORMAT!r}"
        )
    raise ValueError(f"it is not an {FORMAT!r}")


def verify_file(path: str | Path, published: str | None = None) -> Verdict:
    """Return the verdict on a file; ValueError if it is no certificate, OSError if it cannot be read."""
    spelt: dict[str, float] = {}
    repeated: list[str] = []

    def take_part(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # A dict keeps one of several entries with one name, and says nothing.
        names = [name for name, _ in pairs]
        repeated.extend(name for name in set(names) if names.count(name) > 1)
        return dict(pairs)

    text = Path(path).read_text(encoding="utf-8")
    try:
        document = json.loads(
            text,
            parse_float=lambda number: spelt.setdefault(number, float(number)),
            object_pairs_hook=take_part,
        )
    except RecursionError:
        raise ValueError("it is nested more deeply than any certificate") from None
    check_format(document)
    verdict = verify(document, published)
    # A reader would see the first of two parts with one name, and this file the last.
    verdict.need(not repeated, f"parts are there twice, of which only one was checked: {sorted(repeated)}")
    for number, value in spelt.items():  # no digit may change, not even one that is rounded away
        verdict.need(repr(value) == number, f"{number} is not how that number was written")
    return verdict


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Recompute the claim of a certificate.")
    parser.add_argument("file")
    parser.add_argument("--head", help="a head that was published earlier, as NUMBER:HASH")
    options = parser.parse_args()
    result = verify_file(options.file, options.head)
    lines = (
        [f"valid: {result.claim}", f"head {result.head}"]
        if result.valid
        else ["NOT valid:", *result.problems]
    )
    print("\n  ".join(lines))
    sys.exit(not result.valid)
