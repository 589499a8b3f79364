"""Pictures of tools come back to the outputs they belong to."""

from typing import Any

import pytest

from chats.parts import image_part, input_message, text_part
from chats.pictures import BMP, JPEG, PIXEL, data_url
from hosts.servers.functions import HostFunctions
from openai_responses.items import Item
from openai_responses.loop.events import ToolOutput
from owui_chat.host_tools import TOOL_IMAGES_PREFIX
from owui_chat.input.attachments import (
    UNREADABLE_IMAGE,
    add_tool_images,
    tool_image,
)
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    ToolMessage,
    UserMessage,
    parse_messages,
)
from owui_chat.render.items import output_host_item
from runs.sample import call, without

Json = dict[str, Any]
SECOND = data_url(JPEG, "image/jpeg")
MADE_UP = "Here are the images from the tool results above. Please analyze them."


def returned(call_id: str, *urls: str) -> ToolMessage:
    words = f"text {call_id}"
    parts = [text_part(words), *map(image_part, urls)]
    return ToolMessage(call_id, parts if urls else words)


def made_up(*urls: str, words: str = MADE_UP) -> UserMessage:
    return input_message(words, *map(image_part, urls))


def output(call_id: str, *urls: str) -> Item:
    """An output as the host stores it."""
    images = [{"type": "input_image", "image_url": url} for url in urls]
    parts = [text_part(f"text {call_id}"), *images]
    head = {"type": "function_call_output", "id": f"fco_{call_id}"}
    return {**head, "call_id": call_id, "output": parts}


def row(*outputs: Item) -> Json:
    return {"q": {"role": "user"}, "a": {"role": "assistant", "output": [*outputs]}}


TEXT = AssistantText("x")


ONE, TWO, THREE = (returned(name) for name in "123")
LAST_HAS_ALL = ([TEXT, ONE, TWO, made_up(PIXEL)], [TEXT, ONE, returned("2", PIXEL)])


@pytest.mark.parametrize(
    ("parts", "with_images", "outputs"),
    [
        # The made-up message is gone.
        ([ONE, made_up(PIXEL), TEXT], [returned("1", PIXEL), TEXT], [output("1", "a")]),
        (
            [ONE, TWO, THREE, made_up(PIXEL, SECOND)],
            [returned("1", PIXEL), TWO, returned("3", SECOND)],
            [output("1", "a"), output("2"), output("3", "b")],
        ),
        # Only outputs right in front of the pictures count.
        ([ONE, *LAST_HAS_ALL[0]], [ONE, *LAST_HAS_ALL[1]], []),
        # Of the host's outputs the last has all, before they are stored and after it.
        (*LAST_HAS_ALL, None),
        (*LAST_HAS_ALL, [output("2", "a", "b")]),
        (*LAST_HAS_ALL, [{**output("1", "a"), "id": "fco_5f2c"}]),
    ],
)
def test_pictures_go_back_to_their_outputs(
    parts: list[ChatPart], with_images: list[ChatPart], outputs: list[Item] | None
) -> None:
    stored = {"a": None} if outputs is None else row(*outputs)

    assert add_tool_images(parts, stored) == with_images


def test_images_are_added_only_to_our_tool_cards() -> None:
    sent = returned("1", SECOND).output
    item = {"type": "function_call_output", "call_id": "1", "output": sent}
    stored = {"type": "input_image", "image_url": "a"}
    card = output_host_item(ToolOutput(0, item, False, {"stored": [stored]}))
    parts: list[ChatPart] = [returned("1"), returned("2"), made_up(PIXEL)]

    with_images = add_tool_images(parts, row(card))

    assert with_images == [returned("1", PIXEL), returned("2")]


def test_pictures_go_to_an_output_once() -> None:
    """A caller can write such messages; the second one stays what it is."""
    parts: list[ChatPart] = [returned("1"), made_up(PIXEL), made_up(PIXEL)]

    with_images = add_tool_images(parts, {})

    assert with_images == [returned("1", PIXEL), made_up(PIXEL)]


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (returned("1"), made_up(PIXEL, words="What is this?")),
        (returned("1"), made_up()),
        (returned("1"), input_message()),
        (returned("1"), UserMessage({**made_up(PIXEL).item, "role": "developer"})),
        (TEXT, made_up(PIXEL)),
        (returned("1"), made_up(PIXEL, words=f"{TOOL_IMAGES_PREFIX} Draw it.")),
    ],
    ids=[
        *("own words", "no picture", "no content", "developer", "no output before it"),
        "words as the host's",
    ],
)
def test_messages_that_the_host_did_not_make_stay(
    before: ChatPart, message: UserMessage
) -> None:
    """A person may show a picture right after a tool."""
    assert add_tool_images([before, message], {}) == [before, message]


def test_picture_that_nobody_reads_becomes_words() -> None:
    """The API would refuse the whole request."""
    note = text_part(UNREADABLE_IMAGE)

    assert tool_image(data_url(BMP, "image/bmp")) == note
    assert tool_image("/api/v1/files/gone/content") == note
    assert tool_image(PIXEL) == image_part(PIXEL)


@pytest.mark.host
def test_host_messages_are_read_as_tool_outputs_with_images(
    host_functions: HostFunctions,
) -> None:
    calls = [without(call(n, call_id=n), "id") for n in "123"]
    outputs = [output("1", PIXEL), output("2"), output("3", SECOND, PIXEL)]
    message = {"type": "message", "content": [{"type": "output_text", "text": "So."}]}
    stored = [*calls, *outputs, message]

    _, parts = parse_messages(host_functions.convert(stored))
    with_images = add_tool_images(parts, {"a": {"output": stored}})

    assert with_images[3:] == [
        *(returned("1", PIXEL), returned("2"), returned("3", SECOND, PIXEL)),
        AssistantText("So."),
    ]
