"""A server that passes requests on to a simulator, and disturbs what it answers."""

import asyncio
import gzip
import json
import random
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import aiohttp
from aiohttp import web

from disturbed.kinds import (
    FOREIGN_ID,
    PLAIN_JSON,
    Disturbed,
    Kind,
    SoundAnswer,
    write_stream,
)
from simulator import Simulator

Json = dict[str, Any]
MAX_BODY_BYTES = 64 * 1024 * 1024
MOST_PIECES = 40
"""In which an answer is written."""
PASSED_ON = ("Authorization", "api-key", "Content-Type")
ENCODERS: Mapping[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
}
SOUND = "sound"
"""In the place of a kind: nothing was changed."""


@dataclass
class Exchange:
    """A request, and how it was answered."""

    turn: int
    request: Json
    kind: str = SOUND
    is_failure: bool = False
    """Whether the answer has to be asked for again."""
    refusal: str = ""
    """What the simulator itself refused: a request that is not valid."""
    sound: Json = field(default_factory=dict)
    """The response object of the sound answer."""
    sealed: list[set[str]] = field(default_factory=list)
    """The forms in which each encrypted content arrived whole."""
    wait: float = 0.0
    arrived_at: float = 0.0
    ended_at: float = 0.0

    @property
    def is_delivered(self) -> bool:
        """Whether the whole answer was sent."""
        return not self.is_failure and not self.refusal


class _Step(NamedTuple):
    """What is done with one answer of the simulator: disturbed by `kind`, or not."""

    kind: Kind | None
    number: int


