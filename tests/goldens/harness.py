"""Compare texts with those that are stored, and make texts of plain values and of pages."""

import difflib
import json
import os
import re
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from scipy.special import ndtri

from orthobandit import __version__

STORED = Path(__file__).parent / "stored"
ROUNDING_FILE = Path(__file__).parent / "rounding.txt"  # of the machine on which hashes were stored
TOLERANCE = 1e-9  # of numbers: relative to the larger, absolute where both are below 1
DIGITS = 12  # of a number in a golden
LINE_WIDTH = 110  # of a list or an object that is written on one line
DIFF_LINES = 80  # that a failure prints of each golden
# A number that stands alone: neither a part of a hash nor of a name.
NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*\w)")
RELEASE = re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])")
SHOWN = 40  # letters at either end of the coordinates of a line
DRAWN = re.compile(rf'\b(points|d)="([^"]{{{3 * SHOWN},}})"')
# Another processor may differ in the last bit of a probability, which changes the whole hash.
HEAD = re.compile(r"\b(\d+):[0-9a-f]{40}\b")
STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def golden_cases(folder, names, slow=()):
    """Return the parameters of a test: the names of goldens of one folder, which are ids as well."""
    slow_mark = [pytest.mark.slow]
    return [pytest.param(name, id=f"{folder}/{name}", marks=slow_mark * (name in slow)) for name in names]


@cache
def rounding():
    """Return a hash of how this processor, with these libraries, rounds sums, solutions and functions."""
    random = np.random.default_rng(1)
    table = random.standard_normal((40, 7))
    gram = table.T @ table
    values = (gram, np.linalg.inv(gram), np.linalg.eigh(gram)[0], np.exp(table), ndtri(random.random(50)))
    return sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in values)).hexdigest()[:16]


def rounds_alike():
    """Tell whether last bits come out here as where the goldens were stored."""
    return ROUNDING_FILE.read_text(encoding="utf-8").strip() == rounding()


def need_the_same_rounding():
    """Skip a golden that last bits decide on, where they come out otherwise."""
    if not rounds_alike():
        pytest.skip("last bits decide here, and they come out otherwise than where the golden was stored")


def check(texts, *, with_hashes=False):
    """Compare texts, by the names of their files, with what is stored; or store them.

    Parameters
    ----------
    texts : dict
    with_hashes : bool
        Whether hashes of heads are compared too, where rounding is as it was where they were stored.

    Raises
    ------
    AssertionError
        With the differences, and the command that stores the texts.
    """
    if not (with_hashes and rounds_alike()):
        texts = {name: HEAD.sub(r"\1:<hash>", text) for name, text in texts.items()}
    if os.environ.get("RENEW_GOLDENS"):
        for name, text in texts.items():
            path = STORED / name
            path.parent.mkdir(parents=True, exist_ok=True)
            # As good as what is stored: then the file stays as it is, and no diff shows noise.
            if not path.exists() or not are_equal(path.read_text(encoding="utf-8"), finished(text)):
                path.write_text(finished(text), encoding="utf-8")
        return
    hide = with_hashes and not rounds_alike()
    differences = [difference_of(name, finished(text), hide_hashes=hide) for name, text in texts.items()]
    report = "".join(differences)
    if report:
        pattern = min(texts, key=len).rpartition(".")[0]  # all begin with it
        pytest.fail(
            f"{report}\nIf this is intended, store it in a commit of its own that says why:\n"
            f"    python -m tests.goldens --renew '{pattern}'",
            pytrace=False,
        )


def difference_of(name, text, *, hide_hashes=False):
    """Return the unified diff of a golden and a text; empty if they are equal."""
    path = STORED / name
    stored = path.read_text(encoding="utf-8") if path.exists() else ""
    if hide_hashes:
        stored = HEAD.sub(r"\1:<hash>", stored)
    if are_equal(stored, text):
        return ""
    # Lines whose numbers differ by rounding alone are shown as they are stored.
    lines, old = text.splitlines(), stored.splitlines()
    rounded = {line_key(line): line for line in old}
    alike = [line if line in old else rounded.get(line_key(line), line) for line in lines]
    diff = list(
        difflib.unified_diff(
            old, lines if alike == old else alike, f"stored/{name}", f"now/{name}", lineterm="", n=2
        )
    )
    left_out = len(diff) - DIFF_LINES
    end = [f"… and {left_out} more lines"] if left_out > 0 else []
    return "\n".join(["", *diff[:DIFF_LINES], *end, ""])


