"""One metric of a log, followed bucket by bucket: forecast, residuals, evidence on every gap."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from orthobandit._foundation.types import Array, Whole
from orthobandit.estimate import ContrastSequence, Evidence, Tuning
from orthobandit.estimate.augmented import Pulls
from orthobandit.estimate.confidence.evidence import Seen, weights_of
from orthobandit.estimate.confidence.one_look import Sides
from orthobandit.estimate.confidence.sequence import Path, guess_noise, pairs_of, start_gaps
from orthobandit.estimate.confidence.tightness import GUESSED_ROUNDS
from orthobandit.estimate.follow.averages import Aim, Score, Spread
from orthobandit.estimate.follow.cells import Block, Cells, Counted, Feeds, Measure, Timeline
from orthobandit.estimate.forecast.buckets import Chooser, Levels

PILOT = 20  # rows, or five an arm, that come before the first that counts: they give level and scatter
ROWS = 4  # of a bucket, at least, for its scatter to tell anything; buckets with fewer are joined
MOMENTS = 200  # at which the evidence is kept for the picture over time
MANY_PLANS = 1_000  # from which on weights of arms that share nothing are computed by their closed form
MOST_PULLS = 5_000_000  # numbers that the weights of all plans may take to be kept
BESIDE = "mean"  # what others are compared with; it saves nothing itself, nor does the forecast 0


class ArmValues:
    """The estimated value of each arm over the reference arm, from all earlier steps.

    Residuals of a step are taken from these values, and its residuals determine the values of the next step.
    This must go step by step, so only the evidence on the gaps to the reference arm is kept.

    Parameters
    ----------
    sequence : ContrastSequence
        Its first K − 1 contrasts are the gaps to the reference arm.
    reference : int

    Attributes
    ----------
    now : (K,) array
        The values.
    """

    def __init__(self, sequence: ContrastSequence, reference: int) -> None:
        self._arms = sequence.arms
        self._mode = sequence.confidence
        self._reference = reference
        count = len(self._arms)
        self._others = np.delete(np.arange(count), reference)
        # Only gaps to the reference arm: values of the arms follow from them, and each step must be quick.
        self._totals, self._variances, self._pooled = (np.zeros(count - 1) for _ in range(3))
        self._relative = np.zeros(count)
        self._drawn = np.zeros(count)
        self._weights = np.zeros(count - 1)
        self._span = float(np.subtract(*self._mode.range[::-1]))
        self._linear: Array | None = None
        if self._arms.dimension < count - 1:  # not any values are linear in the features
            positions = self._arms.positions - self._arms.positions[reference]
            self._linear = positions @ np.linalg.pinv(positions)
        self.now = np.zeros(count)

    def begin(self, block: Block, probabilities: Array, pulls: Pulls, tuning: Tuning) -> None:
        """Prepare a block: everything that depends on its plans (T, K) and counts, and not on rewards.

        How a residual of arm a pulls at a gap is w·g(a); its square counts w²g(a)² in the variance, and
        w²·max(v, Σ p·g²·loudness) times all squares of the plan in what is pooled.
        """
        m = len(self._others)
        edges = np.append(block.first, len(block.plans))
        factor = np.where(pulls.known, pulls.variance, np.inf)[:, :m]
        tuned = Tuning(tuning.alpha[:m], tuning.rho[:m], tuning.scale[:m])
        weights = weights_of(factor, pulls.reach[:, :m], tuned, self._mode)
        pull = weights[..., np.newaxis] * pulls.pull[:, :m]
        self._pull = np.ascontiguousarray(np.swapaxes(pull, 1, 2))
        self._squared = self._pull**2
        self._shares = pull**2 * probabilities[:, np.newaxis]
        self._least = weights**2 * pulls.variance[:, :m]
        moved = weights * block.counts.sum(axis=1, keepdims=True)
        self._moved = np.add.reduceat(moved, block.first, axis=0)
        # Weights do not depend on rewards, so those of all steps of the block are known before the first.
        self._weight = self._weights + np.cumsum(self._moved, axis=0)
        drawn = self._drawn + np.cumsum(block.arms, axis=0)
        self._weights = self._weight[-1]
        self._drawn = drawn[-1]
        self._undrawn = (drawn == 0).astype(np.float64)
        self._per_draw = (1.0 - self._undrawn) / np.maximum(drawn, 1.0)
        self._per_row = np.divide(1.0, block.counts, out=np.zeros_like(block.counts), where=block.counts > 0)
        self._block = block
        self._slices = [slice(*ends) for ends in pairwise(edges.tolist())]

    def learn(self, step: int, forecast: float) -> None:
        """Learn from one step of the block, whose level was forecast."""
        some = self._slices[step]
        line = self._block.lines[0]
        now = self.now
        n = self._block.counts[some]
        s = line.sums[some]
        shift = forecast + now
        sums = s - n * shift
        # As in a tally, but for rounding: Σ(y − shift)² is at least what the mean alone gives.
        squares = np.maximum(line.squares[some] - shift * (s + sums), sums * sums * self._per_row[some])
        size = len(self._others)
        self._totals += self._moved[step] * (now[self._others] - now[self._reference])
        self._totals += sums.ravel() @ self._pull[some].reshape(-1, size)
        self._variances += squares.ravel() @ self._squared[some].reshape(-1, size)
        by_arm = squares.sum(axis=0)
        total = float(by_arm.sum())
        arms = self._block.arms[step]
        self._relative += by_arm * (float(arms.sum()) / total) if total > 0 else arms
        loudness = self._relative * self._per_draw[step] + self._undrawn[step]
        self._pooled += squares.sum(axis=1) @ np.maximum(self._least[some], self._shares[some] @ loudness)
        self._estimate(self._totals, self._weight[step], self._larger(self._variances, self._pooled))

    def learn_from(self, evidence: Evidence) -> None:
        """Set the values from evidence."""
        m = len(self._others)
        variance = self._larger(evidence.variances, evidence.pooled)[:m]
        self._estimate(evidence.totals[:m], evidence.weights[:m], variance)

    def _larger(self, variances: Array, pooled: Array) -> Array:
        """Return the larger of variances and pooled variances; exact modes need no pooled ones."""
        return variances if self._mode.is_exact else np.maximum(variances, pooled)

    def _estimate(self, totals: Array, weights: Array, variance: Array) -> None:
        """Shrink each gap by how much of its square is noise, and make the values linear in the features."""
        some = np.where(weights > 0, weights, 1.0)
        gaps = np.where(weights > 0, totals / some, 0.0)
        squares = gaps**2
        total = squares + variance / some**2
        now = np.zeros(len(self.now))
        # gap²/(gap² + variance): a gap that is all noise is shrunk to nothing, one that is sure stays.
        now[self._others] = gaps * squares / np.where(total > 0, total, 1.0)
        if self._linear is not None:
            now = self._linear @ now
        # Values further apart than rewards can be would put residuals outside the declared range.
        self.now = now if self._span == np.inf or np.ptp(now) <= self._span else np.zeros(len(now))


class Pilot(NamedTuple):
    """The first steps, which do not count: how many steps and rows, and their squared residuals."""

    steps: int
    rows: float
    squares: float

    @property
    def noise(self) -> float:
        """Standard deviation of a residual."""
        return float(np.sqrt(max(self.squares, 0.0) / self.rows))


@dataclass(frozen=True, eq=False)
class Walked:
    """Forecasts and arm values of one block.

    Attributes
    ----------
    forecasts, plain : (S,) arrays
        Of the level of the series, kept to the declared range, and of the plain metric.
    values : (S + 1, K) array
        Of the arms, before each step and after the last.
    ahead : sequence of dict
        What every baseline forecast of the series.
    """

    forecasts: Array
    plain: Array
    values: Array
    ahead: list[dict[str, float]]


@dataclass
class _Line:
    """Level and choice of baseline of one line."""

    levels: Levels
    chooser: Chooser


class Walk:
    """Goes through the steps of a timeline, once.

    Parameters
    ----------
    timeline : Timeline
    measure : Measure
    width : float
        Length of a bucket.
    is_clock : bool
        Whether times are seconds since 1970.
    """

    def __init__(self, timeline: Timeline, measure: Measure, width: float, *, is_clock: bool) -> None:
        self._timeline = timeline
        self._confidence = measure.confidence
        self._lines = [_Line(Levels(width, is_clock), Chooser(measure.baseline)) for _ in timeline.sums]

    @property
    def used(self) -> dict[str, float]:
        """Rows that each baseline was used for."""
        return self._lines[0].chooser.used

    def pilot(self, count: int) -> Pilot:
        """Go through the first steps, which do not count, until level and scatter are known.

        Parameters
        ----------
        count : int
            Number of arms; their values are 0 as yet.
        """
        timeline = self._timeline
        rows = 0.0
        left = 0.0
        for step in range(len(timeline.rows)):
            # Scatter must have been seen where nothing else tells of it.
            is_known = left > 0 or self._confidence.is_exact
            if is_known and rows >= max(PILOT, 5 * count):
                return Pilot(step, rows, left)
            levels = timeline.levels(step, 0.0)
            n = float(timeline.rows[step])
            m = levels[0]
            left += float(timeline.squares[step] - 2.0 * m * timeline.sums[0][step] + n * m**2)
            rows += n
            self._learn(step, self._ahead(step), levels)
        return Pilot(len(timeline.rows), rows, left)

    def through(self, block: Block, values: ArmValues) -> Walked:
        """Forecast and learn every step of a block that `values` were prepared for."""
        forecasts = list[float]()
        plain = list[float]()
        every = list[dict[str, float]]()
        worth = [values.now]
        for place in range(len(block.first)):
            step = block.start + place
            now = values.now
            ahead = self._ahead(step)
            # Chosen by how baselines did on earlier buckets: the choice is known before the draws as well.
            chosen = [line.chooser.choose(one) for line, one in zip(self._lines, ahead, strict=True)]
            self._lines[0].chooser.note(chosen[0], float(self._timeline.rows[step]))
            forecasts.append(self._kept(ahead[0][chosen[0]], now))
            plain.append(ahead[-1][chosen[-1]])
            every.append(ahead[0])
            # From here on the bucket has been seen; everything above used earlier ones alone.
            values.learn(place, forecasts[-1])
            worth.append(values.now)
            self._learn(step, ahead, self._timeline.levels(step, float(block.arms[place] @ now)))
        return Walked(np.array(forecasts), np.array(plain), np.stack(worth), every)

    def _kept(self, forecast: float, values: Array) -> float:
        """Return a forecast clipped to what the declared range allows."""
        if not self._confidence.is_exact:
            return forecast
        centre = self._confidence.centre(values, np.ones(len(values), dtype=np.bool_))
        return float(np.clip(forecast, centre.low, centre.high))

    def _ahead(self, step: int) -> list[dict[str, float]]:
        """Return every baseline's forecast of each line."""
        time = float(self._timeline.times[step])
        out = []
        for line, taken in zip(self._lines, self._timeline.taken, strict=True):
            off = float(taken[step])
            out.append({name: value + off for name, value in line.levels.forecasts(time).items()})
        return out

    def _learn(self, step: int, ahead: list[dict[str, float]], levels: list[float]) -> None:
        """Learn the level of each line."""
        rows = float(self._timeline.rows[step])
        time = float(self._timeline.times[step])
        taken = self._timeline.taken
        for line, forecasts, level, off in zip(self._lines, ahead, levels, taken, strict=True):
            line.chooser.learn(forecasts, level, rows)
            line.levels.learn(time, level - float(off[step]), rows)


