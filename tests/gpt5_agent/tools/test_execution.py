"""What becomes of what a tool returned (R24)."""

import base64
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from chats.pictures import PNG
from event_loops.skipping_loop import run_skipping
from gpt5_agent.ports import HostFileError, StoreFile
from gpt5_agent.tools.execution import OwnTools, describe_tool
from openai_responses.loop.tools import ToolResult

Json = dict[str, Any]
PIXEL = base64.b64encode(PNG).decode()
PIXEL_URL = f"data:image/png;base64,{PIXEL}"
NOTE = base64.b64encode(b"rain").decode()
WEBP_URL = f"data:image/webp;base64,{NOTE}"
GIF_URL = f"data:image/gif;base64,{NOTE}"
IMAGE_SENT_TEXT = "image generated and sent to user. Tell user to review it now."


class Returning:
    """A tool that returns what it was made with."""

    name = "own"
    description = "Return it."
    args: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, result: object) -> None:
        self._result = result

    async def execute(self, args: Json) -> object:
        return self._result


def answer(result: object, store: StoreFile | None = None) -> ToolResult:
    """What is made of a result; usually files are not stored."""
    return run_skipping(OwnTools([Returning(result)], store).call("own", {}))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("Rain.", "Rain."),
        ({"rain": True, "ü": None}, 'tool response: {"rain": true, "ü": null}.'),
        ([{"type": "surprise"}], 'tool response: [{"type": "surprise"}].'),
        ([7], "tool response: [7]."),
        (None, "tool response: null."),
    ],
)
def test_r24_text_is_told_as_it_is_other_values_as_json(
    result: object, text: str
) -> None:
    assert answer(result) == ToolResult(text)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "text", "text": "Rain."}, "Rain."),
        ({"type": "json", "json": {"a": 1}}, 'tool response: {"a": 1}.'),
        (
            {"type": "link", "url": "https://a.example"},
            "result link: https://a.example. please tell user to check it.",
        ),
    ],
)
def test_r24_parts_have_their_texts(part: Json, text: str) -> None:
    assert answer([part, {"type": "text", "text": "End."}]) == ToolResult(
        f"{text}\nEnd."
    )


@pytest.mark.parametrize(
    ("part", "url", "is_seen"),
    [
        ({"type": "image", "data": PIXEL}, PIXEL_URL, True),
        ({"type": "image", "data": NOTE, "mimeType": "image/webp"}, WEBP_URL, False),
        ({"type": "blob", "data": PIXEL, "name": "a.png"}, PIXEL_URL, True),
        ({"type": "blob", "data": NOTE, "name": "a.gif"}, GIF_URL, False),
        (
            {"type": "image_link", "url": "https://a.example/b"},
            "https://a.example/b",
            False,
        ),
    ],
)
def test_r24_pictures_are_shown_told_of_and_seen(
    part: Json, url: str, is_seen: bool
) -> None:
    """The page gets it, and so does the model, if the API can read it."""
    result = answer([part])

    assert result.card == {"images": [url]}
    image = {"type": "input_image", "detail": "auto", "image_url": url}
    text = {"type": "input_text", "text": IMAGE_SENT_TEXT}
    assert result.output == ([text, image] if is_seen else IMAGE_SENT_TEXT)


def test_model_sees_a_bounded_number_of_pictures() -> None:
    tools = OwnTools([Returning([{"type": "image", "data": PIXEL}] * 15)], None)

    first, second = (run_skipping(tools.call("own", {})) for _ in range(2))

    assert [len(first.output), len(second.output)] == [1 + 15, 1 + 5]
    assert len(second.card["images"]) == 15


def test_picture_without_room_leaves_the_room_to_smaller_ones() -> None:
    large = PNG + bytes(5_000_000 - len(PNG))
    pictures = [{"type": "image", "data": data} for data in [large] * 4 + [PNG]]

    result = answer(pictures)

    assert not isinstance(result.output, str)
    seen = [part["image_url"] for part in result.output[1:]]
    assert len(seen) == 4
    assert seen[-1] == PIXEL_URL


@pytest.mark.parametrize("more", [0, 1])
def test_pictures_of_earlier_rounds_take_room(more: int) -> None:
    seen = ["x" * (24 * 1024 * 1024 - len(PIXEL_URL) + more)]
    tools = OwnTools([Returning([{"type": "image", "data": PIXEL}])], None, seen)

    result = run_skipping(tools.call("own", {}))

    assert isinstance(result.output, str) is bool(more)


