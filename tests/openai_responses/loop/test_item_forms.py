"""Items in the forms of other servers, read in the form of the API."""

import json

import pytest

from openai_responses.items import Item
from openai_responses.transport.stream import ItemDone
from runs.log import log_of
from runs.responses import EMPTY_END, fed, output_of
from upstream import wire


@pytest.mark.parametrize("comes", ["in deltas", "with its end", "last", "each time"])
def test_arguments_that_are_encoded_twice_are_read_once(comes: str) -> None:
    """Of vLLM (its issue 54964): no host and no client reads a text as arguments."""
    inner = '{"city":  "Bern"}'
    began, *deltas, ended = wire.function_call("look", json.dumps(inner))
    whole_end = wire.ended("completed", output=[ended["item"]])
    events = {
        "in deltas": [began, *deltas, EMPTY_END],
        "with its end": [began, ended, EMPTY_END],
        "last": [whole_end],
        "each time": [began, *deltas, ended, whole_end],
    }
    [call] = output_of(*events[comes])
    assert call["arguments"] == inner


@pytest.mark.parametrize("more", ["}", " Done.", "<|im_end|>"])
def test_call_that_the_snapshot_repeats_with_what_follows_its_arguments(
    more: str,
) -> None:
    """It has ended, and nothing of it is longer."""
    events = wire.function_call("look", '{"a":1}' + more)
    state, told = fed(*events, wire.completed(events[-1]["item"]))
    assert log_of(told)[-2:] == ["0 ended function_call", "turn ended"]
    assert sum(isinstance(event, ItemDone) for event in told) == 1
    assert state.output == [wire.call_item("look", '{"a":1}')]


@pytest.mark.parametrize(("given", "sent"), [({"a": 1}, '{"a": 1}'), (5, "5")])
def test_input_of_a_custom_call_is_a_text(given: object, sent: str) -> None:
    """Programs read it as one, and the API takes nothing else back."""
    *_, ended = wire.custom_call("look")
    output = [{**ended["item"], "input": given}]
    [call] = output_of(wire.ended("completed", output=output))
    assert call["input"] == sent


def test_parts_of_a_message_are_sound() -> None:
    """A text without a part around it gets one, also next to one of SGLang's router."""
    content = ["Hello ", "", {"type": "text", "text": "world"}]
    [message] = output_of(wire.done({**wire.message_item(), "content": content}))
    assert [(part["type"], part["text"]) for part in message["content"]] == [
        ("output_text", "Hello "),
        ("output_text", "world"),
    ]
    [alone] = output_of(wire.done({**wire.message_item(), "content": content[2]}))
    assert alone["content"] == wire.message_item("world")["content"]


ADDRESS = "https://x.example/1.png"


@pytest.mark.parametrize(
    ("image", "result"),
    [
        ({"b64_json": "AAAA", "mime_type": "image/gif"}, "data:image/gif;base64,AAAA"),
        ({"image_url": {"url": ADDRESS}, "mime_type": "image/png"}, ADDRESS),
        ({"image_url": "data:image/gif;base64,AA"}, "data:image/gif;base64,AA"),
        ({"image": {"b64_json": "AAAA"}}, "AAAA"),
        ({"inlineData": {"mimeType": "", "data": "AAAA"}}, "AAAA"),
        ({"result": [{"url": ADDRESS}, {"url": "x"}]}, ADDRESS),
        ({"result": [{"url": {"url": {"url": {"url": "x"}}}}]}, ""),
        ({"result": []}, ""),
        ({}, ""),
    ],
)
def test_image_in_another_form_is_one_of_a_call(image: Item, result: str) -> None:
    """It is shown, stored and sent again as such; or it is said that there is none."""
    said = wire.message_item("There.")
    content = [*said["content"], {"type": "output_image", **image}]
    drawn = {**said, "content": content}
    call = {"type": "image_generation_call", "id": "ig_1", **image}

    for events in ([wire.done(drawn)], [wire.done(drawn), wire.done(drawn)], []):
        text, alone = output_of(*events, wire.completed(drawn))
        assert text == said
        assert (alone["type"], alone["result"]) == (call["type"], result)
    [called] = output_of(wire.done(call), wire.completed(call))
    assert called["result"] == result


