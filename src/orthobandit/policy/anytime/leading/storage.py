"""How the memory of anytime elimination with very many arms is written down and read back."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np

from orthobandit._foundation.json_arrays import packed, sparse, unpacked, unsparse
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Tally
from orthobandit.policy.anytime.leading.against import Against
from orthobandit.policy.anytime.leading.run import EMPTY, LeadingRun
from orthobandit.policy.anytime.leading.state import LeadingState

MARK = "against leaders"  # in a dump, tells it from one of all pairs
VERSION = 2  # in 1, evidence of exact modes did not say how large rounds were
WHOLE = ("stage", "length", "late", "rounds", "designed", "plans", "watched", "leader", "declared", "leaders")
REAL = ("noise", "squared", "scattered", "largest", "excess", "informed")
MATRICES = ("gram", "moment")
SPARSE = ("probabilities", "drawn", "relative")
TALLIED = ("counts", "sums", "squares", "largest")


def dump(state: LeadingState) -> dict[str, Any]:
    """Return the state as plain values that survive ``json.dumps`` exactly; long arrays are packed."""
    parts = [getattr(state.tally, name).reshape(len(state.runs), -1) for name in TALLIED]
    tallies = (
        {name: sparse(part[row]) for name, part in zip(TALLIED, parts, strict=True)}
        for row in range(len(state.runs))
    )
    return {
        MARK: VERSION,
        "batch": list(state.batch),
        "runs": [_dumped(run) for run in state.runs],
        "tallies": list(tallies),
    }


def load(arms: ArmSet, data: Mapping[str, Any]) -> LeadingState:
    """Invert :func:`dump`."""
    if data[MARK] != VERSION:
        raise ParameterError(f"data[{MARK!r}] is {data[MARK]!r}; this version reads {VERSION}")
    batch = tuple(int(size) for size in data["batch"])
    count = len(arms)
    runs = tuple(_loaded(arms, run) for run in data["runs"])
    kinds = (np.int64, np.float64, np.float64, np.float64)
    tallied = [
        np.array([unsparse(name, one[name], kind, count) for one in data["tallies"]]).reshape((*batch, count))
        for name, kind in zip(TALLIED, kinds, strict=True)
    ]
    return LeadingState(arms, batch, runs, Tally(*tallied))


def _dumped(run: LeadingRun) -> dict[str, Any]:
    sequences = list(run.sequences())
    return {
        **{name: int(getattr(run, name)) for name in WHOLE},
        **{name: float(getattr(run, name)) for name in REAL},
        **{name: packed(getattr(run, name)) for name in (*MATRICES, "values")},
        **{name: sparse(getattr(run, name)) for name in SPARSE},
        "active": packed(np.packbits(run.active)),
        "epsilon": float(run.epsilon) if np.isfinite(run.epsilon) else None,
        "counts": run.tests is not None,
        "sequences": [_sums(one, sequences[:place]) for place, one in enumerate(sequences)],
    }


def _sums(one: Against, before: list[Against]) -> dict[str, Any]:
    """Return evidence as plain values; its arrays by number where they are those of an earlier one."""
    same = [place for place, other in enumerate(before) if one.is_same_as(other)]
    head = {"arm": one.arm, "alpha": one.alpha, "since": one.since}
    return (
        {**head, "same": same[0]}
        if same
        else {**head, **{name: packed(getattr(one, name)) for name in _names()}}
    )


def _names() -> list[str]:
    return [part.name for part in fields(Against) if part.name not in ("arm", "alpha", "since")]


def _loaded(arms: ArmSet, data: Mapping[str, Any]) -> LeadingRun:
    k = len(arms)
    r = arms.dimension
    shapes: dict[str, tuple[int | None, ...]] = {"gram": (r, r), "moment": (r,), "values": (k,)}
    bits = unpacked("active", data["active"], np.uint8, ((k + 7) // 8,))
    active = np.unpackbits(bits, count=k).astype(np.bool_)
    sequences = list[Against]()
    for one in data["sequences"]:
        head = (int(one["arm"]), float(one["alpha"]), int(one["since"]))
        if "same" in one:
            sequences.append(replace(sequences[one["same"]], arm=head[0], alpha=head[1], since=head[2]))
            continue
        shape = (int(np.count_nonzero(active)),)
        sequences.append(Against(*head, *(unpacked(name, one[name], np.float64, shape) for name in _names())))
    counts = bool(data["counts"])
    parts: dict[str, Any] = {
        **{name: int(data[name]) for name in WHOLE},
        **{name: float(data[name]) for name in REAL},
        **{name: unpacked(name, data[name], np.float64, shape) for name, shape in shapes.items()},
        **{name: unsparse(name, data[name], np.float64, k) for name in SPARSE},
    }
    return LeadingRun(
        **parts,
        **EMPTY,
        active=active,
        retired=np.zeros(k, dtype=np.bool_),
        epsilon=np.inf if data["epsilon"] is None else float(data["epsilon"]),
        tests=sequences[0] if counts else None,
        led=tuple(sequences[1:]) if counts else (),
    )
