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
from orthobandit.experiment.arguments import settings_of as chosen_settings
from orthobandit.service.making import arms_of, policy_of, settings_of
from orthobandit.service.models import CreateBody

HEADERS = {"arm", "arms", "label", "labels", "name"}  # what a column of labels alone may be headed by
BLANK = {
    "key": "",
    "arms": "",
    "low": "0",
    "high": "1",
    "window": "",
    "silence": "zero",
    "epsilon": "",
    "delta": "0.05",
    "goal": "identify",
    "holdout": "",
    "spread": "",
    "daily": "",
}
# Fields of the form by the names that errors give them.
PLACES = {"rewards": "low", "file": "arms", "labels": "arms", "features": "arms"}


class DraftError(Exception):
    """Fields that cannot be used.

    Parameters
    ----------
    wrong : dict
        What is wrong, by field; the key "" is for what belongs to none.
    """

    def __init__(self, wrong: dict[str, str]) -> None:
        super().__init__("; ".join(wrong.values()))
        self.wrong = wrong


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
    if fields["low"].strip() or fields["high"].strip():
        data["rewards"] = [number(fields, "low", wrong), number(fields, "high", wrong)]
    if fields["window"].strip():
        data["window"] = fields["window"].strip()
    if wrong:
        raise DraftError(wrong)
    return _checked(data), notes


def _checked(data: dict[str, Any]) -> CreateBody:
    """Return the request, checked as the API would check it, and as the experiment would."""
    try:
        body = CreateBody.model_validate_json(json.dumps(data))
        chosen_settings(arms_of(body.arms), policy_of(body), settings_of(body))
    except ValidationError as error:
        found = {str(one["loc"][0]) if one["loc"] else "": one["msg"] for one in reversed(error.errors())}
        raise DraftError({_place(name): text for name, text in found.items()}) from None
    except InputError as error:
        named = re.match(r"(\w+)(?==| )", str(error))
        raise DraftError({_place(named[1] if named else ""): str(error)}) from None
    return body


def _place(name: str) -> str:
    place = PLACES.get(name, name)
    return place if place in BLANK else ""


def number(fields: dict[str, str], name: str, wrong: dict[str, str]) -> float:
    """Return a field as a number; what is none is added to what is wrong."""
    try:
        return float(fields[name].strip().replace("−", "-"))
    except ValueError:
        given = fields[name].strip()
        wrong[name] = f"{given!r} is not a number; write it as 0.05" if given else "a number is needed here"
        return 0.0


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
