"""The estimation error of pure exploration over time: the paper's last two figures."""

from functools import partial
from math import log, sqrt

import numpy as np

from orthobandit._foundation.types import Array
from orthobandit.reproduction.charts import error_panels
from orthobandit.reproduction.measured import Measured
from orthobandit.reproduction.section import Chart, Claim, Data, Grid, Law, Section
from orthobandit.reproduction.sections.common import DESIGNS, FORMULAS, error_cell
from orthobandit.study.tables import grouped, where

RUNS = 10  # as in the paper
LATE = 7  # checkpoints at the end, where the ridge no longer matters
FACTOR = 10.0  # of the claimed bound: the paper draws its level at 10√(d log K)
LEVEL_NAME = "10√(d log K)"

ArmSize = tuple[int, int]  # (d, K)
SIZES: tuple[ArmSize, ...] = ((5, 30), (30, 30))


def level(size: ArmSize) -> float:
    """Return 10√(d log K), the level that the paper's curves stay below."""
    dimension, count = size
    return FACTOR * sqrt(dimension * log(count))


def scaled(size: ArmSize, design: str, data: Data, column: str = "error") -> tuple[Array, Array]:
    """Return rounds (C,) and √t times a column (C, runs)."""
    rows = where(data["errors"], dimension=size[0], count=size[1], design=design)
    rounds, errors = grouped(rows, "round", column)
    return rounds.astype(float), errors * np.sqrt(rounds)[:, np.newaxis]


def highest(size: ArmSize, data: Data) -> Measured:
    """Return the highest √t·eₜ of a run, the worse of both designs."""
    tops = [scaled(size, design, data)[1].max(axis=0) for design in DESIGNS]
    return Measured.largest([Measured.mean(top, among=len(tops)) for top in tops])


def late_ratio(sizes: tuple[ArmSize, ...], data: Data) -> Measured:
    """Return the late error of the worst pair of arms, exact design / DEO."""
    gains = []
    for size in sizes:
        # Averaged over several times, which says more of a run than its last moment.
        exact, anchor = (
            scaled(size, design, data, "pair_error")[1][-LATE:].mean(axis=0)
            for design in ("centred", "anchor")
        )
        gains.append(np.log(exact / anchor))
    return Measured.mean(np.mean(gains, axis=0)).exponentiated()


def table(sizes: tuple[ArmSize, ...], data: Data) -> Grid:
    """Return √t·eₜ at the end and at its highest."""
    rows = []
    for size in sizes:
        for design, words in DESIGNS.items():
            rounds, values = scaled(size, design, data)
            last = f"{values[-1].mean():.1f} ± {values[-1].std(ddof=1):.1f}"
            rows.append([str(size), words, last, f"{values.max():.1f}", f"{level(size):.1f}"])
    head = ["(d, K)", "design", f"√t·eₜ at t = {rounds[-1]:,.0f}", "highest of any run", LEVEL_NAME]
    return Grid("√t·eₜ over 10 runs, mean ± standard deviation.", head, rows)


def chart(sizes: tuple[ArmSize, ...], data: Data) -> Chart:
    """Return a panel for each size."""
    panels = {}
    for size in sizes:
        laws = [
            Law(words, partial(scaled, size, design), is_fitted=False) for design, words in DESIGNS.items()
        ]
        panels[f"(d, K) = {size}"] = ([law.series(data) for law in laws], level(size), LEVEL_NAME)
    caption = "√t·eₜ against t: mean of 10 runs, bars of one standard deviation; dashed, the claimed level."
    return Chart.of_panels("error", caption, error_panels, panels)


def error_figure(name: str, title: str, shift: str, sizes: tuple[ArmSize, ...] = SIZES) -> Section:
    """Return figure 3 or 4: √t·eₜ under one shift, with the paper's design and the exact one."""
    return Section(
        name=name,
        title=title,
        plain="Do four times as many rounds make estimates twice as precise, whatever the level does"
        " meanwhile, and is the exact design more precise than the paper's?",
        claims="With eₜ = max_i |(x_i − x_1)ᵀ(θ̂_t − θ)|, √t·eₜ ≤ 10√(d log K) for all t: exploring with the"
        " design of Algorithm 1 (DEO) is √t-consistent at the dimension-optimal rate.",
        described=lambda form: (
            f"{form.rounds:,} rounds from one fixed design, {RUNS} runs as in the paper; random unit arms"
            f" with gap ½, σ = 1, shift {FORMULAS[shift]}; θ̂ by orthogonalised regression with ridge"
            " log(t/δ), δ = 0.05."
        ),
        sizes={"rounds": (1_000_000, 10_000_000)},
        runs=lambda form: [
            error_cell(
                form,
                shift,
                size,
                design,
                np.unique(np.geomspace(10, form.rounds, 25).round().astype(int)).tolist(),
                RUNS,
            )
            for size in sizes
            for design in DESIGNS
        ],
        judged=[
            *(
                Claim(
                    f"{size} level",
                    f"at {size}, √t·eₜ ≤ 10√(d log K) at all times",
                    "highest √t·eₜ of a run, mean over runs, the worse of both designs",
                    partial(highest, size),
                    at_most=level(size),
                )
                for size in sizes
            ),
            Claim(
                "exact design",
                "the exact centred design has a smaller error over all pairs of arms than DEO",
                "late error of the worst pair, exact / DEO, geometric mean over sizes and runs",
                partial(late_ratio, sizes),
                at_most=1.0,
                source="here",
            ),
        ],
        tabled=[partial(table, sizes)],
        drawn=[partial(chart, sizes)],
    )


FIGURE_3 = error_figure("figure-3", "How fast estimates become precise while the level swings", "sine")
FIGURE_4 = error_figure(
    "figure-4", "How fast estimates become precise while the level jumps", "log-alternating"
)
