"""A chat body as Open WebUI sends it, parsed into its parts.

Open WebUI sends messages in the form of Chat Completions, without their ids. Texts of
assistant messages stay as they are here, markers included; `input.history` reads those.
Which stored message each one is, is found from the chat's row, which holds them as a
tree. They are paired from the end, because the host may have left out the oldest.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import NamedTuple, Self

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, content_parts, message_text, text_message
from openai_responses.json_input import JsonObject, as_list, as_mapping, as_text


class Attachment(NamedTuple):
    """A file at a message, as the host notes it there."""

    file_id: str
    name: str
    content_type: str
    is_image: bool
    """The host itself puts an image into the message."""


class StoredMessage(NamedTuple):
    """A message of the user as the chat's row holds it."""

    row: JsonObject
    answer_id: str
    """Names the answer to it in this branch of the chat; empty without one."""

    @property
    def words(self) -> str:
        """What the user wrote."""
        return as_text(self.row.get("content"))


class UserMessage(NamedTuple):
    """A message that no model wrote."""

    item: Item
    """An input message, ready to be sent."""
    stored: StoredMessage | None = None
    attachments: Sequence[Attachment] = ()

    @property
    def content(self) -> list[Item]:
        """The parts of the input message."""
        return self.item.get("content") or []

    def with_content(self, parts: Sequence[Item]) -> Self:
        """Return this message with other parts."""
        return self._replace(item={**self.item, "content": list(parts)})


class AssistantText(NamedTuple):
    """Text of an assistant's message, as the host gives it back."""

    text: str
    ulids: Sequence[str] = ()
    """Of records in front."""
    details: object = None
    """Of its records; unread."""


class ToolCall(NamedTuple):
    """A tool call of an assistant's message; the arguments of a custom one are a text."""

    call_id: str
    name: str
    arguments: str
    is_custom: bool = False


class ToolMessage(NamedTuple):
    """What a tool returned for a call: a text, or parts with pictures."""

    call_id: str
    output: str | list[Item]


ChatPart = UserMessage | AssistantText | ToolCall | ToolMessage


DETAILS_FIELD = "reasoning_details"


