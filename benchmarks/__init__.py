"""Benchmarks: each `bench_*.py` has a `main()` that prints its measurements."""

from importlib.util import find_spec


def has_peer(*packages: str) -> bool:
    """Tell whether the packages of a peer are installed; if not, print which, and how to get them."""
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        print(
            f"skipped beside {', '.join(missing)}: not installed (pip install {' '.join(missing)})",
            flush=True,
        )
    return not missing
