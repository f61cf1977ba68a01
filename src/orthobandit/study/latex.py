r"""A comparison as a LaTeX table for the package booktabs."""

import math
import re
from collections.abc import Sequence
from typing import Any

HEAD = ("policy", "instance", "shift", "runs", "regret", "declared", "wrong", "stop")
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{letter: "\\" + letter for letter in "&%$#_{}"},
}


def latex_text(text: str) -> str:
    r"""Return text with what LaTeX takes for commands written out.

    Examples
    --------
    >>> print(latex_text("50 % of a_b"))
    50 \% of a\_b
    """
    return re.sub(r"[\\~^&%$#_{}]", lambda found: SPECIAL[found[0]], text)


def latex_table(rows: Sequence[dict[str, Any]], *, caption: str = "", label: str = "") -> str:
    r"""Return the rows of :func:`~orthobandit.study.tables.compared`, the least regret of each block in bold.

    A block is an instance and a shift; policies whose mean is within two standard errors of the difference
    to the least are in bold as well, since the runs do not tell them apart.
    """
    lines = [r"\begin{tabular}{lllrrrrr}", r"\toprule", " & ".join(HEAD) + r" \\", r"\midrule"]
    lines += [" & ".join(_cells(row, is_best=_is_best(row, rows))) + r" \\" for row in rows]
    lines += [r"\bottomrule", r"\end{tabular}"]
    if caption:
        named = [rf"\label{{{label}}}"] if label else []
        lines = [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            *named,
            *lines,
            r"\end{table}",
        ]
    return "\n".join(lines) + "\n"


def _is_best(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> bool:
    block = [one for one in rows if (one["instance"], one["shift"]) == (row["instance"], row["shift"])]
    least = min(block, key=lambda one: float(one["regret"]))
    spread = math.hypot(row["regret_error"] or 0.0, least["regret_error"] or 0.0)
    return bool(row["regret"] <= least["regret"] + 2 * spread)


def _cells(row: dict[str, Any], *, is_best: bool) -> list[str]:
    regret = _number(row["regret"], row["regret_error"], 1)
    stop = "--" if not row["declared"] else _number(row["stop"], row["stop_error"], 0)
    return [
        *(latex_text(str(row[name])) for name in ("policy", "instance", "shift")),
        str(row["runs"]),
        rf"\textbf{{{regret}}}" if is_best else regret,
        _share(row["declared"]),
        "--" if row["wrong"] is None else _share(row["wrong"]),
        (r"$\ge$ " if 0 < row["declared"] < 1 else "") + stop,
    ]


def _number(value: float, error: float | None, places: int) -> str:
    shown = (f"{number:,.{places}f}".replace(",", r"\,") for number in (value, error) if number is not None)
    return r" $\pm$ ".join(shown)


def _share(value: float) -> str:
    return rf"{100 * value:.1f}\,\%"
