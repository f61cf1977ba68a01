"""Further metrics of a form: a row each, with a guardrail where an arm is to be taken out for it."""

import re
from collections.abc import Iterator
from typing import Any

from orthobandit.errors import InputError
from orthobandit.experiment import Guardrail
from orthobandit.experiment.ledger.guardrails import rail_words
from orthobandit.experiment.settings import Options
from orthobandit.service.api.requests import CreateBody
from orthobandit.service.dashboard.form_fields import bounds, number

# Parts of a row: what a blank one holds, and what the field is called.
PARTS = {
    "name": ("", "Name"),
    "low": ("", "Lowest value"),
    "high": ("", "Highest value"),
    "values": ("first", "If one visitor brings several"),
    "worse": ("", "Guardrail"),
    "margin": ("", "By more than"),
}
MOST_ROWS = 10


def place(row: int, part: str) -> str:
    """Return the name of a row's field.

    Examples
    --------
    >>> place(1, "low")
    'metric-1-low'
    """
    return f"metric-{row}-{part}"


def rows_of(given: dict[str, str], do: str = "") -> dict[str, str]:
    """Return the fields of all rows that say anything, numbered from 1.

    Parameters
    ----------
    given : dict
        What was sent.
    do : str
        "add" adds a blank row; "remove-2" leaves out the second of those that were sent.
    """
    numbers = sorted(
        {int(found[1]) for name in given if (found := re.fullmatch(r"metric-(\d{1,3})-\w+", name))}
    )
    rows = []
    for one in numbers:
        row = {part: given.get(place(one, part), "") for part in PARTS}
        if do != f"remove-{one}" and any(row[part].strip() for part in PARTS if part != "values"):
            rows.append(row)
    if do == "add":
        rows.append({part: blank for part, (blank, _) in PARTS.items()})
    return {place(at, part): text for at, row in enumerate(rows[:MOST_ROWS], 1) for part, text in row.items()}


def label_of(name: str) -> str:
    """Return what a row's field is called, among all.

    Examples
    --------
    >>> label_of("metric-2-margin")
    'Metric 2, by more than'
    """
    _, row, part = name.split("-")
    return f"Metric {row}, {PARTS[part][1].lower()}"


def count_of(fields: dict[str, str]) -> int:
    """Return how many rows a form has."""
    return sum(name.endswith("-name") for name in fields)


def metrics_in(
    fields: dict[str, str], delta: float | None, wrong: dict[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return metrics and guardrails as requests describe them; what cannot be used is added to `wrong`."""
    metrics: list[dict[str, Any]] = []
    rails: list[dict[str, Any]] = []
    taken = {Options.objective}
    for row in range(1, count_of(fields) + 1):
        name = fields[place(row, "name")].strip()
        if not name:
            wrong[place(row, "name")] = "a name is needed here: programs tell the metric by it"
        elif name in taken:
            wrong[place(row, "name")] = f"{name!r} is the name of another metric; give each its own"
        taken.add(name)
        metric = {"name": name, "add": fields[place(row, "values")] == "sum"}
        metric |= {} if delta is None else {"delta": delta}
        low, high = place(row, "low"), place(row, "high")
        if fields[low].strip() or fields[high].strip():
            metric["rewards"] = bounds(fields, low, high, wrong)
        metrics.append(metric)
        rails += _rail(fields, row, name, wrong)
    if any(metric["add"] for metric in metrics) and not fields["window"].strip():
        wrong["window"] = "values that add up are final at the end of the window; say how long it is"
    return metrics, rails


def _rail(fields: dict[str, str], row: int, name: str, wrong: dict[str, str]) -> list[dict[str, Any]]:
    """Return the guardrail of a row, if it has one."""
    worse = fields[place(row, "worse")]
    at = place(row, "margin")
    if not worse:
        if fields[at].strip():
            wrong[place(row, "worse")] = "say which side is worse, or leave the margin empty"
        return []
    margin = number(fields, at, wrong) if fields[at].strip() else 0.0
    _tried(wrong, at, lambda: Guardrail("any", margin))
    _tried(wrong, place(row, "worse"), lambda: Guardrail("any", 0.0, worse))
    return [{"metric": name, "margin": margin, "worse": worse}]


def _tried(wrong: dict[str, str], name: str, make: Any) -> None:
    try:
        make()
    except InputError as error:
        wrong.setdefault(name, str(error))


def said_of(body: CreateBody) -> Iterator[tuple[str, str]]:
    """Yield the further metrics of a request: their names, and what is done with each, in words."""
    for metric in body.metrics:
        ends = metric.rewards
        words = "any number" if ends is None else f"{ends[0]:g} to {ends[1]:g}"
        words += "; values of one visitor add up" if metric.add else "; the first value of a visitor counts"
        rails = [
            rail_words(Guardrail(**one.model_dump())) for one in body.guardrails if one.metric == metric.name
        ]
        yield metric.name, "; ".join([words, *rails])
