"""What rules would have earned on a log, bucket by bucket, from a GROUP BY alone.

A rule says who gets which arm. For rules π and π′ and a row whose arm a was drawn from p,

    ψ = v_π − v_π′ + (1{a = π} − 1{a = π′})/p_a · (y − f − v_a)

has the mean (reward of π) − (reward of π′) for this visitor, whatever the level does and whoever comes, if
the forecast f of the level and the values v of the arms were fixed before the draw. It assumes nothing of the
rewards: this is augmented inverse propensity weighting with logged probabilities. Every row weighs the same,
so the mean of ψ is what π would have earned over π′ *on these visitors*.

Rows are grouped by bucket, arm and what each rule chooses. Within a group f and v are constants, or linear in
the context, so Σψ and Σ(ψ − predicted)² follow from sums of products of (1, y, context), plain and weighted
by 1/p and 1/p²: nothing else is needed of a row, and no row has to be seen twice.
"""

from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations_with_replacement, product
from math import ceil, log
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate.confidence.boundaries import WIDE, tightest_rho
from orthobandit.estimate.confidence.evidence import (
    Batch,
    Evidence,
    Seen,
    Tuning,
    least_draws,
    rests_on_unknown,
)
from orthobandit.estimate.confidence.modes import Confidence, may_speak
from orthobandit.estimate.confidence.sequence import guess_noise
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS
from orthobandit.estimate.follow.averages import STEP
from orthobandit.estimate.follow.buckets import PILOT
from orthobandit.estimate.follow.cells import (
    LIKE_A_ROW,
    join_small_buckets,
    running_sums,
    slopes_within,
    totals_at,
)
from orthobandit.estimate.forecast.buckets import Chooser, Levels
from orthobandit.estimate.tally import Tally

ROWS = 4  # of a bucket, at least; smaller ones are joined to the next
FULL_RANK = 1e-9  # least eigenvalue of a correlation matrix that is no rounding


@dataclass(frozen=True, eq=False)
class RuleCells:
    """A log as a GROUP BY of what rules choose: one group a (bucket, arm, choices) that has rows.

    With u = (1, y, context), less the offsets, all sums are over the rows of a group. There are K arms, R
    rules and q entries of u. Groups are sorted by bucket.

    Attributes
    ----------
    labels : tuple of str
        Of the arms.
    columns : tuple of str
        The reward, then the columns of the context.
    offset : (q − 1,) array
        What was taken from each column.
    times : (B,) array
        When each bucket begins, ascending.
    width : float
        Length of a bucket; 0 if there is a single one without time.
    is_clock : bool
        Whether `times` are seconds since 1970.
    bucket, arm : (G,) arrays of int
    choice : (G, R) array of int
        The arm that each rule shows to the visitors of a group; it was offered to all of them.
    products : (G, q, q) array
        Σ uuᵀ.
    inverse : (G, K, q, q) array
        Σ uuᵀ/p_b for each arm b; 0 for arms that were not offered.
    fourfold : (G, M) array
        Σ u_i u_j u_k u_l/p_a² for the M entries of :func:`fourfold_places`, a being the arm that was drawn.
    reach : (G, K) array
        The largest 1/p_b; 0 for arms that were not offered.
    expected, scatter : (G, K) arrays
        Σ p_b and Σ p_b(1 − p_b).
    low, high : (G, q) arrays
        Smallest and largest u.
    """

    labels: tuple[str, ...]
    columns: tuple[str, ...]
    offset: Array
    times: Array
    width: float
    is_clock: bool
    bucket: Whole
    arm: Whole
    choice: Whole
    products: Array
    inverse: Array
    fourfold: Array
    reach: Array
    expected: Array
    scatter: Array
    low: Array
    high: Array

    @property
    def counts(self) -> Array:
        """Rows of each group (G,)."""
        return self.products[:, 0, 0]

    @cached_property
    def squared(self) -> Array:
        """Σ uuᵀ/p_a² (G, q, q), a being the arm that was drawn."""
        size = self.products.shape[1]
        places = fourfold_places(size)
        every = [[places[0, 0, *sorted((i, j))] for j in range(size)] for i in range(size)]
        return self.fourfold[:, np.array(every)]

    @property
    def rows(self) -> int:
        """All rows."""
        return round(float(self.counts.sum()))

    @property
    def offered(self) -> Mask:
        """Which arms (G, K) could be drawn."""
        return self.reach > 0

    def only(self, kept: Mask | Whole) -> "RuleCells":
        """Return some of the groups, or all in another order."""
        return replace(self, **{name: getattr(self, name)[kept] for name in PER_GROUP})


