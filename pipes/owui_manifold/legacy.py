"""Models whose tools the host calls in its older way, before the model is asked."""

from collections.abc import Mapping

from owui_manifold.host import legacy_model, make_native
from owui_manifold.job import Asked

_HOW = (
    "Open WebUI calls tools of this model in its legacy way: before the model is asked, "
    "and without its reasoning."
)
_ADVICE = (
    " Set Function Calling to Native in the model's advanced parameters, or switch on "
    "AUTO_NATIVE_TOOLS in the valves of this pipe."
)
_DONE = " AUTO_NATIVE_TOOLS has set it to Native, from the next message on."


async def legacy_notices(asked: Asked) -> list[str]:
    """Tell an administrator once of a model that is set so; change it if they wish.

    What a user chose for a chat of their own is left alone.
    """
    metadata, lessons = asked.around.metadata, asked.lessons
    params = metadata.get("params")
    way = params.get("function_calling") if isinstance(params, Mapping) else None
    if asked.caller.task or way != "legacy":
        return []
    model_id = str(metadata.get("model_id") or asked.caller.host_model)
    row = await legacy_model(model_id)
    if row is None:
        return []
    changed = asked.valves.AUTO_NATIVE_TOOLS and await make_native(row)
    notice = _HOW + (_DONE if changed else _ADVICE)
    if lessons.is_news(f"log: {model_id}: {notice}"):
        asked.log.line("WARNING", f"{model_id}: {notice}")
    is_shown = asked.caller.is_admin and lessons.is_news(f"chat: {model_id}: {notice}")
    return [notice] if is_shown else []
