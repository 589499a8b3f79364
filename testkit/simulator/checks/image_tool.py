"""Checks the options of image generation, as far as somebody saw them refused.

Source: types of openai 3.54.0, `types/responses/tool_param.py`, `ImageGeneration`.
Assumed: the words about the ranges.
"""

from collections.abc import Mapping
from typing import Any

from simulator.refusals import check_range, refuse

Tool = Mapping[str, Any]
RANGES = {"partial_images": (0, 3), "output_compression": (0, 100)}
RETIRED_MODELS = ("gpt-image-1",)
WITHOUT_TRANSPARENCY = ("gpt-image-2", "gpt-image-2-2026-04-21")


def check_image_tool(tool: Tool, path: str) -> None:
    """Raise the refusal for the first invalid option.

    A transparent background is a preview for some organizations; the message names no
    place. Source: Wei-Shaw/sub2api 7150, 2026-09-15; GPT2Image-Pro 2.
    """
    for name, (low, high) in RANGES.items():
        check_range(f"{path}.{name}", "integer", tool.get(name), low, high)
    model = tool.get("model")
    if model in RETIRED_MODELS:
        raise refuse("retired_model", model=model)
    if tool.get("background") == "transparent" and model in WITHOUT_TRANSPARENCY:
        raise refuse("transparent_preview")
