"""Who calls the pipeline, and what Open WebUI attached to the chat.

Open WebUI removes the metadata from a body before the pipeline gets it, but shows it to
the pipeline's own inlet and keeps what the inlet adds.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpt5_agent.request import PipelineCaller
from gpt5_agent.tools.host_calls import MAX_ID_CHARACTERS, HostToolNames
from manifold.request_settings import chosen_tags
from openai_responses.json_input import as_list, as_mapping
from owui_chat.file_names import shorten_name
from shells.caller import is_program, wants_format, wants_usage_chunk
from strategies.memory import Message, find_turn_starts

CONTEXT_KEY = "agent_context"
_MAX_ATTACHED = 20
"""Attached files that are put into the sandbox."""
_MAX_TOOL_IDS = 50
"""Toolkits and servers of a chat whose names are compared with rules."""
_FILE_KEYS = ("type", "id", "name")
_CONTEXT_IDS = ("chat_id", "message_id", "user_id", "task")


class AttachedToChat(NamedTuple):
    """What Open WebUI attached to the chat of a call."""

    tool_names: HostToolNames = HostToolNames()
    """What its tools may be called, by the ids of their toolkits and servers."""
    files: tuple[tuple[str, str], ...] = ()
    """The ids and names of files."""
    has_wish: bool = False
    """Whether the last message only says how to answer the one before it again."""
    tags: Sequence[str] | None = None
    """Of thoughts; None are the usual ones (`chosen_tags`)."""


def read_inlet_context(
    body: Mapping[str, Any], user: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what an inlet's body says of the chat: ids, those of its tools, the role.

    The files are the last ones attached, each with type, id and name.
    """
    metadata = as_mapping(body.get("metadata"))
    context: dict[str, Any] = {
        key: str(metadata[key]) for key in _CONTEXT_IDS if metadata.get(key)
    }
    if user is not None and user.get("role") == "admin":
        context["is_admin"] = True
    if metadata.get("regeneration_message_id"):
        context["has_wish"] = True
    tags = chosen_tags(metadata)
    if tags is not None:
        context["tags"] = tags
    tool_ids = as_list(metadata.get("tool_ids"))
    if tool_ids:  # a client may name any number; one more says that there are more
        context["tool_ids"] = tool_ids[: _MAX_TOOL_IDS + 1]
    files = as_list(metadata.get("files"))[-_MAX_ATTACHED:]
    if files:
        context["files"] = [
            {key: as_mapping(file).get(key) for key in _FILE_KEYS} for file in files
        ]
    return context


def accepted_body(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body that the server takes as Chat Completions mean it.

    Programs leave out `stream` if they read none, but the server then streams. It rejects
    messages without a text, in which programs tell calls (schemas.py:6 and :12).
    """
    accepted = {**body, "stream": bool(body.get("stream"))}
    messages = body.get("messages")
    if isinstance(messages, list):
        accepted["messages"] = [
            (
                {**message, "content": ""}
                if isinstance(message, Mapping) and message.get("content") is None
                else message
            )
            for message in messages
        ]
    return accepted


def read_caller(body: Mapping[str, Any]) -> PipelineCaller:
    """Return who calls; a body that passed no inlet is a plain client's."""
    context = as_mapping(body.get(CONTEXT_KEY))
    ids = {key: str(context.get(key) or "") for key in _CONTEXT_IDS}
    if is_program(ids["task"]):
        ids |= {"task": "", "message_id": ""}
    return PipelineCaller(
        host_model=str(body.get("model") or ""),
        streams=bool(body.get("stream")),
        is_admin=context.get("is_admin") is True,
        is_in_others_chat=False,  # Open WebUI does not say whose chat it is
        wants_usage_chunk=wants_usage_chunk(body),
        reads_older_calls=False,
        wants_format=wants_format(body),
        **ids,
    )


def read_attached(body: Mapping[str, Any]) -> AttachedToChat:
    """Return what is attached to the chat of a body that passed the inlet."""
    context = as_mapping(body.get(CONTEXT_KEY))
    files: list[tuple[str, str]] = []
    for entry in as_list(context.get("files")):
        row = as_mapping(entry)
        if row.get("type") in ("file", "image") and row.get("id"):
            name = shorten_name(str(row.get("name") or "file"))
            files.append((str(row["id"]), name))

    # A tool id is that of a toolkit, `server:ID`, or `server:KIND:ID|FUNCTIONS`.
    toolkit_ids: set[str] = set()
    mcp_ids: set[str] = set()
    references = [str(row) for row in as_list(context.get("tool_ids"))]
    for reference in references[:_MAX_TOOL_IDS]:
        tool_id = reference.partition("|")[0].removeprefix("server:")
        if tool_id.startswith("mcp:"):
            mcp_ids.add(tool_id.removeprefix("mcp:"))
        else:
            toolkit_ids.add(tool_id.removeprefix("openapi:"))
    known = {tool_id[:MAX_ID_CHARACTERS] for tool_id in toolkit_ids}
    tool_names = HostToolNames(
        frozenset(known),
        frozenset(mcp_ids),
        has_more=len(references) > _MAX_TOOL_IDS or known != toolkit_ids,
    )
    return AttachedToChat(
        tool_names=tool_names,
        files=tuple(files),
        has_wish=context.get("has_wish") is True,
        tags=context.get("tags"),
    )


def replace_query(messages: Sequence[Message], query: str) -> Sequence[Message]:
    """Return the messages with `query` as the text of the user's last message.

    Its pictures and files stay.
    """
    are_messages = all(isinstance(message, Mapping) for message in messages)
    if not query or not are_messages:  # others are refused with the chat
        return messages
    starts = find_turn_starts(messages)
    if not starts:
        return [*messages, {"role": "user", "content": query}]
    last = starts[-1]
    others = [
        part
        for part in as_list(messages[last].get("content"))
        if as_mapping(part).get("type") not in ("text", "input_text")
    ]
    content: Any = query
    if others:
        content = [{"type": "text", "text": query}, *others]
    replaced = {"role": "user", "content": content}
    return [*messages[:last], replaced, *messages[last + 1 :]]
