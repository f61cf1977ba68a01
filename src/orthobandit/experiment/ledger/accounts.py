"""State learnt from settled proposals: the policy, each metric's forecasts and intervals, health, holdout."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orthobandit._foundation.types import Array, Whole
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError, RewardError
from orthobandit.estimate import Confidence, Plan, Tally
from orthobandit.estimate.follow.guardrails import Judged, judge, judge_ends
from orthobandit.estimate.follow.rounds import GapIntervals, Sums
from orthobandit.estimate.forecast.baselines import Baseline
from orthobandit.estimate.forecast.rounds import RoundForecasts
from orthobandit.experiment.ledger.guarded import GuardedIntervals, check_guards_fit
from orthobandit.experiment.ledger.health import Watch
from orthobandit.experiment.ledger.personal_feed import PersonalFeed
from orthobandit.experiment.ledger.policy_feed import PolicyFeed
from orthobandit.experiment.ledger.settling import Settled, Waiting
from orthobandit.experiment.ledger.snapshot import pack
from orthobandit.experiment.settings import Settings
from orthobandit.policy.contextual.rules import RuleComparison


class Accounts:
    """Everything that is updated by settled proposals, in the order of draws.

    Parameters
    ----------
    settings : Settings

    Attributes
    ----------
    arms : ArmSet
    waiting : Waiting
        Proposals that are not settled.
    feed : PolicyFeed
        The policy and the data it is fed.
    level_forecasts, gap_intervals : lists
        Forecasters and intervals, one per metric.
    comparisons : list of RuleComparison
        Effects of rules on each metric after the objective, if the experiment is personalised.
    watch : Watch
        Health checks: whether the assumptions behind the claims hold.
    holdout : list of Sums
        Rewards of the holdout, one per metric.
    drawn, silent : (K,) arrays of int
        Settled proposals of each arm, and those without a reward.
    retirements : list of (int, str)
        Arms that were taken out, with reasons.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.arms = settings.arms
        self.waiting = Waiting(len(settings.metrics))
        self.feed = self._feed_class(settings.policy, self.arms, self._guarded_by)
        self.level_forecasts = [
            RoundForecasts(self._baseline(place)) for place in range(len(settings.metrics))
        ]
        self.gap_intervals = [self._new_intervals(place) for place in range(len(settings.metrics))]
        self.comparisons = self._new_comparisons()
        self.watch = self._new_watch()
        self.holdout = [Sums(len(self.arms)) for _ in settings.metrics]
        self.drawn, self.silent = (np.zeros(len(self.arms), dtype=np.int64) for _ in range(2))
        self.retirements: list[tuple[int, str]] = []
        self._taking: set[int] = set()  # distributions of proposals that are being taken in

    @property
    def is_personal(self) -> bool:
        """Whether every visitor has a plan of their own."""
        return self.settings.is_personal

    @property
    def _feed_class(self) -> type[PolicyFeed]:
        return PersonalFeed if self.is_personal else PolicyFeed

    @property
    def _guarded_by(self) -> int | None:
        """The arm that guardrails compare with, if there are any."""
        return self.settings.reference if self.settings.guardrails and not self.is_personal else None

    def _new_intervals(self, place: int) -> GapIntervals:
        """Return empty intervals of one metric's gaps."""
        # One accounting of δ: a policy that says so leaves a part of its own to the objective's intervals.
        delta = getattr(self.settings.policy, "interval_delta", None) if place == 0 else None
        metric = self.settings.metrics[place]
        own = metric.delta if delta is None else delta
        # Gaps that differ from visitor to visitor have no sequence of their own: rules are compared instead.
        follows = not self.is_personal
        guarded = {rail.metric for rail in self.settings.guardrails} if follows else set()
        kind = GuardedIntervals if metric.name in guarded else GapIntervals
        return kind(self.mode(place), self.arms, self.settings.reference, own, follows=follows)

    def _new_comparisons(self) -> list[RuleComparison]:
        if not isinstance(self.feed, PersonalFeed):
            return []
        compare = self.feed.policy.compare
        return [compare(self.arms, metric.confidence, metric.delta) for metric in self.settings.metrics[1:]]

    def _new_watch(self) -> Watch:
        return Watch(self.arms, self.settings.reference, self.mode(0), is_constant=not self.is_personal)

    def _baseline(self, place: int) -> Baseline:
        own = self.settings.policy.baseline if place == 0 else None
        return self.settings.metrics[place].baseline if own is None else own

    def mode(self, place: int) -> Confidence:
        """Return the mode of confidence of a metric: the policy's own for the objective, if it can be shown.

        Where the policy clips residuals, its sums have the signs of gaps and not their sizes.
        """
        own = getattr(self.settings.policy, "confidence", None) if place == 0 else None
        return self.settings.metrics[place].confidence if own is None or not own.takes_values else own

    @property
    def _is_clipped(self) -> bool:
        """Whether the policy clips residuals, so that the objective's intervals need unclipped ones."""
        own = getattr(self.settings.policy, "confidence", None)
        return own is not None and not own.takes_values

    def metric(self, name: str) -> int:
        """Return the place of a metric by name."""
        names = self.settings.names
        if name not in names:
            raise RewardError(f"{name!r} is not a metric of this experiment; its metrics: {', '.join(names)}")
        return names.index(name)

    def take(self, ready: Settled) -> None:
        """Pass settled proposals to forecasts, intervals and the policy."""
        self._taking = set(ready.distributions.tolist())
        for run in ready.runs():
            self._take(run, ready)
        self._taking = set()

    def _take(self, run: Settled, ready: Settled) -> None:
        """Pass on settled proposals to forecasts, intervals and the policy, in this order.

        Parameters
        ----------
        run : Settled
            Successive proposals that share the distribution, the holdout flag and the known levels.
        ready : Settled
            All proposals that are being taken in, of which `run` is a part.
        """
        number = int(run.distributions[0])
        plan = self.feed.plans[int(run.distributions[0])]
        if not run.held[0]:
            self._count(number, run)
        for place, intervals in enumerate(self.gap_intervals):
            arms = run.arms
            values = run.values[place]
            forecasts = run.forecasts[place]
            kept = None
            if len(values) > 1 or values.item() != values.item():  # some may not have been told
                told = ~np.isnan(values)
                values = np.where(told, values, 0.0)
                kept = None if told.all() or self.settings.silence == "zero" else told
            self.level_forecasts[place].learn(values - self._values_of(place, plan)[arms], kept)
            if kept is not None:
                arms = arms[kept]
                values = values[kept]
                forecasts = forecasts[kept]
            if run.held[0]:
                self.holdout[place].add(arms, values)
                continue
            self._add_rounds(intervals, number, (arms, values, forecasts), run.informed[place, 0])
            if isinstance(self.feed, PersonalFeed):
                self._compare(place, number, (arms, values, forecasts), run.informed[place, 0])
            elif place == 0:
                level = forecasts if plan.centre is not None else 0.0
                self._feed(number, plan.residuals(arms, values, level), arms, ready)
        if self.watch.is_full:
            self._close_bucket()

    def _count(self, number: int, run: Settled) -> None:
        """Count settled proposals and silent ones by arm, for the report and the health checks."""
        silent = run.silent
        if len(run) == 1:  # most requests of a website are of one visitor
            arm = run.arms.item()
            self.drawn[arm] += 1
            self.silent[arm] += silent.item()
        else:
            np.add.at(self.drawn, run.arms, 1)
            np.add.at(self.silent, run.arms[silent], 1)
        self.watch.add(number, run.arms, silent)

    def _add_rounds(
        self, intervals: GapIntervals, number: int, rounds: tuple[Whole, Array, Array], is_informed: bool
    ) -> None:
        """Add rounds to a metric's intervals; in the asymptotic mode, only once its level is known."""
        arms, values, forecasts = rounds
        if is_informed or intervals.confidence.is_exact:
            intervals.add(number, arms, intervals.centre.residuals(arms, values, forecasts), forecasts)

    def _compare(
        self, place: int, number: int, rounds: tuple[Whole, Array, Array], is_informed: bool
    ) -> None:
        """Compare rules on a settled visitor; asymptotic metrics wait until their level is known."""
        feed = self.feed
        if not isinstance(feed, PersonalFeed):
            return
        if place == 0:
            feed.learn(number, *rounds)
            return
        before = self.comparisons[place - 1]
        if is_informed or before.confidence.is_exact:
            self.comparisons[place - 1] = feed.compare(before, number, *rounds)

    def _values_of(self, place: int, plan: Plan) -> Array:
        return plan.values if place == 0 else np.zeros(plan.count)

    def _feed(self, number: int, residuals: Array, arms: Whole, ready: Settled) -> None:
        """Feed residuals to the policy, and let it plan again whenever a batch is full."""
        while len(arms):
            count = self.feed.add(number, arms, residuals)
            arms = arms[count:]
            residuals = residuals[count:]
            if self.feed.is_full:
                # Proposals still belong to these: such as wait, are being taken in, or are in the bucket.
                in_use = {*self.waiting.distributions, *ready.distributions.tolist()}
                self.feed.flush(in_use | self.watch.distributions)

    def _close_bucket(self) -> None:
        taken = [intervals.flush(self.feed.plans) for intervals in self.gap_intervals]
        self.watch.close(self.feed.plans, taken[0])
        if isinstance(self.feed, PersonalFeed):
            self.feed.forget(self.waiting.distributions | self._taking)
        self._guard()

    def _guard(self) -> None:
        """Retire arms that a guardrail has proven worse than the reference arm; note which are cleared."""
        judged = self.judged()
        if not judged:
            return
        for one in judged:
            for arm in np.flatnonzero(one.harmed & ~self.feed.retired).tolist():
                if arm != self.settings.reference and np.count_nonzero(~self.feed.retired) > 1:
                    self.retire(arm, one.rail.reason)
        self.feed.clear(np.all([one.cleared for one in judged], axis=0))

    def judged(self) -> list[Judged]:
        """Return the current verdict of each guardrail on the arms; none if rules are judged instead."""
        if self.is_personal:
            return []
        all_intervals = [self.gap_intervals[self.metric(rail.metric)] for rail in self.settings.guardrails]
        return [
            judge(rail, intervals, self.feed.plans)
            for rail, intervals in zip(self.settings.guardrails, all_intervals, strict=True)
        ]

    def judged_rules(self) -> list[Judged]:
        """Return the current verdict of each guardrail on the rules, the reference arm for all first."""
        feed = self.feed
        if not isinstance(feed, PersonalFeed):
            return []
        out = []
        for rail in self.settings.guardrails:
            place = self.metric(rail.metric)
            comparison = self.comparisons[place - 1] if place else feed.state.comparison
            gains = comparison.gains()
            low = np.array([0.0, *(gain.low for gain in gains)])
            high = np.array([0.0, *(gain.high for gain in gains)])
            out.append(judge_ends(rail, low, high, comparison.deviation))
        return out

    def retire(self, arm: int, reason: str) -> None:
        """Retire an arm, unless it is retired already."""
        if self.feed.retired[arm]:
            return
        self.feed.retire(arm)
        self.retirements.append((arm, reason))

    def extend(self, arms: ArmSet) -> None:
        """Add arms."""
        labels = self.arms.labels
        if arms.labels[: len(labels)] != labels:
            raise ParameterError(f"labels must begin with {', '.join(map(repr, labels))}, the arms so far")
        if self._guarded_by is not None:
            check_guards_fit(arms)
        plans = self.feed.plans
        self.feed.extend(arms)  # first: it refuses arms that do not follow from those so far
        taken = [intervals.flush(plans) for intervals in self.gap_intervals]
        self.watch.close(plans, taken[0])
        self.watch.extend(arms)
        for intervals in self.gap_intervals:
            intervals.extend(arms, int(self.feed.plan.number))
        new = len(arms) - len(self.arms)
        self.arms = arms
        self.holdout = [Sums(len(arms), sums.padded(new)) for sums in self.holdout]
        self.drawn, self.silent = np.pad(self.drawn, (0, new)), np.pad(self.silent, (0, new))

    def to_json(self, pack: Callable[[NDArray[Any]], Any] = pack) -> dict[str, Any]:
        """Return the whole state as plain lists and numbers, exactly; `pack` encodes long arrays."""
        return {
            "arms": {"features": self.arms.features.tolist(), "labels": list(self.arms.labels)},
            "book": self.feed.to_json(),
            "levels": [level.to_json(pack) for level in self.level_forecasts],
            "tracks": [intervals.to_json() for intervals in self.gap_intervals],
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
            "watch": self.watch.to_json(),
            "holdout": [sums.tally.to_json() for sums in self.holdout],
            "waiting": self.waiting.to_json(pack),
            "drawn": self.drawn.tolist(),
            "silent": self.silent.tolist(),
            "retirements": [list(one) for one in self.retirements],
        }

    def load(self, data: Mapping[str, Any]) -> None:
        """Go on from what :meth:`to_json` returned."""
        settings = self.settings
        self.arms = ArmSet(data["arms"]["features"], data["arms"]["labels"])
        self.feed = self._feed_class.from_json(settings.policy, self.arms, data["book"], self._guarded_by)
        comparisons = zip(self._new_comparisons(), data["comparisons"], strict=True)
        self.comparisons = [blank.resumed(state) for blank, state in comparisons]
        self.watch = self._new_watch()
        self.watch.load(data["watch"])
        self.waiting = Waiting.from_json(data["waiting"], len(settings.metrics))
        for place in range(len(settings.metrics)):
            self.level_forecasts[place] = RoundForecasts(self._baseline(place), data["levels"][place])
            self.gap_intervals[place] = self._new_intervals(place)
            self.gap_intervals[place].load(data["tracks"][place])
            self.holdout[place] = Sums(len(self.arms), Tally.from_json(data["holdout"][place]))
        self.retirements = [(int(arm), str(reason)) for arm, reason in data["retirements"]]
        self.drawn, self.silent = (np.array(data[name], dtype=np.int64) for name in ("drawn", "silent"))
