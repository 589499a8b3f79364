"""title: OpenAI Responses Manifold
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: GPT models over the Responses API, with reasoning that is remembered.

How a request is handled, from Open WebUI's call to the last chunk.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from manifold.http_failures import failed_answer, failure_headers
from manifold.views import (
    OpenMessages,
    client_view,
    failure_chunks,
    metadata_chunk,
    page_result,
    readable_chunk,
    whole_completion,
    whole_failure,
)
from openai_responses.clock import monotonic_seconds
from openai_responses.endings import COMPLETED, CUT
from openai_responses.errors import InvalidRequest
from openai_responses.items import text_message
from openai_responses.json_input import JsonObject
from openai_responses.loop.events import RunDone, ToolOutput
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import TextDelta
from openai_responses.ulid import new_ulid
from owui_chat.events import AnswerEvent
from owui_chat.input.tasks import is_usable_text, task_result
from owui_chat.older_calls import in_older_form, with_todays_tools
from owui_chat.render.chunks import Chunk, source_chunk, whole_characters
from owui_chat.render.client_errors import ending_status, exception_status
from owui_chat.render.completions import ChunkRenderer, completion_text, has_failed
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_chat.wording import code_block
from owui_manifold.call.checking import calls_to_each_endpoint, check_call
from owui_manifold.call.config import read_config
from owui_manifold.call.context import (
    ArrivedCall,
    Call,
    Caller,
    PipeMemory,
    read_caller,
)
from owui_manifold.call.log import RunLog
from owui_manifold.call.models import list_models
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.host.http_answers import event_stream, failure_response
from owui_manifold.host.open_webui import (
    EventEmitter,
    HostContext,
    StoredOutput,
    is_in_others_chat,
    wait_for_database,
    without_forbidden_search,
)
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.tasks import build_task_request, lacks_task_model
from owui_manifold.present.report import report_refusal
from owui_manifold.run.answer import answer_events
from owui_manifold.run.checkup import check_lines, unanswered_lines
from owui_manifold.run.commands import (
    CHECK_COMMAND,
    command_task_text,
    read_command,
    stream_lines,
    usage_lines,
)
from owui_manifold.run.failover import answer_with_failover
from shells.failures import report_exception
from shells.valve_messages import PIPE_SHELL

_NO_LEGACY_TOOLS = "Function Calling is Legacy, so TOOL_APPROVAL lets no tool run"


class Pipe:
    """OpenAI's models in Open WebUI, one for each entry of MODEL_ID."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        """Open and start nothing: the host creates a Pipe at every upload."""
        self.valves = self.Valves()
        self._connections = Connections()
        self._memory = PipeMemory()

    async def pipes(self) -> list[dict[str, str]]:
        """Return the models to list."""
        listing = self._memory.listed
        models = await list_models(self.valves, listing, self._connections)
        return [{"id": name, "name": model.name} for name, model in models.items()]

    async def pipe(  # noqa: PLR0913, PLR0917 - the host passes these, by name
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __task__: str | None = None,
        __tools__: dict[str, Any] | None = None,
        __event_call__: Any = None,
        __event_emitter__: Any = None,
    ) -> Any:
        """Answer a chat: chunks if the caller streams, else one complete result.

        Programs over plain HTTP get a response. The host replaces `self.valves` at
        every call.
        """
        user = __user__ or {}
        metadata = __metadata__ or {}
        tools = __tools__ or {}
        host = HostContext(
            tools=tools,
            request=__request__,
            user=user,
            metadata=metadata,
            event_call=__event_call__,
            event_emitter=__event_emitter__,
        )
        permitted: JsonObject = metadata
        answering: JsonObject | None = None
        is_guest = False
        fault: Exception | None = None
        try:
            answering = host.model
            permitted = await without_forbidden_search(host)
            is_guest = await is_in_others_chat(host)
        except Exception as error:  # the host would show the database's own words
            fault = error
        config = read_config(self.valves, user, permitted, body)
        caller = read_caller(body, user, metadata, __task__, tools, answering)
        caller = caller._replace(is_in_others_chat=is_guest)
        if caller.reads_older_calls:
            body = with_todays_tools(body)
        call = ArrivedCall(
            body=body,
            caller=caller,
            config=config,
            memory=self._memory,
            log=RunLog(
                config.valves.LOG_LEVEL,
                config.secrets,
                new_ulid()[-10:],
                keeps_all=config.shows_log,
            ),
            host=host,
        )
        if permitted is not metadata:
            call.note_left_out({"web_search": "no permission for web search"})
        if caller.streams:
            chunks = self._stream(call, fault)
            return chunks if caller.has_page else event_stream(chunks)
        answer = self._do_task if caller.task else self._complete
        result = await answer(call, fault)
        return whole_characters(result) if isinstance(result, dict) else result

    async def _stream(
        self, call: ArrivedCall, fault: Exception | None
    ) -> AsyncGenerator[Chunk, None]:
        """Yield the answer in the form that the reader of the stream understands.

        Nothing is raised: the host would drop the text that was shown
        (docs/reference/open-webui.md, "Errors and Stop").
        """
        caller = call.caller
        failed = True
        has_waited = False  # for the database, just before the last chunk
        view: NativeRenderer | ChunkRenderer
        if caller.has_page:
            # A channel shows no status lines.
            view = _page_view(has_status_lines=not caller.is_in_channel)
        else:
            view = client_view(caller)
        stored = StoredOutput(caller.chat_id, caller.message_id)
        try:
            async with aclosing(await self._answer(call, fault)) as events:
                async for event in events:
                    has_waited = False
                    if isinstance(event, RunDone):  # the host writes soon
                        await stored.close()
                    for chunk in view.render(event):
                        # An event the host writes into the message when it reads it.
                        has_waited = "event" in chunk
                        if not has_waited:
                            yield readable_chunk(chunk, caller)
                            continue
                        await _wait_to_store(caller)
                        async with stored.lock:
                            yield readable_chunk(chunk, caller)
                    if (
                        isinstance(event, ToolOutput)
                        and caller.may_have_row
                        and isinstance(view, NativeRenderer)
                        and not view.output.has_open_calls
                    ):
                        # A server that is killed then loses nothing older than a second.
                        stored.save_soon(view.output.items)
                    if isinstance(event, RunDone):
                        failed = event.ending.is_failure
        except Exception as error:
            await stored.close()
            metadata = report_refusal(call, error)
            message = report_exception(
                call.log, error, PIPE_SHELL, is_admin=caller.reads_reasons
            )
            has_waited = False
            client = view if isinstance(view, ChunkRenderer) else None
            for chunk in failure_chunks(caller, message, error, metadata, client):
                yield chunk
        finally:
            stored.cancel()
        shows_log = call.config.shows_log and caller.reads_reasons
        if failed and shows_log and caller.has_page:
            # The page draws Markdown there, and servers and tools write in the log.
            yield source_chunk(
                "Log of this answer", code_block(call.log.text(), "text")
            )
        if not has_waited:
            await _wait_to_store(caller)

    async def _complete(self, call: ArrivedCall, fault: Exception | None) -> Any:
        """Return the whole answer at once, with the output items for the host.

        The host would show the text of an exception. A plain client gets the status of a
        failure, with what there is of an answer: with status 200 it would be taken for a
        whole one.
        """
        caller = call.caller
        emit = call.page_emitter()
        has_lines = emit is not None and not caller.is_in_channel
        view = _page_view(has_status_lines=has_lines)
        try:
            events = await self._answer(call, fault)
            ended = await _watch(events, view, emit)
        except Exception as error:
            metadata = report_refusal(call, error)
            message = report_exception(
                call.log, error, PIPE_SHELL, is_admin=caller.reads_reasons
            )
            if metadata and emit:
                await emit(metadata_chunk(metadata)["event"])
            result = whole_failure(caller, message, error, metadata)
            if caller.is_open_webui:
                await _wait_to_store(caller)
                return result
            response = failure_response()
            return failed_answer(response, result, exception_status(error), {})
        await _wait_to_store(caller)
        if caller.is_open_webui:
            has_advice = bool(view.advice)
            return page_result(ended, caller.host_model, view, has_advice=has_advice)
        result = whole_completion(
            ended, caller.host_model, view.report, has_format=caller.wants_format
        )
        if caller.reads_older_calls:
            result = in_older_form(result)
        if not has_failed(ended.ending):
            return result
        response = failure_response()
        headers = failure_headers(ended)
        return failed_answer(response, result, ending_status(ended), headers)

    async def _do_task(self, call: ArrivedCall, fault: Exception | None) -> Chunk:
        """Return a title, a summary or the like; an empty text if that failed.

        A failed title must not make the chat fail.
        """
        text = ""
        try:
            events = await self._answer(call, fault)
            ended = await _watch(events, _page_view())
            if is_usable_text(call.caller.task, ended.ending):
                text = completion_text(ended)
        except Exception as error:
            report_exception(call.log, error, PIPE_SHELL, is_admin=False, is_task=True)
        return task_result(text, call.caller.host_model)

    async def _task_events(self, call: Call) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the events of a task.

        With rules for approvals the host's task `function_calling` gets no answer: in its
        legacy mode the host would run the tools without them.
        """
        known_text = command_task_text(call)
        if call.caller.task == "function_calling" and call.config.approval_rules:
            call.log.warn(_NO_LEGACY_TOOLS)
            known_text = ""
        if known_text is not None:
            yield TextDelta(0, "text", 0, known_text)
            yield RunDone(COMPLETED, output=(text_message("assistant", known_text),))
            return
        # If TASK_MODEL is refused, the model that was asked for does the task.
        for with_task_model in (True, False):
            is_refused = False
            prepared = await build_task_request(call, with_task_model=with_task_model)
            async with aclosing(answer_events(prepared, self._connections)) as events:
                async for event in events:
                    if isinstance(event, RunDone):
                        is_refused = lacks_task_model(prepared, event)
                    if not is_refused:
                        yield event
            if not is_refused:
                return

    async def _answer(
        self, arrived: ArrivedCall, fault: Exception | None
    ) -> AsyncGenerator[AnswerEvent, None]:
        """Return the events of an answer: of the model, of a task, of `/check`, `/usage`.

        A `fault` from before there was anything that could tell it is raised here.
        """
        if fault:
            raise fault
        command = read_command(arrived.messages)
        wants_check = arrived.caller.is_admin and command == CHECK_COMMAND
        try:
            call = await check_call(arrived)
        except InvalidRequest as error:
            if wants_check and not arrived.caller.task:
                return stream_lines(unanswered_lines(arrived.config, error))
            raise
        if call.caller.task:
            return self._task_events(call)
        if wants_check:
            endpoints = await calls_to_each_endpoint(arrived, call)
            return stream_lines(check_lines(call, self._connections, endpoints))
        lines = usage_lines(call, command)
        if lines:
            return stream_lines(lines)
        prepared = await build_chat_request(call)
        account = call.account
        if account and account.endpoints:
            check_again = partial(check_call, arrived, account)
            return answer_with_failover(
                prepared, account.endpoints, check_again, self._connections
            )
        return answer_events(prepared, self._connections)


async def _watch(
    events: AsyncGenerator[AnswerEvent, None],
    view: NativeRenderer,
    emit: EventEmitter | None = None,
) -> RunDone:
    """Read `events` and return their end; the `view` has the items for the host.

    What only a page shows, like a status or a source, is emitted meanwhile.
    """
    ended = RunDone(CUT)
    messages = OpenMessages()
    async with aclosing(events):
        async for event in events:
            messages.note(event)
            whole: list[AnswerEvent] = [event]
            if isinstance(event, RunDone):
                ended = event
                if event.ending.is_failure:
                    # A stream's reader has the text of messages that were cut; a
                    # whole answer has only what ended.
                    cut = messages.end()
                    items = [end.item for end in cut]
                    ended = event._replace(output=(*event.output, *items))
                    whole = [*cut, ended]
            for shown in whole:
                for chunk in view.render(shown):
                    if emit and "event" in chunk:
                        await emit(chunk["event"])
    return ended


def _page_view(*, has_status_lines: bool = True) -> NativeRenderer:
    return NativeRenderer(
        monotonic_seconds, HostedItems, has_status_lines=has_status_lines
    )


async def _wait_to_store(caller: Caller) -> None:
    """Wait for the host's database before the host stores something of an answer."""
    if caller.may_have_row:
        await wait_for_database(caller.chat_id)
