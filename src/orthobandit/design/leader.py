"""Designs for one arm against very many: quick, from few playable arms, with the gap that was reached."""

from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.linalg import inverse_root
from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.design._points import Points
from orthobandit.design.base import Design, make_design

FARTHEST_PER_DIMENSION = 10  # arms, beside those of a wide design, that are worth playing, for each dimension
BINDING_PER_DIMENSION = 4  # contrasts at work for each dimension
MAX_STEPS = 10  # multiplicative steps on a working set
SOUGHT_PER_DIMENSION = 100  # contrasts for each dimension among which the binding ones are sought
MAX_PASSES = 2  # over these
ENOUGH_GAP = 0.1  # gap at which steps and passes end
EVEN_SHARE = 0.1  # of the start that is even over the playable arms: what has no weight can get none
FAINT_SHARE = 1e-3  # probabilities below this share of the largest are left out
BLOCK_ROWS = 4096  # contrasts that are priced at a time


def playable_arms(wide: Design) -> Whole:
    """Return the arms worth playing for any contrast, in ascending order.

    Those of a wide design, and the farthest from its mean in the units of its covariance: an arm that another
    goes beyond in its own direction tells less at the same price.

    Examples
    --------
    >>> from orthobandit.design import centred_design
    >>> playable_arms(centred_design(ArmSet([[0.0], [0.3], [1.0]]))).tolist()
    [0, 1, 2]
    """
    arms = wide.arms
    most = FARTHEST_PER_DIMENSION * (wide.arms.dimension + 1)
    if len(arms) <= most:
        return np.arange(len(arms))
    points = Points.of(arms.features, arms.frame, has_intercept=True)
    view = points.refined(points.rough_view()[0], wide.support, wide.probabilities[wide.support])
    far = points.leverages(view)
    return np.union1d(wide.support, np.argpartition(-far, most - 1)[:most])


@dataclass(frozen=True, eq=False)
class Request:
    """The problem: tell one arm (the leader) from others, by playing some of the arms.

    Attributes
    ----------
    leader : int
    others : (n,) array of int
    weights : (n,) array
        Of the squared norms, above 0.
    playable : (m,) array of int
    guard : (m,) array
        A distribution over the playable arms that spans the contrasts.
    share : float
        Of the rounds that the guard gets, whatever is asked for.
    costs : (m,) array, optional
        What a round of each playable arm costs, above 0; the same for all by default.
    """

    leader: int
    others: Whole
    weights: Array
    playable: Whole
    guard: Array
    share: float
    costs: Array | None = None


def leader_design(arms: ArmSet, request: Request, start: Array) -> Design:
    """Minimise (Σ_i p_i·cost_i) × max_j w_j·‖x_leader − x_j‖²_{Σ_p⁻¹} over p on few arms, j over very many.

    The problem of :func:`~orthobandit.design.contrast_design` and, with costs, of
    :func:`~orthobandit.design.earning_design`, for plans that are made anew many times an experiment. Method:
    for multipliers λ over the contrasts, p_i ← p_i·√(pull_i/φ), which lowers φ = Σ λ_j·value_j (Yu 2010), and
    λ_j ← λ_j·value_j/φ; on the contrasts that bind, then a pass over all of them. The gap that was reached is
    certified as there, over all contrasts and the playable arms; it is not brought to a tolerance.

    Parameters
    ----------
    arms : ArmSet
    request : Request
    start : (m,) array
        Probabilities of the playable arms to start from; the guard's will do.
    """
    problem = _Problem.of(arms, request, start)
    p, bound = _solved(problem)
    worst = float(problem.values(p).max())
    play = problem.played(p)
    kept = play > 0
    return make_design(
        arms,
        request.playable[kept],
        play[kept],
        method="leader",
        reference=request.leader,
        gap=max(worst / bound - 1.0, 0.0),
    )


def leader_probabilities(arms: ArmSet, request: Request, start: Array) -> Array:
    """Return the probabilities (K,) of :func:`leader_design`, without the pass that certifies their gap."""
    problem = _Problem.of(arms, request, start)
    out = np.zeros(len(arms))
    out[request.playable] = problem.played(_solved(problem)[0])
    return out


def _solved(problem: "_Problem") -> tuple[Array, float]:
    """Return p (m,), and a lower bound on the worst of some contrasts under any p."""
    p = problem.start
    values = problem.values(problem.start)
    near = _largest(values, SOUGHT_PER_DIMENSION * problem.points.shape[1])
    chosen = np.zeros(0, dtype=np.int64)
    bound = 0.0
    for _ in range(MAX_PASSES):
        found = values[near] if not bound else problem.values(p, near)
        if bound and found.max() <= (1.0 + ENOUGH_GAP) * bound:
            break
        chosen = np.union1d(chosen, near[_largest(found, BINDING_PER_DIMENSION * problem.points.shape[1])])
        p, bound = _stepped(problem, problem.contrasts(chosen), (1.0 - EVEN_SHARE) * p + EVEN_SHARE / len(p))
        p = np.where(p > FAINT_SHARE * p.max(), p, 0.0)
        p /= p.sum()
    return p, bound


