"""Where people can turn on OpenAI's images: what the model says, and a notice."""

from manifold.preparation import OfferedTools
from openai_responses.items import tool_name
from openai_responses.json_input import as_list, value_at
from openai_responses.models.resolve import ResolvedModel, takes_hosted_tool
from owui_manifold.call.config import calls_are_legacy
from owui_manifold.call.context import Call
from owui_manifold.call.valves import TOOL_SETTINGS

_KIND = "image_generation"
_IMAGE_SWITCH = "openai_responses_images"
"""The id of the filter that draws the switch *Images by OpenAI* (owui_controls)."""
_IMAGE_HINT = (
    "If people ask for an image and you have no tool that draws one, tell them that they "
    "can turn on Images by OpenAI in the menu next to the chat input."
)


def image_hint(call: Call, model: ResolvedModel) -> str:
    """Return what a model says that is asked to draw; empty where it would be wrong.

    It is the same whether or not the switch is on: another beginning would cost the
    prompt cache.
    """
    if not call.caller.is_open_webui or call.valves.ENABLE_IMAGE_GENERATION:
        return ""
    filters = value_at(call.host.model, "info", "meta", "filterIds")
    if _IMAGE_SWITCH not in as_list(filters):
        return ""
    return _IMAGE_HINT if _may_draw(call, model) else ""


def _may_draw(call: Call, model: ResolvedModel) -> bool:
    """Say whether the user may turn on images, and the model takes the tool."""
    return _KIND in call.config.permitted and takes_hosted_tool(model, _KIND)


_IMAGES_NOWHERE = (
    "Open WebUI's Image has no effect here: no tool for images is available to you "
    "with this model."
)
# A phone shows about 40 characters until somebody opens the line.
_IMAGES_ELSEWHERE = (
    "For images, turn on Images by OpenAI in the menu next to the chat input, or Image "
    "Generation in your settings of this pipe (Controls > Valves). Open WebUI's Image "
    "has no effect with this model."
)


def image_notice(call: Call, model: ResolvedModel, offered: OfferedTools) -> str:
    """Return where images can be turned on, once in a chat that has the host's Image on.

    The host then offers tools of its own, but none to a model without built-in tools;
    with legacy function calling it draws before it asks the model
    (docs/reference/open-webui.md, "Parameters and switches of a call").
    """
    metadata = call.host.metadata
    wanted = call.caller.is_open_webui and value_at(metadata, "features", _KIND)
    if not wanted or calls_are_legacy(metadata):
        return ""
    drawing = {_KIND, *TOOL_SETTINGS[_KIND].replaced}
    if any(tool_name(tool) in drawing for tool in offered.items):
        return ""
    # Who has turned it on and does not get it is told why by others.
    can_help = _KIND not in call.config.tool_kinds and _may_draw(call, model)
    notice = _IMAGES_ELSEWHERE if can_help else _IMAGES_NOWHERE
    call.warn_once(notice)
    is_new = call.memory.first_time(f"Image: {call.caller.chat_id}")
    return notice if is_new else ""
