"""Pictures and files that the API cannot read get its refusals."""

from typing import Any

import pytest

from chats.pictures import BMP, GIF, JPEG, MOVING_GIF, PDF, PIXEL, WEBP, data_url
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
FORMATS = "['image/jpeg', 'image/png', 'image/gif', 'image/webp']"


def image(url: str, **more: Any) -> dict[str, Any]:
    """A picture in a message."""
    return {"type": "input_image", "detail": "auto", "image_url": url, **more}


def document(content: bytes = PDF, kind: str = "application/pdf") -> dict[str, Any]:
    """A file in a message."""
    url = data_url(content, kind)
    return {"type": "input_file", "filename": "a.pdf", "file_data": url}


async def posted(client: Client, *parts: dict[str, Any]) -> Any:
    """What comes back for a message of these parts."""
    items = [{"role": "user", "content": [*parts]}]
    return await client.post(client.body(items))


@pytest.mark.parametrize(
    "part",
    [
        image(PIXEL),
        image(data_url(JPEG, "image/jpeg")),
        image(data_url(WEBP, "image/webp")),
        image(data_url(GIF, "image/gif")),
        image("https://example.com/cat.png"),
        document(),
        document(b"a,b", "text/csv"),
        document(b"PK\x03\x04", DOCX),
        {"type": "input_file", "file_url": "https://example.com/a.pdf"},
    ],
)
async def test_supported_parts_are_accepted(
    client: Client, part: dict[str, Any]
) -> None:
    """Every format that OpenAI's documentation names."""
    reply = await posted(client, part)

    assert reply.status == 200, reply.raw


@pytest.mark.parametrize(
    "url",
    [
        data_url(BMP, "image/bmp"),
        data_url(BMP, "image/png"),
        data_url(MOVING_GIF, "image/gif"),
        data_url(b"<svg/>", "image/svg+xml"),
        "data:image/png;base64,",
    ],
)
async def test_bytes_of_a_picture_decide(client: Client, url: str) -> None:
    """The bytes decide, whatever the label says."""
    reply = await posted(client, image(url))

    assert reply.status == 400
    assert reply.error["code"] == "invalid_image_format"
    assert FORMATS in reply.error["message"]


@pytest.mark.parametrize(
    ("part", "param", "got"),
    [
        (
            image(data_url(PDF, "application/pdf")),
            "image_url",
            "unsupported MIME type 'application/pdf'",
        ),
        (image("data:image/png;base64,###"), "image_url", "a value that is not"),
        (
            {**document(), "file_data": "SGVsbG8="},
            "file_data",
            "a value without the 'data:' prefix",
        ),
        (
            document(b"PK", "application/zip"),
            "file_data",
            "unsupported MIME type 'application/zip'",
        ),
    ],
)
async def test_invalid_data_url_is_refused(
    client: Client, part: dict[str, Any], param: str, got: str
) -> None:
    """The refusal says what came instead, and where."""
    reply = await posted(client, part)

    assert reply.status == 400
    assert reply.error["code"] == "invalid_value"
    assert reply.error["param"] == f"input[0].content[0].{param}"
    assert f"but got {got}." in reply.error["message"]


@pytest.mark.parametrize(
    ("part", "missing"),
    [
        ({"type": "input_image", "detail": "auto"}, "image_url"),
        ({"type": "input_file", "filename": "a.pdf"}, "file_data"),
        ({"type": "input_file", "file_data": document()["file_data"]}, "filename"),
    ],
)
async def test_part_without_bytes_or_name_is_refused(
    client: Client, part: dict[str, Any], missing: str
) -> None:
    """A part needs its bytes, and a file its name."""
    reply = await posted(client, part)

    assert reply.error["param"] == f"input[0].content[0].{missing}"
    assert reply.error["code"] == "missing_required_parameter"


@pytest.mark.parametrize("content", [b"", b"no PDF at all"])
async def test_empty_or_mislabeled_file_is_refused(
    client: Client, content: bytes
) -> None:
    """An empty file and one that is no PDF have the same code."""
    reply = await posted(client, document(content))

    assert reply.error["code"] == "invalid_file"


async def test_too_many_bytes_or_pictures_are_refused(client: Client) -> None:
    """Files have 50 MB together; pictures are counted."""
    half = document(bytes(25_000_001), "text/plain")

    large = await posted(client, half, half)
    many = await posted(client, *[image(PIXEL)] * 1501)

    assert "exceeds the maximum of 50 MB" in large.error["message"]
    assert many.error["message"].startswith("Too many images in request: 1501.")


async def test_outputs_of_tools_are_checked(client: Client) -> None:
    """A picture in an output has to be one, too."""
    output = {"type": "function_call_output", "call_id": "call_1"}
    good = [CALL, {**output, "output": [image(PIXEL)]}]
    bad = [CALL, {**output, "output": [image(data_url(BMP, "image/bmp"))]}]

    taken = await client.post(client.body(good))
    refused = await client.post(client.body(bad))

    assert taken.status == 200, taken.raw
    assert refused.error["code"] == "invalid_image_format"