def line_key(line):
    """Return what lines that differ by rounding alone have in common, but for numbers on an edge."""
    return NUMBER.sub(lambda match: f"{float(match[0]):.7g}", line)


def are_equal(stored, text):
    """Tell whether texts are equal but for the rounding of numbers, and for where lines are broken.

    Examples
    --------
    >>> are_equal("gap 0.25 of 3", "gap 0.25000000000001 of 3"), are_equal("gap 0.25", "gap 0.26")
    (True, False)
    >>> are_equal("3 arms", "4 arms"), are_equal("head 1:ab12", "head 1:ab13")
    (False, False)
    """
    if stored == text:
        return True
    if NUMBER.sub("#", stored).split() != NUMBER.sub("#", text).split():
        return False
    pairs = zip(NUMBER.findall(stored), NUMBER.findall(text), strict=True)
    return all(one == other or are_close(one, other) for one, other in pairs)


def are_close(one, other):
    """Tell whether two numbers are equal but for rounding; whole numbers are equal or not."""
    if not ({".", "e"} & set(one) or {".", "e"} & set(other)):
        return False
    one, other = float(one), float(other)
    return abs(one - other) <= TOLERANCE * max(1.0, abs(one), abs(other))


def finished(text):
    """Return a text with one line break at its end, and without the number of the release."""
    text = RELEASE.sub("<release>", text)
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip() + "\n"


# Texts of plain values


def plain_json(value):
    """Return JSON with sorted keys and rounded numbers; what fits on a line is on one line."""
    return _written(_rounded(value), "")


def _written(value, indent):
    line = json.dumps(value, ensure_ascii=False, sort_keys=True)
    if len(line) + len(indent) <= LINE_WIDTH or not isinstance(value, dict | list):
        return line
    deeper = indent + " "
    if isinstance(value, list) and not any(isinstance(part, dict | list) for part in value):
        return _filled(value, deeper, indent)
    if isinstance(value, dict):
        parts = [
            f"{json.dumps(key, ensure_ascii=False)}: {_written(value[key], deeper)}" for key in sorted(value)
        ]
    else:
        parts = [_written(part, deeper) for part in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return f"{begin}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{end}"


def _filled(values, deeper, indent):
    """Return a long list of plain values on lines as long as may be."""
    lines, line = [], ""
    for value in values:
        word = json.dumps(value, ensure_ascii=False)
        if line and len(line) + len(word) + 2 + len(deeper) > LINE_WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line}, {word}" if line else word
    return f"[\n{deeper}" + f",\n{deeper}".join([*lines, line]) + f"\n{indent}]"


def _rounded(value):
    if isinstance(value, dict):
        return {str(key): _rounded(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(part) for part in value]
    if isinstance(value, bool | int | str) or value is None:
        return value
    if hasattr(value, "tolist"):
        return _rounded(value.tolist())
    return float(f"{value:.{DIGITS}g}")


def shortened(value, length=2):
    """Return plain values whose long lists of objects or lists have only a beginning and an end."""
    if isinstance(value, dict):
        return {name: shortened(part, length) for name, part in value.items()}
    if not isinstance(value, list | tuple):
        return value
    if len(value) > 3 * length and isinstance(value[0], dict | list | tuple):
        return {"count": len(value), "first": value[:length], "last": value[-length:]}
    return [shortened(part, length) for part in value]


def page_text(page):
    """Return a page with one tag a line, without its style sheets, and of long lines the beginning and end.

    Style sheets have goldens of their own.
    """
    page = STYLE.sub("<style>…</style>", page)
    page = DRAWN.sub(lambda match: f'{match[1]}="{match[2][:SHOWN]}…{match[2][-SHOWN:]}"', page)
    return re.sub(r">\s*<", ">\n<", page)


def styles_of(page):
    """Return the style sheets of a page."""
    return "\n".join(STYLE.findall(page))
