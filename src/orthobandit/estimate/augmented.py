"""Augmented estimates, exactly unbiased under any shift, from (plan, tally) alone.

For all pairs of arms at once; for many arms against one, without a square; and how each draw pulls on any
contrast: the weights g(a) of the arms.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orthobandit._foundation.compile import compiled
from orthobandit._foundation.linalg import RangeFactor, whiten_runs, whitened
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate.confidence.evidence import DRAWN

Singles = NDArray[np.float32]

CLOSEST = 1e-10  # distance of two arms, relative to theirs from the mean, that is told from none
FEWEST_DRAWS = 1e-9  # stands in for no draws, so that g(a) = 0 up to rounding raises no doubt
LEAST = 1e-300  # so that nothing is divided by zero where a distribution tells nothing
# Rounding of an inner product in single precision, in units of the two lengths: r·2⁻²⁴, r up to a hundred.
SINGLE = 1e-5
ROWS = 4096  # arms that are looked at at a time: they and their images stay in the cache


@dataclass(frozen=True, eq=False)
class PairGeometry:
    """What a distribution p over arms can say about every pair; leading axes (...) are replications.

    For a pair (i, j) and y = x_i − x_j the weight function is g(a) = yᵀΣ⁺(x_a − μ) = H_ia − H_ja, with
    E g = 0, E[g·x_a] = y and E g² = v. Then ψ = values_i − values_j + g(a)·(residual) has mean yᵀθ,
    whatever the shift, for any baseline and any values = Xθ̂ + constant that were fixed before the draw (the
    bandit form of CUPED). Values that are not linear in the features would leave a bias.

    Attributes
    ----------
    inner : (..., K, K) array
        H, inner products of the whitened centred features.
    variance : (..., K, K) array
        v; +inf for pairs that p cannot estimate, 1 on the diagonal.
    """

    inner: Array
    variance: Array

    @classmethod
    def of(cls, positions: Array, probabilities: Array) -> "PairGeometry":
        """Compute from positions (K, r) and probabilities (..., K)."""
        white, outside = whiten_runs(positions, probabilities)
        inner = white @ np.swapaxes(white, -1, -2)
        sizes = np.diagonal(inner, axis1=-2, axis2=-1)
        variance = _for_each(_distances, white)
        # Nearer than this to each other, two arms differ by little more than rounding.
        equal = variance <= CLOSEST**2 * np.maximum(sizes[..., np.newaxis], sizes[..., np.newaxis, :])
        unknown = outside[..., np.newaxis] | outside[..., np.newaxis, :] | equal
        return cls(inner, with_diagonal(np.where(unknown, np.inf, variance), 1.0))

    def reach(self, probabilities: Array) -> Array:
        """Return max |g(a)| over arms that can be drawn, for every pair (..., K, K); 1 on the diagonal."""
        return with_diagonal(_for_each(_reach, self.inner, probabilities), 1.0)

    def carried(self, squares: Array) -> Array:
        """Return Σ_a g(a)²·q_a of every pair (..., K, K) for squares q (..., K) of the arms."""
        return _for_each(_squares, self.inner, squares)

    def are_doubtful(self, probabilities: Array, draws: Array) -> Mask:
        """Tell which pairs (..., K, K) wait: see :func:`doubts`."""
        lengths = np.diagonal(self.inner, axis1=-2, axis2=-1)
        return is_doubtful(self.variance, self.carried(doubts(probabilities, lengths, draws)))

    def sums(self, counts: Array, sums: Array, squares: Array, values: Array) -> tuple[Array, Array]:
        """Return Σψ, and Σ(ψ − predicted)², (..., K, K), of rounds tallied as residuals per arm (..., K)."""
        pushed = (self.inner @ sums[..., np.newaxis])[..., 0]
        rounds = counts.sum(axis=-1)[..., np.newaxis, np.newaxis]
        totals = rounds * _differences(values) + _differences(pushed)
        return totals, self.carried(squares)


def with_diagonal(pairs: Array, values: ArrayLike) -> Array:
    """Return pairs (..., K, K) with other values (..., K) on the diagonal."""
    out = np.array(pairs)
    every = np.arange(pairs.shape[-1])
    out[..., every, every] = values
    return out


def _differences(values: Array) -> Array:
    """Return values_i − values_j (..., K, K)."""
    return np.asarray(values[..., np.newaxis] - values[..., np.newaxis, :])


def _for_each(function: Callable[..., Array], *arrays: Array) -> Array:
    """Apply a compiled function of replications (n, K, ...) to arrays with any leading axes."""
    batch = arrays[0].shape[:-2]
    flat = [np.ascontiguousarray(one).reshape(-1, *one.shape[len(batch) :]) for one in arrays]
    out = function(*flat)
    return out.reshape(*batch, *out.shape[1:])


@compiled
def _distances(white: Array) -> Array:
    """Return ‖white_i − white_j‖² of all pairs (n, K, K), from differences (n, K, r): nothing cancels."""
    runs, count, r = white.shape
    out = np.zeros((runs, count, count))
    for n in range(runs):
        for i in range(count):
            for j in range(i):
                total = 0.0
                for k in range(r):
                    total += (white[n, i, k] - white[n, j, k]) ** 2
                out[n, i, j] = total
                out[n, j, i] = total
    return out


@compiled
def _squares(inner: Array, squares: Array) -> Array:
    """Return Σ_a (H_ia − H_ja)²·q_a for all pairs (n, K, K); nothing cancels, however near two arms are."""
    runs, count, _ = inner.shape
    out = np.zeros((runs, count, count))
    for n in range(runs):
        some = np.flatnonzero(squares[n] > 0)
        for i in range(count):
            for j in range(i):
                total = 0.0
                for a in some:
                    total += (inner[n, i, a] - inner[n, j, a]) ** 2 * squares[n, a]
                out[n, i, j] = total
                out[n, j, i] = total
    return out


@compiled
def _reach(inner: Array, probabilities: Array) -> Array:
    """Return max_a |H_ia − H_ja| over arms that can be drawn, for all pairs (n, K, K)."""
    runs, count, _ = inner.shape
    out = np.zeros((runs, count, count))
    for n in range(runs):
        drawn = np.flatnonzero(probabilities[n] > 0)
        for i in range(count):
            for j in range(i):
                most = 0.0
                for a in drawn:
                    most = max(most, abs(inner[n, i, a] - inner[n, j, a]))
                out[n, i, j] = most
                out[n, j, i] = most
    return out


@dataclass(frozen=True, eq=False)
class Pulls:
    """Weights of m contrasts under G distributions p over K arms.

    For a contrast y of the arms, g(a) = yᵀΣ⁺(x_a − μ) with the mean μ and the covariance Σ of the features
    under p: E g = 0, E[g·x_a] = y and E g² = v, so that g(a)·residual is unbiased for yᵀθ whatever the shift.

    Attributes
    ----------
    pull : (G, m, K) array
        g(a); 0 for arms that cannot be drawn, and where p cannot estimate the contrast.
    variance : (G, m) array
        v; 1 where p cannot estimate the contrast.
    reach : (G, m) array
        max |g(a)|, above 0.
    known : (G, m) array of bool
        Whether p can estimate the contrast.
    """

    pull: Array
    variance: Array
    reach: Array
    known: Mask

    @classmethod
    def of(cls, positions: Array, coefficients: Array, probabilities: Array) -> "Pulls":
        """Compute from positions (K, r), contrasts of the arms (m, K) and distributions (G, K)."""
        # Around an arm that is drawn first: what all drawn arms share is then 0, and not rounding.
        around = positions - positions[np.argmax(probabilities, axis=1)][:, np.newaxis]
        centred = around - probabilities[:, np.newaxis] @ around
        weighted = centred * probabilities[..., np.newaxis]
        # One axis more, over which contrasts and arms of a distribution share its factor.
        factor = RangeFactor.of((np.swapaxes(weighted, -1, -2) @ centred)[:, np.newaxis])
        seen = factor.whiten(coefficients @ positions)
        known = np.isfinite(seen).all(axis=-1) & np.any(seen != 0, axis=-1)
        seen = np.where(known[..., np.newaxis], seen, 0.0)
        drawn = (probabilities > 0)[..., np.newaxis]
        white = np.where(drawn, factor.whiten_inside(centred), 0.0)
        pull = seen @ np.swapaxes(white, -1, -2)
        variance = np.where(known, np.einsum("...j,...j->...", seen, seen), 1.0)
        return cls(pull, variance, np.maximum(np.abs(pull).max(axis=-1, initial=0.0), LEAST), known)

    @classmethod
    def of_separate(cls, coefficients: Array, probabilities: Array) -> "Pulls":
        """Compute for arms that share nothing (affinely independent features), from (m, K) and (G, K).

        Then g(a) = c_a/p_a for the coefficients c of a contrast, and v = Σ c_a²/p_a: E g = Σ c_a = 0 and
        E[g·x_a] = Σ c_a·x_a, and no other function of the arms has both. The same as :meth:`of`, and twenty
        times as fast.
        """
        plans = len(probabilities)
        pull = np.empty((plans, *coefficients.shape))
        variance = np.empty((plans, len(coefficients)))
        reach = np.empty_like(variance)
        known = np.empty(variance.shape, dtype=np.bool_)
        _separate_into(np.ascontiguousarray(coefficients), probabilities, pull, variance, reach, known)
        return cls(pull, variance, reach, known)

    def of_plans(self, chosen: Whole) -> "Pulls":
        """Return those of some distributions, given by their places (n,)."""
        return Pulls(self.pull[chosen], self.variance[chosen], self.reach[chosen], self.known[chosen])


@compiled
def _separate_into(
    coefficients: Array, probabilities: Array, pull: Array, variance: Array, reach: Array, known: Mask
) -> None:
    """Write what :meth:`Pulls.of_separate` returns."""
    plans, count = probabilities.shape
    for plan in range(plans):
        for row in range(len(coefficients)):
            is_known = True
            is_contrast = False
            total = 0.0
            most = 0.0
            for arm in range(count):
                c = coefficients[row, arm]
                p = probabilities[plan, arm]
                pull[plan, row, arm] = 0.0
                if c != 0.0:
                    is_contrast = True
                    is_known = is_known and p > 0.0
                    if p > 0.0:
                        g = c / p
                        pull[plan, row, arm] = g
                        total += c * g
                        most = max(most, abs(g))
            known[plan, row] = is_known and is_contrast
            if not known[plan, row]:
                pull[plan, row] = 0.0
            variance[plan, row] = total if known[plan, row] else 1.0
            reach[plan, row] = max(most, LEAST) if known[plan, row] else LEAST


@dataclass(frozen=True, eq=False)
class RivalGeometry:
    """What a distribution p over arms can say about any arm against one rival, for one replication.

    For y = x_i − x_rival the weight function is g(a) = yᵀΣ⁺(x_a − μ) = zᵀh_a, with z and h_a the images of y
    and of x_a − μ in coordinates in which Σ is the identity. So v = ‖z‖², and every sum Σ_a q_a·g(a)² over
    the arms that can be drawn is zᵀ(Σ_a q_a h_a h_aᵀ)z: r × r numbers, however many arms there are.

    Attributes
    ----------
    arms : ArmSet
    support : (m,) array of int
        Arms that can be drawn.
    probabilities : (m,) array
        Theirs.
    white : (m, r) array
        h_a of the support.
    factor : RangeFactor
        Of Σ, in the basis of the arms' hull.
    """

    arms: ArmSet
    support: Whole
    probabilities: Array
    white: Array
    factor: RangeFactor

    @classmethod
    def of(cls, arms: ArmSet, probabilities: Array) -> "RivalGeometry":
        """Compute from the arms and probabilities (K,), of which few are above 0."""
        support = np.flatnonzero(probabilities)
        p = probabilities[support]
        white, factor = whitened((arms.features[support] - arms.frame.origin) @ arms.basis.T, p)
        return cls(arms, support, p, np.where(np.isfinite(white), white, 0.0), factor)

    def differences(self, kept: Whole, rival: int) -> Iterator[tuple[slice, Array, Array]]:
        """Yield z (n', r) of the arms `kept` (n,) against the rival, and v (n',), block by block.

        Where p cannot estimate y, v is +inf and z is 0; so it is for arms that equal the rival, or differ
        from it by no more than rounding.
        """
        features = self.arms.features
        transform = self._transform
        own = np.flatnonzero(self.support == rival)
        least = CLOSEST**2 * float(np.sum(self.white[own] ** 2)) if own.size else 0.0
        for start in range(0, len(kept), ROWS):
            rows = kept[start : start + ROWS]
            y = features.take(rows, axis=0)
            y -= features[rival]
            z = y @ transform if transform is not None else self.factor.whiten(y @ self.arms.basis.T)
            v = np.einsum("ij,ij->i", z, z)
            unknown = ~((v > least) & (v < np.inf))
            if unknown.any():
                v[unknown] = np.inf
                z[unknown] = 0.0
            yield slice(start, start + len(rows)), z, v

    @property
    def _transform(self) -> Array | None:
        """Map from differences of features to z, or None where some differences are out of reach."""
        factor = self.factor
        if not factor.inside.all():
            return None
        scaled = factor.vectors / factor.scale[:, np.newaxis] / np.sqrt(factor.values)
        return np.asarray(self.arms.basis.T @ scaled)

    def variances(self, kept: Whole, rival: int) -> Array:
        """Return v (n,) of arms against the rival; +inf where p cannot estimate the pair."""
        out = np.empty(len(kept))
        for block, _, v in self.differences(kept, rival):
            out[block] = v
        return out

    def measured(
        self,
        kept: Whole,
        rival: int,
        squares: Sequence[Array] = (),
        sums: Array | None = None,
        *,
        wants_reach: bool = True,
    ) -> tuple[Array, Array, Array]:
        """Look at the arms `kept` (n,) once.

        Returns v, and Σ_a q_a·g(a)² for each of the squares q (m,) on the support, (1 + len(squares), n);
        Σ_a g(a)·s_a (n,) for the sums s (m,); and max |g(a)| (n,) over the arms that can be drawn, or at most
        10⁻⁵·√v·max‖h_a‖ more, ones if it is not wanted. All but v are 0 where p cannot estimate the pair.
        """
        matrices = [(self.white.T * q) @ self.white for q in squares]
        direction = self.white.T @ (np.zeros(len(self.white)) if sums is None else sums)
        forms = np.empty((1 + len(matrices), len(kept)))
        pushes = np.empty(len(kept))
        reaches = np.ones(len(kept))
        reach = Reach.of(self.white) if wants_reach else None
        for block, z, v in self.differences(kept, rival):
            forms[0, block] = v
            pushes[block] = z @ direction
            for place, matrix in enumerate(matrices, start=1):
                np.einsum("ij,ij->i", z @ matrix, z, out=forms[place, block])
            if reach is not None:
                reach.into(z, v, reaches[block])
        return forms, pushes, reaches

    def doubts(self, draws: Array) -> Array:
        """Return squares (m,) of the support whose form is the doubt about a contrast: see :func:`doubts`."""
        lengths = np.einsum("ij,ij->i", self.white, self.white)
        return doubts(self.probabilities, lengths, draws)


def doubts(probabilities: Array, lengths: Array, draws: Array) -> Array:
    """Return squares q (..., m) whose form Σ_a g(a)²·q_a, divided by v, is the doubt about its variance.

    Arm a carries the share s_a = p_a·g(a)²/v of the variance of a contrast, and what it returns is known from
    its n_a draws. The relative error of the whole is about √(Σ s_a²/n_a), and s_a ≤ p_a‖h_a‖², h_a being the
    arm in coordinates in which Σ is the identity. So Σ_a s_a·min(p_a‖h_a‖², 1)/n_a bounds its square.

    Parameters
    ----------
    probabilities, lengths, draws : (..., m) arrays
        p_a, ‖h_a‖², and n_a: how often each arm will have been drawn.
    """
    most = np.minimum(probabilities * lengths, 1.0)
    return np.asarray(probabilities * most / np.maximum(draws, FEWEST_DRAWS))


@dataclass(frozen=True, eq=False)
class Reach:
    """How far any arm of the support can pull: max |zᵀh_a|.

    In single precision, which takes half the time of the longest of all passes, with its rounding added.
    """

    rows: Singles
    farthest: float

    @classmethod
    def of(cls, white: Array) -> "Reach":
        """Take h_a (m, r) of the support."""
        farthest = float(np.sqrt(np.max(np.einsum("ij,ij->i", white, white), initial=0.0)))
        return cls(np.ascontiguousarray(white, dtype=np.float32), farthest)

    def into(self, z: Array, v: Array, out: Array) -> None:
        """Write max_a |h_aᵀz| of every z (n', r) to `out` (n',); v is ‖z‖², +inf where z = 0."""
        _largest_into(self.rows @ z.astype(np.float32).T, out)
        out += SINGLE * self.farthest * np.sqrt(np.where(np.isfinite(v), v, 0.0))


@compiled
def _largest_into(pulls: Singles, out: Array) -> None:
    """Write the largest magnitude of each column of `pulls` (m, n') to `out` (n',)."""
    largest = np.zeros(out.size, dtype=np.float32)
    for a in range(pulls.shape[0]):
        for i in range(out.size):
            pull = abs(pulls[a, i])
            largest[i] = pull if pull > largest[i] else largest[i]
    out[:] = largest


def is_doubtful(variance: Array, doubt: Array) -> Mask:
    """Tell which contrasts wait: their variance will be known less well than from ten draws of one arm.

    Parameters
    ----------
    variance, doubt : (n,) arrays
        v and the form of :func:`doubts`.
    """
    return np.asarray(doubt * DRAWN > variance)
