"""Tables and intervals for people, as text."""

from collections.abc import Callable, Sequence
from io import StringIO

from rich.console import Console
from rich.table import Table
from rich.text import Text

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
