"""One store of measured numbers, ``docs/headlines.json``, and the command that writes them into the pages.

``python docs/headlines.py store REPORT [SECTION …]`` stores the numbers of a report, or of some sections.
``python docs/headlines.py example NAME …`` runs examples and stores the numbers that pages quote from them.
``python docs/headlines.py write`` rewrites every generated number of README and the pages from the store.
``python docs/headlines.py stale`` lists the commands whose numbers rest on code that has changed since.

A number is kept with its command, seed, runs, the package's version and a hash of the code and settings
behind it. Pages say "measured with" that version, and that the code has changed since if the hash is no
longer that of the code. So a change of code makes pages out of date, which a test notices, until ``write``
marks the numbers or ``store`` renews them. In a page, ``<!--= NAME -->…<!--/-->`` holds a number, and
``<!--since NAME …-->…<!--/-->`` what it was measured with.
"""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from orthobandit import __version__
from orthobandit._foundation.fingerprint import used_code
from orthobandit.reproduction.measured import Measured
from orthobandit.reproduction.paper import SECTIONS
from orthobandit.reproduction.report import in_words, read_data
from orthobandit.reproduction.section import Data, Scope
from orthobandit.reproduction.sections.common import EXACT, OURS
from orthobandit.reproduction.sections.regret import FIGURE_1, FIGURE_2, best
from orthobandit.reproduction.sections.samples import (
    PAPERS_SBE,
    RAGES,
    SMALL_GAP_10,
    SPHERE,
    SUCCESSORS_SBE,
)
from orthobandit.study.cells import Cache, Cell
from orthobandit.study.tables import Columns, distinct, grouped, samples_of, share_wrong, where

HERE = Path(__file__).parent
ROOT = HERE.parent
STORED = HERE / "headlines.json"
README = ROOT / "README.md"
MEASURED = HERE / "measured.md"
PAGES = (README, *sorted(HERE.glob("*.md")))
BEGIN, END = "<!-- headlines: python docs/headlines.py write -->", "<!-- end of headlines -->"
NUMBER = re.compile(r"<!--= (?P<name>[^>]+?) -->.*?<!--/-->")
SINCE = re.compile(r"<!--since (?P<names>[^>]+?)-->.*?<!--/-->")
SHIFTS = {"figure-1": "the level swings", "figure-2": "the level jumps"}
REGRET_FIGURES = {figure.name: figure for figure in (FIGURE_1, FIGURE_2)}
SAMPLE_TABLES = {table.name: table for table in (SMALL_GAP_10, SPHERE)}
ROUNDS = "rounds until the best arm is declared"
SAMPLES = {
    "small-gap-10": f"two nearly equal arms in 10 dimensions: {ROUNDS}",
    "sphere": f"100 random arms in 10 dimensions: {ROUNDS}",
    "robustness": f"30 arms in 20 dimensions, no shift at all: {ROUNDS}",
    "robustness-small-gap": f"two nearly equal arms in 10 dimensions, no shift at all: {ROUNDS}",
}
TUNED_SBE = "SBE, tuned"  # the c of fewest samples with at most δ wrong, in hindsight
BEST_C = "the best c with at most δ wrong"
RELEASED_RAGE = "RAGE, released constants"
PEERS = ("SP-BAI", SUCCESSORS_SBE, PAPERS_SBE, TUNED_SBE, RELEASED_RAGE)
MEAN, GEOMETRIC, WRONG = "mean", "geometric mean", "wrong"
FAILED = "failed runs by shift"
REPORT = "report"  # the number that is a report's tally
VERDICT = "verdict"  # begins the name of a number that decides a claim of its section
# Sections of whose verdicts pages quote the numbers.
JUDGED = ("scaling", "gaps", "many-arms", "earning", "robustness", "robustness-small-gap")
FULL = Scope(is_quick=False, seed=1)  # what the pages show


@dataclass(frozen=True)
class Number:
    """A measured number as pages print it, and what it rests on.

    Attributes
    ----------
    text : str
    label : str
        Whose number it is, in words.
    runs : int
    command, seed, version
        What printed it.
    code : str or None
        A hash of the code and settings behind it; None if it was not noted.
    """

    text: str
    label: str
    runs: int
    command: str
    seed: int
    version: str
    code: str | None = None


Store = dict[str, Number]


