"""Personalised rounds: regret beside peers, where the level depends on who comes, in published settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import Dot, dot_rows
from orthobandit.reproduction.measured import Measured
from orthobandit.reproduction.offers import TASK
from orthobandit.reproduction.section import Chart, Claim, Data, Form, Grid, Section
from orthobandit.study.cells import Cell
from orthobandit.study.tables import where

SECONDS_A_ROUND = 4e-6  # roughly, Thompson sampling's
TUNINGS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # of policies that are tuned in hindsight
NO_TUNING = -1.0  # the label of policies that are not


class PersonalisedWorld(NamedTuple):
    """A setting: what the task makes it from, its panel of the figure, and its level in words."""

    settings: Mapping[str, Any]
    panel: str
    level: str


def best_regret(data: Data, label: str, world: str) -> Array:
    """Return the regret (n,) of a policy's runs, at its best tuning; empty if there are none."""
    rows = where(data["runs"], policy=label, world=world)
    by_tuning = [
        where(rows, tuning=tuning)["regret"].astype(np.float64) for tuning in np.unique(rows["tuning"])
    ]
    return min(by_tuning, key=lambda regret: float(regret.mean()), default=np.zeros(0))


def worst_ratio(policy: str, peers: Sequence[str], worlds: Mapping[str, str], data: Data) -> Measured | None:
    """Return the regret of a policy / that of its best peer, in the worst world; None if nothing was played.

    `worlds` have the policy's world, and the one that its peers play in.
    """
    sides = []
    for world, other in worlds.items():
        own = best_regret(data, policy, world)
        rivals = [best_regret(data, peer, other) for peer in peers]
        played = [regret for regret in rivals if regret.size]
        if own.size and played:
            # The best in hindsight, which favours the peers.
            sides.append((own, min(played, key=lambda regret: float(regret.mean()))))
    ratios = [Measured.ratio(own, rival, among=len(sides)) for own, rival in sides]
    return Measured.largest(ratios) if ratios else None


def comparison(
    name: str,
    claim: str,
    sides: tuple[str, Sequence[str]],
    worlds: Mapping[str, str],
    at_most: float,
    source: str = "here",
) -> Claim:
    """Return the claim that a policy has at most so many times the regret of its best peer.

    `sides` are the policy and its peers; `worlds` as in :func:`worst_ratio`.
    """
    policy, peers = sides
    names = peers[0] if len(peers) == 1 else f"the best of {', '.join(peers[:-1])} and {peers[-1]}"
    worst = ", worst level" if len(worlds) > 1 else ""
    number = partial(worst_ratio, policy, peers, worlds)
    return Claim(name, claim, f"regret, {policy} / {names}{worst}", number, at_most=at_most, source=source)


def alike(worlds: Sequence[str]) -> dict[str, str]:
    """Return worlds in which a policy and its peers play alike."""
    return {world: world for world in worlds}


