"""Compiled sums over rows that have distributions of their own, of arms that share nothing.

For such arms g(a) of the gap of i over j is 1/p_i for arm i and −1/p_j for arm j, and v = 1/p_i + 1/p_j. The
sums are derived in docs/logs_derivations.md. Rows are those of
:class:`~orthobandit.estimate.follow.row_file.RowFile`; one whose first number is negative does not count.
"""

import numpy as np

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.types import Array, Whole

# Rows of the table that `add_residuals` fills: one column an arm.
COUNT, SUM, SQUARE, LARGEST, LOW, HIGH = range(6)
RESIDUALS = 6
# Numbers of a gap in `add_scores`.
KNOWN, WEIGHT, TOTAL, VARIANCE, POOLED, PEAK = range(6)
GAP_SUMS = 6
# Numbers of each side of a gap there, over the rows of the arm on that side; see Sides.
SIDE_VARIANCE, SIDE_SQUARE, SIDE_CUBE, SIDE_ONE, SIDE_MOST = range(5)
SIDE_SUMS = 5
# Numbers of the level of an arm in the rows that could have drawn it, or this arm and another. `FOR_ALL` are
# Σ r²/p over all these rows; from `DRAWN` on sums are over rows of the arm itself.
(
    ROUNDS,
    FOR_ALL,
    REACH,
    DRAWN,
    PULLED,
    SQUARED,
    LEVER,
    LEVERS,
    FARTHEST,
    CUBED,
    CUBED_PEAK,
    CUBES,
    ONES,
    FOURTHS,
) = range(14)
LEVEL_SUMS = 14


@compiled
def add_loudness(residuals: Array, relative: Array, drawn: Array, loudness: Array) -> None:
    """Add the residuals of a step (RESIDUALS, K) to what all arms have shown, and say how loud each is now.

    Parameters
    ----------
    residuals : (RESIDUALS, K) array
    relative, drawn : (K,) arrays
        As in :class:`~orthobandit.estimate.confidence.evidence.Seen`.
    loudness : (K,) array
        How much larger squared residuals of each arm are than those of all; 1 for arms never drawn.
    """
    rows = residuals[COUNT].sum()
    total = residuals[SQUARE].sum()
    for arm in range(drawn.size):
        count = residuals[COUNT, arm]
        relative[arm] += residuals[SQUARE, arm] * (rows / total) if total > 0.0 else count
        drawn[arm] += count
        loudness[arm] = relative[arm] / drawn[arm] if drawn[arm] > 0.0 else 1.0


@compiled
def add_residuals(rows: Array, column: int, shift: Array, limit: float, out: Array) -> None:
    """Add counts, sums, squares, largest magnitudes and ends of residuals by arm to `out` (RESIDUALS, K)."""
    for row in range(len(rows)):
        code = rows[row, 0]
        if code < 0.0:
            continue
        arm = int(code)
        residual = rows[row, column] - shift[arm]
        out[COUNT, arm] += 1.0
        out[SUM, arm] += residual
        out[SQUARE, arm] += residual * residual
        out[LARGEST, arm] = max(out[LARGEST, arm], min(abs(residual), limit))
        out[LOW, arm] = min(out[LOW, arm], residual)
        out[HIGH, arm] = max(out[HIGH, arm], residual)


