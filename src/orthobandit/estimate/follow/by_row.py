"""One metric of a log whose rows have distributions of their own, followed bucket by bucket and row by row.

What a row weighs in the pooled variance depends on how loud its arms have been so far, so no GROUP BY can add
it up. The rows of a bucket are gone through twice: for the residuals of each arm, which tell how loud it is,
and for the scores. All that is kept are sums by bucket (docs/logs_derivations.md).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from orthobandit._foundation.types import Array, Mask, Whole
from orthobandit.estimate.augmented import LEAST, Pulls
from orthobandit.estimate.confidence.evidence import Carried, Evidence, Seen, least_draws, rests_on_unknown
from orthobandit.estimate.confidence.one_look import ROUNDING as WEIGHTLESS
from orthobandit.estimate.confidence.one_look import Sides
from orthobandit.estimate.confidence.sequence import ContrastSequence, Path
from orthobandit.estimate.follow import row_sums as of
from orthobandit.estimate.follow.averages import Spread
from orthobandit.estimate.follow.buckets import ArmValues, Centres, Follower, Pilot, Walk
from orthobandit.estimate.follow.cells import Block, Cells, Measure, Timeline
from orthobandit.estimate.follow.row_file import RowFile
from orthobandit.estimate.tally import Tally


@dataclass(frozen=True, eq=False)
class StepSums:
    """Sums by step, S of them; see :func:`~orthobandit.estimate.follow.row_sums.add_scores`.

    Attributes
    ----------
    residuals : (S, RESIDUALS, K) array
    gaps : (S, m, GAP_SUMS) array
    level : (S, LEVEL_SUMS) array
    beside : (S, K, 2, LEVEL_SUMS) array
    hidden : (S, m) array of bool
        Gaps that rest on arms that have hardly been drawn.
    """

    residuals: Array
    gaps: Array
    level: Array
    beside: Array
    hidden: Mask

    @classmethod
    def start(cls, steps: int, arms: int, gaps: int) -> "StepSums":
        """Return sums over nothing."""
        return cls(
            np.zeros((steps, of.RESIDUALS, arms)),
            np.zeros((steps, gaps, of.GAP_SUMS)),
            np.zeros((steps, of.LEVEL_SUMS)),
            np.zeros((steps, arms, 2, of.LEVEL_SUMS)),
            np.zeros((steps, gaps), dtype=np.bool_),
        )

    @cached_property
    def tally(self) -> Tally:
        """Residuals (S, K) of every step."""
        table = self.residuals
        return Tally(
            table[:, of.COUNT].astype(np.int64),
            table[:, of.SUM],
            table[:, of.SQUARE],
            table[:, of.LARGEST],
        )


class RowValues(ArmValues):
    """The values of the arms, learnt from the rows of a step; sums for all that is claimed come with them.

    Parameters
    ----------
    sequence : ContrastSequence
    measure : Measure
    pairs : (m, 2) array of int
    rows : StepRows
    """

    def __init__(self, sequence: ContrastSequence, measure: Measure, pairs: Whole, rows: "StepRows") -> None:
        super().__init__(sequence, measure.reference)
        count = len(sequence.arms)
        self.sequence = sequence
        self.first = np.zeros((count, 2))
        self.sides = np.zeros((len(pairs), 2, of.SIDE_SUMS))
        self.sums = StepSums.start(0, count, len(pairs))
        self._measure = measure
        self._pairs = pairs
        self._above, self._below = np.ascontiguousarray(pairs.T)
        self._rows = rows
        self._start = 0
        self._are_tuned = bool(sequence.tuning.rho.all())
        self._carried = np.zeros((3, len(pairs), 2))
        self._fewest = least_draws(sequence.tuning.alpha)
        self._column = rows.column(measure.column)

    def begin_rows(self, block: Block) -> None:
        """Prepare for the steps of a block."""
        self._start = block.start
        self.sums = StepSums.start(len(block.first), len(self.now), len(self._pairs))
        self.sides[...] = 0.0

    def learn(self, step: int, forecast: float) -> None:
        """Learn from one step of the block, whose level was forecast."""
        mode = self._mode
        rows = self._rows
        now = self.now
        shift = forecast + now
        residuals = self.sums.residuals[step]
        for part in rows.of_step(self._start + step):
            of.add_residuals(part, self._column, shift, mode.limit, residuals)
        loudness = np.empty(len(now))
        of.add_loudness(residuals, self._relative, self._drawn, loudness)
        if not self._are_tuned:
            # Boundaries of gaps that no row before could tell are fixed by the first step that can.
            found = rows.reaches([self._start + step], self._pairs, self._reference)[0]
            self.sequence = tuned_by_reaches(self.sequence, found)
            self._are_tuned = bool(self.sequence.tuning.rho.all())
        gaps = self.sums.gaps[step]
        for part in rows.of_step(self._start + step):
            of.add_scores(
                part,
                self._column,
                shift,
                loudness,
                self._pairs,
                self.sequence.tuning.scale,
                mode.limit,
                mode.is_exact,
                self._reference,
                gaps,
                self.sides,
                self.sums.level[step],
                self.sums.beside[step],
                self.first,
            )
        self._note_hidden(step)
        gaps[:, of.TOTAL] += gaps[:, of.WEIGHT] * (now[self._above] - now[self._below])
        own = gaps[: len(now) - 1]
        self._totals += own[:, of.TOTAL]
        self._weights = self._weights + own[:, of.WEIGHT]
        self._variances += own[:, of.VARIANCE]
        self._pooled += own[:, of.POOLED]
        self._estimate(self._totals, self._weights, self._larger(self._variances, self._pooled))

    def _note_hidden(self, step: int) -> None:
        """Note which gaps rest on arms that have hardly been drawn, in this step and all before."""
        for part in self._rows.of_step(self._start + step):
            of.add_carried(part, self._pairs, self._carried)
        self.sums.hidden[step] = rests_on_unknown(self._carried, self._fewest)


class StepRows:
    """The rows of each step of a timeline.

    Parameters
    ----------
    cells : Cells
        As the rows were counted, before small buckets are joined; some have rows that count.
    steps : (S,) array of int
        The first bucket of each step.
    """

    def __init__(self, cells: Cells, steps: Whole) -> None:
        if cells.own is None:
            raise AssertionError("rows have distributions of their own")
        self._file: RowFile = cells.own
        self._edges = np.append(steps, int(cells.bucket[-1]) + 1)
        # Cells of one segment are those of its rows alone.
        self._segment = int(cells.segment[0]) if cells.is_part else None

    def column(self, place: int) -> int:
        """Return where a column of the cells is in a row."""
        return 1 + self._file.arms + place

    def of_step(self, step: int) -> Iterator[Array]:
        """Yield the rows of a step, in parts."""
        first, last = int(self._edges[step]), int(self._edges[step + 1])
        yield from self._file.parts(self._file.ranges(first, last, self._segment))

    def reaches(self, steps: Iterable[int], pairs: Whole, reference: int) -> tuple[Array, Array]:
        """Return what boundaries are tuned by: see :func:`~.row_sums.add_reaches`."""
        gaps = np.zeros((len(pairs), 3))
        levels = np.zeros((self._file.arms, 6))
        for step in steps:
            for part in self.of_step(step):
                of.add_reaches(part, pairs, reference, gaps, levels)
        return gaps, levels


def tuned_by_reaches(sequence: ContrastSequence, gaps: Array) -> ContrastSequence:
    """Return the sequence with boundaries fixed by rows, of which only the extremes (m, 3) matter."""
    known, factor, scale = gaps.T
    one = np.where(known > 0, factor, 1.0)
    reach = np.where(known > 0, scale * one, LEAST)
    pulls = Pulls(
        np.zeros((1, *sequence.coefficients.shape)),
        one[np.newaxis],
        reach[np.newaxis],
        (known > 0)[np.newaxis],
    )
    return sequence.tuned_along(pulls, np.zeros(1, dtype=np.int64))


class RowFollower(Follower):
    """Follows one metric through the rows of a log; what it finds is what :class:`Follower` would find.

    Each row is a plan of its own. Where several rows of a bucket share one, :class:`Follower` joins them, and
    bounds the third powers of exact modes by the largest of them; here they are those of each row, which is
    all that their boundaries ask for.

    Attributes
    ----------
    sums : StepSums
        Of all steps that counted.
    pilot_levels : (K, 6) array
        What the pilot's rows tell of levels: see :func:`~.row_sums.add_reaches`.
    first : (K, 2) array
        1/p of each arm and of the reference arm in the first row that counts and could have drawn both.
    """

    def __init__(self, cells: Cells, measure: Measure) -> None:
        super().__init__(cells, measure)
        self._unjoined = cells.with_counts()
        self.sums = StepSums.start(0, len(cells.arms), len(self.pairs))
        self.pilot_levels = np.zeros((len(cells.arms), 6))
        self.first = np.zeros((len(cells.arms), 2))
        if self.feeds is not None:
            self.feeds.leave_out(int(self._unjoined.counts.sum()))

    def _follow(self, timeline: Timeline, walk: Walk, pilot: Pilot) -> None:
        """Add all rows after the pilot to the evidence."""
        measure = self.measure
        noise = self._pilot_noise(timeline, pilot)
        rows = StepRows(self._unjoined, timeline.buckets)
        tuning, self.pilot_levels = rows.reaches(range(pilot.steps), self.pairs, measure.reference)
        sequence = tuned_by_reaches(self._start(noise), tuning)
        _, inverse, _, farthest, _, count = self.pilot_levels[measure.reference].tolist()
        self.scores = self._start_scores(noise, [Spread(farthest, inverse / max(count, 1.0))])
        self.sequence = sequence
        values = RowValues(sequence, measure, self.pairs, rows)
        parts = list[StepSums]()
        for block in timeline.blocks.from_step(pilot.steps, len(self.pairs)):
            values.begin_rows(block)
            walked = walk.through(block, values)
            self._take_savings(block, walked)
            path = self._add(values)
            self.centres.append(Centres(block.start, walked.forecasts, walked.plain, walked.values[:-1]))
            self.rows += int(block.counts.sum())
            self._keep(timeline, block, walked, path)
            parts.append(values.sums)
        self.first = values.first
        self.sums = StepSums(
            *(
                np.concatenate([getattr(one, name) for one in parts])
                for name in ("residuals", "gaps", "level", "beside", "hidden")
            )
        )
        self._add_level()

    def _add(self, values: RowValues) -> Path:
        """Add the sums of a block to the evidence."""
        sums = values.sums
        sequence = replace(values.sequence, evidence=self._begun.evidence, seen=self._begun.seen)
        seen = sequence.seen.along(sums.tally)
        before = sequence.evidence
        added = {
            "totals": of.TOTAL,
            "weights": of.WEIGHT,
            "variances": of.VARIANCE,
            "pooled": of.POOLED,
        }
        running = {
            name: getattr(before, name) + np.cumsum(sums.gaps[..., place], axis=0)
            for name, place in added.items()
        }
        peaks = sums.gaps[..., of.PEAK]
        if not self.measure.confidence.is_exact:
            peaks = peaks * seen.sizes.excess[:, np.newaxis]
        evidence = replace(
            before,
            **running,
            # Nothing is clipped in the modes that logs have, so clipping has no bias.
            slack=np.zeros(peaks.shape),
            peaks=np.maximum(before.peaks, np.maximum.accumulate(peaks, axis=0)),
            events=np.where(sums.hidden, 0.0, seen.sizes.events[:, np.newaxis]),
        )
        # Rows tell by themselves which arms gaps rest on; what the sequence has of it stays at its beginning.
        start = sequence.carried
        shape = (len(peaks), *start.expected.shape)
        carried = Carried(
            *(np.broadcast_to(part, shape) for part in (start.expected, start.pulled, start.squared))
        )
        path = Path(sequence, evidence, seen, carried)
        self.sequence = path.at(-1)
        self.sides = self._with_sides(values)
        return path

    def _with_sides(self, values: RowValues) -> Sides:
        """Return what rows weigh at one look, with those of a block."""
        low = values.sums.residuals[:, of.LOW].min(axis=0, initial=0.0)
        high = values.sums.residuals[:, of.HIGH].max(axis=0, initial=0.0)
        sides = np.swapaxes(values.sides, 0, 1)
        most = sides[..., of.SIDE_MOST]
        on_side = most > WEIGHTLESS * most.max(initial=0.0)
        return self.sides.with_sums(
            np.stack([sides[..., place] for place in range(of.SIDE_MOST)]),
            np.where(on_side, low[self.pairs.T], 0.0),
            np.where(on_side, high[self.pairs.T], 0.0),
            (float(low.min()), float(high.max())),
        )

    def _add_level(self) -> None:
        """Give the score of the reference arm's level all rows."""
        reference = self.measure.reference
        level = self.sums.level
        seen = self._all_seen
        forecasts = np.concatenate([one.forecasts for one in self.centres])
        values = np.concatenate([one.values for one in self.centres])[:, reference]
        is_exact = self.measure.confidence.is_exact
        loudness = seen.relative[:, reference] / np.maximum(seen.drawn[:, reference], 1.0)
        loudness = np.where(seen.drawn[:, reference] > 0, loudness, 1.0)
        if is_exact:
            pooled = level[:, of.CUBED]
            peaks = level[:, of.CUBED_PEAK]
        else:
            pooled = level[:, of.FOR_ALL] * np.maximum(loudness, 1.0)
            peaks = level[:, of.REACH] * seen.sizes.excess
        score = self.scores[0]
        total = float((level[:, of.ROUNDS] * (forecasts + values) + level[:, of.PULLED]).sum())
        last = seen.at(-1)
        # A level rests on its own arm alone.
        carried = level[:, [of.FOR_ALL, of.LEVERS, of.FOURTHS]].sum(axis=0)[:, np.newaxis]
        is_hidden = rests_on_unknown(carried, least_draws(score.alpha))
        sides = np.zeros((4, 2, 1))
        sides[:, 0, 0] = level[:, [of.SQUARED, of.LEVERS, of.CUBES, of.ONES]].sum(axis=0)
        low = self.sums.residuals[:, of.LOW]
        high = self.sums.residuals[:, of.HIGH]
        lows, highs = np.zeros((2, 1)), np.zeros((2, 1))
        lows[0] = min(float(low[:, reference].min()), 0.0)
        highs[0] = max(float(high[:, reference].max()), 0.0)
        score.add_sums(
            Evidence(
                *_one(total, level[:, of.ROUNDS].sum(), level[:, of.SQUARED].sum(), 0.0),
                *_one(pooled.sum(), peaks.max(), 0.0 if is_hidden else float(last.sizes.events)),
            ),
            float(level[:, of.REACH].max()),
            score.sides.with_sums(sides, lows, highs, (float(low.min()), float(high.max()))),
            last,
        )

    @property
    def seen(self) -> Seen:
        """A summary of all residuals, by arm."""
        return self._all_seen.at(-1)

    @cached_property
    def _all_seen(self) -> Seen:
        return Seen.start(len(self.cells.arms)).along(self.sums.tally)


def _one(*values: float) -> list[Array]:
    """Return numbers as arrays (1,)."""
    return [np.array([float(value)]) for value in values]
