"""A personalised experiment as one policy: it learns whom each arm serves, and judges rules.

Wraps a contextual policy with all that a live experiment fixes before its first visitor: the columns of the
context, the share of visitors who are drawn uniformly so that every rule can be judged, and the rules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from orthobandit._foundation.checks import check_fraction
from orthobandit._foundation.release import check_format, stamp
from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate import Asymptotic, Baseline, Bounded, Confidence, Plan, Tally
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.contextual.base import ContextualState
from orthobandit.policy.contextual.handed_plan import HandedPlan
from orthobandit.policy.contextual.information_directed import InformationDirected
from orthobandit.policy.contextual.offers import MAX_FEATURE_MAGNITUDE, NUMBER, Interactions, Offer
from orthobandit.policy.contextual.rule_text import parse_rule
from orthobandit.policy.contextual.rules import Rule, RuleComparison, RuleGain, spread_plan

# Of δ, for the effects; the rest is for the gains of rules. Both then hold together.
EFFECTS_SHARE = 0.5


@dataclass(frozen=True)
class Effect:
    """How an arm's reward differs from the reference arm's: for everybody, or per unit of a column.

    Attributes
    ----------
    arm, reference : str
        Both empty where visitors bring features: an effect is then that of a feature, whichever the arm.
    column : str or None
        The column of the context that the effect changes with, or the feature; None for the effect where all
        columns are 0.
    estimate : float
    low, high : float or None
        Hold at all times, for all effects at once, whatever the level does; None if no range of rewards was
        declared.
    """

    arm: str
    reference: str
    column: str | None
    estimate: float
    low: float | None
    high: float | None


class Columns(NamedTuple):
    """What the columns of the context (m,) have been like: how many visitors, means, and ends."""

    visitors: int
    mean: Array
    least: Array
    most: Array

    @classmethod
    def start(cls, size: int) -> "Columns":
        """Return the columns before the first visitor."""
        return cls(0, np.zeros(size), np.full(size, np.inf), np.full(size, -np.inf))

    def and_of(self, row: Array) -> "Columns":
        """Return the columns with one more visitor (m,)."""
        visitors = self.visitors + 1
        return Columns(
            visitors,
            self.mean + (row - self.mean) / visitors,
            np.minimum(self.least, row),
            np.maximum(self.most, row),
        )


@dataclass(frozen=True, eq=False)
class PersonalState:
    """What a personalised experiment has learnt.

    Attributes
    ----------
    arms : ArmSet
    learnt : ContextualState
        The contextual policy's.
    comparison : RuleComparison
        What each rule would have earned.
    columns : Columns
        What visitors have been like.
    """

    arms: ArmSet
    learnt: ContextualState
    comparison: RuleComparison
    columns: Columns


@dataclass(frozen=True)
class Personalised:
    """Show every visitor the arm that serves visitors like this one, and prove which rule earns most.

    For live experiments: ``Experiment.create(where, arms, Personalised(["mobile"], rewards=(0, 1)))``, then
    ``ask(unit, context={"mobile": 1})``. The reference arm (control) is the first one.

    Effects of arms are linear in the context; the level may depend on who comes in any way. What each rule
    would have earned holds without the linear model.

    Parameters
    ----------
    context : sequence of str
        Columns that effects may depend on; every :meth:`Experiment.ask` gives a number for each.
    rules : mapping of str to str
        Rules to judge, by name, in words: ``{"B on telephones": "B if mobile >= 0.5 else A"}``. That one arm
        is shown to all is judged as well, for every arm.
    rewards : (float, float), optional
        The lowest and the highest reward that can occur. Given, all claims are exact at every sample size.
        Otherwise gains of rules are asymptotic, and effects are estimates alone.
    explore : float
        Share of visitors who get an arm uniformly at random, so that every rule can be judged at all times.
    delta : float
        Probability that any interval, of an effect or a rule, is ever wrong.
    policy : InformationDirected
        What decides for the other visitors.
    features : sequence of str
        Names of features that every visitor brings for each arm, e.g. ``["price", "distance"]``; then
        ``ask(unit, features={"A": [3.0, 0.5], "B": [2.5, 4.0]})`` offers the arms that are named, and effects
        are those of features. By default features are made of arms and context.

    Examples
    --------
    >>> pages = Personalised(["mobile"], {"B on telephones": "B if mobile >= 0.5 else A"}, rewards=(0, 1))
    >>> arms = ArmSet.one_hot(2, ["A", "B"])
    >>> state = pages.start(arms)
    >>> offer = pages.offer(arms, {"mobile": 1.0})
    >>> pages.plan_for(state, offer).probabilities.tolist()
    [0.5, 0.5]
    """

    context: Sequence[str]
    rules: Mapping[str, str] | Sequence[tuple[str, str]] = ()
    rewards: tuple[float, float] | None = None
    explore: float = 0.1
    delta: float = 0.05
    policy: InformationDirected = InformationDirected()  # noqa: RUF009
    features: Sequence[str] = ()

    is_personal: ClassVar[bool] = True  # every visitor has a plan of their own

    def __post_init__(self) -> None:
        object.__setattr__(self, "features", _names("features", self.features))
        columns = _names("context", self.context)
        if not columns and not self.features:
            raise ParameterError(
                Argument("context", self.context), " must name the columns that effects may depend on"
            )
        object.__setattr__(self, "context", columns)
        given = self.rules.items() if isinstance(self.rules, Mapping) else self.rules
        object.__setattr__(self, "rules", tuple((str(name), str(text)) for name, text in given))
        if self.rewards is not None:
            low, high = map(float, self.rewards)
            object.__setattr__(self, "rewards", (low, high))
            Bounded(low, high)
        check_fraction("explore", self.explore)
        check_fraction("delta", self.delta)
        if not isinstance(self.policy, InformationDirected):
            raise ParameterError(Argument("policy", self.policy), " must be InformationDirected(…)")
        if self.policy.confidence is not None:
            raise ParameterError(
                f"policy has confidence={self.policy.confidence}; say where rewards lie by `rewards` instead,"
                " so that effects and rules share one δ"
            )
        if self.policy.trusts_level and self.rewards is not None:
            raise ParameterError(
                "policy has trusts_level=True, which makes no exact claims; leave out `rewards`, or set it to"
                " False"
            )

    # What is fixed before the first visitor

    @property
    def baseline(self) -> Baseline:
        """The forecaster of the level."""
        return self.policy.baseline

    @property
    def interval_delta(self) -> float:
        """The part of δ for intervals of the objective: all of it, for nothing else is claimed."""
        return self.delta

    @property
    def confidence(self) -> Confidence:
        """The mode of confidence of the gains of rules."""
        return Asymptotic() if self.rewards is None else Bounded(*self.rewards)

    @cached_property
    def inner(self) -> InformationDirected:
        """The contextual policy, with its part of δ."""
        if self.rewards is None:
            return self.policy
        return replace(self.policy, confidence=Bounded(*self.rewards), delta=EFFECTS_SHARE * self.delta)

    def interactions(self, arms: ArmSet) -> Interactions:
        """Return how features of arms and context are crossed."""
        is_one_hot = np.array_equal(arms.features, np.eye(len(arms)))
        return Interactions(arms.labels if is_one_hot else arms, self.context)

    def dimension(self, arms: ArmSet) -> int:
        """Return the number of coefficients that are learnt."""
        return len(self.features) or self.interactions(arms).dimension

    def offer(
        self,
        arms: ArmSet,
        context: Mapping[str, float] | None,
        available: Sequence[str] | None = None,
        features: Mapping[str, Sequence[float]] | None = None,
    ) -> Offer:
        """Return the offer to one visitor; what is missing or does not fit is refused by name.

        Parameters
        ----------
        arms : ArmSet
        context : mapping of str to float
        available : sequence of str, optional
            Labels of the arms that this visitor can get; all by default.
        features : mapping of str to (d,) sequence
            A row for each arm that is offered, where visitors bring features.
        """
        if not self.features:
            if features is not None:
                raise ParameterError(
                    "features are for experiments that are made with Personalised(features=[…]); those of"
                    f" this one follow from the context: {', '.join(self.context)}"
                )
            return self.interactions(arms).offer(context, available)
        given = dict(context or {})
        for name in self.context:
            Interactions.number(given, name)
        rows = self._feature_rows(arms, features)
        shown = arms.labels if available is None else available
        labels = [label for label in arms.labels if label in rows and label in shown]
        if not labels:
            raise ParameterError(
                "no arm is available to this visitor; give features of at least one that can be shown"
            )
        return Offer([rows[label] for label in labels], labels, given)

    def _feature_rows(
        self, arms: ArmSet, features: Mapping[str, Sequence[float]] | None
    ) -> dict[str, list[float]]:
        """Return the features of the arms that a visitor is offered, by label."""
        width = len(self.features)
        words = f"{width} numbers ({', '.join(self.features)})"
        if features is None:
            raise ParameterError(f"features are missing; every visitor brings {words} for each arm on offer")
        out = {}
        for label, row in features.items():
            if label not in arms.labels:
                raise ParameterError(f"features of {label!r}: arms are {', '.join(arms.labels)}")
            try:
                numbers = np.asarray(row, dtype=np.float64)
            except (TypeError, ValueError):
                raise ParameterError(f"features of {label!r} are {row!r}; {words} are needed") from None
            if numbers.shape != (width,):
                raise ParameterError(f"features of {label!r} have shape {numbers.shape}; {words} are needed")
            good = np.abs(numbers) <= MAX_FEATURE_MAGNITUDE
            if not good.all():
                name = self.features[int(np.argmin(good))]
                raise ParameterError(f"feature {name!r} of {label!r} must be {NUMBER}")
            out[label] = numbers.tolist()
        return out

    def named_rules(self, arms: ArmSet) -> dict[str, Rule]:
        """Return all rules by name, that of the reference arm for everybody first."""
        out: dict[str, Rule] = {}
        reference = arms.labels[0]
        shown = [(for_all(label), label) for label in arms.labels]
        written = self.rules.items() if isinstance(self.rules, Mapping) else self.rules
        for name, text in (*shown, *written):
            if name in out:
                raise ParameterError(
                    f"two rules are named {name!r}; {for_all(reference)!r} and its like are there already"
                )
            out[name] = parse_rule(text, arms.labels, self.context, reference)
        return out

    # The policy's contract

    def start(
        self,
        arms: ArmSet,
        batch: tuple[int, ...] = (),
        *,
        seed: int = 0,
        replications: Any = None,  # noqa: ARG002 - the contract
    ) -> PersonalState:
        """Return the state before the first visitor."""
        if batch:
            raise ParameterError("a personalised experiment is one replication; batch must be ()")
        if len(arms) < 2:
            raise ParameterError("a personalised experiment needs two arms or more")
        comparison = self.compare(arms, self.confidence, self.rules_delta)
        learnt = self.inner.start(self.dimension(arms), seed=seed)
        return PersonalState(arms, learnt, comparison, Columns.start(len(self.context)))

    @property
    def rules_delta(self) -> float:
        """The part of δ for the gains of rules."""
        return (1.0 - EFFECTS_SHARE if self.rewards is not None else 1.0) * self.delta

    def compare(self, arms: ArmSet, confidence: Confidence, delta: float) -> RuleComparison:
        """Return the comparison of all rules in one metric, before the first visitor."""
        return RuleComparison.start(
            self.named_rules(arms),
            reference=for_all(arms.labels[0]),
            confidence=confidence,
            delta=delta,
            floor=self.explore / len(arms),
            # Without the model: gains of rules then hold whatever effects look like.
            linear=False,
        )

    def plan(self, state: PersonalState) -> Plan:
        """Return the share of each arm among visitors who are drawn uniformly; it is in force for ever.

        Visitors have plans of their own, see :meth:`plan_for`.
        """
        count = len(state.arms)
        return Plan(np.full(count, 1.0 / count), FOREVER, number=0)

    def plan_for(self, state: PersonalState, offer: Offer) -> Plan:
        """Return the distribution over the rows of one visitor's offer."""
        return spread_plan(self.inner.plan(state.learnt, offer), self.explore)

    def hand_out(self, state: PersonalState, shown: Sequence[int]) -> HandedPlan:
        """Return the plan of all visitors as data, for those who draw without asking.

        It plans as :meth:`plan_for` does, except that a visitor who is far out of line among the first
        thousand does not raise the ridge, as that takes an inverse, and that it rests on the centred
        regression also while the policy trusts the level. Any plan is valid.

        Parameters
        ----------
        state : PersonalState
        shown : sequence of int
            Arms that are offered.
        """
        if self.features:
            raise ParameterError("a plan can be handed out where features are made of arms and context alone")
        memory = state.learnt.memory
        rows = self.interactions(state.arms).arm_features[list(shown)]
        # Features that never differed yet have no unit; any will do while nothing is known of them.
        scale = np.divide(1.0, memory.units, out=np.ones(len(memory.units)), where=memory.units > 0)
        return HandedPlan(
            arms=tuple(int(arm) for arm in shown),
            columns=tuple(self.context),
            features=tuple(map(tuple, rows.tolist())),
            scale=tuple(scale.tolist()),
            theta=tuple(memory.theta.tolist()),
            inverse=tuple(map(tuple, memory.inverse.tolist())),
            radius=float(self.policy.radius * np.sqrt(memory.variance)),
            explore=float(self.explore),
        )

    def estimate(self, state: PersonalState, offer: Offer) -> Array:
        """Return what each arm (K_t,) of an offer is estimated to earn, up to the level."""
        return np.asarray(offer.features @ self.inner.estimate(state.learnt))

    def learn(
        self,
        state: PersonalState,
        offer: Offer,
        plan: Plan,
        arm: int,
        reward: float,
        forecast: float,
        values: Array | None = None,
    ) -> PersonalState:
        """Return the state after one visitor's reward.

        Parameters
        ----------
        state : PersonalState
            With every earlier visitor, in the order of draws, and none that was drawn later.
        offer, plan : Offer, Plan
            As they were when the arm was drawn.
        arm : int
            Its row in the offer.
        reward, forecast : float
            The forecast was made before the draw.
        values : (K_t,) array, optional
            What each arm was estimated to earn when the arm was drawn; by default as it is estimated now.
        """
        known = self.estimate(state, offer) if values is None else values
        comparison = state.comparison.add(offer, plan, arm, reward, forecast=forecast, values=known)
        learnt = self.inner.observe(state.learnt, offer, plan, arm, reward, forecast)
        row = np.array([offer.context[name] for name in self.context])
        return PersonalState(state.arms, learnt, comparison, state.columns.and_of(row))

    def observe(self, state: PersonalState, plan: Plan, tally: Tally) -> PersonalState:  # noqa: ARG002
        """Refuse tallies: a visitor's reward is learnt together with the offer, see :meth:`learn`."""
        raise ParameterError(
            "a personalised experiment learns from one visitor at a time, with the offer: use Experiment"
        )

    def decide(self, state: PersonalState) -> Decision:
        """Return the arm that would have earned most if shown to all; arms are never declared or dropped."""
        count = len(state.arms)
        names = [for_all(label) for label in state.arms.labels]
        # Which arm leads follows from estimates alone; intervals would take a hundred times as long.
        gains = dict(zip(state.comparison.compared, state.comparison.evidence.estimates, strict=True))
        return Decision(
            active=np.ones(count, dtype=np.bool_),
            leader=np.array(int(np.argmax([gains.get(name, 0.0) for name in names]))),
            declared=np.array(-1),
            epsilon=np.array(np.inf),
            certainty=0.0,
            mode="personalised",
        )

    # What is known

    def gains(self, state: PersonalState) -> list[RuleGain]:
        """Return what each rule would have earned over showing the reference arm to all."""
        return state.comparison.gains()

    def effects(self, state: PersonalState) -> list[Effect]:
        """Return how each arm differs from the reference arm, and how that changes with the context."""
        if self.features:
            named = [("", name) for name in self.features]
            return self._effects(state, named, np.eye(len(self.features)))
        crossed = self.interactions(state.arms)
        zero = np.zeros(len(self.context))
        base = crossed.features(zero)[0]
        out: list[tuple[str, str | None]] = []
        rows = []
        for arm, label in enumerate(state.arms.labels[1:], start=1):
            out.append((label, None))
            rows.append(base[arm] - base[0])
            for place, column in enumerate(self.context):
                unit = zero.copy()
                unit[place] = 1.0
                moved = crossed.features(unit)[0]
                out.append((label, column))
                rows.append((moved[arm] - moved[0]) - (base[arm] - base[0]))
        return self._effects(state, out, np.array(rows))

    def _effects(
        self, state: PersonalState, named: Sequence[tuple[str, str | None]], contrasts: Array
    ) -> list[Effect]:
        """Return contrasts zᵀθ (n, d) as effects, by arm and column."""
        middle = contrasts @ self.inner.estimate(state.learnt)
        unknown: list[float | None] = [None] * len(contrasts)
        ends = (unknown, unknown)
        if self.rewards is not None:
            low, high = self.inner.intervals(state.learnt, contrasts)
            ends = (low.tolist(), high.tolist())
        reference = state.arms.labels[0]
        return [
            Effect(label, reference if label else "", column, float(middle[row]), ends[0][row], ends[1][row])
            for row, (label, column) in enumerate(named)
        ]

    # As JSON

    def dump(self, state: PersonalState) -> dict[str, Any]:
        """Return the state as plain lists and numbers."""
        columns = state.columns
        seen = columns.visitors > 0
        return {
            **stamp(),
            "learnt": self.inner.dump(state.learnt),
            "comparison": state.comparison.to_json(),
            "columns": {
                "visitors": columns.visitors,
                "mean": columns.mean.tolist(),
                "least": columns.least.tolist() if seen else None,
                "most": columns.most.tolist() if seen else None,
            },
        }

    def load(self, arms: ArmSet, data: dict[str, Any]) -> PersonalState:
        """Invert :meth:`dump`."""
        check_format("the state of a personalised experiment", data)
        blank = self.start(arms)
        kept = data["columns"]
        columns = blank.columns
        if kept["visitors"]:
            ends = (np.array(kept[name], dtype=np.float64) for name in ("mean", "least", "most"))
            columns = Columns(int(kept["visitors"]), *ends)
        return PersonalState(
            arms, self.inner.load(data["learnt"]), blank.comparison.resumed(data["comparison"]), columns
        )


def _names(name: str, given: Sequence[str]) -> tuple[str, ...]:
    """Return names of columns, all different."""
    if isinstance(given, str):
        raise ParameterError(Argument(name, given), f" must be a list of names: [{given!r}]")
    out = tuple(given)
    if not all(isinstance(one, str) and one for one in out):
        raise ParameterError(Argument(name, given), " must be names of columns")
    if len(set(out)) < len(out):
        raise ParameterError(Argument(name, given), " must be different names")
    return out


def for_all(label: str) -> str:
    """Return the name of the rule that shows an arm to everybody."""
    return f"{label} for all"
