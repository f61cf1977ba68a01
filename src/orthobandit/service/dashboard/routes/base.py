"""What pages share."""

from urllib.parse import quote

from fastapi import APIRouter, Request

from orthobandit.service.dashboard.live import Live, Sight
from orthobandit.service.dashboard.pages import PageRoute


def pages(prefix: str = "") -> APIRouter:
    """Return a router of pages, which are not in the description of the API."""
    return APIRouter(prefix=f"/dashboard{prefix}", route_class=PageRoute, include_in_schema=False)


def address_of(key: str) -> str:
    """Return the address of an experiment's page.

    Examples
    --------
    >>> address_of("a/b")
    '/dashboard/experiments/a%2Fb'
    """
    return f"/dashboard/experiments/{quote(key, safe='')}"


def sight_of(request: Request, key: str) -> Sight:
    """Return an experiment at a glance."""
    live: Live = request.app.state.dashboard.live
    return live.look(key)