PER_GROUP = (
    "bucket",
    "arm",
    "choice",
    "products",
    "inverse",
    "fourfold",
    "reach",
    "expected",
    "scatter",
    "low",
    "high",
)


@cache
def fourfold_places(size: int) -> dict[tuple[int, ...], int]:
    """Return the place of each product of four entries of u (q,), the reward at most twice among them.

    Squares of residuals, weighted by products of two columns of the context, are sums of these.

    Examples
    --------
    >>> fourfold_places(2)
    {(0, 0, 0, 0): 0, (0, 0, 0, 1): 1, (0, 0, 1, 1): 2}
    """
    every = combinations_with_replacement(range(size), 4)
    return {one: place for place, one in enumerate(one for one in every if one.count(1) <= 2)}


@dataclass(frozen=True)
class RuleMeasure:
    """How rules are compared.

    Attributes
    ----------
    reference : int
        The rule that others are compared with.
    control : int
        The arm that effects are over.
    confidence : Confidence
        In units of the reward less its offset.
    delta : float
        Probability that any gain of any rule is ever outside its interval.
    effects_delta : float
        The same for all effects by context together.
    baseline : str
    is_once : bool
        Whether the log is looked at as a whole, once.
    """

    reference: int
    control: int
    confidence: Confidence
    delta: float
    effects_delta: float
    baseline: str
    is_once: bool


class Centred(NamedTuple):
    """What was taken from the rewards of each group, known before any of its arms was drawn.

    Attributes
    ----------
    coefficients : (G, q) array
        c, such that a row's residual is cᵀu.
    values : (G, K) array
        Of the arms.
    pilot : int
        Steps at the beginning that do not count.
    noise : float
        Standard deviation of their rewards around the means of their buckets.
    baseline : str
        The forecast that was used most.
    """

    coefficients: Array
    values: Array
    pilot: int
    noise: float
    baseline: str


class ContextEffects(NamedTuple):
    """How the effect of one arm depends on the context: the straight line closest to the visitors' effects.

    Attributes
    ----------
    estimates, lows, highs : (c + 1,) arrays
        Of the effect where all columns are 0, then per unit of each column. NaN and ±inf where the log
        cannot tell.
    line : (c + 1,) array
        The same estimates for columns less their offsets.
    """

    estimates: Array
    lows: Array
    highs: Array
    line: Array


