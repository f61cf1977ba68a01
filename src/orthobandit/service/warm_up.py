"""Warm-up: compile everything before the first visitor comes."""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from threading import Event, Lock, Thread, Timer

from orthobandit.experiment import Experiment
from orthobandit.experiment.settings import UNKNOWN
from orthobandit.service.api.experiments import CreateBody, arms_of, options_of, policy_of
from orthobandit.service.api.shared import Arm

QUIET_SECONDS = 3.0  # seconds without a message: reading the compiler's cache takes less
STEPS = (1, *(100,) * 8, 1)  # visitors in each batch: enough to pass the pilot stage and some plans
WORDS = "preparing: the first start compiles the numerical code, which may take a minute"
KEY = "0" * 64  # of the draws: fixed, so that every start runs the same code
LOG = logging.getLogger("orthobandit.service")
_LOCK = Lock()
_IS_DONE = Event()


def prepare(say: Callable[[str], None] | None = None) -> None:
    """Run a small experiment of each kind in memory, once in a process.

    Plans and draws are compiled at their first use, and the machine code is kept beside the package, or in
    the folder that ``NUMBA_CACHE_DIR`` names. Without this warm-up the first visitors would wait for the
    compiler.

    Parameters
    ----------
    say : function, optional
        Prints a line for whoever started the server, if it takes longer than some seconds.
    """
    with _LOCK:
        if _IS_DONE.is_set():
            return
        timer = Timer(QUIET_SECONDS, say or (lambda _: None), [WORDS])
        timer.daemon = True
        timer.start()
        try:
            for body in samples():
                _run(body)
        finally:
            timer.cancel()
        _IS_DONE.set()


class Preparing:
    """Warms up in a thread, while the server answers that it is alive but not ready.

    Attributes
    ----------
    say : function, optional
        As for :func:`prepare`.
    is_done : bool
        Whether nothing is left to wait for.
    has_failed : bool
        Whether something went wrong, which was logged.
    """

    def __init__(self) -> None:
        self.say: Callable[[str], None] | None = None
        self.is_done = self.has_failed = False
        self._done: asyncio.Event | None = None

    def begin(self) -> None:
        """Start the warm-up in a daemon thread, unless this process has done it before."""
        self._done = asyncio.Event()
        if _IS_DONE.is_set():
            self._end()
            return
        Thread(target=self._run, args=(asyncio.get_running_loop(),), name="preparing", daemon=True).start()

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            prepare(self.say)
        except Exception as error:
            LOG.error("the warm-up failed: the numerical code could not be compiled", exc_info=error)
            self.has_failed = True
        with suppress(RuntimeError):  # nobody waits any more
            loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self.is_done = True
        if self._done is not None:
            self._done.set()

    async def wait(self) -> None:
        """Wait until it is done."""
        if self._done is not None:
            await self._done.wait()


def samples() -> list[CreateBody]:
    """Return an experiment of each kind: rewards with a range or without, labels or features, both goals."""
    plain = ["a", "b", "c"]
    rows = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    described = [Arm(label=str(place), features=row) for place, row in enumerate(rows)]
    metric = {"metrics": [{"name": "seconds"}], "guardrails": [{"metric": "seconds"}], "holdout": 0.1}
    chosen = (
        {"arms": plain, "rewards": [0, 1]},
        {"arms": plain, "rewards": UNKNOWN},
        {"arms": described, "rewards": [0, 1], "goal": "earn", "covariates": ["hour"]},
        {"arms": described, "rewards": UNKNOWN, "window": 60.0, **metric},
    )
    return [CreateBody(key="prepared", **one) for one in chosen]


def _run(body: CreateBody) -> None:
    """Ask and tell one by one and in batches, draw at the edge, and look."""
    options = replace(options_of(body), key=KEY)
    made = Experiment.memory(arms_of(body.arms), policy_of(body), clock=time.time, **vars(options))
    hour = {"hour": 1.0} if body.covariates else None
    names = [body.objective, *(metric.name for metric in body.metrics)]
    for count in STEPS:
        shown = made.ask_many(count, covariates=hour)
        values = [float(one.arm == 0) for one in shown]
        made.tell_many([one.id for one in shown], dict.fromkeys(names, values))
    plan = made.edge_plan()
    drawn = plan.draw("edge")
    made.expose(plan.plan, [drawn.unit], [drawn.arm], covariates=None if hour is None else [hour])
    made.report()
    made.certificate()
    made.retire(len(body.arms) - 1)
    made.close()
