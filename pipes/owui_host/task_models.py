"""Which models the administrators of Open WebUI chose for its tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

from openai_responses.json_input import as_mapping
from owui_host.lookup import host_name

_TASK_SETTINGS = ("task.model.default", "task.model.external")
_COMPACTION_SETTING = "chat.context_compaction.model"
TASK_MODEL_SETTINGS = (*_TASK_SETTINGS, _COMPACTION_SETTING)
"""All of them, for who looks for models that are gone."""
_MODEL_SETTINGS: Mapping[str, Sequence[str]] = {
    "title_generation": _TASK_SETTINGS,
    "follow_up_generation": _TASK_SETTINGS,
    "tags_generation": _TASK_SETTINGS,
    "emoji_generation": _TASK_SETTINGS,
    "query_generation": _TASK_SETTINGS,
    "image_prompt_generation": _TASK_SETTINGS,
    "autocomplete_generation": _TASK_SETTINGS,
    "function_calling": _TASK_SETTINGS,
    "context_compaction": (_COMPACTION_SETTING,),
}
"""The settings of the host that choose the model of a task.

They are read in routers/tasks.py:81 and utils/context_compaction.py:406 of 0.12.4. For
any other task, such as the merging of answers, the client names the model.
"""


async def chosen_task_models(task: str) -> set[str]:
    """Return the ids of the models that an administrator chose for a task.

    For a model of the workspace also the one it is made of, which the pipe is asked for.
    A setting that the host does not have chooses nothing.
    """
    config = host_name("models.config", "Config")
    models = host_name("models.models", "Models")
    chosen: set[str] = set()
    for key in _MODEL_SETTINGS.get(task, ()):
        model_id = await config.get(key, "")
        if not model_id:
            continue
        chosen.add(model_id)
        row = await models.get_model_by_id(model_id)
        base_id = getattr(row, "base_model_id", None)
        if base_id:
            chosen.add(str(base_id))
    return chosen


async def task_parameters() -> Mapping[str, Any]:
    """Return the parameters that an administrator chose for all tasks."""
    config = host_name("models.config", "Config")
    return as_mapping(await config.get("task.model.params", {}))
