"""A chat body as Open WebUI sends it, parsed into its parts.

Open WebUI sends messages in the form of Chat Completions, without their ids. Texts of
assistant messages stay as they are here, markers included; `input.history` reads those.
Which stored message each one is, is found from the chat's row, which holds them as a
tree. They are paired from the end, because the host may have left out the oldest.
"""

import math
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple, Self

from openai_responses.errors import InvalidRequest
from openai_responses.items import (
    INSTRUCTING,
    Item,
    content_parts,
    distinct_id,
    has_web_scheme,
    json_digest,
    json_text,
    message_text,
    part_text,
    text_message,
)
from openai_responses.json_input import (
    JsonObject,
    as_list,
    as_mapping,
    as_text,
    value_at,
)
from openai_responses.requests.parameters import given_values
from owui_chat.code import CODE_CARD, code_text
from owui_chat.file_names import document_name


class Attachment(NamedTuple):
    """A file at a message, as the host notes it there."""

    file_id: str
    name: str
    content_type: str
    is_image: bool
    """The host itself puts an image into the message."""
    is_unread: bool = False
    """The host could not read the text in it."""
    named_by: str = ""
    """The user whose message names it, if the host says so."""


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

    @property
    def is_question(self) -> bool:
        """Whether the user wrote it; a filter may put instructions after a question."""
        return self.item.get("role") == "user"

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
    may_have_blocks: bool = False
    """Whether its writer may have put `<details>` blocks into it."""


class ToolCall(NamedTuple):
    """A tool call of an assistant's message; the arguments of a custom one are a text."""

    call_id: str
    name: str
    arguments: str
    is_custom: bool = False


class ToolMessage(NamedTuple):
    """What a tool returned for a call: a text, or parts with images."""

    call_id: str
    output: str | list[Item]


class AssistantThought(NamedTuple):
    """What a program gives back of the thought in front of an answer or a call."""

    text: str


class AssistantImage(NamedTuple):
    """An image in an answer that a program gives back, as a data URL."""

    url: str


ChatPart = (
    UserMessage
    | AssistantText
    | AssistantThought
    | AssistantImage
    | ToolCall
    | ToolMessage
)


DETAILS_FIELD = "reasoning_details"


