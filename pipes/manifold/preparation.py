"""What both doors do to make a request of a chat, in the order in which they do it.

A chat is read; its tools are offered; the fields are built; its parts become the input.
What only one of the hosts knows of a chat, its row or an answer that waits, is added in
between by its door: `owui_manifold/prepare/chat.py`, `gpt5_agent/agent/preparation.py`.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, is_call_output, is_hosted_tool
from openai_responses.json_input import JsonObject
from openai_responses.loop.tools import NOTE_CHARACTERS, cap_output
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.build import ResponsesRequest, Settings, build_request
from openai_responses.requests.tools import (
    ToolNames,
    merge_tools,
    responses_tool_choice,
)
from owui_chat.input.attachments import fit_input
from owui_chat.messages import ChatPart, UserMessage, cut_notice, parse_messages
from owui_chat.storage.details_carrier import restore_from_details
from owui_chat.storage.records import Record
from owui_chat.storage.signature import Sign
from shells.caller import ChatCaller
from strategies.memory import apply_memory_policy, build_memory_items
from strategies.parameters import StrategyParameters


class Chat(NamedTuple):
    """A chat on its way from the host's form to the input of a request."""

    instructions: str
    parts: list[ChatPart]
    records: Mapping[str, Record]
    """What earlier answers of the chat stored."""
    notices: Sequence[str] = ()
    """What the person who asked is told of it."""


def parse_chat(
    messages: Sequence[Mapping[str, Any]],
    sign: Sign | None,
    agent: StrategyParameters | None,
    detail: str = "auto",
    *,
    has_wish: bool = False,
    with_thoughts: bool = False,
) -> Chat:
    """Return a chat with what the details of its answers carry, signed by `sign`.

    An `agent` may remember only the last turns; `has_wish` says that the last message is
    none (`apply_memory_policy`). Images without a `detail` get this one. Thoughts that
    a program gives back are read only `with_thoughts`.
    Raises InvalidRequest for a chat, or a memory policy, that cannot be read.
    """
    memory_note = ""
    if agent:
        policy = agent.guide.memory_policy
        messages, memory_note = apply_memory_policy(messages, policy, has_wish=has_wish)
    instructions, parts = parse_messages(messages, detail, with_thoughts=with_thoughts)
    notices = (memory_note, cut_notice(parts))
    parts, records = restore_from_details(parts, sign)
    return Chat(instructions, parts, records, notices)


def takes_back_thoughts(caller: ChatCaller, endpoint: Endpoint) -> bool:
    """Say whether the server gets the thoughts that a program gives back.

    A program runs its tools itself, and some models take no call without the thought
    before it. OpenAI's servers take none that they have not encrypted.
    """
    return not (caller.is_open_webui or endpoint.serves_openai)


class OfferedTools(NamedTuple):
    """Tools in the API's form, with the functions' own names and `tool_choice`."""

    items: Sequence[Item] = ()
    names: ToolNames = ToolNames()
    choice: Any = None
    notice: str = ""
    """What the person who asked is told, if anything."""


MAX_TOOLS = 128
"""Longer lists are refused (docs/reference/responses-api.md, "Function tools")."""
_TOO_MANY = (
    "Left out: {left_out} of this chat's {count} tools, because the API takes at most "
    "{most}. Switch off tools that this chat does not need."
)


def offer_tools(
    choice: object,
    hosted: Sequence[Item] = (),
    called: Sequence[Item] = (),
    withheld: Collection[str] = (),
    builtin: Collection[str] = (),
) -> OfferedTools:
    """Return the tools of a chat: OpenAI's, then the others, and the choice.

    One of the others replaces OpenAI's of the same kind; the `withheld` ones are left
    out. Of more tools than the API takes, OpenAI's come first, because they are few and
    an administrator switched them on; then those that people attached or filters added;
    then the host's own, which `builtin` names. Each group keeps its order. Raises
    InvalidRequest for a choice that names no tool.
    """
    merged = merge_tools(hosted, called)
    tools = [tool for tool in merged if tool.get("name") not in withheld]
    if not tools:
        return OfferedTools()
    notice = ""
    left_out = len(tools) - MAX_TOOLS
    if left_out > 0:
        notice = _TOO_MANY.format(left_out=left_out, count=len(tools), most=MAX_TOOLS)
        first = [tool for tool in tools if is_hosted_tool(tool)]
        functions = [tool for tool in tools if not is_hosted_tool(tool)]
        first += [tool for tool in functions if tool["name"] not in builtin]
        first += [tool for tool in functions if tool["name"] in builtin]
        tools = first[:MAX_TOOLS]
    own_names = [str(tool["name"]) for tool in tools if not is_hosted_tool(tool)]
    names = ToolNames(tuple(own_names))
    items = names.rename_tools(tools)
    chosen = responses_tool_choice(choice, items, names)
    return OfferedTools(items, names, chosen, notice)


def build_fields(
    model: ResolvedModel,
    body: JsonObject,
    settings: Settings,
    agent: StrategyParameters | None,
    *,
    is_empty: bool = False,
) -> ResponsesRequest:
    """Return the request of a chat, still without instructions and input.

    `body` has the caller's keys; the temperature of an agent's guide holds where they
    say nothing. Raises InvalidRequest for a chat that `is_empty`.
    """
    if agent and body.get("temperature") is None:
        body = {**body, "temperature": agent.guide.temperature}
    items: list[Item] = [] if is_empty else [{}]
    return build_request(model, "", items, body, settings)


def memories(agent: StrategyParameters) -> list[ChatPart]:
    """Return what an agent remembers from before the chat, as the chat's beginning."""
    return [UserMessage(item) for item in build_memory_items(agent.guide)]


def fit_history(items: Sequence[Item], most_output: int | None) -> list[Item]:
    """Return the items of a chat without what is too long for a request.

    Open WebUI, and other clients, know no limit for the outputs of the calls that they
    make; an output that was cut before stays as it is. None: outputs stay whole.
    """
    fitted: list[Item] = []
    for item in items:
        if most_output is None or not is_call_output(item):
            fitted.append(item)
            continue
        output = cap_output(item["output"], most_output, NOTE_CHARACTERS)
        fitted.append({**item, "output": output})
    return fit_input(fitted)
