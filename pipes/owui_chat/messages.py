"""A chat body as Open WebUI sends it, parsed into its parts.

Open WebUI sends messages in the form of Chat Completions. Texts of assistant messages
stay unchanged here, markers included. A request does not name its messages, so the
user's messages are matched with those of the chat's row, which is a tree.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message that no model wrote: an input message, ready to be sent."""

    item: Item


@dataclass(frozen=True, slots=True)
class AssistantText:
    """The text of an assistant's message, as the host returns it."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call of an assistant's message; a custom call has an input instead."""

    call_id: str
    name: str
    arguments: str
    is_custom: bool = False


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """The result of a call: a text, or parts with pictures."""

    call_id: str
    output: str | list[Item]


ChatPart = UserMessage | AssistantText | ToolCall | ToolMessage


def parse_messages(
    messages: Sequence[Mapping[str, Any]], detail: str = "auto"
) -> tuple[str, list[ChatPart]]:
    """Return the instructions and the parts of a chat.

    System messages at the beginning are the instructions, in order; later ones stay in
    place. Pictures without a `detail` get the given one. Raises InvalidRequest for
    content that the API does not accept.
    """
    if not all(isinstance(message, Mapping) for message in messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    head = 0
    while head < len(messages) and messages[head].get("role") == "system":
        head += 1
    texts = [_plain_text(message.get("content")) for message in messages[:head]]
    instructions = "\n\n".join(text for text in texts if text)
    stretches = [s for message in messages[head:] for s in _chat_parts(message, detail)]
    return instructions, stretches


def _chat_parts(message: Mapping[str, Any], detail: str) -> Iterator[ChatPart]:
    """Yield the parts of one message after the instructions, in order."""
    role, content = message.get("role"), message.get("content")
    match role:
        case "user":
            yield UserMessage(_input_message("user", content, detail))
        case "system" | "developer":
            yield UserMessage(_input_message("developer", content, detail))
        case "assistant":
            text = _plain_text(content)
            if text.strip():
                yield AssistantText(text)
            yield from _calls(message.get("tool_calls"))
        case "tool":
            yield ToolMessage(str(message.get("tool_call_id") or ""), _output(content))
        case _:
            raise InvalidRequest(
                "A message of this chat has a role that the Responses API does not "
                "know. The roles are system, developer, user, assistant and tool."
            )


def _calls(tool_calls: object) -> Iterator[ToolCall]:
    for call in tool_calls if isinstance(tool_calls, list) else ():
        wire = call if isinstance(call, Mapping) else {}
        call_id, function, custom = map(wire.get, ("id", "function", "custom"))
        if isinstance(function, Mapping):
            arguments = str(function.get("arguments") or "{}")
            yield ToolCall(str(call_id), str(function.get("name")), arguments)
        elif isinstance(custom, Mapping):
            given = str(custom.get("input") or "")
            yield ToolCall(str(call_id), str(custom.get("name")), given, is_custom=True)


def _output(content: object) -> str | list[Item]:
    """Return a tool's output; an empty one is kept, because its call needs it."""
    if not isinstance(content, list):
        return "" if content is None else str(content)
    return [_input_part(part, "auto") for part in content]


def _input_message(role: str, content: object, detail: str) -> Item:
    rows = content if isinstance(content, list) else [{"type": "text", "text": content}]
    parts = [_input_part(part, detail) for part in rows]
    return {"type": "message", "role": role, "content": parts}


def _input_part(part: object, detail: str) -> Item:
    """Return a content part in the API's form."""
    wire = part if isinstance(part, Mapping) else {"type": "text", "text": part}
    match wire.get("type"):
        case "text" | "input_text":
            return {"type": "input_text", "text": str(wire.get("text") or "")}
        case "image_url" | "input_image":
            return _image_part(wire, detail)
        case "file":
            return {"type": "input_file", **_given(wire.get("file"))}
        case "input_file":
            return dict(wire)
    raise InvalidRequest(
        "A message of this chat holds something other than text, a picture or a file. "
        "The model cannot read it: remove it from the message and send it again."
    )


def _image_part(wire: Mapping[str, Any], default: str) -> Item:
    """Return a picture; both forms keep the address and the detail."""
    inner = wire.get("image_url")
    chat_form = inner if isinstance(inner, Mapping) else {"url": inner}
    detail = chat_form.get("detail") or wire.get("detail") or default
    source = {"image_url": chat_form.get("url"), "file_id": wire.get("file_id")}
    return {"type": "input_image", "detail": detail, **_given(source)}


def _given(wire: object) -> Item:
    fields = wire if isinstance(wire, Mapping) else {}
    return {str(key): value for key, value in fields.items() if value is not None}


def _plain_text(content: object) -> str:
    """Return the text of a system or assistant message in any of its forms."""
    if isinstance(content, list):
        texts = (p.get("text") for p in content if isinstance(p, Mapping))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


@dataclass(frozen=True, slots=True)
class Paired:
    """A user's message as the row holds it, and the id of the answer to it."""

    message: Mapping[str, Any]
    answer_id: str

    @property
    def words(self) -> str:
        """The text that the user wrote."""
        content = self.message.get("content")
        return content if isinstance(content, str) else ""


def pair_messages(
    stretches: Sequence[ChatPart],
    messages: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> dict[int, Paired]:
    """Return the stored messages by their places in the chat.

    `messages` are those of the chat's row, by id. The answer to the last one is being
    written.
    """
    places = users_places(stretches)
    if metadata.get("regeneration_message_id"):
        places = places[:-1]  # the wish for another answer is not stored in the chat
    asked, answer = map(metadata.get, ("user_message_id", "message_id"))
    chain = _users_chain(messages, str(asked or ""), str(answer or ""))
    # Matched from the end, because the host may have left out the oldest messages.
    return dict(zip(reversed(places), chain, strict=False))


def users_places(stretches: Sequence[ChatPart]) -> list[int]:
    """Return the places of the user's messages."""
    return [
        place
        for place, stretch in enumerate(stretches)
        if isinstance(stretch, UserMessage) and stretch.item.get("role") == "user"
    ]


def _users_chain(
    messages: Mapping[str, Any], message_id: str, answer_id: str
) -> Iterator[Paired]:
    """Yield the user's messages from `message_id` back to the first."""
    seen = set[str]()
    while isinstance(message := messages.get(message_id), Mapping):
        if message_id in seen:
            return
        seen.add(message_id)
        if message.get("role") == "user":
            yield Paired(message, answer_id)
            answer_id = ""
        else:
            answer_id = message_id
        message_id = str(message.get("parentId") or "")