@compiled
def add_scores(
    rows: Array,
    column: int,
    shift: Array,
    loudness: Array,
    pairs: Whole,
    scale: Array,
    limit: float,
    is_exact: bool,
    reference: int,
    gaps: Array,
    sides: Array,
    level: Array,
    beside: Array,
    first: Array,
) -> None:
    """Add the sums of rows of one step for every gap and level.

    Parameters
    ----------
    rows : (n, …) array
    column : int
        Position of the metric in a row.
    shift, loudness : (K,) arrays
        What is taken from rewards, and how much larger squared residuals of each arm are.
    pairs : (m, 2) array of int
    scale : (m,) array
        Of the boundaries, in exact modes.
    limit : float
        Magnitude of a residual.
    is_exact : bool
    reference : int
    gaps : (m, GAP_SUMS) array
    sides : (m, 2, SIDE_SUMS) array
    level : (LEVEL_SUMS,) array
        Of the reference arm, over rows that could have drawn it.
    beside : (K, 2, LEVEL_SUMS) array
        Of each arm and of the reference arm, over rows that could have drawn both. CUBED and CUBED_PEAK of
        the arm are those of the gap.
    first : (K, 2) array
        1/p of both in the first of these rows; 0 before there is one.
    """
    count = shift.size
    inverse = np.zeros(count)
    every = np.zeros(LEVEL_SUMS)
    for row in range(len(rows)):
        code = rows[row, 0]
        if code < 0.0:
            continue
        drawn = int(code)
        value = rows[row, column]
        residual = value - shift[drawn]
        size = min(abs(residual), limit)
        squared = residual * residual
        for arm in range(count):
            p = rows[row, 1 + arm]
            inverse[arm] = 1.0 / p if p > 0.0 else 0.0
        for pair in range(len(pairs)):
            i = pairs[pair, 0]
            j = pairs[pair, 1]
            if inverse[i] == 0.0 or inverse[j] == 0.0:
                continue
            factor = inverse[i] + inverse[j]
            weight = 1.0 / factor
            reach = max(inverse[i], inverse[j])
            one = gaps[pair]
            if is_exact:
                # No row may move a sum by more than the scale that was fixed at first.
                weight = min(weight, scale[pair] / (limit * reach))
                peak = weight * reach * size
            else:
                peak = weight * reach
                louder = loudness[i] * inverse[i] + loudness[j] * inverse[j]
                one[POOLED] += weight * weight * squared * max(factor, louder)
            one[KNOWN] += 1.0
            one[WEIGHT] += weight
            one[PEAK] = max(one[PEAK], peak)
            if drawn in (i, j):
                side = 0 if drawn == i else 1
                pull = weight * inverse[drawn]
                variance = pull * pull * squared
                one[TOTAL] += pull * residual if side == 0 else -pull * residual
                one[VARIANCE] += variance
                if is_exact:
                    one[POOLED] += peak * variance
                other = sides[pair, side]
                other[SIDE_VARIANCE] += variance
                other[SIDE_SQUARE] += pull * pull
                other[SIDE_CUBE] += pull * pull * pull
                other[SIDE_ONE] += pull * pull * value
                other[SIDE_MOST] = max(other[SIDE_MOST], pull)
        if inverse[reference] == 0.0:
            continue
        own = inverse[reference]
        is_own = drawn == reference
        if inverse.all():
            # Of rows that could have drawn every arm, the sums of the reference arm's level are the same
            # beside each: they are added up once, and joined at the end.
            _add_level(every, own, squared, residual, size, value, is_own)
        else:
            _add_level(level, own, squared, residual, size, value, is_own)
            for arm in range(count):
                if arm != reference and inverse[arm] > 0.0:
                    _add_level(beside[arm, 1], own, squared, residual, size, value, is_own)
        for arm in range(count):
            if arm == reference or inverse[arm] == 0.0:
                continue
            one = beside[arm, 0]
            before = one[CUBED]
            _add_level(one, inverse[arm], squared, residual, size, value, drawn == arm)
            reach = max(inverse[arm], own)
            # The third powers are those of the gap.
            one[CUBED] = before
            one[CUBED_PEAK] = max(one[CUBED_PEAK], reach * size)
            if drawn in (arm, reference):
                one[CUBED] += reach * size * inverse[drawn] * inverse[drawn] * squared
            if first[arm, 0] == 0.0:
                first[arm, 0] = inverse[arm]
                first[arm, 1] = own
    _join_levels(level, every)
    for arm in range(count):
        if arm != reference:
            _join_levels(beside[arm, 1], every)


@compiled
def _join_levels(out: Array, other: Array) -> None:
    """Add sums of levels (LEVEL_SUMS,) over other rows."""
    for place in range(LEVEL_SUMS):
        if place in (REACH, FARTHEST, CUBED_PEAK):
            out[place] = max(out[place], other[place])
        else:
            out[place] += other[place]


@compiled
def _add_level(
    out: Array, inverse: float, squared: float, residual: float, size: float, value: float, is_drawn: bool
) -> None:
    """Add a row to the sums (LEVEL_SUMS,) of the level of an arm that it was drawn from with 1/`inverse`."""
    out[ROUNDS] += 1.0
    out[FOR_ALL] += squared * inverse
    out[REACH] = max(out[REACH], inverse)
    out[CUBED_PEAK] = max(out[CUBED_PEAK], inverse * size)
    if is_drawn:
        lever = inverse * inverse
        out[DRAWN] += 1.0
        out[PULLED] += residual * inverse
        out[SQUARED] += squared * lever
        out[LEVER] += residual * lever
        out[LEVERS] += lever
        out[FARTHEST] = max(out[FARTHEST], size * inverse)
        out[CUBED] += inverse * size * squared * lever
        out[CUBES] += lever * inverse
        out[ONES] += lever * value
        out[FOURTHS] += lever * lever


