"""Pictures of tools, given back to the outputs that they came with.

A chat stores them by their addresses; the host reads them for the next request, but
moves them out of the outputs into a message that no one wrote (utils/misc.py:393).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from openai_responses.items import Item, content_parts
from owui_chat.image_input import image_part, readable_url
from owui_chat.messages import Returned, Said, Stretch

_MADE_UP = "Here are the images from the tool results above. Please analyze them."

UNREADABLE_IMAGE = "[A picture is in a form that you cannot read; the user sees it.]"
"""What the model gets for a picture of a tool that the API would refuse."""


def with_tool_images(
    stretches: Sequence[Stretch], messages: Mapping[str, Any]
) -> list[Stretch]:
    """Return a chat without the made-up messages, their pictures at their outputs.

    `messages` are those of the chat's row, by id: they tell how many belong to each
    output of ours. Of the host's, whose round goes on before it is stored, the last
    one has them all.
    """
    result: list[Stretch] = []
    counts = _counts(messages)
    for stretch in stretches:
        urls, outputs = _made_up_urls(stretch), _last_outputs(result)
        if not urls or not outputs:
            result.append(stretch)
            continue
        result[-len(outputs) :] = _shared_out(outputs, urls, counts)
    return result


def tool_image(url: str) -> Item:
    """Return a picture of a tool as a part of its output."""
    if readable := readable_url(url):
        return image_part(readable, "auto")
    return {"type": "input_text", "text": UNREADABLE_IMAGE}


def output_with(text: str, images: Sequence[Item]) -> str | list[Item]:
    """Return the output of a tool: a text, with pictures behind it if there are any."""
    return [{"type": "input_text", "text": text}, *images] if images else text


def _made_up_urls(stretch: Stretch) -> list[str]:
    """Return the pictures of a made-up message; of any other none."""
    if not isinstance(stretch, Said) or stretch.item.get("role") != "user":
        return []
    first, *rest = content_parts(stretch.item.get("content")) or [{}]
    if first.get("text") != _MADE_UP or not all(part.get("image_url") for part in rest):
        return []
    return [str(part["image_url"]) for part in rest]


def _last_outputs(stretches: Sequence[Stretch]) -> list[Returned]:
    outputs: list[Returned] = []
    for stretch in reversed(stretches):
        if not isinstance(stretch, Returned):
            break
        outputs.insert(0, stretch)
    return outputs


def _shared_out(
    outputs: Sequence[Returned], urls: Sequence[str], counts: Mapping[str, int]
) -> list[Stretch]:
    """Return `outputs` with their pictures."""
    shares = [counts.get(output.call_id, 0) for output in outputs]
    if sum(shares) != len(urls):
        shares = [*[0] * (len(outputs) - 1), len(urls)]
    left = iter(urls)
    result: list[Stretch] = []
    for output, share in zip(outputs, shares, strict=True):
        images = [tool_image(next(left)) for _ in range(share)]
        result.append(replace(output, output=output_with(str(output.output), images)))
    return result


def _counts(messages: Mapping[str, Any]) -> dict[str, int]:
    """Return how many pictures the chat stores with each output of ours."""
    items = [item for message in messages.values() for item in _output_items(message)]
    return {
        str(item.get("call_id")): len(_images(item))
        for item in items
        if item.get("id") == f"fco_{item.get('call_id')}"  # as our cards have it
    }


def _output_items(message: object) -> list[Item]:
    return content_parts(message.get("output")) if isinstance(message, Mapping) else []


def _images(item: Item) -> list[Item]:
    parts = content_parts(item.get("output"))
    return [part for part in parts if part.get("type") == "input_image"]
