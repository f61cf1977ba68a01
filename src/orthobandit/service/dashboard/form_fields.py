"""Fields of a form: numbers out of text, and what is wrong by field."""

from math import inf


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


def number(fields: dict[str, str], name: str, wrong: dict[str, str]) -> float:
    """Return a field as a number; what is none is added to what is wrong.

    Examples
    --------
    >>> wrong = {}
    >>> number({"low": "−1", "high": "many"}, "low", wrong)
    -1.0
    >>> number({"low": "−1", "high": "many"}, "high", wrong), wrong["high"]
    (0.0, "'many' is not a number; write it as 0.05")
    """
    try:
        return float(fields[name].strip().replace("−", "-"))
    except ValueError:
        given = fields[name].strip()
        wrong[name] = f"{given!r} is not a number; write it as 0.05" if given else "a number is needed here"
        return 0.0


def bounds(fields: dict[str, str], low: str, high: str, wrong: dict[str, str]) -> list[float]:
    """Return two fields as the ends of a range; what is none is added to what is wrong.

    Examples
    --------
    >>> wrong = {}
    >>> bounds({"low": "5", "high": "4"}, "low", "high", wrong), wrong["low"]
    ([5.0, 4.0], 'the lowest is 5 and the highest 4; they must be finite, the lowest below the highest')
    """
    ends = [number(fields, low, wrong), number(fields, high, wrong)]
    if low not in wrong and high not in wrong and not -inf < ends[0] < ends[1] < inf:
        found = f"the lowest is {ends[0]:g} and the highest {ends[1]:g}"
        wrong[low] = f"{found}; they must be finite, the lowest below the highest"
    return ends
