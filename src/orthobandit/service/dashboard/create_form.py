"""The form that creates an experiment: from its fields to the API's request, errors by field, a preview.

A form is read in three steps. :func:`fields_of` takes what the browser sent; :func:`body_of` makes the
request that the API would be sent, or collects everything that is wrong; :func:`preview` simulates how long
the experiment may take.
"""

import json
import re
import warnings
from collections.abc import Iterator
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from pydantic import ValidationError

from orthobandit.arms import ArmSet
from orthobandit.errors import InputError, InputWarning
from orthobandit.estimate.follow.guardrails import rail_words
from orthobandit.experiment import Guardrail
from orthobandit.experiment.arguments import settings_of
from orthobandit.experiment.settings import UNKNOWN, Options
from orthobandit.policy import AnytimeElimination
from orthobandit.service.api.experiments import CreateBody, arms_of, options_of, policy_of, range_of
from orthobandit.service.http.problems import complaint_of

# Parts of a row: what a blank one holds, and what the field is called.
PARTS = {
    "name": ("", "Name"),
    "low": ("", "Lowest value"),
    "high": ("", "Highest value"),
    "values": ("first", "If one visitor brings several"),
    "worse": ("", "Guardrail"),
    "margin": ("", "By more than"),
}
MAX_METRIC_ROWS = 10
HEADERS = {"arm", "arms", "label", "labels", "name"}  # what a column of labels alone may be headed by
RANGE = "range"  # what the field of rewards holds where they have bounds
# Fields in the order of the form: what a blank one holds, and what the field is called.
FIELDS = {
    "key": ("", "Key"),
    "arms": ("", "Arms"),
    "rewards": (RANGE, Options.label_of("rewards")),
    "low": ("0", "Lowest reward"),
    "high": ("1", "Highest reward"),
    "window": ("", Options.label_of("window")),
    "silence": (Options.silence, Options.label_of("silence")),
    "epsilon": ("", "Difference that matters"),
    "delta": (f"{AnytimeElimination.delta:g}", "Chance of a wrong claim"),
    "goal": (AnytimeElimination.goal, "Until then"),
    "expect": ("", Options.label_of("expect")),
    "holdout": ("", Options.label_of("holdout")),
    "daily": ("", "Visitors a day"),
    "spread": ("", "Spread of one reward"),
}
BLANK = {name: blank for name, (blank, _) in FIELDS.items()}
# Fields of the form by the names that errors give them.
PLACES = {"rewards": "low", "file": "arms", "labels": "arms", "features": "arms"}
# simulated runs, and rounds after which one is given up
SIMULATED_RUNS = 10
MAX_SIMULATED_ROUNDS = 200_000
MAX_SIMULATED_ARMS = 40  # of a simulation that takes seconds only
_ONE = Lock()  # a simulation at a time, so that visitors are served meanwhile


class DraftError(Exception):
    """Fields that cannot be used.

    Parameters
    ----------
    wrong : dict
        Errors by field; the key "" is for errors that belong to none.
    """

    def __init__(self, wrong: dict[str, str]) -> None:
        super().__init__("; ".join(wrong.values()))
        self.wrong = wrong


def read_number(fields: dict[str, str], name: str, wrong: dict[str, str]) -> float:
    """Return a field as a number, or note in `wrong` that it is none.

    Examples
    --------
    >>> wrong = {}
    >>> read_number({"low": "−1", "high": "many"}, "low", wrong)
    -1.0
    >>> read_number({"low": "−1", "high": "many"}, "high", wrong), wrong["high"]
    (0.0, "'many' is not a number; write it as 0.05")
    """
    try:
        return float(fields[name].strip().replace("−", "-"))
    except ValueError:
        given = fields[name].strip()
        wrong[name] = f"{given!r} is not a number; write it as 0.05" if given else "a number is needed here"
        return 0.0


def read_bounds(fields: dict[str, str], low: str, high: str, wrong: dict[str, str]) -> list[float]:
    """Return two fields as the ends of a range, or note in `wrong` why they are none.

    Examples
    --------
    >>> wrong = {}
    >>> read_bounds({"low": "5", "high": "4"}, "low", "high", wrong), wrong["low"]
    ([5.0, 4.0], 'the lowest is 5 and the highest 4; they must be finite, the lowest below the highest')
    """
    ends = [read_number(fields, low, wrong), read_number(fields, high, wrong)]
    if low not in wrong and high not in wrong and not -inf < ends[0] < ends[1] < inf:
        found = f"the lowest is {ends[0]:g} and the highest {ends[1]:g}"
        wrong[low] = f"{found}; they must be finite, the lowest below the highest"
    return ends


def place(row: int, part: str) -> str:
    """Return the name of a row's field.

    Examples
    --------
    >>> place(1, "low")
    'metric-1-low'
    """
    return f"metric-{row}-{part}"


