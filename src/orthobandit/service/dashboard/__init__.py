"""The dashboard: pages that show which experiments run and what to do now, with buttons to do it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from orthobandit.service.dashboard import routes
from orthobandit.service.dashboard.access import Sessions
from orthobandit.service.dashboard.actions import Actions
from orthobandit.service.dashboard.live import Live, call_before_shutdown
from orthobandit.service.dashboard.time_series import History
from orthobandit.service.registry import Registry

__all__ = ["Dashboard", "mount_dashboard", "run_dashboard"]

STATIC = Path(__file__).parent / "static"
# The last one answers whatever no other page does.
RESOURCES = (routes.root, routes.pages, routes.others)


class Dashboard:
    """The objects that the dashboard's pages share.

    Parameters
    ----------
    registry : Registry
    """

    def __init__(self, registry: Registry) -> None:
        self.sessions = Sessions(registry)
        self.history = History(registry)
        self.actions = Actions(registry)
        self.live = Live(registry, self.history, self.actions.do_due)


def mount_dashboard(app: FastAPI) -> None:
    """Add the dashboard's pages and files to an application."""
    # What reports and the dashboard have in common.
    shared: list[str | tuple[str, str]] = [("orthobandit.showing", "templates/shared")]
    app.mount("/dashboard/static", StaticFiles(directory=STATIC, packages=shared), name="dashboard-static")
    for resource in RESOURCES:
        app.router.routes.extend(resource.operations)


@asynccontextmanager
async def run_dashboard(app: FastAPI) -> AsyncIterator[None]:
    """Let the dashboard look at experiments while the application runs."""
    app.state.dashboard = Dashboard(app.state.registry)
    await app.state.dashboard.live.start()
    try:
        with call_before_shutdown(app.state.dashboard.live.end_streams):
            yield
    finally:
        await app.state.dashboard.live.stop()
