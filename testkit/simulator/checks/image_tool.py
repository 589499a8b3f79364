"""Checks the options of image generation against what its model supports.

Source: types of openai 3.54.0, `types/responses/tool_param.py`, `ImageGeneration`.
Assumed: the wording of the messages, that the newest models support what the ones before
them do, and that GIF and SVG came with them.
"""

import re
from collections.abc import Mapping
from typing import Any

from simulator.refusals import Refusal, check_range, refuse

Tool = Mapping[str, Any]
RANGES = {"partial_images": (0, 3), "output_compression": (0, 100)}
RETIRED_MODELS = ("gpt-image-1",)
DEFAULT_MODEL = "gpt-image-2.6-sunburst"
MINI = "gpt-image-1-mini"
SECOND = ("gpt-image-2", "gpt-image-2-2026-04-21")
OLDER = (MINI, "gpt-image-1.5", "chatgpt-image-latest", *SECOND)
MOVING_MODELS = ("gpt-image-2.6-sunburst", "gpt-image-2.6-flare")
TRANSPARENT_FORMATS = ("png", "webp", "gif", "svg")
FORMAT_OF = {"frame_count": "gif", "frame_duration_ms": "gif", "svg": "svg"}
NOT_FOR_GIF = ("partial_images", "input_image_mask", "output_compression")
FIXED_SIZES = ("1024x1024", "1024x1536", "1536x1024", "auto")
SIZE = re.compile(r"(?P<width>[1-9]\d{0,4})x(?P<height>[1-9]\d{0,4})")


def check_image_tool(tool: Tool, path: str) -> None:
    """Raise the refusal for the first invalid option."""
    for name, (low, high) in RANGES.items():
        check_range(f"{path}.{name}", "integer", tool.get(name), low, high)
    if tool.get("model") in RETIRED_MODELS:
        raise refuse("retired_model", model=tool["model"])
    model = tool.get("model", DEFAULT_MODEL)
    file_format = tool.get("output_format", "png")
    if tool.get("background") == "transparent" and model in SECOND:
        raise _refuse_preview()
    for name, complaint in _complaints(tool, model, file_format).items():
        if complaint:
            raise refuse("image_option", complaint=complaint, path=path, name=name)


def _refuse_preview() -> Refusal:
    """Refuse what only some organizations may preview; the message names no place.

    Source: Wei-Shaw/sub2api 7150, 2026-09-15; GPT2Image-Pro 2.
    """
    return refuse("transparent_preview")


def _complaints(tool: Tool, model: str, file_format: str) -> dict[str, str]:
    """Return the message about each option, empty for a valid one.

    They have the order of the tool's fields: the first one is refused.
    """
    complaints = dict.fromkeys(tool, "")
    for name, required in FORMAT_OF.items():
        if name in tool and file_format != required:
            complaints[name] = f"'{name}' requires 'output_format' to be '{required}'."
    unsupported = NOT_FOR_GIF if file_format == "gif" else ()
    for name in unsupported:
        if tool.get(name):
            complaints[name] = f"'{name}' is not supported for 'gif' output."
    complaints |= _complain_of_format(tool, model, file_format)
    return complaints | _complain_of_model(tool, model)


def _complain_of_format(tool: Tool, model: str, file_format: str) -> dict[str, str]:
    """Return the messages about the file format."""
    complaints = {}
    if file_format in ("gif", "svg") and model not in MOVING_MODELS:
        complaints["output_format"] = (
            f"The format '{file_format}' is not supported by '{model}'."
        )
    if file_format == "png" and tool.get("output_compression", 100) < 100:
        words = "Compression less than 100 is not supported for PNG output format."
        complaints["output_compression"] = words
    if (
        tool.get("background") == "transparent"
        and file_format not in TRANSPARENT_FORMATS
    ):
        words = f"Transparent background is not supported for '{file_format}' output."
        complaints["background"] = words
    return complaints


def _complain_of_model(tool: Tool, model: str) -> dict[str, str]:
    complaints = {}
    quality = tool.get("quality")
    size = tool.get("size", "auto")
    if quality in ("xhigh", "max") and model in OLDER:
        complaints["quality"] = (
            f"The quality '{quality}' is not supported by '{model}'."
        )
    fidelity = tool.get("input_fidelity")
    if fidelity and (model in SECOND or (model == MINI and fidelity == "high")):
        words = f"The input fidelity '{fidelity}' is not supported by '{model}'."
        complaints["input_fidelity"] = words
    if size not in FIXED_SIZES and not _is_drawable(size, model):
        complaints["size"] = f"Invalid size '{size}'."
    return complaints


def _is_drawable(size: str, model: str) -> bool:
    """Tell whether a model supports a custom size."""
    dimensions = SIZE.fullmatch(size)
    if dimensions is None or (model in OLDER and model not in SECOND):
        return False
    width = int(dimensions["width"])
    height = int(dimensions["height"])
    short = min(width, height)
    long = max(width, height)
    fits = long <= 3840 and short <= 2160 and long <= 3 * short
    return fits and width % 16 == 0 and height % 16 == 0
