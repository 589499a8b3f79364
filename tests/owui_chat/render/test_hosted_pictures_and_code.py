"""Pictures and code, as the page gets them."""

from collections.abc import Iterable
from typing import Any

import pytest

from calls.outcomes import host_events
from openai_responses.endings import COMPLETED
from openai_responses.items import Item
from openai_responses.loop.events import RunDone, RunEvent
from openai_responses.transport.stream import (
    ItemAdded,
    ItemDone,
    PartialImage,
    TextDelta,
)
from runs.sample import message, on_page, run_of, run_of_transcript

Json = dict[str, Any]
CODE_CARD = "open_webui:code_interpreter"
FILE = {"type": "image", "id": "f-1", "url": "/api/v1/files/f-1/content"}
OTHER = {"type": "image", "id": "f-2", "url": "/api/v1/files/f-2/content"}
DRAWN: Item = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "result": "AAAA",
}


def shown(events: Iterable[RunEvent]) -> list[Json]:
    return on_page(events)[0]


def with_card(events: Iterable[RunEvent], kind: str, **card: Any) -> list[RunEvent]:
    """A run in which items of one type ended with a card."""
    return [
        (
            event._replace(card=card)
            if isinstance(event, ItemDone) and event.item["type"] == kind
            else event
        )
        for event in events
    ]


def last_items(chunks: list[Json]) -> list[Item]:
    return [c["item"] for c in chunks if c.get("type") == "response.output_item.done"]


def test_picture_is_shown_while_it_is_drawn() -> None:
    """Each sketch takes the place of the one before; the host stores none of them.

    With a choice next to it the host would send the whole chunk again.
    """
    drawn = run_of_transcript("draw.sse")

    chunks = shown(with_card(drawn, "image_generation_call", files=[FILE]))

    sketches = host_events(chunks, "chat:message:files")
    assert [len(data["files"]) for data in sketches] == [1, 1]
    assert all(d["files"][0]["url"].startswith("data:image/png;") for d in sketches)
    sent = [c for c in chunks if c.get("event", {}).get("type") == "chat:message:files"]
    assert [chunk["choices"] for chunk in sent] == [[], []]
    assert host_events(chunks, "files") == [{"files": [FILE]}]
    statuses = [data["description"] for data in host_events(chunks, "status")]
    assert statuses[:2] == ["Generating an image", "Image generated"]


def test_second_picture_stands_beside_the_first() -> None:
    """The page would show only what it was told last."""
    events: list[RunEvent] = [
        *(ItemAdded(0, DRAWN), ItemDone(0, DRAWN, {"files": [FILE]})),
        *(ItemAdded(1, DRAWN), PartialImage(1, "BBBB", "png")),
        ItemDone(1, DRAWN, {"files": [OTHER]}),
    ]

    chunks = shown(events)

    files = host_events(chunks, "chat:message:files", "files")
    drawn = {"type": "image", "url": "data:image/png;base64,BBBB"}
    shown_files = [data["files"] for data in files]
    assert shown_files == [[FILE], [FILE, drawn], [OTHER], [FILE, OTHER]]


def test_many_pictures_are_shown_again_less_often() -> None:
    """Each such event has all of them; the last one is complete."""

    def sent(count: int) -> list[int]:
        events: list[RunEvent] = []
        files = [{**FILE, "id": f"f-{number}"} for number in range(count)]
        for index, file in enumerate(files):
            events.append(ItemAdded(index, DRAWN))
            events.append(ItemDone(index, DRAWN, {"files": [file]}))
        chunks = shown([*events, RunDone(COMPLETED)])
        shown_again = host_events(chunks, "chat:message:files")
        assert shown_again[-1]["files"] == files
        return [len(data["files"]) for data in shown_again]

    assert sent(30) == list(range(2, 31))
    assert sum(sent(2000)) < 2.5 * sum(sent(1000))


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            {"code": "moderation_blocked"},
            "The image was not generated: the safety system rejected it.",
        ),
        ({"code": "other", "message": "secret"}, "The image could not be generated."),
        (None, "The image could not be generated."),
    ],
)
def test_picture_that_failed_is_one_sentence(error: Json | None, sentence: str) -> None:
    """In our words, where no later turn is given it."""
    failed = {**DRAWN, "status": "failed", "result": None, "error": error}

    (note,) = last_items(shown(run_of(failed)))

    assert note["type"] == "openai_responses:note"
    assert note["content"] == [{"type": "output_text", "text": f"*{sentence}*"}]


