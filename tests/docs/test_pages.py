"""The built pages hold every public name, and load nothing from elsewhere."""

import importlib
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = (
    *("design", "estimate", "policy", "simulation", "theory", "experiment", "logs", "study", "service"),
    *("testing", "policy.contextual", "simulation.contextual"),
)
MAY_BE_MISSING = re.compile("docstring of .* reference target not found")
LOADED = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["'](https?:)?//""", re.IGNORECASE)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the documentation once; only docstrings may name what has no page, such as private helpers."""
    for package in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(package)
    target = tmp_path_factory.mktemp("html")
    command = [sys.executable, "-m", "sphinx", "-q", "-n", "-b", "html", ROOT / "docs", target]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    warnings = [line for line in done.stderr.splitlines() if not MAY_BE_MISSING.search(line)]
    assert warnings == []
    return target


@pytest.fixture(scope="module")
def inventory(built):
    """Return the names that can be linked to."""
    content = (built / "objects.inv").read_bytes().split(b"\n", 4)[4]
    return {line.split(" ", 1)[0] for line in zlib.decompress(content).decode("utf-8").splitlines()}


@pytest.mark.parametrize("package", ["orthobandit", *(f"orthobandit.{name}" for name in PACKAGES)])
def test_the_reference_has_every_public_name(package, inventory):
    module = importlib.import_module(package)
    public = [name for name in getattr(module, "__all__", []) if not name.startswith("_")]
    # Methods of others can still be imported from where they once were, and are described where they are.
    documented = {name.removeprefix("orthobandit.peers.") for name in inventory if ".peers." in name}
    moved = documented if package in ("orthobandit.policy", "orthobandit.policy.contextual") else set()
    assert [name for name in public if f"{package}.{name}" not in inventory and name not in moved] == []


def test_pages_load_nothing_from_elsewhere(built):
    pages = sorted(built.rglob("*.html"))
    assert len(pages) > 20
    assert [page.name for page in pages if LOADED.search(page.read_text(encoding="utf-8"))] == []


def test_links_lead_to_pages_and_places_that_exist(built):
    texts = {page.resolve(): page.read_text(encoding="utf-8") for page in built.rglob("*.html")}
    places = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in texts.items()}
    broken = []
    for page, text in texts.items():
        for link in re.findall(r'(?:href|src)="([^":]+)"', text):
            path, _, place = link.partition("#")
            target = (page.parent / path.partition("?")[0]).resolve() if path else page
            if not target.exists() or (place and place not in places.get(target, {place})):
                broken.append(f"{page.name}: {link}")
    assert broken == []


def test_formulae_are_drawn_by_the_local_mathjax(built):
    text = (built / "derivations.html").read_text(encoding="utf-8")
    assert re.search(r'<script[^>]*src="_static/vendor/mathjax/tex-svg.js', text)
    assert (built / "_static/vendor/mathjax/LICENSE").is_file()


def test_links_of_the_readme_lead_to_files():
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(targets) > 10
    assert [target for target in targets if "://" not in target and not (ROOT / target).is_file()] == []