def parse_messages(
    messages: Sequence[JsonObject], detail: str = "auto", *, with_thoughts: bool = False
) -> tuple[str, list[ChatPart]]:
    """Return the instructions and the parts of a chat, `with_thoughts` that it has.

    The system messages at the head are the instructions; later ones stay at their
    place. If there is nothing else, they are the question. Images without a `detail` get
    this one. A chat that is longer than a request may be begins with `LEFT_OUT`, in the
    place of its oldest messages. Raises InvalidRequest for what the API cannot take.
    """
    if not all(isinstance(message, dict) for message in messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    instructions = system_text(messages)
    others = [
        *_with_own_calls(messages[len(_leading_messages(messages, ("system",))) :])
    ]
    newest = _newest_messages(others)
    parts: list[ChatPart] = []
    if len(newest) < len(others):
        parts.append(_LEFT_OUT_PART)
    for message in _with_call_ids(newest):
        if with_thoughts and message.get("role") == "assistant":
            # Servers have two names for it; a program gives back one of them, or both.
            thoughts = map(message.get, ("reasoning_content", "reasoning"))
            texts = [text for text in map(as_text, thoughts) if text.strip()]
            parts += [AssistantThought(text) for text in texts[:1]]
        parts += _chat_parts(message, detail)
    if not parts and instructions.strip():
        # Chat Completions answer them; the Responses API wants an input (BerriAI/litellm
        # 29817), and the templates of many models want a user.
        return "", [UserMessage(text_message("user", instructions))]
    return instructions, _with_distinct_calls(parts)


def _with_own_calls(messages: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield messages whose calls and results are no parts of their content.

    Anthropic has them there, and Cursor writes them so to a model with such a name
    (automazeio/vibeproxy 411).
    """
    for message in messages:
        kind = _PARTS_OF_CALLS.get(as_text(message.get("role")), "")
        own: list[JsonObject] = []
        others: list[object] = []
        for row in as_list(message.get("content")):
            wire = as_mapping(row)
            if kind and wire.get("type") == kind:
                own.append(wire)
            else:
                others.append(row)
        if not own:
            yield message
        elif kind == "tool_use":
            calls = list(as_list(message.get("tool_calls")))
            for row in own:
                function = {"name": row.get("name"), "arguments": row.get("input")}
                calls.append({"id": row.get("id"), "function": function})
            yield {**message, "content": others, "tool_calls": calls}
        else:
            for row in own:
                output = row.get("content") or ""
                call_id = row.get("tool_use_id")
                yield {"role": "tool", "tool_call_id": call_id, "content": output}
            if others:
                yield {**message, "content": others}


_PARTS_OF_CALLS = {"assistant": "tool_use", "user": "tool_result"}


_RESULTS = ("tool", "function")
"""The roles of the results of calls."""


def _with_call_ids(messages: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """Yield messages in which calls and results have ids, in the form of today.

    Ollama's clients send none. The older form of Chat Completions has none, either: an
    answer has one `function_call`, and its result the role `function`. Continue gives a
    result an id of its own (continuedev/continue 11175). A result without an id of a
    call belongs to the first open call of its name, or to the first one at all.
    """
    count = 0
    # Of the last answer with calls: their ids in order, and by the names of the tools.
    # What was taken from one queue stays in the other, where it counts as answered: so
    # thousands of calls take one pass.
    waiting: deque[str] = deque()
    waiting_by_name: dict[str, deque[str]] = {}
    answered: set[str] = set()
    known: set[str] = set()
    """The ids of all calls so far."""
    for index, message in enumerate(messages):
        role = message.get("role")
        calls = content_parts(message.get("tool_calls"))
        older_call = message.get("function_call")
        if isinstance(older_call, Mapping) and not calls:
            calls = [{"function": dict(older_call)}]
        if role == "assistant" and calls:
            waiting.clear()
            waiting_by_name.clear()
            # A result that names its call has it, also after one that names none.
            following = (messages[at] for at in range(index + 1, len(messages)))
            results = takewhile(lambda row: row.get("role") in _RESULTS, following)
            answered = {str(row.get("tool_call_id") or "") for row in results}
            for number, call in enumerate(calls):
                call_id = str(call.get("id") or "")
                if not call_id:
                    count += 1
                    call_id = f"call_without_id_{count}"
                    calls[number] = {**call, "id": call_id}
                name = as_text(value_at(call, "function", "name"))
                waiting.append(call_id)
                waiting_by_name.setdefault(name, deque()).append(call_id)
            known.update(waiting)
            yield {**message, "tool_calls": calls}
        elif role in _RESULTS:
            named_id = str(message.get("tool_call_id") or "")
            call_id = named_id if named_id in known else ""
            name = as_text(message.get("tool_name") or message.get("name"))
            for queue in (waiting_by_name.get(name), waiting):
                while queue and not call_id:
                    first = queue.popleft()
                    call_id = "" if first in answered else first
            answered.add(call_id)
            yield {**message, "role": "tool", "tool_call_id": call_id or named_id}
        else:
            yield message


def _with_distinct_calls(parts: Sequence[ChatPart]) -> list[ChatPart]:
    """Return a chat in which no call has the id of an earlier one that was answered.

    Other servers number the calls of each response anew (Bedrock, Gemini), and a chat
    may have begun with one of their models: of two calls with one id, and of their
    outputs, the API takes one. The new id depends on what comes before it alone.
    """
    own_ids: dict[str, str] = {}
    """The ids that the calls have now, by those of the chat."""
    taken: set[str] = set()
    answered: set[str] = set()
    distinct: list[ChatPart] = []
    for part in parts:
        if isinstance(part, ToolCall):
            if part.call_id in answered:
                answered.discard(part.call_id)
                own_ids[part.call_id] = distinct_id(part.call_id, taken)
            own_id = own_ids.get(part.call_id, part.call_id)
            taken.add(own_id)
            distinct.append(part._replace(call_id=own_id))
        elif isinstance(part, ToolMessage):
            own_id = own_ids.get(part.call_id, part.call_id)
            answered.add(part.call_id)
            distinct.append(part._replace(call_id=own_id))
        else:
            distinct.append(part)
    return distinct


def system_text(messages: Sequence[JsonObject]) -> str:
    """Return the system messages at the head of a chat as one text."""
    head = _leading_messages(messages, ("system",))
    texts = [_plain_text(message.get("content")) for message in head]
    return "\n\n".join(text for text in texts if text)


def _leading_messages(
    messages: Sequence[JsonObject], roles: Sequence[str]
) -> list[JsonObject]:
    """Return the messages with one of these roles that are in front of all others."""
    return list(takewhile(lambda message: message.get("role") in roles, messages))


_MAX_ENTRIES = 8192
"""The API takes 16,384 items (docs/reference/responses-api.md), and each message or call
may bring its reasoning."""
_ENTRIES_AT_ONCE = 2048
LEFT_OUT = (
    "The oldest messages of this chat were left out: a request cannot contain them."
)
_LEFT_OUT_PART = UserMessage(text_message("developer", LEFT_OUT))


def cut_notice(parts: Sequence[ChatPart]) -> str:
    """Return `LEFT_OUT` if the parts of a chat begin with it."""
    return LEFT_OUT if _LEFT_OUT_PART in parts[:1] else ""


def _newest_messages(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the messages that one request can hold, from a question on.

    Many go at once, so that the requests after it begin with the same bytes. What an
    administrator's filter put in front stays.
    """
    counts: list[int] = []  # of the items of a request that a message may become
    for message in messages:
        calls = as_list(message.get("tool_calls"))
        counts.append(1 + len(calls) + len(as_list(message.get(DETAILS_FIELD))))
    surplus = sum(counts) - _MAX_ENTRIES
    if surplus <= 0:
        return messages
    least = math.ceil(surplus / _ENTRIES_AT_ONCE) * _ENTRIES_AT_ONCE
    # The first question after so many, else the last question, or the last message.
    start = len(messages) - 1
    before = 0
    for index, message in enumerate(messages):
        if message.get("role") == "user":
            start = index
            if before >= least:
                break
        before += counts[index]
    first = _leading_messages(messages[:_ENTRIES_AT_ONCE], INSTRUCTING)
    return [*first, *messages[max(start, len(first)) :]]


def _chat_parts(message: JsonObject, detail: str) -> Iterator[ChatPart]:
    """Yield the parts of a message of the host; raises InvalidRequest."""
    content = message.get("content")
    match message.get("role"):
        case "user" | "system" | "developer" as role:
            own_role = "user" if role == "user" else "developer"
            rows = content if isinstance(content, list) else [content]
            parts = [_input_part(part, detail) for part in rows]
            yield UserMessage({"type": "message", "role": own_role, "content": parts})
        case "assistant":
            # A refusal is what the model said, as a part or next to the content.
            text = _plain_text(content) or as_text(message.get("refusal"))
            details = message.get(DETAILS_FIELD)
            # Programs get images next to the text, as at OpenRouter. Addresses of the web
            # expire.
            for row in (*content_parts(message.get("images")), *content_parts(content)):
                if row.get("type") in _IMAGES:
                    url = as_text(_input_part(row, detail).get("image_url"))
                    if url[:11].lower() == "data:image/":
                        yield AssistantImage(url)
            if not text.startswith(_SPOKEN):  # there, the page shows none
                yield from map(AssistantImage, _drawn_in(text))
                text = without_drawn(text)
            # An assistant message of calls alone has the text ""; its details may still
            # hold reasoning.
            if details or text.strip():
                yield AssistantText(text, details=details)
            for call in content_parts(message.get("tool_calls")):
                call_id = str(call.get("id"))
                function = call.get("function")
                custom = call.get("custom")
                if isinstance(function, dict):
                    arguments = json_text(function.get("arguments")) or "{}"
                    yield ToolCall(call_id, str(function.get("name")), arguments)
                elif "function" not in call and isinstance(custom, dict):
                    text = str(custom.get("input") or "")
                    yield ToolCall(
                        call_id, str(custom.get("name")), text, is_custom=True
                    )
        case "tool":
            # An empty output is kept, because its call needs it. Some programs give an
            # object, as they do with arguments.
            output: str | list[Item]
            if isinstance(content, list):
                output = [_output_part(part) for part in content]
            else:
                output = json_text(content)
            yield ToolMessage(str(message.get("tool_call_id") or ""), output)
        case _:
            raise InvalidRequest(
                "A message of this chat has an unknown role. The roles are system, "
                "developer, user, assistant and tool."
            )


_IMAGES = ("image_url", "input_image", "image")
"""The types of images in a content, at OpenAI and at others."""
_DRAWN_IN_TEXT = re.compile(
    r"!\[([^\[\]\n]{0,300})\]"
    r"\((data:image/(?:png|jpe?g|webp|gif);base64,[a-z0-9+/=]{1000,}+)\)",
    re.IGNORECASE,
)
"""An image in the Markdown of an answer, as servers of models that draw write it. Open
WebUI stores it like that by default (env.py:1069), and with its setting takes out those
that are as long (utils/files.py:128): no model writes so much base64 itself."""


def without_drawn(text: str) -> str:
    """Return the text of an answer without the images that are written in it."""
    return _DRAWN_IN_TEXT.sub(r"\1", text)


def _drawn_in(text: str) -> list[str]:
    """Return the addresses of these images."""
    return [drawn[2] for drawn in _DRAWN_IN_TEXT.finditer(text)]


def _input_part(part: object, detail: str) -> Item:
    """Return a part of a content in the API's form; raises InvalidRequest."""
    if not isinstance(part, dict):
        return {"type": "input_text", "text": str(part or "")}
    match part.get("type"):
        case "text" | "input_text":
            return {"type": "input_text", "text": str(part.get("text") or "")}
        case "image_url" | "input_image":
            return _image_part(part, detail)
        case "image":
            return _image_part({"image_url": _image_address(part)}, detail)
        case "file":
            return _file_part(part.get("file"))
        case "input_file":
            return _file_part(part)
    raise InvalidRequest(
        "A message of this chat contains something other than text, an image or a file. "
        "The model cannot read it: remove it from the message and send it again."
    )


def _output_part(part: object) -> Item:
    """Return a part of what a tool returned, or a note in its place.

    Clients pass on what MCP servers return, and rows of a table: nobody could remove
    them from the chat.
    """
    wire = as_mapping(part)
    text = value_at(wire, "resource", "text")
    if isinstance(text, str):
        return {"type": "input_text", "text": text}
    if wire and "type" not in wire:
        return {"type": "input_text", "text": json_text(part)}
    try:
        own_part = _input_part(part, "auto")
    except InvalidRequest:  # a sound, a link
        return {"type": "input_text", "text": _NO_KNOWN_PART}
    if own_part["type"] == "input_image" and not as_text(own_part.get("image_url")):
        return {"type": "input_text", "text": _NO_IMAGE_ADDRESS}
    return own_part


_NO_IMAGE_ADDRESS = "[An image is left out: it has no address.]"
_NO_KNOWN_PART = "[A part is left out: it is neither text nor an image or a file.]"


def _image_address(wire: JsonObject) -> object:
    """Return the address of an image in the form of Anthropic or of MCP."""
    image = as_mapping(wire.get("source")) or wire
    data = as_text(image.get("data"))
    if not data:
        return image.get("url")
    kind = as_text(image.get("media_type") or image.get("mimeType")) or "image/png"
    return f"data:{kind};base64,{data}"


def _image_part(wire: JsonObject, default: str) -> Item:
    """Return an image; both forms keep the address and the detail.

    Chat Completions have both in an object, the Responses API has them next to
    each other.
    """
    given = wire.get("image_url")
    inner = given if isinstance(given, Mapping) else {"url": given}
    detail = inner.get("detail") or wire.get("detail")
    if detail not in _IMAGE_DETAILS:
        detail = default
    source = given_values({"image_url": inner.get("url")})
    return {"type": "input_image", "detail": detail, **source}


_FILE_DETAILS = ("auto", "low", "high")
_IMAGE_DETAILS = (*_FILE_DETAILS, "original")
_KEYS_OF_FILE = ("filename", "file_data", "file_url", "detail")


def _file_part(wire: object) -> Item:
    """Return a file.

    What costs (`prompt_cache_breakpoint`) or names a file at OpenAI (`file_id`) is not
    the caller's; a refusal would quote a key that the API does not have.
    """
    given = as_mapping(wire)
    data = as_text(given.get("file_data"))
    if has_web_scheme(data[:8]):  # so programs say it to OpenRouter (vercel/ai 7266)
        given = {"file_url": data}
    address = given.get("file_url")
    if address and not has_web_scheme(str(address)):
        # A gateway may read other addresses itself, such as files of its own machine.
        return {"type": "input_text", "text": _NO_WEB_ADDRESS}
    if not (address or given.get("file_data")):
        return {"type": "input_text", "text": _NO_FILE}
    kept = {key: given[key] for key in given if key in _KEYS_OF_FILE}
    if kept.get("detail") not in _FILE_DETAILS:
        kept.pop("detail", None)
    if not (address or kept.get("filename")):  # the API takes no content without one
        media_type = data[:100].lower().partition(";")[0].removeprefix("data:")
        kept["filename"] = document_name(media_type)
    return {"type": "input_file", **given_values(kept)}


_NO_FILE = "[A file is left out: it has neither content nor an address.]"
_NO_WEB_ADDRESS = (
    "[A file is left out: its address begins neither with https nor http.]"
)


def _plain_text(content: object) -> str:
    """Return the text of a content; images and files are left out."""
    if isinstance(content, str):
        return content
    parts = [as_mapping(part) for part in as_list(content)]
    return "".join(part_text(part) for part in parts)


def user_messages(parts: Sequence[ChatPart]) -> dict[int, UserMessage]:
    """Return the messages of the user by their places among the parts."""
    return {
        index: part
        for index, part in enumerate(parts)
        if isinstance(part, UserMessage) and part.is_question
    }


def attach_stored_messages(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    """Return a chat in which each message of the user has its stored one.

    `rows` are the messages of the chat's row, by id. A developer's can only be made by
    somebody who edits the row: they are left out. Raises InvalidRequest if that is not
    possible.
    """
    users = user_messages(parts)
    question_id = str(metadata.get("user_message_id") or "")
    answer_id = str(metadata.get("message_id") or "")
    hidden = Counter[str]()
    # Open WebUI removes the ids of messages from what it sends
    # (utils/middleware.py:1989), so only the order tells which stored message each one
    # is.
    branch: list[StoredMessage] = []
    for row_id, row in walk_branch(rows, question_id):
        match row.get("role"):
            case "user":
                branch.append(StoredMessage(row, answer_id))
                answer_id = ""
            case "assistant":
                answer_id = row_id
            case "developer":
                hidden[_plain_text(row.get("content"))] += 1
            case _:
                # The host merges those of the system into the instructions, where no
                # one can tell whose words they are.
                raise InvalidRequest(_HIDDEN_MESSAGE)
    is_announced = bool(metadata.get("regeneration_message_id") and users)
    if is_announced or _ends_with_wish(users, branch):
        # The last one says how to answer again, and is in the request alone.
        users.popitem()
    result = list(parts)
    # Both from the end; either may lack the oldest ones.
    for position, stored in zip(reversed(users), branch, strict=False):
        result[position] = users[position]._replace(stored=stored)
    if not hidden:
        return result
    shown: list[ChatPart] = []
    for part in result:
        if isinstance(part, UserMessage) and part.item["role"] == "developer":
            text = message_text(part.item)
            if hidden[text]:  # each of them goes once
                hidden[text] -= 1
                continue
        shown.append(part)
    if any(hidden.values()) or len(users) < len(branch):
        raise InvalidRequest(_HIDDEN_MESSAGE)
    return shown


def _ends_with_wish(
    users: Mapping[int, UserMessage], branch: Sequence[StoredMessage]
) -> bool:
    """Say whether a message that no row has follows the question.

    Before 0.12 Open WebUI puts there how to answer again, and nothing announces it. A row
    may lack old messages, so the words tell which message the question is.
    """
    if not branch or len(users) <= len(branch):
        return False
    question, last = list(users)[-2:]
    words = branch[0].words
    in_question = words in message_text(users[question].item)
    in_last = words in message_text(users[last].item)
    return last == question + 1 and in_question and not in_last


_SPOKEN = "[Historical voice assistant transcript; not current task status]\n"


def with_shown_words(
    parts: Sequence[ChatPart], rows: JsonObject, question_id: str, user_id: str
) -> list[ChatPart]:
    """Return a chat in which what others wrote is what the page shows of it.

    The host sends in place of a message that asks for a skill what it made of it, and
    after an answer what a voice model said, as their rows say (utils/middleware.py:1895
    and 1965 of 0.12.4). The owner of a chat can write that, and lets others continue the
    chat, who do not see it. `rows` are the messages of the chat, by id.
    """
    branch = [row for _, row in walk_branch(rows, question_id)]
    answers = [row for row in branch if row.get("role") == "assistant"]
    seen = {
        as_text(answer.get("content")) for answer in answers if not answer.get("output")
    }
    shown: list[ChatPart] = []
    for part in parts:
        text = part.text if isinstance(part, AssistantText) else ""
        if text.startswith(_SPOKEN) and not {text, text.removeprefix(_SPOKEN)} & seen:
            continue
        shown.append(part)
    for index, user in user_messages(shown).items():
        row = user.stored.row if user.stored else {}
        sent = value_at(row, "meta", "skills_create", "expanded_text")
        if not isinstance(sent, str) or row.get("user_id") == user_id:
            continue
        words = {"type": "input_text", "text": as_text(row.get("content"))}
        content = [words if part.get("text") == sent else part for part in user.content]
        shown[index] = user.with_content(content)
    return shown


def check_shown(rows: JsonObject, shown: JsonObject, question_id: str) -> None:
    """Raise InvalidRequest if the page shows another chat than the host has sent.

    The host sends the messages of its table, `rows`, and the page shows those of the
    chat's JSON, `shown`. What is written again without a field keeps in the table the
    one that it had (models/chat_messages.py:253 of 0.12.4): an earlier text, or a parent.
    """
    if _said(rows, question_id) != _said(shown, question_id):
        raise InvalidRequest(_HIDDEN_MESSAGE)


def _said(rows: JsonObject, question_id: str) -> list[tuple[str, str]]:
    """Return who said what before a question, which is the first; blanks do not count."""
    said: list[tuple[str, str]] = []
    for _, row in walk_branch(rows, question_id):
        role = row.get("role")
        if role in ("user", "assistant"):
            texts: list[str] = []
            if role == "assistant":
                for item in content_parts(row.get("output")):
                    if item.get("type") in _SENT_AS_CALLS:
                        texts.append(json_digest(item))
                    elif item.get("type") == "message":
                        texts.append(_plain_text(item.get("content")))
            words = "".join(texts) or _plain_text(row.get("content"))
            said.append((role, "".join(words.split())))
    return said


_SENT_AS_CALLS = ("function_call", "function_call_output", CODE_CARD)
"""What the host reads of an output besides its messages."""


def without_unseen_words(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    """Return a chat without the texts of answers that the page does not show.

    Of an answer with an output it shows that alone. Where the host finds no text in it,
    it sends the text of the row (utils/middleware.py:1989 of 0.12.4), into which whoever
    shares a chat can write anything. `rows` are the messages of the chat, by id.
    """
    shown = set[str]()
    unseen = set[str]()
    answer_id = as_text(metadata.get("message_id"))
    tip = answer_id if answer_id in rows else as_text(metadata.get("user_message_id"))
    for _, row in walk_branch(rows, tip):
        if row.get("role") == "assistant":
            output = row.get("output")
            is_shown = not output or any(map(host_text, content_parts(output)))
            text = _plain_text(row.get("content"))
            parts_of_text = (without_drawn(text), *_drawn_in(text))
            (shown if is_shown else unseen).update(parts_of_text)
    unseen -= {*shown, ""}
    return [
        part
        for part in parts
        if not (isinstance(part, AssistantText) and part.text in unseen)
        and not (isinstance(part, AssistantImage) and part.url in unseen)
    ]


def host_text(item: JsonObject) -> str:
    """Return what the host puts into the text of a later turn for a message or code."""
    if item.get("type") == CODE_CARD:
        return code_text(as_text(item.get("code")))
    if item.get("type") != "message":
        return ""
    parts = content_parts(item.get("content"))
    texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
    return "".join(as_text(text) for text in texts)


def mark_old_answers(parts: Sequence[ChatPart], rows: JsonObject) -> list[ChatPart]:
    """Return a chat in which the texts of old answers are marked.

    `rows` are the messages of the chat's row, by id. An answer whose row has no
    `output` is older than that field, or was imported.
    """
    marked: list[ChatPart] = []
    is_old = False
    for part in parts:
        if isinstance(part, UserMessage) and part.is_question:
            answer = as_mapping(rows.get(part.stored.answer_id if part.stored else ""))
            is_old = bool(answer) and not answer.get("output")
        elif is_old and isinstance(part, AssistantText):
            marked.append(part._replace(may_have_blocks=True))
            continue
        marked.append(part)
    return marked


def stored_messages(parts: Sequence[ChatPart]) -> list[StoredMessage]:
    """Return the stored messages of a chat, in order."""
    users = (part for part in parts if isinstance(part, UserMessage))
    return [user.stored for user in users if user.stored]


_HIDDEN_MESSAGE = (
    "This chat contains a message that the page does not show and that could instruct "
    "the model. Nothing was sent: start a new chat."
)


def walk_branch(rows: JsonObject, tip: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the messages from `tip` back to the first, with their ids, each once."""
    seen = set[str]()
    while tip not in seen:
        row = rows.get(tip)
        if not isinstance(row, Mapping):
            return
        yield tip, row
        seen.add(tip)
        tip = str(row.get("parentId") or "")
