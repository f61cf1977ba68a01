"""Write the headline tables of README and docs/measured.md from a stored run, so that no number is typed.

``python docs/headlines.py store REPORT`` stores the headlines of a report in ``docs/headlines.json``.
``python docs/headlines.py add REPORT SECTION`` replaces the rows of one section by those of another report.
``python docs/headlines.py sbe`` measures SBE with the paper's own phase lengths, which no report contains.
``python docs/headlines.py write`` rewrites the text between the markers of both pages from the stored file.
Every row names the command and the version it was measured with.
"""

import json
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, cast

import numpy as np

from orthobandit import SBE, simulate
from orthobandit.reproduction.paper import EXACT, OURS, SECTIONS
from orthobandit.reproduction.report import in_words, read_data
from orthobandit.reproduction.sections import Measured
from orthobandit.reproduction.sections.base import Data
from orthobandit.reproduction.sections.regret import RegretFigure, best
from orthobandit.simulation import Sine, near_degenerate
from orthobandit.study.tables import Columns, distinct, grouped, samples_of, where

HERE = Path(__file__).parent
STORED = HERE / "headlines.json"
README = HERE.parent / "README.md"
MEASURED = HERE / "measured.md"
BEGIN, END = "<!-- headlines: python docs/headlines.py write -->", "<!-- end of headlines -->"
FIGURES = {"figure-1": "the level swings", "figure-2": "the level jumps"}
ROUNDS = "rounds until the best arm is declared"
SAMPLES = {
    "small-gap-10": f"two nearly equal arms in 10 dimensions: {ROUNDS}",
    "sphere": f"100 random arms in 10 dimensions: {ROUNDS}",
    "robustness": f"30 arms in 20 dimensions, no shift at all: {ROUNDS}",
    "robustness-small-gap": f"two nearly equal arms in 10 dimensions, no shift at all: {ROUNDS}",
}
# The peers beside ours, and their names in the table; a section without any of them has no row. Sections with
# SP-BAI run SBE with the phase lengths of SP-BAI's author. RAGE has its released constants, not its proof's.
PEERS = {
    "SP-BAI": "SP-BAI",
    "SBE": "SBE, SP-BAI's author's phases",
    "RAGE, released constants": "RAGE, released constants",
}
PAPERS_SBE = "SBE, the paper's phases (c = 1)"
MEAN, GEOMETRIC = "mean", "geometric mean"
WIDER = "tuned on the wide grid"  # comparisons on a grid that the paper did not use: not its claims


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
    version = metadata.version("orthobandit")
    command = f"orthobandit reproduce --{verdicts['scope']} --seed {verdicts['seed']}"
    return {
        "version": version,
        "command": command,
        "tally": verdicts["tally"],
        "refuted": [
            verdict["claim"]
            for section in verdicts["sections"].values()
            for verdict in section["verdicts"]
            if verdict["kind"] == "refuted"
        ],
        "below": _below(folder),
        "rows": [{**row, "version": version, "command": command} for row in rows],
    }


def _samples(data: Data, what: str) -> list[dict[str, str]]:
    """Return arithmetic and geometric means; the hardest instance does not dominate the latter."""
    runs = {label: where(data["runs"], policy=label) for (label,) in distinct(data["runs"], "policy")}
    if not any(label in runs for label in PEERS):
        return []
    rows = []
    for measure, average in ((MEAN, _arithmetic), (GEOMETRIC, _geometric)):
        said = {label: _number(average(its)) for label, its in runs.items()}
        peers = "; ".join(f"{called}: {said[label]}" for label, called in PEERS.items() if label in said)
        count = str(len(runs[OURS]["declared"]))
        rows.append({"what": what, "measure": measure, "here": said[OURS], "peers": peers, "runs": count})
    return rows


def _arithmetic(runs: Columns) -> Measured:
    return _over_instances(runs, samples_of(runs))


def _geometric(runs: Columns) -> Measured:
    return _over_instances(runs, np.log(samples_of(runs))).exponentiated()


def _over_instances(runs: Columns, values: np.ndarray) -> Measured:
    _, found = grouped({**runs, "value": values}, "instance", "value")
    # Runs on one instance are independent; of many instances, their means are.
    return Measured.mean(found[0] if len(found) == 1 else found.mean(axis=1))


def with_section(stored: Mapping[str, Any], folder: Path, name: str) -> dict[str, Any]:
    """Return the headlines with one section's rows from another report, which they name."""
    verdicts = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    command = f"orthobandit reproduce --{verdicts['scope']} --seed {verdicts['seed']} --only {name}"
    version = metadata.version("orthobandit")
    new = [
        {**row, "version": version, "command": command}
        for row in _samples(read_data(folder, SECTIONS[name]), SAMPLES[name])
    ]
    place = [row["what"] for row in stored["rows"]].index(SAMPLES[name])
    kept = [row for row in stored["rows"] if row["what"] != SAMPLES[name]]
    return {**stored, "rows": [*kept[:place], *new, *kept[place:]]}


def papers_sbe(runs: int = 200, seed: int = 1) -> dict[str, Any]:
    """Measure SBE with the paper's phase lengths, c = 1, on the two nearly equal arms; a minute."""
    environment = near_degenerate(10, shift=Sine())
    result = simulate(
        SBE(delta=0.1),
        environment,
        horizon=10**8,
        replications=runs,
        seed=seed,
        checkpoints=[10**8],
        stop_when_declared=True,
    )
    times = np.asarray(result.stop_times, dtype=np.float64)
    return {
        "what": SAMPLES["small-gap-10"],
        "called": PAPERS_SBE,
        MEAN: _number(Measured.mean(times)),
        GEOMETRIC: _number(Measured.mean(np.log(times)).exponentiated()),
        "wrong": int(np.sum(~result.correct)),
        "runs": runs,
        "command": "python docs/headlines.py sbe",
        "version": metadata.version("orthobandit"),
    }


