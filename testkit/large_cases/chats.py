"""Very large bodies and chats: what it takes to build the input of a request.

Each function prepares one case of a given size and returns its work. Bodies and rows
are parsed from JSON, as the host does it, and hold what the pipe writes.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gpt5_agent.agent.earlier_rounds import read_earlier_rounds, read_turns
from openai_responses.items import Item
from openai_responses.requests.replay import Origin, strip_for_replay
from owui_chat.host_tools import TOOL_IMAGES_PREFIX
from owui_chat.input.attachments import (
    add_tool_images,
    attach_files,
    fit_input,
    resolve_images,
)
from owui_chat.input.history import build_input
from owui_chat.input.prefix import (
    SentContext,
    apply_sent_context,
    change_instructions,
    sent_instructions,
)
from owui_chat.messages import attach_stored_messages, parse_messages
from owui_chat.storage.details_carrier import restore_from_details, write_details
from owui_chat.storage.markers import format_marker
from owui_chat.storage.output_carrier import (
    output_records,
    parse_output_records,
    record_item,
    restore_from_outputs,
    stored_outputs,
)
from owui_chat.storage.records import (
    Record,
    message_key,
    prune,
    read_records,
    write_records,
)
from owui_chat.storage.signature import signer
from runs.tools import calling
from upstream.wire import message_item, reasoning_item

Json = dict[str, Any]
Work = Callable[[], object]

MODEL = "openai_responses.gpt-6.2-sol"
ORIGIN = Origin("gpt-6.2-sol", "127.0.0.1")
SIGN = signer("secret", "large chats")
_ENCRYPTED = "gAAAA" + "x" * 60


# ---------------------------------------------------------------- parts of chats


def call_item(number: int | str) -> Item:
    """Return a call as the API sends it."""
    return calling("get_weather", number)


def thought_item(number: int) -> Item:
    """Return reasoning that the API can read again."""
    return reasoning_item(at=number, sealed=f"{_ENCRYPTED}{number}")


def _user(content: object, **more: object) -> Json:
    return {"role": "user", "content": content, **more}


def _assistant(content: str, **more: object) -> Json:
    return {"role": "assistant", "content": content, **more}


def _tool_call(number: int | str) -> Json:
    call = call_item(number)
    function = {"name": call["name"], "arguments": call["arguments"]}
    return {"id": f"call_{number}", "type": "function", "function": function}


def _tool_message(number: int | str) -> Json:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": "Rain."}


def _record(ulid: str, message_id: str, payload: Sequence[Item]) -> Record:
    return Record(ulid, tuple(payload), message_id, ORIGIN)


def _details(name: str, *items: tuple[Item, str]) -> list[Item]:
    """Return what the agent stores of a response; each item has its shown text."""
    return write_details(name, items, ORIGIN, {}, SIGN)


# ---------------------------------------------------------------- bodies


def _read_body(messages: Sequence[Json]) -> Work:
    return partial(_input_of, json.loads(json.dumps(messages)))


def _input_of(messages: Sequence[Json]) -> list[Item]:
    parts, records = restore_from_details(parse_messages(messages)[1], SIGN)
    parts = add_tool_images(parts, {})
    parts = attach_stored_messages(parts, {}, {})
    parts = attach_files(parts, {}, {})
    parts = resolve_images(parts, _no_image)
    return fit_input(build_input(parts, records, ORIGIN))


def _no_image(_file_id: str) -> bytes:
    return b""


def calls_in_one_run(count: int) -> Work:
    """One message with all calls, and the message of each tool."""
    calls = [_tool_call(number) for number in range(count)]
    outputs = [_tool_message(number) for number in range(count)]
    question = _user("How is the weather?")
    answer = _assistant("", tool_calls=calls)
    return _read_body([question, answer, *outputs, _user("And now?")])


def many_messages(count: int) -> Work:
    messages = []
    for number in range(0, count, 2):
        messages.append(_user(f"Text {number}."))
        messages.append(_assistant(f"Text {number + 1}."))
    return _read_body(messages)


def tool_messages(count: int) -> Work:
    outputs = [_tool_message(number) for number in range(count)]
    return _read_body([_user("Hello"), *outputs])


def tool_pictures(count: int) -> Work:
    """Pictures of tools, each in a message of the host, after the same outputs."""
    words = {"type": "text", "text": f"{TOOL_IMAGES_PREFIX} Please analyze them."}
    image = {"type": "image_url", "image_url": {"url": "https://a.example/1.png"}}
    outputs = [_tool_message(number) for number in range(count)]
    pictures = [_user([words, image]) for _ in range(count)]
    parts = parse_messages([*outputs, *pictures])[1]
    return partial(add_tool_images, parts, {})


def attachments(count: int) -> Work:
    """Files at one message that the metadata name twice."""
    files = [{"type": "file", "id": f"f{n}", "name": f"{n}.pdf"} for n in range(count)]
    metadata = {"user_message": {"files": files}, "files": files}
    parts = parse_messages([_user("Read."), _user("Read them.")])[1]
    return partial(attach_files, parts, {}, metadata)


def turns_with_details(count: int) -> Work:
    """Turns that each carry their reasoning."""
    messages = []
    for number in range(count):
        text = f"Answer {number}."
        details = _details(
            f"turn{number}",
            (thought_item(number), ""),
            (message_item(text, at=number), text),
        )
        messages.append(_user(f"Question {number}?"))
        messages.append(_assistant(text, reasoning_details=details))
    return _read_body([*messages, _user("And now?")])


def details_in_one_message(count: int) -> Work:
    """One message that carries many responses."""
    texts = [f"Answer {number}." for number in range(count)]
    details = []
    for number, text in enumerate(texts):
        details += _details(
            f"turn{number}",
            (thought_item(number), ""),
            (message_item(text, at=number), text),
        )
    answer = _assistant("\n".join(texts), reasoning_details=details)
    return _read_body([_user("Hello"), answer, _user("And now?")])


def one_call_many_times(count: int) -> Work:
    """A record of many calls, the first of which the chat names again and again."""
    calls = [(call_item(number), "") for number in range(count)]
    details = _details("turn", (thought_item(0), ""), *calls)
    repeated = [_tool_call(0) for _ in range(count)]
    answer = _assistant("", tool_calls=repeated, reasoning_details=details)
    marker = _assistant(format_marker("items", f"{0:026d}"))
    return _read_body([_user("Hello"), answer, marker, _user("And now?")])


def one_marker_many_times(count: int) -> Work:
    """A record of many items, named in every turn."""
    messages = [(message_item("Yes.", at=number), "") for number in range(count)]
    first = _assistant("Yes.", reasoning_details=_details("turn", *messages))
    marker = format_marker("items", f"{0:026d}")
    turns = []
    for number in range(count):
        turns.append(_user("Hello"))
        turns.append(_assistant(f"{marker}Yes {number}."))
    return _read_body([_user("Hello"), first, *turns, _user("And now?")])


# ---------------------------------------------------------------- stored chats


def output_chat(turns: int, items: int) -> tuple[Json, list[Json]]:
    """Return a chat's row whose outputs hold the records, and its messages."""
    rows: Json = {}
    messages: list[Json] = []
    for number in range(turns):
        question = f"Question {number}?"
        output, answer = _stored_answer(number, items)
        parent = f"a{number - 1}" if number else None
        rows[f"q{number}"] = _user(question, parentId=parent)
        rows[f"a{number}"] = _assistant("", parentId=f"q{number}", output=output)
        messages += [_user(question), *answer]
    rows["q"] = _user("And now?", parentId=f"a{turns - 1}")
    rows["a"] = _assistant("", parentId="q")
    return {"history": {"messages": rows}}, [*messages, _user("And now?")]


