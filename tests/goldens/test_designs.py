"""Designs and their certificates; widths of contrasts in all modes; regressions: on arms of several kinds."""

import numpy as np
import pytest

from goldens.harness import check, golden_cases, plain_json
from orthobandit import (
    ArmSet,
    Asymptotic,
    Bounded,
    ContrastSequence,
    OrthogonalRegression,
    Plan,
    SubGaussian,
    Tally,
    anchor_design,
    centred_design,
    contrast_design,
    g_optimal_design,
)
from orthobandit.design import earning_design
from orthobandit.simulation import exact_gap, near_degenerate

FOLDER = "designs"
CASES = {
    "two arms": ArmSet.one_hot(2),
    "five arms": ArmSet.one_hot(5),
    "square": ArmSet([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]),
    "near-degenerate": near_degenerate(4).arms,
    "random": exact_gap(5, 12, seed=1).arms,
    "in a plane of more dimensions": ArmSet(
        np.random.default_rng(6).standard_normal((6, 2)) @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]]) + 3.0
    ),
}
WIDTHS = "widths"
MODES = {
    "asymptotic": Asymptotic(),
    "bounded": Bounded(0.0, 1.0),
    "sub-Gaussian": SubGaussian(0.0, 1.0, sigma=0.5),
}


@pytest.mark.parametrize("name", golden_cases(FOLDER, CASES))
def test_designs(name):
    arms = CASES[name]
    pairs = [[i, j] for j in range(len(arms)) for i in range(j)]
    designs = {
        "anchor": anchor_design(arms),
        "anchor, last arm": anchor_design(arms, len(arms) - 1),
        "centred": centred_design(arms),
        "contrast": contrast_design(arms),
        "contrast, weighted": contrast_design(arms, pairs, np.linspace(1.0, 2.0, len(pairs))),
        "earning": earning_design(arms, pairs, np.ones(len(pairs)), np.linspace(0.1, 1.0, len(arms))),
    }
    if np.linalg.matrix_rank(arms.features) > 0:
        designs["g-optimal"] = g_optimal_design(arms)
    shown = {
        title: {
            "probabilities": design.probabilities.round(6),  # solvers stop a little before the optimum
            "method": design.method,
            "reference": design.reference,
            "is certified": design.optimality_gap <= 1e-2,
            # Of a g-optimal design it may be infinite.
            "contrast norm": None if design.method == "g-optimal" else design.contrast_norm,
            "support": design.support,
        }
        for title, design in designs.items()
    }
    check({f"{FOLDER}/{name}.json": plain_json(shown)})


@pytest.mark.parametrize("name", golden_cases(FOLDER, [WIDTHS]))
def test_intervals_of_contrasts_and_regressions(name):
    rng = np.random.default_rng(2)
    shown = {}
    for title, arms in (("one hot", ArmSet.one_hot(3)), ("square", CASES["square"])):
        count = len(arms)
        pairs = [[i, 0] for i in range(1, count)]
        sequences = {mode: ContrastSequence.start(arms, pairs, MODES[mode], 0.1) for mode in MODES}
        history = []
        for step in range(30):
            p = 0.1 / count + 0.9 * rng.dirichlet(np.ones(count))
            drawn = rng.choice(count, 40, p=p)
            level = 0.3 + 0.1 * np.sin(step)
            rewards = (rng.random(40) < level + 0.15 * (drawn == 1)).astype(float)
            history.append((Plan(p, rounds=40), Tally.of(drawn, rewards, count)))
            for mode, sequence in sequences.items():
                plan = Plan(p, 40, sequence.centre())
                tally = Tally.of(drawn, plan.residuals(drawn, rewards, level), count)
                sequences[mode] = sequence.add(plan, tally)
            if step % 10 == 9:
                shown[f"{title}, after {step + 1} plans"] = {
                    mode: {
                        "intervals": np.stack(sequence.intervals(), axis=1),
                        "estimates": sequence.evidence.estimates,
                    }
                    for mode, sequence in sequences.items()
                }
        for ridge in (None, 0.5):
            estimate = OrthogonalRegression(ridge).fit(arms, history)
            shown[f"{title}, regression with ridge {ridge}"] = {"gaps": estimate.gaps, "repr": repr(estimate)}
    check({f"{FOLDER}/{name}.json": plain_json(shown)})