class RuleScores:
    """Confidence sequences for what each of R rules earns over the reference rule, per row.

    Attributes
    ----------
    cells : RuleCells
        The groups that counted.
    evidence : Evidence
        (S, R), after each of the S buckets that counted. The reference rule's is 0.
    rows : (S,) array
        Rows that counted, up to and with each bucket.
    buckets : (S,) array of int
        Their numbers.
    baseline : str
    """

    def __init__(self, cells: RuleCells, measure: RuleMeasure, centred: Centred, pilot: RuleCells) -> None:
        self.cells = cells
        self.measure = measure
        self.baseline = centred.baseline
        self._coefficients = centred.coefficients
        self._values = centred.values
        self.buckets, self._first, self._step = np.unique(
            cells.bucket, return_index=True, return_inverse=True
        )
        self.rows = np.cumsum(np.add.reduceat(cells.counts, self._first))
        rules = cells.choice.shape[1]
        # Two sides of every interval, and all rules but the reference, share δ.
        self.alpha = measure.delta / (2 * max(rules - 1, 1))
        self._noise = centred.noise or min(guess_noise(measure.confidence), 1.0)
        known = pilot if len(pilot.bucket) else cells
        factor = _differing(known, measure.reference) * known.inverse[:, np.newaxis, :, 0, 0]
        spread = factor.sum(axis=(0, 2)) / max(known.rows, 1)
        # A rule that nobody was shown differently in the pilot: any guess will do, and two arms of equal
        # shares are as good as another.
        spread = np.where(spread > 0, spread, float(cells.reach.shape[1]))
        self._rho = tightest_rho(GUESSED_ROUNDS * self._noise**2 * spread, self.alpha)
        pulled = (_differing(known, measure.reference) * known.reach[:, np.newaxis]).max(axis=(0, 2))
        self._first_reach = np.where(pulled > 0, pulled, 1.0)
        self.evidence = self._count()

    @cached_property
    def _own(self) -> Array:
        """Σ uuᵀ/p_a (G, q, q) of the arm that was drawn."""
        cells = self.cells
        return cells.inverse[np.arange(len(cells.arm)), cells.arm]

    @cached_property
    def _side(self) -> Array:
        """1 where a group's arm is the rule's, −1 where it is the reference's, 0 if it is neither (G, R)."""
        cells = self.cells
        own = cells.arm[:, np.newaxis]
        over = cells.choice[:, [self.measure.reference]]
        return np.asarray((cells.choice == own).astype(np.float64) - (over == own))

    @cached_property
    def _tally(self) -> Tally:
        """Residuals (S, K) of each bucket."""
        cells = self.cells
        c = self._coefficients
        steps = len(self._first)
        count = len(cells.labels)
        at = self._step * count + cells.arm
        shape = (steps, count)
        n = totals_at(at, cells.counts, steps * count).reshape(shape)
        sums = totals_at(at, np.einsum("gi,gi->g", cells.products[:, 0], c), steps * count).reshape(shape)
        squares = totals_at(at, _form(cells.products, c), steps * count).reshape(shape)
        ends = np.maximum(np.abs(_end(cells, c, np.minimum)), np.abs(_end(cells, c, np.maximum)))
        most = np.zeros(steps * count)
        np.maximum.at(most, at, np.minimum(ends, self.measure.confidence.limit))
        most = most.reshape(shape)
        # Rounding may leave squares a little below what the mean alone gives, or above what is possible.
        least = np.divide(sums**2, n, out=np.zeros(shape), where=n > 0)
        squares = np.clip(squares, least, np.maximum(most**2 * n, least))
        most = np.maximum(most, np.sqrt(squares / np.maximum(n, 1.0)))
        return Tally(np.round(n).astype(np.int64), sums, squares, np.where(n > 0, most, 0.0))

    @cached_property
    def _seen(self) -> Seen:
        return Seen.start(len(self.cells.labels)).along(self._tally)

    def _count(self) -> Evidence:
        """Return the evidence after each bucket."""
        cells = self.cells
        first = self._first
        c = self._coefficients
        differing = _differing(cells, self.measure.reference)
        seen = self._seen
        rounds = np.add.reduceat(cells.counts, first)[:, np.newaxis]
        chosen = np.take_along_axis(self._values, cells.choice, axis=1)
        ahead = chosen - chosen[:, [self.measure.reference]]
        pulled = np.einsum("gi,gi->g", self._own[:, 0], c)
        totals = cells.counts[:, np.newaxis] * ahead + self._side * pulled[:, np.newaxis]
        squares = self._side**2 * _form(cells.squared, c)[:, np.newaxis]
        # What squares should be on average over the draws: residuals of the arm that was drawn stand for all
        # arms, or are as much larger for each arm as they have been so far, whichever is more.
        by_arm = np.einsum("gi,gkij,gj->gk", c, cells.inverse, c)
        loudness = np.divide(seen.relative, seen.drawn, out=np.ones_like(seen.drawn), where=seen.drawn > 0)
        alike = np.einsum("grk,gk->gr", differing, by_arm)
        louder = np.einsum("grk,gk->gr", differing, by_arm * loudness[self._step])
        reach = (differing * cells.reach[:, np.newaxis]).max(axis=2)
        weighed = differing * cells.inverse[:, np.newaxis, :, 0, 0]
        batch = Batch(
            rounds=rounds,
            largest=self._tally.largest.max(axis=1, keepdims=True),
            excess=seen.sizes.excess[:, np.newaxis],
            factor=np.ones((len(first), cells.choice.shape[1])),
            square=np.add.reduceat(weighed.sum(axis=2), first, axis=0) / rounds,
            reach=np.maximum.reduceat(reach, first, axis=0),
            estimates=np.add.reduceat(totals, first, axis=0),
            squares=np.add.reduceat(squares, first, axis=0),
            pooled=np.add.reduceat(np.maximum(alike, louder), first, axis=0),
        )
        self._reach = np.maximum.accumulate(batch.reach, axis=0)
        zeros = np.zeros(cells.choice.shape[1])
        # Every row weighs the same, so that nothing but the rules decides whose gain is counted.
        alike_weights = Tuning(np.ones(1), np.ones(1), np.full(1, np.inf))
        start = Evidence(zeros, zeros, zeros, zeros)
        found = start.along(batch, np.arange(len(first)), alike_weights, self.measure.confidence)
        events = np.where(self._hidden(weighed), 0.0, seen.sizes.events[:, np.newaxis])
        return replace(found, events=events)

    def _hidden(self, weighed: Array) -> Mask:
        """Tell which gains (S, R) rest on arms that have hardly been drawn, given Σ p·g² (G, R, K)."""
        cells = self.cells
        is_own = np.eye(len(cells.labels))[cells.arm][:, np.newaxis]  # 1 for the arm that was drawn
        pulled = (self._side**2 * cells.squared[:, 0, [0]])[..., np.newaxis] * is_own
        # Σ 1/p⁴ is not known beyond Σ 1/p² and the largest 1/p, which suffice where p is the same in a group.
        squared = pulled * cells.reach[:, np.newaxis] ** 2
        carried = (
            np.cumsum(np.add.reduceat(part, self._first, axis=0), axis=0)
            for part in (weighed, pulled, squared)
        )
        return rests_on_unknown(carried, least_draws(self.alpha))

    def estimates(self, step: int = -1) -> Array:
        """Return what each rule (R,) has earned over the reference rule per row, after a bucket."""
        return self.evidence.at(step).estimates

    def intervals(self, step: int = -1) -> tuple[Array, Array]:
        """Return the ends (R,) of the gains after a bucket; they hold at all times and for all rules at once.

        Pulls 1/p may grow as they like: in exact modes there is an interval for each of the scales 1, 4, 16,
        … times the pilot's largest pull that holds while pulls stay below it; all of them share δ.
        """
        evidence = self.evidence.at(step)
        mode = self.measure.confidence
        alpha = np.full(len(self._rho), self.alpha)
        scale = np.ones(len(self._rho))
        if mode.is_exact:
            grown = np.maximum(self._reach[step], 1e-300) / self._first_reach
            steps = np.array([max(ceil(log(one, STEP) - 1e-9), 0) for one in grown])
            # Σ 1/((j+1)(j+2)) over all scales j is 1.
            alpha = alpha / ((steps + 1) * (steps + 2))
            scale = mode.limit * self._first_reach * STEP**steps
        width = mode.width(evidence, Tuning(alpha, self._rho, scale, WIDE))
        # A rule that never differed from the reference earns the same, exactly.
        width = np.where(self._reach[step] > 0, width, 0.0)
        return evidence.estimates - width, evidence.estimates + width

    def intervals_once(self) -> tuple[Array, Array]:
        """Return the ends (R,) for one look, jointly for all rules; infinite if too little is known."""
        evidence = self.evidence.at(-1)
        error = np.sqrt(evidence.variances) / evidence.weights
        width = -float(ndtri(self.alpha)) * error
        is_known = may_speak(evidence, self.alpha) | (self._reach[-1] == 0)
        width = np.where(is_known, width, np.inf)
        return evidence.estimates - width, evidence.estimates + width

    def effects(self, arm: int) -> ContextEffects:
        """Return how the effect of an arm over the control arm depends on the context.

        With ζ = (1, context), Σζψ − Σζ·(effect) is a martingale, and (Σζζᵀ)⁻¹Σζ·(effect) is the straight line
        closest to the effects of these visitors, linear or not. By Delyon's inequality exp(hᵀS − hᵀVh/2) is
        a supermartingale for every h, V = Σζζᵀ(x² + 2E x²)/3 with x = ψ − predicted. Mixing over N(0, Λ⁻¹)
        gives ‖S‖² ≤ 2·log(1/δ) + log det((V + Λ)/Λ) in the norm of (V + Λ)⁻¹ at all times: an ellipsoid that
        holds for all coefficients at once. In exact modes x² is at most what was declared allows; in the
        asymptotic one Σζζᵀx² stands for its mean, which it is close to once samples are large.
        """
        cells = self.cells
        control = self.measure.control
        mode = self.measure.confidence
        line = np.array([0, *range(2, cells.products.shape[1])])
        square = np.ix_(line, line)
        size = len(line)
        unknown = ContextEffects(*(np.full(size, end) for end in (np.nan, -np.inf, np.inf, np.nan)))
        both = cells.offered[:, arm] & cells.offered[:, control]
        side = np.where(cells.arm == arm, 1.0, np.where(cells.arm == control, -1.0, 0.0)) * both
        c = self._coefficients
        ahead = np.where(both, self._values[:, arm] - self._values[:, control], 0.0)
        pushed = np.einsum("gij,gj->gi", self._own[:, line], c)
        moments = ahead[:, np.newaxis] * cells.products[:, line, 0] + side[:, np.newaxis] * pushed
        grams = cells.products[:, square[0], square[1]] * both[:, np.newaxis, np.newaxis]
        if mode.is_exact:
            spread = self._most_squares(arm, side, both, square)
        else:
            spread = side[:, np.newaxis, np.newaxis] ** 2 * _squares_by_context(cells, c, line)
        skipped = 0
        if not self.measure.is_once:
            skipped = _first_full_rank(np.add.reduceat(grams, self._first, axis=0))
            if skipped == len(self._first):
                return unknown
        late = self._step >= skipped
        gram = grams[late].sum(axis=0)
        if not late.any() or not _is_full_rank(gram):
            return unknown
        theta = np.linalg.solve(gram, moments[late].sum(axis=0))
        # The effect where all columns are 0, and changes of it: contrasts of the line through offsets.
        contrasts = np.eye(size)
        contrasts[0, 1:] = -cells.offset[1:]
        weights = np.linalg.solve(gram, contrasts.T).T
        delta = self.measure.effects_delta / max(len(cells.labels) - 1, 1)
        evidence = self.evidence.at(-1)
        is_known = mode.is_exact or bool(np.all(may_speak(evidence, self.alpha)[self._reach[-1] > 0]))
        if not is_known:
            width = np.full(size, np.inf)
        elif self.measure.is_once:
            total = spread.sum(axis=0)
            error = np.sqrt(np.einsum("ni,ij,nj->n", weights, total, weights))
            width = -float(ndtri(delta / (2 * size))) * error
        else:
            before = spread[~late].sum(axis=0)
            rows = max(float(cells.counts[~late].sum()), 1.0)
            # Tightest where the sums are about those of this many rows; any Λ fixed before is valid.
            prior = tightest_rho(GUESSED_ROUNDS / rows, delta) * before
            total = prior + spread[late].sum(axis=0)
            apart = np.linalg.slogdet(total)[1] - np.linalg.slogdet(prior)[1]
            radius = np.sqrt(2.0 * np.log(1.0 / delta) + apart)
            width = radius * np.sqrt(np.einsum("ni,ij,nj->n", weights, total, weights))
        middle = contrasts @ theta
        return ContextEffects(middle, middle - width, middle + width, theta)

    def _most_squares(self, arm: int, side: Array, both: Mask, square: tuple[Array, ...]) -> Array:
        """Return the most that Σζζᵀ(x² + 2E x²)/3 can be in each group, by what was declared."""
        cells = self.cells
        groups = np.arange(len(cells.arm))
        low, high = self.measure.confidence.range
        # In exact modes residuals are y less the forecast and the value of the arm, with no slopes.
        forecast = -self._coefficients[:, 0] - self._values[groups, cells.arm]
        centres = forecast[:, np.newaxis] + self._values
        most = np.maximum(high - centres, centres - low) ** 2
        own = most[groups, cells.arm] * side**2
        out = own[:, np.newaxis, np.newaxis] * cells.squared[:, square[0], square[1]]
        for one in (arm, self.measure.control):
            weight = 2.0 * most[:, one] * both
            out = out + weight[:, np.newaxis, np.newaxis] * cells.inverse[:, one][:, square[0], square[1]]
        return np.asarray(out / 3.0)


