"""The paper's bounds and sample sizes, and the limits that no method can beat, as functions."""

from orthobandit.theory.bounds import (
    adaptive_phase_rounds,
    adaptive_regret_bound,
    bai_rounds,
    error_bound,
    error_rounds,
    expected_regret_bound,
    experiments_phase_rounds,
    gap_regret_bound,
    pac_epsilon,
    pac_rounds,
    phase_ridge,
    phases_needed,
    regret_bound,
    theory_phase_rounds,
)
from orthobandit.theory.explicit import (
    cauchy_schwarz_bound,
    ellipsoid_radius,
    explicit_error_bound,
    uniform_error_bound,
)
from orthobandit.theory.limits import identification_limit, regret_limit

__all__ = [
    "adaptive_phase_rounds",
    "adaptive_regret_bound",
    "bai_rounds",
    "cauchy_schwarz_bound",
    "ellipsoid_radius",
    "error_bound",
    "error_rounds",
    "expected_regret_bound",
    "experiments_phase_rounds",
    "explicit_error_bound",
    "gap_regret_bound",
    "identification_limit",
    "pac_epsilon",
    "pac_rounds",
    "phase_ridge",
    "phases_needed",
    "regret_bound",
    "regret_limit",
    "theory_phase_rounds",
    "uniform_error_bound",
]
