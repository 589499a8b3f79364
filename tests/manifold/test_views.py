"""The forms of an answer for its reader."""

from typing import Any

import pytest

from agents.sample import KeptLog
from manifold.views import (
    OpenMessages,
    client_view,
    failure_chunks,
    log_refusal,
    metadata_chunk,
    page_result,
    readable_chunk,
    whole_completion,
    whole_failure,
)
from openai_responses.endings import COMPLETED, CUT
from openai_responses.errors import ConnectionFailed, InvalidParameter, InvalidRequest
from openai_responses.items import text_message
from openai_responses.loop.events import RunDone
from openai_responses.models.usage import Cost, Usage
from openai_responses.transport.stream import ItemAdded, TextDelta
from owui_chat.events import AnswerReport
from owui_chat.render.completions import ChunkRenderer
from owui_chat.render.native import NativeRenderer
from shells.caller import ChatCaller
from strategies.metadata import RunMetadata

PAGE = ChatCaller(chat_id="c-1", message_id="m-1")
CLIENT = ChatCaller()
MERGING = PAGE._replace(task="moa_response_generation")
SAID = text_message("assistant", "It rains.")
USAGE = Usage(30, 12, 42)
NEWEST = Usage(20, 2, 22)
TOOK = RunMetadata("gpt5_react", "gpt-5.2", "refused")
REFUSAL = InvalidParameter("top_p", "is too large")


def test_answers_for_clients_have_ids_of_their_own() -> None:
    """In one piece as in many, in the API's form and with the model's name."""
    ended = RunDone(COMPLETED, output=(SAID,))
    heads = [
        client_view(ChatCaller("m")).head,
        client_view(ChatCaller("m")).head,
        whole_completion(ended, "m", AnswerReport()),
    ]

    ids = {head["id"] for head in heads}
    assert len(ids) == 3
    assert all(each.startswith("chatcmpl-") for each in ids)
    assert all(head["created"] > 1_700_000_000 for head in heads)
    assert {head["model"] for head in heads} == {"m"}


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}


@pytest.mark.parametrize(
    ("caller", "event", "shown"),
    [
        (
            ChatCaller(wants_usage_chunk=True),
            RunDone(COMPLETED, USAGE, output=(SAID,)),
            "'choices': []",
        ),
        (
            ChatCaller(reads_older_calls=True),
            RunDone(COMPLETED, output=(CALL,)),
            "'function_call': {",
        ),
        (
            ChatCaller(wants_format=True),
            TextDelta(0, "refusal", 0, "No."),
            "'refusal': 'No.'",
        ),
    ],
)
def test_stream_has_the_form_that_its_client_reads(
    caller: ChatCaller, event: Any, shown: str
) -> None:
    assert shown in str([*client_view(caller).render(event)])
    assert shown not in str([*client_view(CLIENT).render(event)])


@pytest.mark.parametrize(
    ("ended", "has_advice", "error"),
    [
        (RunDone(COMPLETED, USAGE, NEWEST, (SAID,)), False, None),
        (RunDone(CUT, USAGE, NEWEST, (SAID,)), False, CUT.message),
        (RunDone(CUT, USAGE, NEWEST, (SAID,)), True, None),
        (RunDone(CUT), False, CUT.message),
        (RunDone(CUT), True, CUT.message),
    ],
)
def test_page_gets_items_and_the_tokens_of_the_last_response(
    ended: RunDone, has_advice: bool, error: str | None
) -> None:
    """It shows no reason of the end, unless a status line advises on it."""
    view = NativeRenderer(lambda: 0.0)
    view.output.items += ended.output
    view.report = AnswerReport(cost=Cost(0.5))

    stored = page_result(ended, "m", view, has_advice=has_advice)

    assert stored.get("error") == (error and {"message": error})
    assert stored.get("output") == ([*ended.output] or None)
    if ended.usage:
        assert stored["usage"]["prompt_tokens"] == 20
        assert stored["usage"]["cost"] == 0.5
        assert (
            whole_completion(ended, "m", AnswerReport())["usage"]["prompt_tokens"] == 30
        )


def test_whole_answer_of_the_page_draws_no_card() -> None:
    """Its text is stored next to the items, also where it has none."""
    card = '<details type="tool_calls" name="bank">'
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": card}]}
    ended = RunDone(COMPLETED, output=(thought, text_message("assistant", card)))

    stored = page_result(ended, "m", NativeRenderer(lambda: 0.0))

    said = stored["choices"][0]["message"]
    assert said["content"] == said["reasoning_content"] == f"< {card[1:]}"


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (InvalidRequest("No."), "invalid"),
        (ConnectionFailed("It broke."), "unreachable"),
        (ValueError(), None),
    ],
)
def test_refused_answer_of_an_agent_is_in_the_log(
    error: Exception, ending: str | None
) -> None:
    """A mistake of ours says nothing about what it took."""
    log = KeptLog()

    took = log_refusal(log, "gpt5_react", "m", error)

    assert took == (ending and RunMetadata("gpt5_react", "m", ending))
    assert log.metadata == ([took.wire()] if took else [])


def test_figures_are_a_line_of_the_page_or_a_field_for_a_client() -> None:
    client = ChunkRenderer("c", 1, "m")

    of_client = metadata_chunk(TOOK, client)
    of_page = metadata_chunk(TOOK)["event"]["data"]

    field = {"execution_metadata": TOOK.wire()}
    choice = {"index": 0, "delta": {}, "finish_reason": None}
    assert of_client == {**client.head, "choices": [choice], **field}
    assert of_page["description"] == TOOK.describe()
    assert of_page["execution_metadata"] == TOOK.wire()


@pytest.mark.parametrize(
    ("caller", "failure"),
    [
        (PAGE, {"error": {"message": "No."}}),
        (MERGING, {"choices": [{"index": 0, "delta": {"content": "\n\nNo."}}]}),
        (CLIENT, None),
    ],
)
def test_failure_is_shown_in_the_form_of_its_reader(
    caller: ChatCaller, failure: Any
) -> None:
    """What it took comes first; a program learns which parameter was wrong."""
    before, chunk = failure_chunks(caller, "No.", REFUSAL, TOOK)

    assert before == metadata_chunk(TOOK)
    assert failure_chunks(caller, "No.", REFUSAL) == [chunk]
    client = ChunkRenderer("c", 1, "m")
    [of_client, _] = failure_chunks(caller, "No.", REFUSAL, TOOK, client)
    assert of_client == metadata_chunk(TOOK, client)
    assert readable_chunk(chunk, caller) == chunk
    if failure:
        assert chunk == failure
    else:
        assert (chunk["error"]["message"], chunk["error"]["param"]) == ("No.", "top_p")


def test_whole_failure_has_what_it_took() -> None:
    told = whole_failure(CLIENT, "No.", REFUSAL, TOOK)

    assert told["execution_metadata"] == TOOK.wire()
    assert told["error"]["param"] == "top_p"
    assert whole_failure(PAGE, "No.", REFUSAL) == {"error": {"message": "No."}}


def test_open_messages_with_a_text_end_once() -> None:
    """Also one that refuses; an empty one is nothing to keep."""
    messages = OpenMessages()
    for index in range(3):
        messages.note(ItemAdded(index, {**SAID, "content": []}))
    for index, kind in enumerate(("text", "refusal")):
        messages.note(TextDelta(index, kind, 0, "No."))
    assert [(end.output_index, end.shown) for end in messages.end()] == [
        (0, "No."),
        (1, "No."),
    ]
    assert messages.end() == []
