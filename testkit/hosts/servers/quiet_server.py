"""Runs an ASGI application on this machine, and leaves nothing of it in the loop.

What stays there would go on during all later tests.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn


@asynccontextmanager
async def serving(app: Any) -> AsyncIterator[int]:
    """Serve it on a free port, which is given."""
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_config=None, ws="none")
    server = _QuietServer(config)
    task = asyncio.create_task(server.serve())
    try:
        await server.listening.wait()
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await task
        await server.lifespan.shutdown()  # who is forced to exit leaves this out
        await _end_shutdown_watcher()


class _QuietServer(uvicorn.Server):
    """Leaves the signals to pytest, says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _end_shutdown_watcher() -> None:
    """End the task with which sse-starlette looks twice a second for a signal.

    It begins with the first stream of a process and has no end of its own. A clock
    that jumps from timer to timer would stop at each of its looks.
    """
    for task in asyncio.all_tasks():
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher":
            task.cancel()
            await asyncio.wait([task])
