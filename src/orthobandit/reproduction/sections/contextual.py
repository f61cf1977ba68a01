"""Personalised rounds: regret beside peers, where the level depends on who comes, in published settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Dot, dot_rows
from orthobandit.reproduction.offers import TASK
from orthobandit.reproduction.sections.base import Chart, Data, Grid, Judgement, Measured, Scope
from orthobandit.study.cells import Cell
from orthobandit.study.tables import where

SECONDS_A_ROUND = 4e-6  # roughly, Thompson sampling's


@dataclass(frozen=True)
class World:
    """A setting: what the task makes it from, and which panel of the figure it belongs to."""

    settings: Mapping[str, Any]
    panel: str
    level: str  # in words, for tables


@dataclass(frozen=True)
class Player:
    """A policy by its name in the task, its tunings if it is tuned in hindsight, and where it plays.

    `quick` tells whether the quick form has it; `worlds` are names, all of them if empty.
    """

    name: str
    tunings: tuple[float, ...] = ()
    is_quick: bool = True
    worlds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """A claim: in the worst of some worlds, a policy has at most `bound` times the regret of the best peer.

    Attributes
    ----------
    name, claim, source
        As in :class:`Judgement`.
    policy : str
    peers : tuple of str
        In every world the one with the least mean regret counts.
    worlds : dict of str
        The policy's world, and the one that its peers play in.
    bound : float
    """

    name: str
    claim: str
    policy: str
    peers: tuple[str, ...]
    worlds: Mapping[str, str]
    bound: float
    source: str = "here"


@dataclass(frozen=True)
class PersonalisedTable:
    """Mean regret of several policies in several worlds of personalised rounds.

    Attributes
    ----------
    worlds : dict of World
    players : dict of Player
        By what tables call them.
    comparisons : tuple of Comparison
        Those whose policies and worlds the form has are judged.
    rounds : (int, int)
        Quick and full.
    runs : (int, int)
        Each with an effect θ of its own, the same for all policies.
    quick_worlds : tuple of str
        Worlds of the quick form.
    """

    name: str
    title: str
    group: str
    plain: str
    about: str
    claims: str
    worlds: Mapping[str, World]
    players: Mapping[str, Player]
    comparisons: Sequence[Comparison]
    rounds: tuple[int, int]
    runs: tuple[int, int] = (8, 24)
    quick_worlds: tuple[str, ...] = field(default=())

    def setting(self, scope: Scope) -> str:
        """Return what is run."""
        tuned = [label for label, player in self._players(scope).items() if player.tunings]
        hindsight = f" Tuned in hindsight: {', '.join(tuned)}." if tuned else ""
        return (
            f"{self.about}; T = {scope.pick(*self.rounds):,}, {scope.pick(*self.runs)} runs, each with an"
            f" effect of its own, visitors and noise the same for all policies.{hindsight}"
        )

    def cells(self, scope: Scope) -> list[Cell]:
        """Return every policy in every world, at every tuning."""
        rounds = scope.pick(*self.rounds)
        runs = scope.pick(*self.runs)
        return [
            Cell(
                task=TASK,
                settings={
                    "player": player.name,
                    "world": dict(self.worlds[world].settings),
                    "horizon": rounds,
                    "replications": runs,
                    "seed": scope.seed,
                }
                | ({} if tuning is None else {"tuning": tuning}),
                labels={
                    "policy": label,
                    "world": world,
                    "tuning": -1.0 if tuning is None else float(tuning),
                },
                cost=1.0 + SECONDS_A_ROUND * rounds * runs,
            )
            for label, player in self._players(scope).items()
            for world in self._worlds(scope)
            if not player.worlds or world in player.worlds
            for tuning in player.tunings or (None,)
        ]

    def _players(self, scope: Scope) -> dict[str, Player]:
        return {
            label: player for label, player in self.players.items() if player.is_quick or not scope.is_quick
        }

    def _worlds(self, scope: Scope) -> Sequence[str]:
        return self.quick_worlds if scope.is_quick and self.quick_worlds else list(self.worlds)

    def verdicts(self, data: Data) -> list[Judgement]:
        """Return whether regret is as small as claimed, in the worst world of each claim."""
        found = []
        for comparison in self.comparisons:
            sides = []
            for world, other in comparison.worlds.items():
                own = self._regret(data, comparison.policy, world)
                rivals = [self._regret(data, peer, other) for peer in comparison.peers]
                played = [regret for regret in rivals if regret.size]
                if own.size and played:
                    # The best in hindsight, which favours the peers.
                    sides.append((own, min(played, key=lambda regret: float(regret.mean()))))
            ratios = [Measured.ratio(own, rival, among=len(sides)) for own, rival in sides]
            if ratios:
                found.append(
                    Judgement(
                        name=comparison.name,
                        claim=comparison.claim,
                        source=comparison.source,
                        statistic=f"regret, {comparison.policy} / {_either(comparison.peers)}"
                        + (", worst level" if len(ratios) > 1 else ""),
                        measured=Measured.largest(ratios),
                        relation="≤",
                        bound=comparison.bound,
                    )
                )
        return found

    def grids(self, data: Data) -> list[Grid]:
        """Return one table a panel: a row for each policy, a column for each level."""
        return [
            Grid(
                f"Regret, {panel}, mean ± standard error over runs.",
                ["policy", *(self.worlds[world].level for world in worlds)],
                [
                    [label, *(_cell(self._regret(data, label, world)) for world in worlds)]
                    for label in self._played(data)
                ],
                words=1,
            )
            for panel, worlds in self._panels(data).items()
        ]

    def charts(self, data: Data) -> list[Chart]:
        """Return one chart a panel."""

        def draw(worlds: Sequence[str]) -> Any:
            rows = {
                label: {
                    f"level {self.worlds[world].level}": _dot(self._regret(data, label, world))
                    for world in worlds
                    if self._regret(data, label, world).size
                }
                for label in self._played(data)
            }
            return dot_rows({label: dots for label, dots in rows.items() if dots}, "regret (units of reward)")

        return [
            Chart(
                f"regret-{number}",
                f"Mean regret, {panel}, with bars of one standard error, on a logarithmic axis.",
                partial(draw, worlds),
            )
            for number, (panel, worlds) in enumerate(self._panels(data).items(), start=1)
        ]

    def _played(self, data: Data) -> list[str]:
        return [label for label in self.players if label in data["runs"]["policy"]]

    def _panels(self, data: Data) -> dict[str, list[str]]:
        """Return the worlds that were played, by panel."""
        panels: dict[str, list[str]] = {}
        for name, world in self.worlds.items():
            if name in data["runs"]["world"]:
                panels.setdefault(world.panel, []).append(name)
        return panels

    def _regret(self, data: Data, label: str, world: str) -> Array:
        """Return the regret (n,) of a policy's runs, at its best tuning; empty if there are none."""
        rows = where(data["runs"], policy=label, world=world)
        by_tuning = [
            where(rows, tuning=tuning)["regret"].astype(np.float64) for tuning in np.unique(rows["tuning"])
        ]
        return min(by_tuning, key=lambda regret: float(regret.mean()), default=np.zeros(0))


