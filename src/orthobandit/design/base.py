"""A design: probabilities of arms, how well they tell arms apart, its plot, and checks for all criteria."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.frames import frame_of
from orthobandit._foundation.linalg import RangeFactor, diameter, whitened
from orthobandit._foundation.types import Array, Progress, Whole
from orthobandit.arms import ArmSet
from orthobandit.design._points import Points
from orthobandit.errors import Argument, ParameterError
from orthobandit.showing.charts import COLOURS, axes_for, remove_clutter
from orthobandit.showing.html import html_table, html_words

SHOWN_ARMS = 10  # in a notebook
MAX_ARMS_ALL_PAIRS = 20_000  # up to this many arms, descriptions include the norm over all pairs
MAX_LABELLED_BARS = 40  # arms up to which each has a bar with its label
MAX_LABEL_LETTERS = 30


@dataclass(frozen=True, eq=False)
class Design:
    """Probabilities of the arms, and how well they identify the differences between arms.

    With μ = Σ p_i x_i and Σ = Σ p_i (x_i−μ)(x_i−μ)ᵀ, the error of an estimated difference zᵀθ after t
    rounds is about ‖z‖_{Σ⁻¹}/√t. Norms are +inf for differences that the design cannot estimate.

    Attributes
    ----------
    arms : ArmSet
    probabilities : (K,) array
        Read-only, summing to one.
    method : str
        ``"g-optimal"``, ``"anchor"``, ``"centred"`` or ``"contrast"``.
    reference : int
        The arm that `reference_norm` measures differences to.
    optimality_gap : float
        Certified relative gap of the squared norm that `method` minimises, on all arms.
    """

    arms: ArmSet
    probabilities: Array
    method: str
    reference: int
    optimality_gap: float

    def __repr__(self) -> str:
        return (
            f"Design({self.method}, {len(self.support)} of {len(self.arms)} arms played,"
            f" certified gap {self.optimality_gap:.1e})"
        )

    def _repr_html_(self) -> str:
        order = np.argsort(-self.probabilities, kind="stable")[: min(SHOWN_ARMS, len(self.support))]
        rows = [(self.arms.labels[i], f"{self.probabilities[i]:.4f}") for i in order]
        more = len(self.support) - len(order)
        least = f"no design has less than {math.sqrt(self.arms.dimension):.4f}"
        norms = f"centred norm {self.centred_norm:.4f}; {least}"
        rows += [(f"… and {more:,} more", "")] if more else []
        return html_words(repr(self), norms) + html_table(("arm", "probability"), rows)

    def to_frame(self, *, library: str | None = None) -> Any:
        """Return a frame with one row per arm: its label and its probability.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            The library of the frame; by default the first that is installed.
        """
        return frame_of({"arm": self.arms.labels, "probability": self.probabilities}, library)

    def plot(self, axes: Any = None) -> Any:
        """Draw the probabilities of the arms that are played; return the axes.

        Parameters
        ----------
        axes : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        return _draw_bars(self, axes)

    @cached_property
    def support(self) -> Whole:
        """Arms with positive probability, in ascending order."""
        return np.flatnonzero(self.probabilities > 0)

    @cached_property
    def mean(self) -> Array:
        """μ = Σ p_i x_i, (d,)."""
        return np.asarray(self.probabilities[self.support] @ self.arms.features[self.support])

    @cached_property
    def covariance(self) -> Array:
        """Σ = Σ p_i (x_i−μ)(x_i−μ)ᵀ, (d, d)."""
        centred = self.arms.features[self.support] - self.mean
        return np.asarray((centred * self.probabilities[self.support, np.newaxis]).T @ centred)

    @cached_property
    def centred_norm(self) -> float:
        """max_i ‖x_i − μ‖_{Σ⁻¹}; no design has less than √r."""
        mean = self.probabilities[self.support] @ self._white[self.support]
        return float(np.sqrt(_largest(self._white - mean)))

    @cached_property
    def reference_norm(self) -> float:
        """max_i ‖x_i − x_reference‖_{Σ⁻¹}."""
        return float(np.sqrt(_largest(self._white - self._white[self.reference])))

    @cached_property
    def contrast_norm(self) -> float:
        """max_{i,j} ‖x_i − x_j‖_{Σ⁻¹}; no design has less than √(2r). Exact, O(K²) at worst."""
        return np.inf if np.isinf(self._white).any() else diameter(self._white)

    @cached_property
    def _white(self) -> Array:
        """Whitened coordinates (K, r): Euclidean distances are Σ⁻¹ distances; inf outside the range."""
        points = Points.of(self.arms.features, self.arms.frame, has_intercept=True)
        everything = np.arange(len(points))
        weights = self.probabilities[self.support]
        rough = points.rough_view()[0]
        near = points.through(rough, self.support)
        near = near - weights @ near
        if RangeFactor.of((near * weights[:, np.newaxis]).T @ near).rank == self.arms.dimension:
            view = points.refined(rough, self.support, weights)
            return points.through(view, everything)
        return whitened(points.through(rough, everything), weights, self.support)[0]

    def describe(self, top: int = 10) -> str:
        """Return a description for people: the certificate, the norms, and the top of the support."""
        check_whole("top", top, least=0)
        r = self.arms.dimension
        lines = [
            f"{self.method} design of {len(self.arms)} arms, affine dimension {r}",
            f"  certified gap     {self.optimality_gap:.1e}",
            f"  centred norm      {self.centred_norm:.4f}   (least possible {np.sqrt(r):.4f})",
        ]
        if len(self.arms) <= MAX_ARMS_ALL_PAIRS:
            lines.append(f"  norm over pairs   {self.contrast_norm:.4f}")
        lines.append(f"  arms played       {len(self.support)}")
        order = np.argsort(-self.probabilities, kind="stable")[: min(top, len(self.support))]
        width = max((len(self.arms.labels[i]) for i in order), default=0)
        lines += [f"    {self.arms.labels[i]:<{width}}  {self.probabilities[i]:.4f}" for i in order]
        if len(self.support) > len(order):
            more = f"… and {len(self.support) - len(order)} more" if len(order) else "(not listed)"
            lines.append(f"    {more}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Return plain numbers and lists; only arms with positive probability are listed.

        A norm is None when it is infinite, and the norm over pairs also with very many arms.
        """
        return {
            "method": self.method,
            "arms": len(self.arms),
            "dimension": self.arms.dimension,
            "optimality_gap": self.optimality_gap,
            "centred_norm": _finite(self.centred_norm),
            "reference": self.arms.labels[self.reference],
            "reference_norm": _finite(self.reference_norm),
            "contrast_norm": _finite(self.contrast_norm) if len(self.arms) <= MAX_ARMS_ALL_PAIRS else None,
            "probabilities": {self.arms.labels[i]: float(self.probabilities[i]) for i in self.support},
        }


def _finite(norm: float) -> float | None:
    return norm if np.isfinite(norm) else None


def _largest(vectors: Array) -> float:
    return float(np.max(np.einsum("ij,ij->i", vectors, vectors), initial=0.0))


def make_design(
    arms: ArmSet, chosen: Whole, weights: Array, *, method: str, reference: int, gap: float
) -> Design:
    """Spread weights (m,) on chosen arms (m,) over all arms and freeze the result."""
    probabilities = np.zeros(len(arms))
    np.add.at(probabilities, chosen, weights)
    probabilities.flags.writeable = False
    return Design(arms, probabilities, method, reference, gap)


def point_mass(arms: ArmSet, method: str, reference: int = 0) -> Design:
    """Return the design for arms that do not differ: play the reference; there is nothing to estimate."""
    return make_design(
        arms, np.array([reference]), np.array([1.0]), method=method, reference=reference, gap=0.0
    )


class Approach:
    """How far a solver has come from a gap of 1 to its tolerance, in factors of ten; never backwards."""

    def __init__(self, progress: Progress | None, tolerance: float) -> None:
        self._progress = progress
        self._total = -math.log10(tolerance)
        self._done = 0.0
        self._tell()

    def reached(self, gap: float) -> None:
        """Report that a pass has ended with this gap."""
        digits = -math.log10(max(gap, 10.0**-self._total))
        self._done = min(max(self._done, digits), self._total)
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._done, self._total)


def check_gap(gap: float) -> float:
    """Return the tolerance, or raise an error that says what it must be."""
    if not 0 < gap < 1:
        raise ParameterError(
            Argument("gap", gap), " must lie strictly between 0 and 1; 1e-6 is a good choice"
        )
    return gap


def check_reference(arms: ArmSet, reference: int) -> int:
    """Return the number of an arm, or raise an error that says what it must be."""
    is_number = isinstance(reference, int | np.integer) and not isinstance(reference, bool)
    if not (is_number and 0 <= reference < len(arms)):
        raise ParameterError(
            Argument("reference", reference), f" is not an arm; arms are numbered 0 to {len(arms) - 1}"
        )
    return int(reference)


def starting_probabilities(arms: ArmSet, start: "Design | None") -> Array | None:
    """Return the probabilities of an earlier design of as many arms."""
    if start is None:
        return None
    if len(start.probabilities) != len(arms):
        raise ParameterError(f"start is a design of {len(start.probabilities)} arms; there are {len(arms)}")
    return start.probabilities


def _draw_bars(design: Design, axes: Any = None) -> Any:
    """Draw one bar for each arm that is played, the most likely first; without labels if they are many."""
    order = np.argsort(-design.probabilities, kind="stable")[: len(design.support)]
    shares = design.probabilities[order]
    has_names = len(order) <= MAX_LABELLED_BARS
    drawn = axes_for(axes, height=max(2.2, 1.0 + 0.25 * len(order)) if has_names else 4.0)
    remove_clutter(drawn)
    if has_names:
        labels = [_short(design.arms.labels[i]) for i in order]
        drawn.barh(range(len(order)), shares, color=COLOURS[0], height=0.7)
        drawn.set_yticks(range(len(order)), labels, parse_math=False)
        drawn.set_ylim(len(order) - 0.4, -0.6)
        drawn.set_xlabel("probability")
        drawn.grid(visible=False, axis="y")
    else:
        drawn.step(range(1, len(order) + 1), shares, where="mid", color=COLOURS[0], linewidth=1.5)
        drawn.set_ylim(bottom=0)
        drawn.set_xlabel("arms that are played, the most likely first")
        drawn.set_ylabel("probability")
    played = f"{len(order):,} of {len(design.arms):,} arms are played"
    drawn.set_title(f"{design.method} design: {played}", loc="left", fontsize="medium")
    return drawn


def _short(label: str) -> str:
    return label if len(label) <= MAX_LABEL_LETTERS else label[: MAX_LABEL_LETTERS - 1] + "…"
