"""Experiments over HTTP: a server, and a client that needs none of its packages."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orthobandit.service.app import create_app
    from orthobandit.service.client import EdgeClient
    from orthobandit.service.client.client import AsyncClient, Client

__all__ = ["AsyncClient", "Client", "EdgeClient", "create_app"]


def __getattr__(name: str) -> Any:
    # Whoever calls a server need not have one installed, and the other way round.
    if name in ("AsyncClient", "Client"):
        from orthobandit.service.client import client

        return getattr(client, name)
    if name == "EdgeClient":
        from orthobandit.service.client import EdgeClient

        return EdgeClient
    if name == "create_app":
        from orthobandit.service.app import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
