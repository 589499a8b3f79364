"""Every event of the API is known; what is no event is refused in one way."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types.responses.response_stream_event import ResponseStreamEvent

from openai_responses.errors import ApiError, MalformedEvent, UnreadableAnswer
from openai_responses.transport.stream import (
    AnnotationAdded,
    EndMark,
    FinalResponse,
    ItemAdded,
    ItemDone,
    LooseWords,
    PartDone,
    PartialImage,
    ResponseOpened,
    ServerSentEvent,
    StreamError,
    StreamEvent,
    TextDelta,
    TextDone,
    describe_unreadable,
    is_opening,
    parse_event,
    read_opening,
)
from upstream.event_types import KNOWN_TYPES

ITEM: dict[str, Any] = {"type": "message", "id": "msg_1"}
DELTA = "response.output_text.delta"
RESPONSE = {"id": "resp_1", "output": []}


def typed(**fields: Any) -> StreamEvent:
    return parse_event(ServerSentEvent("", json.dumps(fields)))


def test_all_types_are_known() -> None:
    """The list of names is the openai package's.

    An event without fields is unknown to us, an empty error or end, or malformed.
    """
    union, *_ = get_args(ResponseStreamEvent)
    names = [get_args(m.model_fields["type"].annotation) for m in get_args(union)]
    assert {name for literals in names for name in literals} == KNOWN_TYPES
    assert len(KNOWN_TYPES) == 59
    for name in KNOWN_TYPES:
        event = None
        with suppress(MalformedEvent):
            event = typed(type=name)
        end = FinalResponse(name.partition(".")[2], {})
        assert event in (None, StreamError(ApiError()), end), name


@pytest.mark.parametrize(
    ("name", "part", "field", "kind"),
    [
        ("output_text", "content_index", "text", "text"),
        ("refusal", "content_index", "refusal", "refusal"),
        ("reasoning_summary_text", "summary_index", "text", "summary"),
        ("reasoning_text", "content_index", "text", "reasoning"),
        ("reasoning", "content_index", "text", "reasoning"),  # Open Responses
        ("reasoning_content", "content_index", "text", "reasoning"),
        ("reasoning_summary", "summary_index", "text", "summary"),  # of older packages
        ("function_call_arguments", None, "arguments", "arguments"),
        ("custom_tool_call_input", None, "input", "arguments"),
        ("mcp_call_arguments", None, "arguments", "arguments"),
        ("code_interpreter_call_code", None, "code", "code"),
    ],
)
def test_text_grows_by_deltas_and_ends_whole(
    name: str, part: str | None, field: str, kind: str
) -> None:
    position = {"output_index": 3, part: 2} if part else {"output_index": 3}
    number = 2 if part else 0

    delta = typed(type=f"response.{name}.delta", delta="é", extra=1, **position)
    done = typed(**{"type": f"response.{name}.done", field: "all", **position})

    assert delta == TextDelta(3, kind, number, "é")
    assert done == TextDone(3, kind, number, "all")


@pytest.mark.parametrize(
    ("name", "field"),
    [("output_text", "text"), ("function_call_arguments", "arguments")],
)
def test_text_that_is_null_is_none(name: str, field: str) -> None:
    """A gateway leaves the text to the deltas or to the item."""
    assert typed(**{"type": f"response.{name}.done", field: None}) is None
    assert typed(type=f"response.{name}.delta", delta=None) is None


def test_text_without_a_place_is_the_first() -> None:
    """Some gateways write null for what they do not know.

    Code may have more brackets than JSON may have levels.
    """
    delta = "[" * 200
    grown = typed(type="response.output_text.delta", content_index=None, delta=delta)
    assert grown == TextDelta(-1, "text", 0, delta)


def test_arguments_that_are_an_object() -> None:
    ended = {"type": "response.function_call_arguments.done", "output_index": 0}
    event = typed(**ended, arguments={"city": "Zürich"})
    assert event == TextDone(0, "arguments", 0, '{"city": "Zürich"}')
    with pytest.raises(MalformedEvent):
        typed(type="response.output_text.done", text={"city": "Zürich"})


@pytest.mark.parametrize(("word", "made"), [("added", ItemAdded), ("done", ItemDone)])
def test_items_stay_the_dicts_that_came(word: str, made: Any) -> None:
    item = {**ITEM, "tomorrow": {"a": [1]}}
    event = typed(type=f"response.output_item.{word}", output_index=9, item=item)
    assert event == made(9, item)


@pytest.mark.parametrize(
    ("name", "own", "status"),
    [
        ("completed", "incomplete", "incomplete"),
        ("completed", "failed", "failed"),
        ("completed", "in_progress", "completed"),
        ("incomplete", "completed", "incomplete"),
        ("failed", None, "failed"),
        ("done", "completed", "completed"),
        ("done", "incomplete", "incomplete"),
        ("done", None, "completed"),
        ("cancelled", "cancelled", "cancelled"),
        ("completed", "cancelled", "cancelled"),
    ],
)
def test_end_under_another_name_is_what_the_response_says(
    name: str, own: str | None, status: str
) -> None:
    """vLLM calls each end completed; other servers end with `response.done`."""
    response = {**RESPONSE, "status": own}
    event = typed(type=f"response.{name}", response=response)
    assert event == FinalResponse(status, response)


@pytest.mark.parametrize("body", [None, [], "done"])
def test_end_without_a_response(body: object) -> None:
    event = typed(type="response.completed", response=body)
    assert event == FinalResponse("completed", {})


def test_name_on_the_event_line() -> None:
    """It counts where `type` is not in the JSON; an item keeps its integers."""
    named = ServerSentEvent("response.completed", json.dumps({"response": RESPONSE}))
    assert parse_event(named) == FinalResponse("completed", RESPONSE)
    item = {"type": "function_call", "large": 2**70}
    wire = {"type": "response.output_item.done", "output_index": 0, "item": item}
    misnamed = ServerSentEvent("response.output_text.delta", json.dumps(wire))
    assert parse_event(misnamed) == ItemDone(0, item)


FIELDS = {"code": "c", "message": "m", "param": "p"}
NESTED = {**FIELDS, "type": "t"}
CAUSE = {"error": {"code": "c"}}


@pytest.mark.parametrize(
    ("name", "wire_event", "error"),
    [
        ("", {"error": {"message": "m", "code": 502}}, ApiError("502", message="m")),
        ("", {"error": "m"}, ApiError(message="m")),
        ("", {"object": "error", "message": "m"}, ApiError(message="m")),
        ("", {"type": "odd", "error": {"code": "c"}}, ApiError("c")),
        ("error", {"type": "t", "message": "m"}, ApiError(None, "t", message="m")),
        ("error", {"message": "m"}, ApiError(message="m")),
        ("", {"type": "response.error", "error": {"code": "c"}}, ApiError("c")),
        ("", {"type": "response.error", "response": CAUSE}, ApiError("c")),
        ("", {"type": "response.error", "message": "m"}, ApiError(message="m")),
        ("", {"object": "chat.completion.chunk", "error": "m"}, ApiError(message="m")),
        # The flat one's `type` says nothing about the cause; the nested one's does.
        ("", {"type": "error", **FIELDS}, ApiError("c", None, "p", "m")),
        ("", {"type": "error", "error": NESTED}, ApiError("c", "t", "p", "m")),
    ],
)
def test_error_has_many_names(
    name: str, wire_event: dict[str, Any], error: ApiError
) -> None:
    """At a gateway no type at all, one of the cause, or only that of the event."""
    event = ServerSentEvent(name, json.dumps(wire_event))
    assert parse_event(event) == StreamError(error)


@pytest.mark.parametrize("text", ["Bad gateway", "null", "{cut", "[]"])
def test_error_without_json(text: str) -> None:
    """The name of the event says that it is one; elsewhere the text is nothing."""
    event = ServerSentEvent("error", f" {text}\n")
    assert parse_event(event) == StreamError(ApiError(message=text))
    with pytest.raises(MalformedEvent):
        parse_event(event._replace(event="message"))
    with pytest.raises(MalformedEvent):
        parse_event(event._replace(data=" "))


def test_event_that_is_no_error() -> None:
    events: list[dict[str, Any]] = [
        {"error": None},
        {"error": {}, "message": "m"},
        {"type": "keepalive", "error": None},
        {"type": "response.mcp_call.failed", "error": {"message": "m"}},
        {"type": "response.odd", "object": "chat.completion.chunk"},
        {"object": "response"},
        {"object": ["chat.completion.chunk"]},
        {"message": "m", "code": "c"},
    ]
    assert [row for row in events if isinstance(typed(**row), StreamError)] == []


@pytest.mark.parametrize("kind", ["chat.completion", "chat.completion.chunk"])
def test_event_of_chat_completions(kind: str) -> None:
    """The address is that of another API; the message has nothing of the event."""
    with pytest.raises(UnreadableAnswer) as other:
        typed(object=kind, id="canary", choices=[])
    assert other.value.fault.settings == ("base_url",)
    assert "Chat Completions" in str(other.value)
    assert "canary" not in str(other.value)


ODD = "with odd fields"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("null", "no object"),
        ("[1]", "no object"),
        ('"secret"', "no object"),
        ("ping", "no JSON"),
        ('{"type": "secret', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("1" * 5000, "no JSON"),
        ('{"type": "response.queued"} and more', "no JSON"),
        ('\ufeff{"type": "response.queued"}', "no JSON"),
        ('{"type": "response.output_item.done", "item": 1}', ODD),
        ('{"type": "response.output_item.done", "output_index": 0, "item": []}', ODD),
        ('{"type": "response.output_text.delta"}', ODD),
        ('{"type": "response.output_text.delta", "output_index": 0}', ODD),
        ('{"type": "response.output_text.delta", "output_index": 0, "delta": 1}', ODD),
        (
            '{"type": "response.output_text.delta", "output_index": "x", "delta": ""}',
            ODD,
        ),
        (
            '{"type": "response.output_text.delta", "output_index": 1.5, "delta": ""}',
            ODD,
        ),
    ],
)
def test_unreadable_event_is_refused_without_a_quotation(text: str, kind: str) -> None:
    """A word of ours says what it is."""
    event = ServerSentEvent("", text)
    with pytest.raises(MalformedEvent) as refused:
        parse_event(event)
    assert len(str(refused.value)) < 120
    assert describe_unreadable(event) == kind


def test_annotation_has_the_place_of_its_text() -> None:
    name = "response.output_text.annotation.added"
    note = {"type": "url_citation", "url": "https://a.example"}
    position = {"output_index": 2, "content_index": 1}

    assert typed(type=name, **position, annotation=note) == AnnotationAdded(2, note)
    assert typed(type=name, **position, annotation=None) is None
    nested = {"type": "url_citation", "url_citation": {"url": "https://a.example"}}
    assert typed(type=name, **position, annotation=nested) == AnnotationAdded(2, note)


def test_partial_picture_has_its_format() -> None:
    name = "response.image_generation_call.partial_image"
    drawn = {"output_index": 2, "partial_image_index": 1, "partial_image_b64": "aGk="}

    event = typed(type=name, **drawn, output_format="webp")

    assert event == PartialImage(2, "aGk=", "webp")
    assert typed(type=name, **drawn) == PartialImage(2, "aGk=", "")
    with pytest.raises(MalformedEvent):
        typed(type=name, **{**drawn, "partial_image_b64": 1})


@pytest.mark.parametrize(
    "name", ["keepalive", "response.created", "response.aura.delta", "", "[DONE]"]
)
def test_unknown_events_mean_nothing(name: str) -> None:
    assert typed(type=name) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
KEYS = (
    "output_index content_index summary_index delta text refusal arguments input item "
    "response error code message"
)
_FIELDS = st.fixed_dictionaries(
    {"type": st.sampled_from(sorted(KNOWN_TYPES)) | _JSON},
    optional={name: _JSON for name in KEYS.split()},
)


@given(wire_event=_FIELDS | _JSON, name=st.text(max_size=8))
@example(wire_event={"type": [1]}, name="")
@example(wire_event={"type": {"a": 1}}, name="")
@example(wire_event={"type": 1}, name="")
def test_any_json_is_an_event_or_malformed(wire_event: Any, name: str) -> None:
    try:
        event = parse_event(ServerSentEvent(name, json.dumps(wire_event)))
    except MalformedEvent:
        return
    assert isinstance(event, StreamEvent)


@pytest.mark.parametrize("blank", [" ", "\t\n\r "])
def test_blank_around_an_event(blank: str) -> None:
    text = '{"type": "response.queued"}'

    assert parse_event(ServerSentEvent("", blank + text + blank)) is None
    with pytest.raises(MalformedEvent):
        parse_event(ServerSentEvent("", f"{text}\u00a0"))


def test_message_that_is_no_event_may_be_the_cause() -> None:
    """Bedrock sends one alone; with a type it is an event that is not used here.

    A gateway has another name for it (anomalyco/opencode 20005).
    """
    words = {"message": "Too many tokens, please wait."}
    cause = LooseWords(ApiError(message=words["message"]))
    assert typed(**words) == typed(error_message=words["message"]) == cause
    assert typed(type="notice", **words) is None
    assert typed(progress=1) is None


@pytest.mark.parametrize("name", ["created", "queued", "in_progress"])
def test_response_as_it_was_opened_needs_no_parser(name: str) -> None:
    """It repeats the request, and nothing of it is used."""
    kind = f"response.{name}"
    data = f'{{"type":"{kind}","sequence_number":0,"response":{{"tools":[]}}}}'

    assert is_opening(ServerSentEvent(kind, data))
    assert parse_event(ServerSentEvent(kind, data)) is None


def test_type_alone_says_whether_an_event_is_parsed() -> None:
    for name, kind in (
        ("response.created", "response.output_item.added"),
        ("response.created", "error"),
        ("", "response.created"),
        ("response.completed", "response.completed"),
    ):
        data = json.dumps({"type": kind, "item": ITEM}, separators=(",", ":"))
        assert not is_opening(ServerSentEvent(name, data)), (name, kind)


def test_reason_of_a_failure_may_be_next_to_the_response() -> None:
    reason = {"code": "upstream_error"}
    for response in ({"id": "r", "error": None}, {"id": "r"}, None):
        event = typed(type="response.failed", response=response, error=reason)
        assert isinstance(event, FinalResponse)
        assert event.response["error"] == reason
    own = {"error": {"code": "own"}}
    event = typed(type="response.failed", response=own, error=reason)
    assert event == FinalResponse("failed", own)


@pytest.mark.parametrize("place", [2**61 - 1, -(2**61) + 1, 10**30])
def test_places_that_are_too_far_are_none(place: int) -> None:
    """Thousands can be chosen to have one hash, which takes quadratic time."""
    delta = {"delta": "Hi", "output_index": place}
    text = typed(type="response.output_text.delta", content_index=place, **delta)
    thought = {"summary_index": place, **delta, "output_index": 3}
    begun = typed(type="response.output_item.added", output_index=place, item=ITEM)

    assert text == TextDelta(-1, "text", 0, "Hi")
    summary = typed(type="response.reasoning_summary_text.delta", **thought)
    assert summary == TextDelta(3, "summary", 0, "Hi")
    assert begun == ItemAdded(-1, ITEM)


@pytest.mark.parametrize("form", [float, str])
def test_places_in_other_forms_are_read(form: Callable[[int], object]) -> None:
    """Gateways in Java write `1.0` for each number, and others texts."""
    text = {"output_index": form(3), "content_index": form(1)}
    part = {"type": "output_text", "text": "Hi"}
    name = "response.content_part.done"

    for places in (text, {**text, "output_index": 3}, {**text, "content_index": 1}):
        delta = typed(type=DELTA, delta="Hi", **places)
        assert delta == TextDelta(3, "text", 1, "Hi")
    assert typed(type=name, part=part, **text) == PartDone(3, "text", 1, "Hi")
    assert typed(type=name, part=part) == PartDone(-1, "text", 0, "Hi")
    for odd in ("odd", ["output_text"]):
        assert typed(type=name, part={**part, "type": odd}) is None
    item = typed(type="response.output_item.done", item=ITEM, output_index=form(3))
    assert item == ItemDone(3, ITEM)


@pytest.mark.parametrize("again", ["data: ", "data:data: "])
def test_event_that_was_framed_twice_is_read(again: str) -> None:
    """Servers write the field themselves, and so does their package."""
    event = {"type": DELTA, "delta": "Hi", "output_index": 0}
    framed = f"{again}{json.dumps(event)}\n\n"
    assert parse_event(ServerSentEvent("", framed)) == TextDelta(0, "text", 0, "Hi")
    assert parse_event(ServerSentEvent("", f"{again}[DONE]")) == EndMark()
    with pytest.raises(MalformedEvent):
        parse_event(ServerSentEvent("", again))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"status": 503, "error": {"message": "No."}}, "503"),
        ({"status_code": 429, "error": {"message": "No."}}, "429"),
        ({"status": 429, "error": {"type": "usage_limit_reached"}}, None),
        ({"status": 429, "error": {"code": "slow_down"}}, "slow_down"),
        ({"status": 200, "error": {"message": "No."}}, None),
        ({"error": {"message": "upstream error", "status": 401}}, "401"),
        ({"error": {"message": "No.", "status": "UNAVAILABLE"}}, None),
    ],
)
def test_status_next_to_an_error_is_its_code(
    fields: dict[str, Any], code: str | None
) -> None:
    """As in the frames of a WebSocket; a word of the API says more."""
    event = typed(type="error", **fields)
    assert isinstance(event, StreamError)
    assert event.error.code == code


def test_id_of_the_response_is_read_with_or_without_a_parser() -> None:
    spaced = {"type": "response.created", "response": {"object": "r", "id": "resp_1"}}
    text = json.dumps({**spaced, "response": {"id": "resp_1"}}, separators=(",", ":"))
    begun = ServerSentEvent("response.created", text)
    assert read_opening(begun) == typed(**spaced) == ResponseOpened("resp_1")
    progress = text.replace("created", "in_progress")
    assert read_opening(ServerSentEvent("response.in_progress", progress)) is None


def test_end_whose_response_is_not_inside_of_it() -> None:
    """So cursor2api wrote it, with the type in the name alone (its change 115)."""
    sent = ServerSentEvent("response.completed", json.dumps(RESPONSE))
    assert parse_event(sent) == FinalResponse("completed", RESPONSE)
    both = typed(type="response.completed", response=RESPONSE, output=["other"])
    assert both == FinalResponse("completed", RESPONSE)


def test_id_that_is_no_text_is_that_of_the_call() -> None:
    named = {"item_id": 5, "call_id": "call_1", "output_index": 0, "delta": "{"}

    event = typed(type="response.function_call_arguments.delta", **named)

    assert getattr(event, "item_id", None) == "call_1"