def read_store(path: Path = STORED) -> Store:
    """Return the stored numbers by name."""
    return {name: Number(**found) for name, found in json.loads(path.read_text(encoding="utf-8")).items()}


def write_store(store: Mapping[str, Number]) -> None:
    """Write the numbers, sorted by name."""
    content = {name: asdict(store[name]) for name in sorted(store)}
    STORED.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


# What a report holds.


def numbers_of(folder: Path, names: Sequence[str] = ()) -> Store:
    """Return the numbers of a report, or of some of its sections.

    Refuses a section with cells that the present code would compute again: its numbers would be kept
    under a hash that is not theirs.
    """
    verdicts = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    scope = Scope(is_quick=verdicts["scope"] == "quick", seed=verdicts["seed"])
    quoted = (*SAMPLES, *SHIFTS, "coverage", *JUDGED)
    wanted = [name for name in names or verdicts["sections"] if name in quoted]
    found: Store = {}
    for name in wanted:
        cells = SECTIONS[name].cells(scope)
        missing = sum(Cache(folder / "cells").load(cell) is None for cell in cells)
        if missing:
            raise SystemExit(
                f"{missing} of {len(cells)} cells of {name} are of other code: reproduce it again"
            )
        command = f"orthobandit reproduce --{verdicts['scope']} --seed {scope.seed} --only {name}"
        for number, (text, label, runs) in _texts(name, read_data(folder, SECTIONS[name])).items():
            key = f"{name}/{number}"
            code = current_code(key, scope)
            found[key] = Number(text, label, runs, command, scope.seed, __version__, code)
    if not names:
        command = f"orthobandit reproduce --{verdicts['scope']} --seed {scope.seed}"
        text = _tally_words(verdicts)
        found[REPORT] = Number(text, REPORT, 0, command, scope.seed, __version__, current_code(REPORT, scope))
    return found


Texts = dict[str, tuple[str, str, int]]  # text, label and runs by the number's name within its section


def _texts(name: str, data: Data) -> Texts:
    found: Texts = {}
    if name in SAMPLES:
        found |= _samples(name, data)
    if name in SHIFTS:
        found |= _regret(name, data)
    if name == "coverage":
        found |= _coverage(data)
    if name in JUDGED:
        found |= _verdicts(name, data)
    return found


def _verdicts(name: str, data: Data) -> Texts:
    """Return the numbers that decide the claims of a section."""
    runs = len(data["runs"]["replication"])
    return {
        f"{VERDICT}/{verdict.name}": (_precise(verdict.measured), verdict.claim, runs)
        for verdict in SECTIONS[name].verdicts(data)
    }


def _precise(measured: Measured) -> str:
    """Return a number near 1, with its error if it has one."""
    said = f"{measured.value:.3f}".replace("-", "−")
    return f"{said} ± {measured.error:.3f}" if measured.error else said


def _samples(name: str, data: Data) -> Texts:
    """Return arithmetic and geometric means, which the hardest instance does not dominate, and errors."""
    labels = {label: label for (label,) in distinct(data["runs"], "policy")}
    chosen = SAMPLE_TABLES[name].best_tuned(data["runs"]) if name in SAMPLE_TABLES else None
    if chosen is not None:
        labels[TUNED_SBE] = chosen
    found: Texts = {}
    for key, label in labels.items():
        runs = where(data["runs"], policy=label)
        count = len(runs["declared"])
        said = f"{label}, {BEST_C}" if key == TUNED_SBE else label
        samples = samples_of(runs)
        found[f"{key}/{MEAN}"] = (_number(_over_instances(runs, samples)), said, count)
        geometric = _over_instances(runs, np.log(samples)).exponentiated()
        found[f"{key}/{GEOMETRIC}"] = (_number(geometric), said, count)
        found[f"{key}/median"] = (f"{np.median(samples):,.0f}", said, count)
        found[f"{key}/{WRONG}"] = (f"{share_wrong(runs):.0%}".replace("%", " %"), said, count)
    return found


def _over_instances(runs: Columns, values: np.ndarray) -> Measured:
    _, found = grouped({**runs, "value": values}, "instance", "value")
    # Runs on one instance are independent; of many instances, their means are.
    return Measured.mean(found[0] if len(found) == 1 else found.mean(axis=1))


