"""Tables and intervals for people, as text."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from io import StringIO
from typing import TypeGuard

FINEST = 7  # decimal places beyond which powers of ten are easier to read
LARGE = 1e9  # as are numbers from here on
WIDE = 10_000  # characters: nothing is wrapped, whoever reads it


def text_table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """Return aligned text: `words` columns of words at the left edge, then numbers at the right.

    Examples
    --------
    >>> print(text_table(["policy", "runs"], [["sbe", "5"], ["uniform", "20"]]))
    policy   runs
    sbe         5
    uniform    20
    """
    # Many who use the package never print a table.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
    for place, name in enumerate(head):
        table.add_column(Text(name), justify="left" if place < words else "right", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    written = StringIO()
    Console(file=written, width=WIDE, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())


def span(low: float | None, high: float | None, shown: Callable[[float], str]) -> str:
    """Return an interval in words; None is an end that is not known.

    Examples
    --------
    >>> span(None, 0.5, "{:+.2f}".format), span(None, None, str)
    ('−∞ to +0.50', 'not known yet')
    """
    if low is None and high is None:
        return "not known yet"
    return f"{'−∞' if low is None else shown(low)} to {'∞' if high is None else shown(high)}"


def places_of(values: Iterable[float | None]) -> int | None:
    """Return the decimal places that show two digits of how far numbers are apart; None for powers of ten.

    Examples
    --------
    >>> places_of([0.0112, 0.0593]), places_of([100.0, 900.0]), places_of([1e-12, 3e-12])
    (3, 0, None)

    An end that is not 0 does not look like 0, if two more places help:

    >>> places_of([-0.0002, 0.0593])
    4
    """
    known = [value for value in values if is_known(value)]
    apart = (max(known) - min(known) or max(map(abs, known))) if known else 0.0
    if not apart or not math.isfinite(apart):
        return None if apart else 0
    places = max(1 - int(f"{apart:.1e}".partition("e")[2]), 0)
    least = min(abs(value) for value in known if value)
    places = next((more for more in range(places, places + 3) if round(least, more)), places)
    return None if places > FINEST or max(map(abs, known)) >= LARGE else places


def is_known(value: float | None) -> TypeGuard[float]:
    """Whether a number is there and finite."""
    return value is not None and math.isfinite(value)


CELL = "padding:.2em .8em;border-bottom:1px solid rgba(128,128,128,.35)"


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """Return a table for a notebook, in its own colours: `words` columns of words, then numbers.

    Examples
    --------
    >>> "a &amp; b" in html_table(["arm"], [["a & b"]])
    True
    """

    def row(cells: Sequence[str], tag: str) -> str:
        sides = ["left" if place < words else "right" for place in range(len(cells))]
        made = zip(sides, cells, strict=True)
        return "".join(
            f'<{tag} style="{CELL};text-align:{side}">{escape(cell)}</{tag}>' for side, cell in made
        )

    body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in rows)
    return (
        '<table style="border-collapse:collapse;font-variant-numeric:tabular-nums">'
        f"<thead><tr>{row(head, 'th')}</tr></thead><tbody>{body}</tbody></table>"
    )


def html_words(*lines: str) -> str:
    """Return lines as paragraphs for a notebook, the first in bold; empty ones are left out."""
    shown = ((escape(line), place) for place, line in enumerate(lines) if line)
    return "".join(f"<p>{line if place else f'<b>{line}</b>'}</p>" for line, place in shown)
