"""A real Chromium; tests are skipped, with a reason, where there is none."""

import os
import shutil
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def chromium():
    """Yield a browser that the tests of a module share; beyond it, its event loop would be in the way."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = os.environ.get("ORTHOBANDIT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None or not Path(path).exists():
        pytest.skip("Chromium is not installed; apt-get install chromium")
    with api.sync_playwright() as playwright:
        # Containers have no user namespaces for its sandbox; the pages are our own.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