def follow_rules(cells: RuleCells, measure: RuleMeasure) -> RuleScores | None:
    """Follow rules through the buckets of a log, or look at it as a whole, once.

    Returns None if no bucket counted: the first ones only tell what level and scatter are.
    """
    rows = totals_at(cells.bucket, cells.counts, len(cells.times))
    joined = np.zeros(len(rows), dtype=np.int64) if measure.is_once else join_small_buckets(rows, ROWS)
    cells = replace(cells, bucket=joined[cells.bucket])
    order = np.argsort(cells.bucket, kind="stable")
    cells = cells.only(order) if np.any(np.diff(cells.bucket) < 0) else cells
    centred = _centre_once(cells, measure) if measure.is_once else _centre(cells, measure)
    _, step = np.unique(cells.bucket, return_inverse=True)
    late = step >= centred.pilot
    if not late.any():
        return None
    kept = centred._replace(coefficients=centred.coefficients[late], values=centred.values[late])
    return RuleScores(cells.only(late), measure, kept, cells.only(~late))


def rows_changed(cells: RuleCells, reference: int) -> Whole:
    """Return the rows (R,) in which each rule shows another arm than the reference rule."""
    other = cells.choice != cells.choice[:, [reference]]
    return np.asarray(np.round(cells.counts @ other).astype(np.int64))