@pytest.mark.parametrize(
    ("card", "text"),
    [
        pytest.param({"notes": ["Too large."]}, "*Too large.*", id="it says so"),
        pytest.param(
            {"address": "https://a.example/(1).png"},
            "![Image](<https://a.example/(1).png>)",
            id="the page draws it from elsewhere",
        ),
    ],
)
def test_picture_that_could_not_be_stored(card: Json, text: str) -> None:
    events = with_card(run_of(DRAWN), "image_generation_call", **card)

    chunks = shown(events)

    (note,) = last_items(chunks)
    assert note["content"][0]["text"] == text
    assert host_events(chunks, "files") == []


def test_sketch_of_a_picture_that_broke_off_leaves_the_page() -> None:
    whole = run_of_transcript("draw.sse")
    sketched = max(p for p, e in enumerate(whole) if isinstance(e, PartialImage))

    chunks = shown([*whole[: sketched + 1], whole[-1]])

    assert isinstance(whole[-1], RunDone)
    assert host_events(chunks, "chat:message:files")[-1] == {"files": []}
    assert "interrupted" in last_items(chunks)[-1]["content"][0]["text"]


def test_code_grows_in_the_hosts_own_card() -> None:
    chunks = shown(run_of_transcript("count.sse"))

    added = [c for c in chunks if c.get("type") == "response.output_item.added"]
    (begun,) = [c["item"] for c in added if c["item"]["type"] == CODE_CARD]
    assert (begun["code"], begun["status"]) == ("", "in_progress")
    grown = [c["delta"] for c in chunks if c.get("type") == "response.code.delta"]
    done = last_items(chunks)[1]
    assert done["code"] == "".join([*grown, "\n```\n```text\n14400000"])
    assert done["status"] == "completed"
    assert "attributes" not in done  # with them the host would run it


def test_code_that_broke_off_is_closed() -> None:
    """With as much of it as there is, and one message."""
    whole = run_of_transcript("count.sse")
    is_grown = [isinstance(e, TextDelta) and e.kind == "code" for e in whole]
    third = [place for place, grew in enumerate(is_grown) if grew][2]

    chunks = shown([*whole[: third + 1], whole[-1]])

    code, end = last_items(chunks)[-2:]
    pieces = [c["delta"] for c in chunks if c.get("type") == "response.code.delta"]
    assert len(pieces) == 3
    interrupted = "\n```\n```text\nThe answer was interrupted"
    assert code["code"].startswith("".join([*pieces, interrupted]))
    assert code["status"] == "incomplete"
    assert set(end) == {"type", "id"}  # neither drawn nor sent


def test_code_is_never_the_last_item_of_a_run() -> None:
    """The host would take it for a wish to run it."""
    done = run_of_transcript("count.sse")[-1]
    assert isinstance(done, RunDone)
    code = done.output[1]

    alone = last_items(shown(run_of(code)))
    followed = last_items(shown(run_of(code, message("1", "There."))))

    assert [item["type"] for item in alone] == [CODE_CARD, "openai_responses:end"]
    assert [item["type"] for item in followed] == [CODE_CARD, "message"]


def test_pictures_that_code_made_are_shown() -> None:
    events = with_card(
        run_of_transcript("plot.sse"), "code_interpreter_call", files=[FILE]
    )

    files = host_events(shown(with_card(events, "message", files=[OTHER])), "files")

    assert [data["files"] for data in files] == [[FILE], [OTHER]]