class Savings:
    """The share of the variance that each baseline saves, compared with a running mean on the same rows."""

    def __init__(self) -> None:
        self._left: dict[str, float] = {}
        self._beside: dict[str, float] = {}

    def add(self, block: Block, ahead: Sequence[dict[str, float]], values: Array) -> None:
        """Add every baseline's forecast of the level of each step, with the values (S, K) of the arms."""
        names = dict.fromkeys(name for one in ahead for name in one if name != "none")
        made = {name: np.array([one.get(name, np.nan) for one in ahead]) for name in names}
        squares = dict(zip(names, block.squared(0, list(made.values()), values), strict=True))
        for name, left in squares.items():
            if name != BESIDE:
                there = np.isfinite(made[name])
                self.beside(name, float(left[there].sum()), float(squares[BESIDE][there].sum()))

    def beside(self, name: str, left: float, usual: float) -> None:
        """Add squared residuals with something, and without it."""
        self._left[name] = self._left.get(name, 0.0) + left
        self._beside[name] = self._beside.get(name, 0.0) + usual

    def shares(self) -> dict[str, float]:
        """Return the share of the variance that each saved; negative if it made things worse."""
        return {
            name: 1.0 - left / self._beside[name] if self._beside[name] > 0 else 0.0
            for name, left in self._left.items()
        }


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The evidence at the end of a bucket, and the share (K,) of its rows that each arm had."""

    bucket: int
    rows: int
    level: float
    forecast: float | None
    sequence: ContrastSequence
    shares: Array


@dataclass(frozen=True, eq=False)
class Centres:
    """Forecasts and arm values subtracted from the rewards of consecutive steps, known before their draws.

    Attributes
    ----------
    start : int
        The first of the steps.
    forecasts, plain : (S,) arrays
        Of the level of the series that is followed, and of the plain metric.
    values : (S, K) array
        Of the arms.
    """

    start: int
    forecasts: Array
    plain: Array
    values: Array


class Follower:
    """Follows one metric through the buckets of a log.

    For every bucket the coefficients of the series (metric less covariates, or less a ratio times another),
    the forecast of its level and the values of the arms come from earlier buckets: residuals are centred by
    what was known before any of its arms was drawn. The first buckets, the pilot, do not count: they give the
    level and the scatter, and the boundaries are fixed from the pilot's plans.

    Attributes
    ----------
    pairs : (m, 2) array of int
        Gaps that are followed: of every arm over the reference arm, then, unless there are many, of others.
    sequence : ContrastSequence or None
        The evidence on gaps; None if no bucket counted.
    scores : tuple of Score
        Averages over the rounds that counted: of the level of the reference arm, in the metric itself, then
        those asked for.
    sides : Sides
        What the rows weigh in each gap, for intervals at one look.
    rows : int
        That were counted.
    snapshots : list of Snapshot
    savings : Savings
    centres : list of Centres
        Forecasts and values of all steps that counted.
    feeds : Feeds or None
        What was counted, if it is recorded.
    """

    def __init__(self, cells: Cells, measure: Measure, aims: Sequence[Aim] = ()) -> None:
        self.cells = cells.with_rows(ROWS)
        self.measure = measure
        self.pairs = pairs_of(len(cells.arms), measure.reference)
        self.sequence: ContrastSequence | None = None
        self.scores: tuple[Score, ...] = ()
        self.sides = Sides.start(len(self.pairs), is_two_valued=measure.is_two_valued)
        self._plain_seen = Seen.start(len(cells.arms))
        self._aims = (Aim.level(cells.plans, measure.reference), *aims)
        self.rows = 0
        self.snapshots = list[Snapshot]()
        self.savings = Savings()
        self.centres = list[Centres]()
        self.feeds = Feeds() if measure.is_recorded else None
        self._times = cells.times
        self._used: dict[str, float] = {}
        self._pulls: Pulls | None = None
        # Bits are those of few plans, whose weights are kept, where the difference in time is none.
        self._is_separate = len(cells.plans) >= MANY_PLANS and cells.arms.dimension == len(cells.arms) - 1

    @property
    def baseline(self) -> str:
        """The baseline that was used for most rows."""
        return max(self._used, key=lambda name: self._used[name], default="mean")

    def level_ends(self, share: float = 1.0, *, once: bool) -> tuple[float, float]:
        """Return the ends of the average level of the reference arm, at a share of its δ.

        Parameters
        ----------
        share : float
        once : bool
            Whether they are for one look rather than for all times.
        """
        if not self.scores:
            return (-np.inf, np.inf)
        score = self.scores[0]
        low, high = score.interval_once(share * score.alpha) if once else score.interval(share)
        offset = float(self.cells.offset[self.measure.column])
        return low + offset, high + offset

    def run(self) -> Self:
        """Go through all buckets in the order of time."""
        cells = self.cells
        measure = self.measure
        if not cells.rows:
            return self
        timeline = Timeline(cells, measure)
        walk = Walk(timeline, measure, cells.width, is_clock=cells.is_clock)
        pilot = walk.pilot(len(cells.arms))
        if pilot.steps < len(timeline.buckets):
            self._times = timeline.times
            self._follow(timeline, walk, pilot)
            self._used = walk.used
        return self

    def _follow(self, timeline: Timeline, walk: Walk, pilot: Pilot) -> None:
        """Add all buckets after the pilot to the evidence."""
        cells = self.cells
        values = self._begin(self._pilot_noise(timeline, pilot), timeline.blocks.plans_of(pilot.steps))
        for block in timeline.blocks.from_step(pilot.steps, len(self.pairs)):
            pulls = self._pulls_of(block.plans)
            # Boundaries of gaps that the pilot could not tell are fixed by the first plans that can.
            self.sequence = self._begun.tuned_along(pulls, block.first)
            values.begin(block, cells.plans[block.plans], pulls, self.sequence.tuning)
            walked = walk.through(block, values)
            self._take_savings(block, walked)
            path = self._count(block, pulls, walked)
            self._keep(timeline, block, walked, path)

    def run_once(self) -> Self:
        """Look at the log as a whole: forecasts and values come from all rows instead of earlier buckets.

        Forecast and values are then not known before the draws. They are off by about 1/√n, and the weights
        g(a) have mean 0 in any case, so estimates are off by about 1/n, which does not matter for an ordinary
        interval at one look.
        """
        if not self.cells.rows:
            return self
        timeline = Timeline(self.cells, self.measure, is_once=True)
        block = timeline.blocks.block(0, 1)
        values = np.zeros(len(self.cells.arms))
        for _ in range(2):  # values of the arms are known the second time
            levels = [np.array([one]) for one in timeline.levels(0, float(block.arms[0] @ values))]
            squares = block.squared(0, levels[:1], values[np.newaxis])[0]
            pilot = Pilot(1, float(timeline.rows[0]), float(squares[0]))
            now = self._begin(pilot.noise, block.plans)
            self.rows = 0
            self._plain_seen = Seen.start(len(values))
            walked = Walked(levels[0], levels[-1], np.stack([values, values]), [])
            now.learn_from(self._count(block, self._pulls_of(block.plans), walked).evidence.at(0))
            values = now.now
        return self

    @property
    def _begun(self) -> ContrastSequence:
        if self.sequence is None:
            raise AssertionError("the sequence was begun")
        return self.sequence

    def _begin(self, noise: float, pilot: Whole) -> ArmValues:
        """Fix the boundaries from the noise and the plans of the pilot; return arm values, all 0."""
        count = len(self.cells.arms)
        sequence = self._start(noise)
        self.sequence = sequence.tuned_by(self.cells.plans[pilot])
        self.scores = self._start_scores(noise, [Spread.of(aim, pilot) for aim in self._aims])
        if not self._is_separate and len(self.cells.plans) * len(self.pairs) * count <= MOST_PULLS:
            self._pulls = Pulls.of(self.cells.arms.positions, sequence.coefficients, self.cells.plans)
        return ArmValues(sequence, self.measure.reference)

    def _start(self, noise: float) -> ContrastSequence:
        """Return the evidence on gaps before the first row that counts, its boundaries not fixed yet."""
        measure = self.measure
        self.centres = []
        self.sides = Sides.start(len(self.pairs), is_two_valued=measure.is_two_valued)
        # One event for all that is said of gaps: each pair that is followed has the same part of δ. A ratio
        # shares δ out by itself.
        gaps = len(self.cells.arms) - 1 if measure.denominator is not None else len(self.pairs)
        noise = self._noise_or_guess(noise)
        return start_gaps(self.cells.arms, self.pairs, measure.confidence, measure.delta / gaps, noise)

    def _start_scores(self, noise: float, spreads: Sequence[Spread]) -> tuple[Score, ...]:
        """Return the averages before the first row that counts, given what the pilot tells of each."""
        measure = self.measure
        # The level of the reference arm serves K − 1 lifts; what else is averaged stands alone.
        deltas = [measure.delta / (len(self.cells.arms) - 1), *[measure.delta] * (len(self._aims) - 1)]
        return tuple(
            Score(
                aim,
                measure.confidence,
                delta,
                noise=self._noise_or_guess(noise),
                rounds=GUESSED_ROUNDS,
                pilot=spread,
                is_two_valued=measure.is_two_valued,
            )
            for aim, delta, spread in zip(self._aims, deltas, spreads, strict=True)
        )

    def _noise_or_guess(self, noise: float) -> float:
        """Return the noise; a pilot of equal rewards has none, but boundaries must have a shape."""
        return noise or min(guess_noise(self.measure.confidence), 1.0)

    def _pilot_noise(self, timeline: Timeline, pilot: Pilot) -> float:
        """Return the standard deviation of the pilot around the means of its buckets; record its tallies."""
        block = timeline.blocks.block(0, pilot.steps)
        p = self.cells.plans
        means = np.array([timeline.levels(step, 0.0)[0] for step in range(pilot.steps)])
        values = np.zeros((pilot.steps, len(self.cells.arms)))
        steps = block.steps(p, means, values, self.measure.confidence.limit)
        if self.feeds is not None:
            begins = timeline.times[: pilot.steps]
            ends = block.ends(0, means, values)
            counted = Counted(block.plans, means, steps, block.lines[0].sums, ends)
            self.feeds.add(counted, begins, is_pilot=True)
        # From the tallies, as a certificate has them: what rounding leaves of no scatter is the same there.
        return float(np.sqrt(steps.tally.squares.sum() / pilot.rows))

    def _pulls_of(self, plans: Whole) -> Pulls:
        """Return the weights of some plans."""
        if self._is_separate:
            return Pulls.of_separate(self._begun.coefficients, self.cells.plans[plans])
        if self._pulls is not None:
            return self._pulls.of_plans(plans)
        return Pulls.of(self.cells.arms.positions, self._begun.coefficients, self.cells.plans[plans])

    def _take_savings(self, block: Block, walked: Walked) -> None:
        """Add the squared residuals of a block under every baseline, and with and without covariates."""
        values = walked.values[:-1]
        self.savings.add(block, walked.ahead, values)
        if self.measure.covariates:
            left = block.squared(0, [walked.forecasts], values)[0]
            usual = block.squared(1, [walked.plain], values)[0]
            self.savings.beside("covariates", float(left.sum()), float(usual.sum()))

    def _count(self, block: Block, pulls: Pulls, walked: Walked) -> Path:
        """Add residuals of a block to the evidence."""
        p = self.cells.plans
        values = walked.values[:-1]
        steps = block.steps(p, walked.forecasts, values, self.measure.confidence.limit)
        path = self._begun.along(steps, pulls)
        self.sequence = path.at(-1)
        ends = block.ends(0, walked.forecasts, values)
        factor = np.where(pulls.known, pulls.variance, np.inf)
        weights = weights_of(factor, pulls.reach, self.sequence.tuning, self.measure.confidence)
        self.sides = self.sides.add(
            weights[..., np.newaxis] * pulls.pull, steps.tally, block.lines[0].sums, ends
        )
        counted = Counted(block.plans, walked.forecasts, steps, block.lines[0].sums, ends)
        self.centres.append(Centres(block.start, walked.forecasts, walked.plain, values))
        scores = list(self.scores)
        if self.measure.covariates:  # lifts are relative to the level of the plain metric
            tally = block.tally(1, walked.plain, values)
            ends = block.ends(1, walked.plain, values)
            beside = Counted(
                block.plans, walked.plain, replace(steps, tally=tally), block.lines[1].sums, ends
            )
            seen = self._plain_seen.along(beside.steps.whole)
            scores.pop(0).add(beside, seen)
            self._plain_seen = seen.at(-1)
        for score in scores:
            score.add(counted, path.seen)
        if self.feeds is not None:
            self.feeds.add(counted, self._times[block.start : block.stop])
        self.rows += int(block.counts.sum())
        return path

    def _keep(self, timeline: Timeline, block: Block, walked: Walked, path: Path) -> None:
        """Keep snapshots at the ends of some buckets."""
        # A log of a million buckets is followed in full; pictures and the test of drift need no more moments.
        shown = np.unique(np.linspace(0, len(timeline.buckets) - 1, MOMENTS).astype(int))
        rows = timeline.rows[block.start : block.stop]
        before = self.rows - int(rows.sum()) + np.cumsum(rows)
        for step in shown[(shown >= block.start) & (shown < block.stop)].tolist():
            place = step - block.start
            arms = block.arms[place]
            level = timeline.levels(step, float(arms @ walked.values[place + 1]))[0]
            self.snapshots.append(
                Snapshot(
                    bucket=int(timeline.buckets[step]),
                    rows=int(before[place]),
                    level=level,
                    forecast=float(walked.forecasts[place]),
                    sequence=path.at(place),
                    shares=arms / rows[place],
                )
            )