def _stored_answer(turn: int, items: int) -> tuple[list[Item], list[Json]]:
    """Return an answer's stored output with many kept items, and what the host sends.

    What is in front of a text is kept: the last call, and the new reasoning.
    """
    output: list[Item] = []
    messages: list[Json] = []
    last_call: list[Item] = []
    for number in range(items):
        text = f"Step {number} of {turn}."
        name = f"{turn}_{number}"
        message = {**message_item(text, at=number), "id": f"msg_{name}"}
        kept = [strip_for_replay(item) for item in [*last_call, thought_item(number)]]
        call = call_item(name)
        last_call = [call]
        ulid = f"{turn * items + number:026d}"
        record = _kept_item(ulid, f"a{turn}", kept, f"msg_{name}")
        output += [record, message, call, _output_item(name)]
        messages.append(_assistant(text, tool_calls=[_tool_call(name)]))
        messages.append(_tool_message(name))
    return output, messages


def _kept_item(
    ulid: str, message_id: str, payload: Sequence[Item], before: str
) -> Item:
    value = write_records({ulid: _record(ulid, message_id, payload)}, SIGN)
    return {**record_item(ulid, value), "before": before}


def _output_item(name: str) -> Item:
    return {
        "type": "function_call_output",
        "id": f"fco_call_{name}",
        "call_id": f"call_{name}",
        "output": [{"type": "input_text", "text": "Rain."}],
        "status": "completed",
    }