@pytest.mark.parametrize(
    ("written", "read"), [("look<|channel|>json", "look"), (" <|look ", "<|look")]
)
def test_name_of_a_call_is_read_without_marks_of_the_model(
    written: str, read: str
) -> None:
    """A name that begins with one stays: a call without a name is refused."""
    [call] = output_of(wire.done(wire.call_item(written, "{}")))
    assert call["name"] == read


@pytest.mark.parametrize(
    ("came", "read"),
    [
        ('{}{"a": 1}', '{"a": 1}'),
        ('{"a": 1} {"a":1}', '{"a":1}'),
        ('{"a": 1}{"a": 2}', '{"a": 1}{"a": 2}'),
        ('{"a": "}{"}', '{"a": "}{"}'),
        ('{}{"a"', '{}{"a"'),
        ("[" * 5000 + "}{", "[" * 5000 + "}{"),
        ('{"a": 1}<|call|>', '{"a": 1}'),
        ('{"a": "}"} \t<|endoftext|>', '{"a": "}"}'),
        ("{}}", "{}"),
        ('{"a": 1}\n\nI\'ll look.', '{"a": 1}'),
        ('{"a": "one\ntwo"}<|call|>', '{"a": "one\\ntwo"}'),
        ('{} "a": 1}', '{} "a": 1}'),
        ("[1] <|call|>", "[1] <|call|>"),
        ("null", "{}"),
        ("null 1", "null 1"),
        # Line ends in texts are escaped; between texts they are no fault.
        ('{"a": "1\n2\t3\x1b"}', '{"a": "1\\n2\\t3\\u001b"}'),
        ('{\n  "a": "1"\n}', '{\n  "a": "1"\n}'),
        ('{"a": "1\n2"', '{"a": "1\n2"'),
        ('["1\n2"]', '["1\n2"]'),
        ('{"a":\n' * 200 + "1" + "}" * 200, '{"a":\n' * 200 + "1" + "}" * 200),
        # The model is told that these are no object, and reads what it wrote.
        *((text, text) for text in ('"[1]"', '"{"', '"city"', '"{\\"a\\": 1"')),
    ],
)
def test_arguments_that_are_no_strict_json_are_mended(came: str, read: str) -> None:
    """Hosts and clients read strict JSON; what is none otherwise stays.

    Gateways repeat what Anthropic begins with; two objects that differ are none.
    """
    call = wire.call_item("look", came)
    for events in (wire.function_call("look", came), [wire.done(call)]):
        for end in ([], [wire.ended("completed")]):
            assert output_of(*events, *end) == [{**call, "arguments": read}]


def test_citations_in_other_forms_are_read() -> None:
    page = {"url": "https://a.example", "start_index": 0, "end_index": 5}
    message = wire.message_item("Hello")
    file = {"type": "file_citation", "file_id": "file-1"}
    nested = {"type": "url_citation", "url_citation": page}
    odd = [{"url": "javascript:x"}, {**file, "url": "https://a.example"}]
    others = [page, {**page, "type": "citation"}, *odd]
    message["content"][0]["annotations"] = [nested, file, 7, *others]
    [item] = output_of(wire.done(message))
    flat = {"type": "url_citation", **page}
    assert item["content"][0]["annotations"] == [flat, file, flat, flat, *odd]


def test_sealed_reasoning_has_a_summary() -> None:
    """The API demands one of an item that it gets back; not all servers write it."""
    sealed = {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}
    [item] = output_of(wire.done(sealed))
    assert item == {**sealed, "summary": []}
