"""What the package promises to keep; `python tests/public_names.py` writes it down after a change."""

import json
from importlib import import_module
from pathlib import Path

FILE = Path(__file__).with_suffix(".json")
MODULES = (
    "orthobandit",
    "orthobandit.design",
    "orthobandit.estimate",
    "orthobandit.experiment",
    "orthobandit.logs",
    "orthobandit.peers",
    "orthobandit.policy",
    "orthobandit.policy.contextual",
    "orthobandit.service",
    "orthobandit.simulation",
    "orthobandit.simulation.contextual",
    "orthobandit.study",
    "orthobandit.testing",
    "orthobandit.theory",
)


def public_names() -> dict[str, list[str]]:
    """Return ``__all__`` of every module whose names are public."""
    return {name: sorted(import_module(name).__all__) for name in MODULES}


if __name__ == "__main__":
    FILE.write_text(json.dumps(public_names(), indent=1) + "\n", encoding="utf-8")
