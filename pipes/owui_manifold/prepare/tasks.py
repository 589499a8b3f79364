"""The request of a task: a title, a summary and the like, without tools or stored items.

TASK_MODEL does the small tasks, at its lowest effort. Any other task is done by the model
that is asked for, at its own effort: a user or an administrator chose it for that. An
administrator of Open WebUI can also choose a model for the small ones.
"""

from collections.abc import Collection

from openai_responses.causes import SAFETY_STOPS
from openai_responses.endings import names_model
from openai_responses.endpoint import Endpoint
from openai_responses.items import text_message
from openai_responses.json_input import JsonObject, as_text, value_at
from openai_responses.loop.events import RunDone
from openai_responses.models.choice import choose_auto_model
from openai_responses.models.resolve import ResolvedModel
from openai_responses.requests.build import ResponsesRequest
from owui_chat.input.tasks import SMALL_TASKS, task_request, without_hosts_limit
from owui_host.task_models import chosen_task_models, task_parameters
from owui_manifold.call.callers import LENGTH_KEYS
from owui_manifold.call.config import run_limits
from owui_manifold.call.context import Call
from owui_manifold.call.models import OPENAI_HOST
from owui_manifold.host.open_webui import administrator_params, require_floor
from owui_manifold.prepare.request import (
    Prepared,
    build_with_allowed_effort,
    learned_repairs,
)


async def build_task_request(call: Call, *, with_task_model: bool = True) -> Prepared:
    """Return the request for a task; raises InvalidRequest.

    TASK_MODEL does small ones, unless the model that was asked for is to do them.
    """
    require_floor()
    task = call.caller.task
    chosen = await chosen_task_models(task)
    streams = call.caller.streams and call.valves.ENABLE_STREAM
    if task in SMALL_TASKS and call.caller.host_model not in chosen:
        model = task_model(call) if with_task_model else asked_model(call)
        request = task_request(model, call.messages, call.body, task, stream=streams)
    else:
        model = asked_model(call)
        request = await _own_effort_request(call, model, chosen, stream=streams)
    repairs = learned_repairs(call, request.model)
    request = request.model_copy(update={"repairs": repairs})
    return Prepared(call, request, run_limits(call.config.expert, model))


async def _own_effort_request(
    call: Call, model: ResolvedModel, chosen: Collection[str], *, stream: bool
) -> ResponsesRequest:
    """Return the request for a task that a model does at its own effort.

    `chosen` are the models that an administrator chose for the task. Limits of the
    administrator hold as for an answer.
    """
    # The host's own limit of tokens goes, unless somebody chose the same one.
    body = without_hosts_limit(call.body, call.caller.task)
    if body != call.body:
        settings = [await task_parameters()]
        for model_id in {call.model_id, *chosen}:
            settings.append(await administrator_params(model_id))
        most_chosen = [given.get("max_tokens") for given in settings]
        if call.body["max_tokens"] in most_chosen:
            body = dict(call.body)
    most = call.valves.MAX_OUTPUT_TOKENS
    if most and not any(body.get(key) for key in LENGTH_KEYS):
        body = {**body, "max_output_tokens": most}
    task = call.caller.task

    def build(given: JsonObject) -> ResponsesRequest:
        return task_request(
            model, call.messages, given, task, at_own_effort=True, stream=stream
        )

    return build_with_allowed_effort(call, model.facts, body, build)


def asked_model(call: Call) -> ResolvedModel:
    """Return the model that was asked for; of an automatic name, the one for the prompt."""
    last = call.messages[-1] if call.messages else None
    prompt = text_message("user", as_text(value_at(last, "content")))
    choice = choose_auto_model(call.model_name, prompt, tools=False, earlier=())
    return call.resolve(choice[0]) if choice else call.model


def task_model(call: Call) -> ResolvedModel:
    """Return the model for small tasks: the valve's, or the one that was asked for."""
    model = chosen_task_model(call)
    if model and _missing_model_text(call.endpoint, model.id) not in call.memory:
        return model
    return asked_model(call)


def chosen_task_model(call: Call) -> ResolvedModel | None:
    """Return the model of the valve, whether or not the key may use it.

    A server other than OpenAI's may not have the default model.
    """
    valves = call.valves
    wanted = valves.TASK_MODEL.strip()
    is_changed = "TASK_MODEL" in valves.model_fields_set
    if wanted and (is_changed or call.endpoint.host == OPENAI_HOST):
        return call.resolve(wanted)
    return None


def lacks_task_model(prepared: Prepared, ended: RunDone) -> bool:
    """Say whether the chat's model may do a task that TASK_MODEL could not.

    Only if the refusal names the model, later tasks get the chat's model at once.
    """
    call = prepared.call
    model = prepared.request.model
    if call.caller.task not in SMALL_TASKS:
        return False
    status = ended.trace.status or 0
    # OpenAI answers 400 for an unknown id, 404 for one that it has switched off.
    is_missing = names_model(status, ended.trace.error)
    is_refused = is_missing or status in (403, 404)
    is_stopped = ended.ending.code in SAFETY_STOPS
    if not is_refused or is_stopped or model == asked_model(call).id:
        return False
    if is_missing and call.memory.first_time(_missing_model_text(call.endpoint, model)):
        call.log.warn(
            f"TASK_MODEL: the key may not use {model}; the chat's model does tasks"
        )
    return True


def _missing_model_text(endpoint: Endpoint, model: str) -> str:
    """Return what `PipeMemory` remembers of a key without a task model."""
    return f"{endpoint.account()} {model} task"
