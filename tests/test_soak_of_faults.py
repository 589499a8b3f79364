"""No chat gets stuck, and nothing that arrived is lost, however it came.

`scripts/fuzz.py` and `scripts/soak_of_faults.py` take longer.
"""

import json
import random
from types import ModuleType
from typing import Any

import pytest

from disturbed.kinds import KINDS, Kind, SoundAnswer, write_stream
from disturbed.server import Exchange, list_sealed
from fuzz import run_chats
from fuzz import write_figures as write_fuzz_figures
from golden_run.built_files import BUILT_PIPE, load_pipe
from soak_of_faults import (
    find_errors,
    find_lost_reasoning,
    find_lost_texts,
    find_wrong_counts,
    find_wrong_runs,
    soak,
    write_figures,
)
from stand_in.chats import convert_output

Json = dict[str, Any]
CHATS = range(10)

THOUGHT: Json = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Hm."}],
    "encrypted_content": "sealed-1",
}
SAID: Json = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "It rains.", "annotations": []}],
}
CALL: Json = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "call_1",
    "name": "look",
    "arguments": '{"city": "Bern"}',
}
QUESTION: Json = {"type": "message", "role": "user", "content": "Hi"}


def sound_answer() -> SoundAnswer:
    items = [THOUGHT, SAID, CALL]
    response = {"status": "completed", "output": items, "usage": {"total_tokens": 3}}
    deltas = {
        "rs_1": {"type": "response.reasoning_summary_text.delta", "delta": "Hm."},
        "msg_1": {"type": "response.output_text.delta", "delta": "It rains."},
        "fc_1": {
            "type": "response.function_call_arguments.delta",
            "delta": CALL["arguments"],
        },
    }
    begin = {"status": "in_progress", "output": []}
    events: list[Json] = [
        {"type": "response.created", "response": begin},
        {"type": "response.in_progress", "response": begin},
    ]
    for index, item in enumerate(items):
        place = {"output_index": index, "item_id": item["id"]}
        added = {"type": "response.output_item.added", "item": item}
        done = {"type": "response.output_item.done", "item": item}
        events += [added | place, deltas[item["id"]] | place, done | place]
    return SoundAnswer([*events, {"type": "response.completed", "response": response}])


@pytest.fixture(scope="module")
def built() -> ModuleType:
    return load_pipe(BUILT_PIPE)


@pytest.mark.asyncio
async def test_no_chat_gets_stuck(built: ModuleType) -> None:
    """Whatever a server refuses: no call is run twice, the history sent is valid."""
    numbers = range(8)
    reports = await run_chats(numbers, built, at_once=10)

    figures = write_fuzz_figures(reports)
    assert [report.number for report in reports] == list(numbers)
    assert [report.number for report in reports if report.problems] == [], figures
    assert any(report.extra for report in reports)


def test_stand_in_gives_calls_back_as_the_host_does() -> None:
    """Text and calls in front of the outputs, the rest after them."""
    output = {"type": "function_call_output", "call_id": "call_1", "output": "yes"}

    messages = convert_output([THOUGHT, CALL, output, SAID])

    roles = [message["role"] for message in messages]
    assert roles == ["assistant", "tool", "assistant"]
    asked, answered, said = messages
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == "call_1"
    assert said["content"] == "It rains."


@pytest.mark.asyncio
async def test_nothing_is_lost(built: ModuleType) -> None:
    reports = await soak(CHATS, built, kinds=KINDS)

    figures = write_figures(reports, seed=0)
    assert [report.number for report in reports] == list(CHATS)
    assert [report.number for report in reports if report.problems] == [], figures
    for kind in KINDS:
        assert any(kind.name in line for report in reports for line in report.faults)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kind_disturbs_a_sound_answer(kind: Kind) -> None:
    """It changes what is sent, in the same way for the same chance."""
    answer = sound_answer()
    sound = write_stream(answer.events)
    first, again = (kind.make(answer, random.Random(1)) for _ in range(2))

    assert first is not None
    assert first == again
    is_plain = (first.status, first.content_type) == (200, "text/event-stream")
    assert first.body != sound or not is_plain or first.encoding is not None
    assert answer == sound_answer()


def exchange(turn: int = 1, *sent: Json, **more: Any) -> Exchange:
    response = sound_answer().response
    request = {"stream": True, "input": [QUESTION, *sent]}
    sealed = [{"sealed-1", "sealed-2"}]
    given: Json = {"request": request, "sound": response, "sealed": sealed, **more}
    return Exchange(turn, **given)


