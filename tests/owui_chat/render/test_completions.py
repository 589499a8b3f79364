"""Callers over plain HTTP get what the openai package reads: one result, or chunks."""

from typing import Any

import pytest

from openai_responses.endings import COMPLETED, CUT, Ending, ending_of_incomplete
from openai_responses.errors import ApiError
from openai_responses.items import Item, text_part
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.models.usage import Cost, Usage
from openai_responses.transport.stream import ItemDone
from owui_chat.events import AnswerReport
from owui_chat.render.client_errors import client_error
from owui_chat.render.completions import (
    ChunkRenderer,
    chat_tool_call,
    completion,
    completion_text,
)
from runs.sample import (
    call,
    custom_call,
    message,
    output,
    reasoning,
    refusal,
    run_of,
    run_of_transcript,
    run_with_tools,
    search,
    without,
)

Json = dict[str, Any]


def ended(*items: Item) -> RunDone:
    last = run_of(*items)[-1]
    assert isinstance(last, RunDone)
    return last


def result(run: RunDone, *, has_format: bool = False) -> dict[str, Any]:
    """The result of a run."""
    return completion(
        run,
        "chatcmpl-1",
        1_795_262_400,
        "f.gpt-5.2",
        AnswerReport(),
        has_format=has_format,
    )


def answered(*items: Item, has_format: bool = False) -> dict[str, Any]:
    whole = result(ended(*items), has_format=has_format)
    answer: dict[str, Any] = whole["choices"][0]["message"]
    return answer


LOOK = message("1", "I look.", "commentary")
DONE = message("2", "Done.", "commentary")
RAIN = message("3", "Rain.", "final_answer")
TWO_PARTS = [{"type": "summary_text", "text": text} for text in ("One", "Two")]
HM = [{"type": "reasoning_text", "text": "Hm."}]
TWO = text_part("text", "Two?")
DRAWN: Item = {
    **{"type": "image_generation_call", "id": "ig_1", "status": "completed"},
    "result": "AAAA",
}


@pytest.mark.parametrize(
    ("items", "thought", "content"),
    [
        pytest.param(
            [
                *(reasoning("1", "Hm."), message("1", "One"), search("1")),
                *(reasoning("2", ""), reasoning("3", "Ah."), message("2", "Two")),
            ],
            "Hm.\n\nAh.",
            "One\n\nTwo",
            id="several stand apart by a blank line",
        ),
        pytest.param(
            [{**reasoning("1"), "summary": TWO_PARTS}, reasoning("2", "Three")],
            "One\n\nTwo\n\nThree",
            "",
            id="parts of thoughts",
        ),
        pytest.param(
            [{**reasoning("1", "Hm."), "content": HM}, RAIN],
            *("Hm.", "Rain."),
            id="a thought that comes as a summary and as a text",
        ),
        pytest.param(
            [reasoning("1", "Hm."), LOOK, reasoning("2", "Aha."), RAIN],
            "Hm.\n\nI look.\n\nAha.",
            "Rain.",
            id="a remark stands among the thoughts, in its place",
        ),
        pytest.param(
            [message("1", "https://a.b?utm_source=openai", "commentary"), RAIN],
            *("https://a.b", "Rain."),
            id="an address without its tracking",
        ),
    ],
)
def test_answer_is_text_and_thought(
    items: list[Item], thought: str, content: str
) -> None:
    """In one piece, and as deltas."""
    whole = {"role": "assistant", "content": content, "reasoning_content": thought}
    assert answered(*items) == whole
    deltas = deltas_of(*items)
    assert joined_text(deltas, "reasoning_content") == thought
    assert joined_text(deltas) == content


@pytest.mark.parametrize(
    ("items", "message_fields"),
    [
        ([reasoning("1", ""), message("1", "Rain.")], {"content": "Rain."}),
        ([LOOK], {"content": "I look."}),
        ([LOOK, DONE], {"content": "Done.", "reasoning_content": "I look."}),
    ],
    ids=["no thought", "a remark alone", "of remarks the last is the answer"],
)
def test_answer_without_a_thought_has_no_field_for_it(
    items: list[Item], message_fields: Json
) -> None:
    """No empty block on a page."""
    assert answered(*items) == {"role": "assistant", **message_fields}


