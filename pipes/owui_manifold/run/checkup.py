"""The `/check` command: tests an administrator's setup and says what works.

An administrator sends `/check` to any model of the pipe. The answer is written here; its
findings come from small requests like those of a chat.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from typing import Any

from openai_responses.endings import CUT
from openai_responses.errors import InvalidRequest, ResponsesError
from openai_responses.items import Item
from openai_responses.loop.events import RunDone, Status
from openai_responses.loop.run import run
from openai_responses.redaction import hide_keys
from openai_responses.requests.build import ResponsesRequest
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections
from owui_chat.wording import CHECK_HEADING, plural
from owui_manifold.call.config import Config, run_limits
from owui_manifold.call.context import Call
from owui_manifold.call.valves import TOOL_SETTINGS
from owui_manifold.prepare.hosted_tools import hosted_tools
from owui_manifold.prepare.tasks import chosen_task_model
from owui_manifold.run.setup_check import (
    Finding,
    Severity,
    assess,
    setup_findings,
    valve_findings,
    valve_problems,
)
from shells.model_list import LISTS_NOTHING, fetch_models
from shells.valve_messages import PIPE_SHELL, advised_ending, error_message

_MIN_TOKENS = 16
"""The smallest `max_output_tokens` that OpenAI accepts."""
_MAX_SHOWN_REASONS = 9
_PING: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "ping"}],
}

_SKIPPED = "The other checks need an answer, so they were skipped."
_NOT_SENT = "They need an answer, so they were skipped."
_VERIFY = "Verify the organization at OpenAI, or"
_TASK_ADVICE = "Meanwhile, the chat's own model writes titles and tags."
_UNLISTED = (
    "The model's server accepts it, but does not list these models: {}. Allow them in the "
    "key's project, or change MODEL_ID."
)
_LOST = (
    "The API left some of it out since the last start: {}. Look for filters that change "
    "earlier messages, and set `stable_instructions` in EXPERT_JSON to `on`."
)


async def _findings(
    asked: Call,
    connections: Connections,
    endpoints: Sequence[Call | str],
) -> AsyncGenerator[Finding, None]:
    """Yield what was found; `endpoints` are the entries of ENDPOINTS_JSON."""
    for finding in await setup_findings(asked):
        yield finding
    yield await _model_list_finding(asked, connections)

    async def try_out(
        title: str, works: str, advice: str, fields: Mapping[str, Any]
    ) -> Finding:
        problem = await _problem(asked, connections, **fields)
        return assess(title, works, problem, advice)

    answers = await try_out("A small request", "The model answers.", _SKIPPED, {})
    yield answers
    if answers.severity:
        return
    # What a chat with the model would use.
    works = "Answers can be streamed."
    advice = f"{_VERIFY} turn off ENABLE_STREAM."
    yield await try_out("Streaming", works, advice, {"stream": True})
    model = asked.model
    if model.facts.summary:
        works = "Summaries of the reasoning can be shown."
        advice = f"{_VERIFY} set REASONING_SUMMARY to `disabled`."
        fields: Mapping[str, Any] = {"reasoning": {"summary": "auto"}}
        yield await try_out("Summaries", works, advice, fields)
    # Also one that tasks do without since the server refused it.
    model_for_tasks = chosen_task_model(asked)
    if model_for_tasks and model_for_tasks.id != model.id:
        works = f"{model_for_tasks.name} answers."
        fields = {"model": model_for_tasks.id}
        yield await try_out("TASK_MODEL", works, _TASK_ADVICE, fields)
    hosted: Sequence[Item] = ()
    with suppress(InvalidRequest):  # the findings about the valves tell why
        hosted, _ = hosted_tools(asked.config, model)
    for tool in hosted:
        kind = tool["type"]
        setting = TOOL_SETTINGS[kind]
        advice = f"Check {setting.valve}."
        if setting.user_valve:
            advice = f"Allow it in the key's project, or turn off {setting.valve}."
        title = tool.get("server_label") or kind
        works = "The model can be given this tool."
        fields = {"tools": [tool], "tool_choice": "none"}
        yield await try_out(title, works, advice, fields)
    for number, call in enumerate(endpoints, 1):
        what = f"Entry {number} of ENDPOINTS_JSON"
        if isinstance(call, str):
            yield Finding(what, call, "Problem")
            continue
        works = f"{call.model.name} answers at {call.endpoint.host}."
        yield assess(what, works, await _problem(call, connections))
    # What the API left out of requests since the start, by its reasons.
    commonest = asked.memory.dropped.most_common(_MAX_SHOWN_REASONS)
    counts = ", ".join(f"{count} {reason}" for reason, count in commonest)
    problem = _LOST.format(counts) if counts else ""
    yield assess("Earlier reasoning", "The API left none of it out.", problem)


async def _model_list_finding(call: Call, connections: Connections) -> Finding:
    """Return whether the key is accepted, and for which models of MODEL_ID."""
    try:
        usable = await fetch_models(call.endpoint, connections)
    except ResponsesError as error:
        what = "The list of models"
        if error.status in LISTS_NOTHING:
            return Finding(what, "The model's server lists no models.")
        message = error_message(error, call.config.shell)
        return Finding(what, call.endpoint.name_server(message), "Warning")
    missing: dict[str, None] = {}
    for name in call.valves.model_names():
        model_id = call.resolve(name).id
        if name != "auto" and model_id not in usable:
            missing[model_id] = None
    if missing:
        text = _UNLISTED.format(", ".join(missing))
        return Finding("The key", text, "Warning")
    return Finding("The key", "It is accepted for all listed models.")


async def _problem(call: Call, connections: Connections, **fields: Any) -> str:
    """Return why a small request with these fields fails; empty if it succeeds.

    An answer that ends at the token limit has succeeded. A repair that a chat would
    make silently counts as a failure. Other servers refuse so low a limit, or fail
    when a call does not fit in it, so a second request has none.
    """
    problem = await _try(call, connections, max_output_tokens=_MIN_TOKENS, **fields)
    if not problem:
        return ""
    return await _try(call, connections, **fields)


async def _try(call: Call, connections: Connections, **fields: Any) -> str:
    """Send one request; return why it fails, or the repair that it needed.

    Returns an empty text if it succeeds without a repair. Nothing is retried: the
    failures are what an administrator wants to see.
    """
    all_fields = {"model": call.model.id, "stream": False, **fields}
    request = ResponsesRequest(input=[_PING], **all_fields)
    limits = run_limits(call.config.expert, call.model)
    limits = limits._replace(retries=RetryPolicy(0))
    repair = ""
    ended = RunDone(CUT)
    events = run(request, call.endpoint, connections, limits)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Status) and event.tried:
                repair = event.message
            if isinstance(event, RunDone):
                ended = event
    if ended.ending.kind in ("completed", "incomplete"):
        return repair
    return advised_ending(ended.ending, call.config.shell).message


def check_lines(
    call: Call, connections: Connections, endpoints: Sequence[Call | str]
) -> AsyncGenerator[str, None]:
    """Return the answer to `/check`; `endpoints` are the entries of ENDPOINTS_JSON."""
    how = f"tested with {call.model.name} at {call.endpoint.host}:"
    return _finding_lines(how, _findings(call, connections, endpoints))


async def _finding_lines(
    how: str, findings: AsyncGenerator[Finding, None]
) -> AsyncGenerator[str, None]:
    """Yield how a setup was looked at, what was found, and how many problems there are."""
    yield f"{CHECK_HEADING}{how}\n"
    counts = Counter[Severity]()
    async with aclosing(findings):
        async for finding in findings:
            counts[finding.severity] += 1
            yield finding.line()
    words: dict[Severity, str] = {"Problem": "problem", "Warning": "warning"}
    found = [plural(counts[kind], word) for kind, word in words.items() if counts[kind]]
    yield f"\nResult: {' and '.join(found) or 'no problems'}."


def unanswered_lines(
    config: Config, error: InvalidRequest
) -> AsyncGenerator[str, None]:
    """Return what is wrong with a setup in which no chat is answered."""

    async def findings() -> AsyncGenerator[Finding, None]:
        reason = error_message(error, PIPE_SHELL)
        # The reason is one of the problems, and has no key in it.
        problems = dict.fromkeys([reason, *map(hide_keys, valve_problems(config))])
        for finding in valve_findings([*problems]):
            yield finding
        yield Finding("The other checks", _NOT_SENT, "Warning")

    how = "which answers no chat until the first problem is corrected:"
    return _finding_lines(how, findings())