def _either(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"the best of {', '.join(names[:-1])} and {names[-1]}"


def _dot(regret: Array) -> Dot:
    mean = Measured.mean(regret)
    return Dot(mean.value, mean.error or 0.0)


def _cell(regret: Array) -> str:
    if not regret.size:
        return "–"
    dot = _dot(regret)
    return f"{dot.value:,.0f} ± {dot.error:,.0f}"


# The settings -----------------------------------------------------------------------------------------------

LEVELS = {
    "none": "0",
    "sine": "1 + sin 2t",
    "against the best": "−max xᵀθ",
    "against the plan": "−μᵀθ",
}
SIZES = (5, 10, 20)
ROBUST = ("BOSE", "semiparametric TS", "action-centred TS")


def _sphere(dimension: int, level: str) -> World:
    settings = {"kind": "sphere", "arms": 10, "dimension": dimension, "noise": 0.5, "level": level}
    return World(settings, f"d = {dimension}", LEVELS[level])


def _name(dimension: int, level: str) -> str:
    return f"d = {dimension}, {level}"


def sphere_table(group: str) -> PersonalisedTable:
    """Return the table over dimensions and levels."""
    # Offers that are drawn anew, so that what is best changes from visitor to visitor.
    return PersonalisedTable(
        name="personalised",
        title="What learning costs where every visitor is offered something else",
        group=group,
        plain="When every visitor is offered ten arms of their own, who loses least, and who breaks down if"
        " the level of rewards follows what is played?",
        about="10 arms uniform on the unit sphere in every round, θ of length 1, σ = ½",
        claims="Centred information-directed sampling, untuned, has at most a tenth more regret than the best"
        " of the published policies that no level can bias, whatever the level does; LinUCB has less while"
        " the level keeps still, and fails where it follows the plan. Not a claim of the paper's.",
        worlds={_name(size, level): _sphere(size, level) for size in SIZES for level in LEVELS},
        players={
            "ours": Player("ours"),
            "ours, guaranteed": Player("ours, guaranteed", is_quick=False),
            "LinUCB": Player("LinUCB"),
            "BOSE": Player("BOSE", is_quick=False),
            "semiparametric TS": Player("semiparametric TS", is_quick=False),
            "action-centred TS": Player("action-centred TS", is_quick=False),
        },
        comparisons=[
            comparison
            for size in SIZES
            for comparison in (
                Comparison(
                    name=f"ours, d = {size}",
                    claim=f"with {size} features, ours has no more regret than the best published policy that"
                    " no level can bias, but for 10 %",
                    policy="ours",
                    peers=ROBUST,
                    worlds={_name(size, level): _name(size, level) for level in LEVELS},
                    bound=1.1,
                ),
                Comparison(
                    name=f"LinUCB fails, d = {size}",
                    claim=f"with {size} features and a level that follows the plan, ours has at most a tenth"
                    " of LinUCB's regret",
                    policy="ours",
                    peers=("LinUCB",),
                    worlds={_name(size, "against the plan"): _name(size, "against the plan")},
                    bound=0.1,
                ),
            )
        ],
        rounds=(5_000, 20_000),
        quick_worlds=tuple(_name(10, level) for level in LEVELS),
    )


VISITED = {
    "none": "0",
    "linear in who comes": "2·z₁",
    "curved in who comes": "2·sin 2z₁ + z₂²",
}


def visitors_table(group: str) -> PersonalisedTable:
    """Return the table of levels that depend on who comes."""
    return PersonalisedTable(
        name="visitors",
        title="What learning costs where the level depends on who comes",
        group=group,
        plain="If some visitors buy more whatever they are shown, does it still cost little to find out what"
        " to show to whom?",
        about="4 arms × a context of 3 standard normal columns, d = 12, θ of length 1, σ = ½",
        claims="A forecast from the context takes most of the level away: linear for a linear level, smooth"
        " for one that no linear policy can follow. Regret is then within a small factor of what it is"
        " without a shift. Not a claim of the paper's.",
        worlds={
            level: World({"kind": "visitors", "noise": 0.5, "level": level}, "4 arms × 3 columns", words)
            for level, words in VISITED.items()
        },
        players={
            "ours": Player("ours"),
            "ours, linear forecast": Player("ours, linear forecast"),
            "ours, smooth forecast": Player("ours, smooth forecast"),
            "LinUCB": Player("LinUCB"),
            "BOSE": Player("BOSE", is_quick=False),
            "semiparametric TS": Player("semiparametric TS", is_quick=False),
            "action-centred TS": Player("action-centred TS", is_quick=False),
        },
        comparisons=[
            Comparison(
                name="linear level",
                claim="with a linear forecast from the context, a linear level at most doubles regret",
                policy="ours, linear forecast",
                peers=("ours",),
                worlds={"linear in who comes": "none"},
                bound=2.0,
            ),
            Comparison(
                name="curved level",
                claim="with a smooth forecast from the context, a curved level at most trebles regret",
                policy="ours, smooth forecast",
                peers=("ours",),
                worlds={"curved in who comes": "none"},
                bound=3.0,
            ),
            Comparison(
                name="curved level, LinUCB",
                claim="where the level is curved, ours with a smooth forecast has at most a fifth of LinUCB's"
                " regret",
                policy="ours, smooth forecast",
                peers=("LinUCB",),
                worlds={"curved in who comes": "curved in who comes"},
                bound=0.2,
            ),
        ],
        rounds=(5_000, 20_000),
    )


BOSE_LEVELS = {"none": "0", "against the best": "−max xᵀθ"}
TUNINGS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)


