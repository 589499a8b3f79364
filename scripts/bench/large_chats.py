"""Very large bodies and chats: what it takes to build the input of a request.

Bodies and rows are parsed from JSON, as the host does it, and hold what the pipe writes.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench.chats import MODEL, ORIGIN
from gpt5_agent.agent.earlier_rounds import read_earlier_rounds
from gpt5_agent.agent.memory import read_context
from openai_responses.items import Item
from openai_responses.requests.replay import strip_for_replay
from owui_chat.code import code_host_item
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
    told_instructions,
)
from owui_chat.messages import attach_stored_messages, parse_messages
from owui_chat.storage.details_carrier import restore_from_details, write_details
from owui_chat.storage.markers import format_marker
from owui_chat.storage.output_carrier import (
    output_values,
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

Json = dict[str, Any]
Work = Callable[[], object]

SIGN = signer("secret", "large chats")
SEALED = "gAAAA" + "x" * 60


def records_value(records: Mapping[str, Record]) -> Json:
    """Return what the key of a message holds."""
    return write_records(records, SIGN)


# ---------------------------------------------------------------- bodies


def _body(messages: Sequence[Mapping[str, Any]], rows: Json | None = None) -> Work:
    """Return the work for a body, up to the input items."""
    body = json.loads(json.dumps(messages))

    def work() -> list[Item]:
        parts, records = restore_from_details(parse_messages(body)[1], SIGN)
        parts = add_tool_images(parts, rows or {})
        parts = attach_stored_messages(parts, rows or {}, {})
        parts = attach_files(parts, rows or {}, {})
        parts = resolve_images(parts, lambda _: b"")
        return fit_input(build_input(parts, records, ORIGIN))

    return work


def _said(role: str, content: object, **more: object) -> Json:
    return {"role": role, "content": content, **more}


def _tool_call(call_id: str) -> Json:
    function = {"name": "get_weather", "arguments": '{"city": "Bern"}'}
    return {"id": call_id, "type": "function", "function": function}


def call_item(call_id: str) -> Item:
    """Return a call as the API sends it."""
    return {
        "type": "function_call",
        "id": f"fc_{call_id}",
        "call_id": call_id,
        "name": "get_weather",
        "arguments": '{"city": "Bern"}',
        "status": "completed",
    }


def thought_item(number: int) -> Item:
    """Return reasoning that the API can read again."""
    return {
        "type": "reasoning",
        "id": f"rs_{number}",
        "summary": [],
        "encrypted_content": f"{SEALED}{number}",
    }


def message_item(
    number: int, text: str, annotations: Sequence[Item] = (), phase: str = ""
) -> Item:
    """Return an answer of the model."""
    part = {"type": "output_text", "text": text, "annotations": list(annotations)}
    head = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
    named = {"phase": phase} if phase else {}
    return {**head, **named, "status": "completed", "content": [part]}


def calls_in_one_run(count: int) -> Work:
    """One message with all calls, and the message of each tool."""
    ids = [f"call_{number}" for number in range(count)]
    outputs = [_said("tool", "Rain.", tool_call_id=one) for one in ids]
    calls = _said("assistant", "", tool_calls=list(map(_tool_call, ids)))
    question = _said("user", "How is the weather?")
    return _body([question, calls, *outputs, _said("user", "And now?")])


def many_messages(count: int) -> Work:
    """Questions and answers in turn."""
    roles = ("user", "assistant")
    return _body([_said(roles[n % 2], f"Text {n}.") for n in range(count)])


def many_answers(count: int) -> Work:
    """Answers without a question between them."""
    return _body([_said("assistant", f"Text {n}.") for n in range(count)])


def many_parts(count: int) -> Work:
    """One message of many parts."""
    parts = [{"type": "text", "text": f"Part {n}."} for n in range(count)]
    return _body([_said("user", parts)])


def tool_messages(count: int) -> Work:
    """Messages of tools that nobody called."""
    rows = [_said("tool", "Rain.", tool_call_id=f"c{n}") for n in range(count)]
    return _body([_said("user", "Hello"), *rows])


def tool_pictures(count: int) -> Work:
    """Pictures of tools, each in a message of the host, behind the same outputs."""
    address = {"url": "https://a.example/1.png"}
    text = f"{TOOL_IMAGES_PREFIX} Please analyze them."
    parts = parse_messages(
        [
            *(_said("tool", "Rain.", tool_call_id=f"c{n}") for n in range(count)),
            *(
                _said(
                    "user",
                    [
                        {"type": "text", "text": text},
                        {"type": "image_url", "image_url": address},
                    ],
                )
                for _ in range(count)
            ),
        ]
    )[1]
    return lambda: add_tool_images(parts, {})


def attachments(count: int) -> Work:
    """Files at one message that the body tells of twice."""
    files = [{"type": "file", "id": f"f{n}", "name": f"{n}.pdf"} for n in range(count)]
    metadata = {"user_message": {"files": files}, "files": files}
    parts = parse_messages([_said("user", "Read."), _said("user", "Read them.")])[1]
    return lambda: attach_files(parts, {}, metadata)


def _turn_details(name: str, items: Sequence[tuple[Item, str]]) -> list[Item]:
    return write_details(name, items, ORIGIN, {}, SIGN)


def turns_with_details(count: int) -> Work:
    """Turns that each carry their reasoning."""
    messages: list[Json] = []
    for number in range(count):
        answer = message_item(number, f"Answer {number}.")
        pairs = [(thought_item(number), ""), (answer, f"Answer {number}.")]
        details = _turn_details(f"turn{number}", pairs)
        messages += [
            _said("user", f"Question {number}?"),
            _said("assistant", f"Answer {number}.", reasoning_details=details),
        ]
    return _body([*messages, _said("user", "And now?")])


def details_in_one_message(count: int) -> Work:
    """One message that carries many responses."""
    texts = [f"Answer {number}." for number in range(count)]
    details = [
        entry
        for number, text in enumerate(texts)
        for entry in _turn_details(
            f"turn{number}",
            [(thought_item(number), ""), (message_item(number, text), text)],
        )
    ]
    answer = _said("assistant", "\n".join(texts), reasoning_details=details)
    return _body([_said("user", "Hello"), answer, _said("user", "And now?")])


def one_call_many_times(count: int) -> Work:
    """A record of many calls, the first of which the chat names again and again."""
    calls = [(call_item(f"call_{number}"), "") for number in range(count)]
    again = [_tool_call("call_0") for _ in range(count)]
    details = _turn_details("turn", [(thought_item(0), ""), *calls])
    mark = _said("assistant", format_marker("items", f"{0:026d}"))
    given = _said("assistant", "", tool_calls=again, reasoning_details=details)
    # Its place is in front of the calls, so that they take their items from it.
    return _body([_said("user", "Hello"), given, mark, _said("user", "And now?")])


def one_marker_many_times(count: int) -> Work:
    """A record of many items, named in every turn."""
    pairs = [(message_item(number, "Yes."), "") for number in range(count)]
    details = _turn_details("turn", pairs)
    first = _said("assistant", "Yes.", reasoning_details=details)
    line = format_marker("items", f"{0:026d}")
    turns = [
        one
        for number in range(count)
        for one in (_said("user", "Hello"), _said("assistant", f"{line}Yes {number}."))
    ]
    return _body([_said("user", "Hello"), first, *turns, _said("user", "And now?")])


def codes_in_one_answer(count: int) -> Work:
    """Code of an answer, most of whose cards were deleted."""
    codes = [
        {
            "type": "code_interpreter_call",
            "id": f"ci_{number}",
            "container_id": "cntr_1",
            "code": f"print({number})",
            "outputs": [],
            "status": "completed",
        }
        for number in range(count)
    ]
    told = [
        f"<code_interpreter>\n{code_host_item(code)['code']}\n</code_interpreter>"
        for code in codes[::10]
    ]
    record = Record(
        f"{0:026d}", MODEL, 0, tuple(map(strip_for_replay, codes)), "a", ORIGIN
    )
    line = format_marker("items", record.ulid)
    messages = [
        _said("user", "Hello"),
        *(_said("assistant", one) for one in told),
        _said("assistant", f"{line}Done."),
    ]
    parts = parse_messages(messages)[1]
    return lambda: build_input(parts, {record.ulid: record}, ORIGIN)


# ---------------------------------------------------------------- chats


def _kept_item(ulid: str, message: str, payload: Sequence[Item], before: str) -> Item:
    record = Record(ulid, MODEL, 0, tuple(payload), message, ORIGIN)
    kept = records_value({ulid: record})
    head = {"type": "openai_responses:kept", "id": f"kept_{ulid}"}
    return {**head, "before": before, "kept": kept}


def _output_turn(number: int, items: int) -> tuple[list[Item], list[Json]]:
    """Return an answer's stored output with many kept items, and what the host sends.

    What stands in front of a text is kept: the last call, and the new reasoning.
    """
    output: list[Item] = []
    said: list[Json] = []
    called: list[Item] = []
    for place in range(items):
        text, own = f"Step {place} of {number}.", f"msg_{number}_{place}"
        ulid = f"{number * items + place:026d}"
        payload = [*map(strip_for_replay, [*called, thought_item(place)])]
        called = [call_item(f"call_{number}_{place}")]
        output += [
            _kept_item(ulid, f"a{number}", payload, own),
            {**message_item(place, text), "id": own},
            call_item(f"call_{number}_{place}"),
            {
                "type": "function_call_output",
                "id": f"fco_call_{number}_{place}",
                "call_id": f"call_{number}_{place}",
                "output": [{"type": "input_text", "text": "Rain."}],
                "status": "completed",
            },
        ]
        said += [
            _said("assistant", text, tool_calls=[_tool_call(f"call_{number}_{place}")]),
            _said("tool", "Rain.", tool_call_id=f"call_{number}_{place}"),
        ]
    return output, said


def output_chat(turns: int, items: int) -> tuple[Json, list[Json]]:
    """Return a chat's row whose outputs hold the records, and its messages."""
    rows: Json = {}
    said: list[Json] = []
    for number in range(turns):
        words = f"Question {number}?"
        output, given = _output_turn(number, items)
        parent = f"a{number - 1}" if number else None
        rows[f"q{number}"] = _said("user", words, parentId=parent)
        rows[f"a{number}"] = _said(
            "assistant", "", parentId=f"q{number}", output=output
        )
        said += [_said("user", words), *given]
    rows["q"] = _said("user", "And now?", parentId=f"a{turns - 1}")
    rows["a"] = _said("assistant", "", parentId="q")
    return {"history": {"messages": rows}}, [*said, _said("user", "And now?")]