@dataclass(frozen=True)
class PersonalisedTable:
    """Mean regret of several policies in several worlds of personalised rounds.

    Attributes
    ----------
    name, title, plain, claims : str
        As in :class:`Section`.
    about : str
        Which rounds are played.
    worlds : dict of PersonalisedWorld
    players : dict of str
        Names of policies in the task, by what tables call them.
    judged : sequence of Claim
        Those whose policies and worlds the form has are judged.
    rounds : (int, int)
        Quick and full.
    runs : (int, int)
        Each with an effect θ of its own, the same for all policies.
    quick_worlds, quick_players : sequence of str
        Worlds and policies of the quick form.
    tuned : sequence of str
        Policies that are tuned in hindsight.
    """

    name: str
    title: str
    plain: str
    about: str
    claims: str
    worlds: Mapping[str, PersonalisedWorld]
    players: Mapping[str, str]
    judged: Sequence[Claim]
    rounds: tuple[int, int]
    quick_players: Sequence[str]
    quick_worlds: Sequence[str] = ()
    tuned: Sequence[str] = ()
    runs: tuple[int, int] = (8, 24)

    def described(self, form: Form) -> str:
        """Return what is run."""
        tuned = [label for label in self.tuned if label in form.players]
        hindsight = f" Tuned in hindsight: {', '.join(tuned)}." if tuned else ""
        return (
            f"{self.about}; T = {form.rounds:,}, {form.runs} runs, each with an effect of its own, visitors"
            f" and noise the same for all policies.{hindsight}"
        )

    def cells(self, form: Form) -> list[Cell]:
        """Return every policy in every world, at every tuning."""
        shared = {"horizon": form.rounds, "replications": form.runs, "seed": form.seed}
        return [
            Cell(
                TASK,
                {"player": self.players[label], "world": dict(self.worlds[world].settings)}
                | shared
                | ({} if tuning == NO_TUNING else {"tuning": tuning}),
                {"policy": label, "world": world, "tuning": tuning},
                cost=1.0 + SECONDS_A_ROUND * form.rounds * form.runs,
            )
            for label in form.players
            for world in form.worlds
            for tuning in (TUNINGS if label in self.tuned else (NO_TUNING,))
        ]

    def played(self, data: Data) -> list[str]:
        """Return the policies that were played."""
        return [label for label in self.players if label in data["runs"]["policy"]]

    def panels(self, data: Data) -> dict[str, list[str]]:
        """Return the worlds that were played, by panel."""
        panels: dict[str, list[str]] = {}
        for name, world in self.worlds.items():
            if name in data["runs"]["world"]:
                panels.setdefault(world.panel, []).append(name)
        return panels

    def table(self, panel: str, data: Data) -> Grid | None:
        """Return a row for each policy, a column for each level."""
        worlds = self.panels(data).get(panel)
        if worlds is None:
            return None
        rows = [
            [label, *(mean_words(best_regret(data, label, world)) for world in worlds)]
            for label in self.played(data)
        ]
        head = ["policy", *(self.worlds[world].level for world in worlds)]
        return Grid(f"Regret, {panel}, mean ± standard error over runs.", head, rows, words=1)

    def chart(self, panel: str, data: Data) -> Chart | None:
        """Return mean regret in the worlds of a panel."""
        panels = self.panels(data)
        if panel not in panels:
            return None
        rows: dict[str, dict[str, Dot]] = {}
        for label in self.played(data):
            for world in panels[panel]:
                regret = best_regret(data, label, world)
                if regret.size:
                    dots = rows.setdefault(label, {})
                    dots[f"level {self.worlds[world].level}"] = Dot.of(Measured.mean(regret))
        caption = f"Mean regret, {panel}, with bars of one standard error, on a logarithmic axis."
        number = list(panels).index(panel) + 1
        return Chart(f"regret-{number}", caption, partial(dot_rows, rows, "regret (units of reward)"))

    def section(self) -> Section:
        """Return the section."""
        panels = dict.fromkeys(world.panel for world in self.worlds.values())
        return Section(
            self.name,
            self.title,
            self.plain,
            self.claims,
            self.described,
            self.cells,
            self.judged,
            tabled=[partial(self.table, panel) for panel in panels],
            drawn=[partial(self.chart, panel) for panel in panels],
            sizes={
                "rounds": self.rounds,
                "runs": self.runs,
                "players": (self.quick_players, list(self.players)),
                "worlds": (self.quick_worlds or list(self.worlds), list(self.worlds)),
            },
        )


def mean_words(regret: Array) -> str:
    """Return mean regret with its standard error, if anything was played."""
    if not regret.size:
        return "–"
    mean = Measured.mean(regret)
    return f"{mean.value:,.0f} ± {mean.error or 0.0:,.0f}"


# The settings -----------------------------------------------------------------------------------------------

DIRECTED = "ours"
LINUCB = "LinUCB"
ROBUST = ("BOSE", "semiparametric TS", "action-centred TS")
LEVELS = {
    "none": "0",
    "sine": "1 + sin 2t",
    "against the best": "−max xᵀθ",
    "against the plan": "−μᵀθ",
}
SIZES = (5, 10, 20)


def sphere(dimension: int, level: str) -> PersonalisedWorld:
    """Return ten arms that are drawn anew in each round, so that what is best changes with the visitor."""
    settings = {"kind": "sphere", "arms": 10, "dimension": dimension, "noise": 0.5, "level": level}
    return PersonalisedWorld(settings, f"d = {dimension}", LEVELS[level])


def sphere_name(dimension: int, level: str) -> str:
    """Return what tables call such a world."""
    return f"d = {dimension}, {level}"


