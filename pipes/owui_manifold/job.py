"""What one call of the pipe comes to: a request that is ready to be sent."""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

from openai_responses.calls import Toolset
from openai_responses.endpoint import Endpoint
from openai_responses.exchange import Limits
from openai_responses.items import Item
from openai_responses.models import resolve_model
from openai_responses.origin import Origin
from openai_responses.request import ResponsesRequest, Settings, build_request
from owui_chat.history import build_input
from owui_chat.messages import Stretch, read_messages
from owui_chat.tasks import task_messages
from owui_manifold.caller import Caller
from owui_manifold.consent import approver_of
from owui_manifold.host import require_floor
from owui_manifold.host_tools import HostTools, Surroundings
from owui_manifold.learned import Lessons
from owui_manifold.log import RunLog
from owui_manifold.offers import Offered, offered_tools
from owui_manifold.rounds import Round, continued_input, last_round
from owui_manifold.settings import (
    chosen_settings,
    endpoint_of,
    limits_of,
    toolset_of,
)
from owui_manifold.store import ChatStore, open_store
from owui_manifold.valves import UserValves, Valves

_EFFORT_KEYS = ("reasoning", "reasoning_effort")
_TOOL_KEYS = ("tools", "tool_choice", "parallel_tool_calls")


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of the pipe: what the host passes, and where to write lines.

    `state` is the state of the host's request; `lessons` and `threads` are those of
    the pipe.
    """

    body: Mapping[str, Any]
    caller: Caller
    valves: Valves
    user_valves: UserValves
    state: Any
    lessons: Lessons
    log: RunLog
    around: Surroundings
    threads: Executor


@dataclass(frozen=True, slots=True)
class Job:
    """One request, and where its answer is kept.

    `store` is None where nothing is kept; `before` is the round of the host's tools
    that this call goes on from; without a `toolset` calls are the host's to answer.
    """

    asked: Asked
    request: ResponsesRequest
    endpoint: Endpoint
    origin: Origin
    limits: Limits
    store: ChatStore | None = None
    before: Round | None = None
    toolset: Toolset | None = None


async def prepare_chat(asked: Asked) -> Job:
    """Return the job for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    model = resolve_model(asked.caller.model)
    endpoint = endpoint_of(asked.valves)
    origin = Origin(model.family, endpoint.host)
    instructions, stretches = read_messages(_messages(asked.body))
    store = await open_store(asked.caller, asked.valves)
    before = last_round(asked.state, asked.caller.message_id)
    items = _input(asked, stretches, store, before, origin)
    tools = offered_tools(asked.body, model, asked.valves)
    settings = chosen_settings(
        asked.valves,
        asked.user_valves,
        streams=asked.caller.streams,
        tools=tools.items,
        refused=asked.lessons.of(endpoint),
    )
    body = {**asked.body, "tool_choice": tools.choice}
    request = build_request(model, instructions, items, body, settings)
    limits = limits_of(asked.valves, tools_ran=before is not None)
    toolset = _toolset(asked, tools)
    return Job(asked, request, endpoint, origin, limits, store, before, toolset)


def prepare_task(asked: Asked) -> Job:
    """Return the job for a title, tags or the like: short, without tools or memory."""
    require_floor()
    model = resolve_model(asked.caller.model)
    endpoint = endpoint_of(asked.valves)
    origin = Origin(model.family, endpoint.host)
    messages = task_messages(_messages(asked.body))
    instructions, stretches = read_messages(messages)
    dropped = (*_EFFORT_KEYS, *_TOOL_KEYS)
    body = {key: value for key, value in asked.body.items() if key not in dropped}
    settings = Settings(
        effort=model.lowest_effort(), stream=False, encrypted_reasoning=False
    )
    items = build_input(stretches, {}, None)
    request = build_request(model, instructions, items, body, settings)
    return Job(
        asked, request, endpoint, origin, limits_of(asked.valves, tools_ran=False)
    )


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def _input(
    asked: Asked,
    stretches: list[Stretch],
    store: ChatStore | None,
    before: Round | None,
    origin: Origin,
) -> list[Item]:
    """Return the input: what the last round sent goes on, or the history anew."""
    continued = continued_input(before, stretches) if before else None
    if continued is not None:
        return continued
    reader = origin if asked.valves.remembers_reasoning() else None
    return build_input(stretches, store.records if store else {}, reader)


def _toolset(asked: Asked, offered: Offered) -> Toolset | None:
    """Return what runs the calls here, or None where others have to run one of them."""
    around, valves = asked.around, asked.valves
    ours = valves.TOOL_EXECUTION == "pipe" and offered.names.known
    if not ours or not all(name in around.tools for name in offered.names.known):
        return None
    approver = approver_of(valves, around.metadata, around.event_call)
    tools = HostTools(around, offered.names, asked.threads)
    return toolset_of(valves, tools, approver, partial(asked.log.line, "DEBUG"))
