"""Tables and intervals for people, as text."""

from collections.abc import Callable, Sequence
from html import escape
from io import StringIO

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