def page(stored: str = "It rains.", shown: str = "It rains.", tokens: int = 3) -> Any:
    item = {**SAID, "content": [{"type": "output_text", "text": stored}]}
    return [
        {"type": "response.output_text.delta", "output_index": 0, "delta": shown},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"usage": {"total_tokens": tokens}},
    ]


ONE = [exchange()]
FAILED = exchange(is_failure=True)
BUSY = exchange(is_failure=True, wait=0.6, ended_at=1.0)
LATER = exchange(arrived_at=1.5)
UNSTREAMED = exchange(request={"stream": False, "input": [QUESTION]})
FOREIGN = {"type": "custom_tool_call_output", "call_id": "xs_call_7", "output": ""}
OTHER = exchange(2, {**THOUGHT, "encrypted_content": "other"})
AGAIN = exchange(2, {**THOUGHT, "encrypted_content": "sealed-2"}, SAID)
REMOVED = {"input_transformations": [{"action": "removed", "reason": "prefix"}]}
UNREAD = exchange(2, THOUGHT, sound={**sound_answer().response, **REMOVED})
ERROR = {"error": {"message": "Odd."}}
SNOW = "It snows."
RAN = ("look", {"city": "Bern"})
TWICE = [RAN, RAN]
NOT_STORED = "arrived and is not stored: It rains."
NOT_RUN = 'look {"city": "Bern"} was called 1 times and ran 0 times'
UNASKED = "look {} was called 0 times and ran 1 times"
LOST = "reasoning of turn 1 is missing (sound)"
# What the page got, the requests, the calls that ran, the problems of the turn.
TURNS: dict[str, tuple[Any, list[Exchange], list[Any], str]] = {
    "sound": (page(), ONE, [RAN], ""),
    "two sound answers": (page(tokens=6), [*ONE, AGAIN], TWICE, ""),
    "text of a failed attempt": (page(SNOW, SNOW, 0), [FAILED], [], ""),
    "asked again": (
        page(tokens=6),
        ONE * 2,
        TWICE,
        f"a whole answer was asked for again; {LOST}",
    ),
    "refused": (page(tokens=0), [exchange(refusal="No.")], [], "invalid history: No."),
    "not waited": (page(), [BUSY, LATER], [RAN], "asked to wait 0.6 s, waited 0.50 s"),
    "a call of the server": (
        page(tokens=6),
        [*ONE, exchange(2, THOUGHT, FOREIGN)],
        TWICE,
        "a call that the server has run was answered",
    ),
    "error": ([ERROR, *page()], ONE, [RAN], "error: Odd."),
    "no stream": (page(), [UNSTREAMED], [RAN], "the turn was not streamed"),
    "half": (page("It"), ONE, [RAN], f"shown and not stored: It rains.; {NOT_STORED}"),
    "other text": (page(SNOW, SNOW), ONE, [RAN], NOT_STORED),
    "call not run": (page(), ONE, [], NOT_RUN),
    "other arguments": (page(), ONE, [("look", {})], f"{NOT_RUN}; {UNASKED}"),
    "reasoning lost": (page(tokens=6), [*ONE, OTHER], TWICE, LOST),
    "reasoning of a failed attempt": (page(), [FAILED, OTHER], [RAN], ""),
    "reasoning left out by the API": (
        page(tokens=6),
        [*ONE, UNREAD],
        TWICE,
        "the API left reasoning out: prefix",
    ),
    "count": (page(tokens=6), ONE, [RAN], "3 tokens were used, and [6] counted"),
}


@pytest.mark.parametrize("case", TURNS)
def test_soak_names_what_is_wrong_with_a_turn(case: str) -> None:
    chunks, exchanges, ran, problems = TURNS[case]

    found = [
        *find_errors(chunks, exchanges),
        *find_lost_texts(chunks, exchanges),
        *find_wrong_runs(ran, exchanges),
        *find_lost_reasoning(exchanges),
        *find_wrong_counts(chunks, exchanges),
    ]
    assert "; ".join(found) == problems


def test_only_what_was_sent_whole_has_to_go_back() -> None:
    answer = sound_answer()
    assert list(list_sealed(answer, json.dumps(THOUGHT).encode())) == [{"sealed-1"}]
    assert list(list_sealed(answer, b'"encrypted_content": "sealed"')) == []
