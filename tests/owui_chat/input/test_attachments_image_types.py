"""Pictures are told by their bytes, not by what they are called."""

import pytest

from chats.pictures import BMP, GIF, JPEG, MOVING_GIF, PIXEL, PNG, WEBP, data_url
from owui_chat.input.attachments import UNREADABLE_IMAGE, image_data_url, tool_image

READ = {"image/png": PNG, "image/jpeg": JPEG, "image/gif": GIF, "image/webp": WEBP}
UNREAD = [BMP, MOVING_GIF, b"<svg/>", b"", b"RIFF\x1a\x00\x00\x00WAVE"]


def readable_url(url: str) -> str:
    """The address that the model gets of a picture; nothing for one it cannot read."""
    part = tool_image(url)
    if part.get("text") == UNREADABLE_IMAGE:
        return ""
    assert part == {
        "type": "input_image",
        "detail": "auto",
        "image_url": part["image_url"],
    }
    return str(part["image_url"])


@pytest.mark.parametrize("kind", READ)
def test_bytes_tell_the_type(kind: str) -> None:
    assert image_data_url(READ[kind]) == data_url(READ[kind], kind)


@pytest.mark.parametrize("content", UNREAD)
def test_other_bytes_have_no_type(content: bytes) -> None:
    assert image_data_url(content) == ""
    assert readable_url(data_url(content, "image/png")) == ""


@pytest.mark.parametrize("kind", READ)
def test_image_type_is_corrected_from_its_bytes(kind: str) -> None:
    for label in ("image/png", "image/jpg", "application/octet-stream"):
        assert readable_url(data_url(READ[kind], label)) == data_url(READ[kind], kind)


@pytest.mark.parametrize("width", [10, 64, 76])
def test_base64_in_lines_is_one_line(width: int) -> None:
    """As encoders for mail write it, whose first line may be empty."""
    label, _, payload = data_url(PNG * 2, "image/png").partition(",")
    lines = [payload[at : at + width] for at in range(0, len(payload), width)]

    for start, end in (("", "\n"), ("\r\n", "\r\n"), (" ", "")):
        wrapped = start + end.join(lines)
        assert readable_url(f"{label},{wrapped}") == f"{label},{payload}"


@pytest.mark.parametrize(
    "url", ["https://example.com/a", "HTTPS://example.com/a", "http://127.0.0.1/a.png"]
)
def test_picture_on_the_web_stays_there(url: str) -> None:
    """The API fetches it by its address."""
    assert readable_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "0b6a3c2e-file-id",
        "/api/v1/files/1/content",
        "data:image/png,raw",
        "data:image/png;base64,",
        "data:image/png;base64,!",
        "data:image/png;base64,é",
        "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5é",
        "data:image/gif;base64,R0lGODlhA",
        f"blob:{PIXEL.partition(':')[2]}",
    ],
)
def test_address_that_holds_nothing_is_none(url: str) -> None:
    """A stored file that the host could not read, or a damaged one."""
    assert readable_url(url) == ""