def _differing(cells: RuleCells, reference: int) -> Array:
    """Return 1 for the two arms in which a rule and the reference differ, 0 for all others (G, R, K)."""
    arms = np.arange(cells.reach.shape[1])
    own = cells.choice[..., np.newaxis] == arms
    over = own[:, [reference]]
    return np.asarray((own != over).astype(np.float64))


def _form(products: Array, c: Array) -> Array:
    """Return cᵀPc (G,)."""
    return np.asarray(np.einsum("gi,gij,gj->g", c, products, c))


def _end(cells: RuleCells, c: Array, which: np.ufunc) -> Array:
    """Return the smallest or the largest cᵀu (G,) of a group, at most."""
    return np.asarray(which(cells.low * c, cells.high * c).sum(axis=1))


def _squares_by_context(cells: RuleCells, c: Array, line: Whole) -> Array:
    """Return Σ ζζᵀ(cᵀu)²/p_a² (G, size, size), ζ being the entries `line` of u."""
    size = cells.products.shape[1]
    places = fourfold_places(size)
    out = np.zeros((len(c), len(line), len(line)))
    for (i, one), (j, other) in combinations_with_replacement(enumerate(line.tolist()), 2):
        for k, m in product(range(size), repeat=2):
            place = places[tuple(sorted((one, other, k, m)))]
            out[:, i, j] += c[:, k] * c[:, m] * cells.fourfold[:, place]
        out[:, j, i] = out[:, i, j]
    return out


