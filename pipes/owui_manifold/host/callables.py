"""The functions of the host's tools: how it wraps them, and how they run.

Every assumption about a function that is not ours is made here.
"""

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr

from openai_responses.json_input import JsonObject, value_at
from openai_responses.loop.spending import Pause
from owui_manifold.host.open_webui import EventCall, HostFunction

_OWN_NAME = "function_name"
"""The host's variable in the function of a server's tool: its name on the server."""


def function_names(wrapped: object) -> list[str]:
    """Return the names that a tool's function has: its own, and that on a server."""
    function = getattr(wrapped, "__function__", wrapped)
    names = [str(getattr(function, "__name__", ""))]
    variables = getattr(getattr(function, "__code__", None), "co_freevars", ())
    if _OWN_NAME in variables:
        cells: Any = getattr(function, "__closure__", None)
        names.append(str(cells[variables.index(_OWN_NAME)].cell_contents))
    return names


_NAMES_SECRET = re.compile(
    "key|token|secret|passw|pwd|credential|cookie|bearer|auth(?!or)", re.IGNORECASE
)


def tool_secrets(wrapped: object) -> list[str]:
    """Return the keys and passwords in the valves that a tool's function can quote.

    The host sets `valves` on the toolkit, and on the user whom the function is given. It
    hides a valve on its page whose author says that it is a password; others are told
    by their names.
    """
    toolkit = getattr(getattr(wrapped, "__function__", None), "__self__", None)
    given = getattr(wrapped, "__extra_params__", None)
    secrets: dict[str, None] = {}
    for valves in (
        getattr(toolkit, "valves", None),
        value_at(given, "__user__", "valves"),
    ):
        fields = getattr(type(valves), "model_fields", {})
        # Those of the user may be a dict: functions hand on what they were given.
        named = (
            valves if isinstance(valves, Mapping) else getattr(valves, "__dict__", {})
        )
        for name, value in named.items():
            extra = getattr(fields.get(name), "json_schema_extra", None)
            is_hidden = value_at(extra, "input", "type") == "password"
            is_secret = is_hidden or bool(_NAMES_SECRET.search(str(name)))
            for text in _secrets_in(value, _LEVELS_OF_A_VALVE, is_secret=is_secret):
                # Users choose how many theirs has, and of which length; each line of the
                # log is searched for all of them.
                for start in range(0, len(text), _PIECE_OF_A_SECRET):
                    secrets[text[start : start + _PIECE_OF_A_SECRET]] = None
                    if len(secrets) == _MOST_SECRETS:
                        return list(secrets)
    return list(secrets)


_LEVELS_OF_A_VALVE = 5
"""Of a valve: a table of accounts has three."""
_MOST_SECRETS = 100
_PIECE_OF_A_SECRET = 2_000
"""Characters. Keys are shorter; a file of certificates is hidden in pieces."""


def _secrets_in(value: object, levels: int, *, is_secret: bool) -> Iterator[str]:
    """Yield the texts in a valve that have a secret name, and those of pydantic."""
    if isinstance(value, SecretStr | SecretBytes):
        value = value.get_secret_value()
        is_secret = True
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        if is_secret:
            yield value
    elif isinstance(value, BaseModel):
        inside = vars(value)
        yield from _secrets_in(inside, levels, is_secret=is_secret)
    elif isinstance(value, Mapping) and levels:
        for name, inner in value.items():
            is_named = is_secret or bool(_NAMES_SECRET.search(str(name)))
            yield from _secrets_in(inner, levels - 1, is_secret=is_named)
    elif isinstance(value, list | tuple | set | frozenset) and levels:
        for inner in value:
            yield from _secrets_in(inner, levels - 1, is_secret=is_secret)


def is_blocking(function: HostFunction) -> bool:
    """Say whether a function does its work without waiting.

    The host wraps sync tools in coroutine functions that never wait; on the event loop
    they would block every chat.
    """
    bare = getattr(function, "__function__", None)
    return bare is not None and not inspect.iscoroutinefunction(bare)


def run_at_once(function: HostFunction, params: JsonObject) -> Any:
    """Return the result of a coroutine function that never waits.

    The coroutine is made here, on the thread, so that none is left over when the call
    is given up before its turn.
    """
    coroutine = function(**params)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("a tool that claims to be synchronous waited")


_QUESTIONS = ("confirmation", "input", "request:user_input", "request:elicitation")
"""The types of event calls that a person answers (`get_event_call` in socket/main.py)."""


def stopping_clocks(event_call: EventCall, pauses: Sequence[Pause]) -> EventCall:
    """Return the event call of a tool, whose questions stop the clocks of some calls."""

    async def call(event: Any) -> Any:
        with ExitStack() as stopped:
            if value_at(event, "type") in _QUESTIONS:
                for pause in pauses:
                    stopped.enter_context(pause())
            return await event_call(event)

    return call


@contextmanager
def pausing_for_server(client: Any, pause: Pause) -> Iterator[None]:
    """Let the questions of an MCP server stop the clocks of a call, while it runs.

    The server asks apart from its calls (`elicit` in utils/mcp/client.py of 0.12.4), so
    nothing says which of them a question belongs to: it stops those of all.
    """
    event_call = getattr(client, "event_caller", None)
    if event_call is None:  # 0.11.4, or no page
        yield
        return
    pauses: list[Pause] | None = getattr(event_call, "pauses", None)
    if pauses is None:
        pauses = []
        client.event_caller = stopping_clocks(event_call, pauses)
        client.event_caller.pauses = pauses
    pauses.append(pause)
    try:
        yield
    finally:
        pauses.remove(pause)


async def call_server(function: HostFunction, params: JsonObject) -> Any:
    """Return the result of an MCP server, or its error for the model.

    The host raises the server's own error as a bare Exception (utils/mcp/client.py). It
    is a result: the call has been made, and may be made again.
    """
    try:
        return await function(**params)
    except Exception as error:
        if type(error) is Exception:
            return {"error": str(error)}
        raise
