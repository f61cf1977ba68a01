"""What cells take: learned from those that are finished, for the time that is left."""

from collections.abc import Iterable

from orthobandit.study.cells import Cell

Kind = tuple[str, ...]
LEAST = 1e-3  # seconds of a cell: nothing takes no time


class Costs:
    """Seconds that cells took and will take.

    A cell says beforehand what it may cost, roughly; how far off that is depends on its kind: the task, the
    policy, the instance, the shift. So the factor between seconds and costs is learned kind by kind, and
    for kinds of which none is finished from all together.

    Parameters
    ----------
    cells : iterable of Cell
        All that there are.

    Examples
    --------
    >>> cells = [Cell("math:hypot", {"n": n}, cost=2.0) for n in range(4)]
    >>> costs = Costs(cells)
    >>> costs.progress()
    (0.0, 8.0)
    >>> costs.finish(cells[0], 6.0)
    >>> costs.progress()
    (6.0, 24.0)
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._left: dict[Kind, float] = {}
        self._seconds: dict[Kind, float] = {}  # of finished cells whose seconds are known
        self._costs: dict[Kind, float] = {}  # of the same
        self._untimed: dict[Kind, float] = {}
        for cell in cells:
            kind = kind_of(cell)
            self._left[kind] = self._left.get(kind, 0.0) + cell.cost

    def finish(self, cell: Cell, seconds: float | None) -> None:
        """Count a cell as finished; None if nobody knows how long it took."""
        kind = kind_of(cell)
        self._left[kind] -= cell.cost
        if seconds is None:
            self._untimed[kind] = self._untimed.get(kind, 0.0) + cell.cost
            return
        self._seconds[kind] = self._seconds.get(kind, 0.0) + max(seconds, LEAST)
        self._costs[kind] = self._costs.get(kind, 0.0) + cell.cost

    def progress(self) -> tuple[float, float]:
        """Return the seconds of work that are done, and of all work as far as can be told."""
        known = sum(self._costs.values())
        usual = sum(self._seconds.values()) / known if known else 1.0
        factor = {kind: self._seconds[kind] / self._costs[kind] for kind in self._costs if self._costs[kind]}
        done = sum(self._seconds.values(), start=0.0)
        done += sum(cost * factor.get(kind, usual) for kind, cost in self._untimed.items())
        left = sum(max(cost, 0.0) * factor.get(kind, usual) for kind, cost in self._left.items())
        return done, done + left


def kind_of(cell: Cell) -> Kind:
    """Return what cells that cost alike have in common: the task, and settings that are names or kinds.

    Examples
    --------
    >>> kind_of(Cell("math:hypot", {"policy": {"kind": "sbe"}, "design": "anchor", "seed": 3}))
    ('math:hypot', 'design=anchor', 'policy=sbe')
    """
    named = {}
    for key, value in cell.settings.items():
        name = value.get("kind") if isinstance(value, dict) else value
        if isinstance(name, str):
            named[key] = name
    return (cell.task, *(f"{key}={name}" for key, name in sorted(named.items())))


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Return the order of work: one cell of every kind, to learn what it takes, then the rest.

    Costly ones come first, so that the last to finish are short.
    """
    costly = sorted(cells, key=lambda cell: -cell.cost)
    first: dict[Kind, Cell] = {}
    for cell in costly:
        first.setdefault(kind_of(cell), cell)
    pilots = {id(cell) for cell in first.values()}
    return [*first.values(), *(cell for cell in costly if id(cell) not in pilots)]