def test_calls_are_the_callers_to_run() -> None:
    body = result(ended(call("1"), call("2")))

    assert body["choices"][0]["finish_reason"] == "tool_calls"
    assert body["choices"][0]["message"] == {
        "role": "assistant",
        "content": "",
        "tool_calls": [chat_tool_call(call("1")), chat_tool_call(call("2"))],
    }


def test_head_and_usage_are_those_of_the_run() -> None:
    body = result(ended(message("1", "Rain.")))

    assert (body["id"], body["model"]) == ("chatcmpl-1", "f.gpt-5.2")
    assert body["usage"]["prompt_tokens"] == 10
    assert body["usage"]["total_tokens"] == 15


def test_failure_before_anything_is_an_error_alone() -> None:
    """The host then marks the message as failed."""
    assert result(RunDone(CUT)) == client_error(CUT.message, 502, ApiError())


def test_failed_result_keeps_its_text() -> None:
    body = result(RunDone(CUT, output=(message("1", "Ra"),)))

    assert body["choices"][0]["message"]["content"] == "Ra"
    assert body["error"] == client_error(CUT.message, 502, ApiError())["error"]
    assert "usage" not in body  # a zero would be a lie


def test_text_of_a_task_is_that_of_its_answer() -> None:
    """One that failed has no title."""
    title = message("2", "https://a.b?utm_source=openai")
    assert completion_text(ended(LOOK, title)) == "https://a.b"
    assert completion_text(RunDone(CUT)) == ""
    assert completion_text(ended(reasoning("1"), call("1"))) == ""


def test_complete_answer_has_its_annotations() -> None:
    """The same as a stream has, with links that do not tell who searched."""
    first = message("1", "Rain ([a.example](https://a.example?utm_source=openai)).")
    note = {"type": "url_citation", "url": "https://b.example", "title": "B"}
    file = {"type": "file_citation", "file_id": "f", "filename": "a.pdf", "index": 1}
    second = message("2", "Snow.", annotations=[file, {**note, "start_index": 1}])

    answer = answered(first, second)

    text = "Rain ([a.example](https://a.example)).\n\nSnow."
    assert answer["content"] == text
    [cited] = answer["annotations"]
    assert cited["url_citation"] == {
        "url": "https://b.example",
        "title": "B",
        "start_index": text.index("now."),
        "end_index": len(text),
    }


def test_pictures_have_a_field_of_their_own() -> None:
    """One delta has it, without sketches, as clients of Chat Completions know it."""
    url = {"url": "data:image/png;base64,AAAA"}
    images = [{"type": "image_url", "image_url": url}]
    items = (DRAWN, message("1", "There."))

    answer = answered(*items)

    assert (answer["content"], answer["images"]) == ("There.", images)
    assert [d["images"] for d in deltas_of(*items) if "images" in d] == [images]


HEAD = {
    "id": "chatcmpl-1",
    "object": "chat.completion.chunk",
    "created": 1_795_262_400,
    "model": "openai_responses.gpt-5.2",
}


def chunks_of(events: list[RunEvent], *, has_format: bool = False) -> list[Json]:
    """What a caller without a chat reads of a run."""
    view = ChunkRenderer(
        "chatcmpl-1",
        1_795_262_400,
        "openai_responses.gpt-5.2",
        has_format=has_format,
    )
    return [chunk for event in events for chunk in view.render(event)]


def deltas_of(*items: Item, has_format: bool = False) -> list[Json]:
    return deltas_in(run_of(*items), has_format=has_format)[:-1]


def deltas_in(events: list[RunEvent], *, has_format: bool = False) -> list[Json]:
    chunks = chunks_of(events, has_format=has_format)
    choices = [chunk["choices"][0] for chunk in chunks if chunk.get("choices")]
    return [choice["delta"] for choice in choices]


def without_ends(*items: Item) -> list[RunEvent]:
    return [event for event in run_of(*items) if not isinstance(event, ItemDone)]


def joined_text(deltas: list[Json], key: str = "content") -> str:
    return "".join(delta.get(key, "") for delta in deltas)


@pytest.mark.parametrize(
    ("items", "thought", "text"),
    [
        ([LOOK, DONE], "I look.\n\nDone.", "Done."),
        ([LOOK, call("1")], "I look.", ""),
        ([RAIN, LOOK], "I look.", "Rain.\n\nI look."),
    ],
    ids=["said again at the end, as the answer", "before a call", "after the answer"],
)
def test_remark_is_a_thought_while_it_may_be_none_of_the_answer(
    items: list[Item], thought: str, text: str
) -> None:
    deltas = deltas_of(*items)

    assert joined_text(deltas, "reasoning_content") == thought
    assert joined_text(deltas) == text


