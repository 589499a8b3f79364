"""Builds what the first round of the agent needs from a question."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpt5_agent.agent.earlier_rounds import (
    ChosenStyle,
    EarlierRounds,
    read_chat_style,
    read_earlier_rounds,
)
from gpt5_agent.agent.memory import (
    apply_memory_policy,
    build_memory_items,
    format_context,
    is_turn_start,
    read_context,
)
from gpt5_agent.agent.policy import build_system_instruction, choose_style
from gpt5_agent.events import ContextSource
from gpt5_agent.request import AgentRequest, Message
from gpt5_agent.tools.confirmations import drop_question_calls
from gpt5_agent.tools.execution import OwnTools, describe_tool
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import as_list
from openai_responses.models.resolve import ResolvedModel, resolve_model
from openai_responses.requests.build import ResponsesRequest, build_request
from openai_responses.requests.replay import Origin, origin_at, replay_output
from openai_responses.requests.tools import (
    ToolNames,
    merge_tools,
    responses_tool_choice,
    responses_tools,
)
from owui_chat.input.history import build_input
from owui_chat.messages import parse_messages
from owui_chat.storage.details_carrier import read_details, restore_from_details


class PreparedRun(NamedTuple):
    """What a run of the agent begins with.

    `request` has the history as its input. `own_tools` and `host_schemas` (the
    arguments of the host's tools) use the tools' own names.
    """

    model: ResolvedModel
    request: ResponsesRequest
    names: ToolNames
    own_tools: OwnTools
    host_schemas: Mapping[str, Mapping[str, Any]]
    earlier_rounds: EarlierRounds
    style: ChosenStyle
    sources: Sequence[ContextSource]
    note: str


class _OfferedFunctions(NamedTuple):
    tools: Sequence[Item]
    names: ToolNames
    choice: object


def prepare_run(asked: AgentRequest) -> PreparedRun:
    """Return what the agent begins with; raises InvalidRequest."""
    model = _resolve_calling_model(asked.model)
    if not all(isinstance(message, Mapping) for message in asked.messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    earlier = read_earlier_rounds(asked.messages)
    style = read_chat_style(asked.messages) or choose_style(
        asked.persona.style, model.family
    )
    guide = asked.persona.guide
    memory = apply_memory_policy(asked.messages, guide.memory_policy if guide else "")
    reader = origin_at(model.family, asked.endpoint)
    said, items = _build_history(
        _replace_query(memory.messages, asked.query), reader, earlier
    )
    sources = read_context(asked.context)
    offer = _offer_functions(asked)
    request = build_request(
        model,
        _build_instructions(asked, style, said, sources),
        [*(build_memory_items(guide) if guide else ()), *items],
        _merge_body(asked, offer),
        asked.settings._replace(tools=offer.tools),
    )
    own = OwnTools(asked.own_tools.tools, asked.own_tools.files_root)
    schemas = _read_host_schemas(offer, own)
    shown = () if earlier.is_continuation else sources
    return PreparedRun(
        model, request, offer.names, own, schemas, earlier, style, shown, memory.note
    )


def _resolve_calling_model(name: str) -> ResolvedModel:
    model = resolve_model(name)
    if not model.facts.functions:
        raise InvalidRequest(
            f"The model {model.id} cannot call functions, and an agent needs them. An "
            "administrator has to choose another one in MODEL, for example gpt-5.2."
        )
    return model


def _build_history(
    messages: Sequence[Message], reader: Origin, earlier: EarlierRounds
) -> tuple[str, list[Item]]:
    """Return the system's text and the items of a chat.

    An answer whose calls are still open stands at the end: it goes on from there.
    """
    closed = _drop_last_turn_details(messages) if earlier.open_turn else messages
    marked, records = restore_from_details(drop_question_calls(closed))
    said, stretches = parse_messages(marked)
    items = build_input(stretches, records, reader)
    maker = earlier.open_origin
    readable = maker is not None and reader.can_decrypt(maker)
    return said, [*items, *replay_output(earlier.open_turn, with_reasoning=readable)]


def _drop_last_turn_details(messages: Sequence[Message]) -> list[Message]:
    carriers = [place for place, one in enumerate(messages) if read_details(one)]
    last = messages[carriers[-1]]
    bare = {k: v for k, v in last.items() if k != "reasoning_details"}
    return [*messages[: carriers[-1]], bare, *messages[carriers[-1] + 1 :]]


def _replace_query(messages: Sequence[Message], query: str) -> Sequence[Message]:
    if not query.strip():
        return messages
    places = [
        place for place, _ in enumerate(messages) if is_turn_start(messages, place)
    ]
    if not places:
        return [*messages, {"role": "user", "content": query}]
    last = places[-1]
    rows = as_list(messages[last].get("content"))
    others = [
        row
        for row in rows
        if not isinstance(row, Mapping) or row.get("type") not in ("text", "input_text")
    ]
    text: Any = [{"type": "text", "text": query}, *others] if others else query
    return [*messages[:last], {"role": "user", "content": text}, *messages[last + 1 :]]


def _build_instructions(
    asked: AgentRequest, style: ChosenStyle, said: str, sources: list[ContextSource]
) -> str:
    persona = asked.persona
    guide = persona.guide.system_prompt if persona.guide else ""
    parts = [part.strip() for part in (guide, persona.instruction, said)]
    base = "\n\n".join(part for part in parts if part)
    text = build_system_instruction(base, persona.overrides, style)
    given = format_context(sources)
    return f"{text}\n\n{given}" if given else text


def _offer_functions(asked: AgentRequest) -> _OfferedFunctions:
    """Return the host's tools and ours; ours win over one of the same name."""
    hosts = responses_tools(as_list(asked.body.get("tools")))
    ours = responses_tools([describe_tool(tool) for tool in asked.own_tools.tools])
    functions = [
        tool
        for tool in merge_tools(hosts, ours)
        if tool.get("type") in ("function", "custom")
    ]
    names = ToolNames(tuple(str(tool["name"]) for tool in functions))
    tools = names.rename_tools(functions)
    choice = responses_tool_choice(asked.body.get("tool_choice"), tools, names)
    return _OfferedFunctions(tools, names, choice if tools else None)


def _read_host_schemas(
    offer: _OfferedFunctions, own: OwnTools
) -> dict[str, Mapping[str, Any]]:
    named = ((offer.names.own_name(str(one["name"])), one) for one in offer.tools)
    return {
        name: tool.get("parameters") or {}
        for name, tool in named
        if name not in own.names
    }


def _merge_body(asked: AgentRequest, offer: _OfferedFunctions) -> dict[str, Any]:
    """Return the caller's keys; the guide's temperature is the default."""
    guide = asked.persona.guide
    usual = {"temperature": guide.temperature} if guide else {}
    given = {k: v for k, v in asked.body.items() if v is not None}
    return {**usual, **given, "tool_choice": offer.choice}
