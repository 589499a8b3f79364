"""title: OpenAI Responses Manifold
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: GPT models over the Responses API, with reasoning that is remembered.

How a request is handled, from Open WebUI's call to the last chunk.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any

from openai_responses.clock import monotonic_seconds, unix_seconds
from openai_responses.endings import CUT
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.loop.events import RunDone
from openai_responses.transport.connections import Connections
from openai_responses.ulid import new_ulid
from owui_chat.events import AnswerEvent
from owui_chat.input.tasks import task_result
from owui_chat.render.chunks import Chunk, error_chunk, source_chunk
from owui_chat.render.completions import ChunkRenderer, completion, completion_text
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from owui_manifold.call.callers import permitted_call
from owui_manifold.call.config import AccountCapabilities, read_config
from owui_manifold.call.context import PipeCall, read_caller
from owui_manifold.call.log import RunLog
from owui_manifold.call.models import Listing, list_models
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.host.context import HostContext
from owui_manifold.host.open_webui import (
    active_administration,
    allowed_features,
    identity_headers,
)
from owui_manifold.host.threads import ToolThreads
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.request import build_task_request, lacks_task_model
from owui_manifold.present.report import report_exception
from owui_manifold.run.answer import answer_events
from owui_manifold.run.checkup import (
    is_check_command,
    last_user_text,
    run_diagnostics,
    stream_lines,
)
from owui_manifold.run.failover import answer_with_failover, at_endpoint

_NO_ENTRA = (
    "AUTH `entra_id` needs the filter openai_responses_administration. An administrator "
    "has to install it."
)
_NO_LEGACY_TOOLS = "Function Calling is Legacy, so TOOL_APPROVAL lets no tool run"


class Pipe:
    """OpenAI's models in Open WebUI, one for each entry of MODEL_ID."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        """Open and start nothing: the host creates a Pipe at every upload."""
        self.valves = self.Valves()
        self._connections = Connections()
        self._capabilities = AccountCapabilities()
        self._listing = Listing()
        self._capabilities.shutdown_dates = self._listing.shutdown_dates
        self._threads = ToolThreads()

    def pipes(self) -> list[dict[str, str]]:
        """Return the models to list."""
        models = list_models(self.valves, self._listing, self._connections)
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
    ) -> AsyncGenerator[Chunk, None] | Chunk:
        """Answer a chat: chunks if the caller streams, else one complete result.

        The host replaces `self.valves` at every call.
        """
        valves = self.valves
        host = await allowed_features(__metadata__ or {}, __user__ or {})
        config = read_config(valves, __user__, host)
        call = PipeCall(
            body,
            read_caller(body, __user__, __metadata__, __task__),
            config,
            self._capabilities,
            RunLog(config.log_level, config.secrets, new_ulid()[-10:]),
            HostContext(
                __tools__ or {},
                __request__,
                __metadata__ or {},
                __event_call__,
                __event_emitter__,
            ),
            self._threads,
            __user__ or {},
        )
        if call.caller.task:
            return await self._do_task(call)
        if call.caller.streams:
            return self._stream(call)
        return await self._complete(call)

    async def _stream(self, call: PipeCall) -> AsyncGenerator[Chunk, None]:
        """Yield the answer in the form that the reader of the stream understands.

        Nothing is raised: the host would drop the text that was shown
        (docs/reference/open-webui.md, "Errors and Stop").
        """
        failed = True
        view = _new_view(call)
        try:
            async with aclosing(await self._answer(call)) as events:
                async for event in events:
                    for chunk in view.render(event):
                        yield chunk
                    if isinstance(event, RunDone):
                        failed = event.ending.is_failure
        except Exception as error:
            yield error_chunk(report_exception(call, error))
        if failed and call.config.shows_log and call.caller.host_reads:
            yield source_chunk("Log of this answer", call.log.text())

    async def _complete(self, call: PipeCall) -> Chunk:
        """Return the whole answer at once, with the output items for the host.

        The page shows no finish_reason: an answer that ended early gets a sentence. The
        host would show the text of an exception.
        """
        try:
            ended, items = await self._watch(call, await self._answer(call))
        except Exception as error:
            return error_chunk(report_exception(call, error))
        result = completion(ended, *_response_head(call))
        if not call.caller.host_reads:
            return result
        if ended.ending.is_failure:
            result |= error_chunk(ended.ending.sentence)
        if items:
            result |= {"output": items}
        return result

    async def _do_task(self, call: PipeCall) -> Chunk:
        """Return a title, tags or the like; an empty text when it failed.

        A failed title must not make the chat fail. The host would run the tools of its
        older mode without the rules.
        """
        text = ""
        if call.caller.task == "function_calling" and call.config.approval_rules:
            call.log.warn(_NO_LEGACY_TOOLS)
            return task_result(text, call.caller.host_model)
        try:
            text = await self._task_text(await self._permitted(call))
        except Exception as error:
            report_exception(call, error)
        return task_result(text, call.caller.host_model)

    async def _task_text(self, call: PipeCall) -> str:
        """Return a task's text; the chat's model does what TASK_MODEL may not."""
        while True:
            request = build_task_request(call)
            events = answer_events(request, self._connections)
            ended, _ = await self._watch(call, events)
            if not lacks_task_model(request, ended):
                return "" if ended.ending.is_failure else completion_text(ended)

    async def _answer(self, call: PipeCall) -> AsyncGenerator[AnswerEvent, None]:
        """Return the events of a chat's answer, or of a check of the set-up."""
        permitted = await self._permitted(call)
        if is_check_command(call):
            return run_diagnostics(permitted, self._connections)
        account = permitted.account
        lines = account.limits.usage_answer(last_user_text(call)) if account else None
        if lines:
            return stream_lines(lines)
        request = await build_chat_request(permitted)
        if account and account.endpoints:
            permit = partial(self._permitted, call._replace(account=account))
            return answer_with_failover(
                request, account.endpoints, permit, self._connections
            )
        return answer_events(request, self._connections)

    async def _permitted(self, call: PipeCall) -> PipeCall:
        """Return the call with what its caller may set, and with what proves who asks."""
        asked = None if call.account else call.host.request
        administration = await active_administration(asked)
        if administration:
            account = await administration.begin(call.facts)
            call = call._replace(account=account)
        call = at_endpoint(call)
        config = call.config
        valves = call.valves
        endpoint = call.endpoint
        if valves.AUTH == "entra_id" and not config.own_key:
            if not call.account:
                raise InvalidRequest(_NO_ENTRA)
            ask = call.account.entra_token
            token, problem = await ask(valves.BASE_URL, config.expert.entra_scope)
            if problem:
                raise InvalidRequest(problem)
            config = config._replace(token=token, secrets=(*config.secrets, token))
            call.log.hide(token)
        forwards = valves.FORWARD_USER_INFO
        if forwards == "always" or (forwards == "auto" and endpoint.is_gateway):
            headers = await identity_headers(call.host, call.caller.user_id)
            config = config._replace(identity=headers)
        return await permitted_call(call._replace(config=config))

    async def _watch(
        self, call: PipeCall, events: AsyncGenerator[AnswerEvent, None]
    ) -> tuple[RunDone, list[Item]]:
        """Read `events`; return their end and the items for the host."""
        ended = RunDone(CUT)
        view = NativeRenderer(monotonic_seconds, HostedItems)
        async with aclosing(events):
            async for event in events:
                for chunk in view.render(event):
                    if "event" in chunk and call.page:  # a status, or a source
                        await call.page(chunk["event"])
                ended = event if isinstance(event, RunDone) else ended
        return ended, view.shown.items


def _new_view(call: PipeCall) -> NativeRenderer | ChunkRenderer:
    """Return what renders the stream for its reader: Open WebUI or a plain client."""
    if call.caller.host_reads:
        return NativeRenderer(monotonic_seconds, HostedItems)
    return ChunkRenderer(*_response_head(call))


def _response_head(call: PipeCall) -> tuple[str, int, str]:
    """Return the id, the time and the model that a result or its chunks carry."""
    return f"chatcmpl-{new_ulid()}", unix_seconds(), call.caller.host_model
