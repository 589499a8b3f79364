"""The kinds of tools that OpenAI runs, and the items that they make.

`TOOL_KINDS` is the one list of them: what a caller may set, what a limit can forbid and
what a call costs, what a request offers and what goes back follow it. What only a host
knows is in tables of the same kinds: `TOOL_SETTINGS` of the pipe and `HOSTED_CARDS` of
the page (cards). tests/test_tool_kinds.py fails for a kind that one of them lacks.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, NamedTuple


class ItemKind(NamedTuple):
    """What all items of one type have in common."""

    parts: tuple[tuple[str, str], ...] = ()
    """Lists of texts that deltas grow: kind and field."""
    text: tuple[str, str] | None = None
    """The one text that deltas grow: kind and field."""
    is_encrypted: bool = False
    """Only the account and model family that made it can read it."""
    returned: Literal["always", "same_run", "never"] = "always"
    """The later requests that a hosted item goes into."""
    required: tuple[str, ...] = ()
    """Fields without which the API refuses a hosted item."""
    nullable: tuple[str, ...] = ()
    """Fields that the API demands even if they are null."""
    is_call: bool = False
    """It belongs to a call of a hosted tool."""


class ToolKind(NamedTuple):
    """A kind of tools that OpenAI runs, itself or at another server."""

    type: str
    """As the API calls it; the types of older and dated versions begin with it."""
    older_types: tuple[str, ...] = ()
    """Versions that a caller can be allowed on their own."""
    closed_fields: tuple[str, ...] = ()
    """Fields that name what belongs to somebody, or where a chat is sent."""
    items: Mapping[str, ItemKind] = MappingProxyType({})
    """The items that it makes, by their types; none if it is not offered."""
    least: Mapping[str, Any] = MappingProxyType({})
    """What the API demands in addition to the type."""
    include: str = ""
    """What a request must ask for to get all of its items."""
    refused_at_minimal: bool = False
    """It cannot be used with the effort `minimal`."""
    is_cited: bool = False
    """Answers cite what it found."""
    fee: float = 0
    """US dollars for a call, where a source says it."""
    container_fee: float = 0
    """US dollars for each container in which its calls run."""

    @property
    def types(self) -> tuple[str, ...]:
        """The names by which a caller can be allowed it."""
        return (self.type, *self.older_types)


_KINDS = (
    ToolKind(
        "web_search",
        older_types=("web_search_preview",),
        # "The following tools cannot be used with reasoning.effort 'minimal':
        # web_search." (openai/codex 3559); of the others no refusal was reported.
        items={"web_search_call": ItemKind(required=("action",), is_call=True)},
        include="web_search_call.action.sources",
        refused_at_minimal=True,
        is_cited=True,
        fee=0.01,
    ),
    ToolKind(
        "file_search",
        closed_fields=("vector_store_ids",),
        items={"file_search_call": ItemKind(required=("queries",), is_call=True)},
        refused_at_minimal=True,
        is_cited=True,
        fee=0.0025,
    ),
    ToolKind(
        "mcp",
        closed_fields=(
            "server_url",
            "connector_id",
            "tunnel_id",
            "authorization",
            "headers",
        ),
        items={
            # Without the list the API asks the server again at each request.
            "mcp_list_tools": ItemKind(required=("server_label", "tools")),
            "mcp_call": ItemKind(
                required=("server_label", "name", "arguments"),
                text=("arguments", "arguments"),
                is_call=True,
            ),
            # An approval holds for one response; without it the API would make the call
            # again.
            "mcp_approval_request": ItemKind(
                required=("id", "server_label", "name", "arguments"),
                returned="same_run",
                is_call=True,
            ),
            "mcp_approval_response": ItemKind(
                required=("approval_request_id", "approve"),
                returned="same_run",
                is_call=True,
            ),
        },
    ),
    ToolKind(
        "code_interpreter",
        closed_fields=("container",),
        items={
            "code_interpreter_call": ItemKind(
                required=("container_id",),
                nullable=("code", "outputs"),
                text=("code", "code"),
                is_call=True,
            )
        },
        least={"container": {"type": "auto"}},
        include="code_interpreter_call.outputs",
        # A container of 1 GB for 20 minutes. OpenAI may bill it by the minute, at least
        # five: this is the most (OpenAI's page of prices, by simonw/llm 1592, 2026-08).
        container_fee=0.03,
    ),
    ToolKind(
        "image_generation",
        closed_fields=("input_image_mask",),
        # The API looks it up by its id, even if the image is in it (pydantic-ai
        # 2.68.0).
        items={"image_generation_call": ItemKind(returned="never")},
        refused_at_minimal=True,
    ),
    # Known so that no caller and no limit lets them pass; nothing offers them.
    ToolKind("shell", closed_fields=("environment",)),
    ToolKind("local_shell"),
    ToolKind("apply_patch"),
    ToolKind(
        "computer",
        older_types=("computer_use_preview",),
        closed_fields=("environment",),
    ),
    ToolKind("programmatic_tool_calling"),
)
"""In the order in which a request offers them: the prompt cache depends on it.

The types are those of openai-python 3.54.0, the fees are from LiteLLM 1.109.1
(2026-11-21), what is refused at `minimal` from openai-agents.
"""

CALLED_BY_NAME = ("function", "custom")
"""Types of tools that the caller runs, and not the API."""

TOOL_KINDS: Mapping[str, ToolKind] = {kind.type: kind for kind in _KINDS}

TOOL_OF_ITEM: Mapping[str, ToolKind] = {
    name: tool for tool in _KINDS for name in tool.items
}
"""The kind of tools that makes an item, by the item's type."""

HOSTED_ITEM_KINDS: Mapping[str, ItemKind] = {
    name: tool.items[name] for name, tool in TOOL_OF_ITEM.items()
}
"""What is known of the items that tools make, by their types."""
