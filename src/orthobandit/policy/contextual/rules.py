"""Certified personalisation: what each of a few rules would have earned over another, at all times at once.

A rule chooses an arm for every offer: "B for everybody", "B on telephones, A elsewhere", a tree that was
fitted on earlier data. With z_t = x_{π(t)} − x_{π′(t)}, g_t(a) = z_tᵀΣ_t⁺(x_a − μ_t) has E g = 0 and
E[g·x_a] = z_t under the plan. So, for a forecast m and coefficients θ̂ that were fixed before the draw,

    ψ_t = z_tᵀθ̂ + g_t(a)·(r − m − x_aᵀθ̂)

has the mean z_tᵀθ in every round, whatever the level does, and even if fewer arms are offered than there are
features. The mean of ψ over the rounds so far estimates what rule π would have earned over π′ *on these
visitors*. Every round weighs the same, so that nothing but the rules decides whose gain is counted.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import log, sqrt
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_fraction, check_positive, check_whole
from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.errors import Argument, ParameterError, ProbabilityError
from orthobandit.estimate import Asymptotic, Confidence, Evidence, Tuning
from orthobandit.estimate.augmented import Pulls
from orthobandit.estimate.confidence.boundaries import WIDE, tightest_rho
from orthobandit.estimate.confidence.evidence import USUAL, least_draws, rests_on_unknown
from orthobandit.estimate.confidence.modes import check_tells_sizes
from orthobandit.estimate.plan import Plan
from orthobandit.policy.contextual.offers import Offer

# A rule: the label of one arm for everybody, or a function of the offer that returns a label, or
# probabilities by label.
Choice = str | Mapping[str, float]
Rule = str | Callable[[Offer], Choice]

# How far probabilities of a rule may be from a sum of 1, and weights beyond what was declared.
ROUNDING = 1e-9
LEAST_P = 1e-12  # the smallest p-value that is told apart from 0


def spread_plan(plan: Plan, share: float) -> Plan:
    """Return the plan with a share of its rounds drawn uniformly, so that every rule can be judged.

    Parameters
    ----------
    plan : Plan
        Of one offer.
    share : float
        In (0, 1). Every arm then has at least the probability share/K.

    Examples
    --------
    >>> spread_plan(Plan([1.0, 0.0], 1), 0.5).probabilities.tolist()
    [0.75, 0.25]
    """
    check_fraction("share", share)
    count = plan.probabilities.shape[-1]
    return replace(plan, probabilities=(1.0 - share) * plan.probabilities + share / count)


@dataclass(frozen=True)
class RuleGain:
    """What a rule would have earned over the reference, per round, on the visitors so far.

    Attributes
    ----------
    rule, reference : str
    estimate : float
    low, high : float
        Hold at all times, for all rules at once, with probability 1 − δ.
    different : int
        Rounds in which the two rules differ; in all others the gain is exactly 0.
    rounds : int
        All rounds.
    """

    rule: str
    reference: str
    estimate: float
    low: float
    high: float
    different: int
    rounds: int

    def __str__(self) -> str:
        return (
            f"{self.rule} earns {self.estimate:+.4g} more than {self.reference}, between {self.low:+.4g} and"
            f" {self.high:+.4g} ({self.different:,} of {self.rounds:,} visitors get something else)"
        )


class ResidualSizes(NamedTuple):
    """How rewards or residuals scatter: rounds, their mean, squares around it, and the largest deviation."""

    rounds: int = 0
    mean: float = 0.0
    scattered: float = 0.0
    largest: float = 0.0

    def and_of(self, value: float) -> "ResidualSizes":
        """Return the sizes with one more value (Welford 1962)."""
        rounds = self.rounds + 1
        off = value - self.mean
        mean = self.mean + off / rounds
        first = self.rounds == 0
        return ResidualSizes(
            rounds,
            mean,
            self.scattered + off * (value - mean),
            self.largest if first else max(self.largest, abs(off)),
        )

    @property
    def events(self) -> float:
        """Scatter in units of the largest square: how many values of that size would carry all of it."""
        return self.scattered / self.largest**2 if self.largest > 0 else 0.0


@dataclass(frozen=True, eq=False)
class RuleComparison:
    """A confidence sequence for the gain of each rule over a reference rule, under any plans and any shift.

    Begin with :meth:`start`, add every round, and look at :meth:`gains` as often as you like.

    Attributes
    ----------
    rules : mapping of str to rule
    reference : str
    confidence : Confidence
    tuning : Tuning
        Of the rules but the reference (m,).
    evidence : Evidence
        Of the same rules (m,).
    rounds : int
    different : (m,) array of int
        Rounds in which each rule differs from the reference.

    Examples
    --------
    >>> from orthobandit.policy.contextual import Interactions
    >>> pages = Interactions(["A", "B"], context=["mobile"])
    >>> rules = {"A for all": "A", "B on telephones": lambda offer: "AB"[int(offer.context["mobile"])]}
    >>> found = RuleComparison.start(rules, reference="A for all")
    >>> for mobile, arm, reward in ((1, 1, 0.7), (1, 0, 0.1), (0, 1, 5.0), (0, 0, 0.2)):
    ...     found = found.add(pages.offer({"mobile": mobile}), Plan([0.5, 0.5], 1), arm, reward)
    >>> found.gains()[0].estimate, found.gains()[0].different
    (0.2999..., 2)
    """

    rules: Mapping[str, Rule]
    reference: str
    confidence: Confidence
    tuning: Tuning
    evidence: Evidence
    rounds: int
    different: Whole
    linear: bool
    floor: float | None
    tightest: tuple[float, int]
    sizes: tuple[ResidualSizes, ResidualSizes]
    excess: float
    drawn: Mapping[str, int]
    squared: Mapping[str, float]
    carried: Mapping[str, Array]

    @classmethod
    def start(
        cls,
        rules: Mapping[str, Rule],
        *,
        reference: str,
        confidence: Confidence | None = None,
        delta: float = 0.05,
        floor: float | None = None,
        linear: bool = True,
        noise: float | None = None,
        rounds: int = 1000,
    ) -> "RuleComparison":
        """Return the comparison before the first round.

        Parameters
        ----------
        rules : mapping of str to rule
            At least two, by name. A rule is the label of an arm, or a function of the offer that returns one,
            or one that returns probabilities by label. It must be fixed before the rounds that judge it.
        reference : str
            The name of the rule that the others are compared with.
        confidence : Confidence, optional
            :class:`Asymptotic` by default; exact modes need `floor`.
        delta : float
            Probability that any interval is ever wrong, for all rules together.
        floor : float, optional
            The least probability, in any round, of an arm that only one of two compared rules chooses; see
            :func:`spread_plan`. A round that breaks it is refused.
        linear : bool
            Whether means are linear in the features. False assumes nothing of them, which is wider where
            arms share features, and the same where they do not (``Interactions(labels, …)``).
        noise, rounds : float, int
            Guesses of the standard deviation of residuals and of the rounds it will take. Intervals are
            tightest there, and valid whatever they are.
        """
        named = dict(rules)
        if len(named) < 2:
            raise ParameterError(f"rules has {len(named)} entries; two rules or more can be compared")
        if reference not in named:
            raise ParameterError(
                Argument("reference", reference), f" is not among the rules {', '.join(named)}"
            )
        for name, rule in named.items():
            if not isinstance(rule, str) and not callable(rule):
                raise ParameterError(
                    f"rule {name!r} is {rule!r}; give an arm's label or a function of offers"
                )
        mode = Asymptotic() if confidence is None else confidence
        check_tells_sizes(mode)
        check_fraction("delta", delta)
        check_whole("rounds", rounds)
        if floor is not None and not 0 < floor <= 1:
            raise ParameterError(Argument("floor", floor), " must be a probability above 0")
        if mode.is_exact and floor is None:
            raise ParameterError(
                f"floor is missing: the mode {mode.name!r} needs the least probability of an arm that a rule"
                " chooses; plan with spread_plan(plan, share) and give share/K"
            )
        if noise is None:
            low, high = mode.range
            # A guess: half of the most that rewards in this range can scatter.
            noise = (high - low) / 4.0 if mode.is_exact else 1.0
        check_positive("noise", noise)
        zeros = np.zeros(len(named) - 1)
        # Two sides of every interval, and all rules, share δ.
        alpha = np.full(len(zeros), delta / (2 * len(zeros)))
        scale = np.full(len(zeros), mode.limit / floor if mode.is_exact and floor is not None else 1.0)
        return cls(
            rules=MappingProxyType(named),
            reference=reference,
            confidence=mode,
            tuning=Tuning(alpha, zeros, scale, WIDE),
            evidence=Evidence(zeros, zeros, zeros, zeros, zeros, zeros, zeros),
            rounds=0,
            different=np.zeros(len(zeros), dtype=np.int64),
            linear=linear,
            floor=floor,
            tightest=(float(noise), rounds),
            sizes=(ResidualSizes(), ResidualSizes()),
            excess=0.0,
            drawn=MappingProxyType({}),
            squared=MappingProxyType({}),
            carried=MappingProxyType({}),
        )

    @property
    def compared(self) -> tuple[str, ...]:
        """The names of the rules but the reference."""
        return tuple(name for name in self.rules if name != self.reference)

    def choices(self, offer: Offer) -> Array:
        """Return the probabilities (n, K) with which each rule would draw the arms of an offer."""
        return np.array([self._choice(name, offer) for name in self.rules])

    def weights(self, offer: Offer, plan: Plan) -> tuple[Array, Array]:
        """Return z (m, K), how the rules differ from the reference, and g (m, K) under the plan.

        Both are known before the draw. g is 0 for rules that do not differ.
        """
        p = plan.probabilities
        if p.shape != (len(offer),):
            raise ParameterError(
                f"round {self.rounds}: the plan has shape {p.shape}, the offer {len(offer)} arms"
            )
        every = self.choices(offer)
        place = list(self.rules).index(self.reference)
        z = np.delete(every, place, axis=0) - every[place]
        # g(a) = z_a/p_a assumes nothing of the means: augmented inverse propensity weighting.
        missing = (z != 0) & (p <= 0)
        plain = np.divide(z, p, out=np.zeros_like(z), where=p > 0)
        known = ~missing.any(axis=1)
        if not self.linear:
            return z, self._checked(z, plain, known, offer)
        pulls = Pulls.of(offer.features - offer.features[0], z, p[np.newaxis])
        g = pulls.pull[0]
        # Two rules may choose different arms with the same features: they earn the same.
        alike = ~np.any(np.abs(z @ offer.features) > 1e-12 * np.abs(z) @ np.abs(offer.features), axis=1)
        able = pulls.known[0] | alike
        if self.floor is not None:
            # Both weights are unbiased: where the linear one reaches too far, the plain one is taken.
            far = np.abs(g).max(axis=1) > (1.0 + ROUNDING) / self.floor
            able &= ~(far & known)
        g = np.where(able[:, np.newaxis], g, plain)
        return z, self._checked(z, g, able | known, offer)

    def add(
        self,
        offer: Offer,
        plan: Plan,
        arm: int,
        reward: float,
        *,
        forecast: float = 0.0,
        theta: ArrayLike | None = None,
        values: ArrayLike | None = None,
    ) -> "RuleComparison":
        """Return the comparison with one round.

        Parameters
        ----------
        offer : Offer
        plan : Plan
            The distribution that the arm was drawn from.
        arm : int
            Its row in the offer.
        reward : float
        forecast : float
            Of the level, fixed before the draw.
        theta : array-like (d,), optional
            Coefficients that were estimated before the draw, e.g. ``policy.estimate(state)``; 0 by default.
            Good ones narrow intervals, none can bias them.
        values : array-like (K,), optional
            What each arm was estimated to earn before the draw, up to the level; instead of `theta`.
        """
        z, g = self.weights(offer, plan)
        p = plan.probabilities
        if not 0 <= arm < len(offer) or p[arm] <= 0:
            raise ParameterError(f"round {self.rounds}: arm={arm} cannot have been drawn under this plan")
        known = self._values(offer, theta, values, p > 0)
        centre = self.confidence.centre(known, p > 0)
        residual = float(centre.residuals(np.array([arm]), [reward], [forecast])[0])
        # Where the range is known forecasts were clipped to it; the rest of ψ is the same.
        x = g[:, arm] * residual
        factor = g**2 @ p
        reach = np.abs(g[:, p > 0]).max(axis=1)
        sizes = (self.sizes[0].and_of(float(reward)), self.sizes[1].and_of(residual))
        label = offer.labels[arm]
        drawn = {**self.drawn, label: self.drawn.get(label, 0) + 1}
        squared = {**self.squared, label: self.squared.get(label, 0.0) + residual**2}
        if self.confidence.is_exact:
            peaks = np.maximum(self.evidence.peaks, np.abs(x))
            pooled = self.evidence.pooled + np.abs(x) ** 3
            excess = 0.0
        else:
            excess = max(self.excess, _excess(sizes[1], residual))
            peaks = np.maximum(self.evidence.peaks, reach * excess)
            loudness = _loudness(offer.labels, drawn, squared)
            pooled = self.evidence.pooled + np.maximum(factor, g**2 @ (p * loudness)) * residual**2
        evidence = replace(
            self.evidence,
            totals=self.evidence.totals + z @ known + x,
            weights=self.evidence.weights + 1.0,
            variances=self.evidence.variances + x**2,
            slack=self.evidence.slack + self.confidence.bias * np.sqrt(factor),
            pooled=pooled,
            peaks=peaks,
        )
        carried = dict(self.carried)
        for row, label in enumerate(offer.labels):
            if p[row] > 0:
                part = g[:, row] ** 2
                pulled = part * (row == arm)
                carried[label] = carried.get(label, 0.0) + np.stack([p[row] * part, pulled, pulled * part])
        return replace(
            self,
            tuning=self._tuned(factor),
            evidence=evidence,
            rounds=self.rounds + 1,
            different=self.different + np.any(z != 0, axis=1),
            sizes=sizes,
            excess=excess,
            drawn=MappingProxyType(drawn),
            squared=MappingProxyType(squared),
            carried=MappingProxyType(carried),
        )

    def gains(self) -> list[RuleGain]:
        """Return what each rule would have earned over the reference, in the order of the rules.

        Intervals are of the visitors so far, so they move with them; those of earlier looks do not bind.
        """
        return list(self._gains)

    @cached_property
    def _gains(self) -> tuple[RuleGain, ...]:
        """The gains, computed once for all that a report says of them."""
        width = self._widths(self.tuning.alpha)
        middle = self.evidence.estimates
        return tuple(
            RuleGain(
                name,
                self.reference,
                float(middle[j]),
                float(middle[j] - width[j]),
                float(middle[j] + width[j]),
                int(self.different[j]),
                self.rounds,
            )
            for j, name in enumerate(self.compared)
        )

    def p_values(self) -> Array:
        """Return, for every rule but the reference (m,), the least α at which it is proven to earn more.

        Each is valid at any time that is chosen by looking at the data: a rule that does not earn more has
        one of α or less, ever, with probability α at most. They are not corrected for the number of rules.
        """
        count = len(self.different)
        low = np.full(count, np.log(LEAST_P))
        high = np.full(count, np.log(0.5))
        middle = self.evidence.estimates
        proven = middle > self._widths(np.exp(high))
        for _ in range(40):
            between = (low + high) / 2.0
            is_proven = middle > self._widths(np.exp(between))
            high = np.where(is_proven, between, high)
            low = np.where(is_proven, low, between)
        return np.where(proven, np.exp(high), 1.0)

    def _widths(self, alpha: Array) -> Array:
        """Return the half-widths (m,) of intervals each side of which is wrong with probability α (m,)."""
        ready = self.tuning.rho > 0
        tuning = replace(self.tuning, alpha=alpha, rho=np.where(ready, self.tuning.rho, 1.0))
        events = np.where(self._is_hidden(alpha), 0.0, min(one.events for one in self.sizes))
        evidence = replace(self.evidence, events=events)
        # A rule that never differed earns the same, exactly.
        return np.where(ready, self.confidence.width(evidence, tuning), 0.0 if self.rounds else np.inf)

    @property
    def deviation(self) -> float:
        """Standard deviation of the rewards so far; NaN before the first."""
        rewards = self.sizes[0]
        return float(np.sqrt(rewards.scattered / rewards.rounds)) if rewards.rounds else np.nan

    def possible_best(self, among: Collection[str] | None = None) -> tuple[str, ...]:
        """Return the rules that may have been best on these visitors, from the same intervals as the gains.

        With probability 1 − δ the best rule is among them at all times. One alone is proven to be the best.

        Parameters
        ----------
        among : collection of str, optional
            Names of the rules that are allowed, chosen as you like: all intervals hold at once.
        """
        ends = {gain.rule: (gain.low, gain.high) for gain in self._gains}
        ends[self.reference] = (0.0, 0.0)
        allowed = [name for name in self.rules if among is None or name in among]
        most = max((ends[name][0] for name in allowed), default=0.0)
        return tuple(name for name in allowed if ends[name][1] >= most)

    def to_json(self) -> dict[str, Any]:
        """Return what was learnt as plain lists that survive ``json.dumps`` exactly."""
        return {
            "version": 1,
            "rules": list(self.rules),
            "reference": self.reference,
            "evidence": self.evidence.to_json(),
            "alpha": self.tuning.alpha.tolist(),
            "rho": self.tuning.rho.tolist(),
            "scale": self.tuning.scale.tolist(),
            "rounds": self.rounds,
            "different": self.different.tolist(),
            "sizes": [list(one) for one in self.sizes],
            "excess": self.excess,
            "drawn": dict(self.drawn),
            "squared": dict(self.squared),
            "carried": {label: share.tolist() for label, share in self.carried.items()},
        }

    def resumed(self, data: Mapping[str, Any]) -> "RuleComparison":
        """Return the comparison, started with the same rules, with what :meth:`to_json` returned."""
        if list(data["rules"]) != list(self.rules) or data["reference"] != self.reference:
            raise ParameterError(
                f"the record is of the rules {', '.join(data['rules'])} against {data['reference']!r}; start"
                " with the same ones"
            )
        rewards, residuals = (ResidualSizes(int(one[0]), *map(float, one[1:])) for one in data["sizes"])
        alpha, rho, scale = (np.array(data[name], dtype=np.float64) for name in ("alpha", "rho", "scale"))
        return replace(
            self,
            tuning=Tuning(alpha, rho, scale, WIDE),
            evidence=Evidence.from_json(data["evidence"]),
            rounds=int(data["rounds"]),
            different=np.array(data["different"], dtype=np.int64),
            sizes=(rewards, residuals),
            excess=float(data["excess"]),
            drawn=MappingProxyType({label: int(count) for label, count in data["drawn"].items()}),
            squared=MappingProxyType({label: float(part) for label, part in data["squared"].items()}),
            carried=MappingProxyType({label: np.array(share) for label, share in data["carried"].items()}),
        )

    def _choice(self, name: str, offer: Offer) -> Array:
        """Return the probabilities (K,) with which a rule would draw the arms of an offer."""
        rule = self.rules[name]
        choice: Choice = rule if isinstance(rule, str) else rule(offer)
        shares = {choice: 1.0} if isinstance(choice, str) else dict(choice)
        out = np.zeros(len(offer))
        for label, share in shares.items():
            if label not in offer.labels:
                raise ParameterError(
                    f"round {self.rounds}: rule {name!r} chooses {label!r}, which is not offered; it offers"
                    f" {', '.join(offer.labels)}. Let the rule look at offer.labels"
                )
            out[offer.index(label)] = share
        if not np.all(out >= 0) or abs(out.sum() - 1.0) > ROUNDING:
            raise ProbabilityError(
                f"round {self.rounds}: probabilities of rule {name!r} sum to {out.sum():g} with the least"
                f" {out.min():g}; they must be non-negative and sum to 1"
            )
        return out

    def _checked(self, z: Array, g: Array, able: Mask, offer: Offer) -> Array:
        """Return the weights g (m, K), or refuse a round that cannot judge some rule."""
        if not able.all():
            j = int(np.argmin(able))
            chosen = [label for label, part in zip(offer.labels, z[j], strict=True) if part != 0]
            raise ProbabilityError(
                f"round {self.rounds}: rules {self.compared[j]!r} and {self.reference!r} differ on"
                f" {', '.join(chosen)}, which this plan cannot compare; give every arm that a rule may choose"
                " a probability above 0, e.g. with spread_plan(plan, 0.1)"
            )
        most = np.abs(g).max(axis=1, initial=0.0)
        if self.floor is not None and np.any(most > (1.0 + ROUNDING) / self.floor):
            j = int(np.argmax(most))
            raise ProbabilityError(
                f"round {self.rounds}: rule {self.compared[j]!r} chooses an arm whose probability is below"
                f" the declared floor={self.floor:g}; declare a lower floor, or plan with spread_plan"
            )
        return g

    def _values(self, offer: Offer, theta: ArrayLike | None, values: ArrayLike | None, played: Mask) -> Array:
        """Return values (K,), shrunk so that those of arms that are played keep to the declared range."""
        if values is None and theta is None:
            return np.zeros(len(offer))
        name = "theta" if values is None else "values"
        given = np.asarray(theta if values is None else values, dtype=np.float64)
        needed = offer.dimension if values is None else len(offer)
        if given.shape != (needed,) or not np.all(np.isfinite(given)):
            raise ParameterError(
                f"round {self.rounds}: {name} has shape {given.shape}; {needed} finite numbers are needed"
            )
        known = offer.features @ given if values is None else given
        low, high = self.confidence.range
        spread = float(np.ptp(known[played]))
        return np.asarray(known * ((high - low) / spread)) if spread > high - low else np.asarray(known)

    def _tuned(self, factor: Array) -> Tuning:
        """Fix the boundary of every rule that differs for the first time, by what its plan can tell."""
        fresh = (self.tuning.rho == 0) & (factor > 0)
        if not fresh.any():
            return self.tuning
        noise, rounds = self.tightest
        guess = tightest_rho(rounds * noise**2 * np.where(fresh, factor, 1.0), self.tuning.alpha)
        return replace(self.tuning, rho=np.where(fresh, guess, self.tuning.rho))

    def _is_hidden(self, alpha: Array) -> Mask:
        """Tell which comparisons (m,) rest on arms that were hardly drawn: what they return is not known."""
        if not self.carried:
            return np.zeros(len(self.different), dtype=np.bool_)
        return rests_on_unknown(np.stack(list(self.carried.values()), axis=-1), least_draws(alpha))


def _loudness(labels: Sequence[str], drawn: Mapping[str, int], squared: Mapping[str, float]) -> Array:
    """Return how much larger squared residuals of arms (K,) have been than those of all; 1 if never drawn.

    Rounds come one by one, so that bursts which all arms had in common are not told apart from an arm that is
    loud. What is pooled is the larger of two, so this can only widen intervals.
    """
    whole = sum(squared.values()) / sum(drawn.values())
    means = [squared[label] / drawn[label] if label in drawn else whole for label in labels]
    return np.array(means) / whole if whole > 0 else np.ones(len(labels))


def _excess(sizes: ResidualSizes, residual: float) -> float:
    """Return how large a residual is beyond what light tails would show; see :class:`Evidence`."""
    mean = max((sizes.scattered / sizes.rounds) + sizes.mean**2, 0.0)
    beyond = max(residual**2 - mean * (2.0 * log(sizes.rounds) + USUAL), 0.0)
    return min(2.0 * sqrt(beyond), abs(residual))
