"""Tools in memory, for tests of those who call them."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from openai_responses.items import Item
from openai_responses.loop.tools import CallKind, ToolResult, Toolset, run_calls

Json = dict[str, Any]
Function = Callable[[Json], Awaitable[str]]
CITY: Json = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
CANARY = "canary: the database password is hunter2"


async def weather(arguments: Json) -> str:
    return f"Rain in {arguments['city']}."


async def breaking(_: Json) -> str:
    """Fail with words that no one may see."""
    raise ValueError(CANARY)


async def exiting(_: Json) -> str:
    raise SystemExit(CANARY)


async def interrupting(_: Json) -> str:
    """End the server, as asyncio does for it."""
    raise KeyboardInterrupt(CANARY)


class PanicException(BaseException):
    """What libraries in Rust raise; no Exception, so that no one goes on."""


async def panicking(_: Json) -> str:
    """Fail inside of such a library."""
    raise PanicException(CANARY)


async def cancelling(_: Json) -> str:
    """Cancel itself, as the scopes of other libraries do."""
    raise asyncio.CancelledError(CANARY)


async def out_of_time(_: Json) -> str:
    raise TimeoutError(CANARY)


async def endless(_: Json) -> str:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


async def stubborn(_: Json) -> str:
    """Wait a day, whoever cancels it; then answer."""
    loop = asyncio.get_running_loop()
    until = loop.time() + 86_400
    while loop.time() < until:
        try:
            await asyncio.sleep(until - loop.time())
        except asyncio.CancelledError:
            return "too late"
    return "a day later"


class MemoryTools:
    """Functions by name, all with the arguments of a city; `called` is the record."""

    def __init__(self, **functions: Function) -> None:
        self.functions: dict[str, Function] = {"get_weather": weather, **functions}
        self.peoples: set[str] = set()
        self.schemas: dict[str, Json] = {}
        self.stand_ins: dict[str, str | None] = {}
        self.called: list[tuple[str, Json]] = []
        self.left: list[str] = []

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        return self.schemas.get(name, CITY) if name in self.functions else None

    def resolve_call(self, name: str, arguments: Json) -> tuple[str, Json] | None:
        """Return the tool that another one stands for."""
        if name not in self.stand_ins:
            return name, arguments
        meant = self.stand_ins[name]
        return None if meant is None else (meant, dict(arguments))

    def call_kind(self, name: str) -> CallKind:
        """Return `question` for a tool that was named as one of people."""
        return "question" if name in self.peoples else "limited"

    async def call(self, name: str, arguments: Json) -> ToolResult:
        """Run a function; `left` tells of those that were cancelled."""
        self.called.append((name, arguments))
        try:
            return ToolResult(await self.functions[name](arguments))
        except asyncio.CancelledError:
            self.left.append(name)
            raise


def calling(
    name: str, number: int | str = 1, arguments: str = '{"city": "Bern"}', **more: Any
) -> Item:
    """A call as the wire ends it."""
    return {
        "type": "function_call",
        "id": f"fc_{number}",
        "call_id": f"call_{number}",
        "name": name,
        "arguments": arguments,
        "status": "completed",
        **more,
    }


async def answers_of(calls: Sequence[Item], toolset: Toolset) -> list[ToolResult]:
    """The answers of a batch, which come in the order of the calls."""
    pairs = [pair async for pair in run_calls(calls, toolset)]
    assert [call for call, _ in pairs] == list(calls)
    return [answer for _, answer in pairs]