class Storing:
    """Where files are stored; a name with `full` finds no room."""

    def __init__(self) -> None:
        self.stored: list[tuple[str, bytes]] = []

    async def store(self, name: str, content: bytes) -> str:
        if "full" in name:
            raise HostFileError("Open WebUI answered with HTTP 413.")
        self.stored.append((name, content))
        return f"/files/{len(self.stored)}"


def test_r24_other_files_are_stored_for_the_user() -> None:
    """They have a name without a path; the user gets links."""
    result = [
        {"type": "blob", "data": NOTE, "name": "/a/b/a_note[1].txt"},
        {"type": "blob", "data": NOTE, "mimeType": "application/x-own"},
        {"type": "blob", "data": b"rain", "name": "no-ending"},
        {"type": "blob", "name": "empty"},
    ]
    store = Storing()

    outcome = answer(result, store.store)

    assert store.stored == [
        ("a_note[1].txt", b"rain"),
        ("file", b"rain"),
        ("no-ending", b"rain"),
        ("empty", b""),
    ]
    links = ["[a_note&#91;1&#93;.txt]", "[file]", "[no-ending]", "[empty]"]
    notes = [f"{link}(/files/{number})" for number, link in enumerate(links, 1)]
    assert outcome.card == {"notes": notes}
    for file in (
        "a_note[1].txt (text/plain, 4 bytes)",
        "file (application/x-own, 4 bytes)",
        "no-ending (application/octet-stream, 4 bytes)",
    ):
        assert f"Generated file {file} is sent" in str(outcome.output)


@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (b"rain", "\n\n```\nrain\n```"),
        (b"```\nrain\n```", "\n\n````\n```\nrain\n```\n````"),
        (b"x" * 5000, ""),
        (b"\xff\xfe", ""),
        (b"a\0b", ""),
        (b"", ""),
    ],
)
def test_file_that_cannot_be_stored_is_shown_if_it_is_a_short_text(
    content: bytes, shown: str
) -> None:
    part = {"type": "blob", "data": base64.b64encode(content).decode()}
    result = [{**part, "name": "full.csv"}]

    outcome = answer(result, Storing().store)

    why = "Open WebUI answered with HTTP 413."
    assert outcome.card["notes"] == [
        f"full.csv could not be stored as a file: {why}{shown}"
    ]
    assert why in str(outcome.output)
    assert ("is shown its text" in str(outcome.output)) == bool(shown)
    assert not outcome.failed


def test_number_of_files_of_a_call_is_bounded() -> None:
    """Each file is an upload; the model reads how many a call can send."""
    store = Storing()
    result = [{"type": "blob", "data": NOTE, "name": "a"}] * 12

    outcome = answer(result, store.store)

    assert len(store.stored) == len(outcome.card["notes"]) == 10
    assert str(outcome.output).count("a call can send 10 files") == 2


def test_file_of_a_plain_client_is_not_stored() -> None:
    """It would have no owner."""
    result = answer([{"type": "blob", "data": NOTE}])

    assert "not a chat of Open WebUI" in str(result.output)


def test_result_of_mcp_says_itself_whether_it_failed() -> None:
    content = [{"type": "text", "text": "No such city."}]

    assert answer({"isError": True, "content": content}) == ToolResult(
        "No such city.", failed=True
    )
    assert answer({"isError": False, "content": content}) == ToolResult("No such city.")
    assert answer({"isError": True, "content": []}).failed


def test_file_that_is_no_base64_is_refused() -> None:
    refused = answer([{"type": "image", "data": "no base64!"}])

    assert refused.failed
    assert str(refused.output).startswith("tool invoke error: ")
    assert str(refused.output).endswith("is not base64")


def test_tool_of_the_port_is_described() -> None:
    tool = Returning("Rain.")

    assert OwnTools([tool], None).schemas == {"own": {}}
    assert describe_tool(tool) == {
        "name": "own",
        "description": "Return it.",
        "parameters": {},
    }


def test_r23_no_path_of_a_tool_is_read(tmp_path: Path) -> None:
    """A part that names a file is a value like any other."""
    secret = tmp_path / "secret.txt"
    secret.write_text("hunter2", "utf-8")

    result = answer([{"type": "file", "path": str(secret)}])

    assert "hunter2" not in str(result)
    assert str(result.output).startswith("tool response: ")


def test_r23_file_over_5_mb_is_refused() -> None:
    limit = 5 * 1024 * 1024
    parts = [
        {"type": "blob", "data": base64.b64encode(bytes(size)).decode()}
        for size in (limit, limit + 1)
    ]

    fits, larger = (answer([part]) for part in parts)

    assert not fits.failed
    assert larger.failed
    assert str(larger.output).endswith("is larger than 5 MB")
