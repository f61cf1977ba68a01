"""Which rule is best for whom: rules compared in every segment, with errors kept over all segments.

Segments are groups of visitors that are fixed before the rounds that judge them: "mobile", "age ≥ 40". In
each, a :class:`RuleComparison` of its own runs on the rounds of its visitors. Two ways to keep errors:

- intervals and `possible_best` share δ equally, so that with probability 1 − δ none of them is ever wrong;
- `discoveries` lists pairs (segment, rule) that earn more than the reference such that at most a share δ of
  them is expected to be false (e-BH; Wang & Ramdas 2022). It finds more where there are many segments.

`discover_segments` proposes segments from *earlier* rounds. Rounds that proposed them must not judge them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_fraction, check_whole
from orthobandit._foundation.types import Array, Mask
from orthobandit.errors import ParameterError
from orthobandit.estimate import Confidence
from orthobandit.estimate.plan import Plan
from orthobandit.policy.contextual.offers import Offer
from orthobandit.policy.contextual.rules import Rule, RuleComparison, RuleGain

REST = "everybody else"
CUTS = 16  # places at which a column may be cut: quantiles of its values


class Round(NamedTuple):
    """A finished round: what was offered, the plan that the arm was drawn from, its row, and the reward."""

    offer: Offer
    plan: Plan
    arm: int
    reward: float
    forecast: float = 0.0


@dataclass(frozen=True)
class Segment:
    """Visitors whose context keeps to some bounds.

    Attributes
    ----------
    bounds : mapping of str to (float, float)
        By column of the context: from the first (included) to the second (excluded).

    Examples
    --------
    >>> str(Segment({"age": (40.0, float("inf"))}))
    'age ≥ 40'
    """

    bounds: Mapping[str, tuple[float, float]]

    def __call__(self, offer: Offer) -> bool:
        """Tell whether the visitor of an offer belongs to the segment."""
        for name, (low, high) in self.bounds.items():
            if name not in offer.context:
                raise ParameterError(
                    f"context has no {name!r}, which segment {self} asks for; it has"
                    f" {', '.join(offer.context) or 'nothing'}"
                )
            if not low <= offer.context[name] < high:
                return False
        return True

    def __str__(self) -> str:
        parts = []
        for name, (low, high) in self.bounds.items():
            if np.isinf(low):
                parts.append(f"{name} < {high:g}")
            elif np.isinf(high):
                parts.append(f"{name} ≥ {low:g}")
            else:
                parts.append(f"{low:g} ≤ {name} < {high:g}")
        return " and ".join(parts) or "everybody"


class Discovery(NamedTuple):
    """A rule that earns more than the reference in a segment, and the evidence (e-value) for it."""

    segment: str
    rule: str
    evidence: float


@dataclass(frozen=True, eq=False)
class SegmentComparison:
    """Rules compared in each of a few disjoint segments of visitors.

    Attributes
    ----------
    segments : mapping of str to function
        ``segment(offer)`` tells whether a visitor belongs to it. The first that does is taken; visitors of
        none are counted under "everybody else".
    comparisons : mapping of str to RuleComparison
        By segment, in the same order, "everybody else" last.
    delta : float

    Examples
    --------
    >>> from orthobandit.policy.contextual import Interactions
    >>> pages = Interactions(["A", "B"], context=["age"])
    >>> rules = {"A for all": "A", "B for all": "B"}
    >>> young = {"young": lambda offer: offer.context["age"] < 30}
    >>> found = SegmentComparison.start(rules, young, reference="A for all")
    >>> found = found.add(pages.offer({"age": 20.0}), Plan([0.5, 0.5], 1), 1, 0.7)
    >>> {name: one.rounds for name, one in found.comparisons.items()}
    {'young': 1, 'everybody else': 0}
    """

    segments: Mapping[str, Callable[[Offer], bool]]
    comparisons: Mapping[str, RuleComparison]
    delta: float

    @classmethod
    def start(
        cls,
        rules: Mapping[str, Rule],
        segments: Mapping[str, Callable[[Offer], bool]] | Sequence[Segment],
        *,
        reference: str,
        confidence: Confidence | None = None,
        delta: float = 0.05,
        floor: float | None = None,
        linear: bool = True,
        noise: float | None = None,
        rounds: int = 1000,
    ) -> "SegmentComparison":
        """Return the comparison before the first round; see :meth:`RuleComparison.start` for the rest.

        Parameters
        ----------
        segments : mapping of str to function, or sequence of Segment
            Fixed before the rounds that judge them.
        delta : float
            Probability that any interval of any segment is ever wrong, and the expected share of false ones
            among the discoveries.
        """
        check_fraction("delta", delta)
        named = (
            dict(segments)
            if isinstance(segments, Mapping)
            else {str(segment): segment for segment in segments}
        )
        if not named:
            raise ParameterError("segments is empty; give at least one, or use RuleComparison")
        if REST in named:
            raise ParameterError(f"a segment cannot be called {REST!r}: it holds the visitors of no segment")
        names = (*named, REST)
        one = RuleComparison.start(
            rules,
            reference=reference,
            confidence=confidence,
            delta=delta / len(names),
            floor=floor,
            linear=linear,
            noise=noise,
            rounds=rounds,
        )
        return cls(MappingProxyType(named), MappingProxyType(dict.fromkeys(names, one)), delta)

    def segment_of(self, offer: Offer) -> str:
        """Return the name of the first segment that the visitor of an offer belongs to."""
        return next((name for name, belongs in self.segments.items() if belongs(offer)), REST)

    def add(
        self,
        offer: Offer,
        plan: Plan,
        arm: int,
        reward: float,
        *,
        forecast: float = 0.0,
        theta: ArrayLike | None = None,
    ) -> "SegmentComparison":
        """Return the comparison with one round; see :meth:`RuleComparison.add`."""
        name = self.segment_of(offer)
        changed = self.comparisons[name].add(offer, plan, arm, reward, forecast=forecast, theta=theta)
        return replace(self, comparisons=MappingProxyType({**self.comparisons, name: changed}))

    def gains(self) -> dict[str, list[RuleGain]]:
        """Return what each rule would have earned over the reference in every segment, per visitor of it.

        With probability 1 − δ all intervals of all segments hold at all times.
        """
        return {name: one.gains() for name, one in self.comparisons.items()}

    def possible_best(self) -> dict[str, tuple[str, ...]]:
        """Return, for every segment, the rules that may have been best; one alone is proven to be."""
        return {
            name: one.possible_best() if one.rounds else tuple(one.rules)
            for name, one in self.comparisons.items()
        }

    def discoveries(self) -> list[Discovery]:
        """Return pairs of segment and rule that earn more than the reference, the strongest evidence first.

        Whenever one stops, the expected share of false ones among them is at most δ, however segments and
        rules depend on each other (e-BH). A p-value p that is valid at any time becomes the e-value 1/(2√p).
        """
        pairs = [
            Discovery(name, rule, float(1.0 / (2.0 * np.sqrt(p))))
            for name, one in self.comparisons.items()
            if one.rounds
            for rule, p in zip(one.compared, one.p_values(), strict=True)
        ]
        # All pairs count, also those of segments that nobody came from.
        count = sum(len(one.compared) for one in self.comparisons.values())
        ordered = sorted(pairs, key=lambda pair: -pair.evidence)
        enough = [
            place
            for place, pair in enumerate(ordered, start=1)
            if pair.evidence >= count / (place * self.delta)
        ]
        return ordered[: max(enough, default=0)]


def discover_segments(
    rounds: Iterable[Round],
    rules: Mapping[str, Rule],
    *,
    reference: str,
    depth: int = 2,
    least: int = 100,
) -> list[Segment]:
    """Propose segments of visitors in which rules earn differently, from earlier rounds.

    A tree: the column and the place that separate the scores ψ of some rule best, by the square of the
    difference of means over its variance, then the same on either side. Nothing is claimed of the segments;
    judge them with :class:`SegmentComparison` on later rounds.

    Parameters
    ----------
    rounds : iterable of Round
        With plans that can compare the rules; columns are those that all contexts have.
    rules, reference
        As for :class:`RuleComparison`.
    depth : int
        Cuts above a segment: at most 2**depth segments.
    least : int
        Rounds on either side of a cut.
    """
    check_whole("depth", depth)
    check_whole("least", least, least=2)
    given = list(rounds)
    if not given:
        raise ParameterError("rounds is empty; segments are proposed from earlier rounds")
    judge = RuleComparison.start(rules, reference=reference)
    scores = []
    for number, one in enumerate(given):
        _, g = replace(judge, rounds=number).weights(one.offer, one.plan)
        scores.append(g[:, one.arm] * (one.reward - one.forecast))
    names = sorted(set.intersection(*(set(one.offer.context) for one in given)))
    table = np.array([[one.offer.context[name] for name in names] for one in given])
    found: list[Segment] = []
    _cut(np.array(scores), table, names, np.ones(len(given), dtype=np.bool_), {}, depth, least, found)
    return found


def _cut(
    scores: Array,
    table: Array,
    names: Sequence[str],
    inside: Mask,
    bounds: dict[str, tuple[float, float]],
    depth: int,
    least: int,
    found: list[Segment],
) -> None:
    """Append the segments of the visitors `inside` (n,): one, or those on either side of the best cut."""
    best = 0.0
    chosen: tuple[int, float] | None = None
    for column in range(table.shape[1] if depth else 0):
        values = table[inside, column]
        for place in np.unique(np.quantile(values, np.linspace(0.0, 1.0, CUTS + 2)[1:-1])):
            below = inside & (table[:, column] < place)
            above = inside & ~below
            if below.sum() < least or above.sum() < least:
                continue
            apart = scores[above].mean(axis=0) - scores[below].mean(axis=0)
            noise = scores[above].var(axis=0) / above.sum() + scores[below].var(axis=0) / below.sum()
            strength = float(np.max(np.divide(apart**2, noise, out=np.zeros_like(noise), where=noise > 0)))
            if strength > best:
                best = strength
                chosen = (column, float(place))
    if chosen is None:
        found.append(Segment(MappingProxyType(dict(bounds))))
        return
    column, place = chosen
    low, high = bounds.get(names[column], (-np.inf, np.inf))
    below = inside & (table[:, column] < place)
    for side, ends in ((below, (low, place)), (inside & ~below, (place, high))):
        _cut(scores, table, names, side, {**bounds, names[column]: ends}, depth - 1, least, found)
