"""The paper's bounds and sample sizes, and the limits that no method can beat, as functions."""

from orthobandit.theory.bounds import (
    adaptive_phase_rounds,
    adaptive_regret_bound,
    bai_rounds,
    error_bound,
    error_rounds,
    experiments_phase_rounds,
    gap_regret_bound,
    pac_epsilon,
    pac_rounds,
    phase_ridge,
    phases_needed,
    regret_bound,
    theory_phase_rounds,
)
from orthobandit.theory.limits import identification_limit, regret_limit

__all__ = [
    "adaptive_phase_rounds",
    "adaptive_regret_bound",
    "bai_rounds",
    "error_bound",
    "error_rounds",
    "experiments_phase_rounds",
    "gap_regret_bound",
    "identification_limit",
    "pac_epsilon",
    "pac_rounds",
    "phase_ridge",
    "phases_needed",
    "regret_bound",
    "regret_limit",
    "theory_phase_rounds",
]
