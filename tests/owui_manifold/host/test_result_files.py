"""The files of a tool's result, each where it belongs."""

import base64
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from chats.pictures import BMP, JPEG, PIXEL, data_url
from owui_chat.input.attachments import UNREADABLE_IMAGE
from owui_manifold.host.result_files import split_result_files, without_large_files
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio

Shared = tuple[str | list[Any], dict[str, Any]]
USER = SimpleNamespace(id="user-1", role="user")


async def shared_out(host: StandInHost, *files: Any, text: str = "x") -> Shared:
    """What becomes of these files in a stored chat."""

    async def store(url: str) -> str:
        return await host.results.store(None, url, {}, USER)

    return await split_result_files(files, text, store, USER, has_row=True)


async def keep_inline(url: str) -> str:
    """Store nothing, as the host does where it cannot."""
    return url


def picture(url: str) -> dict[str, str]:
    return {"type": "image", "url": url}


async def test_other_files_are_shown_alone(host: StandInHost) -> None:
    """The model gets the text."""
    file = {"type": "audio", "url": "/api/v1/files/1/content"}

    shared = await shared_out(host, file, {"type": "image"})

    assert shared == ("x", {"files": [file, {"type": "image"}], "stored": []})


async def test_picture_is_labeled_as_what_it_is(host: StandInHost) -> None:
    """So that the next turn, which reads the stored file, sends the same bytes."""
    output, _ = await shared_out(host, picture(data_url(JPEG, "image/png")))

    assert not isinstance(output, str)
    _, part = output
    assert part["image_url"] == data_url(JPEG, "image/jpeg")


async def test_picture_that_nobody_reads_is_told_of(host: StandInHost) -> None:
    """The API would refuse the whole request; the user sees it all the same."""
    files = picture(data_url(BMP, "image/bmp")), picture(PIXEL)
    output, card = await shared_out(host, *files, text="A map")

    assert not isinstance(output, str)
    text, image = output
    assert text == {"type": "input_text", "text": f"A map\n{UNREADABLE_IMAGE}"}
    assert image["image_url"] == PIXEL
    assert card["files"] == [picture("/api/v1/files/file-1/content")]
    assert [part["image_url"] for part in card["stored"]] == [
        "/api/v1/files/file-2/content"
    ]


async def test_picture_of_somebody_else_is_not_read(host: StandInHost) -> None:
    """A tool names any address it likes."""
    file_id = host.files.add(JPEG, "secret.jpg", owner="user-2")

    output, _ = await shared_out(host, picture(f"/api/v1/files/{file_id}/content"))

    assert output == f"x\n{UNREADABLE_IMAGE}"


@pytest.mark.parametrize("has_row", [True, False])
async def test_bytes_are_never_written_into_a_row(has_row: bool) -> None:
    """A temporary chat lives in the page alone: there they may stay."""
    files = [picture(PIXEL), picture(data_url(BMP, "image/bmp"))]

    output, card = await split_result_files(
        files, "x", keep_inline, USER, has_row=has_row
    )

    assert not isinstance(output, str)
    _, *images = output
    assert [part["image_url"] for part in images] == [PIXEL]
    assert len(card["stored"]) == (0 if has_row else 1)
    assert len(card["files"]) == (0 if has_row else 2)


LIMIT = 5 * 1024 * 1024
LEFT_OUT = "A file over 5 MB was left out of this result."


def whole(size: int, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{base64.b64encode(bytes(size)).decode()}"


def encoded(size: int) -> str:
    return whole(size).partition(",")[2]


FORMS: dict[str, Callable[[int], Any]] = {
    "text": whole,
    "inside": lambda size: {"plot": [whole(size), "a caption"]},
    "file": lambda size: [f"Data:a/b;Base64,{encoded(size)}"],
    "unpacked": lambda size: "data:text/plain," + "x" * size,
    "headers": lambda size: (whole(size), {"Content-Type": "image/png"}),
    "picture": lambda size: [{"type": "image", "mimeType": "x", "data": encoded(size)}],
    "drawing": lambda size: [{"type": "image", "blob": encoded(size)}],
    "sound": lambda size: [{"type": "audio", "mimeType": "x", "blob": encoded(size)}],
    "song": lambda size: [{"type": "audio", "data": encoded(size)}],
    "resource": lambda size: [
        {"type": "resource", "resource": {"uri": "a:b", "blob": encoded(size)}}
    ],
}
"""What a tool may return that the host makes a file of."""


@pytest.mark.parametrize("form", FORMS)
async def test_file_over_5_mb_is_left_out(form: str) -> None:
    """The model is told; a file of exactly that size passes as it came."""
    fits, larger = (FORMS[form](size) for size in (LIMIT, LIMIT + 1))

    assert without_large_files(fits) == fits
    left = without_large_files(larger)
    assert LEFT_OUT in str(left)
    assert len(str(left)) < 1000
    assert type(left) is type(larger)


@pytest.mark.parametrize("form", FORMS)
async def test_files_after_the_first_hundred_are_left_out(form: str) -> None:
    """A server may send thousands of small ones, and each is stored."""
    file = FORMS[form](3)

    left = without_large_files([file] * 102)

    assert left[:100] == [file] * 100
    assert all("more than 100" in str(row) for row in left[100:])


@pytest.mark.parametrize(("levels", "is_read"), [(63, True), (64, False)])
async def test_files_are_looked_for_in_64_levels(levels: int, *, is_read: bool) -> None:
    """What is deeper is nobody's file: the host looks no further."""
    value: Any = whole(LIMIT + 1)
    for level in range(levels):
        value = ([value], {"a": value}, (value,))[level % 3]

    assert (LEFT_OUT in str(without_large_files(value))) is is_read


@pytest.mark.parametrize(
    "kept",
    [
        "DATA:text/plain," + "x" * LIMIT,
        "x" * (LIMIT + 100),
        {"type": "text", "data": encoded(LIMIT + 1)},
        {"type": "resource", "resource": {"text": encoded(LIMIT + 1)}},
        {"type": "image", "data": 7},
    ],
    ids=["exactly as long", "a text", "no file", "a text of a server", "7"],
)
async def test_what_is_no_file_may_be_longer(kept: Any) -> None:
    assert without_large_files(kept) == kept


async def test_the_rest_of_a_result_stays() -> None:
    """As it is: also what is no JSON, or deeper than anybody reads."""
    deep: Any = "x"
    for _ in range(2000):
        deep = [deep]
    value = {"rows": [1, None, "a text"], "deep": deep, "own": USER}

    assert without_large_files(value) == value
    result = without_large_files({"plot": whole(LIMIT + 1), "caption": "A map"})
    assert result == {"plot": LEFT_OUT, "caption": "A map"}
