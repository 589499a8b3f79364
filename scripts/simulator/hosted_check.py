"""Whether the hosted tools' parameters keep the API's limits.

What the types of the openai package say has been checked before.
"""

from collections.abc import Mapping
from typing import Any

from simulator.containers import CONTAINER
from simulator.refusals import Refusal, out_of_range

Tool = Mapping[str, Any]
RANGES = {"partial_images": (0, 3), "output_compression": (0, 100)}
RETIRED = ("gpt-image-1",)
SEE_THROUGH = ("png", "webp", "gif", "svg")


def check_hosted(tools: list[Tool]) -> None:
    """Raise the refusal for the first value that a hosted tool does not take."""
    for index, tool in enumerate(tools):
        if tool["type"] == "image_generation":
            _check_image(tool, f"tools[{index}]")
        if tool["type"] == "code_interpreter":
            _check_container(tool["container"], f"tools[{index}]")


def _check_image(tool: Tool, path: str) -> None:
    for name, (low, high) in RANGES.items():
        value = tool.get(name)
        if value is not None and value < low:
            raise out_of_range(f"{path}.{name}", "integer", f">= {low}", value)
        if value is not None and value > high:
            raise out_of_range(f"{path}.{name}", "integer", f"<= {high}", value)
    if tool.get("model") in RETIRED:
        raise Refusal(
            f"The model `{tool['model']}` has been deprecated, learn more here: "
            "https://platform.openai.com/docs/deprecations",
            status=404,
            code="model_not_found",
        )
    form = tool.get("output_format", "png")
    if tool.get("background") == "transparent" and form not in SEE_THROUGH:
        raise Refusal(
            f"Transparent background is not supported for '{form}' output.",
            code="invalid_value",
            param=f"{path}.background",
        )


def _check_container(container: str | Tool, path: str) -> None:
    if isinstance(container, str) and container != CONTAINER:
        raise Refusal(
            f"Container with id '{container}' not found.",
            status=404,
            param=f"{path}.container",
        )