def parse_messages(
    messages: Sequence[JsonObject], detail: str = "auto"
) -> tuple[str, list[ChatPart]]:
    """Return the instructions and the parts of a chat.

    The system messages at the head are the instructions; later ones stay at their
    place. Pictures without a `detail` get this one. A chat that is longer than a request
    may be begins with `LEFT_OUT`, in the place of its oldest messages. Raises
    InvalidRequest for what the API cannot take.
    """
    if not all(isinstance(message, dict) for message in messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    head = [*takewhile(lambda message: message.get("role") == "system", messages)]
    texts = filter(None, (_plain_text(message.get("content")) for message in head))
    rest = _newest(messages[len(head) :])
    parts = [part for message in rest for part in _chat_parts(message, detail)]
    if len(head) + len(rest) < len(messages):
        parts.insert(0, _LEFT_OUT_PART)
    return "\n\n".join(texts), parts


_MOST_ENTRIES = 8192
"""The API takes 16,384 items (docs/reference/responses-api.md), and each message or call
may bring its reasoning."""
_ENTRIES_AT_ONCE = 2048
_INSTRUCTING = ("system", "developer")
LEFT_OUT = "The oldest messages of this chat were left out: a request cannot hold them."
_LEFT_OUT_PART = UserMessage(text_message("developer", LEFT_OUT))


def cut_notice(parts: Sequence[ChatPart]) -> str:
    """Return `LEFT_OUT` if a chat, maybe behind its instructions, begins with it."""
    return LEFT_OUT if _LEFT_OUT_PART in parts[:2] else ""


def _newest(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the messages that one request can hold, from a question on.

    Many go at once, so that the requests after it begin with the same bytes. What an
    administrator's filter put in front stays.
    """
    gone = [0, *accumulate(map(_entries, messages))]
    over = gone[-1] - _MOST_ENTRIES
    if over <= 0:
        return messages
    over += -over % _ENTRIES_AT_ONCE
    head = messages[:_ENTRIES_AT_ONCE]
    first = [*takewhile(lambda one: one.get("role") in _INSTRUCTING, head)]
    starts = [n for n, one in enumerate(messages) if one.get("role") == "user"]
    last = starts[-1] if starts else len(messages) - 1
    start = next((n for n in starts if gone[n] >= over), last)
    return [*first, *messages[max(start, len(first)) :]]


def _entries(message: JsonObject) -> int:
    calls, details = message.get("tool_calls"), message.get(DETAILS_FIELD)
    return 1 + len(as_list(calls)) + len(as_list(details))


def _chat_parts(message: JsonObject, detail: str) -> Iterator[ChatPart]:
    role, content = message.get("role"), message.get("content")
    match role:
        case "user":
            yield UserMessage(_input_message("user", content, detail))
        case "system" | "developer":
            yield UserMessage(_input_message("developer", content, detail))
        case "assistant":
            text, details = _plain_text(content), message.get(DETAILS_FIELD)
            if details or text.strip():
                yield AssistantText(text, details=details)
            if calls := message.get("tool_calls"):
                yield from _calls(calls)
        case "tool":
            yield ToolMessage(str(message.get("tool_call_id") or ""), _output(content))
        case _:
            raise InvalidRequest(
                "A message of this chat has an unknown role. The roles are system, "
                "developer, user, assistant and tool."
            )


def _calls(tool_calls: object) -> Iterator[ToolCall]:
    for call in content_parts(tool_calls):
        kind, field, empty = "function", "arguments", "{}"
        if kind not in call:
            kind, field, empty = "custom", "input", ""
        if isinstance(called := call.get(kind), dict):
            name, given = str(called.get("name")), str(called.get(field) or empty)
            yield ToolCall(str(call.get("id")), name, given, kind == "custom")


def _output(content: object) -> str | list[Item]:
    """Return a tool's output; an empty one is kept, because its call needs it."""
    if not isinstance(content, list):
        return "" if content is None else str(content)
    return [_input_part(part, "auto") for part in content]


def _input_message(role: str, content: object, detail: str) -> Item:
    rows = content if isinstance(content, list) else [content]
    parts = [_input_part(part, detail) for part in rows]
    return {"type": "message", "role": role, "content": parts}


def _input_part(part: object, detail: str) -> Item:
    if not isinstance(part, dict):
        return {"type": "input_text", "text": str(part or "")}
    match part.get("type"):
        case "text" | "input_text":
            return {"type": "input_text", "text": str(part.get("text") or "")}
        case "image_url" | "input_image":
            return _image_part(part, detail)
        case "file":
            return _file_part(part.get("file"))
        case "input_file":
            return _file_part(part)
    raise InvalidRequest(
        "A message of this chat holds something other than text, a picture or a file. "
        "The model cannot read it: remove it from the message and send it again."
    )


def _image_part(wire: JsonObject, default: str) -> Item:
    """Return a picture; both forms keep the address and the detail."""
    inner = wire.get("image_url")
    chat_form = inner if isinstance(inner, Mapping) else {"url": inner}
    detail = chat_form.get("detail") or wire.get("detail") or default
    source = _without_null({"image_url": chat_form.get("url")})
    return {"type": "input_image", "detail": detail, **source}


_KEYS_OF_FILE = ("filename", "file_data", "file_url", "detail")


def _file_part(wire: object) -> Item:
    """Return a file.

    What costs (`prompt_cache_breakpoint`) or names a file at OpenAI (`file_id`) is not
    the caller's; a refusal would quote a key that the API does not have.
    """
    given = as_mapping(wire)
    kept = {key: given[key] for key in given if key in _KEYS_OF_FILE}
    return {"type": "input_file", **_without_null(kept)}


def _without_null(fields: Item) -> Item:
    return {key: value for key, value in fields.items() if value is not None}


def _plain_text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(as_text(as_mapping(p).get("text")) for p in as_list(content))


def user_messages(parts: Sequence[ChatPart]) -> dict[int, UserMessage]:
    """Return the messages of the user by their places among the parts."""
    return {
        place: part
        for place, part in enumerate(parts)
        if isinstance(part, UserMessage) and part.item.get("role") == "user"
    }


def attach_stored_messages(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    """Return a chat in which each message of the user has its stored one.

    `rows` are the messages of the chat's row, by id. A developer's can only be made by
    somebody who edits the row: they are left out. Raises InvalidRequest if that is not
    possible. How to answer again is in the request alone.
    """
    result, users = list(parts), user_messages(parts)
    if metadata.get("regeneration_message_id") and users:
        users.popitem()
    asked, answer = map(metadata.get, ("user_message_id", "message_id"))
    hidden = Counter[str]()
    branch = list(_stored_branch(rows, str(asked or ""), str(answer or ""), hidden))
    for place, stored in zip(reversed(users), branch, strict=False):
        result[place] = users[place]._replace(stored=stored)
    if not hidden:
        return result
    kept = [part for part in result if not _take_hidden(part, hidden)]
    if any(hidden.values()) or len(users) < len(branch):
        raise InvalidRequest(_HIDDEN_MESSAGE)
    return kept


def _take_hidden(part: ChatPart, hidden: Counter[str]) -> bool:
    """Say whether a part is one of the `hidden` texts of a developer, each once."""
    if not isinstance(part, UserMessage) or part.item["role"] != "developer":
        return False
    words = message_text(part.item)
    hidden[words] -= (is_hidden := hidden[words] > 0)
    return is_hidden


def stored_messages(parts: Sequence[ChatPart]) -> list[StoredMessage]:
    """Return the stored messages of a chat, in order."""
    found = (part.stored for part in parts if isinstance(part, UserMessage))
    return [stored for stored in found if stored]


_HIDDEN_MESSAGE = (
    "This chat holds a message that the page does not show and that could instruct the "
    "model. Nothing was sent: start a new chat."
)


def _stored_branch(
    rows: JsonObject, message_id: str, answer_id: str, hidden: Counter[str]
) -> Iterator[StoredMessage]:
    """Yield the user's messages from `message_id` back to the first.

    The texts of a developer are counted in `hidden`. The host merges those of the
    system into the instructions, where nobody can tell whose words they are.
    """
    for name, row in walk_branch(rows, message_id):
        if row.get("role") == "user":
            yield StoredMessage(row, answer_id)
            answer_id = ""
        elif row.get("role") == "assistant":
            answer_id = name
        elif row.get("role") == "developer":
            hidden[_plain_text(row.get("content"))] += 1
        else:
            raise InvalidRequest(_HIDDEN_MESSAGE)


def walk_branch(rows: JsonObject, tip: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the messages from `tip` back to the first, with their ids, each once."""
    seen = set[str]()
    while tip not in seen and isinstance(row := rows.get(tip), Mapping):
        yield tip, row
        seen.add(tip)
        tip = str(row.get("parentId") or "")
