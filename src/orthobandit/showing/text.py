"""Text for people: words that terminals, pages and the dashboard share, and tables for a terminal.

An arm that is out of play is *dropped* if the policy has proven that it is not the best, and *retired* if a
person or a guardrail took it out.
"""

from collections.abc import Iterable, Sequence
from io import StringIO

from orthobandit.showing.numbers import Interval, is_known

NAMED = 12  # arms that are named in a line
DROPPED = "dropped"
RETIRED = "retired"
REFERENCE = "reference"
LEADER = "leads"  # looks best so far
WINNER = "winner"  # declared
WIDE = 10_000  # characters: nothing is wrapped, whoever reads it
# What words of reports mean, for those who point at them.
MEANINGS = {
    "settled": "Visitors whose outcome is final: it was reported, or their window has passed. Everything here"
    " rests on them.",
    "awaited": "Visitors who were shown an arm and whose outcome is not final yet. They count for nothing so"
    " far.",
    "proposals": "Visitors who were assigned to an arm.",
    "plan": "The shares of visitors that arms get are planned anew whenever enough was learnt; this is the"
    " number of the plan in force.",
    "share": "The share of new visitors who are shown the arm now.",
    "rate": "What the arm would have earned on average over all visitors so far, whichever arm they were"
    " shown, with the range it lies in. Rates can be compared although shares and demand have changed.",
    "mean": "The plain mean of the arm's rows, with no range: rows of good and bad times are mixed. Go by the"
    " lift.",
    "lift": "How much more the arm earns than the reference arm, in per cent of what that earns, with the"
    " range it lies in.",
    "gap": "How much more the arm earns than the reference arm, in units of the metric, with the range it"
    " lies in.",
    "bounded rewards": "Ranges hold at every number of visitors, because nobody can earn more or less than"
    " was declared.",
    "asymptotic": "Ranges hold for large numbers of visitors; they rest on no declared limits, and rare large"
    " rewards can make them wrong more often than is said.",
    "sub-Gaussian noise": "Ranges hold at every number of visitors, for noise as small as was declared.",
    "winner": "Declared the best arm, or within the difference that matters; the advice says how often such a"
    " winner is false.",
    "leads": "Looks best so far; nothing is proven.",
    "reference": "The arm that all others are compared with, often the present state (control).",
    "dropped": "Proven not to be the best arm: no more visitors are spent on it.",
    "retired": "Taken out by a person or by a guardrail.",
    "better": "The whole range of its gap is above 0.",
    "worse": "The whole range of its gap is below 0.",
    "undecided": "Its gap may be 0, or nothing is known of it yet.",
}


def arm_state(*, is_active: bool, is_retired: bool) -> str:
    """Return why an arm is out of play; nothing for one that is in play.

    Examples
    --------
    >>> arm_state(is_active=False, is_retired=False), arm_state(is_active=True, is_retired=False)
    ('dropped', '')
    """
    if is_active:
        return ""
    return RETIRED if is_retired else DROPPED


def tone_of(interval: Interval) -> str:
    """Return whether an interval lies above 0 ("good"), below it ("bad"), or neither ("open").

    Examples
    --------
    >>> tone_of((0.1, 0.2)), tone_of((None, -0.1)), tone_of((None, 0.3))
    ('good', 'bad', 'open')
    """
    low, high = interval
    if is_known(low) and low > 0:
        return "good"
    return "bad" if is_known(high) and high < 0 else "open"


def printable(text: str) -> str:
    """Return text without characters that move a cursor or cannot be written to a file.

    Examples
    --------
    >>> printable("blue" + chr(10) + "button")
    'blue�button'
    """
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def visible(label: str) -> str:
    """Return a label as :func:`printable` does, and make spaces at its ends visible.

    Examples
    --------
    >>> visible("blue "), visible("blue button")
    ('blue␣', 'blue button')
    """
    shown = printable(label)
    inside = shown.strip(" ")
    if inside == shown or not inside:
        return shown
    before, after = shown.split(inside, 1)
    return f"{'␣' * len(before)}{inside}{'␣' * len(after)}"


def names_words(labels: Iterable[str]) -> str:
    """Return labels separated by commas; at most so many that a line holds them.

    Examples
    --------
    >>> names_words("abc"), names_words("abcdefghijklmnop")
    ('a, b, c', 'a, b, c, d, e, f, g, h, i, j, k, l and 4 more')
    """
    names = [visible(label) for label in labels]
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{', '.join(names[:NAMED])}{rest}"


def as_sentence(words: str) -> str:
    """Return words with a capital letter and a full stop.

    Examples
    --------
    >>> as_sentence("no arm can be dropped yet")
    'No arm can be dropped yet.'
    """
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."


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
