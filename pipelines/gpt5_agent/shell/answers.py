"""Answers one call of the pipeline: a chat as a stream or as one result, or a task.

Nothing is raised: an exception would remove what is already shown.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import NamedTuple

from gpt5_agent.agent.loop import run_agent
from gpt5_agent.request import AgentRequest
from gpt5_agent.shell.bridge import AnswerPiece
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.own_tools import (
    OwnToolPool,
    list_server_secrets,
    read_server_settings,
)
from gpt5_agent.shell.settings import (
    AgentInput,
    PipelineCaller,
    build_agent_request,
    build_endpoint,
    shows_thoughts,
    valve_secrets,
)
from gpt5_agent.shell.views import ClientRenderer, HostRenderer
from openai_responses.clock import monotonic_seconds, new_ulid, unix_seconds
from openai_responses.errors import ResponsesError
from openai_responses.loop.events import RunDone
from openai_responses.loop.run import run
from openai_responses.models.resolve import resolve_model
from openai_responses.redaction import describe_exception
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import origin_at
from openai_responses.transport.connections import Connections
from owui_chat.input.tasks import task_request, task_result
from owui_chat.render.chunks import Chunk, error_chunk
from owui_chat.render.completions import completion_text


def build_task_request(asked: AgentRequest, task: str) -> ResponsesRequest:
    """Return the request for a task; raises InvalidRequest."""
    return task_request(resolve_model(asked.model), asked.messages, asked.body, task)


DONE_LINE = "data: [DONE]"

_INTERNAL_ERROR = (
    "Something in this pipeline went wrong. Try again; if it lasts, give an "
    "administrator the error id."
)


class PipelineCall(NamedTuple):
    """One call of the pipeline, with what is needed to answer it."""

    question: AgentInput
    caller: PipelineCaller
    connections: Connections
    workbench: OwnToolPool


async def stream_answer(call: PipelineCall) -> AsyncGenerator[AnswerPiece, None]:
    """Yield the answer in the reader's form, closed by an end marker."""
    log = AgentLog(new_ulid()[-10:])
    try:
        if call.caller.task:
            yield _convert_to_chunk(await _run_task(call, log))
        else:
            async with aclosing(_stream_chunks(call, log)) as chunks:
                async for chunk in chunks:
                    yield chunk
    except Exception as error:  # raised, it would take away what has been shown
        yield error_chunk(_report_exception(error, log))
    yield DONE_LINE


async def answer_once(call: PipelineCall) -> Chunk:
    """Return the complete answer as one result."""
    log = AgentLog(new_ulid()[-10:])
    try:
        if call.caller.task:
            return await _run_task(call, log)
        async with _open_own_tools(call, log) as lent:
            asked, view = _choose_view(lent, log)
            async with aclosing(run_agent(asked)) as events:
                async for event in events:
                    for _ in view.show(event):
                        pass
            return view.result(*_make_completion_fields(call.caller))
    except Exception as error:  # raised, it would be no answer, only HTTP 500
        return error_chunk(_report_exception(error, log))


@asynccontextmanager
async def _open_own_tools(
    call: PipelineCall, log: AgentLog
) -> AsyncGenerator[PipelineCall, None]:
    valves = call.question.valves
    log.hide(
        (
            *valve_secrets(build_endpoint(valves)),
            *list_server_secrets(read_server_settings(valves)),
        )
    )
    workspace = call.caller.workspace or log.run_id
    async with call.workbench.open_tools(valves, workspace, log) as tools:
        yield call._replace(question=call.question._replace(tools=tools))


def _choose_view(
    call: PipelineCall, log: AgentLog
) -> tuple[AgentRequest, HostRenderer | ClientRenderer]:
    asked, caller = _build_agent_request(call, log), call.caller
    emits = shows_thoughts(call.question)
    if not caller.is_host:
        return asked, ClientRenderer(*_make_completion_fields(caller), emits)
    origin = origin_at(resolve_model(asked.model).family, asked.endpoint)
    return asked, HostRenderer(monotonic_seconds, emits, origin)


def _build_agent_request(call: PipelineCall, log: AgentLog) -> AgentRequest:
    endpoint = build_endpoint(call.question.valves)
    return build_agent_request(call.question, endpoint, call.connections, log)


async def _stream_chunks(
    call: PipelineCall, log: AgentLog
) -> AsyncGenerator[Chunk, None]:
    async with _open_own_tools(call, log) as lent:
        asked, view = _choose_view(lent, log)
        async with aclosing(run_agent(asked)) as events:
            async for event in events:
                for chunk in view.show(event):
                    yield chunk


async def _run_task(call: PipelineCall, log: AgentLog) -> Chunk:
    """Return a title, tags or the like, without the loop; empty if it failed."""
    text = ""
    try:
        log.hide(valve_secrets(build_endpoint(call.question.valves)))
        asked = _build_agent_request(call, log)
        request = build_task_request(asked, call.caller.task)
        events = run(request, asked.endpoint, asked.connections, asked.limits)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RunDone):
                    text = _read_task_text(event, log)
    except Exception as error:  # a title that failed is no reason to fail a chat
        _report_exception(error, log)
    return task_result(text, call.caller.model)


def _read_task_text(ended: RunDone, log: AgentLog) -> str:
    if ended.ending.is_failure:
        log.warn(ended.ending.sentence)
        return ""
    return completion_text(ended)


def _convert_to_chunk(result: Chunk) -> Chunk:
    """Return a complete result as the one chunk of a stream."""
    (choice,) = result["choices"]
    return {**result, "choices": [{**choice, "delta": choice["message"]}]}


def _make_completion_fields(caller: PipelineCaller) -> tuple[str, int, str]:
    return f"chatcmpl-{new_ulid()}", unix_seconds(), caller.model


def _report_exception(error: Exception, log: AgentLog) -> str:
    """Log why there is no answer; return the sentence to show."""
    if isinstance(error, ResponsesError):
        log.warn(f"nothing was sent: {error}")
        return log.with_error_id(str(error))
    log.warn(describe_exception(error))
    return log.with_error_id(_INTERNAL_ERROR)