def rows_of(given: dict[str, str], do: str = "") -> dict[str, str]:
    """Return the fields of all metric rows that are not blank, numbered from 1.

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
    return {
        place(at, part): text
        for at, row in enumerate(rows[:MAX_METRIC_ROWS], 1)
        for part, text in row.items()
    }


def label_of(name: str) -> str:
    """Return the label of a row's field.

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
            metric["rewards"] = read_bounds(fields, low, high, wrong)
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
    margin = read_number(fields, at, wrong) if fields[at].strip() else 0.0
    _note_error(wrong, at, lambda: Guardrail("any", margin))
    _note_error(wrong, place(row, "worse"), lambda: Guardrail("any", 0.0, worse))
    return [{"metric": name, "margin": margin, "worse": worse}]


def _note_error(wrong: dict[str, str], name: str, make: Any) -> None:
    try:
        make()
    except InputError as error:
        wrong.setdefault(name, str(error))


def describe_metrics(body: CreateBody) -> Iterator[tuple[str, str]]:
    """Yield the further metrics of a request: their names, and what is done with each, in words."""
    for metric in body.metrics:
        ends = metric.rewards
        words = "any number" if ends is None else f"{ends[0]:g} to {ends[1]:g}"
        words += "; values of one visitor add up" if metric.add else "; the first value of a visitor counts"
        rails = [
            rail_words(Guardrail(**one.model_dump())) for one in body.guardrails if one.metric == metric.name
        ]
        yield metric.name, "; ".join([words, *rails])


def fields_of(given: dict[str, str], do: str = "") -> dict[str, str]:
    """Return the fields of a form that was sent, those of further metrics included.

    Parameters
    ----------
    given : dict
    do : str
        Which button was pressed; see :func:`rows_of`.
    """
    fields: dict[str, str] = {}
    for name in BLANK:
        if name == "epsilon":
            fields |= rows_of(given, do)
        fields[name] = given.get(name, "")
    if given.get("file", "").strip():
        fields["arms"] = given["file"]
    return fields


def body_of(fields: dict[str, str]) -> tuple[CreateBody, list[str]]:
    """Return the request that a form describes, and notes about its table of arms.

    Raises
    ------
    DraftError
        With everything that is found wrong at once.
    """
    wrong: dict[str, str] = {}
    notes: list[str] = []
    data: dict[str, Any] = {name: fields[name].strip() for name in ("key", "silence", "goal")}
    try:
        data["arms"], notes = arms_in(fields["arms"])
    except InputError as error:
        wrong["arms"] = str(error)
    for name in ("delta", "epsilon", "expect"):
        if fields[name].strip():
            data[name] = read_number(fields, name, wrong)
    if fields["holdout"].strip():
        data["holdout"] = read_number(fields, "holdout", wrong) / 100
    data["rewards"] = _rewards_in(fields, wrong)
    if fields["window"].strip():
        data["window"] = fields["window"].strip()
    data["metrics"], data["guardrails"] = metrics_in(fields, data.get("delta"), wrong)
    return _check_body(data, wrong), notes


def _rewards_in(fields: dict[str, str], wrong: dict[str, str]) -> list[float] | str:
    """Return the range of rewards, or 'unknown'; the form must have one of the two."""
    if fields["rewards"] == UNKNOWN:
        return UNKNOWN
    if fields["low"].strip() or fields["high"].strip():
        return read_bounds(fields, "low", "high", wrong)
    wrong["rewards"] = (
        "give the lowest and the highest reward, and claims are exact; or choose that the range is unknown,"
        " and claims are asymptotic"
    )
    return UNKNOWN


def _check_body(data: dict[str, Any], wrong: dict[str, str]) -> CreateBody:
    """Return the request, checked as the API would check it, and as the experiment would."""
    try:
        # Stand-in arms: what is wrong with the real ones is known already, and the rest is checked as well.
        body = CreateBody.model_validate_json(json.dumps({"arms": ["any", "other"]} | data))
    except ValidationError as error:
        # Reversed, so that of several errors in one field the first stays.
        found = {_place(*one["loc"]): _words(one) for one in reversed(error.errors())}
        all_found = found | wrong
        # A guardrail repeats what is wrong with the name of its metric, and has no field for it.
        raise DraftError({name: text for name, text in all_found.items() if name} or all_found) from None
    if wrong:
        raise DraftError(wrong)
    try:
        settings_of(arms_of(body.arms), policy_of(body), options_of(body))
    except InputError as error:
        named = re.match(r"(\w+)(?==| )", str(error))
        raise DraftError({_place(named[1] if named else ""): str(error)}) from None
    return body


