"""Every golden that is stored belongs to a case, and none is too large to be read as a diff."""

from goldens import experiments, logs
from goldens.harness import STORED

CASES = {"experiments": experiments.CASES, "logs": logs.CASES}
MAX_BYTES = 3_000_000  # of all goldens together


def test_goldens_belong_to_cases():
    names = {
        path.relative_to(STORED).with_suffix("").as_posix() for path in STORED.rglob("*") if path.is_file()
    }
    expected = {f"{folder}/{name}" for folder, cases in CASES.items() for name in [*cases, "style"]}
    assert names == expected


def test_goldens_stay_small():
    assert sum(path.stat().st_size for path in STORED.rglob("*")) < MAX_BYTES