def _regret(name: str, data: Data) -> Texts:
    """Return our regret, untuned, and that of every peer at its best tuning in hindsight."""
    figure = REGRET_FIGURES[name]
    found: Texts = {}
    for (size,) in distinct(data["runs"], "size"):
        runs = where(data["runs"], size=size)
        for label, its in figure.tunings(runs, wide=True).items():
            one = best(its)
            said = f"{label}, {one.tuning}"
            found[f"{size}/{label}"] = (_number(one.regret), said, len(one.rows(runs)["regret"]))
    return found


def _coverage(data: Data) -> Texts:
    shares: dict[str, list[Measured]] = {}
    for mode, shift in distinct(data["misses"], "mode", "shift"):
        missed = where(data["misses"], mode=mode, shift=shift)["first_miss"] >= 0
        shares.setdefault(mode, []).append(Measured.share(int(missed.sum()), missed.size))
    found: Texts = {}
    for mode, its in shares.items():
        worst = Measured.largest(its)
        runs = len(where(data["misses"], mode=mode)["first_miss"]) // len(its)
        said = f"{mode} {worst.value:.1%} (at most {worst.high:.1%})".replace("%", " %")
        found[mode] = (said, mode, runs)
        counts = ", ".join(f"{one.value * runs:.0f}" for one in its)
        found[f"{mode}/{FAILED}"] = (counts, mode, runs)
    return found


def _tally_words(verdicts: Mapping[str, Any]) -> str:
    """Return the tally, and every refuted claim by its words: as many as the tally says."""
    refuted = [
        verdict["claim"]
        for section in verdicts["sections"].values()
        for verdict in section["verdicts"]
        if verdict["kind"] == "refuted"
    ]
    said = in_words(verdicts["tally"])
    return f"{said}. Refuted: {'; '.join(refuted)}" if refuted else said


def _number(measured: Measured) -> str:
    error = "" if measured.error is None else f" ± {measured.error:,.0f}"
    return f"{measured.value:,.0f}{error}"


# What examples print.


def _season(text: str) -> Texts:
    """Return the regrets that examples/readme_figure.py prints, by strength of the season and policy."""
    runs = int(cast("re.Match[str]", re.search(r"means of (\d+) runs", text))[1])
    lines = re.findall(r"^season ± (\S+) +(.+?) +\d+%  regret +(\d+)$", text, re.MULTILINE)
    return {f"{strength}/{policy}": (regret, policy, runs) for strength, policy, regret in lines}


