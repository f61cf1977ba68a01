"""The edge client: draws arms by itself and posts the exposures in batches."""

import time
from collections.abc import Callable, Mapping
from threading import Lock
from types import TracebackType
from typing import Any, NamedTuple, Self
from uuid import uuid4

from orthobandit.errors import ServiceError
from orthobandit.experiment.draw.edge_plan import Drawn, EdgePlan
from orthobandit.service.client.client import RETRIES, TIMEOUT, Client
from orthobandit.service.client.data import ExposuresData

MAX_EXPOSURES = 10_000  # of one request


class _Queued(NamedTuple):
    """A draw, or a draw and the value of a metric."""

    drawn: Drawn
    metric: str | None = None
    reward: float | None = None


class _Post(NamedTuple):
    """Exposures to be posted, with a key: however often they are sent, they count once."""

    key: str
    body: ExposuresData


class EdgeClient:
    """Draws arms of one experiment as the server would, without asking it.

    A draw is queued as soon as it is made, whatever its arm, and a reward beside it. The queue is posted by a
    draw that finds `most` entries in it, or one that is `every` seconds old, and by :meth:`flush`; never by a
    reward, so that the arrival of an exposure does not depend on its reward. May be shared by threads.

    Parameters
    ----------
    address : str
        Of the server.
    token : str
        With the role edge.
    key : str
        The experiment's.
    most : int
        Draws that are posted together.
    every : float
        Longest time that a draw waits in the queue while others follow.
    stale : float
        Seconds for which an expired plan may be used while the server cannot be reached.
    clock : function
        Returns seconds.
    retries, timeout
        As those of :class:`Client`.
    """

    def __init__(
        self,
        address: str,
        token: str,
        key: str,
        *,
        most: int = 1_000,
        every: float = 5.0,
        stale: float = 3_600.0,
        clock: Callable[[], float] = time.monotonic,
        retries: int = RETRIES,
        timeout: float = TIMEOUT,
    ) -> None:
        self._client = Client(address, token, retries=retries, timeout=timeout)
        self._key = key
        self._clock = clock
        self._most = most
        self._every = every
        self._stale = stale
        self._plan: EdgePlan | None = None
        self._until = self._last = 0.0
        self._queue: list[_Queued] = []
        self._draws = 0
        self._since = 0.0
        self._posts: list[_Post] = []
        self._lock = Lock()
        self._sending = Lock()
        self.refused: list[dict[str, Any]] = []

    def draw(self, unit: str, context: Mapping[str, float] | None = None) -> Drawn:
        """Return the arm of a unit under the current plan.

        Keep the result with the unit, in a cookie say, and show the same arm when it comes back: under the
        next plan it may get another, which the server refuses.

        Parameters
        ----------
        unit : str
        context : mapping of str to float, optional
            What is known of the visitor, if the experiment is personalised; it is posted with the draw.
        """
        drawn = self._current().draw(unit, context)
        with self._lock:
            now = self._clock()
            self._since = self._since if self._draws else now
            self._draws += 1
            self._queue.append(_Queued(drawn))
            is_due = self._draws >= self._most or now - self._since >= self._every
        if is_due:
            self.flush()
        return drawn

    def reward(self, drawn: Drawn, reward: float, metric: str = "reward") -> None:
        """Queue the reward of a draw, or another metric of it by name."""
        with self._lock:
            self._queue.append(_Queued(drawn, metric, float(reward)))

    def flush(self) -> None:
        """Post everything in the queue; refusals are added to `refused`.

        Call it on a timer, not when a reward comes.

        Raises
        ------
        ServiceError
            If the server cannot be reached; nothing is lost, and the next call tries again.
        """
        with self._sending:
            with self._lock:
                queue, self._queue, self._draws = self._queue, [], 0
            if queue:
                self._posts.extend(_posts(queue))
            while self._posts:
                post = self._posts[0]
                try:
                    answer = self._client.expose(self._key, post.body, once=post.key)
                except ServiceError:
                    raise
                except Exception:
                    del self._posts[0]  # it would be refused again
                    raise
                del self._posts[0]
                units = post.body["units"]
                self.refused += [{"unit": units[one["index"]], **one} for one in answer["refused"]]

    def close(self) -> None:
        """Post the queue and close the connection."""
        try:
            self.flush()
        finally:
            self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _current(self) -> EdgePlan:
        """Return the plan to draw from, asked for again once it has expired."""
        plan = self._plan
        now = self._clock()
        if plan is not None and now < self._until:
            return plan
        try:
            plan = self._client.edge_plan(self._key)
            self._last = now
        except ServiceError:
            if plan is None or now - self._last >= self._stale:
                raise
        self._plan = plan
        self._until = now + plan.lasts
        return plan


def _posts(queue: list[_Queued]) -> list[_Post]:
    """Return the queue as requests, one or more for each plan."""
    by_plan: dict[int, list[_Queued]] = {}
    for one in queue:
        by_plan.setdefault(one.drawn.plan, []).append(one)
    found = []
    for number in sorted(by_plan):
        for start in range(0, len(by_plan[number]), MAX_EXPOSURES):
            some = by_plan[number][start : start + MAX_EXPOSURES]
            names = dict.fromkeys(one.metric for one in some if one.metric is not None)
            body: ExposuresData = {
                "plan": number,
                "units": [one.drawn.unit for one in some],
                "arms": [one.drawn.arm for one in some],
                "rewards": {
                    name: [one.reward if one.metric == name else None for one in some] for name in names
                },
            }
            if some[0].drawn.context is not None:
                body["context"] = [dict(one.drawn.context or {}) for one in some]
            found.append(_Post(uuid4().hex, body))
    return found
