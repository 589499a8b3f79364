"""OpenAI's tools that make pictures and run code, as the valves ask for them."""

from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.json_texts import typed_object
from owui_manifold.valves import UserValves, Valves

_REPLACED = {
    "image_generation": {"generate_image", "edit_image"},
    "code_interpreter": {"execute_code"},
}
"""Open WebUI's own tools for the same; with both, the model would have to guess."""


def made_tools(valves: Valves, user: UserValves) -> list[Item]:
    """Return the tools to offer; raises InvalidRequest for options that are none."""
    tools: list[Item] = []
    if _is_on(user.CODE_INTERPRETER, valves.ENABLE_CODE_INTERPRETER):
        tools.append({"type": "code_interpreter", "container": {"type": "auto"}})
    if _is_on(user.IMAGE_GENERATION, valves.ENABLE_IMAGE_GENERATION):
        options = _picture_options(valves.IMAGE_GENERATION_OPTIONS)
        tools.append({**options, "type": "image_generation"})
    return tools


def replaced_by(tools: list[Item]) -> set[str]:
    """Return the names of the host's tools that `tools` stand in for."""
    return {name for tool in tools for name in _REPLACED.get(tool["type"], ())}


def _is_on(user: str, administrator: bool) -> bool:
    return administrator if user == "inherit" else user == "on"


def _picture_options(text: str) -> Item:
    options = typed_object(text.strip() or "{}")
    if options is not None:
        return options
    raise InvalidRequest(
        "IMAGE_GENERATION_OPTIONS is not a JSON object. An administrator has to correct "
        'it in the valves of this pipe, for example {"quality": "high"}.'
    )