def _place(name: int | str = "", row: int | str = 0, part: int | str = "", *_: int | str) -> str:
    """Return the form field that an error is about."""
    if name == "metrics" and isinstance(row, int):
        return place(row + 1, "low" if part == "rewards" else str(part))
    field = PLACES.get(str(name), str(name))
    return field if field in BLANK else ""


def _words(error: Any) -> str:
    """Return a validation error in words for people who do not know the API."""
    if error["loc"] == ("key",) and error["type"] == "string_pattern_mismatch":
        given = (
            f"{error['input']!r} has other characters, or too many" if error["input"] else "a key is needed"
        )
        return f"{given}: use small letters, digits, -, _ and ., such as signup-page"
    if error["loc"][:1] == ("arms",) and error["type"] == "too_short":
        return "at least 2 arms are needed, one label per line"
    return complaint_of(error)


def arms_in(text: str) -> tuple[list[Any], list[str]]:
    r"""Return arms as requests describe them, and notes about their table.

    Lines without a comma or a tab are labels. Anything else is a table with a header line, as
    :meth:`ArmSet.read` takes it.

    Examples
    --------
    >>> arms_in("as it is\nshort form\n")
    (['as it is', 'short form'], [])
    >>> arms_in("label,price\nlow,9\nhigh,10")[0][1]
    {'label': 'high', 'features': [10.0]}
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if not any("," in line or "\t" in line for line in lines):
        is_headed = bool(lines) and lines[0].lower() in HEADERS
        return lines[is_headed:], []
    kind = ".tsv" if "\t" in lines[0] else ".csv"
    with TemporaryDirectory(prefix="orthobandit-") as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", InputWarning)
        path = Path(folder) / f"table{kind}"
        path.write_text(text.strip() + "\n", encoding="utf-8")
        try:
            arms = ArmSet.read(path)
        except InputError as error:
            raise type(error)(str(error).replace(str(path), "the table")) from None
    rows = zip(arms.labels, arms.features.tolist(), strict=True)
    notes = [str(one.message).replace(str(path), "the table") for one in caught]
    return [{"label": label, "features": features} for label, features in rows], notes


class Rounds(NamedTuple):
    """Visitors that simulated runs needed, None beyond the limit; and the median in days."""

    median: int | None
    least: int | None
    most: int | None
    days: float | None


def preview(body: CreateBody, fields: dict[str, str]) -> dict[str, Any]:
    """Return what the form shows before an experiment begins: the first plan, and a simulated duration.

    Raises
    ------
    DraftError
        If spread or daily visitors are no numbers.
    """
    wrong: dict[str, str] = {}
    ends = range_of(body.rewards)
    # Without a given spread: the largest standard deviation that rewards in their range can have.
    half = 1.0 if ends is None else (ends[1] - ends[0]) / 2
    sigma = read_number(fields, "spread", wrong) if fields["spread"].strip() else half
    daily = read_number(fields, "daily", wrong) if fields["daily"].strip() else 0.0
    if not wrong and not (0 < sigma < np.inf):
        wrong["spread"] = f"{sigma:g} must be more than 0"
    if not wrong and not (0 <= daily < np.inf):
        wrong["daily"] = f"{daily:g} must be at least 0"
    if wrong:
        raise DraftError(wrong)
    arms = arms_of(body.arms)
    policy = policy_of(body)
    plan = policy.plan(policy.start(arms))
    rounds = None
    if body.epsilon > 0 and len(arms) <= MAX_SIMULATED_ARMS:
        rounds = _rounds(arms, body, sigma, daily)
    return {
        "arms": list(zip(arms.labels, plan.probabilities.tolist(), strict=True)),
        "dimension": arms.dimension,
        "rounds": rounds,
        "runs": SIMULATED_RUNS,
        "limit": MAX_SIMULATED_ROUNDS,
        "most_arms": MAX_SIMULATED_ARMS,
        "sigma": sigma,
        "daily": daily,
        "metrics": list(describe_metrics(body)),
    }


def _rounds(arms: ArmSet, body: CreateBody, sigma: float, daily: float) -> Rounds:
    """Simulate how many visitors the experiment may need: median, least and most, and days."""
    from orthobandit.simulation import rounds_to_plan  # a server need not wait for it to begin

    with _ONE:
        needed = rounds_to_plan(
            arms,
            epsilon=body.epsilon,
            delta=body.delta,
            goal=body.goal,
            expect=body.expect,
            sigma=sigma,
            runs=SIMULATED_RUNS,
            limit=MAX_SIMULATED_ROUNDS,
        )
    median, least, most = (
        int(value) if np.isfinite(value) else None
        for value in np.quantile(needed, [0.5, 0.0, 1.0], method="higher")
    )
    days = median / daily if median is not None and daily else None
    return Rounds(median, least, most, days)
