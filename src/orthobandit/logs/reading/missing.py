"""Refuse values that are missing or not finite, with counts by arm, unless the user chose what to do."""

from typing import Any

import numpy as np

from orthobandit.errors import InputError, RewardError
from orthobandit.logs.question import Question
from orthobandit.logs.reading.clock import is_there
from orthobandit.logs.reading.engine import Opened, encode_keys, first_row
from orthobandit.logs.reading.rows import to_float


def refuse_missing(opened: Opened, question: Question) -> None:
    """Raise if metrics are missing (unless zero or drop was chosen) or covariates are (unless drop was)."""
    if question.missing == "drop":
        return
    refused = question.columns if question.missing == "refuse" else question.columns[len(question.measured) :]
    if not refused:
        return
    table = opened.table
    absent = {name: ~is_there(to_float(table[name], opened.schema[name])) for name in refused}
    counted = {f"m{place}": one.cast("int32").sum() for place, one in enumerate(absent.values())}
    groups = opened.fetch(
        table.group_by(arm=table[question.arm].cast("string")).aggregate(n=table.count(), **counted)
    )
    # Shares by arm are in the message: what is missing from one arm alone must not be dropped.
    for place, (name, condition) in enumerate(absent.items()):
        missing = groups[f"m{place}"].to_numpy().astype(np.int64)
        if missing.sum():
            _refuse(opened, question, name, first_row(opened, condition), _shares(groups, missing))
    if question.missing == "refuse":
        raise RewardError(
            f"columns {', '.join(refused)}: sums are too large to add up; divide the columns by a constant"
        )


def _shares(groups: Any, missing: Any) -> str:
    keys = encode_keys(groups["arm"])
    rows = groups["n"].to_numpy()
    shown = [
        f"{keys.texts[keys.codes[place]]} {missing[place] / rows[place]:.2%}"
        for place in np.argsort(keys.codes)[:8]
    ]
    more = f", … ({len(rows)} arms)" if len(rows) > 8 else ""
    return f"{int(missing.sum()):,} of {int(rows.sum()):,} rows ({', '.join(shown)}{more})"


def _refuse(opened: Opened, question: Question, name: str, where: str, shares: str) -> None:
    is_covariate = name not in question.measured
    what = "covariate" if is_covariate else "metric"
    remedy = (
        "missing='drop' leaves these rows out, or fill the covariate with a constant"
        if is_covariate
        else "choose missing='zero' (no value means nothing came of it) or missing='drop' (rows are left out,"
        " which biases effects if what is missing depends on the arm)"
    )
    error = InputError if is_covariate else RewardError
    raise error(f"the {what} {name!r} is missing or not finite in {shares} of {opened.name}{where}; {remedy}")
