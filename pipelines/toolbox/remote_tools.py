"""A tool that another server runs: what is taken of it, how it is offered here."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, TypeVar

MOST_TOOLS = 128
"""Of one server; more would only confuse a model."""
LARGEST_ANSWER = 8 * 1024 * 1024
"""In bytes; a file of 5 MB, which is the most that is shown, fits in as base64."""

_LARGEST_SCHEMA = 50_000
_DEEPEST_SCHEMA = 40
_LONGEST_DESCRIPTION = 4_000
_LONGEST_TOOL_NAME = 64
_SHORTEST_HIDDEN = 6
_BARRED = re.compile(r"[^A-Za-z0-9_-]")

Execute = Callable[[dict[str, Any]], Awaitable[Any]]


_Got = TypeVar("_Got")


class RemoteFailed(Exception):
    """Another server did not do what was asked; says nothing that it must not."""


class RemoteSlow(RemoteFailed):
    """The server took too long."""


@dataclass(frozen=True, slots=True)
class RemoteSpec:
    """What a server says of one of its tools; `args` is the schema of its arguments."""

    own_name: str
    description: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool as the agent is offered it."""

    name: str
    description: str
    args: Mapping[str, Any]
    run: Execute = field(repr=False)

    async def execute(self, args: dict[str, Any]) -> Any:
        """Let the server run it; raises RemoteFailed."""
        return await self.run(args)


async def in_time(work: Awaitable[_Got], seconds: float, name: str) -> _Got:
    """Return what a server gives within its time; raises RemoteSlow."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        raise RemoteSlow(f"{name} did not answer within {seconds:g} s.") from None


def remote_tool(label: str, spec: RemoteSpec, run: Execute) -> RemoteTool:
    """Return a tool under the name of its server and its own."""
    name = _BARRED.sub("_", f"{label}_{spec.own_name}")[:_LONGEST_TOOL_NAME]
    description = shortened(spec.description, _LONGEST_DESCRIPTION)
    return RemoteTool(name, description, spec.args, run)


def with_own_names(tools: Iterable[RemoteTool]) -> tuple[RemoteTool, ...]:
    """Return the tools, those whose name is taken under another."""
    found: dict[str, RemoteTool] = {}
    for tool in tools:
        name, number = tool.name, 1
        while name in found:
            number += 1
            name = f"{tool.name[: _LONGEST_TOOL_NAME - 4]}_{number}"
        found[name] = replace(tool, name=name)
    return tuple(found.values())


def allows_tool(allowed: Iterable[str] | None, name: str) -> bool:
    """Say whether a tool is among those that may be used; None allows all."""
    return allowed is None or any(fnmatchcase(name, pattern) for pattern in allowed)


def failed_result(text: str) -> dict[str, Any]:
    """Return what the model is told of a call that failed, as MCP would say it."""
    return {"isError": True, "content": [{"type": "text", "text": text}]}


def is_modest(schema: object) -> bool:
    """Say whether a schema is small enough to be sent with every request."""
    if not _is_flat(schema, _DEEPEST_SCHEMA):
        return False
    return len(json.dumps(schema, default=str)) <= _LARGEST_SCHEMA


def _is_flat(value: object, levels: int) -> bool:
    inner: Iterable[object] = ()
    if isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    return levels > 0 and all(_is_flat(one, levels - 1) for one in inner)


def shortened(text: str, characters: int) -> str:
    """Return a text without what goes beyond a number of characters."""
    return text if len(text) <= characters else f"{text[:characters]} [...]"


def with_secrets_hidden(text: str, secrets: Iterable[str]) -> str:
    """Return a text that a server sent without the secrets that we sent to it.

    Those of fewer than six characters would be found in ordinary words.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_HIDDEN:
            text = text.replace(secret, "[redacted]")
            text = text.replace(json.dumps(secret)[1:-1], "[redacted]")
    return text
