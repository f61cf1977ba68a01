"""The short way of hot routes answers as the long one does, and refuses nothing itself."""

import asyncio

import httpx
import pytest

from orthobandit.service import create_app
from orthobandit.service.hot import Hot
from orthobandit.service.routes import ROUTERS
from service_samples import TWO, is_problem, served, token_of

HERE = "/v1/experiments/page"


@pytest.fixture
def http(tmp_path):
    with served(tmp_path / "all.db") as client:
        client.post("/v1/experiments", json=TWO)
        yield client


@pytest.fixture
def count(monkeypatch):
    """Return a list that grows by every request that went the long way."""
    long = []

    async def noted(self, scope, receive, send):
        long.append(scope["path"])
        await real(self, scope, receive, send)

    real = httpx and __import__("fastapi").routing.APIRoute.handle
    monkeypatch.setattr("fastapi.routing.APIRoute.handle", noted)
    return long
