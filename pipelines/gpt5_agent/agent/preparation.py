"""Builds what the first round of the agent needs from a question."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpt5_agent.agent.earlier_rounds import (
    EarlierRounds,
    read_chat_notes,
    read_earlier_rounds,
)
from gpt5_agent.request import AgentRequest
from gpt5_agent.tools.confirmations import drop_question_calls
from gpt5_agent.tools.execution import OwnTools, describe_tool
from manifold.history import fit_history
from manifold.learning import is_built_of
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_input import as_list
from openai_responses.models.resolve import ResolvedModel
from openai_responses.repairs.memory import RepairScope
from openai_responses.requests.build import ResponsesRequest, build_request
from openai_responses.requests.replay import Origin, origin_at, replay_output
from openai_responses.requests.tools import (
    ToolNames,
    merge_tools,
    responses_tool_choice,
    responses_tools,
)
from owui_chat.commands import without_commands
from owui_chat.input.attachments import resolve_images
from owui_chat.input.history import build_input
from owui_chat.messages import DETAILS_FIELD, cut_notice, parse_messages
from owui_chat.storage.details_carrier import read_details, restore_from_details
from owui_chat.storage.signature import Sign
from strategies.context import ContextSource, read_context
from strategies.instructions import build_strategy_instructions
from strategies.memory import (
    Message,
    apply_memory_policy,
    build_memory_items,
)
from strategies.policy import ChosenStyle, choose_style

_MAX_TOOLS = 128
"""The API refuses longer lists."""


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
    notes: Sequence[str]
    """What the person who asked should know of how the chat was read."""
    permissions: frozenset[str]

    def with_own_name(self, call: Item) -> Item:
        """Return a call under the tool's own name."""
        return {**call, "name": self.names.own_name(str(call["name"]))}


class _ChatHistory(NamedTuple):
    """A chat as input; `notice` says what was cut, if anything was."""

    system_text: str
    items: list[Item]
    notice: str


def prepare_run(request: AgentRequest) -> PreparedRun:
    """Return what the agent begins with; raises InvalidRequest."""
    model = request.model
    if not model.facts.functions:
        raise InvalidRequest(
            f"The model {model.id} cannot call functions, and an agent needs them. An "
            "administrator has to choose another one in MODEL, for example gpt-5.2."
        )
    if not all(isinstance(message, Mapping) for message in request.messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    parameters = request.parameters
    earlier = read_earlier_rounds(request.messages, request.sign)
    noted_style, permissions = read_chat_notes(request.messages, request.sign)
    style = noted_style or choose_style(parameters.policy_style, model.family)
    memory = apply_memory_policy(request.messages, parameters.guide.memory_policy)
    origin = origin_at(model.family, request.endpoint)
    history = _build_history(memory.messages, origin, earlier, request.sign)
    items = history.items
    if request.pictures:
        items = request.pictures.restore(request.chat, items)
    items = fit_history(items, request.own_tools.limits.characters)
    sources = read_context(parameters.context)
    tools, names = _offer_functions(request)
    first_request = build_request(
        model,
        build_strategy_instructions(parameters, style, history.system_text, sources),
        [*build_memory_items(parameters.guide), *items],
        _merge_body(request, tools, names),
        request.settings._replace(tools=tools),
    )
    if request.repairs:
        known = request.repairs.repairs(repair_scope(request, model.id))
        first_request = first_request.model_copy(update={"repairs": known})
    own_tools = OwnTools(request.own_tools.tools, request.own_tools.store_file)
    host_schemas: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        name = names.own_name(str(tool["name"]))
        if name not in own_tools.schemas:
            host_schemas[name] = tool.get("parameters") or {}
    return PreparedRun(
        model=model,
        request=first_request,
        names=names,
        own_tools=own_tools,
        host_schemas=host_schemas,
        earlier_rounds=earlier,
        style=style,
        sources=() if earlier.is_continuation else sources,
        notes=[note for note in (memory.note, history.notice) if note],
        permissions=permissions,
    )


def is_as_configured(request: AgentRequest, prepared: PreparedRun) -> bool:
    """Say whether a request has only what the administrator's valves set.

    The tools that run here are the administrator's, those of the host belong to the
    chat. What a caller may set is in the body.
    """
    bare = request._replace(body={})
    tools, names = _offer_functions(bare)
    body = _merge_body(bare, tools, names)
    settings = request.settings._replace(tools=tools)
    return is_built_of(prepared.request, prepared.model, body, settings)


def repair_scope(request: AgentRequest, model: str) -> RepairScope:
    """Return whose requests a repair is about."""
    return RepairScope(request.endpoint.account(), model, request.user_id)


def _build_history(
    messages: Sequence[Message], reader: Origin, earlier: EarlierRounds, sign: Sign
) -> _ChatHistory:
    """Return the history of a chat.

    An answer whose calls are still open is at the end: it goes on from there.
    """
    if earlier.open_turn:
        messages = _drop_last_turn_details(messages, sign)
    system_text, parts = parse_messages(drop_question_calls(messages))
    parts, records = restore_from_details(without_commands(parts), sign)
    parts = resolve_images(parts, _leave_large_image)
    items = build_input(parts, records, reader)
    maker = earlier.open_origin
    is_readable = maker is not None and reader.can_decrypt(maker)
    open_items = replay_output(earlier.open_turn, with_reasoning=is_readable)
    return _ChatHistory(system_text, [*items, *open_items], cut_notice(parts))


def _leave_large_image(_encoded: str) -> bytes:
    """Return nothing: the Pipelines server has no library that makes images smaller."""
    return b""


def _drop_last_turn_details(messages: Sequence[Message], sign: Sign) -> list[Message]:
    """Return the messages without the details of the last answer that has any."""
    last = max(
        index
        for index, message in enumerate(messages)
        if read_details(message.get(DETAILS_FIELD), sign)
    )
    kept = dict(messages[last])
    del kept[DETAILS_FIELD]
    return [*messages[:last], kept, *messages[last + 1 :]]


def _offer_functions(request: AgentRequest) -> tuple[Sequence[Item], ToolNames]:
    """Return the host's tools and ours; ours win over one of the same name.

    Of too many the last are left out.
    """
    host_tools = responses_tools(as_list(request.body.get("tools")), log=request.log)
    own_tools = responses_tools(
        [describe_tool(tool) for tool in request.own_tools.tools], log=request.log
    )
    functions = [
        tool
        for tool in merge_tools(host_tools, own_tools)
        if tool.get("type") in ("function", "custom")
    ]
    excess = len(functions) - _MAX_TOOLS
    if excess > 0:
        request.log(f"{excess} tools are not offered: the API takes {_MAX_TOOLS}.")
        functions = functions[:_MAX_TOOLS]
    names = ToolNames(tuple(str(tool["name"]) for tool in functions))
    return names.rename_tools(functions), names


def _merge_body(
    request: AgentRequest, tools: Sequence[Item], names: ToolNames
) -> dict[str, Any]:
    """Return the caller's keys; the guide's temperature is the default."""
    body: dict[str, Any] = {"temperature": request.parameters.guide.temperature}
    for key, value in request.body.items():
        if value is not None:
            body[key] = value
    body["tool_choice"] = None
    if tools:
        body["tool_choice"] = responses_tool_choice(
            request.body.get("tool_choice"), tools, names
        )
    return body
