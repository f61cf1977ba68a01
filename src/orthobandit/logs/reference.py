"""The average level of the reference arm: what a lift is relative to."""

from dataclasses import replace

import numpy as np

from orthobandit._types import Array
from orthobandit.estimate import Confidence, Tally
from orthobandit.estimate.boundaries import tightest_rho
from orthobandit.estimate.evidence import Batch, Evidence, Sizes, Tuning

SIDES = 2


class ReferenceLevel:
    """A confidence sequence for the average over rounds of what the reference arm returns.

    With a forecast m from before the round and the arm's probability p, m + 1{reference drawn}·(r − m)/p has
    the level of the round as its mean, whatever the shift; rounds count alike, but that exact modes cap the
    weight of those whose p is smaller than the one the scale was fixed for.

    Parameters
    ----------
    confidence : Confidence
    reference : int
    delta : float
        Probability of ever being wrong.
    noise, probability, rounds : float, float, int
        Guesses of the standard deviation of residuals and of the rounds it takes, and the probability of the
        arm in the first rounds that count.
    """

    def __init__(
        self,
        confidence: Confidence,
        reference: int,
        delta: float,
        noise: float,
        probability: float,
        rounds: int,
    ) -> None:
        self._confidence, self._reference = confidence, reference
        p, alpha = probability, np.array([delta / SIDES])
        scale = confidence.limit / p if confidence.is_exact else 1.0
        rho = tightest_rho(rounds * noise**2 / p, alpha)
        self._tuning = Tuning(alpha, rho, np.array([scale]))
        zero = np.zeros(1)
        self.evidence = Evidence(zero, zero, zero, zero)

    def add(self, probabilities: Array, tally: Tally, level: float, sizes: Sizes) -> None:
        """Take in residuals (G, K) from a level that was forecast for the arm, under G distributions."""
        p = probabilities[:, self._reference, np.newaxis]
        drawn = p > 0
        inverse = np.divide(1.0, p, out=np.zeros_like(p), where=drawn)
        rounds = tally.rounds[:, np.newaxis].astype(np.float64)
        sums, squares = (part[:, self._reference, np.newaxis] for part in (tally.sums, tally.squares))
        batch = Batch(
            rounds=rounds,
            excess=sizes.excess,
            factor=np.where(drawn, 1.0, np.inf),
            reach=np.maximum(inverse, 1e-300),
            estimates=rounds * level + inverse * sums,
            squares=inverse**2 * squares,
            pooled=tally.squares.sum(axis=1, keepdims=True) * inverse,
        )
        self.evidence = replace(
            self.evidence.and_all(batch, self._tuning, self._confidence), events=np.array([sizes.events])
        )

    def interval(self, share: float = 1.0) -> tuple[float, float]:
        """Return the ends at a share of δ; infinite where nothing is known."""
        tuning = replace(self._tuning, alpha=share * self._tuning.alpha)
        width = float(self._confidence.width(self.evidence, tuning)[0])
        estimate = float(self.evidence.estimates[0])
        return estimate - width, estimate + width
