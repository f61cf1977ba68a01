"""Settings of the whole suite: what is long, when to stop, and how properties are searched.

Property tests decide right or wrong, they time nothing.
"""

import gc
import os
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("suite", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile("suite")

HERE = Path(__file__).parent
LONG_FOLDERS = {"browser", "docs", "examples", "faults", "paper", "statistical"}
HAVE_SMOKE_TESTS = {"browser"}
# Seconds since 1970 after which no test begins any more; those that are left are named at the end.
UNTIL = float(os.environ.get("ORTHOBANDIT_TESTS_UNTIL", "inf"))
NO_TIME = "no time left"


def pytest_ignore_collect(collection_path, config):
    """Keep `make test` from importing long tests only to leave them out."""
    is_long = collection_path.parent == HERE and collection_path.name in LONG_FOLDERS - HAVE_SMOKE_TESTS
    return True if is_long and config.option.markexpr == "not long" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Spare the garbage collector what stays until the end: modules, tests, and what they are made from."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure():
    gc.unfreeze()  # else libraries complain of leaks when Python ends


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses by marks
def pytest_collection_modifyitems(items):
    for item in items:
        if is_long(item):
            item.add_marker("long")


def is_long(item):
    """Tell whether a test is left out of `make test`: by its folder, or by a mark of its own."""
    if item.get_closest_marker("smoke"):
        return False
    folder = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
    marks = ("slow", "statistical")
    return folder in LONG_FOLDERS or any(item.get_closest_marker(mark) for mark in marks)


@pytest.hookimpl(tryfirst=True)  # before fixtures, which may take long themselves
def pytest_runtest_setup(item):
    if time.time() > UNTIL:
        pytest.skip(NO_TIME)


def pytest_terminal_summary(terminalreporter):
    skipped = terminalreporter.stats.get("skipped", [])
    left = Counter(one.nodeid.partition("::")[0] for one in skipped if NO_TIME in str(one.longrepr))
    if left:
        terminalreporter.section("left for another run")
        for path, count in sorted(left.items()):
            terminalreporter.line(f"{path}: {count} tests")