def _read_chat(chat: Json, messages: Sequence[Json]) -> Work:
    return partial(_restored_input, *json.loads(json.dumps([chat, messages])))


def _restored_input(chat: Json, messages: Sequence[Json]) -> list[Item]:
    rows = chat["history"]["messages"]
    records = read_records({**chat, **parse_output_records(output_records(rows))}, SIGN)
    parts = parse_messages(messages)[1]
    parts = attach_stored_messages(parts, rows, {"user_message_id": "q"})
    parts = restore_from_outputs(parts, stored_outputs(rows, "a"))
    return build_input(parts, records, ORIGIN)


def turns_with_kept_items(count: int) -> Work:
    return _read_chat(*output_chat(count, 100))


def kept_items_of_one_answer(count: int) -> Work:
    return _read_chat(*output_chat(1, count))


def edited_answers(count: int) -> Work:
    """Turns whose answers a person has changed, so that no stored output fits."""
    chat, messages = output_chat(count, 1)
    for number, message in enumerate(messages):
        if message["role"] == "assistant":
            message["content"] = f"Changed {number}."
    return _read_chat(chat, messages)


def _records_of(message_id: str, first: int, count: int) -> Mapping[str, Any]:
    """Return the value of a message's key, with so many records."""
    records = {}
    for number in range(first, first + count):
        ulid = f"{number:026d}"
        payload = [thought_item(number), call_item(number)]
        records[ulid] = _record(ulid, message_id, payload)
    return write_records(records, SIGN)


def records_of_one_key(count: int) -> Work:
    chat = {message_key("a"): _records_of("a", 0, count)}
    return partial(read_records, chat, SIGN)


def pruning(count: int) -> Work:
    """Many keys, most of which have to become smaller."""
    ids = [f"a{number}" for number in range(count)]
    values = {}
    for number, message_id in enumerate(ids):
        values[message_key(message_id)] = _records_of(message_id, number, 1)
    messages = {message_id: {"role": "assistant"} for message_id in ids}
    return partial(prune, values, messages, "own", 100 * count)


# ---------------------------------------------------------------- rounds of tools


def rounds_of_the_agent(count: int) -> Work:
    """Rounds of the pipeline's agent after one question."""
    messages = [_user("How is the weather?")]
    for number in range(count):
        details = _details(
            str(number), (thought_item(number), ""), (call_item(number), "")
        )
        call = _tool_call(number)
        answer = _assistant("", tool_calls=[call], reasoning_details=details)
        messages += [answer, _tool_message(number)]
    read_body = _read_body(messages)

    def work() -> None:
        read_earlier_rounds(messages, read_turns(messages, SIGN), SIGN)
        read_body()

    return work


def changed_instructions(count: int) -> Work:
    """A system prompt of many lines, all of which have changed."""
    rows = {
        "q1": _user("One?"),
        "a1": _assistant("", parentId="q1"),
        "q2": _user("Two?", parentId="a1"),
        "a2": _assistant("", parentId="q2"),
    }
    chat = [_user("One?"), _assistant("1"), _user("Two?")]
    parts = attach_stored_messages(
        parse_messages(chat)[1], rows, {"user_message_id": "q2", "message_id": "a2"}
    )
    lines = [[f"Line {n} of {which}." for n in range(count)] for which in range(2)]
    sent = {"a1": SentContext(model="m", instructions="\n".join(lines[0]))}

    def work() -> object:
        instructions = sent_instructions(parts, sent, "m")
        change = change_instructions(instructions, "\n".join(lines[1]), "m")
        later = {**sent, "a2": change}
        instructions = sent_instructions(parts, later, "m")
        assert instructions
        return apply_sent_context(parts, later, instructions.changes, {})

    return work
