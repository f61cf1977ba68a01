"""Draws at the edge: `EdgeClient` for Python, and ``edge.js`` for everything that runs JavaScript."""

from orthobandit.service.edge.client import EdgeClient

__all__ = ["EdgeClient"]
