"""The `/check` command: tests an administrator's setup and says what works.

An administrator sends `/check` to any model of the pipe. The answer is written here; its
findings come from small requests like those of a chat.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, suppress
from typing import Any, NamedTuple

from openai_responses.endings import COMPLETED, CUT
from openai_responses.errors import InvalidRequest, ResponsesError
from openai_responses.items import Item
from openai_responses.json_input import as_list, as_mapping, as_text, value_at
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.run import run
from openai_responses.requests.build import ResponsesRequest
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.wording import CHECK_HEADING, NO_USAGE_HEADING
from owui_host.files import store_file
from owui_host.users import user_model
from owui_manifold.call.config import run_limits
from owui_manifold.call.context import CheckedCall, PipeCall
from owui_manifold.call.valves import TOOL_SETTINGS
from owui_manifold.prepare.hosted_tools import hosted_tools
from owui_manifold.prepare.tasks import task_model
from owui_manifold.run.setup_check import (
    Finding,
    Severity,
    assess,
    result_line,
    setup_findings,
    valve_findings,
    valve_problems,
)
from shells.administration import SaveFile
from shells.model_list import LISTS_NOTHING, fetch_models
from shells.valve_messages import PIPE_SHELL, advised_ending, error_message
from shells.valve_words import comma_list

_MIN_TOKENS = 16
"""The smallest `max_output_tokens` that OpenAI accepts."""
_MAX_SHOWN_REASONS = 9
_PING: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "ping"}],
}

_SKIPPED = "The other checks need an answer, so they were skipped."
_NOT_SENT = "It was not sent, nor were the other checks done: correct this first."
_VERIFY = "Verify the organization at OpenAI, or"
_TASK_ADVICE = "Until it does, the chat's own model writes titles and tags."
_UNLISTED = (
    "The model's server accepts it, but does not list these models: {}. Allow them in the "
    "key's project, or change MODEL_ID."
)
_LOST = (
    "The API left some of it out since the last start: {}. Look for filters that change "
    "earlier messages, and set `stable_instructions` in EXPERT_JSON to `on`."
)


class _Feature(NamedTuple):
    """What a small request tests."""

    title: str
    works: str
    """The message if the request succeeds."""
    fields: Item
    """The fields of the request that use it."""
    advice: str
    """What an administrator can do if it fails."""


class _Diagnostics:
    """Tests one model of the pipe at its server, feature by feature.

    Nothing is retried: the failures are what an administrator wants to see. `_hosted`
    are the tools of OpenAI that a chat would get, `_listed` the ids of the models that
    MODEL_ID lists, each once, and `_dropped` counts the items that the API left out of
    requests since the start, by reason.
    """

    def __init__(
        self,
        call: CheckedCall,
        connections: Connections,
        endpoints: Sequence[CheckedCall | str] = (),
    ) -> None:
        self._call = call
        self._endpoints = endpoints
        self._model = call.model
        self._hosted: list[Item] = []
        with suppress(InvalidRequest):  # the findings about the valves tell why
            self._hosted, _ = hosted_tools(call.config, self._model)
        self._endpoint = call.endpoint
        names = comma_list(call.valves.MODEL_ID)
        listed_ids = [call.resolve(name).id for name in names if name != "auto"]
        self._listed = list(dict.fromkeys(listed_ids))
        self._connections = connections
        self._dropped = call.capabilities.dropped
        self._limits = run_limits(call.config.expert, call.model)._replace(
            retries=RetryPolicy(0)
        )

    async def lines(self) -> AsyncGenerator[str, None]:
        """Yield the findings, one line each, and how many problems there are."""
        host = self._endpoint.host
        yield f"{CHECK_HEADING}tested with {self._model.name} at {host}:\n"
        async with aclosing(_finding_lines(self._findings())) as lines:
            async for line in lines:
                yield line

    async def _findings(self) -> AsyncGenerator[Finding, None]:
        for finding in await setup_findings(self._call):
            yield finding
        yield await self._models()
        problem = await self._problem()
        yield assess("A small request", "The model answers.", problem, _SKIPPED)
        if problem:
            return
        for feature in self._features():
            problem = await self._problem(**feature.fields)
            yield assess(feature.title, feature.works, problem, feature.advice)
        for number, call in enumerate(self._endpoints, 1):
            what = f"Entry {number} of ENDPOINTS_JSON"
            if isinstance(call, str):
                yield assess(what, "", call)
                continue
            works = f"{call.model.name} answers at {call.endpoint.host}."
            other = _Diagnostics(call, self._connections)
            yield assess(what, works, await other._problem())
        # What the API left out of earlier requests, by its reasons.
        commonest = self._dropped.most_common(_MAX_SHOWN_REASONS)
        counts = ", ".join(f"{count} {reason}" for reason, count in commonest)
        problem = _LOST.format(counts) if counts else ""
        yield assess("Earlier reasoning", "The API left nothing out.", problem)

    def _features(self) -> Iterator[_Feature]:
        """Yield what a chat with this model would use."""
        yield _Feature(
            "Streaming",
            "Answers can be streamed.",
            {"stream": True},
            f"{_VERIFY} turn off ENABLE_STREAM.",
        )
        if self._model.facts.summary:
            yield _Feature(
                "Summaries",
                "Summaries of the reasoning can be shown.",
                {"reasoning": {"summary": "auto"}},
                f"{_VERIFY} set REASONING_SUMMARY to `disabled`.",
            )
        model_for_tasks = task_model(self._call)
        if model_for_tasks.id != self._model.id:
            yield _Feature(
                "TASK_MODEL",
                f"{model_for_tasks.name} answers.",
                {"model": model_for_tasks.id},
                _TASK_ADVICE,
            )
        for tool in self._hosted:
            kind = tool["type"]
            setting = TOOL_SETTINGS[kind]
            advice = f"Check {setting.valve}."
            if setting.is_switch:
                advice = f"Allow it in the key's project, or turn off {setting.valve}."
            yield _Feature(
                tool.get("server_label") or kind,
                "The model can be given this tool.",
                {"tools": [tool], "tool_choice": "none"},
                advice,
            )

    async def _models(self) -> Finding:
        """Return whether the key is accepted, and for which models."""
        try:
            usable = await fetch_models(self._endpoint, self._connections)
        except ResponsesError as error:
            what = "The list of models"
            if error.status in LISTS_NOTHING:
                return assess(what, "The model's server lists no models.", "")
            problem = self._endpoint.name_server(
                error_message(error, self._call.config.shell)
            )
            return Finding(what, problem, "Warning")
        missing = ", ".join(name for name in self._listed if name not in usable)
        if missing:
            return Finding("The key", _UNLISTED.format(missing), "Warning")
        return assess("The key", "It is accepted for all listed models.", "")

    async def _problem(self, **fields: Any) -> str:
        """Return why a small request with these fields fails; empty if it succeeds.

        An answer that ends at the token limit has succeeded. A repair that a chat would
        make silently counts as a failure. Other servers refuse so low a limit, or fail
        when a call does not fit in it, so a second request has none.
        """
        problem = await self._try(max_output_tokens=_MIN_TOKENS, **fields)
        if not problem:
            return ""
        return await self._try(**fields)

    async def _try(self, **fields: Any) -> str:
        """Send one request; return why it fails, or the repair that it needed.

        Returns an empty text if it succeeds without a repair.
        """
        all_fields = {"model": self._model.id, "stream": False, **fields}
        request = ResponsesRequest(input=[_PING], **all_fields)
        repair = ""
        ended = RunDone(CUT)
        events = run(request, self._endpoint, self._connections, self._limits)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Status) and event.tried:
                    repair = event.message
                if isinstance(event, RunDone):
                    ended = event
        if ended.ending.kind in ("completed", "incomplete"):
            return repair
        return advised_ending(ended.ending, self._call.config.shell).message


async def _finding_lines(
    findings: AsyncGenerator[Finding, None],
) -> AsyncGenerator[str, None]:
    """Yield findings, one line each, and how many problems there are."""
    counts = Counter[Severity]()
    async with aclosing(findings):
        async for finding in findings:
            counts[finding.severity] += 1
            yield finding.line()
    yield f"\n{result_line(counts)}"


async def _unanswered_lines(
    call: PipeCall, error: InvalidRequest
) -> AsyncGenerator[str, None]:
    """Yield what is wrong with a setup in which no chat is answered."""

    async def findings() -> AsyncGenerator[Finding, None]:
        reason = error_message(error, PIPE_SHELL)
        problems = valve_problems(call.config)
        for finding in valve_findings(problems or [reason]):
            yield finding
        if problems and reason not in problems:
            yield Finding("Every chat", reason, "Problem")
        yield Finding("A small request", _NOT_SENT, "Warning")

    yield f"{CHECK_HEADING}with which no chat is answered:\n"
    async with aclosing(_finding_lines(findings())) as lines:
        async for line in lines:
            yield line


def explain_unanswered(
    call: PipeCall, error: InvalidRequest
) -> AsyncGenerator[RunEvent, None]:
    """Return the findings of a check whose call cannot be answered."""
    return stream_lines(_unanswered_lines(call, error))


CHECK_COMMAND = "/check"
"""What an administrator sends; from others it goes to the model."""
_USAGE_COMMAND = "/usage"
_NO_RULES = (
    f"{NO_USAGE_HEADING}because no rules are set. An administrator can set them "
    "in USER_LIMITS_JSON of the filter OpenAI Responses Administration (docs/limits.md)."
)
_CHECK_TITLE = '{"title": "Setup check"}'
"""In the form that the host reads."""
_TASKS_ABOUT_ANSWERS = frozenset(
    {"title_generation", "tags_generation", "follow_up_generation"}
)


def command_task_text(call: CheckedCall) -> str | None:
    """Return what answers a task about the answer to a command; None for other tasks.

    No one pays for the title of a `/check` or `/usage`. Without a text the host takes
    the command as the title, and leaves out tags and follow-ups. The chat itself is in
    the host's `task_body`; the task's prompt quotes it, but anybody can write a quote.
    """
    if call.caller.task not in _TASKS_ABOUT_ANSWERS:
        return None
    rows = as_list(value_at(call.host.metadata, "task_body", "messages"))
    command = ""
    for row in rows:
        message = as_mapping(row)
        if message.get("role") == "user":
            command = _normalize_command(as_text(message.get("content")))
    if command == CHECK_COMMAND and call.caller.is_admin:
        is_title = call.caller.task == "title_generation"
        return _CHECK_TITLE if is_title else ""
    return "" if is_usage_command(command) else None


def is_usage_command(command: str) -> bool:
    """Say whether somebody asks for usage, whether or not it is counted."""
    return command.split(maxsplit=1)[:1] == [_USAGE_COMMAND]


async def uncounted_lines() -> AsyncGenerator[str, None]:
    """Yield the answer to `/usage` where no filter counts."""
    yield _NO_RULES


def _normalize_command(text: str) -> str:
    """Return a text; a command in lower case, with single spaces."""
    stripped = text.strip()
    if not stripped.lower().startswith((CHECK_COMMAND, _USAGE_COMMAND)):
        return stripped
    return " ".join(stripped.lower().split())


def read_command(messages: Sequence[object]) -> str:
    """Return the text of the message to answer; empty if that is not the user's.

    A command is in lower case, because telephones begin with a capital letter.
    """
    # The messages are not checked yet: one may be anything.
    last = as_mapping(messages[-1]) if messages else {}
    if last.get("role") != "user":
        return ""
    return _normalize_command(as_text(last.get("content")))


def run_diagnostics(
    call: CheckedCall,
    connections: Connections,
    endpoints: Sequence[CheckedCall | str],
) -> AsyncGenerator[RunEvent, None]:
    """Return the findings of a check; raises InvalidRequest for unusable settings.

    `endpoints` are the entries of ENDPOINTS_JSON.
    """
    return stream_lines(_Diagnostics(call, connections, endpoints).lines())


def file_saver(call: CheckedCall) -> SaveFile | None:
    """Return what stores a text for the page that shows an answer; None if none does."""
    caller = call.caller
    if not caller.has_page or caller.is_in_channel or call.host.request is None:
        return None

    async def save(name: str, text: str) -> str:
        user = await user_model(caller.user_id)
        if user is None:
            return ""
        content = text.encode()
        entry = await store_file(call.host.request, name, content, caller.place, user)
        return str(entry["url"]) if entry else ""

    return save


async def stream_lines(
    lines: AsyncGenerator[str, None],
) -> AsyncGenerator[RunEvent, None]:
    """Yield lines as the text of an answer, as soon as each is there."""
    message: Item = {"type": "message", "role": "assistant", "content": []}
    yield ItemAdded(0, message)
    text = ""
    async with aclosing(lines):
        async for line in lines:
            text += line + "\n"
            yield TextDelta(0, "text", 0, line + "\n")
    content = [{"type": "output_text", "text": text, "annotations": []}]
    whole = {**message, "content": content}
    yield ItemDone(0, whole, shown=text)
    yield RunDone(COMPLETED, output=(whole,))
