"""A server that sends the simulator's whole answer in one piece: ``python -m bench.burst``.

The simulator writes one event at a time, slower than any reader here reads. Behind it
a reader mostly pays for waking up; behind this server it pays for its own work alone.
"""

import asyncio
import contextlib
import time

from aiohttp import web

from simulator.accounts import KEY, PROFILES, find_account
from simulator.answers import RequestOrigin, Responder
from simulator.wire.events import encode_event


class Burst:
    """Answers every request as the simulator would, without a pause."""

    def __init__(self) -> None:
        """Begin with an empty prompt cache."""
        self._responder = Responder(time.time)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send all events at once."""
        account = find_account(request.headers)
        origin = RequestOrigin(account, PROFILES["strictest"], None, "chat")
        answer = self._responder.answer(await request.json(), origin)
        events = [encode_event(event, answer.options) for event in answer.events]
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        await stream.write(b"".join(events))
        await stream.write_eof()
        return stream


async def serve() -> None:
    """Serve on a free port of 127.0.0.1 until interrupted."""
    app = web.Application()
    app.router.add_post("/v1/responses", Burst().answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"base URL  http://127.0.0.1:{runner.addresses[0][1]}/v1")
    print(f"key       {KEY}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