def _pages(text: str) -> Texts:
    """Return the table that examples/ab_methods.py prints, by pages and method."""
    head, _, *rows = (line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|"))
    found: Texts = {}
    for row in rows:
        for method, cell in zip(head[2:], row[2:], strict=True):
            found[f"{row[0]}/{method}"] = (cell, method, 200)
            # The same visitors in units of the one-sided fixed size, which makes the same promise.
            share, error = re.findall(r"[\d.]+", cell)[:2]
            one_sided = f"{float(share) / ONE_SIDED:.2f} ± {float(error) / ONE_SIDED:.2f}"
            found[f"{row[0]}/{method}, one-sided"] = (one_sided, method, 200)
    return found


def _jokes(text: str) -> Texts:
    """Return the tables that examples/jester.py prints, by policy or number of users and column."""
    found: Texts = {}
    head: list[str] = []
    for line in text.splitlines():
        cells = line.strip("| ").split(" | ")
        if not line.startswith("| "):
            continue
        if cells[0] in {"policy", "users"}:
            head = cells
            continue
        measured = [
            (column, cell) for column, cell in zip(head, cells, strict=True) if "published" not in column
        ]
        for column, cell in measured[1:]:
            found[f"{cells[0]}/{column}"] = (cell, cells[0], 100)
    return found


ONE_SIDED = 0.833  # of the two-sided fixed size: (z₉₅ + z₉₅)² / (z₉₇.₅ + z₉₅)²
EXAMPLES: dict[str, Callable[[str], Texts]] = {
    "readme_figure": _season,
    "ab_methods": _pages,
    "jester": _jokes,
}


def numbers_of_example(name: str) -> Store:
    """Run an example and return what pages quote from it."""
    command = f"python examples/{name}.py"
    printed = subprocess.run(  # noqa: S603 (our own script, by a name of `EXAMPLES`)
        [sys.executable, f"examples/{name}.py"], cwd=ROOT, capture_output=True, check=True
    )
    return {
        f"{name}/{number}": Number(text, label, runs, command, 1, __version__, current_code(name))
        for number, (text, label, runs) in EXAMPLES[name](printed.stdout.decode()).items()
    }


# Which code a number rests on.


@cache
def current_code(name: str, scope: Scope = FULL) -> str:
    """Return the hash that a number of this name would be stored with if it were measured now."""
    source, _, number = name.partition("/")
    if source in EXAMPLES:
        return _example_code(ROOT / "examples" / f"{source}.py")
    if source == REPORT:
        contents = sorted(cell.content for section in SECTIONS for cell in _cells(section, scope))
    else:
        contents = sorted(cell.content for cell in _cells(source, scope) if _is_behind(cell, number))
    if not contents:
        raise KeyError(f"no cell is behind {name!r}")
    return blake2b(" ".join(contents).encode(), digest_size=8).hexdigest()


@cache
def _cells(section: str, scope: Scope) -> list[Cell]:
    return SECTIONS[section].cells(scope)


def _is_behind(cell: Cell, number: str) -> bool:
    """Tell whether a cell contributes to a number of its section."""
    labels = cell.labels
    # A claim may rest on any cell of its section.
    if number.startswith(f"{VERDICT}/"):
        return True
    if "mode" in labels:
        return number.partition("/")[0] == labels["mode"]
    size, _, label = number.rpartition("/") if "size" in labels else (None, "", number.partition("/")[0])
    if "size" in labels and size != labels["size"]:
        return False
    if label == TUNED_SBE:
        return str(labels["policy"]).startswith("SBE, paper's phases")
    return label == labels["policy"]


def _example_code(path: Path) -> str:
    """Return a hash of a script and of what it imports from the package."""
    text = path.read_text(encoding="utf-8")
    starts = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("orthobandit"):
            for item in node.names:
                found = getattr(import_module(str(node.module)), item.name)
                home = getattr(found, "__module__", None)
                starts.append(f"{home or node.module}:{getattr(found, '__qualname__', item.name)}")
    return blake2b(f"{text} {used_code(*starts)}".encode(), digest_size=8).hexdigest()


# What pages say.


def since(store: Mapping[str, Number], names: Sequence[str]) -> str:
    """Return what numbers were measured with, and whether the code behind any of them has changed since.

    Versions alone if all hashes are those of the code as it is.
    """
    versions = ", ".join(dict.fromkeys(store[name].version for name in names))
    is_stale = any(store[name].code != current_code(name) for name in names)
    return f"measured with {versions}" + (", code changed since" if is_stale else "")


def table(store: Mapping[str, Number]) -> str:
    """Return the headline table as Markdown."""
    lines = ["| mean ± standard error | here | peers, run here | runs | version |", "|---|---|---|---:|---|"]
    for what, ours, peers in _rows(store):
        names = [*ours, *peers]
        here = "; ".join(_with_geometric(store, name) for name in ours)
        beside = "<br>".join(f"{store[name].label}: {_with_geometric(store, name)}" for name in peers) or "–"
        runs = str(min(store[name].runs for name in names))
        version = since(store, names).removeprefix("measured with ")
        lines.append(f"| {' | '.join((what, here, beside, runs, version))} |")
    return "\n".join(lines)


def _with_geometric(store: Mapping[str, Number], name: str) -> str:
    """Return a number, with the geometric mean beside an arithmetic one where there is one."""
    geometric = store.get(name.removesuffix(MEAN) + GEOMETRIC) if name.endswith(f"/{MEAN}") else None
    return store[name].text + ("" if geometric is None else f" (geometric {geometric.text})")


def _rows(store: Mapping[str, Number]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what a row is about, and the names of our numbers and the peers'."""
    for section, what in SAMPLES.items():
        names = [f"{section}/{label}/{MEAN}" for label in PEERS]
        tuned = store.get(f"{section}/{TUNED_SBE}/{MEAN}")
        # Where c = 1 is the best itself, one line says so.
        if tuned is not None and tuned.label == f"{PAPERS_SBE}, {BEST_C}":
            names.remove(f"{section}/{PAPERS_SBE}/{MEAN}")
        yield what, [f"{section}/{OURS}/{MEAN}"], [name for name in names if name in store]
    for section, words in SHIFTS.items():
        figure = REGRET_FIGURES[section]
        peers = [label for label, one in figure.contenders.items() if one.is_peer]
        for size in figure.sizes:
            place = f"{section}/{size.label}"
            regret = f"regret in {size.rounds[1]:,} rounds, peers tuned in hindsight"
            what = f"(d, K) = {size.label}, {words}: {regret}"
            yield what, [f"{place}/{OURS}"], [f"{place}/{label}" for label in peers]
    what = "a claim ever wrong within 100,000 rounds, worst of 13 shifts, δ = 0.1"
    modes = [name for name in sorted(store) if name.startswith("coverage/") and not name.endswith(FAILED)]
    yield what, modes, []


def summary(store: Mapping[str, Number]) -> str:
    """Return README's table with the sentences below it."""
    return "\n".join((table(store), "", _closing(store)))


def full_table(store: Mapping[str, Number]) -> str:
    """Return the table of docs/measured.md with the sentences below it."""
    more = f"It also has {EXACT}, and {', '.join(RAGES)} under the shift."
    return "\n".join((table(store), "", f"{_closing(store)} {more}"))


def _closing(store: Mapping[str, Number]) -> str:
    report = store[REPORT]
    return (
        f"*Here* is {OURS} in its asymptotic mode, untuned. {_less(store)} Regret is the reward lost by not"
        " always playing the best arm. Arithmetic means are what others publish; a few hard instances carry"
        f" them, so geometric means stand beside them. The whole report, `{report.command}`"
        f" ({since(store, [REPORT])}), tests claims of papers and of ours, and asks questions to which nobody"
        f" has claimed an answer. It found: {report.text}."
    )


def _less(store: Mapping[str, Number]) -> str:
    """Name the peers that, tuned in hindsight, had less mean regret than ours."""
    below = []
    for what, ours, peers in _rows(store):
        if not what.startswith("(d, K)"):
            continue
        limit = _value(store[ours[0]].text)
        place = what.partition(":")[0].removeprefix("(d, K) = ")
        below += [f"{store[name].label} at {place}" for name in peers if _value(store[name].text) < limit]
    if not below:
        return "No peer tuned in hindsight has less regret than ours."
    return f"Tuned in hindsight, these peers have less regret than ours: {'; '.join(below)}."


def _value(text: str) -> float:
    return float(text.partition(" ")[0].replace(",", ""))


def rewrite(text: str, block: str | None, store: Mapping[str, Number]) -> str:
    """Return a page with its numbers, what they were measured with, and its table put in anew."""
    text = NUMBER.sub(lambda found: f"<!--= {found['name']} -->{store[found['name']].text}<!--/-->", text)
    text = SINCE.sub(
        lambda found: f"<!--since {found['names']}-->{since(store, _names(found['names'], store))}<!--/-->",
        text,
    )
    if block is None:
        return text
    before, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"the page needs the lines {BEGIN!r} and {END!r}")
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def _names(pattern: str, store: Mapping[str, Number]) -> list[str]:
    """Return the names that a mark covers: those that begin with one of its words."""
    found = [name for name in store for start in pattern.split("|") if name.startswith(start.strip())]
    if not found:
        raise KeyError(f"no stored number begins with {pattern!r}")
    return found


def pages(store: Mapping[str, Number]) -> Iterator[tuple[Path, str]]:
    """Yield every page with generated numbers, and its text as it should be."""
    blocks = {README: summary(store), MEASURED: full_table(store)}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if page in blocks or NUMBER.search(text) or SINCE.search(text):
            yield page, rewrite(text, blocks.get(page), store)


def stale(store: Mapping[str, Number]) -> list[tuple[str, str]]:
    """Return the numbers whose code has changed since they were measured, with their commands."""
    return [(name, one.command) for name, one in store.items() if one.code != current_code(name)]


def main(arguments: list[str]) -> None:
    """Store numbers, list those that are out of date, or write the pages."""
    match arguments:
        case ["store", folder, *names]:
            found = numbers_of(Path(folder), names)
            write_store(read_store() | found)
        case ["example", first, *others]:
            for name in (first, *others):
                found = numbers_of_example(name)
                # Read last: another command may have stored numbers while the example ran.
                write_store(read_store() | found)
        case ["stale"]:
            changed = stale(read_store())
            for command in dict.fromkeys(command for _, command in changed):
                print(f"{sum(other == command for _, other in changed):4} numbers: {command}")
        case ["write"]:
            for page, text in list(pages(read_store())):
                page.write_text(text, encoding="utf-8")
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
