"""Pages for people: which experiments run, what to do now, and buttons to do it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.staticfiles import StaticFiles

from orthobandit.service.dashboard.actions import Actions
from orthobandit.service.dashboard.live import Live
from orthobandit.service.dashboard.open_streams import told_to_end
from orthobandit.service.dashboard.routes import ROUTERS
from orthobandit.service.dashboard.sessions import Sessions
from orthobandit.service.dashboard.time_series import History
from orthobandit.service.registry import Registry

__all__ = ["Dashboard", "mount", "running"]

STATIC = Path(__file__).parent / "static"


class Dashboard:
    """What the pages of an application share.

    Parameters
    ----------
    registry : Registry
    """

    def __init__(self, registry: Registry) -> None:
        self.sessions = Sessions(registry)
        self.history = History(registry)
        self.actions = Actions(registry)
        self.live = Live(registry, self.history, self.actions.do_due)


def mount(app: FastAPI) -> None:
    """Add the dashboard's pages and files to an application."""
    app.mount("/dashboard/static", StaticFiles(directory=STATIC), name="dashboard-static")
    for router in ROUTERS:
        app.include_router(router)


@asynccontextmanager
async def running(app: FastAPI) -> AsyncIterator[None]:
    """Let the dashboard look at experiments while the application runs."""
    app.state.dashboard = Dashboard(app.state.registry)
    await app.state.dashboard.live.start()
    try:
        with told_to_end(app.state.dashboard.live.end_streams):
            yield
    finally:
        await app.state.dashboard.live.stop()
