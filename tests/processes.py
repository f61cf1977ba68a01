"""What is left of processes that a test has started, and which programs there are to start."""

import os
import shutil

import pytest


def needs_program(name):
    """Return a mark that skips a test where a program is not installed."""
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


def has_members(group):
    """Tell whether any process of a group is alive."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