SPHERE_TABLE = PersonalisedTable(
    name="personalised",
    title="What learning costs where every visitor is offered something else",
    plain="When every visitor is offered ten arms of their own, who loses least, and who breaks down if the"
    " level of rewards follows what is played?",
    about="10 arms uniform on the unit sphere in every round, θ of length 1, σ = ½",
    claims="Centred information-directed sampling, untuned, has at most a tenth more regret than the best of"
    " the published policies that no level can bias, whatever the level does; LinUCB has less while the level"
    " keeps still, and fails where it follows the plan. Not a claim of the paper's.",
    worlds={sphere_name(size, level): sphere(size, level) for size in SIZES for level in LEVELS},
    players={name: name for name in (DIRECTED, "ours, guaranteed", LINUCB, *ROBUST)},
    quick_players=(DIRECTED, LINUCB),
    judged=[
        claim
        for size in SIZES
        for claim in (
            comparison(
                f"ours, d = {size}",
                f"with {size} features, ours has no more regret than the best published policy that no level"
                " can bias, but for 10 %",
                (DIRECTED, ROBUST),
                alike([sphere_name(size, level) for level in LEVELS]),
                at_most=1.1,
            ),
            comparison(
                f"LinUCB fails, d = {size}",
                f"with {size} features and a level that follows the plan, ours has at most a tenth of"
                " LinUCB's regret",
                (DIRECTED, [LINUCB]),
                alike([sphere_name(size, "against the plan")]),
                at_most=0.1,
            ),
        )
    ],
    rounds=(5_000, 20_000),
    quick_worlds=[sphere_name(10, level) for level in LEVELS],
)

LINEAR, SMOOTH = "ours, linear forecast", "ours, smooth forecast"
VISITED = {
    "none": "0",
    "linear in who comes": "2·z₁",
    "curved in who comes": "2·sin 2z₁ + z₂²",
}
VISITORS_TABLE = PersonalisedTable(
    name="visitors",
    title="What learning costs where the level depends on who comes",
    plain="If some visitors buy more whatever they are shown, does it still cost little to find out what to"
    " show to whom?",
    about="4 arms × a context of 3 standard normal columns, d = 12, θ of length 1, σ = ½",
    claims="A forecast from the context takes most of the level away: linear for a linear level, smooth for"
    " one that no linear policy can follow. Regret is then within a small factor of what it is without a"
    " shift. Not a claim of the paper's.",
    worlds={
        level: PersonalisedWorld(
            {"kind": "visitors", "noise": 0.5, "level": level}, "4 arms × 3 columns", words
        )
        for level, words in VISITED.items()
    },
    players={name: name for name in (DIRECTED, LINEAR, SMOOTH, LINUCB, *ROBUST)},
    quick_players=(DIRECTED, LINEAR, SMOOTH, LINUCB),
    judged=[
        comparison(
            "linear level",
            "with a linear forecast from the context, a linear level at most doubles regret",
            (LINEAR, [DIRECTED]),
            {"linear in who comes": "none"},
            at_most=2.0,
        ),
        comparison(
            "curved level",
            "with a smooth forecast from the context, a curved level at most trebles regret",
            (SMOOTH, [DIRECTED]),
            {"curved in who comes": "none"},
            at_most=3.0,
        ),
        comparison(
            "curved level, LinUCB",
            "where the level is curved, ours with a smooth forecast has at most a fifth of LinUCB's regret",
            (SMOOTH, [LINUCB]),
            alike(["curved in who comes"]),
            at_most=0.2,
        ),
    ],
    rounds=(5_000, 20_000),
)

