"""Long chats, as Open WebUI stores them and as it gives them back."""

from typing import Any

from openai_responses.requests.replay import Origin
from owui_chat.storage.markers import format_marker
from owui_chat.storage.records import Record, message_key, write_records
from owui_manifold.store import ChatKeys

MODEL = "openai_responses.gpt-6.2-sol"
ORIGIN = Origin("gpt-6.2-sol", "127.0.0.1")
SECRET, USER_ID = "the secret of the server", "user"
_SIGN = ChatKeys(SECRET, USER_ID, "chat").sign
SEALED = "gAAAA" + "x" * 1_200
"""As long as the encrypted content of a short thought."""
Json = dict[str, Any]


def long_chat(turns: int) -> tuple[Json, list[Json]]:
    """Return a chat's row and the messages of its last question.

    Each answer but the last has a call between two thoughts: three kept items.
    """
    row: Json = {"history": {"messages": {}}}
    said: list[Json] = []
    for number in range(turns):
        words = f"Question {number}?"
        _put(row, number, words)
        said.append({"role": "user", "content": words})
        if number < turns - 1:
            said += _answer(row, number)
    return row, said


def _put(row: Json, number: int, words: str) -> None:
    """Put a question and the place of its answer into the tree of messages."""
    asked, answer = f"q{number}", f"a{number}"
    parent = f"a{number - 1}" if number else None
    row["history"]["messages"] |= {
        asked: {"role": "user", "content": words, "parentId": parent},
        answer: {"role": "assistant", "parentId": asked},
    }


def _answer(row: Json, number: int) -> list[Json]:
    """Keep an answer in the row; return it as the host gives it back."""
    call = _call(number)
    payloads = ((_thought(), call), (_thought(),))
    ulids = [f"{2 * number + place:026d}" for place in range(2)]
    records = {
        ulid: Record(ulid, MODEL, 0, payload, f"a{number}", ORIGIN)
        for ulid, payload in zip(ulids, payloads, strict=True)
    }
    row[message_key(f"a{number}")] = write_records(records, _SIGN)
    called, ended = (format_marker("items", ulid) for ulid in ulids)
    function = {"name": call["name"], "arguments": call["arguments"]}
    wire = {"id": call["call_id"], "type": "function", "function": function}
    return [
        {"role": "assistant", "content": called.strip(), "tool_calls": [wire]},
        {"role": "tool", "tool_call_id": call["call_id"], "content": "Rain."},
        {"role": "assistant", "content": f"{ended.strip()}\n\nIt rains."},
    ]


def _thought() -> Json:
    return {"type": "reasoning", "summary": [], "encrypted_content": SEALED}


def _call(number: int) -> Json:
    return {
        "type": "function_call",
        "call_id": f"call_{number}",
        "name": "get_weather",
        "arguments": '{"city": "Bern"}',
    }
