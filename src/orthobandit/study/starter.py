"""Files that `orthobandit init` writes: a table of arms, a small study, and a log whose baseline moved."""

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from orthobandit._foundation.files import check_folder, write_text
from orthobandit._foundation.random import stream
from orthobandit.arms import ArmSet
from orthobandit.errors import ParameterError
from orthobandit.estimate import Plan
from orthobandit.simulation import Bernoulli, Environment, Replay

SEED = 18  # fixed, so that the pages of the docs can quote what `init` writes
FEATURES = ("discount", "delivery", "video")
ARMS = ArmSet(
    [[0, 0, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 1, 0]],
    labels=["plain", "video", "discount", "delivery", "both"],
)
THETA = (0.1, 0.08, -0.04)  # what each feature adds to the share of visitors who order
LOG_HOURS = 14 * 24
EQUAL_HOURS = 5 * 24  # hours with equal shares, before traffic is moved to the leader
VISITORS_AN_HOUR = 60
LEADER_SHARE = 0.8  # share of visitors that the leader gets afterwards

STUDY = """\
# Two policies on pages that differ, while demand moves: orthobandit sweep study.toml
horizon = 4_000
replications = 20
seeds = [1]

[policies.anytime]
kind = "anytime"

[policies.SBE]
kind = "sbe"
grid = { scale = [1, 4] }     # one policy for each value

[policies.Thompson]
kind = "mab-thompson"         # mistakes a moving baseline for a difference between arms

[instances.pages]
kind = "one-hot"
means = [0.0, 0.0, 0.3, 0.3, 0.8]

[shifts.none]

[shifts.demand]
kind = "daily"                # a wave of this many rounds
day = 2_000
amplitude = 5.0
"""


def write_starter(folder: str | Path) -> list[Path]:
    """Write ``arms.csv``, ``study.toml`` and ``log.csv``; a file of that name is never overwritten.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist.

    Returns
    -------
    list of Path
        What was written.
    """
    place = Path(folder)
    for name in FILES:
        if (place / name).exists():
            raise ParameterError(
                f"{place / name} exists already and is left as it is; name another folder, as in"
                " `orthobandit init first`"
            )
    check_folder("folder", place)
    for name, text in FILES.items():
        write_text(place / name, text())
    return [place / name for name in FILES]


def next_commands(folder: str | Path = ".") -> list[tuple[str, str]]:
    """Return commands to try on the files: pairs of a purpose and a command to run in the folder."""
    columns = " ".join(f"p:{label}" for label in ARMS.labels)
    theta = " ".join(format(value, "g") for value in THETA)
    begin = [] if Path(folder) == Path() else [("go to the files", f"cd {_quoted(str(folder))}")]
    return [
        *begin,
        ("how often to show each page, and for how long", "orthobandit design arms.csv --epsilon 0.3"),
        (
            "what policies make of these pages while demand moves",
            f"orthobandit simulate --arms-file arms.csv --theta {theta} --noise gaussian:sigma=0.2"
            " --policy anytime mab-thompson --shift daily:amplitude=0.2 --horizon 5000 --replications 20",
        ),
        ("a study of several policies and shifts", "orthobandit sweep study.toml --out study"),
        (
            "two weeks of orders, in which the plain means point to the wrong page",
            f"orthobandit analyse log.csv --arm page --reward ordered --time at --probabilities {columns}",
        ),
    ]


def _quoted(text: str) -> str:
    is_plain = all(letter.isalnum() or letter in "._-/" for letter in text)
    return text if is_plain else "'" + text.replace("'", "'\"'\"'") + "'"


def arms_text() -> str:
    """Return the table of arms as CSV."""
    rows = zip(ARMS.labels, ARMS.features.astype(int).tolist(), strict=True)
    return _written([("page", *FEATURES), *((label, *features) for label, features in rows)])


def log_text() -> str:
    """Return the log as CSV: five days of equal shares, then most visitors go to the page that leads.

    Demand falls all the while and has a daily wave; what a visitor does is simulated, with a fixed seed.
    """
    names = ["at", "page", "ordered", *(f"p:{label}" for label in ARMS.labels)]
    return _written([names, *_visits()])


def _visits() -> Iterator[tuple[object, ...]]:
    """Yield the rows of the log: hour by hour, visitor by visitor."""
    hours = np.arange(LOG_HOURS)
    # A falling level: pages shown more often later look worse than they are, which is the log's lesson.
    path = 0.45 - 0.33 * hours / LOG_HOURS + 0.05 * np.sin(2 * np.pi * hours / 24)
    shop = Environment(ARMS, THETA, Replay(path), Bernoulli())
    levels = Replay(path).values(0, LOG_HOURS)
    random = stream(SEED, "starter")
    seen = np.zeros(len(ARMS))
    sums = np.zeros(len(ARMS))
    plan = Plan(np.full(len(ARMS), 1 / len(ARMS)), EQUAL_HOURS * VISITORS_AN_HOUR)
    for hour in range(LOG_HOURS):
        if hour == EQUAL_HOURS:
            rest = (1 - LEADER_SHARE) / (len(ARMS) - 1)
            leads = np.arange(len(ARMS)) == np.argmax(sums / seen)
            plan = Plan(
                np.where(leads, LEADER_SHARE, rest).round(6), (LOG_HOURS - EQUAL_HOURS) * VISITORS_AN_HOUR
            )
        pages = plan.draw(random, VISITORS_AN_HOUR)
        orders = (random.random(VISITORS_AN_HOUR) < levels[hour] + shop.means[pages]).astype(int)
        np.add.at(seen, pages, 1)
        np.add.at(sums, pages, orders)
        at = (np.datetime64("2025-03-03T00:00") + np.timedelta64(hour, "h")).astype(str)
        shares = [f"{share:g}" for share in plan.probabilities]
        for page, order in zip(pages.tolist(), orders.tolist(), strict=True):
            yield (at, ARMS.labels[page], order, *shares)


def _written(rows: list[tuple[object, ...] | list[str]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


FILES: Mapping[str, Callable[[], str]] = {
    "arms.csv": arms_text,
    "study.toml": lambda: STUDY,
    "log.csv": log_text,
}