def _restored(chat: Json, said: Sequence[Json]) -> Work:
    stored, body = json.loads(json.dumps([chat, said]))
    rows = stored["history"]["messages"]

    def work() -> list[Item]:
        records = read_records({**stored, **output_values(rows)}, SIGN)
        _, parts = parse_messages(body)
        parts = attach_stored_messages(parts, rows, {"user_message_id": "q"})
        parts = restore_from_outputs(parts, stored_outputs(rows, "a"))
        return build_input(parts, records, ORIGIN)

    return work


def turns_with_kept_items(count: int) -> Work:
    """Turns with 100 kept items each."""
    return _restored(*output_chat(count, 100))


def kept_items_of_one_answer(count: int) -> Work:
    """One turn with many kept items."""
    return _restored(*output_chat(1, count))


def edited_answers(count: int) -> Work:
    """Turns whose answers a person has changed, so that no stored output fits."""
    chat, said = output_chat(count, 1)
    changed = [
        {**one, "content": f"Changed {number}."} if one["role"] == "assistant" else one
        for number, one in enumerate(said)
    ]
    return _restored(chat, changed)


def chain_of_messages(count: int) -> Work:
    """A stored chat that is one long chain."""
    rows = {
        f"m{n}": {"role": ("user", "assistant")[n % 2], "parentId": f"m{n - 1}"}
        for n in range(count)
    }
    return lambda: stored_outputs(rows, f"m{count - 1}")


