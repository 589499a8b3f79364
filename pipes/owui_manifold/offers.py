"""The tools that a request offers to the model."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openai_responses.items import Item
from openai_responses.models import ResolvedModel
from openai_responses.tool_names import ToolNames
from openai_responses.tools import (
    merged_tools,
    responses_tool_choice,
    responses_tools,
)
from owui_manifold.hosted_tools import NO_HOSTED_TOOLS, HostedTools
from owui_manifold.valves import Valves


@dataclass(frozen=True, slots=True)
class Offered:
    """Tools in the API's form, under the names that it allows.

    `names.known` are the functions' own names; `choice` is the API's `tool_choice`.
    """

    items: Sequence[Item] = ()
    names: ToolNames = field(default_factory=ToolNames)
    choice: Any = None


def offered_tools(
    body: Mapping[str, Any],
    model: ResolvedModel,
    valves: Valves,
    hosted: HostedTools = NO_HOSTED_TOOLS,
    withheld: Collection[str] = (),
) -> Offered:
    """Return the tools of a chat: OpenAI's, the host's, then those that filters added.

    A tool that the host or a filter describes takes the place of ours of its kind; the
    `withheld` ones are left out.
    Raises InvalidRequest for a tool without a name and for a choice that names none.
    """
    groups = [body.get(key) for key in ("tools", "extra_tools")]
    specs = [spec for group in groups if isinstance(group, list) for spec in group]
    own = responses_tools(specs, strict=valves.ENABLE_STRICT_TOOL_CALLING)
    if not model.facts.functions:
        own = []
    tools = merged_tools(hosted.items, own)
    left_out = {*hosted.replaced, *withheld}
    tools = [tool for tool in tools if tool.get("name") not in left_out]
    if not tools:
        return Offered()
    called = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    names = ToolNames(tuple(str(tool["name"]) for tool in called))
    items = names.sent_tools(tools)
    choice = responses_tool_choice(body.get("tool_choice"), items, names=names)
    return Offered(items, names, choice)
