"""XY-static and XY-adaptive against hand-computed phases and widths."""

import math

import numpy as np
import pytest

from orthobandit import ArmSet, Tally
from orthobandit.policy import XYAdaptive, XYStatic

BASIS = ArmSet([[1.0, 0.0], [0.0, 1.0]])


def test_the_adaptive_phase_lasts_until_its_precision_has_grown():
    # Two basis vectors: p = (½, ½), ρ = ‖e₁ − e₂‖² = 4; n = ρ·(d(d+1) + 1)/α = 4·7/.1 = 280.
    plan = XYAdaptive().plan(XYAdaptive().start(BASIS))
    assert plan.probabilities == pytest.approx([0.5, 0.5], abs=1e-3)
    assert abs(int(plan.rounds) - 280) <= 1


@pytest.mark.parametrize(
    ("constants", "width"),
    [
        ("paper", 2 * math.sqrt(2 * (1 / 140 + 1 / 140) * math.log(6 / math.pi**2 * 280**2 * 4 / 0.05))),
        ("released", math.sqrt(2 * (1 / 140 + 1 / 140) * math.log(math.pi**2 / 3 * 4 / 0.05))),
    ],
)
def test_the_adaptive_rule_drops_at_its_width(constants, width):
    policy = XYAdaptive(constants=constants)
    state = policy.start(BASIS)
    plan = policy.plan(state)
    counts = np.array([140, int(plan.rounds) - 140])
    for lead, dropped in ((0.99 * width, False), (1.01 * width, True)):
        sums = counts * np.array([lead, 0.0])
        tally = Tally(counts=counts, sums=sums, squares=sums**2, largest=np.abs(sums))
        after = policy.decide(policy.observe(state, plan, tally))
        assert (after.declared == 0) == dropped
        assert after.certainty == 0.0


def test_the_next_adaptive_phase_is_ten_times_as_long():
    policy = XYAdaptive()
    state = policy.start(BASIS)
    plan = policy.plan(state)
    half = int(plan.rounds) // 2
    counts = np.array([half, int(plan.rounds) - half])
    nothing = np.zeros(2)
    tally = Tally(counts=counts, sums=nothing, squares=nothing, largest=nothing)
    after = policy.plan(policy.observe(state, plan, tally))
    assert int(after.rounds) == pytest.approx(10 * int(plan.rounds), rel=0.01)


def test_the_static_rule_adds_up_all_looks():
    policy = XYStatic(constants="released")
    state = policy.start(BASIS)
    rng = np.random.default_rng(0)
    counts = np.zeros(2)
    sums = np.zeros(2)
    while policy.decide(state).declared < 0:
        plan = policy.plan(state)
        look = int(plan.number)
        played = np.array([int(plan.rounds) // 2, int(plan.rounds) - int(plan.rounds) // 2])
        rewards = played * 0.5 * np.array([1.0, 0.0]) + np.sqrt(played) * rng.standard_normal(2)
        state = policy.observe(state, plan, Tally(played, rewards, rewards**2, np.abs(rewards)))
        counts += played
        sums += rewards
        if counts.min() > 0:
            means = sums / counts
            width = math.sqrt(2 * np.sum(1 / counts) * math.log(2 * look**2 * 4 / 0.05))
            stopped = abs(means[0] - means[1]) >= width
            assert (policy.decide(state).declared >= 0) == stopped
    assert look > 5


def test_the_static_design_never_changes():
    policy = XYStatic()
    arms = ArmSet(np.random.default_rng(3).standard_normal((6, 3)))
    state = policy.start(arms)
    first = policy.plan(state)
    for _ in range(4):
        plan = policy.plan(state)
        assert np.array_equal(plan.probabilities, first.probabilities)
        arm = int(np.argmax(plan.probabilities))
        rounds = int(plan.rounds)
        state = policy.observe(state, plan, Tally.of([arm] * rounds, [0.0] * rounds, 6))
