"""Contract suites for policies, baselines, shifts, noise and stores, wherever they were written.

Each check raises :class:`AssertionError` and names the broken clause. ``check_policy``,
``check_forecaster``, ``check_shift``, ``check_noise`` and ``check_store`` run all checks of their kind; all
but those of stores can also be run one by one.
"""

from orthobandit.testing._play import PlayRecord, Setting
from orthobandit.testing.forecasters import FORECASTER_CHECKS, ForecastSetting, check_forecaster
from orthobandit.testing.noises import NOISE_CHECKS, NoiseSetting, check_noise
from orthobandit.testing.policies import (
    CHECKS,
    check_baseline,
    check_batch,
    check_decisions,
    check_empty_tally,
    check_inputs_kept,
    check_late,
    check_numbers,
    check_parts,
    check_policy,
    check_probabilities,
    check_replay,
    check_round_trip,
)
from orthobandit.testing.shifts import SHIFT_CHECKS, ShiftSetting, check_shift
from orthobandit.testing.stores import check_store

__all__ = [
    "CHECKS",
    "FORECASTER_CHECKS",
    "NOISE_CHECKS",
    "SHIFT_CHECKS",
    "ForecastSetting",
    "NoiseSetting",
    "PlayRecord",
    "Setting",
    "ShiftSetting",
    "check_baseline",
    "check_batch",
    "check_decisions",
    "check_empty_tally",
    "check_forecaster",
    "check_inputs_kept",
    "check_late",
    "check_noise",
    "check_numbers",
    "check_parts",
    "check_policy",
    "check_probabilities",
    "check_replay",
    "check_round_trip",
    "check_shift",
    "check_store",
]
