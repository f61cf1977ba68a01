"""Every golden that is stored belongs to a case, and none is too large to be read as a diff."""

from goldens import (
    test_commands,
    test_designs,
    test_experiments,
    test_logs,
    test_reproduction,
    test_service,
    test_simulations,
    test_sql,
)
from goldens.harness import STORED

CASES = {
    "experiments": [*test_experiments.CASES, "style"],
    "logs": [*test_logs.CASES, "style"],
    "commands": [*test_commands.CASES, "help"],
    "designs": [*test_designs.CASES, test_designs.WIDTHS],
    "service": [*test_service.PAGES, *test_service.ANSWERS, "login"],
    "reproduction": test_reproduction.SECTIONS,
    "simulations": test_simulations.POLICIES,
    "contextual": test_simulations.CONTEXTUAL_POLICIES,
    "sql": test_sql.DIALECTS,
}
MAX_BYTES = 3_000_000  # of all goldens together


def test_goldens_belong_to_cases():
    names = {
        path.relative_to(STORED).with_suffix("").as_posix() for path in STORED.rglob("*") if path.is_file()
    }
    expected = {f"{folder}/{name}" for folder, cases in CASES.items() for name in cases}
    assert names == expected


def test_goldens_stay_small():
    assert sum(path.stat().st_size for path in STORED.rglob("*")) < MAX_BYTES
