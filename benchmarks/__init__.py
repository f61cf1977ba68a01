"""Benchmarks: each `bench_*.py` has a `main()` that prints its measurements."""
