"""A long chat, as Open WebUI stores it and as it gives it back."""

from typing import Any

from openai_responses.requests.replay import Origin
from owui_chat.storage.markers import format_marker
from owui_chat.storage.records import Record, message_key, write_records
from owui_manifold.store.keys import ChatKeys

Json = dict[str, Any]

_ORIGIN = Origin("gpt-6.2-sol", "127.0.0.1")
_SIGN = ChatKeys("the secret of the server", "user", "chat").sign
_THOUGHT = {
    "type": "reasoning",
    "summary": [],
    "encrypted_content": "gAAAA" + "x" * 1_200,
}


def long_chat(turns: int) -> tuple[Json, list[Json]]:
    """Return a chat's row and the messages of its last question.

    Each answer but the last has a call between two thoughts: three kept items.
    """
    row: Json = {"history": {"messages": {}}}
    messages: list[Json] = []
    for number in range(turns):
        question = f"Question {number}?"
        _store_question(row, number, question)
        messages.append({"role": "user", "content": question})
        if number < turns - 1:
            messages += _answer(row, number)
    return row, messages


def _store_question(row: Json, number: int, question: str) -> None:
    """Put a question and the place of its answer into the tree of messages."""
    parent = f"a{number - 1}" if number else None
    stored = row["history"]["messages"]
    stored[f"q{number}"] = {"role": "user", "content": question, "parentId": parent}
    stored[f"a{number}"] = {"role": "assistant", "parentId": f"q{number}"}


def _answer(row: Json, number: int) -> list[Json]:
    """Keep the items of an answer in the row; return it as the host gives it back."""
    call_id = f"call_{number}"
    function = {"name": "get_weather", "arguments": '{"city": "Bern"}'}
    call = {"type": "function_call", "call_id": call_id, **function}
    message_id = f"a{number}"
    before_output = f"{2 * number:026d}"
    after_output = f"{2 * number + 1:026d}"
    records = {
        before_output: Record(before_output, (_THOUGHT, call), message_id, _ORIGIN),
        after_output: Record(after_output, (_THOUGHT,), message_id, _ORIGIN),
    }
    row[message_key(message_id)] = write_records(records, _SIGN)
    first_marker = format_marker("items", before_output).strip()
    second_marker = format_marker("items", after_output).strip()
    tool_call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": first_marker, "tool_calls": [tool_call]},
        {"role": "tool", "tool_call_id": call_id, "content": "Rain."},
        {"role": "assistant", "content": f"{second_marker}\n\nIt rains."},
    ]