class DisturbedServer:
    """Used as `async with DisturbedServer(...)`; `turn` is that of the chat."""

    def __init__(self, simulator: Simulator, seed: str, kinds: Sequence[Kind]) -> None:
        """Take the kinds to choose from; the same seed disturbs in the same way."""
        self._simulator = simulator
        self._seed = seed
        self._kinds = kinds
        self._steps: list[_Step] = []
        """What is still done with the answer that is asked for."""
        self._answers = 0
        self.turn = 0
        self.exchanges: list[Exchange] = []
        self._runner: web.AppRunner | None = None
        self._client: aiohttp.ClientSession | None = None

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        assert self._runner
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"

    async def __aenter__(self) -> Self:
        """Listen on a free port."""
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_post("/v1/responses", self._post)
        app.router.add_get("/v1/{path:.*}", self._get)
        self._runner = web.AppRunner(
            app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0
        )
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        # On a slow machine the simulator may just have closed one that it kept.
        connector = aiohttp.TCPConnector(force_close=True)
        self._client = aiohttp.ClientSession(connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening."""
        if self._client:
            await self._client.close()
        if self._runner:
            await self._runner.cleanup()

    async def _get(self, request: web.Request) -> web.Response:
        """Pass a request on whose answer stays as it is."""
        path = request.match_info["path"]
        status, body = await self._ask(request, "GET", path, None)
        return web.Response(body=body, status=status, content_type=PLAIN_JSON)

    async def _post(self, request: web.Request) -> web.StreamResponse:
        """Answer a request for a response."""
        now = asyncio.get_running_loop().time
        body = await request.json()
        exchange = Exchange(self.turn, body, arrived_at=now())
        self.exchanges.append(exchange)
        try:
            own = without_foreign_calls(body)
            status, answered = await self._ask(request, "POST", "responses", own)
            if status != 200:
                exchange.refusal = answered.decode()
                return web.Response(body=answered, status=status)
            is_stream = bool(body.get("stream"))
            answer = read_answer(answered, is_stream=is_stream)
            exchange.sound = answer.response
            chance, disturbed = self._disturb(exchange, answer, is_stream=is_stream)
            exchange.sealed = list(list_sealed(answer, disturbed.body))
            exchange.wait = disturbed.wait
            return await send(request, disturbed, chance)
        finally:
            exchange.ended_at = now()

    async def _ask(
        self, request: web.Request, method: str, path: str, body: Json | None
    ) -> tuple[int, bytes]:
        """Return the status and the body that the simulator answers with."""
        assert self._client
        headers = {
            name: request.headers[name] for name in PASSED_ON if name in request.headers
        }
        url = f"{self._simulator.base_url}/{path}"
        data = None if body is None else json.dumps(body)
        async with self._client.request(
            method, url, data=data, headers=headers
        ) as answer:
            return answer.status, await answer.read()

    def _disturb(
        self, exchange: Exchange, answer: SoundAnswer, *, is_stream: bool
    ) -> tuple[random.Random, Disturbed]:
        """Return what is sent for an answer, and the chance by which it is written.

        Each answer of a chat has a chance of its own, so what a client does differently
        changes nothing for the answers after it.
        """
        if not self._steps:
            self._answers += 1
            self._steps = self._choose_steps(answer)
        kind, number = self._steps.pop(0)
        chance = random.Random(f"{self._seed} {self._answers} {number}")
        disturbed = kind.make(answer, chance) if kind else None
        is_failure = bool(kind and kind.is_failure)
        # What is asked for in one piece can only fail as a whole.
        if kind is None or disturbed is None or not (is_stream or is_failure):
            return chance, write_sound(answer, is_stream=is_stream)
        exchange.kind = kind.name
        exchange.is_failure = is_failure
        return chance, disturbed

    def _choose_steps(self, answer: SoundAnswer) -> list[_Step]:
        """Choose what is done with an answer, until it has been sent."""
        chance = random.Random(f"{self._seed} {self._answers}")
        for kind in chance.sample(self._kinds, len(self._kinds)):
            if kind.make(answer, random.Random(0)) is None:
                continue
            if not kind.is_failure:
                return [_Step(kind, 0)]
            times = chance.randint(1, kind.most_times)
            failures = [_Step(kind, number) for number in range(times)]
            return [*failures, _Step(None, times)]
        return [_Step(None, 0)]


def read_answer(body: bytes, *, is_stream: bool) -> SoundAnswer:
    """Return the events of an answer; those of one in one piece are its last."""
    if not is_stream:
        return SoundAnswer(
            [{"type": "response.completed", "response": json.loads(body)}]
        )
    events: list[Json] = []
    for line in body.decode().split("\n"):
        name, _, data = line.partition(": ")
        if name == "data":
            events.append(json.loads(data))
    return SoundAnswer(events)


def list_sealed(answer: SoundAnswer, sent: bytes) -> Iterator[set[str]]:
    """Yield the forms in which each encrypted content of an answer was sent whole.

    The API seals it once more for the response object (recorded).
    """
    forms: dict[str, set[str]] = {}
    for event in answer.events:
        items = event.get("response", {}).get("output", [])
        if event["type"] == "response.output_item.done":
            items = [event["item"]]
        for item in items:
            if item.get("encrypted_content"):
                forms.setdefault(item["id"], set()).add(item["encrypted_content"])
    for sealed in forms.values():
        whole = {form for form in sealed if f'"{form}"'.encode() in sent}
        if whole:
            yield whole


def write_sound(answer: SoundAnswer, *, is_stream: bool) -> Disturbed:
    """Return an answer as it is."""
    if is_stream:
        return Disturbed(write_stream(answer.events))
    return Disturbed(json.dumps(answer.response).encode(), content_type=PLAIN_JSON)


def without_foreign_calls(body: Json) -> Json:
    """Return a request without the calls that this server adds: the simulator has none."""
    items = [item for item in body["input"] if not is_foreign(item)]
    return {**body, "input": items}


def is_foreign(item: Json) -> bool:
    """Say whether an item is about a call that the server itself has run."""
    return str(item.get("call_id")).startswith(FOREIGN_ID)


async def send(
    request: web.Request, disturbed: Disturbed, chance: random.Random
) -> web.StreamResponse:
    """Write an answer in pieces of any length."""
    answer = web.StreamResponse(status=disturbed.status, headers=disturbed.headers)
    answer.headers["Content-Type"] = disturbed.content_type
    if disturbed.encoding is not None:
        answer.headers["Content-Encoding"] = disturbed.encoding
    await answer.prepare(request)
    body = ENCODERS.get(disturbed.encoding or "", bytes)(disturbed.body)
    pieces = min(len(body), chance.choice((1, MOST_PIECES)))
    places = sorted(chance.sample(range(len(body)), pieces))
    for begin, end in zip([0, *places], [*places, len(body)], strict=True):
        if begin < end:
            await answer.write(body[begin:end])
    if disturbed.is_cut and request.transport:
        request.transport.abort()
    return answer
