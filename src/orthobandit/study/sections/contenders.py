"""Who is compared in the regret figures, and on which arms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orthobandit.study.sections.base import Scope
from orthobandit.study.sections.tuning import AS_PUBLISHED, UNTUNED, WIDE


@dataclass(frozen=True)
class Contender:
    """A policy of the comparison.

    Attributes
    ----------
    kind, settings, quick
        The policy, and settings that make the quick form cheaper.
    runs, bold_runs : (int, int)
        On each arm set, quick and full; and where c < 1, if these are others: there a policy may stake all
        on a wrong arm, which is rare and costs much, so that a few runs would flatter it.
    seconds_a_round : float
        At (d, K) = (20, 30).
    scales : tuple of float
        The values of c; those of the paper's grid are compared in the first panel.
    variants : dict
        Further settings by name, each tried at every c; the first is what the paper runs.
    is_peer : bool
        Whether ours are measured against it when it is tuned in hindsight.
    margin : float, optional
        The claim is that its regret is at most so many times that of SBE, on the paper's grid.
    """

    kind: str
    settings: Mapping[str, Any]
    runs: tuple[int, int]
    bold_runs: tuple[int, int] | None = None
    quick: Mapping[str, Any] = field(default_factory=dict)
    seconds_a_round: float = 1e-7
    scales: tuple[float, ...] = WIDE
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {AS_PUBLISHED: {}})
    is_peer: bool = False
    margin: float | None = None

    @property
    def is_untuned(self) -> bool:
        """Whether it has no c at all."""
        return self.scales == (UNTUNED,)

    def runs_at(self, scale: float, scope: Scope) -> int:
        """Return how many runs on each arm set have this c."""
        return scope.pick(*(self.bold_runs if self.bold_runs and UNTUNED < scale < 1 else self.runs))

    def settings_at(self, variant: str, scale: float, scope: Scope) -> dict[str, Any]:
        """Return the settings of one variant with this c."""
        cheaper = self.quick if scope.is_quick else {}
        tuning = {} if scale == UNTUNED else {"scale": scale}
        return {**self.settings, **self.variants[variant], **cheaper, **tuning}


@dataclass(frozen=True)
class Size:
    """Arms of the comparison: how many random sets, so that nothing hangs on one, and for how long."""

    dimension: int
    count: int
    sets: tuple[int, int]
    rounds: tuple[int, int]

    @property
    def label(self) -> str:
        """The paper's (d, K)."""
        return f"({self.dimension}, {self.count})"