def _regret(folder: Path, name: str, words: str) -> list[dict[str, str]]:
    """Return our regret, untuned, and that of every peer at its best tuning in hindsight."""
    figure = cast("RegretFigure", SECTIONS[name])
    rows, data = [], read_data(folder, figure)
    for (size,) in distinct(data["runs"], "size"):
        runs = where(data["runs"], size=size)
        found = {label: best(its) for label, its in figure.tunings(runs, wide=True).items()}
        peers = "; ".join(
            f"{label}: {_number(one.regret)}"
            for label, one in found.items()
            if figure.contenders[label].is_peer
        )
        rounds = int(data["curves"]["round"].max())
        what = f"(d, K) = {size}, {words}: regret in {rounds:,} rounds, peers tuned in hindsight"
        count = str(len(found[OURS].rows(runs)["regret"]))
        here = _number(found[OURS].regret)
        rows.append({"what": what, "measure": MEAN, "here": here, "peers": peers, "runs": count})
    return rows


def _below(folder: Path) -> list[str]:
    """Return the instances on which a peer tuned in hindsight had less mean regret than ours."""
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
    return {"what": what, "measure": "share of runs", "here": here, "peers": "–", "runs": str(found.size)}


def _number(measured: Measured) -> str:
    error = "" if measured.error is None else f" ± {measured.error:,.0f}"
    return f"{measured.value:,.0f}{error}"


def table(stored: Mapping[str, Any]) -> str:
    """Return all headlines as Markdown, for docs/measured.md."""
    rows = [_with_papers_sbe(row, stored.get("sbe")) for row in stored["rows"]]
    lines = [
        "| ± standard error | | here | peers, run here | runs | version |",
        "|---|---|---|---|---:|---|",
        *(
            f"| {' | '.join(row[name] for name in ('what', 'measure', 'here', 'peers', 'runs', 'version'))} |"
            for row in rows
        ),
        "",
        f"Measured by `{stored['command']}`: {in_words(stored['tally'])}."
        f" {OURS.capitalize()} is in its asymptotic mode; the report of that command also has the exact one"
        f" ({EXACT})."
        f" {_less(stored['below'])}{_refuted(stored['refuted'])}{_papers_sbe_words(stored.get('sbe'))}",
    ]
    return "\n".join(lines)


def summary(stored: Mapping[str, Any]) -> str:
    """Return README's short table as Markdown: arithmetic means and error rates."""
    rows = [_with_papers_sbe(row, stored.get("sbe")) for row in stored["rows"]]
    names = ("what", "here", "peers", "runs")
    lines = [
        "| mean ± standard error | here | peers, run here | runs |",
        "|---|---|---|---:|",
        *(f"| {' | '.join(row[name] for name in names)} |" for row in rows if row["measure"] != GEOMETRIC),
        "",
        f"Measured by `{stored['command']}` with version {', '.join(_versions(stored))}:"
        f" {in_words(stored['tally'])}."
        f" {_less(stored['below'])} Geometric means, the exact mode and every caveat are in"
        " [docs/measured.md](docs/measured.md#beside-published-methods).",
    ]
    return "\n".join(lines)


def _versions(stored: Mapping[str, Any]) -> list[str]:
    return sorted({row["version"] for row in stored["rows"]})


def _with_papers_sbe(row: dict[str, str], sbe: Mapping[str, Any] | None) -> dict[str, str]:
    """Add SBE with the paper's phases to the row's peers, if it was measured."""
    if sbe is None or row["what"] != sbe["what"]:
        return row
    return {**row, "peers": f"{row['peers']}; {sbe['called']}: {sbe[row['measure']]}"}


def _papers_sbe_words(sbe: Mapping[str, Any] | None) -> str:
    if sbe is None:
        return ""
    return (
        f" {PAPERS_SBE}: from `{sbe['command']}`, {sbe['runs']} runs, {sbe['wrong']} wrong, version"
        f" {sbe['version']}."
    )


def _less(below: list[str]) -> str:
    if not below:
        return "No peer tuned in hindsight has less regret than ours."
    return f"Tuned in hindsight, these peers have less regret than ours: {'; '.join(below)}."


def _refuted(claims: list[str]) -> str:
    """Name each refuted claim once; nobody claimed the comparisons on our wider grid."""
    claimed = list(dict.fromkeys(claim for claim in claims if WIDER not in claim))
    said = f" Refuted: {'; '.join(claimed)}." if claimed else ""
    wider = sum(WIDER in claim for claim in claims)
    if wider:
        said += (
            f" {wider} of the refuted statements were claimed by nobody: that SBE has less regret than others"
            " if all are tuned on a wider grid than the paper's."
        )
    return said


def rewrite(text: str, found: str) -> str:
    """Return a page with a table put between its markers."""
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"the page needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{found}\n{END}{after}"


def _stored() -> dict[str, Any]:
    return json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}


def _store(found: Mapping[str, Any]) -> None:
    STORED.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> None:
    """Store the headlines of a report, or write them into README and docs/measured.md."""
    if len(arguments) == 2 and arguments[0] == "store":
        _store({**headlines(Path(arguments[1])), "sbe": _stored().get("sbe")})
    elif len(arguments) == 3 and arguments[0] == "add":
        _store(with_section(_stored(), Path(arguments[1]), arguments[2]))
    elif arguments == ["sbe"]:
        _store({**_stored(), "sbe": papers_sbe()})
    elif arguments == ["write"]:
        for page, found in ((README, summary(_stored())), (MEASURED, table(_stored()))):
            page.write_text(rewrite(page.read_text(encoding="utf-8"), found), encoding="utf-8")
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
