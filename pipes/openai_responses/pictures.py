"""Pictures that the model drew, as they go back to it.

The API would look a drawn picture up by an id that it never stored (responses-api.md
§2.1): what goes back is an input picture, at the place where it was drawn.
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.items import Item, item_type

_READ_FORMS = ("png", "jpeg", "webp")


def is_drawing(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is the drawing of a picture."""
    return item_type(item) == "image_generation_call"


def has_picture(item: Mapping[str, Any]) -> bool:
    """Say whether `item` holds a picture that the model can be given back."""
    held = is_drawing(item) and bool(item.get("result"))
    return held and picture_form(item) in _READ_FORMS


def picture_form(item: Mapping[str, Any]) -> str:
    """Return the format of a drawn picture, such as `png`."""
    return str(item.get("output_format") or "png")


def picture_url(item: Mapping[str, Any]) -> str:
    """Return a drawn picture as an address that holds it."""
    kind = {"svg": "svg+xml"}.get(picture_form(item), picture_form(item))
    return f"data:image/{kind};base64,{item['result']}"


def picture_message(item: Mapping[str, Any]) -> Item:
    """Return a drawn picture as an input message."""
    part = {"type": "input_image", "detail": "auto", "image_url": picture_url(item)}
    return {"type": "message", "role": "user", "content": [part]}
