"""The request of a task: titles, tags and the like, without tools or stored items."""

from openai_responses.endings import SAFETY_STOPS, names_model
from openai_responses.endpoint import Endpoint
from openai_responses.loop.events import RunDone
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.replay import origin_at
from owui_chat.input.tasks import task_request
from owui_manifold.call.config import run_limits
from owui_manifold.call.context import CheckedCall
from owui_manifold.call.models import OPENAI_HOST
from owui_manifold.host.open_webui import require_floor
from owui_manifold.prepare.request import PreparedRequest, learned_repairs


def build_task_request(
    call: CheckedCall, model: ResolvedModel | None = None
) -> PreparedRequest:
    """Return the request for a title, tags or the like; raises InvalidRequest."""
    require_floor()
    model = model or task_model(call)
    request = task_request(model, call.messages, call.body, call.caller.task)
    repairs = learned_repairs(call, request.model)
    request = request.model_copy(update={"repairs": repairs})
    origin = origin_at(model.family, call.endpoint)
    limits = run_limits(call.config.expert, model)
    return PreparedRequest(call, request, origin, limits)


def task_model(call: CheckedCall) -> ResolvedModel:
    """Return the model for tasks: the valve's, or the chat's own.

    A server other than OpenAI's may not have the default model.
    """
    valves = call.valves
    wanted = valves.TASK_MODEL.strip()
    chosen = "TASK_MODEL" in valves.model_fields_set
    if wanted and (chosen or call.endpoint.host == OPENAI_HOST):
        model = call.resolve(wanted)
        if _missing_model_text(call.endpoint, model.id) not in call.capabilities:
            return model
    return call.model


def lacks_task_model(prepared: PreparedRequest, ended: RunDone) -> bool:
    """Say whether the chat's model may do a task that TASK_MODEL could not.

    Only if the refusal names the model, later tasks get the chat's model at once.
    """
    call = prepared.call
    model = prepared.request.model
    status = ended.trace.status or 0
    # OpenAI answers 400 for an unknown id, 404 for one that it has switched off.
    is_missing = names_model(status, ended.trace.error)
    is_refused = is_missing or status in (403, 404)
    is_stopped = ended.ending.code in SAFETY_STOPS
    if not is_refused or is_stopped or model == call.model.id:
        return False
    if is_missing and call.capabilities.first_time(
        _missing_model_text(call.endpoint, model)
    ):
        call.log.warn(
            f"TASK_MODEL: the key may not use {model}; the chat's model does tasks"
        )
    return True


def _missing_model_text(endpoint: Endpoint, model: str) -> str:
    """Return what `AccountCapabilities` remembers of a key without a task model."""
    return f"{endpoint.account()} {model} task"
