"""Studies: specs of many runs, and the sweeps that run them."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orthobandit.study.spec import Part, Sweep
    from orthobandit.study.sweep import SweepResult, run_sweep
    from orthobandit.study.toml import read_spec

__all__ = ["Part", "Sweep", "SweepResult", "read_spec", "run_sweep"]

# Imported when first asked for: a worker that computes a cell needs none of them.
_LATER = {
    "Part": "orthobandit.study.spec",
    "Sweep": "orthobandit.study.spec",
    "SweepResult": "orthobandit.study.sweep",
    "read_spec": "orthobandit.study.toml",
    "run_sweep": "orthobandit.study.sweep",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'orthobandit.study' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