@pytest.mark.parametrize(
    "items", [[message("1", "Hi")], [call("1")], [reasoning("1", "Hm.")], []]
)
def test_first_delta_says_who_speaks(items: list[Item]) -> None:
    """Clients drop calls without it, or fail at the end."""
    first, *others = deltas_of(*items, message("2", "Bye"))
    assert first == {"role": "assistant", "content": ""}
    assert not any("role" in delta for delta in others)


@pytest.mark.parametrize(
    ("items", "content", "text", "declined"),
    [
        (
            [message("1", "Two"), refusal("2", "Not three.")],
            "Two\n\nNot three.",
            "Two",
            "Not three.",
        ),
        (
            [{**message("1", ""), "content": [TWO, text_part("refusal", "Not 3?")]}],
            "Two?\n\nNot 3?",
            "Two?",
            "Not 3?",
        ),
        # A question mark is held back, as an address may end with it.
        ([refusal("1", "May I help?")], "May I help?", "", "May I help?"),
    ],
)
def test_refusal_has_a_field_of_its_own_where_a_form_was_asked_for(
    items: list[Item], content: str, text: str, declined: str
) -> None:
    """OpenAI's packages would read it as that JSON.

    Otherwise it is the text: what reads both fields would show it twice.
    """
    whole = {"role": "assistant", "content": text, "refusal": declined}
    assert answered(*items, has_format=True) == whole
    deltas = deltas_of(*items, has_format=True)
    assert joined_text(deltas) == text
    assert joined_text(deltas, "refusal") == declined

    assert answered(*items) == {"role": "assistant", "content": content}
    deltas = deltas_of(*items)
    assert joined_text(deltas) == content
    assert not any("refusal" in delta for delta in deltas)


@pytest.mark.parametrize(
    ("item", "kind", "body"),
    [
        (
            call("1"),
            "function",
            {"name": "get_weather", "arguments": '{"city": "Bern"}'},
        ),
        # Clients parse the arguments as JSON, which an empty text is not.
        (
            without(call("1"), "arguments"),
            "function",
            {"name": "get_weather", "arguments": "{}"},
        ),
        (
            custom_call("1", "a note"),
            "custom",
            {"name": "take_note", "input": "a note"},
        ),
        (custom_call("1", ""), "custom", {"name": "take_note", "input": ""}),
        (
            {**call("1"), "name": None},
            "function",
            {"name": "", "arguments": '{"city": "Bern"}'},
        ),
    ],
)
def test_call_has_the_form_of_chat_completions(
    item: Item, kind: str, body: dict[str, str]
) -> None:
    assert chat_tool_call(item) == {"id": "call_1", "type": kind, kind: body}


FULL = ending_of_incomplete("max_output_tokens")


@pytest.mark.parametrize(
    ("ending", "output", "reason"),
    [
        (FULL, [RAIN], "length"),
        (FULL, [], "length"),
        (FULL, [call("1")], "length"),
        (ending_of_incomplete("context_length_exceeded"), [RAIN], "length"),
        (ending_of_incomplete("max_messages"), [RAIN], "length"),
        (ending_of_incomplete("content_filter"), [], "content_filter"),
        (ending_of_incomplete("a_new_word"), [RAIN], "stop"),
        (ending_of_incomplete(None), [], "stop"),
        (Ending("completed"), [call("1")], "tool_calls"),
        (Ending("completed"), [], "stop"),
    ],
)
def test_reason_is_a_word_of_chat_completions(
    ending: Ending, output: list[Item], reason: str
) -> None:
    run = RunDone(ending, output=tuple(output))

    body = result(run)
    *_, last = chunks_of([run])

    assert body["choices"][0]["finish_reason"] == reason
    assert "error" not in body
    choice = {"index": 0, "delta": {}, "finish_reason": reason}
    assert last == {**HEAD, "choices": [choice]}


@pytest.mark.parametrize("code", ["cancelled", "steered"])
def test_answer_that_somebody_stopped_has_an_error(code: str) -> None:
    """No reason of OpenAI says so."""
    body = result(RunDone(ending_of_incomplete(code), output=(RAIN,)))

    assert body["choices"][0]["finish_reason"] == "length"
    assert "error" in body