LINUCB_TUNED, BOSE_TUNED = "LinUCB, tuned", "BOSE as released, tuned"
BOSE_LEVELS = {"none": "0", "against the best": "−max xᵀθ"}
BOSE_WORLDS = {
    f"{kind}, {level}, σ = {noise:g}": PersonalisedWorld(
        {"kind": kind, "arms": 5, "dimension": 10, "noise": noise, "level": level},
        f"{'sphere' if kind == 'sphere' else 'positive features'}, σ = {noise:g}",
        words,
    )
    for kind in ("sphere", "positive")
    for noise in (0.1, 0.5)
    for level, words in BOSE_LEVELS.items()
}
CONFOUNDED = alike([name for name in BOSE_WORLDS if "against" in name])
BOSE_TABLE = PersonalisedTable(
    name="bose-setting",
    title="What learning costs in the setting that BOSE was published with",
    plain="In the simulations of BOSE's authors, does ours lose no more than BOSE tuned in hindsight?",
    about="5 arms, d = 10, unit features on the sphere or in the positive orthant, σ = 0.1 and ½, as in the"
    " scripts that BOSE's authors released",
    claims="BOSE has less regret than LinUCB where the level is −max xᵀθ (Krishnamurthy, Wu & Syrgkanis 2018,"
    " from their figures). Ours, untuned, comes close to both, tuned in hindsight: asked here.",
    worlds=BOSE_WORLDS,
    players={DIRECTED: DIRECTED, LINUCB_TUNED: LINUCB, BOSE_TUNED: "BOSE, released"},
    quick_players=(DIRECTED, LINUCB_TUNED),
    tuned=(LINUCB_TUNED, BOSE_TUNED),
    judged=[
        comparison(
            "BOSE below LinUCB",
            "where the level is −max xᵀθ, BOSE has no more regret than LinUCB, both tuned",
            (BOSE_TUNED, [LINUCB_TUNED]),
            CONFOUNDED,
            at_most=1.0,
            source="question",
        ),
        comparison(
            "ours against BOSE",
            "where the level is −max xᵀθ, ours untuned has at most 1.5 times the regret of BOSE tuned in"
            " hindsight",
            (DIRECTED, [BOSE_TUNED]),
            CONFOUNDED,
            at_most=1.5,
        ),
    ],
    rounds=(2_000, 2_000),
    quick_worlds=("sphere, none, σ = 0.5", "sphere, against the best, σ = 0.5"),
)

TS_TUNED, TS_RELEASED = "semiparametric TS, tuned", "semiparametric TS, released rule"
CENTRED_TS = "action-centred TS"
KIM_PAIK_LEVELS = {"none": "0", "best": "−max xᵀθ", "log": "log(t + 1)"}
KIM_PAIK_TABLE = PersonalisedTable(
    name="kim-paik-setting",
    title="What learning costs in the setting that semiparametric Thompson sampling was published with",
    plain="In the simulations of semiparametric Thompson sampling's authors, does ours lose less?",
    about="Two arms, the reference without features and one uniform in the unit ball of R¹⁰, σ = 0.1, θ as"
    " released",
    claims="Semiparametric TS has less regret than action-centred TS, and than linear policies where the"
    " level moves (Kim & Paik 2019, from their figures). Ours, untuned, has no more than either.",
    worlds={
        level: PersonalisedWorld({"kind": "kim-paik", "level": level}, "Kim & Paik's simulation", words)
        for level, words in KIM_PAIK_LEVELS.items()
    },
    players={
        DIRECTED: DIRECTED,
        LINUCB: LINUCB,
        "BOSE": "BOSE",
        TS_TUNED: "semiparametric TS",
        TS_RELEASED: "semiparametric TS, released",
        CENTRED_TS: CENTRED_TS,
    },
    quick_players=(DIRECTED, LINUCB),
    tuned=(TS_TUNED,),
    judged=[
        comparison(
            "semiparametric below action-centred",
            "semiparametric TS, tuned in hindsight, has less regret than action-centred TS",
            (TS_TUNED, [CENTRED_TS]),
            alike(list(KIM_PAIK_LEVELS)),
            at_most=1.0,
            source="question",
        ),
        comparison(
            "ours against semiparametric TS",
            "ours untuned has no more regret than semiparametric TS tuned in hindsight",
            (DIRECTED, [TS_TUNED]),
            alike(list(KIM_PAIK_LEVELS)),
            at_most=1.0,
        ),
        comparison(
            "ours against LinUCB, growing level",
            "where the level grows, ours has no more regret than LinUCB",
            (DIRECTED, [LINUCB]),
            alike(["log"]),
            at_most=1.0,
        ),
    ],
    rounds=(5_000, 10_000),
)
PERSONALISED_TABLES = (SPHERE_TABLE, VISITORS_TABLE, BOSE_TABLE, KIM_PAIK_TABLE)
