"""title: GPT-5 Agent Strategies
author: The authors of OpenAI Responses Manifold
version: 1.12.0
license: MIT
description: Agents over the Responses API, with policies, limits and approvals.

The story of a question, from the Pipelines server's call to the last piece.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from gpt5_agent.shell.answers import (
    DONE_LINE,
    answer_once,
    failed_result,
    failed_stream,
    streamed_answer,
)
from gpt5_agent.shell.bridge import (
    AnswerPiece,
    AsyncBridge,
    BridgeClosed,
    close_on_sigterm,
)
from gpt5_agent.shell.call import (
    PipelineCall,
    SharedState,
    build_endpoint,
    read_api_key,
    read_guide,
)
from gpt5_agent.shell.callers import select_keys
from gpt5_agent.shell.inlet import (
    CONTEXT_KEY,
    accepted_body,
    read_attached,
    read_caller,
    read_inlet_context,
)
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.sealing import signing_secret
from gpt5_agent.shell.server_access import usable_secrets, usable_settings
from gpt5_agent.shell.valves import Valves, ValveSettings
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import as_mapping, value_at
from openai_responses.ulid import new_ulid
from owui_chat.render.chunks import error_chunk
from owui_chat.storage.signature import Sign, is_signed, sign_object, signer
from shells.caller import PERMISSION_ADVICE, log_left_out
from strategies.parameters import STRATEGY_NAMES

_MIN_THREADS = 400
"""The server gives 40 threads to all its streams, and each of ours waits in one."""

_STOPPED_TEXT = (
    "This answer was ended: the Pipelines server was stopped or reloaded its pipelines, "
    "or nobody read the answer for some seconds. Ask again."
)


class _UnloggedAnswer(dict[str, Any]):
    """A complete answer; the server writes its `repr` to the log."""

    def __repr__(self) -> str:
        return "a whole answer"


class Pipeline:
    """Two agents, which share one loop."""

    Valves = Valves

    def __init__(self) -> None:
        """Open nothing: the server creates one at every load."""
        self.type = "manifold"
        self.valves = self.Valves()
        self._shared = SharedState()
        self._restore_sigterm: Callable[[], object] | None = None
        self._bridge = AsyncBridge(error_chunk(_STOPPED_TEXT), self._shared.close)

    def pipelines(self) -> list[dict[str, str]]:
        """Return the agents as models, and ask their server for its own.

        OpenAI's and Azure's is not asked: the catalog knows more of their models.
        """
        with suppress(InvalidRequest):
            valves = usable_settings(self.valves).valves
            endpoint = build_endpoint(valves, _new_log())
            if not endpoint.serves_openai:

                async def refresh() -> None:  # in the loop whose connections it uses
                    self._shared.listed.refresh(endpoint, self._shared.connections)

                self._bridge.begin(refresh())
        return [
            {"id": strategy, "name": name} for strategy, name in STRATEGY_NAMES.items()
        ]

    async def on_startup(self) -> None:
        """Let more answers wait at once, and end them when the server is stopped.

        What is wrong with the valves is in the log before anybody asks, also what will
        refuse each question.
        """
        try:
            threads = import_module("anyio.to_thread")
        except ImportError:  # then nothing limits them
            pass
        else:
            limiter = threads.current_default_thread_limiter()
            limiter.total_tokens = max(limiter.total_tokens, _MIN_THREADS)
        log = _new_log()
        settings = usable_settings(self.valves)
        self._log_problems(settings, log)
        for read in (read_guide, partial(build_endpoint, log=log)):
            try:
                read(settings.valves)
            except InvalidRequest as refused:
                log.warn(str(refused))
        self._restore_sigterm = close_on_sigterm(self._bridge)

    async def on_shutdown(self) -> None:
        """End all answers and close everything."""
        if self._restore_sigterm is not None:
            self._restore_sigterm()
        await asyncio.to_thread(self._bridge.close)

    async def inlet(
        self, body: dict[str, Any], user: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Put what is known of the chat into the body: `pipe` gets no metadata.

        It is signed, because Open WebUI also passes on bodies that saw no inlet.
        """
        context = read_inlet_context(body, user)
        sign = _context_signer(usable_secrets(self.valves))
        return {**accepted_body(body), CONTEXT_KEY: sign_object(context, sign)}

    def pipe(
        self,
        user_message: str | None,  # noqa: ARG002 - the server passes it by this name
        model_id: str,
        messages: Sequence[Mapping[str, Any]],
        body: dict[str, Any],
    ) -> Any:
        """Return an iterator if the caller streams, else one complete result.

        `user_message` is the last message of the user, which `messages` has.
        """
        settings = usable_settings(self.valves)
        if not _is_from_inlet(body, settings.valves):
            body = {key: value for key, value in body.items() if key != CONTEXT_KEY}
        caller = read_caller(body)
        log = _new_log()
        kept, left_out = select_keys(body, settings.expert.caller_may_set)
        reasons = dict.fromkeys(left_out, "")
        logged = self._shared.logged
        log_left_out(log, caller, reasons, logged, PERMISSION_ADVICE)
        self._log_problems(settings, log)
        call = PipelineCall(
            strategy=model_id,
            messages=messages,
            body=kept,
            settings=settings,
            shared=self._shared,
            log=log,
            caller=caller,
            attached=read_attached(body),
        )
        sender = caller.user_id or str(value_at(body, "user", "id") or "")
        try:
            if caller.streams:
                stream, beat = streamed_answer(call)
                return self._bridge.stream(stream, beat, sender)
            answer = self._bridge.run(answer_once(call), sender)
            return _UnloggedAnswer(answer) if isinstance(answer, dict) else answer
        except BridgeClosed:
            stopped = error_chunk(_STOPPED_TEXT)
            if caller.streams:
                return iter((stopped, DONE_LINE))
            return stopped
        except Exception as error:  # no thread could be started, or there are too many
            if not caller.streams:
                return failed_result(call, error)
            pieces: list[AnswerPiece] = [*failed_stream(call, error), DONE_LINE]
            return iter(pieces)

    def _log_problems(self, settings: ValveSettings, log: AgentLog) -> None:
        """Log once what is wrong with the valves."""
        for message in settings.problems:
            log.warn_once(message, self._shared.logged)


def _new_log() -> AgentLog:
    return AgentLog(new_ulid()[-10:])


def _is_from_inlet(body: Mapping[str, Any], valves: Valves) -> bool:
    """Say whether the context of a body is ours, and about the user who sends it.

    Open WebUI itself names that user. The server lets anybody who can reach it ask
    the inlet.
    """
    context = as_mapping(body.get(CONTEXT_KEY))
    sender = value_at(body, "user", "id")
    if sender and context.get("user_id") not in (None, sender):
        return False
    return is_signed(context, _context_signer(valves))


def _context_signer(valves: Valves) -> Sign:
    key = ""
    with suppress(InvalidRequest):  # a question without a key tells why it is refused
        key = read_api_key(valves)
    return signer(signing_secret(key), "gpt5_agent context")
