"""Contract suites that a policy, a baseline or a shift written anywhere can run on itself.

Each check raises :class:`AssertionError` with the clause that is broken. ``check_policy``,
``check_forecaster`` and ``check_shift`` run all checks of their kind, which can also be run one by one.
"""

from orthobandit.testing._play import Setting
from orthobandit.testing.forecasters import FORECASTER_CHECKS, ForecastSetting, check_forecaster
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

__all__ = [
    "CHECKS",
    "FORECASTER_CHECKS",
    "SHIFT_CHECKS",
    "ForecastSetting",
    "Setting",
    "ShiftSetting",
    "check_baseline",
    "check_batch",
    "check_decisions",
    "check_empty_tally",
    "check_forecaster",
    "check_inputs_kept",
    "check_late",
    "check_numbers",
    "check_parts",
    "check_policy",
    "check_probabilities",
    "check_replay",
    "check_round_trip",
    "check_shift",
]