def ring_of_messages(count: int) -> Work:
    """A stored chat whose first message follows the last one."""
    rows = {
        f"m{n}": _said("user", f"Text {n}.", parentId=f"m{(n - 1) % count}")
        for n in range(count)
    }
    parts = parse_messages([_said("user", f"Text {n}.") for n in range(count)])[1]

    def work() -> object:
        stored_outputs(rows, "m0")
        return attach_stored_messages(parts, rows, {"user_message_id": "m0"})

    return work


def _records(count: int, message: str, start: int = 0) -> dict[str, Record]:
    return {
        f"{start + n:026d}": Record(
            f"{start + n:026d}",
            MODEL,
            n,
            (thought_item(n), call_item(f"call_{n}")),
            message,
            ORIGIN,
        )
        for n in range(count)
    }


def records_of_one_key(count: int) -> Work:
    """Many records under the key of one message."""
    chat = {message_key("a"): records_value(_records(count, "a"))}
    return lambda: read_records(chat, SIGN)


def pruning(count: int) -> Work:
    """Many keys, most of which have to become smaller."""
    values = {
        message_key(f"a{n}"): records_value(_records(1, f"a{n}", n))
        for n in range(count)
    }
    messages = {f"a{n}": {"role": "assistant"} for n in range(count)}
    return lambda: prune(values, messages, "own", 100 * count)