def _is_full_rank(gram: Array) -> bool:
    """Tell whether every column of the context differs between visitors, and none is made of others."""
    unit = np.sqrt(np.diag(gram))
    if not np.all(unit > 0):
        return False
    return bool(np.linalg.eigvalsh(gram / np.outer(unit, unit))[0] > FULL_RANK)


def _first_full_rank(grams: Array) -> int:
    """Return how many of the steps (S, size, size) it takes until all columns have differed."""
    total = np.zeros(grams.shape[1:])
    for step, gram in enumerate(grams):
        total = total + gram
        if _is_full_rank(total):
            return step + 1
    return len(grams)


class _Means:
    """Means of rewards around the level, by group of visitors and by arm in each, shrunk where rows are few.

    Groups of visitors are those that all rules treat alike. Their level is taken from their rewards, so that
    a level that depends on who comes does not count as noise, as far as rules tell visitors apart.
    """

    def __init__(self, groups: int, arms: int) -> None:
        self._totals = np.zeros((groups, arms))
        self._counts = np.zeros((groups, arms))

    def now(self) -> tuple[Array, Array]:
        """Return the level of each group (P,) and the values of its arms around it (P, K)."""
        level = self._totals.sum(axis=1) / (self._counts.sum(axis=1) + LIKE_A_ROW)
        left = self._totals - self._counts * level[:, np.newaxis]
        return level, left / (self._counts + LIKE_A_ROW)

    def add(self, group: Whole, arm: Whole, totals: Array, counts: Array) -> None:
        """Add sums (n,) of rewards less the level, and how many there were."""
        np.add.at(self._totals, (group, arm), totals)
        np.add.at(self._counts, (group, arm), counts)


