"""The points a design weighs: rows of features seen through an affine map, in blocks, never copied whole."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.affine import AffineFrame, block_rows
from orthobandit._foundation.linalg import inverse_root
from orthobandit._foundation.types import Array, Whole

SAMPLE_POINTS = 4096
MIN_SPANNING_EIGENVALUE = 1e-9  # least eigenvalue at which weighted points count as spanning


@dataclass(frozen=True, eq=False)
class View:
    """An affine map into coordinates of a chosen scale: x ↦ (x − centre) @ transform."""

    centre: Array
    transform: Array


@dataclass(frozen=True, eq=False)
class Points:
    """Points z_i in R^n: the rows themselves, or the rows with a constant 1 in front.

    Attributes
    ----------
    rows : (K, w) array
        Raw rows; any point is an affine image of its row.
    frame : View
        Maps rows to coordinates of moderate size that span R^rank.
    has_intercept : bool
        Whether z = (1, x). Then M = Σ p z zᵀ has ‖z‖²_{M⁻¹} = 1 + ‖x − μ‖²_{Σ⁻¹} (Schur complement),
        so that everything is computed from the mean and covariance of x.
    """

    rows: Array
    frame: View
    has_intercept: bool

    @classmethod
    def of(cls, features: Array, frame: AffineFrame, *, has_intercept: bool) -> "Points":
        """View features (K, d) through the coordinates of their hull."""
        if frame.is_delicate:
            rank = frame.dimension
            return cls(frame.coordinates(features), View(np.zeros(rank), np.eye(rank)), has_intercept)
        return cls(features, View(frame.origin, frame.transform), has_intercept)

    @property
    def rank(self) -> int:
        """The dimension r of the coordinates, without the intercept."""
        return int(self.frame.transform.shape[1])

    @property
    def dimension(self) -> int:
        """The dimension n of the points."""
        return self.rank + self.has_intercept

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, kept: Whole) -> "Points":
        """Return a compact copy of some of the points."""
        return Points(self.rows[kept], self.frame, self.has_intercept)

    def through(self, view: View, chosen: Whole) -> Array:
        """Return the chosen points (m, rank) through a view, without the intercept."""
        return np.asarray((self.rows[chosen] - view.centre) @ view.transform)

    def lifted(self, view: View, chosen: Whole) -> Array:
        """Return the chosen points (m, n) through a view, with the intercept if there is one."""
        seen = self.through(view, chosen)
        if not self.has_intercept:
            return seen
        out = np.ones((len(seen), self.dimension))
        out[:, 1:] = seen
        return out

    def rough_view(self, *, of_all: bool = False) -> tuple[View, Whole]:
        """Scale the points to about unit covariance, from a sample spread evenly over the rows, or all.

        Returns the view and the sample; all points where the sample does not span, and the frame itself
        where some points are so far out that the covariance knows nothing else.
        """
        sample = np.arange(0, len(self), max(1, len(self) // SAMPLE_POINTS))
        everything = np.arange(len(self))
        for chosen in (everything,) if of_all else (sample, everything):
            try:
                return self._scaled(self.rows if chosen is everything else self.rows[chosen]), chosen
            except np.linalg.LinAlgError:
                continue
        return self.frame, everything

    def _scaled(self, rows: Array) -> View:
        gram = np.zeros((self.rank, self.rank))
        total = np.zeros(self.rank)
        height = block_rows(rows.shape[1])
        for start in range(0, len(rows), height):
            block = (rows[start : start + height] - self.frame.centre) @ self.frame.transform
            gram += block.T @ block
            total += block.sum(axis=0)
        if not self.has_intercept:
            return View(self.frame.centre, self.frame.transform @ inverse_root(gram / len(rows)))
        gram = gram / len(rows) - np.outer(total, total) / len(rows) ** 2
        return View(rows.mean(axis=0), self.frame.transform @ inverse_root(gram))

    def refined(self, view: View, chosen: Whole, weights: Array) -> View:
        """Return the view in which the weighted points have moment (or covariance) equal to identity.

        Computed from scratch in the coordinates of `view`, in which it is a small correction; or in those
        of the frame, where `view` knew nothing of points as far out as the chosen. Raises numpy's
        LinAlgError when the weighted points do not span.
        """
        try:
            return self._whitened(view, chosen, weights)
        except np.linalg.LinAlgError:
            again = self._whitened(self.frame, chosen, weights)
            return self._whitened(again, chosen, weights)

    def _whitened(self, view: View, chosen: Whole, weights: Array) -> View:
        centre, gram = self._moments(view, chosen, weights)
        return View(centre, view.transform @ inverse_root(gram))

    def are_spanned(
        self, view: View, chosen: Whole, weights: Array, least: float = MIN_SPANNING_EIGENVALUE
    ) -> bool:
        """Tell whether the weighted points span all others: no eigenvalue is below `least` in the view."""
        _, gram = self._moments(view, chosen, weights)
        return bool(np.linalg.eigvalsh(gram)[0] > least)

    def _moments(self, view: View, chosen: Whole, weights: Array) -> tuple[Array, Array]:
        """Return the centre in row space and the moment (or covariance) matrix in the view's coordinates."""
        seen = self.through(view, chosen)
        if not self.has_intercept:
            return view.centre, (seen * weights[:, np.newaxis]).T @ seen
        centre = weights @ (self.rows[chosen] - view.centre) + view.centre
        seen = seen - weights @ seen
        return centre, (seen * weights[:, np.newaxis]).T @ seen

    def leverages(self, view: View, chosen: Whole | None = None) -> Array:
        """Return ‖z_i‖²_{M⁻¹} of all points (K,) or the chosen (m,), for the design `view` was refined to."""
        out = np.empty(len(self) if chosen is None else len(chosen))
        # About 0.3 MB a block: the block, its image and its square stay in the second-level cache.
        height = max(64, block_rows(self.rows.shape[1]) // 3)
        for start in range(0, len(out), height):
            block = slice(start, start + height)
            rows = self.rows[block] if chosen is None else self.rows[chosen[block]]
            seen = (rows - view.centre) @ view.transform
            np.einsum("ij,ij->i", seen, seen, out=out[block])
        return out + 1.0 if self.has_intercept else out

    def spanning(self, view: View, sample: Whole) -> Whole:
        """Return n points of the sample that span, each the farthest from the span of those before."""
        seen = self.lifted(view, sample)
        sizes = np.einsum("ij,ij->i", seen, seen)
        basis = np.zeros((self.dimension, self.dimension))
        chosen: list[int] = []
        for rank in range(self.dimension):
            chosen.append(int(np.argmax(sizes)))
            direction = seen[chosen[-1]]
            for _ in range(2):  # once more for orthogonality to working precision
                direction = direction - basis[:rank].T @ (basis[:rank] @ direction)
            basis[rank] = direction / np.linalg.norm(direction)
            sizes -= np.square(seen @ basis[rank])
        return sample[chosen]
