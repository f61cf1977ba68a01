"""An experiment that somebody fills a form in for: from its fields to what the API would be sent."""

import json
import re
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import ValidationError

from orthobandit.arms import ArmSet
from orthobandit.errors import InputError, InputWarning
from orthobandit.experiment.arguments import settings_of
from orthobandit.experiment.settings import UNKNOWN, Options
from orthobandit.policy import AnytimeElimination
from orthobandit.service.api.creation import arms_of, options_of, policy_of
from orthobandit.service.api.requests import CreateBody
from orthobandit.service.dashboard.create_metrics import metrics_in, place, rows_of
from orthobandit.service.dashboard.form_fields import DraftError, bounds, number

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
    "holdout": ("", Options.label_of("holdout")),
    "daily": ("", "Visitors a day"),
    "spread": ("", "Spread of one reward"),
}
BLANK = {name: blank for name, (blank, _) in FIELDS.items()}
# Fields of the form by the names that errors give them.
PLACES = {"rewards": "low", "file": "arms", "labels": "arms", "features": "arms"}


def fields_of(given: dict[str, str], do: str = "") -> dict[str, str]:
    """Return the fields of a form that was sent, those of further metrics included.

    Parameters
    ----------
    given : dict
    do : str
        Which button was pressed: see :func:`~orthobandit.service.dashboard.create_metrics.rows_of`.
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
    """Return the request that a form describes, and what is to be known of its table.

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
    for name in ("delta", "epsilon"):
        if fields[name].strip():
            data[name] = number(fields, name, wrong)
    if fields["holdout"].strip():
        data["holdout"] = number(fields, "holdout", wrong) / 100
    data["rewards"] = _rewards_in(fields, wrong)
    if fields["window"].strip():
        data["window"] = fields["window"].strip()
    data["metrics"], data["guardrails"] = metrics_in(fields, data.get("delta"), wrong)
    return _checked(data, wrong), notes


def _rewards_in(fields: dict[str, str], wrong: dict[str, str]) -> list[float] | str:
    """Return the range of rewards, or that it is unknown; one of the two has to be said."""
    if fields["rewards"] == UNKNOWN:
        return UNKNOWN
    if fields["low"].strip() or fields["high"].strip():
        return bounds(fields, "low", "high", wrong)
    wrong["rewards"] = (
        "give the lowest and the highest reward, and claims are exact; or choose that the range is unknown,"
        " and claims are asymptotic"
    )
    return UNKNOWN


def _checked(data: dict[str, Any], wrong: dict[str, str]) -> CreateBody:
    """Return the request, checked as the API would check it, and as the experiment would."""
    try:
        body = CreateBody.model_validate_json(json.dumps({"arms": ["any", "other"]} | data))
    except ValidationError as error:
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
    """Return the field of what an error names."""
    if name == "metrics" and isinstance(row, int):
        return place(row + 1, "low" if part == "rewards" else str(part))
    field = PLACES.get(str(name), str(name))
    return field if field in BLANK else ""


def _words(error: Any) -> str:
    """Return what is wrong, for those who know nothing of patterns and lists."""
    if error["loc"] == ("key",) and error["type"] == "string_pattern_mismatch":
        given = (
            f"{error['input']!r} has other characters, or too many" if error["input"] else "a key is needed"
        )
        return f"{given}: use small letters, digits, -, _ and ., such as signup-page"
    if error["loc"][:1] == ("arms",) and error["type"] == "too_short":
        return "at least 2 arms are needed, one label a line"
    return str(error["msg"])


def arms_in(text: str) -> tuple[list[Any], list[str]]:
    r"""Return arms as requests describe them, and what is to be known of their table.

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