def _visitors(cells: RuleCells) -> tuple[Whole, int]:
    """Return the group of visitors (G,) that all rules treat alike, and how many there are."""
    _, group = np.unique(cells.choice, axis=0, return_inverse=True)
    group = np.asarray(group).reshape(-1)
    return group, int(group.max(initial=0)) + 1


def _slopes(cells: RuleCells, first: Whole, confidence: Confidence) -> Array:
    """Return slopes (S + 1, c) of the reward on the context from the rows before each step.

    0 in exact modes: what a line predicts need not keep to the declared range.
    """
    width = cells.products.shape[1] - 2
    if confidence.is_exact or not width:
        return np.zeros((len(first) + 1, width))
    columns = np.array([*range(2, width + 2), 1])
    products = cells.products[:, columns[:, np.newaxis], columns]
    return slopes_within(cells.counts, cells.products[:, 0, columns], products, first)


def _kept(forecast: Array, values: Array, confidence: Confidence, offered: Mask) -> tuple[Array, Array]:
    """Return forecasts (G,) and values (G, K) with which residuals keep to the declared range."""
    if not confidence.is_exact:
        return forecast, values
    low, high = confidence.range
    most = np.max(np.where(offered, values, -np.inf), axis=1)
    least = np.min(np.where(offered, values, np.inf), axis=1)
    # Values further apart than rewards can be would put residuals outside the range.
    is_wide = most - least > high - low
    values = np.where(is_wide[:, np.newaxis], 0.0, values)
    centre = confidence.centre(values, offered)
    return np.clip(forecast, centre.low, centre.high), values


def _with_slopes(cells: RuleCells, forecast: Array, values: Array, slopes: Array, means: Array) -> Array:
    """Return c (G, q): y − slopes·(context − means) − forecast − value of the arm that was drawn."""
    c = np.zeros((len(cells.arm), cells.products.shape[1]))
    own = values[np.arange(len(cells.arm)), cells.arm]
    c[:, 0] = np.einsum("gi,gi->g", slopes, means) - forecast - own
    c[:, 1] = 1.0
    c[:, 2:] = -slopes
    return c


