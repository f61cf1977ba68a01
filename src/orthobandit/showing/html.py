"""Pages from Jinja templates, and tables for notebooks.

Templates are rendered by :func:`make_environment`: values are escaped, and an undefined name is an error. A
package's own templates are found first, then those of this package: ``page.html``, which a page extends, and
the macros of ``charts.html``.

Notebook tables need no Jinja, because objects of the core are shown in notebooks as well.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from orthobandit._foundation.extras import optional_package
from orthobandit.showing.numbers import number, share_words
from orthobandit.showing.text import MEANINGS, as_sentence, printable

if TYPE_CHECKING:
    from jinja2 import Environment

CELL = "padding:.2em .8em;border-bottom:1px solid rgba(128,128,128,.35)"
HYPHEN_BEFORE_NUMBER = re.compile(r"(?<![\w.-])-(?=[\d.])")


def make_environment(package: str, finalize: Callable[[Any], Any] | None = None) -> "Environment":
    """Return the templates of a package, on top of those of this one.

    Parameters
    ----------
    package : str
        The package whose folder ``templates`` is looked into first.
    finalize : callable, optional
        What every value goes through before it is escaped.
    """
    jinja = optional_package("jinja2", "plots", "a page")
    loaders = [jinja.PackageLoader(package), jinja.PackageLoader("orthobandit.showing")]
    made: Environment = jinja.Environment(
        loader=jinja.ChoiceLoader(loaders),
        autoescape=True,
        undefined=jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=finalize,
    )
    made.filters |= {
        "count": lambda value: f"{value:,}",
        "minus": minus,
        "number": number,
        "sentence": as_sentence,
        "share": share_words,
    }
    made.globals["meanings"] = MEANINGS
    return made


@cache
def _page_environment(package: str) -> "Environment":
    markup = optional_package("markupsafe", "plots", "a page").Markup

    def make_printable(value: Any) -> Any:
        # Labels come from users' files. What a macro made is markup already, with line breaks of its own.
        is_text = isinstance(value, str) and not isinstance(value, markup)
        return printable(value) if is_text else value

    return make_environment(package, make_printable)


def render_page(package: str, template: str, **values: Any) -> str:
    """Return a self-contained page, which loads nothing from elsewhere.

    Parameters
    ----------
    package : str
        The package that holds the template.
    template : str
    **values
        Plain data for the template.
    """
    return _page_environment(package).get_template(template).render(**values)


def minus(words: str) -> str:
    """Return words with a minus sign before negative numbers, where text has a hyphen.

    Examples
    --------
    >>> minus("-0.2 to -0.1 on 2-day visits, p = 1e-05")
    '−0.2 to −0.1 on 2-day visits, p = 1e-05'
    """
    return HYPHEN_BEFORE_NUMBER.sub("−", words)


@dataclass(frozen=True)
class PageTable:
    """A table of a page; `kind` is "numbers" (to the right, but for the first column) or "words"."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    kind: str = "numbers"

    @classmethod
    def of_filled(
        cls, head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "numbers"
    ) -> "PageTable":
        """Return a table without its empty columns."""
        kept = [place for place in range(len(head)) if any(row[place] for row in rows)]
        return cls([head[place] for place in kept], [[row[place] for place in kept] for row in rows], kind)


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
