"""Tables for a terminal."""

from collections.abc import Sequence
from io import StringIO

WIDE = 10_000  # characters: nothing is wrapped, whoever reads it


def text_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1, last_words: int = 0
) -> str:
    """Return aligned text: `words` columns of words, numbers to the right, and `last_words` of words again.

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
        is_number = words <= place < len(head) - last_words
        table.add_column(Text(name), justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    written = StringIO()
    Console(file=written, width=WIDE, color_system=None, force_terminal=False).print(table)
    return "\n".join(line.rstrip() for line in written.getvalue().splitlines())