def bose_table(group: str) -> PersonalisedTable:
    """Return BOSE's published setting."""
    worlds = {
        f"{kind}, {level}, σ = {noise:g}": World(
            {"kind": kind, "arms": 5, "dimension": 10, "noise": noise, "level": level},
            f"{'sphere' if kind == 'sphere' else 'positive features'}, σ = {noise:g}",
            words,
        )
        for kind in ("sphere", "positive")
        for noise in (0.1, 0.5)
        for level, words in BOSE_LEVELS.items()
    }
    confounded = [name for name in worlds if "against" in name]
    return PersonalisedTable(
        name="bose-setting",
        title="What learning costs in the setting that BOSE was published with",
        group=group,
        plain="In the simulations of BOSE's authors, does ours lose no more than BOSE tuned in hindsight?",
        about="5 arms, d = 10, unit features on the sphere or in the positive orthant, σ = 0.1 and ½, as in"
        " the scripts that BOSE's authors released",
        claims="BOSE has less regret than LinUCB where the level is −max xᵀθ (Krishnamurthy, Wu & Syrgkanis"
        " 2018, from their figures). Ours, untuned, comes close to both, tuned in hindsight: asked here.",
        worlds=worlds,
        players={
            "ours": Player("ours"),
            "LinUCB, tuned": Player("LinUCB", TUNINGS),
            "BOSE as released, tuned": Player("BOSE, released", TUNINGS, is_quick=False),
        },
        comparisons=[
            Comparison(
                name="BOSE below LinUCB",
                claim="where the level is −max xᵀθ, BOSE has no more regret than LinUCB, both tuned",
                policy="BOSE as released, tuned",
                peers=("LinUCB, tuned",),
                worlds={name: name for name in confounded},
                bound=1.0,
                source="question",
            ),
            Comparison(
                name="ours against BOSE",
                claim="where the level is −max xᵀθ, ours untuned has at most 1.5 times the regret of BOSE"
                " tuned in hindsight",
                policy="ours",
                peers=("BOSE as released, tuned",),
                worlds={name: name for name in confounded},
                bound=1.5,
            ),
        ],
        rounds=(2_000, 2_000),
        runs=(8, 24),
        quick_worlds=("sphere, none, σ = 0.5", "sphere, against the best, σ = 0.5"),
    )


