"""What designs must not depend on, and the bounds they keep, on arms of every kind."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from inside._foundation import affine_frame
from orthobandit import ArmSet
from orthobandit.design import anchor_design, centred_design, contrast_design, g_optimal_design

KINDS = ["gaussian", "sphere", "clusters", "grid", "binary", "heavy", "duplicates", "flat", "lengths"]


@st.composite
def features(draw, most=60, widest=6):
    """Arms of a random kind; the numbers come from a seed, so that failures shrink to few small arms."""
    kind = draw(st.sampled_from(KINDS))
    count, width = draw(st.integers(1, most)), draw(st.integers(1, widest))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    x = rng.standard_normal((count, width))
    if kind == "sphere":
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    if kind == "clusters":
        return rng.standard_normal((width + 2, width))[rng.integers(width + 2, size=count)] + 1e-3 * x
    if kind == "grid":
        return rng.integers(-2, 3, (count, width)).astype(float)
    if kind == "binary":
        return rng.integers(0, 2, (count, width)).astype(float)
    if kind == "heavy":
        return rng.standard_t(1.5, (count, width))
    if kind == "duplicates":
        return x[rng.integers(1 + count // 3, size=count)]
    if kind == "flat":
        return (rng.integers(-3, 4, (count, 2)) @ rng.integers(-3, 4, (2, width)) + 5).astype(float)
    if kind == "lengths":
        return x * 10.0 ** rng.uniform(-4, 4, (count, 1))
    return x


def moved(x, seed, *, offset=True):
    """Return an invertible affine (or linear) image of the arms, of condition up to a few thousand."""
    rng = np.random.default_rng(seed)
    turns = [np.linalg.qr(rng.standard_normal((x.shape[1], x.shape[1])))[0] for _ in range(2)]
    linear = turns[0] * 10.0 ** rng.uniform(-1.5, 1.5, x.shape[1]) @ turns[1]
    return x @ linear + offset * rng.standard_normal(x.shape[1]) * np.abs(x).max()


def leverages(design):
    """Return ‖x_i − μ‖² of every arm: the same for all optimal designs, since their moments agree."""
    white = design._white
    return np.square(white - design.probabilities @ white).sum(axis=1)


SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=150)
@given(x=features(), seed=SEEDS)
def test_centred_designs_follow_affine_maps(x, seed):
    there, here = centred_design(ArmSet(moved(x, seed)), gap=1e-9), centred_design(ArmSet(x), gap=1e-9)
    assert there.arms.dimension == here.arms.dimension
    assert np.allclose(leverages(there), leverages(here), rtol=1e-3, atol=1e-3)
    assert np.isclose(there.centred_norm, here.centred_norm, rtol=1e-6)


@settings(max_examples=100)
@given(x=features(), seed=SEEDS)
def test_g_optimal_designs_follow_linear_maps(x, seed):
    y = moved(x, seed, offset=False)
    here, there = (g_optimal_design(ArmSet(arms), gap=1e-9).probabilities for arms in (x, y))
    # Moments of optimal designs are unique: those of either design on the same arms must agree.
    first, second = (x.T * here) @ x, (x.T * there) @ x
    size = np.sqrt(np.maximum(np.diagonal(first), 1e-300))
    assert np.allclose(first / np.outer(size, size), second / np.outer(size, size), atol=1e-3)


@settings(max_examples=100)
@given(x=features(), seed=SEEDS)
def test_anchor_designs_follow_affine_maps(x, seed):
    reference = seed % len(x)
    here = anchor_design(ArmSet(x), reference, gap=1e-9)
    there = anchor_design(ArmSet(moved(x, seed)), reference, gap=1e-9)
    # Around the reference the moments are unique, the mean is not: compare differences to the reference.
    for design in (here, there):
        white = design._white - design._white[reference]
        around = 2 * design.probabilities - (np.arange(len(x)) == reference)
        factor = np.linalg.cholesky((white.T * around) @ white) if white.size else np.zeros((0, 0))
        design.__dict__["lengths"] = np.square(np.linalg.solve(factor, white.T)).sum(axis=0)
    assert np.allclose(here.lengths, there.lengths, rtol=1e-3, atol=1e-3)


@settings(max_examples=40)
@given(x=features(30, 4), seed=SEEDS)
def test_contrast_designs_follow_affine_maps(x, seed):
    here, there = contrast_design(ArmSet(x)), contrast_design(ArmSet(moved(x, seed)))
    assert np.isclose(here.contrast_norm, there.contrast_norm, rtol=1e-4)


@settings(max_examples=100)
@given(x=features(), seed=SEEDS)
def test_designs_follow_a_relabelling(x, seed):
    order = np.random.default_rng(seed).permutation(len(x))
    here, there = centred_design(ArmSet(x), gap=1e-9), centred_design(ArmSet(x[order]), gap=1e-9)
    assert np.allclose(leverages(here)[order], leverages(there), rtol=1e-3, atol=1e-3)
    reference = int(np.flatnonzero(order == 0)[0])
    first, second = anchor_design(ArmSet(x)), anchor_design(ArmSet(x[order]), reference)
    assert first.probabilities[0] == second.probabilities[reference]


@settings(max_examples=20)
@given(x=features(25, 4), seed=SEEDS)
def test_contrast_designs_follow_a_relabelling(x, seed):
    order = np.random.default_rng(seed).permutation(len(x))
    here, there = contrast_design(ArmSet(x)), contrast_design(ArmSet(x[order]))
    assert np.isclose(here.contrast_norm, there.contrast_norm, rtol=1e-4)


@settings(max_examples=200)
@given(x=features(150, 8))
def test_the_centred_norm_is_the_root_of_the_dimension(x):
    arms = ArmSet(x)
    design = centred_design(arms)
    assert abs(design.centred_norm - np.sqrt(arms.dimension)) <= 1e-5
    assert len(design.support) <= (arms.dimension + 1) * (arms.dimension + 2) // 2


@settings(max_examples=200)
@given(x=features(150, 8), seed=SEEDS)
def test_anchor_designs_keep_the_three_bounds(x, seed):
    arms, reference = ArmSet(x), seed % len(x)
    design = anchor_design(arms, reference)
    root = np.sqrt(arms.dimension * (1 + design.optimality_gap)) * (1 + 1e-12)
    assert design.reference_norm <= 2 * root
    assert design.centred_norm <= 2 * root + 1
    assert design.contrast_norm <= 4 * root
    assert len(design.support) <= arms.dimension * (arms.dimension + 1) // 2 + 1


@settings(max_examples=100)
@given(x=features(150, 8))
def test_g_optimal_designs_have_a_small_support(x):
    rank = affine_frame(x, through_zero=True).dimension
    design = g_optimal_design(ArmSet(x))
    assert len(design.support) <= max(rank * (rank + 1) // 2, 1)
    assert design.optimality_gap <= 1e-6


@settings(max_examples=60)
@given(x=features(60, 5))
def test_contrast_designs_lie_between_their_bounds(x):
    arms = ArmSet(x)
    design = contrast_design(arms)
    assert design.contrast_norm >= np.sqrt(2 * arms.dimension) * (1 - 1e-9)
    assert design.contrast_norm <= centred_design(arms).contrast_norm * np.sqrt(1 + 1e-4)
    assert len(design.support) <= (arms.dimension + 1) * (arms.dimension + 2) // 2


@settings(max_examples=40)
@given(x=features(30, 4), seed=SEEDS)
def test_a_restricted_support_can_only_do_worse(x, seed):
    arms = ArmSet(x)
    free = contrast_design(arms, reference=0)
    half = np.random.default_rng(seed).permutation(len(x))[: len(x) // 2 + 1]
    if affine_frame(x[half]).dimension == arms.dimension:
        restricted = contrast_design(arms, reference=0, support=half)
        assert restricted.reference_norm >= free.reference_norm * (1 - 1e-4)
        assert set(restricted.support) <= set(half)
