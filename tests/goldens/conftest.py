"""Choose goldens by the pattern of ``python -m tests.goldens``."""

import os
from fnmatch import fnmatch


def pytest_collection_modifyitems(config, items):
    pattern = os.environ.get("GOLDENS", "*")
    if pattern == "*":
        return
    chosen = [item for item in items if fnmatch(item.name.partition("[")[2][:-1], pattern)]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
