"""What a title, tags or the like come to: a small request, without tools or memory."""

from openai_responses.endpoint import DEFAULT_BASE_URL, Endpoint
from openai_responses.models import ResolvedModel
from openai_responses.origin import origin_at
from openai_responses.overrides import resolve_overridden
from openai_responses.request import Settings, build_request
from owui_chat.history import build_input
from owui_chat.messages import read_messages
from owui_chat.tasks import task_format, task_messages
from owui_manifold.accounts import asked_endpoint
from owui_manifold.host import require_floor
from owui_manifold.job import Asked, Job, messages_of, model_of, overrides_of
from owui_manifold.settings import limits_of

_NOT_FOR_TASKS = frozenset(
    {
        *("reasoning", "reasoning_effort", "reasoning_summary"),
        *("text", "verbosity", "response_format", "json_schema"),
        *("tools", "tool_choice", "parallel_tool_calls"),
    }
)
"""What a person or a workspace model asks of an answer, which a title is none of."""


def prepare_task(asked: Asked) -> Job:
    """Return the job for a title, tags or the like; raises InvalidRequest."""
    require_floor()
    endpoint = asked_endpoint(asked)
    model = _task_model(asked, endpoint)
    messages = task_messages(messages_of(asked.body))
    instructions, stretches = read_messages(messages)
    body = {k: v for k, v in asked.body.items() if k not in _NOT_FOR_TASKS}
    form = task_format(asked.caller.task, messages)
    if form and model.facts.known_family:
        body["text"] = {"format": form}
    settings = Settings(
        effort=model.lowest_effort(), stream=False, encrypted_reasoning=False
    )
    items = build_input(stretches, {}, None)
    request = build_request(model, instructions, items, body, settings)
    origin = origin_at(model.family, endpoint)
    limits = limits_of(asked.valves, tools_ran=False)
    return Job(asked, request, endpoint, origin, limits)


def _task_model(asked: Asked, endpoint: Endpoint) -> ResolvedModel:
    """Return the model for tasks: the valve's, or the chat's own.

    Another server than OpenAI's need not have the model of the default.
    """
    wanted, valves = asked.valves.TASK_MODEL.strip(), asked.valves
    chosen = "TASK_MODEL" in valves.model_fields_set
    if wanted and (chosen or endpoint.host == Endpoint(DEFAULT_BASE_URL, "").host):
        return resolve_overridden(wanted, overrides_of(valves))
    return model_of(asked)
