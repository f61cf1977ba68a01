"""What docs/errata.md says of the paper, by computation."""

from math import log, sqrt

import numpy as np
import pytest

from orthobandit import ArmSet
from orthobandit.design import Design


@pytest.mark.parametrize(("p", "factor"), [(1e-4, 31), (1e-6, 262), (1e-8, 2287)])
def test_lemma_10_as_printed_holds_for_no_constant(p, factor):
    # Two arms, 0 and 1, one round (t = 1), the second drawn with probability p, and δ = p/2.
    covariance = p * (1 - p)
    largest = max(p, 1 - p) ** 2 / covariance  # M
    off = abs((1 - p) ** 2 - covariance) / covariance  # of Σ̂ from Σ, in Σ's norm, with probability p > δ
    delta = p / 2
    printed = sqrt(largest * log(1 / delta))
    assert off / printed > factor
    # With the term of Lemma 27 it holds.
    assert off < sqrt(8 * largest * log(1 / delta)) + 6 * largest * log(1 / delta)


def test_the_norms_of_the_counterexample_are_those_of_a_design():
    arms, p = ArmSet([[0.0], [1.0]]), 1e-4
    design = Design(arms, np.array([1 - p, p]), "anchor", 0, 0.0)
    assert design.centred_norm**2 == pytest.approx((1 - p) / p)