@dataclass(frozen=True, eq=False)
class _Problem:
    """The request in coordinates in which the guard is white.

    Attributes
    ----------
    arms : ArmSet
    request : Request
    transform : (r, r) array
        From coordinates on the hull.
    points : (m, r + 1) array
        (1, x) of the playable arms, over the root of their costs.
    start, guard : (m,) arrays
        Shares of what is spent on each.
    """

    arms: ArmSet
    request: Request
    transform: Array
    points: Array
    start: Array
    guard: Array

    @classmethod
    def of(cls, arms: ArmSet, request: Request, start: Array) -> "_Problem":
        rows = arms.frame.coordinates(arms.features[request.playable])
        q = request.guard
        centred = rows - q @ rows
        transform = inverse_root((centred.T * q) @ centred)
        points = np.column_stack([np.ones(len(rows)), centred @ transform])
        if request.costs is not None:
            points /= np.sqrt(request.costs)[:, np.newaxis]
            start = start * request.costs
            q = q * request.costs
        return cls(arms, request, transform, points, start / start.sum(), q / q.sum())

    def mixed(self, p: Array) -> Array:
        """Return p (m,) with the guard's share."""
        return np.asarray((1.0 - self.request.share) * p + self.request.share * self.guard)

    def played(self, p: Array) -> Array:
        """Return the probabilities (m,) of the arms, given the shares p (m,) of the cost spent on each."""
        play = self.mixed(p)
        play = play if self.request.costs is None else play / self.request.costs
        return np.asarray(play / play.sum())

    def contrasts(self, chosen: Whole) -> Array:
        """Return (0, y) of some contrasts (q,), each times the root of its weight, (q, r + 1)."""
        wanted = self.request
        features = self.arms.features
        y = self._mapped(features[wanted.others[chosen]], features[[wanted.leader]], self.transform)
        return np.column_stack([np.zeros(len(y)), y * np.sqrt(wanted.weights[chosen])[:, np.newaxis]])

    def values(self, p: Array, chosen: Whole | None = None) -> Array:
        """Return the squared norm of every contrast (n,), or of some, weights included."""
        root = inverse_root((self.points.T * self.mixed(p)) @ self.points)
        wanted = self.request
        features = self.arms.features
        others = wanted.others if chosen is None else wanted.others[chosen]
        matrix = self.transform @ root[1:]
        leader = features[[wanted.leader]]
        out = np.empty(len(others))
        for start in range(0, len(out), BLOCK_ROWS):
            seen = self._mapped(features.take(others[start : start + BLOCK_ROWS], axis=0), leader, matrix)
            np.einsum("ij,ij->i", seen, seen, out=out[start : start + len(seen)])
        return out * (wanted.weights if chosen is None else wanted.weights[chosen])

    def _mapped(self, rows: Array, leader: Array, matrix: Array) -> Array:
        """Return differences of features to the leader's, in the frame's coordinates, times a matrix.

        Takes the memory of `rows` for them.
        """
        frame = self.arms.frame
        if not frame.is_delicate:
            rows -= leader
            return np.asarray(rows @ (frame.transform @ matrix))
        return np.asarray((frame.coordinates(rows) - frame.coordinates(leader)) @ matrix)


def _largest(values: Array, most: int) -> Whole:
    """Return the positions of the largest values, at most `most` of them."""
    return np.argpartition(-values, most - 1)[:most] if len(values) > most else np.arange(len(values))


def _stepped(problem: _Problem, contrasts: Array, p: Array) -> tuple[Array, float]:
    """Take multiplicative steps; return the best p (m,) and a lower bound on its worst contrast."""
    points = problem.points
    multipliers = np.full(len(contrasts), 1.0 / len(contrasts))
    least = np.inf
    found = p
    bound = 0.0
    for _ in range(MAX_STEPS):
        root = inverse_root((points.T * problem.mixed(p)) @ points)
        wanted = contrasts @ root
        values = np.einsum("ij,ij->i", wanted, wanted)
        pulls = multipliers @ np.square((wanted @ root.T) @ points.T)
        phi = float(multipliers @ values)
        bound = max(bound, phi**2 / float(pulls.max()))
        if values.max() < least:
            least = float(values.max())
            found = p
        if least <= (1.0 + ENOUGH_GAP) * bound:
            break
        p = p * np.sqrt(pulls / phi)
        p /= p.sum()
        multipliers = multipliers * values
        multipliers /= multipliers.sum()
    return found, bound