KIM_PAIK_LEVELS = {"none": "0", "best": "−max xᵀθ", "log": "log(t + 1)"}


def kim_paik_table(group: str) -> PersonalisedTable:
    """Return Kim & Paik's published setting."""
    return PersonalisedTable(
        name="kim-paik-setting",
        title="What learning costs in the setting that semiparametric Thompson sampling was published with",
        group=group,
        plain="In the simulations of semiparametric Thompson sampling's authors, does ours lose less?",
        about="Two arms, the reference without features and one uniform in the unit ball of R¹⁰, σ = 0.1, θ"
        " as released",
        claims="Semiparametric TS has less regret than action-centred TS, and than linear policies where the"
        " level moves (Kim & Paik 2019, from their figures). Ours, untuned, has no more than either.",
        worlds={
            level: World({"kind": "kim-paik", "level": level}, "Kim & Paik's simulation", words)
            for level, words in KIM_PAIK_LEVELS.items()
        },
        players={
            "ours": Player("ours"),
            "LinUCB": Player("LinUCB"),
            "BOSE": Player("BOSE", is_quick=False),
            "semiparametric TS, tuned": Player("semiparametric TS", TUNINGS, is_quick=False),
            "semiparametric TS, released rule": Player("semiparametric TS, released", is_quick=False),
            "action-centred TS": Player("action-centred TS", is_quick=False),
        },
        comparisons=[
            Comparison(
                name="semiparametric below action-centred",
                claim="semiparametric TS, tuned in hindsight, has less regret than action-centred TS",
                policy="semiparametric TS, tuned",
                peers=("action-centred TS",),
                worlds={level: level for level in KIM_PAIK_LEVELS},
                bound=1.0,
                source="question",
            ),
            Comparison(
                name="ours against semiparametric TS",
                claim="ours untuned has no more regret than semiparametric TS tuned in hindsight",
                policy="ours",
                peers=("semiparametric TS, tuned",),
                worlds={level: level for level in KIM_PAIK_LEVELS},
                bound=1.0,
            ),
            Comparison(
                name="ours against LinUCB, growing level",
                claim="where the level grows, ours has no more regret than LinUCB",
                policy="ours",
                peers=("LinUCB",),
                worlds={"log": "log"},
                bound=1.0,
            ),
        ],
        rounds=(5_000, 10_000),
    )
