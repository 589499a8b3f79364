"""Nothing that arrived is lost, however it came; `scripts/soak_of_faults.py` is longer."""

import json
import random
from types import ModuleType
from typing import Any

import pytest

from disturbed.kinds import KINDS, Kind, SoundAnswer, write_stream
from disturbed.server import Exchange, list_sealed
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
    """Return an answer with a thought, a text and a call."""
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
    """The built pipe."""
    return load_pipe(BUILT_PIPE)


@pytest.mark.asyncio
async def test_nothing_is_lost(built: ModuleType) -> None:
    """Reasoning, texts, calls and counts are those of the sound answers."""
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


@pytest.mark.parametrize(
    "name", ["no-arguments", "argument-objects", "empty-final", "ended-early"]
)
def test_kind_needs_its_subject(name: str) -> None:
    """An answer without calls, or without a text, comes as it is."""
    [kind] = [kind for kind in KINDS if kind.name == name]
    response = {"status": "completed", "output": [THOUGHT], "usage": {}}
    answer = SoundAnswer([{"type": "response.completed", "response": response}])
    assert kind.make(answer, random.Random(1)) is None


# ------------------------------------------------------------ what the soak complains of


def exchange(turn: int = 1, **more: Any) -> Exchange:
    """Return a request of one question and its sound answer."""
    response = sound_answer().response
    request = {"stream": True, "input": [QUESTION]}
    sealed = [{"sealed-1", "sealed-2"}]
    return Exchange(turn, request, sound=response, sealed=sealed, **more)


def asked_again(*items: Json, **more: Any) -> Exchange:
    """Return a later request with the question and these items."""
    later = exchange(2, **more)
    later.request = {**later.request, "input": [QUESTION, *items]}
    return later


def chunks(stored: str, shown: str = "It rains.") -> list[Json]:
    """Return what the page gets of an answer with one message."""
    item = {**SAID, "content": [{"type": "output_text", "text": stored}]}
    return [
        {"type": "response.output_text.delta", "output_index": 0, "delta": shown},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"usage": {"total_tokens": 3}},
    ]


def test_sound_chat_has_no_problem() -> None:
    page = chunks("It rains.")
    one = [exchange()]
    two = [exchange(), asked_again(THOUGHT, SAID)]
    ran = [("look", {"city": "Bern"})]

    assert list(find_errors(page, two)) == []
    assert list(find_lost_texts(page, one)) == []
    assert list(find_wrong_runs(ran, one)) == []
    assert list(find_lost_reasoning(two)) == []
    assert list(find_wrong_counts(page, one)) == []


@pytest.mark.parametrize(
    ("exchanges", "problem"),
    [
        ([exchange(), exchange()], "a whole answer was asked for again"),
        ([exchange(refusal="No.")], "invalid history: No."),
        (
            [
                exchange(is_failure=True, wait=0.6, ended_at=1.0),
                exchange(arrived_at=1.5),
            ],
            "asked to wait 0.6 s, waited 0.50 s",
        ),
        (
            [
                exchange(),
                asked_again(
                    THOUGHT,
                    {
                        "type": "custom_tool_call_output",
                        "call_id": "xs_call_7",
                        "output": "",
                    },
                ),
            ],
            "a call that the server has run was answered",
        ),
    ],
)
def test_requests_that_should_not_be_sent(
    exchanges: list[Exchange], problem: str
) -> None:
    assert list(find_errors([], exchanges)) == [problem]


def test_error_and_lost_stream_are_problems() -> None:
    asked_whole = exchange()
    asked_whole.request = {"stream": False, "input": [QUESTION]}
    error = {"error": {"message": "Odd."}}
    problems = ["error: Odd.", "the turn was not streamed"]
    assert list(find_errors([error], [asked_whole])) == problems


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (chunks("It"), "shown and not stored: It rains."),
        (
            chunks("It snows.", shown="It snows."),
            "arrived and is not stored: It rains.",
        ),
    ],
)
def test_lost_text_is_a_problem(page: list[Json], problem: str) -> None:
    assert problem in list(find_lost_texts(page, [exchange()]))


def test_text_of_a_failed_attempt_need_not_be_stored() -> None:
    page = chunks("It snows.", shown="It snows.")
    assert list(find_lost_texts(page, [exchange(is_failure=True)])) == []


@pytest.mark.parametrize(
    ("runs", "count"),
    [
        ([], 1),
        ([("look", {"city": "Bern"})] * 2, 1),
        ([("look", {})], 2),
    ],
)
def test_call_runs_once_with_its_arguments(
    runs: list[tuple[str, Json]], count: int
) -> None:
    assert len(list(find_wrong_runs(runs, [exchange()]))) == count


@pytest.mark.parametrize(
    ("sealed", "is_lost"), [("sealed-1", False), ("sealed-2", False), ("other", True)]
)
def test_reasoning_goes_back_in_one_of_its_forms(sealed: str, is_lost: bool) -> None:
    later = asked_again({**THOUGHT, "encrypted_content": sealed})
    assert bool(list(find_lost_reasoning([exchange(), later]))) == is_lost
    failed = exchange(is_failure=True)
    assert list(find_lost_reasoning([failed, later])) == []


def test_reasoning_that_the_api_left_out_is_lost() -> None:
    later = asked_again(THOUGHT)
    removed = [{"action": "removed", "reason": "prefix_mismatch"}]
    later.sound = {**later.sound, "input_transformations": removed}
    assert len(list(find_lost_reasoning([exchange(), later]))) == 1


@pytest.mark.parametrize(
    ("counted", "used", "is_wrong"), [(3, 1, False), (6, 1, True), (0, 1, True)]
)
def test_counts_are_those_of_all_answers(
    counted: int, used: int, is_wrong: bool
) -> None:
    page = [{"usage": {"total_tokens": counted}}]
    assert bool(list(find_wrong_counts(page, [exchange()] * used))) == is_wrong


def test_only_what_was_sent_whole_has_to_go_back() -> None:
    answer = sound_answer()
    assert list(list_sealed(answer, json.dumps(THOUGHT).encode())) == [{"sealed-1"}]
    assert list(list_sealed(answer, b'"encrypted_content": "sealed"')) == []
