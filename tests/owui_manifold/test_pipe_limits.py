"""Chats that are longer than the API takes."""

from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import answering, errors, grown, statuses, stored
from calls.sample import MODEL, chat
from owui_chat import messages
from owui_chat.storage.markers import strip_markers
from owui_chat.storage.records import message_key, read_records, write_records
from owui_manifold.store.keys import ChatKeys
from simulator import Simulator
from simulator.checks import limits
from stand_in.host import SERVER_SECRET

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning"),
]

Json = dict[str, Any]
LARGE = "my_pipe.gpt-4.1"
WORDS_ALONE = (
    "The model's server rejected this chat as it was: only its texts and tool results "
    "were sent."
)


async def asked(
    desk: Desk, given: list[Json], name: str = "m-1", model: str = LARGE
) -> list[Json]:
    """The chunks of an answer to these messages; it came, and is no failure."""
    body = {**chat(model=model), "messages": given}
    chunks = await desk.chunks(body, **answering(name))
    assert errors(chunks) == []
    assert strip_markers(grown(chunks)).startswith("This is turn")
    return chunks


def alternating_messages(*texts: str) -> list[Json]:
    """Messages of the user and of the assistant in turn."""
    alternating: list[Json] = chat(*texts)["messages"]
    return alternating


def sent(sim: Simulator) -> list[tuple[int | None, int]]:
    return [(request.status, len(request.body["input"])) for request in sim.requests]


async def test_oversized_call_is_sent_as_text(desk: Desk) -> None:
    """The model wrote them itself; the chat goes on."""
    function = {"name": "save", "arguments": '{"text": "%s"}' % ("x" * 1_048_576)}
    turn: list[Json] = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Saved."},
    ]

    chunks = await asked(
        desk,
        [*alternating_messages("Save it."), *turn, *alternating_messages("And now?")],
    )

    assert [status for status, _ in sent(desk.sim)] == [400, 200]
    assert statuses(chunks) == ["One earlier function call was sent as plain text."]


async def test_too_many_kept_items_are_left_out_of_each_answer(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refusal names no item, so the chat keeps all of them."""
    assert messages._MAX_ENTRIES * 2 <= limits.MAX_INPUT_ITEMS
    monkeypatch.setattr(limits, "MAX_INPUT_ITEMS", 1_000)
    first = await asked(desk, alternating_messages("Hi"), "m-1", MODEL)
    sign = ChatKeys(SERVER_SECRET, "user-1", "chat-1").sign
    [(ulid, record)] = read_records(desk.host.kept, sign).items()
    searched = [
        {
            "type": "web_search_call",
            "id": f"ws_{number}",
            "status": "completed",
            "action": {"type": "search", "query": "rain"},
        }
        for number in range(1_000)
    ]
    record = record._replace(payload=(*searched, *record.payload))
    row = desk.host.chats.rows["chat-1"].chat
    row[message_key("m-1")] = write_records({ulid: record}, sign)
    texts = ("Hi", stored(first), "And now?")

    second = await asked(desk, alternating_messages(*texts), "m-2", MODEL)
    third = await asked(
        desk, alternating_messages(*texts, stored(second), "Go on."), "m-3", MODEL
    )

    assert sent(desk.sim) == [(200, 1), (400, 1_004), (200, 3), (400, 1_007), (200, 5)]
    assert (statuses(second), statuses(third)) == ([WORDS_ALONE], [WORDS_ALONE])
