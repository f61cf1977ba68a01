"""Many arms against one: what :mod:`~orthobandit.estimate.augmented` has for all pairs, without a square."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orthobandit._compile import compiled
from orthobandit._linalg import RangeFactor, whitened
from orthobandit._types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.estimate.augmented import CLOSEST
from orthobandit.estimate.evidence import DRAWN

Singles = NDArray[np.float32]

# Rounding of an inner product in single precision, in units of the two lengths: r·2⁻²⁴, r up to a hundred.
SINGLE = 1e-5
ROWS = 4096  # arms that are looked at at a time: they and their images stay in the cache


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
        features, transform = self.arms.features, self._transform
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
                v[unknown], z[unknown] = np.inf, 0.0
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
        forms, pushes = np.empty((1 + len(matrices), len(kept))), np.empty(len(kept))
        reaches, reach = np.ones(len(kept)), Reach.of(self.white) if wants_reach else None
        for block, z, v in self.differences(kept, rival):
            forms[0, block], pushes[block] = v, z @ direction
            for place, matrix in enumerate(matrices, start=1):
                np.einsum("ij,ij->i", z @ matrix, z, out=forms[place, block])
            if reach is not None:
                reach.into(z, v, reaches[block])
        return forms, pushes, reaches

    def doubts(self, draws: Array) -> Array:
        """Return squares q (m,) whose form, divided by v, is the doubt about a contrast's variance.

        Arm a carries the share s_a = p_a·g(a)²/v of the variance of a contrast, and what it returns is known
        from its n_a draws. The relative error of the whole is about √(Σ s_a²/n_a), and s_a ≤ p_a‖h_a‖². So
        Σ_a s_a·min(p_a‖h_a‖², 1)/n_a bounds its square: the form of these squares over v.

        Parameters
        ----------
        draws : (m,) array
            n_a, how often each arm of the support will have been drawn.
        """
        most = np.minimum(self.probabilities * np.einsum("ij,ij->i", self.white, self.white), 1.0)
        return np.asarray(self.probabilities * most / np.maximum(draws, 1e-300))


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
        """Write the reach of z (n', r), whose squared lengths are v or +inf with z = 0, to `out` (n',)."""
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


def is_doubtful(variance: Array, doubt: Array) -> Array:
    """Tell which contrasts wait: their variance will be known less well than from ten draws of one arm.

    Parameters
    ----------
    variance, doubt : (n,) arrays
        v and the form of :meth:`RivalGeometry.doubts`.
    """
    return np.asarray(doubt * DRAWN > variance)
