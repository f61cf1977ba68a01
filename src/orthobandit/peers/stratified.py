"""Stratified means, as used in industry: compare means within epochs, add up, drop what is clearly worse."""

import math
from dataclasses import dataclass

import numpy as np

from orthobandit._foundation.checks import check_fraction, check_whole
from orthobandit._foundation.types import Array, Mask
from orthobandit.arms import ArmSet
from orthobandit.estimate.confidence.boundaries import tightest_rho
from orthobandit.policy.base import Decision
from orthobandit.policy.phases import Ahead, Ended, PhasedPolicy, PhasedState, phased_decision


def mixture_boundary(time: float, tuned: float, alpha: float) -> float:
    """Return Robbins' normal-mixture boundary at level α, tightest near the time `tuned`.

    A standard Gaussian random walk stays within ±√((t + ρ)·log((t + ρ)/(ρα²))) at all times t at once with
    probability 1 − α; ρ by :func:`~orthobandit.estimate.confidence.boundaries.tightest_rho`.

    Examples
    --------
    >>> round(mixture_boundary(20.0, 20.0, 0.05), 2)
    13.57
    """
    rho = float(tightest_rho(tuned, alpha))
    return math.sqrt((time + rho) * (math.log((time + rho) / rho) - 2 * math.log(alpha)))


@dataclass(frozen=True)
class StratifiedMeans(PhasedPolicy):
    """Stratified difference in means with elimination: epochs are the strata, features are ignored.

    Every epoch draws the survivors uniformly. The difference of two arms is the sum over epochs of the
    differences of their means within the epoch: a shift that is constant within epochs cancels, and one
    that moves within them adds noise but no bias, since arms are drawn alike at all times. After each epoch
    an arm is dropped if some survivor's sum leads by more than a time-uniform normal-mixture width on the
    estimated variance, at level δ/(K−1) for each pair.

    What is guaranteed: the widths hold at all times at once for Gaussian differences of equal and known
    variance; with estimated variances this is asymptotic (Waudby-Smith et al. 2024), for long epochs. Wrongly
    dropping the best arm then has probability at most δ. Epochs in which a survivor was played less than
    twice are left out of the sums, which depends on the draws alone.

    Parameters
    ----------
    epoch : int
        Rounds of an epoch; 20 or more for each arm make the variances trustworthy.
    delta : float
        Failure probability δ.
    tuned : int
        Number of epochs after which the widths are tightest.

    Examples
    --------
    >>> from orthobandit import ArmSet
    >>> policy = StratifiedMeans(epoch=100)
    >>> plan = policy.plan(policy.start(ArmSet.one_hot(4)))
    >>> plan.probabilities.tolist(), int(plan.rounds)
    ([0.25, 0.25, 0.25, 0.25], 100)
    """

    epoch: int
    delta: float = 0.05
    tuned: int = 20

    carries = 3  # sums of means and of their variances, and how many epochs are in them

    def __post_init__(self) -> None:
        check_whole("epoch", self.epoch, least=2)
        check_fraction("delta", self.delta)
        check_whole("tuned", self.tuned)

    def pair_bytes(self, arms: ArmSet) -> float:  # noqa: ARG002
        """Return the bytes of variances, widths and leads of every pair."""
        return 24.0

    def explore(self, ahead: Ahead) -> tuple[Array, int]:
        """Return the uniform distribution on the survivors for one epoch."""
        return ahead.survivors / np.count_nonzero(ahead.survivors), self.epoch

    def judge(self, ended: Ended) -> tuple[Array, Mask, Array]:
        """Add the epoch and drop arms that some survivor leads by more than the width."""
        kept = ended.survivors
        carried = ended.carried.copy()
        counts = ended.tally.counts
        # One play shows no variance. Left out for all arms, so that sums of two arms cover the same epochs.
        if counts[kept].min() >= 2:
            n = counts[kept]
            mean = ended.tally.sums[kept] / counts[kept]
            spread = np.maximum(ended.tally.squares[kept] - n * mean**2, 0.0) / (n - 1)
            carried[:, kept] += [mean, spread / n, np.ones(len(n))]
        sums, variances, epochs = carried[:, kept]
        survivors = kept.copy()
        if epochs[0] > 0:
            alpha = self.delta / max(len(ended.arms) - 1, 1)
            # The boundary is for steps of variance 1: sums are in average standard errors of an epoch.
            per_epoch = (variances[:, np.newaxis] + variances) / epochs[0]
            widths = np.sqrt(per_epoch) * mixture_boundary(float(epochs[0]), self.tuned, alpha)
            survivors[kept] = ~np.any(sums - sums[:, np.newaxis] > widths, axis=1)
        return carried[0], survivors, carried

    def decide(self, state: PhasedState) -> Decision:
        """Return what is known now; the claim is about the declared arm only."""
        unknown = np.full(state.declared.shape, np.inf)
        return phased_decision(state, unknown, 1 - self.delta, "asymptotic")
