"""A study as data: policies × instances × shifts × seeds, checked before anything runs."""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from orthobandit._foundation.checks import check_whole
from orthobandit._foundation.fingerprint import fingerprint
from orthobandit._foundation.registry import SettingError, make_named
from orthobandit.arms import ArmSet
from orthobandit.errors import InputError, ParameterError, SpecError
from orthobandit.peers import POLICIES, needs_horizon, range_settings
from orthobandit.policy import FOREVER
from orthobandit.simulation import INSTANCES, NOISES, SHIFTS, Environment, Oblivious, simulate
from orthobandit.simulation.runner import checked_checkpoints, default_checkpoints, seconds_a_round
from orthobandit.study.cells import Cell, Tables

Maker = Callable[..., Any]


def table_instance(features: ArrayLike, theta: ArrayLike, labels: Sequence[str] | None = None) -> Environment:
    """Return arms with these features (K, d), and θ (d,)."""
    return Environment(ArmSet(features, labels), theta)


def file_instance(
    path: str, theta: ArrayLike, label: str | None = None, features: Sequence[str] | None = None
) -> Environment:
    """Return the arms of a file, as :meth:`~orthobandit.ArmSet.read` finds them, and θ (d,)."""
    return Environment(ArmSet.read(path, label=label, features=features), theta)


OWN_ARMS: Mapping[str, Maker] = {"table": table_instance, "file": file_instance}
KINDS: Mapping[str, Mapping[str, Maker]] = {
    "policy": POLICIES,
    "instance": ChainMap(dict(OWN_ARMS), cast(dict[str, Maker], INSTANCES)),
    "shift": SHIFTS,
    "noise": NOISES,
}

# Settings of an instance that a study gives by other means.
ELSEWHERE = {"shift", "noise"}


def make(what: str, kind: str, settings: Mapping[str, Any], keys: tuple[str, ...] = ()) -> Any:
    """Build one thing; :class:`SpecError` says which entry is wrong and what it should be.

    Parameters
    ----------
    what : {"policy", "instance", "shift", "noise"}
    kind : str
        A name of that catalogue.
    settings : dict
        Keyword arguments; lists stand for tuples.
    keys : tuple of str
        Where the settings stand in the spec.

    Examples
    --------
    >>> make("policy", "sbe", {"delta": 0.1}).delta
    0.1
    """
    # TOML and JSON have no tuples; in a frozen dataclass a list would be the one thing that can change.
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
    try:
        hidden = ELSEWHERE if what == "instance" else set()
        return make_named(what, KINDS[what], kind, plain, hidden=hidden)
    except SettingError as error:
        raise SpecError(error, (*keys, error.key) if error.key else keys) from None


MAX_CELLS = 10**6  # each becomes a file: more would burden the file system for hours
TASK = "orthobandit.study.spec:run_policy"


