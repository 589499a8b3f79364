"""
title: OpenAI Responses Manifold
author: The authors of OpenAI Responses Manifold
version: 0.1.0
required_open_webui_version: 0.11.4
license: MIT
description: GPT models over the Responses API, with reasoning that is remembered.

The story of a request, from Open WebUI's call to the last chunk.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from traceback import extract_tb
from typing import Any

from openai_responses.clock import monotonic_seconds, unix_seconds
from openai_responses.endings import CUT
from openai_responses.errors import ResponsesError
from openai_responses.models import resolve_model
from openai_responses.run_events import RunEnded
from openai_responses.transport import Connections
from openai_responses.ulids import new_ulid
from owui_chat.chunks import ChunkView
from owui_chat.completion import completion, completion_text
from owui_chat.native import Chunk, NativeView, error_chunk
from owui_chat.tasks import task_result
from owui_manifold.answer import told
from owui_manifold.caller import read_caller
from owui_manifold.job import Asked, Job, prepare_chat, prepare_task
from owui_manifold.log import log_line
from owui_manifold.valves import UserValves, Valves

_OUR_FAULT = (
    "Something in this pipe went wrong. Try again; if it lasts, give an administrator "
    "this error id: {}."
)


class Pipe:
    """OpenAI's models in Open WebUI, one for each entry of MODEL_ID."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        """Open nothing and start nothing: the host makes a Pipe at every upload."""
        self.valves = self.Valves()
        self._connections = Connections()

    def pipes(self) -> list[dict[str, str]]:
        """Return the models to list; from memory, because every page load asks."""
        names = [name.strip() for name in self.valves.MODEL_ID.split(",")]
        unique = dict.fromkeys(name for name in names if name)
        return [{"id": name, "name": resolve_model(name).name} for name in unique]

    async def pipe(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __task__: str | None = None,
    ) -> AsyncGenerator[Chunk, None] | Chunk:
        """Answer a chat: chunks when the caller streams, else one complete result."""
        caller = read_caller(body, __user__, __metadata__, __task__)
        chosen = (__user__ or {}).get("valves")
        user_valves = chosen if isinstance(chosen, UserValves) else UserValves()
        state = getattr(__request__, "state", None)
        # The host replaces self.valves at every call (functions.py:53).
        asked = Asked(body, caller, self.valves, user_valves, state)
        if caller.task:
            return await self._do_task(asked)
        if caller.streams:
            return self._stream(asked)
        return await self._complete(asked)

    async def _stream(self, asked: Asked) -> AsyncGenerator[Chunk, None]:
        """Yield the answer as the reader of the stream understands it.

        Nothing is raised: the host would drop what has been shown (open-webui.md §0.6).
        """
        if asked.caller.host_reads:
            view: NativeView | ChunkView = NativeView(monotonic_seconds)
        else:
            view = ChunkView(*_heading(asked))
        try:
            job = await prepare_chat(asked)
            _log_request(asked, job)
            async with aclosing(told(job, self._connections)) as events:
                async for event, marker in events:
                    for chunk in view.show(event, marker):
                        yield chunk
        except ResponsesError as error:
            yield error_chunk(str(error))
        except Exception as error:
            yield error_chunk(_our_fault(asked, error))

    async def _complete(self, asked: Asked) -> Chunk:
        """Return the whole answer at once, with the output items for the host."""
        view = NativeView(monotonic_seconds)
        try:
            ended = await self._watch(await prepare_chat(asked), view)
        except ResponsesError as error:
            return error_chunk(str(error))
        except Exception as error:
            return error_chunk(_our_fault(asked, error))
        result = completion(ended, *_heading(asked))
        if asked.caller.host_reads and view.items:
            result["output"] = view.items
        return result

    async def _do_task(self, asked: Asked) -> Chunk:
        """Return a title, tags or the like; an empty text when it failed."""
        view, text = NativeView(monotonic_seconds), ""
        try:
            ended = await self._watch(prepare_task(asked), view)
            if ended.ending.is_failure:
                _log_task(asked, ended.ending.sentence)
            else:
                text = completion_text(ended)
        except ResponsesError as error:
            _log_task(asked, str(error))
        except Exception as error:
            _log_task(asked, _our_fault(asked, error))
        return task_result(text, asked.caller.host_model)

    async def _watch(self, job: Job, view: NativeView) -> RunEnded:
        """Run `job` to its end with nobody to show it to; `view` keeps its items."""
        ended = RunEnded(CUT)
        async with aclosing(told(job, self._connections)) as events:
            async for event, marker in events:
                for _ in view.show(event, marker):
                    pass
                ended = event if isinstance(event, RunEnded) else ended
        return ended


def _heading(asked: Asked) -> tuple[str, int, str]:
    """Return the id, the time and the model that a result or its chunks carry."""
    return f"chatcmpl-{new_ulid()}", unix_seconds(), asked.caller.host_model


def _log_request(asked: Asked, job: Job) -> None:
    request, caller = job.request, asked.caller
    line = (
        f"{request.model}: {len(request.input)} input items, "
        f"{'stream' if request.stream else 'no stream'}, "
        f"{'kept' if job.store else 'not kept'}, "
        f"{'native' if caller.host_reads else 'chunks'}"
    )
    log_line(asked.valves.LOG_LEVEL, "DEBUG", line)


def _log_task(asked: Asked, sentence: str) -> None:
    line = f"The task {asked.caller.task} failed: {sentence}"
    log_line(asked.valves.LOG_LEVEL, "WARNING", line)


def _our_fault(asked: Asked, error: Exception) -> str:
    """Log where `error` came from, not what it says; return a sentence to show.

    The text of a foreign exception may quote a header or a prompt.
    """
    error_id = new_ulid()
    frames = extract_tb(error.__traceback__)
    place = f"line {frames[-1].lineno} in {frames[-1].name}" if frames else "nowhere"
    line = f"{type(error).__name__} at {place} (error id {error_id})"
    log_line(asked.valves.LOG_LEVEL, "ERROR", line)
    return _OUR_FAULT.format(error_id)
