"""Answers one call of the pipeline: a chat as a stream or as one result, or a task.

Nothing is raised: an exception would remove what is already shown.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any

from gpt5_agent.agent.answer import run_agent
from gpt5_agent.events import AgentEvent
from gpt5_agent.request import AgentRequest
from gpt5_agent.shell.bridge import KEEPALIVE_CHUNK, AnswerPiece
from gpt5_agent.shell.call import (
    PipelineCall,
    build_agent_request,
    build_endpoint,
    build_limits,
    make_provider,
)
from gpt5_agent.shell.own_tools import open_host_files
from gpt5_agent.shell.views import ClientRenderer, HostRenderer, program_failure
from manifold.learning import RepairLearning, repair_scope
from manifold.request_settings import log_unsent_parameters
from manifold.views import (
    client_view,
    failure_chunks,
    log_refusal,
    log_status,
    readable_chunk,
    whole_failure,
)
from openai_responses.loop.events import RunDone, RunEvents, Status
from openai_responses.loop.run import run
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import ResponsesRequest
from owui_chat.input.tasks import (
    SMALL_TASKS,
    is_usable_text,
    task_request,
    task_result,
    without_hosts_limit,
)
from owui_chat.render.chunks import Chunk, whole_characters
from owui_chat.render.client_errors import exception_status
from owui_chat.render.completions import ChunkRenderer, completion_text
from sandbox.workspaces import WorkspaceKey
from shells.audit_log import AuditLog
from shells.failures import report_exception, report_run
from shells.valve_messages import PIPELINE_SHELL
from strategies.metadata import RunMetadata
from strategies.parameters import PARAMETERS

DONE_LINE = "data: [DONE]"

_Renderer = HostRenderer | ClientRenderer


def streamed_answer(
    call: PipelineCall,
) -> tuple[AsyncGenerator[AnswerPiece, None], AnswerPiece]:
    """Return the answer in its reader's form, and a chunk for when it is silent.

    All chunks of a program have the same head, as OpenAI's do, and a choice: strict
    clients fail without, and OpenAI's takes the id of an answer from the first one.
    """
    if call.caller.is_open_webui:
        return _stream_answer(call, None), KEEPALIVE_CHUNK
    view = client_view(call.caller)
    return _stream_answer(call, view), view.chunk({})


async def _stream_answer(
    call: PipelineCall, client: ChunkRenderer | None
) -> AsyncGenerator[AnswerPiece, None]:
    """Yield the answer in the form of a `client` or the page, closed by an end marker."""
    try:
        if call.caller.task:
            view = client or client_view(call.caller)
            async with aclosing(_task_events(call)) as task_events:
                async for task_event in task_events:
                    for chunk in view.render(task_event):
                        yield readable_chunk(chunk, call.caller)
        else:
            async with aclosing(_run_events(call, client)) as events:
                async for renderer, event in events:
                    for chunk in renderer.show(event):
                        yield readable_chunk(chunk, call.caller)
    except Exception as error:  # raised, it would take away what has been shown
        for chunk in failed_stream(call, error, client):
            yield chunk
    yield DONE_LINE


async def answer_once(call: PipelineCall) -> Any:
    """Return the complete answer as one result; a program gets the status of a failure."""
    result: Any
    try:
        if call.caller.task:
            result = await _run_task(call)
        else:
            async with aclosing(_run_events(call, None)) as events:
                async for renderer, event in events:
                    for _ in renderer.show(event):
                        pass
            result = renderer.result(call.caller.host_model)
    except Exception as error:  # raised, it would be no answer, only HTTP 500
        result = failed_result(call, error)
    return whole_characters(result) if isinstance(result, dict) else result


def failed_stream(
    call: PipelineCall, error: Exception, client: ChunkRenderer | None = None
) -> list[Chunk]:
    """Log why there is no answer; return what its stream ends with."""
    message, metadata = _report_refusal(call, error)
    caller = call.caller
    if not client and not caller.is_open_webui:
        client = client_view(caller)
    return failure_chunks(caller, message, error, metadata, client)


def failed_result(call: PipelineCall, error: Exception) -> Any:
    """Log why there is no answer; return what takes its place."""
    message, metadata = _report_refusal(call, error)
    result = whole_failure(call.caller, message, error, metadata)
    return program_failure(call.caller, result, exception_status(error), {})


def _report_refusal(
    call: PipelineCall, error: Exception
) -> tuple[str, RunMetadata | None]:
    """Log why there is no answer; return the message, and of a chat the figures."""
    metadata = None
    if not call.caller.task:
        model = resolve_model(call.model).id
        metadata = log_refusal(call.log, call.strategy, model, error)
    is_admin = call.caller.reads_reasons
    message = report_exception(call.log, error, PIPELINE_SHELL, is_admin=is_admin)
    return message, metadata


async def _run_events(
    call: PipelineCall, client: ChunkRenderer | None
) -> AsyncGenerator[tuple[_Renderer, AgentEvent], None]:
    """Yield the events of an agent's answer, each with what renders all of them.

    The renderer of a program continues that of a `client`, if there is one.
    """
    caller = call.caller
    log = call.log
    endpoint = build_endpoint(call.valves, log)
    key = WorkspaceKey(caller.user_id, caller.chat_id or log.run_id)
    attached = call.attached.files
    host_files = open_host_files(call.valves, caller.user_id, attached, log)
    lend_tools = call.shared.own_tools.lend_tools
    async with (
        aclosing(host_files) as files,
        lend_tools(call.settings, key, log, files, call.messages) as offer,
    ):
        store_file = files.store if caller.is_open_webui else None
        request = build_agent_request(call, endpoint, offer, store_file)
        audit = AuditLog(call.settings.expert, log, endpoint.host)

        def note_request(sent: ResponsesRequest) -> None:
            audit.note_request(sent)
            of_agents = {row.request_key for row in PARAMETERS.values()}
            asked = {key: call.body[key] for key in call.body if key not in of_agents}
            log_unsent_parameters(log, caller, asked, sent, call.shared.logged)

        emits_thoughts = request.parameters.emit_intermediate_thoughts
        renderer: _Renderer
        if caller.is_open_webui:
            renderer = HostRenderer(
                emits_thoughts,
                request.origin,
                request.sign,
                context=request.parameters.context,
                is_in_channel=caller.is_in_channel,
            )
        else:
            renderer = ClientRenderer(emits_thoughts, caller, client)

        work = run_agent(request, partial(make_provider, call), note_request)
        async with aclosing(work) as events:
            async for event in events:
                if isinstance(event, RunDone):
                    yield renderer, _reported(call, event, audit)
                else:
                    yield renderer, event


def _reported(call: PipelineCall, ended: RunDone, audit: AuditLog) -> RunDone:
    """Log an end, and return it; a failure gets the error id of the log."""
    audit.note_end(ended)
    ended = report_run(
        call.log,
        ended,
        PIPELINE_SHELL,
        is_admin=call.caller.reads_reasons,
        model=resolve_model(call.model).id,
    )
    # Nothing here compares a request with that of an earlier response.
    return ended._replace(trace=ended.trace._replace(response_id=""))


async def _run_task(call: PipelineCall) -> Chunk:
    """Return a title, a summary or the like; empty if it failed.

    A title that failed is no reason to fail a chat.
    """
    text = ""
    try:
        async with aclosing(_task_events(call)) as events:
            async for event in events:
                if not isinstance(event, RunDone):
                    continue
                if is_usable_text(call.caller.task, event.ending):
                    text = completion_text(event)
    except Exception as error:
        report_exception(call.log, error, PIPELINE_SHELL, is_admin=False, is_task=True)
    return task_result(text, call.caller.host_model)


async def _task_events(call: PipelineCall) -> RunEvents:
    """Yield the events of a task, without the loop; the log gets a failure."""
    log = call.log
    endpoint = build_endpoint(call.valves, log)
    question = build_agent_request(call, endpoint)
    request = _build_task(question, question.body, call.caller.task)

    def is_as_configured() -> bool:
        return request == _build_task(question, {}, call.caller.task)

    memory = call.shared.repairs
    scope = repair_scope(endpoint, request.model, call.caller.user_id)
    learning = RepairLearning(memory, scope, is_as_configured)
    repaired = request.model_copy(update={"repairs": memory.repairs(scope)})
    audit = AuditLog(call.settings.expert, log, endpoint.host)
    audit.note_request(repaired)
    limits = build_limits(call, question)
    events = run(repaired, endpoint, call.shared.connections, limits)
    async with aclosing(events):
        async for event in events:
            learning.note(event)
            match event:
                case RunDone():
                    yield _reported(call, event, audit)
                case Status():
                    yield log_status(log, event)
                case _:
                    yield event


def _build_task(
    question: AgentRequest, body: Mapping[str, Any], task: str
) -> ResponsesRequest:
    """Return the request of a task, with what `body` sets; raises InvalidRequest.

    Titles and the like are done at the lowest effort of the agent's model, other tasks
    at its own, without a limit that no one has chosen.
    """
    at_own_effort = task not in SMALL_TASKS
    if at_own_effort:
        body = without_hosts_limit(body, task)
        if question.settings.effort:
            body = {"reasoning_effort": question.settings.effort, **body}
    return task_request(
        question.model,
        question.messages,
        body,
        task,
        at_own_effort=at_own_effort,
        stream=question.settings.stream,
    )