def changed_instructions(count: int) -> Work:
    """A system prompt of many lines, all of which have changed."""
    rows = {
        "q1": _said("user", "One?"),
        "a1": _said("assistant", "", parentId="q1"),
        "q2": _said("user", "Two?", parentId="a1"),
        "a2": _said("assistant", "", parentId="q2"),
    }
    said = [_said("user", "One?"), _said("assistant", "1"), _said("user", "Two?")]
    parts = attach_stored_messages(
        parse_messages(said)[1], rows, {"user_message_id": "q2", "message_id": "a2"}
    )
    lines = [[f"Line {n} of {which}." for n in range(count)] for which in range(2)]
    sent = {"a1": SentContext(model="m", instructions="\n".join(lines[0]))}

    def work() -> object:
        told = told_instructions(parts, sent, "m")
        change = change_instructions(told, "\n".join(lines[1]), "m")
        later = {**sent, "a2": change}
        told = told_instructions(parts, later, "m")
        assert told
        return apply_sent_context(parts, later, told.changes, {})

    return work


# ---------------------------------------------------------------- rounds of tools


def rounds_of_the_agent(count: int) -> Work:
    """Rounds of the pipeline's agent behind one question."""
    messages = [_said("user", "How is the weather?")]
    for number in range(count):
        pairs = [(thought_item(number), ""), (call_item(f"call_{number}"), "")]
        messages += [
            _said(
                "assistant",
                "",
                tool_calls=[_tool_call(f"call_{number}")],
                reasoning_details=_turn_details(f"{number}", pairs),
            ),
            _said("tool", "Rain.", tool_call_id=f"call_{number}"),
        ]
    restored = _body(messages)
    return lambda: (read_earlier_rounds(messages, SIGN), restored())


def context_of_the_agent(count: int) -> Work:
    """A context of many entries."""
    rows = [{"title": f"Page {n}", "content": f"Text {n}"} for n in range(count)]
    return lambda: read_context(rows)