def test_failure_is_an_error_without_a_reason() -> None:
    """A `stop` would say that all is well."""
    usage = Usage(10, 5, 15)

    _, counted, error = chunks_of([RunDone(CUT, usage, usage)])

    assert error == client_error(CUT.message, 502, ApiError())
    assert counted["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]
    assert counted["usage"]["total_tokens"] == 15


def test_each_chunk_has_a_choice() -> None:
    """Clients read the first one without a look; the usage comes with the reason."""
    usage = Usage(10, 5, 15)
    *_, last = chunks = chunks_of(
        [*run_of(RAIN)[:-1], RunDone(COMPLETED, usage, usage)]
    )

    assert all(len(chunk["choices"]) == 1 for chunk in chunks)
    assert last["choices"][0]["finish_reason"] == "stop"
    assert last["usage"]["total_tokens"] == 15


@pytest.mark.parametrize("ending", [COMPLETED, CUT])
def test_usage_has_a_chunk_of_its_own_if_somebody_asks(ending: Ending) -> None:
    """As OpenAI gives it: without a choice, after the reason, in front of an error.

    With what the answer took, as an answer in one piece has it.
    """
    usage = Usage(10, 5, 15)
    view = ChunkRenderer("c", 1, "m", has_usage_chunk=True)
    report = AnswerReport(cost=Cost(0.5), metadata={"rounds": 2})
    run = RunDone(ending, usage, usage, (RAIN,))

    chunks = [chunk for event in (report, run) for chunk in view.render(event)]
    [place] = [n for n, chunk in enumerate(chunks) if "usage" in chunk]

    assert chunks[place]["choices"] == []
    whole, refused = (completion(r, "c", 1, "m", report) for r in (run, RunDone(CUT)))
    for told in (chunks[place], whole):
        assert (told["usage"]["total_tokens"], told["usage"]["cost"]) == (15, 0.5)
    for told in (chunks[place], whole, refused):
        assert told["execution_metadata"] == {"rounds": 2}
    reasons = [c["choices"][0]["finish_reason"] for c in chunks if c.get("choices")]
    assert [reason for reason in reasons if reason] == ["stop"] * (ending == COMPLETED)
    assert "error" in chunks[-1] or ending == COMPLETED


def test_nothing_counted_has_no_chunk() -> None:
    """Clients would read zeros, or fail at a chunk without a choice and a usage."""
    view = ChunkRenderer("c", 1, "m", has_usage_chunk=True)

    assert all(chunk["choices"] for chunk in view.render(RunDone(COMPLETED)))


def test_note_is_nothing_to_a_plain_caller() -> None:
    assert chunks_of([Status("Trying again in 3 s.")]) == []


@pytest.mark.parametrize(
    ("events", "reason", "calls"),
    [
        pytest.param(run_with_tools(), "stop", [], id="all"),
        pytest.param(
            run_with_tools(output("1")),
            "tool_calls",
            [chat_tool_call(call("2"))],
            id="but one, which is the caller's",
        ),
        pytest.param(
            [*run_of(message("1", "Rain."), call("1"), call("2"))],
            "tool_calls",
            [chat_tool_call(call("1")), chat_tool_call(call("2"))],
            id="none",
        ),
    ],
)
def test_calls_that_were_answered_are_nothing_to_a_plain_caller(
    events: list[RunEvent], reason: str, calls: list[Item]
) -> None:
    """In one piece, and in a stream, which counts those that are left anew."""
    done = events[-1]
    assert isinstance(done, RunDone)

    [choice] = result(done)["choices"]
    deltas = deltas_in(events)

    assert choice["finish_reason"] == reason
    assert choice["message"].get("tool_calls", []) == calls
    assert choice["message"]["content"] == joined_text(deltas) == "Rain."
    in_the_end = deltas[-1 - len(calls) : -1]
    streamed = [each for delta in in_the_end for each in delta["tool_calls"]]
    assert streamed == [{"index": n, **made} for n, made in enumerate(calls)]
    assert chunks_of(events)[-1]["choices"][0]["finish_reason"] == reason


def test_links_do_not_tell_who_searched_and_annotations_say_where_they_are() -> None:
    """In the form of Chat Completions, the places those of the whole answer."""
    deltas = deltas_in(run_of_transcript("web-search.sse"))

    [notes] = [delta["annotations"] for delta in deltas if "annotations" in delta]
    text = joined_text(deltas)
    cited = [note["url_citation"] for note in notes]
    assert len(cited) == 4
    year = "https://www.harbour.example/chronicle?year=1963"
    assert cited[0]["url"] == cited[2]["url"] == year
    for where in cited:
        link = text[where["start_index"] : where["end_index"]]
        assert link.startswith("([")
        assert link.endswith(f"]({where['url']}))")
        assert where["title"]


CITED = {
    **{"type": "url_citation", "url": "https://a.example", "title": "A"},
    **{"start_index": 0, "end_index": 3},
}


def cited_place(deltas: list[Json]) -> int:
    """Where the only citation of an answer begins."""
    [[note]] = [delta["annotations"] for delta in deltas if "annotations" in delta]
    return int(note["url_citation"]["start_index"])


def test_second_message_counts_from_the_beginning_of_the_answer() -> None:
    deltas = deltas_of(message("1", "One"), message("2", "Two.", annotations=[CITED]))

    assert joined_text(deltas) == "One\n\nTwo."
    assert cited_place(deltas) == 5


def test_second_part_counts_from_the_beginning_of_the_answer() -> None:
    first = message("1", "https://b.example?utm_source=openai ")["content"]
    second = message("1", "Two.", annotations=[CITED])["content"]

    deltas = deltas_of({**message("1", ""), "content": [*first, *second]})

    assert joined_text(deltas)[cited_place(deltas) :] == "Two."


def test_text_that_broke_off_is_told_to_its_end() -> None:
    deltas = deltas_in(without_ends(message("1", "Why?utm_sou")))

    assert joined_text(deltas) == "Why?utm_sou"
    deltas = deltas_in(without_ends(message("1", "https://a.b?utm_source=openai")))
    assert joined_text(deltas) == "https://a.b"


def test_commentary_that_broke_off_leaves_nothing_in_the_answer() -> None:
    """Its last mark might have begun an address."""
    look = message("1", "Shall I look?", "commentary")

    deltas = deltas_in(without_ends(look, message("2", "Rain.")))

    assert joined_text(deltas, "reasoning_content") == "Shall I look?"
    assert joined_text(deltas) == "Rain."


def test_file_stands_below_the_text() -> None:
    """Which has gone out with its own address."""
    text = "[a.csv](sandbox:/mnt/data/a.csv)"
    links = {"sandbox:/mnt/data/a.csv": "/api/v1/files/f-1/content"}
    events: list[RunEvent] = [
        event._replace(card={"links": links}) if isinstance(event, ItemDone) else event
        for event in run_of(message("1", text))
    ]

    content = joined_text(deltas_in(events))

    assert content == f"{text}\n\n[a.csv](/api/v1/files/f-1/content)"


def test_probabilities_of_tokens_are_in_the_choice() -> None:
    """The stream has them with the end of each message, in the form of a chunk."""
    first = {"token": "Ra", "logprob": -0.1, "bytes": [82, 97], "top_logprobs": []}
    bare = {"token": "in.", "logprob": -0.2}
    others = [{"token": "Sun", "logprob": -2.0, "bytes": None}]
    rows = [first, bare, {**bare, "top_logprobs": others}]
    items = [
        message("1", "Hm.", "commentary", logprobs=[first]),
        message("2", "Rain.", logprobs=rows),
    ]

    told = [first, {**bare, "top_logprobs": []}, rows[2]]
    expected = {"content": told, "refusal": None}
    [choice] = result(ended(*items))["choices"]
    assert choice["logprobs"] == expected
    chunks = [chunk for chunk in chunks_of(run_of(*items)) if chunk.get("choices")]
    streamed = [c["choices"][0] for c in chunks if "logprobs" in c["choices"][0]]
    assert [row["logprobs"] for row in streamed] == [expected]
    assert "logprobs" not in result(ended(message("1", "Hi")))["choices"][0]


def test_names_that_only_the_model_knows_count_in_no_place() -> None:
    said = "One.\ue200cite\ue202turn0search0\ue201 Two."
    place = {"start_index": said.index("Two"), "end_index": len(said)}

    deltas = deltas_of(message("1", said, annotations=[{**CITED, **place}]))

    assert joined_text(deltas) == "One. Two."
    assert cited_place(deltas) == 5
