"""Every policy names the setting that it cannot take, its value, and where it helps the remedy."""

from math import inf, nan

import pytest

from orthobandit import policy
from orthobandit.errors import ParameterError
from orthobandit.policy import POLICIES, named_policy, policy_settings

# What policies of the catalogue need; those that take a baseline need nothing.
NEEDED = {"horizon": 1000, "budget": 1000, "epoch": 9, "rounds": 10, "gap": 1.0, "period": 10}
# Values that no policy takes for settings of these names.
IMPOSSIBLE = {
    "delta": [0.0, 1.0, nan, 1.5],
    "horizon": [0, 10.5],
    "budget": [0, 10.5],
    "ridge": [0.0, -1.0],
    "norm": [0.0, -1.0, inf],
    "spread": [0.0, nan],
}

WRONG = {
    "ActionCentredTS": [
        ({"least": 0.0}, "least=0.0"),
        ({"most": 1.0}, "most=1.0"),
        ({"least": 0.7, "most": 0.3}, "least=0.7 must not exceed most=0.3"),
        ({"reference": -1}, "reference=-1"),
    ],
    "ActionElimination": [({"noise": 0.0}, "noise=0.0")],
    "AnytimeElimination": [
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"goal": "win"}, "goal='win'"),
        ({"confidence": "asymptotic"}, "confidence='asymptotic'"),
        ({"baseline": 3}, "baseline=3"),
        ({"growth": 0.0}, "growth=0.0"),
        ({"mixing": 1.0}, "mixing=1.0"),
        ({"pilot": 3}, "pilot=3"),
    ],
    "BOSE": [
        ({"horizon": 10, "scale": 0.0}, "scale=0.0"),
        ({"horizon": 10, "constants": "theroy"}, "did you mean 'theory'"),
        ({"horizon": 10, "constants": "theory", "scale": 2.0}, "scale=2"),
        ({"horizon": 10, "theta_bound": 1.0}, "declare both bounds or neither"),
        ({"horizon": 10, "noise": 2.0}, "noise=2.0 has no effect without"),
        ({"horizon": 10, "distribution": "unifrom"}, "did you mean 'uniform'"),
    ],
    "BudgetedSPBAI": [({"budget": 10, "variant": "release"}, "did you mean 'released'")],
    "FrankWolfeSampling": [({"norm": -1.0}, "norm=-1.0")],
    "LazyTrackAndStop": [
        ({"threshold": "mine"}, "threshold='mine'"),
        ({"u": 0.0}, "u=0.0"),
        ({"draw": 1}, "draw=1"),
    ],
    "LinGame": [({"threshold": "modified"}, "threshold='modified'")],
    "LinGapE": [
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"constants": "mine"}, "constants='mine'"),
        ({"eliminates": 1}, "eliminates=1"),
    ],
    "LinLUCB": [({"budget": 10, "epoch": 20}, "epoch=20")],
    "LinTS": [({"noise": -1}, "noise=-1")],
    "LinUCB": [({"noise": 0}, "noise=0"), ({"scale": inf}, "scale=inf")],
    "MABThompson": [
        ({"posterior": "bata"}, "did you mean 'beta'"),
        ({"noise": 0}, "noise=0"),
        ({"low": 1.0, "high": 1.0}, "low=1.0 must lie below high=1.0"),
        ({"high": inf}, "both finite"),
    ],
    "P1RAGE": [
        ({"budget": 1}, "budget=1"),
        ({"budget": 10, "epochs": 0}, "epochs=0"),
        ({"budget": 10, "epochs": 11}, "epochs=11 must not exceed budget=10"),
    ],
    "PhasedElimination": [({"noise": 0.0}, "noise=0.0")],
    "PooledTrackAndStop": [({"period": 0}, "period=0")],
    "PureExploration": [
        ({}, "exactly one"),
        ({"rounds": 10, "epsilon": 0.1}, "exactly one"),
        ({"rounds": 0}, "rounds=0"),
        ({"rounds": 1.5}, "rounds=1.5"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": nan}, "epsilon=nan"),
        ({"rounds": 1, "design": "anchr"}, "did you mean 'anchor'"),
        ({"epsilon": 0.1, "C2": -1}, "C2=-1"),
        ({"epsilon": 0.1, "C3": 0}, "C3=0"),
        ({"rounds": 1, "theta_bound": 1.0}, "declare both bounds or neither"),
        ({"rounds": 1, "theta_bound": 0.0, "shift_bound": 1.0}, "theta_bound=0.0"),
        ({"rounds": 1, "theta_bound": 1.0, "shift_bound": -1.0}, "shift_bound=-1.0"),
        ({"rounds": 1, "noise": 2.0}, "noise=2.0 has no effect"),
    ],
    "RAGE": [({"noise": 0.0}, "noise=0.0")],
    "SBE": [
        ({"delta": 0.0}, "delta=0.0 must lie strictly between 0 and 1"),
        ({"schedule": "experiment"}, "did you mean 'experiments'"),
        ({"schedule": "Theory"}, "did you mean 'theory'"),
        ({"schedule": 3}, "schedule=3 is not one of"),
        ({"design": "centered"}, "did you mean 'centred'"),
        ({"design": None}, "design=None is not one of"),
        ({"scale": -1.0}, "scale=-1.0 must be a finite number above 0"),
        ({"scale": 0}, "scale=0"),
        ({"C2": 0.0, "schedule": "theory"}, "C2=0.0"),
        ({"C3": inf, "schedule": "adaptive"}, "C3=inf"),
        ({"scale": 2.0, "schedule": "theory"}, "scale=2.0 has no effect: schedule='theory' reads only C2"),
        ({"C2": 2.0}, "C2=2.0 has no effect: schedule='experiments' reads only scale"),
        ({"C3": 2.0, "schedule": "theory"}, "C3=2.0 has no effect"),
        ({"horizon": 0}, "horizon=0 must be a whole number of at least 1"),
    ],
    "SPBAI": [({"variant": "release"}, "did you mean 'released'"), ({"longest": 0}, "longest=0")],
    "SemiparametricTS": [
        ({"horizon": 1}, "horizon=1"),
        ({"horizon": 10, "scale": -1.0}, "scale=-1.0"),
        ({"horizon": 10, "draws": 0}, "draws=0"),
    ],
    "StratifiedMeans": [({"epoch": 1}, "epoch=1"), ({"epoch": 9, "tuned": 0}, "tuned=0")],
    "UCB1": [({"scale": 0}, "scale=0")],
    "XYAdaptive": [
        ({"noise": -1.0}, "noise=-1.0"),
        ({"constants": "mine"}, "constants='mine'"),
        ({"alpha": 1.5}, "alpha=1.5"),
    ],
}


@pytest.mark.parametrize(
    ("name", "settings", "message"), [(name, *wrong) for name, table in WRONG.items() for wrong in table]
)
def test_a_setting_that_makes_no_sense_is_named(name, settings, message):
    with pytest.raises(ParameterError, match=message):
        getattr(policy, name)(**settings)


@pytest.mark.parametrize("setting", IMPOSSIBLE)
@pytest.mark.parametrize("name", POLICIES)
def test_no_policy_takes_what_none_can_take(name, setting):
    taken = policy_settings(name)
    needed = {key: value for key, value in NEEDED.items() if key in taken and "baseline" not in taken}
    for value in IMPOSSIBLE[setting] if setting in taken else ():
        with pytest.raises(ParameterError, match=f"{setting}={value}"):
            named_policy(name, **needed | {setting: value})
