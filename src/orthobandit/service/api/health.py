"""Health of the server: alive, ready, and metrics for Prometheus.

Ready means that the database takes writes now. Reading is not enough: with a full disk, or as a replica, a
database answers every query and takes nothing. So a harmless write is tried: at most every two seconds,
however many ask, and in its own thread, since the threads of requests may all be waiting for the same
database.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response
from prometheus_client import CONTENT_TYPE_LATEST
from pydantic import BaseModel

from orthobandit.errors import OrthobanditError
from orthobandit.service.api.operations import Resource
from orthobandit.service.api.shared import Problems, document_problems, token_of
from orthobandit.service.background.watch import reports
from orthobandit.service.http.auth import allows
from orthobandit.service.http.observability import experiment_families, render_metrics
from orthobandit.service.http.problems import Problem
from orthobandit.service.warm_up import Preparing

LOOPBACK = ("127.0.0.1", "::1")
TEXT: Problems = {200: {"description": "Metrics", "content": {"text/plain": {"schema": {"type": "string"}}}}}
health = Resource(tag="health", takes_any_query=True)
LOG = logging.getLogger("orthobandit.service")
MAX_WAIT_SECONDS = 2.0  # within which the database has to answer
FRESH_SECONDS = 2.0  # for which an answer holds


class HealthAnswer(BaseModel):
    """Whether the server is well."""

    status: str


@health.get("/healthz", summary="Is the process alive?")
async def healthz() -> HealthAnswer:
    """Answer that the server is alive, whatever the database does."""
    return HealthAnswer(status="alive")


@health.get("/readyz", summary="Can experiments be asked and told?", responses=document_problems(503))
async def readyz(request: Request) -> HealthAnswer:
    """Answer that the server is ready: the warm-up is over, and the database takes writes within 2 s."""
    preparing: Preparing = request.app.state.preparing
    if preparing.has_failed:
        raise Problem(
            "unavailable", "not ready: the numerical code could not be compiled; see the server's log"
        )
    if not preparing.is_done:
        raise Problem(
            "unavailable", "not ready: the numerical code is being compiled, which may take a minute"
        )
    readiness: Readiness = request.app.state.readiness
    if await readiness.find_trouble():
        raise Problem("unavailable", "not ready: the database takes no writes; see the server's log")
    return HealthAnswer(status="ready")


def may_scrape(request: Request) -> bool:
    """Tell whether this machine asks for metrics, if the server was started with `--open-metrics`."""
    # Behind a proxy the client is the one that the proxy names, not the proxy.
    here = request.client is not None and request.client.host in LOOPBACK
    return here and bool(request.app.state.open_metrics)


@health.get(
    "/metrics",
    role="read",
    spares=may_scrape,
    summary="Numbers for Prometheus",
    response_class=Response,
    responses=TEXT | document_problems(401, 403, 500),
)
async def metrics(request: Request) -> Response:
    """Give counts and latencies of requests, and the state of experiments, in Prometheus's text format."""
    state = request.app.state
    found = await run_in_threadpool(reports, state.looks)
    is_for = allows(token_of(request))
    if found is not None and is_for is not None:
        found = {key: report for key, report in found.items() if is_for(key)}
    families = experiment_families(found)
    return Response(render_metrics(state.metrics.families(), families), media_type=CONTENT_TYPE_LATEST)


class Readiness:
    """Tries to write, and remembers for a moment whether that worked. Used by one event loop.

    Parameters
    ----------
    write : callable
        Writes something, and raises :class:`~orthobandit.errors.OrthobanditError` if it cannot.
    clock : callable
        Returns seconds.
    """

    def __init__(self, write: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        # Why the write failed, or "" if it worked.
        self._trial: asyncio.Future[str] | None = None
        self._begun = 0.0
        self._logged = ""  # the trouble that the log speaks of last; "" if it speaks of none

    async def find_trouble(self) -> str:
        """Return why experiments cannot be asked and told now, or "" if they can."""
        now = self._clock()
        is_old = self._trial is not None and self._trial.done() and now - self._begun >= FRESH_SECONDS
        if self._trial is None or is_old:
            self._trial = asyncio.get_running_loop().create_future()
            self._begun = now
            Thread(
                target=self._try_write,
                args=(asyncio.get_running_loop(), self._trial),
                name="trial",
                daemon=True,
            ).start()
        left = max(0.0, self._begun + MAX_WAIT_SECONDS - now)
        try:
            trouble = await asyncio.wait_for(asyncio.shield(self._trial), left)
        except TimeoutError:
            trouble = f"the database does not answer within {MAX_WAIT_SECONDS:g} s"
        self._log_change(trouble)
        return trouble

    def _try_write(self, loop: asyncio.AbstractEventLoop, trial: "asyncio.Future[str]") -> None:
        """Try to write, and set the result of `trial`: why it failed, or "" if it worked.

        Runs in its own thread, so that the result is set through the event loop.
        """
        trouble = ""
        try:
            self._write()
        except OrthobanditError as error:
            trouble = str(error)
        except Exception as error:
            LOG.error("a write could not be tried", exc_info=error)
            trouble = repr(error)
        with suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(trial.set_result, trouble)

    def _log_change(self, trouble: str) -> None:
        """Log when trouble begins or ends, and nothing in between: load balancers ask every second."""
        if trouble and not self._logged:
            LOG.error("not ready: %s", trouble)
        elif self._logged and not trouble:
            LOG.warning("ready again")
        self._logged = trouble
