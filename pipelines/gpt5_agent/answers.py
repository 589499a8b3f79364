"""One question answered, piece by piece or as a whole; nothing is raised."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from gpt5_agent.asked import AgentAsked
from gpt5_agent.bridge import Piece
from gpt5_agent.caller import Caller
from gpt5_agent.client_view import PlainView
from gpt5_agent.log import AgentLog
from gpt5_agent.settings import (
    Question,
    agent_asked,
    build_endpoint,
    emits_thoughts,
    valve_secrets,
)
from gpt5_agent.strategy import run_agent
from gpt5_agent.task import task_request
from gpt5_agent.views import HostView
from gpt5_agent.workbench import Workbench, server_secrets, servers_of
from openai_responses.clock import monotonic_seconds, new_ulid, unix_seconds
from openai_responses.errors import ResponsesError
from openai_responses.loop.events import RunDone
from openai_responses.loop.run import run
from openai_responses.models.resolve import resolve_model
from openai_responses.redaction import describe_exception
from openai_responses.requests.replay import origin_at
from openai_responses.transport.connections import Connections
from owui_chat.input.tasks import task_result
from owui_chat.render.chunks import Chunk, error_chunk
from owui_chat.render.completions import completion_text

DONE = "data: [DONE]"

_OUR_FAULT = (
    "Something in this pipeline went wrong. Try again; if it lasts, give an "
    "administrator the error id."
)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the pipeline: what is asked, who reads, what it is answered with."""

    question: Question
    caller: Caller
    connections: Connections
    workbench: Workbench


async def streamed(call: Call) -> AsyncGenerator[Piece, None]:
    """Yield the answer as its reader understands it, with an end of its own."""
    log = AgentLog(new_ulid()[-10:])
    try:
        if call.caller.task:
            yield _as_chunk(await _task(call, log))
        else:
            async with aclosing(_chunks(call, log)) as chunks:
                async for chunk in chunks:
                    yield chunk
    except Exception as error:  # raised, it would take away what has been shown
        yield error_chunk(_sentence_of(error, log))
    yield DONE


async def whole(call: Call) -> Chunk:
    """Return the whole answer as one result (R27)."""
    log = AgentLog(new_ulid()[-10:])
    try:
        if call.caller.task:
            return await _task(call, log)
        async with _lent(call, log) as lent:
            asked, view = _prepared(lent, log)
            async with aclosing(run_agent(asked)) as events:
                async for event in events:
                    for _ in view.show(event):
                        pass
            return view.result(*_heading(call.caller))
    except Exception as error:  # raised, it would be no answer, only HTTP 500
        return error_chunk(_sentence_of(error, log))


@asynccontextmanager
async def _lent(call: Call, log: AgentLog) -> AsyncGenerator[Call, None]:
    """Lend the call its tools; raises InvalidRequest."""
    valves = call.question.valves
    log.hide(valve_secrets(build_endpoint(valves)) + server_secrets(servers_of(valves)))
    workspace = call.caller.workspace or log.run_id
    async with call.workbench.lend(valves, workspace, log) as tools:
        yield replace(call, question=replace(call.question, tools=tools))


def _prepared(call: Call, log: AgentLog) -> tuple[AgentAsked, HostView | PlainView]:
    """Return what to ask and how to show it; raises InvalidRequest."""
    asked, caller = _asked(call, log), call.caller
    emits = emits_thoughts(call.question)
    if not caller.host_reads:
        return asked, PlainView(*_heading(caller), emits)
    origin = origin_at(resolve_model(asked.model).family, asked.endpoint)
    return asked, HostView(monotonic_seconds, emits, origin)


def _asked(call: Call, log: AgentLog) -> AgentAsked:
    endpoint = build_endpoint(call.question.valves)
    return agent_asked(call.question, endpoint, call.connections, log)


async def _chunks(call: Call, log: AgentLog) -> AsyncGenerator[Chunk, None]:
    async with _lent(call, log) as lent:
        asked, view = _prepared(lent, log)
        async with aclosing(run_agent(asked)) as events:
            async for event in events:
                for chunk in view.show(event):
                    yield chunk


async def _task(call: Call, log: AgentLog) -> Chunk:
    """Return a title, tags or the like, without the loop (R28); empty if it failed."""
    text = ""
    try:
        log.hide(valve_secrets(build_endpoint(call.question.valves)))
        asked = _asked(call, log)
        request = task_request(asked, call.caller.task)
        events = run(request, asked.endpoint, asked.connections, asked.limits)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, RunDone):
                    text = _task_text(event, log)
    except Exception as error:  # a title that failed is no reason to fail a chat
        _sentence_of(error, log)
    return task_result(text, call.caller.model)


def _task_text(ended: RunDone, log: AgentLog) -> str:
    if ended.ending.is_failure:
        log.warn(ended.ending.sentence)
        return ""
    return completion_text(ended)


def _as_chunk(result: Chunk) -> Chunk:
    """Return a whole result as the one chunk of a stream."""
    (choice,) = result["choices"]
    return {**result, "choices": [{**choice, "delta": choice["message"]}]}


def _heading(caller: Caller) -> tuple[str, int, str]:
    """Return the id, the time and the model that a result or its chunks carry."""
    return f"chatcmpl-{new_ulid()}", unix_seconds(), caller.model


def _sentence_of(error: Exception, log: AgentLog) -> str:
    """Log why there is no answer; return the sentence to show."""
    if isinstance(error, ResponsesError):
        log.warn(f"nothing was sent: {error}")
        return log.with_error_id(str(error))
    log.warn(describe_exception(error))
    return log.with_error_id(_OUR_FAULT)
