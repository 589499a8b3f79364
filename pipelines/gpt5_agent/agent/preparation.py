"""Builds what the first round of the agent needs from a question."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpt5_agent.agent.delegation import DELEGATE
from gpt5_agent.agent.earlier_rounds import (
    EarlierRounds,
    drop_last_turn_details,
    read_chat_notes,
    read_earlier_rounds,
    read_turns,
)
from gpt5_agent.pictures import seen_pictures
from gpt5_agent.request import AgentRequest
from gpt5_agent.tools.confirmations import drop_question_calls
from gpt5_agent.tools.execution import OwnTools, describe_tool
from manifold.learning import has_fields_of, known_repairs
from manifold.preparation import (
    Chat,
    OfferedTools,
    build_fields,
    fit_history,
    memories,
    offer_tools,
    parse_chat,
    takes_back_thoughts,
)
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, is_hosted_tool, text_message
from openai_responses.json_input import JsonObject, as_list, value_at
from openai_responses.loop.tools import CallKind
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import replay_output
from openai_responses.requests.tools import (
    ToolNames,
    merge_tools,
    responses_tools,
)
from owui_chat.commands import without_commands
from owui_chat.input.attachments import resolve_images
from owui_chat.input.history import build_input
from strategies.context import ContextSource, read_context
from strategies.instructions import build_strategy_instructions
from strategies.memory import Message
from strategies.policy import ChosenStyle, choose_style


class AgentTools:
    """All tools that the model is offered; only the agent's own run here.

    `own_names` and `host_names` are the tools' own names.
    """

    def __init__(
        self,
        names: ToolNames,
        own: OwnTools,
        host_schemas: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """`host_schemas` has the arguments of the host's tools, by their own names."""
        self.own_names = own.schemas.keys()
        self.host_names = host_schemas.keys()
        self.with_own_name = names.with_own_name
        self.call = own.call
        self._names = names
        self._schemas = {**host_schemas, **own.schemas}

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, or None for an unknown tool."""
        return self._schemas.get(self._names.own_name(name))

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the own name of a tool; no name is an alias."""
        return self._names.own_name(name), arguments

    def call_kind(self, name: str) -> CallKind:
        """Return what limits the calls of a tool: tasks have limits of their own."""
        is_task = self._names.own_name(name) == DELEGATE
        return "task" if is_task else "limited"


class PreparedRun(NamedTuple):
    """What a run of the agent begins with; `request` has the history as its input."""

    request: ResponsesRequest
    tools: AgentTools
    earlier_rounds: EarlierRounds
    style: ChosenStyle
    sources: Sequence[ContextSource]
    notices: Sequence[str]
    """Messages for the user about how the chat was read."""
    permissions: frozenset[str]


