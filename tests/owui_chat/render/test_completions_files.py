"""Pictures and files, for callers over plain HTTP."""

from typing import Any

from openai_responses.items import Item
from openai_responses.loop.events import RunDone
from openai_responses.transport.stream import ItemDone
from owui_chat.render.completions import ChunkRenderer, completion
from runs.sample import message, run_of

DRAWN: Item = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "result": "AAAA",
}
IMAGES = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
HEAD = ("chatcmpl-1", 1_795_262_400, "f.gpt-5.2")


def deltas(*events: Any) -> list[dict[str, Any]]:
    """The deltas of a stream."""
    view = ChunkRenderer(*HEAD)
    chunks = [chunk for event in events for chunk in view.render(event)]
    return [choice["delta"] for c in chunks for choice in c.get("choices", ())]


def test_picture_is_one_delta_without_sketches() -> None:
    """As clients of Chat Completions know it; sketches are none of it."""
    rendered = deltas(*run_of(DRAWN, message("1", "There.")))

    assert [delta["images"] for delta in rendered if "images" in delta] == [IMAGES]


def test_file_stands_below_the_text() -> None:
    """Which has gone out with its own address."""
    text = "[a.csv](sandbox:/mnt/data/a.csv)"
    links = {"sandbox:/mnt/data/a.csv": "/api/v1/files/f-1/content"}
    events = [
        event._replace(card={"links": links}) if isinstance(event, ItemDone) else event
        for event in run_of(message("1", text))
    ]

    content = "".join(delta.get("content") or "" for delta in deltas(*events))

    assert content == f"{text}\n\n[a.csv](/api/v1/files/f-1/content)"


def test_one_result_holds_its_pictures() -> None:
    """They are in a field of their own, next to the text."""
    last = run_of(DRAWN, message("1", "There."))[-1]
    assert isinstance(last, RunDone)

    answer = completion(last, *HEAD)["choices"][0]["message"]

    assert (answer["content"], answer["images"]) == ("There.", IMAGES)