@compiled
def add_carried(rows: Array, pairs: Whole, out: Array) -> None:
    """Add what both arms of each pair carry to `out` (3, m, 2).

    That is Σ (1/v²)·p_a·g(a)² over all rows and, with c = g(a)²/v², Σ c and Σ c² over rows of the arm.
    """
    for row in range(len(rows)):
        code = rows[row, 0]
        if code < 0.0:
            continue
        for pair in range(len(pairs)):
            p = rows[row, 1 + pairs[pair, 0]]
            q = rows[row, 1 + pairs[pair, 1]]
            if p > 0.0 and q > 0.0:
                # v = (p + q)/(pq), so that g(a)²/v² is the square of the other arm's share.
                one = (q / (p + q)) ** 2
                other = (p / (p + q)) ** 2
                out[0, pair, 0] += one * p
                out[0, pair, 1] += other * q
                if int(code) == pairs[pair, 0]:
                    out[1, pair, 0] += one
                    out[2, pair, 0] += one * one
                elif int(code) == pairs[pair, 1]:
                    out[1, pair, 1] += other
                    out[2, pair, 1] += other * other


@compiled
def add_reaches(rows: Array, pairs: Whole, reference: int, gaps: Array, levels: Array) -> None:
    """Add what boundaries are tuned by, before their rows count.

    Parameters
    ----------
    rows : (n, …) array
    pairs : (m, 2) array of int
    reference : int
    gaps : (m, 3) array
        Of rows that can estimate a gap: their number, the least v, and the largest max|g|/v.
    levels : (K, 6) array
        Of rows that could have drawn an arm and the reference arm: their number, Σ 1/p and max 1/p of both.
        And the number of all rows.
    """
    for row in range(len(rows)):
        if rows[row, 0] < 0.0:
            continue
        for pair in range(len(pairs)):
            p = rows[row, 1 + pairs[pair, 0]]
            q = rows[row, 1 + pairs[pair, 1]]
            if p > 0.0 and q > 0.0:
                factor = 1.0 / p + 1.0 / q
                reach = max(1.0 / p, 1.0 / q)
                if gaps[pair, 0] == 0.0 or factor < gaps[pair, 1]:
                    gaps[pair, 1] = factor
                gaps[pair, 0] += 1.0
                gaps[pair, 2] = max(gaps[pair, 2], reach / factor)
        q = rows[row, 1 + reference]
        for arm in range(len(levels)):
            p = rows[row, 1 + arm]
            levels[arm, 5] += 1.0
            if p > 0.0 and q > 0.0:
                levels[arm, 0] += 1.0
                levels[arm, 1] += 1.0 / p
                levels[arm, 2] += 1.0 / q
                levels[arm, 3] = max(levels[arm, 3], 1.0 / p)
                levels[arm, 4] = max(levels[arm, 4], 1.0 / q)


@compiled
def add_bets(rows: Array, ratio: Array, chosen: int, logs: Array, table: Array, products: Array) -> None:
    """Add what the test of sample ratio needs of rows of a stretch.

    Parameters
    ----------
    rows : (n, …) array
        Those that do not count too: they were drawn as well.
    ratio : (b, K) array
        What each arm's probability is multiplied by in each of b bets.
    chosen : int
        −1 for all rows; else the column of which only rows without a value are meant.
    logs : (b,) array
        To which Σ log Σ_a ratio_a·p_a is added.
    table : (2, K) array
        To which counts and Σ p are added; −1 counts rows of arms with probability 0.
    products : (K, K) array
        To which Σ ppᵀ is added, if it has a size.
    """
    bets, count = ratio.shape
    last = rows.shape[1] - 1
    running = np.ones(bets)
    for row in range(len(rows)):
        if chosen >= 0 and (int(rows[row, last]) >> chosen) & 1 == 0:
            continue
        code = int(rows[row, 0])
        table[0, code if code >= 0 else -1 - code] += 1.0
        for arm in range(count):
            table[1, arm] += rows[row, 1 + arm]
        for bet in range(bets):
            total = 0.0
            for arm in range(count):
                total += ratio[bet, arm] * rows[row, 1 + arm]
            # A logarithm of a product of many, for one takes as long as all the rest of a row.
            running[bet] *= total
            if not 1e-100 < running[bet] < 1e100:
                logs[bet] += np.log(running[bet])
                running[bet] = 1.0
        for i in range(len(products)):
            for j in range(len(products)):
                products[i, j] += rows[row, 1 + i] * rows[row, 1 + j]
    for bet in range(bets):
        logs[bet] += np.log(running[bet])
