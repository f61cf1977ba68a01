"""The ASGI application, assembled from routes, middleware and background work."""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool

from orthobandit._foundation.checks import check_positive
from orthobandit._foundation.release import __version__
from orthobandit.service import dashboard
from orthobandit.service.api.arms import arms
from orthobandit.service.api.assignments import assignments
from orthobandit.service.api.edge import edge, script
from orthobandit.service.api.experiments import experiments
from orthobandit.service.api.flags import flags, tracking
from orthobandit.service.api.health import Readiness, health
from orthobandit.service.api.reports import reports
from orthobandit.service.api.shared import problem_schemas
from orthobandit.service.api.tokens import tokens
from orthobandit.service.api.webhooks import webhooks
from orthobandit.service.background.keeper import Keeper, KeeperLock
from orthobandit.service.background.watch import Looks
from orthobandit.service.background.webhook_delivery import Outbox
from orthobandit.service.http.admission import Admission
from orthobandit.service.http.auth import Tokens
from orthobandit.service.http.limits import MAX_BODY_BYTES, MAX_REQUESTS, RATE
from orthobandit.service.http.observability import Metrics, Observed
from orthobandit.service.http.problems import add_handlers
from orthobandit.service.http.request_checks import RequestChecks
from orthobandit.service.registry import Registry
from orthobandit.service.warm_up import Preparing

DESCRIPTION = (
    "Adaptive experiments that find the best arm, with guarantees, while the baseline moves. Ask which arm to"
    " show, tell what came of it, and look at the report as often as you like. Errors are problem documents"
    " (RFC 9457)."
)

NO_TELEMETRY: Any = {"tracing": False, "metrics": False, "logs": False, "operation_spans": False}
# Hot operations first: an address is compared with one after the other.
RESOURCES = (
    assignments,
    edge,
    reports,
    experiments,
    arms,
    flags,
    tracking,
    tokens,
    webhooks,
    script,
    health,
)
OPERATIONS = tuple(operation for resource in RESOURCES for operation in resource.operations)


def create_app(
    where: str | Path,
    *,
    with_tokens: bool = True,
    body_limit: int = MAX_BODY_BYTES,
    hosts: Collection[str] | None = None,
    rate: float = RATE,
    most_requests: int = MAX_REQUESTS,
    open_metrics: bool = False,
    webhooks_anywhere: bool = False,
) -> FastAPI:
    """Return the service as an ASGI application.

    At the start the database is opened, or created if there is none, and the numerical code is compiled.
    Until that is done, ``/readyz`` answers 503 and other requests wait. At the end states are saved and
    connections closed.

    Parameters
    ----------
    where : str or Path
        A SQLite file, or the URL of a database.
    with_tokens : bool
        Whether callers need a token; if not, everybody who can reach the server is an admin.
    body_limit : int
        Largest body of a request, in bytes.
    hosts : collection of str, optional
        Host names that requests may be addressed to; any by default.
    rate : float
        Requests a second allowed to each token, or to each address without tokens; 0 for no limit.
    most_requests : int
        Requests in progress at the same time; 503 beyond that.
    open_metrics : bool
        Whether this machine may read ``/metrics`` without a token.
    webhooks_anywhere : bool
        Whether webhooks may use plain HTTP and private networks.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        registry = await run_in_threadpool(Registry, where)
        app.state.preparing.begin()
        app.state.registry = registry
        app.state.tokens = Tokens(registry) if with_tokens else None
        app.state.readiness = Readiness(registry.try_write)
        app.state.looks = Looks(registry)
        app.state.outbox = Outbox(registry, anywhere=webhooks_anywhere)
        lock = KeeperLock(registry.where)
        keeper = Keeper(lock, app.state.looks, app.state.outbox, app.state.metrics)
        keeper.start()
        try:
            async with dashboard.run_dashboard(app):
                yield
        finally:
            await run_in_threadpool(keeper.stop)
            await run_in_threadpool(registry.close)
            for end in app.state.at_end:
                await run_in_threadpool(end)

    app = _App(
        title="orthobandit",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
        # The pages that come with FastAPI load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # FastAPI's own would read the environment at every request; see `send_telemetry` for ours.
        telemetry=NO_TELEMETRY,
    )
    app.state.metrics = Metrics()
    app.state.open_metrics = open_metrics
    app.state.preparing = Preparing()
    app.state.at_end = []  # functions to call when everything else has ended
    app.add_middleware(RequestChecks, body_limit=body_limit, hosts=hosts)
    if rate:
        check_positive("rate", rate)
    app.add_middleware(Admission, rate=rate, most_requests=most_requests)
    app.add_middleware(Observed, metrics=app.state.metrics)
    add_handlers(app)
    app.router.routes[:0] = OPERATIONS
    dashboard.mount_dashboard(app)
    return app


class _App(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the API's description, with the schema of problem documents that it refers to."""
        description = super().openapi()
        description["components"]["schemas"] |= problem_schemas()
        return description
