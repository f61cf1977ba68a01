"""README's numbers from a stored run, never typed.

``python docs/headlines.py store REPORT`` keeps the headlines of a report's folder in ``docs/headlines.json``;
``python docs/headlines.py write`` rewrites what README has between its markers from that file.
"""

import json
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import numpy as np

from orthobandit.study.paper import EXACT, OURS, SECTIONS
from orthobandit.study.report import in_words, read_data
from orthobandit.study.sections import Measured
from orthobandit.study.sections.base import Data
from orthobandit.study.sections.contenders import best
from orthobandit.study.sections.regret import RegretFigure
from orthobandit.study.tables import Columns, distinct, grouped, samples_of, where

HERE = Path(__file__).parent
STORED, README = HERE / "headlines.json", HERE.parent / "README.md"
BEGIN, END = "<!-- headlines: python docs/headlines.py write -->", "<!-- end of headlines -->"
FIGURES = {"figure-1": "the level swings", "figure-2": "the level jumps"}
SAMPLES = {
    "small-gap-10": "two nearly equal arms in 10 dimensions: rounds to the best",
    "sphere": "100 random arms in 10 dimensions: rounds to the best",
    "robustness": "30 arms in 20 dimensions, no shift at all: rounds to the best",
    "robustness-small-gap": "two nearly equal arms in 10 dimensions, no shift at all: rounds to the best",
}
# Whom ours is set beside; a section without any of them has no row. RAGE as released, not as in its proof.
PEERS = ("SP-BAI", "SBE", "RAGE, released constants")


def headlines(folder: Path) -> dict[str, Any]:
    """Return the headlines of a report: what was run, the tally, and rows of text for a table."""
    verdicts = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    rows = [
        *(
            row
            for name, words in SAMPLES.items()
            if name in SECTIONS
            for row in _samples(read_data(folder, SECTIONS[name]), words)
        ),
        *(row for name, words in FIGURES.items() for row in _regret(folder, name, words)),
        _coverage(read_data(folder, SECTIONS["coverage"])),
    ]
    return {
        "version": metadata.version("orthobandit"),
        "command": f"orthobandit reproduce --{verdicts['scope']} --seed {verdicts['seed']}",
        "tally": verdicts["tally"],
        "refuted": [
            verdict["claim"]
            for section in verdicts["sections"].values()
            for verdict in section["verdicts"]
            if verdict["kind"] == "refuted"
        ],
        "below": _below(folder),
        "rows": rows,
    }


def _samples(data: Data, what: str) -> list[dict[str, str]]:
    """Return geometric means, which do not hang on the hardest instance, with errors over instances."""
    runs = {label: where(data["runs"], policy=label) for (label,) in distinct(data["runs"], "policy")}
    said = {label: _number(_geometric(its)) for label, its in runs.items()}
    peers = ", ".join(f"{label} {said[label]}" for label in PEERS if label in said)
    count = str(len(runs[OURS]["declared"]))
    return [{"what": what, "here": said[OURS], "peers": peers, "runs": count}] if peers else []


def _geometric(runs: Columns) -> Measured:
    _, logarithms = grouped({**runs, "log": np.log(samples_of(runs))}, "instance", "log")
    # Runs on one instance are independent; of many instances, their means are.
    return Measured.mean(logarithms[0] if len(logarithms) == 1 else logarithms.mean(axis=1)).exponentiated()


def _regret(folder: Path, name: str, words: str) -> list[dict[str, str]]:
    """Return ours untuned beside every peer at its best tuning in hindsight."""
    figure = cast("RegretFigure", SECTIONS[name])
    rows, data = [], read_data(folder, figure)
    for (size,) in distinct(data["runs"], "size"):
        runs = where(data["runs"], size=size)
        found = {label: best(its) for label, its in figure.tunings(runs, wide=True).items()}
        peers = ", ".join(
            f"{label} {_number(one.regret)}"
            for label, one in found.items()
            if figure.contenders[label].is_peer
        )
        rounds = int(data["curves"]["round"].max())
        what = f"(d, K) = {size}, {words}: regret in {rounds:,} rounds, peers tuned in hindsight"
        count = str(len(found[OURS].rows(runs)["regret"]))
        rows.append({"what": what, "here": _number(found[OURS].regret), "peers": peers, "runs": count})
    return rows


def _below(folder: Path) -> list[str]:
    """Return where a peer that was tuned in hindsight had less mean regret than ours."""
    said = []
    for name, words in FIGURES.items():
        figure = cast("RegretFigure", SECTIONS[name])
        runs = read_data(folder, figure)["runs"]
        for (size,) in distinct(runs, "size"):
            found = {
                label: best(its)
                for label, its in figure.tunings(where(runs, size=size), wide=True).items()
                if figure.contenders[label].is_peer or label == OURS
            }
            ours = found.pop(OURS).regret.value
            said += [f"{label} at {size}, {words}" for label, one in found.items() if one.regret.value < ours]
    return said


def _coverage(data: Data) -> dict[str, str]:
    misses = data["misses"]
    shares: dict[str, list[Measured]] = {}
    for mode, shift in distinct(misses, "mode", "shift"):
        found = where(misses, mode=mode, shift=shift)["first_miss"]
        shares.setdefault(mode, []).append(Measured.share(int(np.sum(found >= 0)), found.size))
    worst = {mode: Measured.largest(its) for mode, its in shares.items()}
    here = ", ".join(f"{mode} {one.value:.1%} (at most {one.high:.1%})" for mode, one in worst.items())
    shifts = len(distinct(misses, "shift"))
    what = (
        f"a claim ever wrong within {int(misses['rounds'].max()):,} rounds, worst of {shifts} shifts, δ = 0.1"
    )
    return {"what": what, "here": here, "peers": "–", "runs": str(found.size)}


def _number(measured: Measured) -> str:
    error = "" if measured.error is None else f" ± {measured.error:,.0f}"
    return f"{measured.value:,.0f}{error}"


def table(stored: Mapping[str, Any]) -> str:
    """Return the headlines as Markdown."""
    lines = [
        "| mean ± standard error | here | peers, run here | runs |",
        "|---|---|---|---:|",
        *(f"| {row['what']} | {row['here']} | {row['peers']} | {row['runs']} |" for row in stored["rows"]),
        "",
        f"From `{stored['command']}`, version {stored['version']}, which measures it again:"
        f" {in_words(stored['tally'])}. Rounds to the best arm are geometric means, and {OURS} is in its"
        f" asymptotic mode; the report has the exact one ({EXACT}) and every other number."
        f" {_less(stored['below'])}{_refuted(stored['refuted'])}",
    ]
    return "\n".join(lines)


def _less(below: list[str]) -> str:
    if not below:
        return "No peer tuned in hindsight has less regret than ours."
    return f"Tuned in hindsight, some have less regret than ours: {'; '.join(below)}."


def _refuted(claims: list[str]) -> str:
    """Name what is refuted, each claim once."""
    return f" Refuted: {'; '.join(dict.fromkeys(claims))}." if claims else ""


def rewritten(text: str, stored: Mapping[str, Any]) -> str:
    """Return README with the table of the stored run between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"README needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{table(stored)}\n{END}{after}"


def main(arguments: list[str]) -> None:
    """Store the headlines of a report, or write them into README."""
    if len(arguments) == 2 and arguments[0] == "store":
        found = headlines(Path(arguments[1]))
        STORED.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    elif arguments == ["write"]:
        stored = json.loads(STORED.read_text(encoding="utf-8"))
        README.write_text(rewritten(README.read_text(encoding="utf-8"), stored), encoding="utf-8")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