def prepare_run(request: AgentRequest) -> PreparedRun:
    """Return what the agent begins with; raises InvalidRequest."""
    model = request.model
    if not model.facts.functions:
        raise InvalidRequest(
            f"The model {model.id} cannot call functions, and an agent needs them. An "
            "administrator has to choose another one in MODEL, for example gpt-5.2.",
            remedy="setup",
        )
    if not all(isinstance(message, Mapping) for message in request.messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    parameters = request.parameters

    # The chat as the host gives it, with what it carries for its later rounds.
    sign = request.sign
    turns = read_turns(request.messages, sign)
    earlier = read_earlier_rounds(request.messages, turns, sign)
    noted_style, permissions = read_chat_notes(turns)
    messages: Sequence[Message] = request.messages
    if earlier.open_turn:  # it is put at the end of the input
        messages = drop_last_turn_details(messages, turns)
    chat = parse_chat(
        drop_question_calls(messages),
        sign,
        parameters,
        has_wish=request.has_wish,
        with_thoughts=takes_back_thoughts(request.caller, request.endpoint),
    )
    chat = chat._replace(parts=without_commands(chat.parts))

    # The tools, the fields, and what the agent is told.
    tools = _offer_functions(request, request.body)
    first_request = _build_fields(request, tools, request.body, is_empty=not chat.parts)
    own_names = {tool.name for tool in request.own_tools.tools}
    host_schemas: dict[str, Mapping[str, Any]] = {}
    for tool in tools.items:
        name = tools.names.own_name(str(tool["name"]))
        if name not in own_names:
            host_schemas[name] = tool.get("parameters") or {}
    # The tools of another client are its own, whatever their names.
    is_open_webui = request.caller.is_open_webui
    style = noted_style or choose_style(parameters.policy_style, model.family)
    instructions = build_strategy_instructions(
        parameters, style, chat.instructions, host_schemas if is_open_webui else ()
    )

    # The input, and everything together.
    form = value_at(first_request.text, "format", "type")
    items = _build_items(request, chat, earlier, form)
    own = request.own_tools
    own_tools = OwnTools(own.tools, own.store_file, seen_pictures(items))
    user_id = request.caller.user_id
    repairs = known_repairs(request.repairs, request.endpoint, model.id, user_id)
    most_output = own.limits.characters if is_open_webui else None
    first_request = first_request.model_copy(
        update={
            "input": fit_history(items, most_output),
            "instructions": instructions or None,
            "repairs": repairs,
        }
    )

    sources = () if earlier.is_continuation else read_context(parameters.context)
    notices = (tools.notice, *chat.notices)
    return PreparedRun(
        request=first_request,
        tools=AgentTools(tools.names, own_tools, host_schemas),
        earlier_rounds=earlier,
        style=style,
        sources=sources,
        notices=[notice for notice in notices if notice],
        permissions=permissions,
    )


def _build_items(
    request: AgentRequest, chat: Chat, earlier: EarlierRounds, form: object
) -> list[Item]:
    """Return the input: the chat, and at its end an answer whose calls are still open.

    `form` is that of the answer's text.
    """
    origin = request.origin
    # The Pipelines server has no library that makes a large image smaller.
    parts = [*memories(request.parameters), *chat.parts]
    parts = resolve_images(parts, lambda _large: b"")
    items = build_input(parts, chat.records, origin)
    if form == "json_object" and "json" in chat.instructions.lower():
        # OpenAI looks for the word in the input alone, and refuses the format without.
        items = [text_message("developer", "Answer with JSON."), *items]
    maker = earlier.open_origin
    is_readable = maker is not None and origin.can_decrypt(maker)
    items += replay_output(earlier.open_turn, with_reasoning=is_readable)
    if request.pictures:
        items = request.pictures.restore(request.caller.answer, items)
    return items


def is_as_configured(request: AgentRequest, prepared: PreparedRun) -> bool:
    """Say whether a request has only what the administrator's valves set.

    The tools that run here are the administrator's, those of the host belong to the
    chat. What a caller may set is in the body.
    """
    tools = _offer_functions(request, {})
    return has_fields_of(prepared.request, _build_fields(request, tools, {}))


def _offer_functions(request: AgentRequest, body: JsonObject) -> OfferedTools:
    """Return the host's tools and ours; ours win over one of the same name."""
    host_tools = responses_tools(as_list(body.get("tools")), log=request.log.note)
    own_tools = responses_tools(
        [describe_tool(tool) for tool in request.own_tools.tools], log=request.log.note
    )
    functions = [
        tool for tool in merge_tools(host_tools, own_tools) if not is_hosted_tool(tool)
    ]
    offered = offer_tools(body.get("tool_choice"), called=functions)
    if offered.notice:
        request.log.note(offered.notice)
    return offered


def _build_fields(
    request: AgentRequest,
    tools: OfferedTools,
    body: JsonObject,
    *,
    is_empty: bool = False,
) -> ResponsesRequest:
    """Return the request without its chat, with what `body` sets."""
    return build_fields(
        request.model,
        {**body, "tool_choice": tools.choice},
        request.settings._replace(tools=tools.items),
        request.parameters,
        is_empty=is_empty,
    )
