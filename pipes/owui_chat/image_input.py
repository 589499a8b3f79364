"""Pictures in the forms that the API reads, told by their first bytes.

It reads PNG, JPEG, WEBP, and GIF that does not move.
"""

import base64

from openai_responses.items import Item

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
)
_HEAD = 24
"""Characters of base64 that hold every signature."""

_GIF_FRAME = b"\x00\x21\xf9\x04"
"""What stands in front of each frame of a GIF that has several."""


def image_type(content: bytes) -> str:
    """Return the media type of a picture, or nothing for one that nobody reads."""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    for signature, kind in _SIGNATURES:
        if content.startswith(signature):
            return kind if content.count(_GIF_FRAME) < 2 else ""
    return ""


def image_data_url(content: bytes) -> str:
    """Return a picture as an address that holds it; nothing if nobody reads it."""
    kind = image_type(content)
    return f"data:{kind};base64,{base64.b64encode(content).decode()}" if kind else ""


def readable_url(url: str) -> str:
    """Return the address of a picture, labelled as what it is; nothing if unreadable.

    A picture on the web is the API's to fetch.
    """
    if url.startswith(("https://", "http://")):
        return url
    label, _, payload = url.partition(";base64,")
    kind = _encoded_type(payload) if label[:5].lower() == "data:" else ""
    return f"data:{kind};base64,{payload}" if kind else ""


def image_part(url: str, detail: str) -> Item:
    """Return a picture as a part of a content."""
    return {"type": "input_image", "detail": detail, "image_url": url}


def _encoded_type(payload: str) -> str:
    """Return the media type of a picture in base64; of a GIF all of it is read."""
    try:
        kind = image_type(base64.b64decode(payload[:_HEAD]))
        if kind == "image/gif":
            return image_type(base64.b64decode(payload))
    except ValueError:  # no base64, or not even ASCII
        return ""
    return kind
