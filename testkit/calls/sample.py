"""What the host passes to one call of the pipe, for tests."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from calls.valves import expert
from owui_manifold.call.config import Config, build_endpoint, read_config
from owui_manifold.call.context import (
    ArrivedCall,
    Call,
    Caller,
    PipeMemory,
    resolve_call,
)
from owui_manifold.call.log import RunLog
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.host.open_webui import HostContext
from simulator import Simulator

Json = dict[str, Any]
MODEL = "my_pipe.gpt-5.6-sol"
USER = {"id": "user-1", "name": "Ada"}
RUN_ID = "7N4M6T9R1W"
IDS = {"chat_id": "chat-1", "message_id": "m-1", "session_id": "s-1"}
SAVED = Caller(MODEL, "user-1", "chat-1", "m-1", streams=True)
"""Whoever asks in a stored chat."""
TITLE_TASK = Caller(MODEL, "user-1", "chat-1", "m-1", task="title_generation")
"""The host, which wants a title for it."""
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def chat(*texts: str, **more: Any) -> Json:
    """A body whose messages are the user's and the assistant's in turn."""
    roles = ("user", "assistant")
    messages = [
        {"role": roles[number % 2], "content": text}
        for number, text in enumerate(texts)
    ]
    return {"model": MODEL, "messages": messages, "stream": True, **more}


def valves_for(sim: Simulator, **more: Any) -> Valves:
    """Settings that lead to the simulator; nothing is sent again unless asked for.

    The stand-in of the host stores no output of answers, so records go into the row.
    """
    given = {
        "BASE_URL": sim.base_url,
        "API_KEY": sim.api_key,
        "COMPATIBILITY": "openai",  # the simulator stands for OpenAI
        "LOG_LEVEL": "DEBUG",
        "EXPERT_JSON": expert(max_retries=0),
        "HISTORY_CARRIER": "markers",
    }
    return Valves.model_validate({**given, **more})


def arrived_call(
    body: Json,
    valves: Valves,
    caller: Caller | None = None,
    user_valves: UserValves | None = None,
    host: HostContext | None = None,
) -> ArrivedCall:
    """A call of a new pipe for a stored chat; its log keeps every line.

    The host gave it no tools to run unless `host` has some.
    """
    context = host or host_context()
    who = caller or SAVED
    config = config_of(valves, user_valves, context.metadata, is_admin=who.is_admin)
    return ArrivedCall(
        body=body,
        caller=who,
        config=config,
        memory=PipeMemory(),
        log=RunLog(valves.LOG_LEVEL, config.secrets, RUN_ID),
        host=context,
    )


def call_of(
    body: Json,
    valves: Valves,
    caller: Caller | None = None,
    user_valves: UserValves | None = None,
    host: HostContext | None = None,
) -> Call:
    """The same call, which may be answered; its caller may set all of its body."""
    call = arrived_call(body, valves, caller, user_valves, host)
    config = call.config
    is_admin = call.caller.is_admin
    endpoint = build_endpoint(config.valves, config.own_key, is_admin=is_admin)
    return resolve_call(call, endpoint)


def config_of(
    valves: Valves,
    user_valves: UserValves | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    is_admin: bool = False,
) -> Config:
    """What the valves come to for a user who may change everything."""
    free = valves.model_copy(update={"USER_MAY_CHANGE": "all"})
    role = "admin" if is_admin else "user"
    user = {"valves": user_valves or UserValves(), "role": role}
    config = read_config(free, user, metadata or {})
    may_change = {"USER_MAY_CHANGE": valves.USER_MAY_CHANGE}
    return config._replace(
        valves=config.valves.model_copy(update=may_change),
        permitted=read_config(valves, user).permitted,
    )


def host_context(
    tools: Mapping[str, Mapping[str, Any]] | None = None, **more: Any
) -> HostContext:
    """What the host gives in addition to the chat."""
    given: Json = {
        "request": SimpleNamespace(),
        "user": {},
        "metadata": {"user_id": "user-1", **IDS},
        "event_call": None,
        "event_emitter": None,
    }
    return HostContext(tools or {}, **{**given, **more})
