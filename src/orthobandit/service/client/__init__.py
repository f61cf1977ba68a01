"""Clients of the service: `Client`, `AsyncClient`, and the edge, which draws without asking."""

from orthobandit.service.client.edge import EdgeClient

__all__ = ["EdgeClient"]
