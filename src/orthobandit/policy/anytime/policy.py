"""Anytime elimination: exact or asymptotic confidence at every moment, whatever the shift."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from orthobandit._foundation.checks import (
    check_choice,
    check_fits,
    check_fraction,
    check_positive,
    check_whole,
)
from orthobandit._foundation.types import Array
from orthobandit.arms import ArmSet
from orthobandit.errors import Argument, ParameterError
from orthobandit.estimate import Plan, Tally
from orthobandit.estimate.confidence.modes import CONFIDENCES, Asymptotic, Bounded, Confidence
from orthobandit.estimate.forecast.baselines import ARMA, BASELINES, Baseline, check_baseline
from orthobandit.policy._states import check_late, check_observed, check_state
from orthobandit.policy.anytime.all_pairs import AllPairs
from orthobandit.policy.anytime.changes import add_arms, retire_arm
from orthobandit.policy.anytime.delta import SHOWN
from orthobandit.policy.anytime.fields import Stage
from orthobandit.policy.anytime.leaders import MARK, Leaders
from orthobandit.policy.anytime.stages import AnytimeState, rivals_of
from orthobandit.policy.base import FOREVER, Decision
from orthobandit.policy.contract import Batch

T = TypeVar("T")
GOALS = ("identify", "earn")
PAIRS = ("auto", "all", "leader")
MOST_PAIRED = 1000  # arms up to which evidence on all pairs is kept unless something else is asked for
# Forecasts of the level unless others are asked for. A few hundred rounds tell little of 17 coefficients:
# with the forecaster's own ridge, 0.1, residuals of the pilot are half as large again.
BASELINE = ARMA(ridge=10.0)
PAIRED = 81  # bytes of a pair: nine floats, a whole number and a flag


def _mode(rewards: tuple[float, float] | None, confidence: Confidence | None) -> Confidence:
    """Return the mode of confidence: what was asked for, or the best that is known to hold."""
    if confidence is not None and not isinstance(confidence, Confidence):
        raise ParameterError(
            Argument("confidence", confidence), " must be Asymptotic(), Bounded or SubGaussian"
        )
    if rewards is None:
        return Asymptotic() if confidence is None else confidence
    if np.shape(rewards) != (2,):
        raise ParameterError(Argument("rewards", rewards), " must be the lowest and the highest, e.g. (0, 1)")
    bounded = Bounded(*map(float, rewards))
    if confidence not in (None, bounded):
        raise ParameterError(
            Argument("rewards", rewards),
            f" ask for {bounded}, and confidence={confidence!r} for another mode; give one",
        )
    return bounded


@dataclass(frozen=True)
class AnytimeElimination:
    """Drop arms as soon as they are proven worse, at any time, under any shift.

    Rounds come in batches that grow by a constant factor. Every batch adds to unbiased estimates of all
    pairs (:mod:`orthobandit.estimate.augmented`), whose intervals hold at all times at once
    (:mod:`orthobandit.estimate.confidence.modes`). Every arm is tested against the leader of the moment: if
    it is best, it is no worse than any rival, whichever the past suggests. Arms that fail are dropped, and
    the next batch is planned for the pairs that are still open. The first two batches, which warm up the
    baseline and tune the boundaries, are not counted. Beyond the paper (Kim, Kim & Oh 2025): no unknown
    constants, and no union over rivals.

    Parameters
    ----------
    delta : float
        Failure probability of everything that is claimed in a run, together with the intervals that an
        experiment shows beside it.
    epsilon : float
        Stop as soon as the leader is proven within ε of the best arm; 0 to stop at a sole survivor.
    goal : {"identify", "earn"}
        Fewest rounds to the declaration, or least regret on the way.
    rewards : (float, float), optional
        Where every reward lies, e.g. ``(0, 1)`` for sales or clicks. If it is known, say it: claims are
        then exact at every sample size.
    confidence : Confidence, optional
        By default ``Bounded(*rewards)`` where `rewards` are given, and :class:`Asymptotic` where not, which
        waits until it may speak. :class:`SubGaussian` is exact for unbounded rewards of known scale.
    baseline : Baseline
        Forecast of the moving level. A good one narrows intervals, a bad one widens them, none biases them;
        ``ARMA(ridge=10)`` by default.
    growth : float
        Each batch adds this share of the rounds so far, and up to a tenth while no arm is near its end. With
        evidence against leaders alone six times this share, up to a tenth.
    mixing : float
        Share of the exact centred design in plans that identify.
    pilot : int, optional
        Fewest rounds of the warm-up and of the pilot together; by default 20(r + 1), and 10(r + 1) to earn.
        The pilot goes on by itself until it has seen enough to tune by.
    pairs : {"auto", "all", "leader"}
        On which pairs evidence is kept: on all, which takes memory and time in K², or on those with arms that
        have led, which takes them in K; by default on all up to 1000 arms. Tests of arms are the same.
        ε and `upper_bounds` rest on these pairs.
    expect : float, optional
        The gap between the best arm and the second that you expect, in units of the reward. A hint about the
        order of magnitude: boundaries are then tightest around it, and looked at more often near the end.
        Right within a factor of two it saves about a tenth of the rounds; wrong by a factor of ten it costs
        many more. Claims hold whatever the gap is.

    Examples
    --------
    >>> policy = AnytimeElimination(delta=0.1)
    >>> state = policy.start(ArmSet([[0.0], [1.0]]))
    >>> policy.plan(state).probabilities.tolist()
    [0.5, 0.5]
    """

    delta: float = 0.05
    epsilon: float = 0.0
    goal: str = "identify"
    rewards: tuple[float, float] | None = None
    confidence: Confidence = None  # type: ignore[assignment]  # never None once made
    baseline: Baseline = BASELINE
    growth: float = 0.01
    mixing: float = 0.02
    pilot: int | None = None
    pairs: str = "auto"
    expect: float | None = None

    def __post_init__(self) -> None:
        check_fraction("delta", self.delta)
        check_choice("goal", self.goal, GOALS)
        check_choice("pairs", self.pairs, PAIRS)
        check_positive("growth", self.growth)
        check_fraction("mixing", self.mixing)
        if not 0 <= self.epsilon < np.inf:
            raise ParameterError(Argument("epsilon", self.epsilon), " must be a finite number of at least 0")
        object.__setattr__(self, "confidence", _mode(self.rewards, self.confidence))
        if self.epsilon > 0 and not self.confidence.takes_values:
            raise ParameterError(
                Argument("epsilon", self.epsilon),
                f" needs bounds on gaps, and {self.confidence} tells their signs alone; leave epsilon out",
            )
        check_baseline(self.baseline)
        if self.pilot is not None:
            check_whole("pilot", self.pilot, least=4)
        if self.expect is not None:
            check_positive("expect", self.expect)

    @property
    def interval_delta(self) -> float:
        """Part of δ that the policy leaves for the intervals that are shown beside its claims."""
        return SHOWN * self.delta

    def start(
        self,
        arms: ArmSet,
        batch: tuple[int, ...] = (),
        *,
        seed: int = 0,  # noqa: ARG002
        replications: Any = None,  # noqa: ARG002
    ) -> AnytimeState:
        """Return the state before the first round; the policy draws no random numbers."""
        self._check_shape(arms)
        if not self.follows_all_pairs(arms):
            return Leaders.start(self, arms, batch)
        runs = int(np.prod(batch, dtype=np.int64))
        check_fits(f"{type(self).__name__}(pairs='all')", PAIRED * runs * len(arms) ** 2, "pairs='leader'")
        return AllPairs.start(self, arms, batch)

    def _check_shape(self, arms: ArmSet) -> None:
        """Refuse arms that share features where a contrast must rest on its two arms alone."""
        if not self.confidence.takes_values and arms.dimension < len(arms) - 1:
            raise ParameterError(
                f"{self.confidence} compares two arms by their own rewards, and these {len(arms)} arms share"
                f" {arms.dimension} features; give ArmSet.one_hot({len(arms)}), or another confidence"
            )

    def follows_all_pairs(self, arms: ArmSet) -> bool:
        """Tell whether evidence is kept on all pairs of these arms, or on those with arms that have led."""
        return self.pairs == "all" or (self.pairs == "auto" and len(arms) <= MOST_PAIRED)

    def plan(self, state: AnytimeState) -> Plan:
        """Return the plan in force, with the rounds that are left of it."""
        left = np.where(state.declared >= 0, FOREVER, state.length - state.late - state.tally.rounds)
        centre = self.confidence.centre(state.values, state.probabilities > 0)
        rivals = rivals_of(state.active, state.leader, state.values)
        if not self.confidence.is_exact:
            # What the level is like is not known before the warm-up; such rounds are no evidence.
            rivals = np.where(state.stage[..., np.newaxis] > Stage.WARM_UP, rivals, -1)
        # One arm alone teaches nothing about others, should an arm be added while such rounds are in flight.
        rivals = np.where(np.asarray(state.declared >= 0)[..., np.newaxis], -1, rivals)
        return Plan(state.probabilities, left, centre, state.plans, rivals)

    def observe(self, state: AnytimeState, plan: Plan, tally: Tally) -> AnytimeState:
        """Return the state after the tallied rounds; arms are dropped when a batch is complete."""
        check_observed(self.plan(state), plan, tally)
        self.confidence.check_residuals(tally)
        return state.observe(tally).close_batches(self)

    def late(self, state: AnytimeState, plan: Plan, tally: Tally) -> AnytimeState:
        """Return the state after rounds that were drawn under an earlier plan and came in after its end.

        They count for their own plan: boundaries hold in the order of draws, however late rewards are. Also
        takes rounds whose plan was restricted to some arms before they were drawn.

        Parameters
        ----------
        state : AnytimeState
        plan : Plan
            As :meth:`plan` returned it, or restricted to some arms and renormalised.
        tally : Tally
        """
        check_late(self.plan(state), plan, tally)
        self.confidence.check_residuals(tally)
        return state.count_late(self.confidence, [Batch(plan, tally)]).close_batches(self)

    def decide(self, state: AnytimeState) -> Decision:
        """Return what is known now.

        The best arm is ever dropped with probability at most δ, and on the same event the leader is within
        `epsilon` of it: the largest upper bound on what a survivor could be better by. Where evidence is on
        pairs with leaders alone, it rests on rounds since the present one first led, and is infinite until
        there are some, and while more than 5,000 arms are left if no `epsilon` is set.
        """
        return Decision(
            active=state.active,
            leader=state.leader,
            declared=state.declared,
            epsilon=state.epsilon,
            certainty=1 - self.delta,
            mode=self.confidence.name,
        )

    def upper_bounds(self, state: AnytimeState, *, of: int | None = None, over: int | None = None) -> Array:
        """Return the most that each arm can be better than each other, (..., K, K).

        Entry (i, j) bounds (x_i − x_j)ᵀθ. For any arm i, with probability 1 − δ all bounds of its row hold at
        all times at once. So whichever arm is best, it is better than j by at most the largest entry of
        column j. Infinite where nothing is known yet; where evidence is on pairs with leaders alone, that
        is in every column of an arm that has not led, and in every row of an arm that was dropped.

        Parameters
        ----------
        state : AnytimeState
        of, over : int, optional
            One row or one column (..., K) alone: what this arm can be better by than each, or each than it.
        """
        if of is not None and over is not None:
            raise ParameterError(
                Argument("of", of),
                f" and over={over} would be a single pair; give one of them, and take its entry",
            )
        for name, arm in (("of", of), ("over", over)):
            if arm is not None:
                check_whole(name, arm, least=0, most=len(state.arms) - 1)
        bounds = state.upper_bounds(self.confidence, of, over)
        # Sums that have no more than the sign of a gap bound none.
        return bounds if self.confidence.takes_values else np.where(bounds == 0, bounds, np.inf)

    def retire(self, state: AnytimeState, arm: int) -> AnytimeState:
        """Take an arm out of the race and out of all further plans, whatever is known about it.

        Rounds of the plan in force that were observed count; later ones under it are refused. Tests that the
        arm took part in start again with the next draw, with half of what is left of the 1 % of δ kept in
        reserve, and arms that only they had dropped come back. From now on the claims are about the best of
        the arms that are left. They hold with probability 1 − δ for each choice of arms that does not depend
        on the rewards; if it does, as when the seeming best is retired, with 1 − mδ, m being the number of
        arms that could have become the best of the rest.

        Parameters
        ----------
        state : AnytimeState
        arm : int
            In every replication.
        """
        if not 0 <= arm < len(state.arms):
            raise ParameterError(Argument("arm", arm), f" is not an arm; arms are 0 to {len(state.arms) - 1}")
        last = state.retired.sum(axis=-1) >= len(state.arms) - 1
        if np.any(last & ~state.retired[..., arm]):
            raise ParameterError(
                Argument("arm", arm), " is the last that is not retired; an experiment needs an arm"
            )
        runs = [retire_arm(state[place], self, arm) for place in np.ndindex(state.batch)]
        return type(state).stack(runs, state.batch)

    def extend(self, state: AnytimeState, arms: ArmSet) -> AnytimeState:
        """Add arms to the race; all that is known about the others stays.

        Tests of new arms and evidence on new pairs start now, with boundaries tuned by the data so far.
        Failure probability for bounds of old arms on new ones comes from the 1 % of δ kept in reserve, half
        of what is left at each extension. So the claims are about the best of all arms, new
        ones included, with probability 1 − δ; see :meth:`retire` if the choice depends on rewards.

        Parameters
        ----------
        state : AnytimeState
        arms : ArmSet
            The arms so far, in the same order, followed by the new ones. They may have more features than
            before, which are 0 for the arms so far: ``ArmSet.one_hot(4)`` extends ``ArmSet.one_hot(3)``.
        """
        self._check_shape(arms)
        old = state.arms.features
        new = arms.features[: len(state.arms)]
        width = old.shape[1]
        if len(arms) <= len(old) or not np.array_equal(new[:, :width], old) or new[:, width:].any():
            raise ParameterError(f"arms must begin with the {len(old)} arms so far, and add at least one")
        runs = [add_arms(state[place], self, arms) for place in np.ndindex(state.batch)]
        return type(state).stack(runs, state.batch)

    def renumber(self, state: AnytimeState, number: int | None = None) -> AnytimeState:
        """Return the state with the plan in force under another number, the next by default.

        For those who draw from it by number, and have drawn from it together with something else so far, or
        whose plans somebody else has made meanwhile.
        """
        plans = state.plans + 1 if number is None else np.full_like(state.plans, number)
        return replace(state, plans=np.asarray(plans)).frozen()

    def conclude(self, state: AnytimeState, arm: int) -> AnytimeState:
        """Return the state in which somebody else has declared an arm, whose claim stands.

        For experiments that another release has decided: its claim held with probability 1 − δ when it was
        made, whatever this release would make of the same rounds.
        """
        check_whole("arm", arm, least=0, most=len(state.arms) - 1)
        is_settled = np.ones(state.batch, dtype=np.bool_)
        out = state.declare(np.full(state.batch, arm), is_settled)
        active = out.active | (np.arange(len(state.arms)) == arm)
        if not self.epsilon:
            active = np.broadcast_to(np.arange(len(state.arms)) == arm, active.shape)
        epsilon = np.minimum(out.epsilon, self.epsilon)
        out = replace(out, epsilon=np.asarray(epsilon))
        parts = [(at, out[at]) for at in np.ndindex(state.batch)]
        runs = [(at, run, run.conclude(self, arm, np.array(active[at]))) for at, run in parts]
        return out.with_runs(runs, out.tally)

    def dump(self, state: AnytimeState) -> dict[str, Any]:
        """Return the state as plain lists and numbers that survive ``json.dumps`` exactly."""
        return state.dump()

    def load(self, arms: ArmSet, data: dict[str, Any]) -> AnytimeState:
        """Invert :meth:`dump`."""
        check_state(data)
        return Leaders.load(arms, data) if MARK in data else AllPairs.load(arms, data)


def anytime_elimination(
    delta: float = 0.05,
    epsilon: float = 0.0,
    goal: str = "identify",
    confidence: str | None = None,
    low: float | None = None,
    high: float | None = None,
    sigma: float | None = None,
    clip: float | None = None,
    baseline: str = "arma",
    rate: float | None = None,
    lags: int | None = None,
    ridge: float | None = None,
    period: float | None = None,
    growth: float = 0.01,
    mixing: float = 0.02,
    pilot: int | None = None,
    pairs: str = "auto",
    expect: float | None = None,
) -> AnytimeElimination:
    """Return the policy from words and numbers in place of objects, as a command line gives them.

    Parameters
    ----------
    delta, epsilon, goal, growth, mixing, pilot, pairs, expect
        As in :class:`AnytimeElimination`.
    confidence : {"asymptotic", "bounded", "sub-gaussian", "same-shape"}, optional
        The exact ones need `low` and `high`; `sigma` (1 by default) belongs to "sub-gaussian", and `clip` to
        "same-shape", which is for arms that differ by location only and false for others. By default
        "bounded" where `low` and `high` are given, "sub-gaussian" where `sigma` is too.
    baseline : {"none", "mean", "exponential", "arma", "autoregressive", "seasonal"}
        `rate` belongs to "exponential", `lags` to the last three, `ridge` to "arma", for which it is 10 by
        default, and "autoregressive", `period` to "seasonal".

    Examples
    --------
    >>> anytime_elimination(low=0.0, high=1.0).confidence
    Bounded(low=0.0, high=1.0)
    """
    if baseline == "arma" and ridge is None:
        ridge = BASELINE.ridge
    forecasts = {"rate": rate, "lags": lags, "ridge": ridge, "period": period}
    return AnytimeElimination(
        delta=delta,
        epsilon=epsilon,
        goal=goal,
        confidence=_make_confidence(confidence, low=low, high=high, sigma=sigma, clip=clip),
        baseline=_make("baseline", BASELINES, baseline, forecasts),
        growth=growth,
        mixing=mixing,
        pilot=pilot,
        pairs=pairs,
        expect=expect,
    )


def _make_confidence(name: str | None, **settings: float | None) -> Confidence:
    if name is None:
        said = [setting for setting, value in settings.items() if value is not None]
        if "clip" in said:
            raise ParameterError(
                "clip needs confidence='same-shape'; ask for it by name, because its guarantee is narrower"
            )
        name = "sub-gaussian" if "sigma" in said else "bounded" if said else "asymptotic"
    return _make("confidence", CONFIDENCES, name, settings)


def _make(
    what: str, makers: Mapping[str, Callable[..., T]], name: str, settings: Mapping[str, float | None]
) -> T:
    """Call the maker of this name; raise if a setting would go unused or is missing."""
    check_choice(what, name, makers)
    given = {setting: value for setting, value in settings.items() if value is not None}
    takes = inspect.signature(makers[name]).parameters
    for setting, value in given.items():
        if setting not in takes:
            raise ParameterError(Argument(what, name), f" takes no {setting}; leave out {setting}={value!r}")
    for setting, parameter in takes.items():
        if parameter.default is inspect.Parameter.empty and setting not in given:
            raise ParameterError(Argument(what, name), f" needs {setting}, a number; give {setting}=…")
    return makers[name](**given)