def _centre(cells: RuleCells, measure: RuleMeasure) -> Centred:
    """Forecast every bucket from earlier ones."""
    confidence = measure.confidence
    buckets, first, step = np.unique(cells.bucket, return_index=True, return_inverse=True)
    counts = cells.counts
    slopes = _slopes(cells, first, confidence)[step]
    sums = running_sums(cells.products[:, 0], first)
    means = (sums[:, 2:] / np.maximum(sums[:, :1], 1.0))[step]
    # Sums of the reward less what the context explains: means are those before, so that slopes that change
    # do not change the level.
    taken = cells.products[:, 0, 2:] - counts[:, np.newaxis] * means
    series = cells.products[:, 0, 1] - np.einsum("gi,gi->g", slopes, taken)
    group, groups = _visitors(cells)
    learnt = _Means(groups, len(cells.labels))
    levels = Levels(cells.width, cells.is_clock)
    chooser = Chooser(measure.baseline)
    forecast = np.zeros(len(counts))
    values = np.zeros((len(counts), len(cells.labels)))
    needed = max(PILOT, 5 * len(cells.labels))
    ends = np.append(first, len(counts))
    pilot = len(first)
    rows = 0.0
    squares = 0.0
    for place, bucket in enumerate(buckets.tolist()):
        some = slice(ends[place], ends[place + 1])
        is_known = squares > 0 or confidence.is_exact
        if pilot == len(first) and is_known and rows >= needed:
            pilot = place
        time = float(cells.times[bucket])
        ahead = levels.forecasts(time)
        by_group, by_arm = learnt.now()
        n = counts[some]
        if ahead:
            name = chooser.choose(ahead)
            chooser.note(name, float(n.sum()))
            forecast[some] = ahead[name] + by_group[group[some]]
            values[some] = by_arm[group[some]]
        # From here on the bucket has been seen; everything above used earlier ones alone.
        moved = by_group[group[some]] + by_arm[group[some], cells.arm[some]]
        level = float((series[some] - n * moved).sum() / n.sum())
        learnt.add(group[some], cells.arm[some], series[some] - n * level, n)
        chooser.learn(ahead, level, float(n.sum()))
        levels.learn(time, level, float(n.sum()))
        if pilot == len(first):
            squares += _scatter(cells.products[some].sum(axis=0))
            rows += float(n.sum())
    forecast, values = _kept(forecast, values, confidence, cells.offered)
    used = max(chooser.used, key=lambda name: chooser.used[name], default="mean")
    noise = float(np.sqrt(squares / max(rows, 1.0)))
    return Centred(_with_slopes(cells, forecast, values, slopes, means), values, pilot, noise, used)


def _scatter(products: Array) -> float:
    """Return the sum of squares of the reward around its mean."""
    return float(max(products[1, 1] - products[0, 1] ** 2 / products[0, 0], 0.0))


def _centre_once(cells: RuleCells, measure: RuleMeasure) -> Centred:
    """Take forecasts and values from all rows: they are wrong by about 1/√n, which moves estimates by 1/n."""
    confidence = measure.confidence
    first = np.zeros(1, dtype=np.int64)
    total = cells.products.sum(axis=0)
    rows = float(total[0, 0])
    shape = (len(cells.arm), cells.products.shape[1] - 2)
    slopes = np.broadcast_to(_slopes(cells, first, confidence)[-1], shape)
    means = np.broadcast_to(total[0, 2:] / rows, shape)
    taken = cells.products[:, 0, 2:] - cells.counts[:, np.newaxis] * means
    series = cells.products[:, 0, 1] - np.einsum("gi,gi->g", slopes, taken)
    group, groups = _visitors(cells)
    learnt = _Means(groups, len(cells.labels))
    level = float(series.sum()) / rows
    learnt.add(group, cells.arm, series - cells.counts * level, cells.counts)
    by_group, by_arm = learnt.now()
    forecast, values = _kept(level + by_group[group], by_arm[group], confidence, cells.offered)
    noise = float(np.sqrt(_scatter(total) / rows))
    return Centred(_with_slopes(cells, forecast, values, slopes, means), values, 0, noise, "mean")
