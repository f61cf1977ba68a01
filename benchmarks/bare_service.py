"""The least that a service can do: a handler that keeps one row of every request, by group commits."""

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import Response


class Rows:
    """Keeps rows: all that wait when the disk is ready go into one commit."""

    def __init__(self, where: str) -> None:
        self._file = sqlite3.connect(where, isolation_level=None, check_same_thread=False)
        self._file.execute("PRAGMA journal_mode = WAL")
        self._file.execute("PRAGMA synchronous = FULL")
        self._file.execute("CREATE TABLE rows (body TEXT)")
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []
        self._is_there = asyncio.Event()

    async def keep(self, body: str) -> None:
        """Keep a row; it is on disk when this returns."""
        future = asyncio.get_running_loop().create_future()
        self._waiting.append((body, future))
        self._is_there.set()
        await future

    async def run(self) -> None:
        """Commit for ever."""
        while True:
            await self._is_there.wait()
            self._is_there.clear()
            rows, self._waiting = self._waiting, []
            await asyncio.to_thread(self._commit, [body for body, _ in rows])
            for _, future in rows:
                future.set_result(None)

    def _commit(self, bodies: list[str]) -> None:
        self._file.execute("BEGIN IMMEDIATE")
        self._file.executemany("INSERT INTO rows VALUES (?)", [(body,) for body in bodies])
        self._file.execute("COMMIT")


def bare_app(where: str) -> FastAPI:
    """Return an application that answers asks and tells alike, once they are on disk."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.rows = Rows(where)
        task = asyncio.create_task(app.state.rows.run())
        yield
        task.cancel()

    app = FastAPI(lifespan=lifespan)

    async def kept(request: Request, answer: bytes) -> Response:
        await app.state.rows.keep((await request.body()).decode())
        return Response(answer, media_type="application/json")

    @app.post("/v1/experiments/{key}/ask")
    async def ask(request: Request) -> Any:
        return await kept(request, b'{"id":1}')

    @app.post("/v1/experiments/{key}/tell")
    async def tell(request: Request) -> Any:
        return await kept(request, b'{"told":1}')

    return app


if __name__ == "__main__":
    uvicorn.run(bare_app(sys.argv[1]), port=int(sys.argv[2]), log_level="warning", ws="none")