@dataclass(frozen=True)
class Part:
    """A kind of policy, instance, shift or noise, its settings, and where in a spec it stands."""

    kind: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    keys: tuple[str, ...] = field(default=(), compare=False)

    def make(self, what: str, keys: tuple[str, ...]) -> Any:
        """Build the thing; an error says where it stands, in `keys` unless it came from a file."""
        return make(what, self.kind, self.settings, self.keys or keys)

    def plain(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {"kind": self.kind, "settings": dict(self.settings)}

    def content(self, what: str) -> dict[str, Any]:
        """Return plain JSON values: all that decides what is made, the user's own code and arms included."""
        kind = self.kind
        settings = dict(self.settings)
        if what == "instance" and kind == "file":
            # The arms count, not the file's name: an edited file must not find the old cells.
            arms = file_instance(**settings).arms
            features = arms.features.tolist()
            labels = list(arms.labels)
            kind = "table"
            settings = {"features": features, "theta": settings["theta"], "labels": labels}
        own = {} if _is_ours(KINDS[what][kind]) else {"code": fingerprint(KINDS[what][kind])}
        return {"kind": kind, "settings": settings} | own


@dataclass(frozen=True)
class Sweep:
    """Every policy on every instance under every shift with every seed.

    Parameters
    ----------
    policies, instances, shifts : dict of str to Part
        By the name that the tables show.
    horizon : int
        Rounds of a run. Policies that need it get it.
    replications : int
        Runs of each combination, numbered from 0.
    seeds : tuple of int
        Each names its own streams; policies are compared on the same noise.
    noise : Part
    checkpoints : tuple of int, optional
        Rounds after which the regret is noted; 50 by default, evenly spaced in the logarithm.
    stop_when_declared : bool
        End a run when an arm is declared best.
    range_known : bool
        Where the noise says in which range every reward lies, as ``bernoulli`` and ``clipped`` do, tell it to
        policies that can use it and say nothing of it themselves, as `orthobandit simulate` does: ``anytime``
        then keeps its promise at every sample size, not only at large ones.
    batch : int
        Runs in a cell. More replications later compute only the new cells.
    seconds_a_round : float, optional
        How long a round takes, for the order of work and the time left.
    labels : dict
        More columns of the tables, the same in every row.

    Examples
    --------
    >>> study = Sweep(
    ...     policies={"SBE": Part("sbe"), "exact design": Part("sbe", {"design": "centred"})},
    ...     instances={"small": Part("exact-gap", {"seed": 1})},
    ...     shifts={"sine": Part("sine")},
    ...     horizon=1000,
    ... )
    >>> [dict(cell.labels)["policy"] for cell in study.cells()]
    ['SBE', 'SBE', 'exact design', 'exact design']

    :func:`orthobandit.study.run_sweep` runs it. A kind is a name that ``orthobandit simulate --help`` lists,
    ``module:Name`` for a class of yours, or for instances ``"table"`` and ``"file"`` for arms of yours.
    """

    policies: Mapping[str, Part]
    instances: Mapping[str, Part]
    shifts: Mapping[str, Part]
    horizon: int
    replications: int = 20
    seeds: tuple[int, ...] = (0,)
    noise: Part = Part("gaussian")
    checkpoints: tuple[int, ...] | None = None
    stop_when_declared: bool = False
    range_known: bool = True
    batch: int = 10
    seconds_a_round: float | None = None
    labels: Mapping[str, str | int | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("horizon", 1), ("replications", 1), ("batch", 1)):
            _check_whole(name, getattr(self, name), least, FOREVER - 1)
        if not isinstance(self.seeds, Sequence):
            raise SpecError(f"seeds={self.seeds!r} must be several whole numbers, such as (0,)", ("seeds",))
        if not self.seeds:
            raise SpecError("seeds is empty; give at least one whole number", ("seeds",))
        for seed in self.seeds:
            _check_whole("seeds", seed, 0)
        if len(set(self.seeds)) < len(self.seeds):
            twice = next(seed for seed in self.seeds if self.seeds.count(seed) > 1)
            raise SpecError(
                f"seeds has {twice} twice, which would count the same runs twice; raise replications instead",
                ("seeds",),
            )
        for name in ("stop_when_declared", "range_known"):
            if not isinstance(getattr(self, name), bool):
                raise SpecError(f"{name}={getattr(self, name)!r} must be true or false", (name,))
        self._check_parts()
        parts = -(-self.replications // self.batch)
        many = parts * len(self.seeds) * len(self.policies) * len(self.instances) * len(self.shifts)
        if many > MAX_CELLS:
            raise SpecError(f"the study has {many:,} cells; raise batch={self.batch}", ("replications",))

    def _check_parts(self) -> None:
        """Build everything once: what cannot be built is refused before anything runs."""
        try:
            self._marks()
        except InputError as error:
            raise SpecError(error, ("checkpoints",)) from None
        for what, parts in (
            ("policies", self.policies),
            ("instances", self.instances),
            ("shifts", self.shifts),
        ):
            if not parts:
                raise SpecError(f"{what} is empty; give at least one", (what,))
            if not isinstance(parts, Mapping):
                raise SpecError(f"{what}={parts!r} must be a dict of parts by name", (what,))
            for name, part in parts.items():
                _check_part(part, (what, name))
        _check_part(self.noise, ("noise",))
        noise = self.noise.make("noise", ("noise",))
        for name, part in self.policies.items():
            self._told(part).make("policy", ("policies", name))
        shifts = {name: part.make("shift", ("shifts", name)) for name, part in self.shifts.items()}
        for name, shift in shifts.items():
            try:
                if isinstance(shift, Oblivious):
                    shift.require(self.horizon)
            except InputError as error:
                raise SpecError(error, ("shifts", name)) from None
        for name, part in self.instances.items():
            instance: Environment = part.make("instance", ("instances", name))
            instance.moved(next(iter(shifts.values())), noise)

    def cells(self) -> list[Cell]:
        """Return the cells, replications in parts of `batch`."""
        everything = product(
            self.policies.items(), self.instances.items(), self.shifts.items(), self.seeds, self._batches()
        )
        return [
            self._cell(policy, instance, shift, seed, runs)
            for policy, instance, shift, seed, runs in everything
        ]

    def _batches(self) -> list[tuple[int, int]]:
        starts = range(0, self.replications, self.batch)
        return [(first, min(self.batch, self.replications - first)) for first in starts]

    def _cell(
        self,
        policy: tuple[str, Part],
        instance: tuple[str, Part],
        shift: tuple[str, Part],
        seed: int,
        runs: tuple[int, int],
    ) -> Cell:
        settings = {
            "policy": self._told(policy[1]).content("policy"),
            "instance": instance[1].content("instance"),
            "shift": shift[1].content("shift"),
            "noise": self.noise.content("noise"),
            "horizon": self.horizon,
            "checkpoints": self._marks(),
            "stop_when_declared": self.stop_when_declared,
            "seed": seed,
            "first": runs[0],
            "replications": runs[1],
        }
        names: dict[str, str | int | float] = {
            "policy": policy[0],
            "instance": instance[0],
            "shift": shift[0],
            "seed": seed,
        }
        return Cell(TASK, settings, {**self.labels, **names}, cost=self._cost(policy[1], runs[1]))

    def _cost(self, part: Part, runs: int) -> float:
        seconds = self.seconds_a_round
        if seconds is None:
            seconds = seconds_a_round(self._told(part).make("policy", ()))
        # 0.05 s: starting a cell and writing its file, which dominates where rounds are few.
        return 0.05 + seconds * self.horizon * runs

    def _marks(self) -> list[int]:
        if self.checkpoints is None:
            return [int(mark) for mark in default_checkpoints(self.horizon)]
        return [int(mark) for mark in checked_checkpoints(np.array(self.checkpoints), self.horizon)]

    def _told(self, part: Part) -> Part:
        """Give a policy the horizon if it cannot do without, and the range of rewards if it is known."""
        # An unknown kind is refused later, with its place in the spec.
        if part.kind not in POLICIES:
            return part
        more: dict[str, Any] = {}
        if needs_horizon(part.kind) and "horizon" not in part.settings:
            more["horizon"] = self.horizon
        if self.range_known:
            more |= range_settings(part.kind, part.settings, self.noise.make("noise", ("noise",)).rewards)
        return Part(part.kind, {**part.settings, **more}, part.keys) if more else part


def _check_part(part: object, keys: tuple[str, ...]) -> None:
    if not isinstance(part, Part):
        remedy = f"write Part({part!r})" if isinstance(part, str) else "a Part(kind, settings) is needed"
        raise SpecError(f"{' '.join(keys)}: {part!r} is not a Part; {remedy}", keys)


def _is_ours(maker: Maker) -> bool:
    """Tell whether a maker comes with this package, whose code names the cell anyway."""
    function = maker.func if isinstance(maker, partial) else maker
    return str(getattr(function, "__module__", "")).partition(".")[0] == "orthobandit"


def _check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    try:
        check_whole(name, value, least, most)
    except ParameterError as error:
        raise SpecError(error, (name,)) from None


def environment_of(settings: dict[str, Any]) -> Environment:
    """Build the environment that a cell's settings describe."""
    base: Environment = make_part("instance", settings["instance"])
    return base.moved(make_part("shift", settings["shift"]), make_part("noise", settings["noise"]))


def run_policy(settings: dict[str, Any]) -> Tables:
    """Simulate one policy: `curves` by replication and checkpoint, `runs` by replication."""
    result = simulate(
        make_part("policy", settings["policy"]),
        environment_of(settings),
        horizon=settings["horizon"],
        first=settings["first"],
        replications=settings["replications"],
        seed=settings["seed"],
        checkpoints=settings["checkpoints"],
        stop_when_declared=settings["stop_when_declared"],
    )
    return result.tables()


def make_part(what: str, part: dict[str, Any]) -> Any:
    """Make the policy, instance, shift or noise that a cell's settings name."""
    return make(what, part["kind"], part["settings"])
