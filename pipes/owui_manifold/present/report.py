"""Reports the request and the end of a run, to the log and to the user."""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from manifold.request_settings import log_unsent_parameters
from manifold.views import log_metadata, log_refusal
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import compact_json
from openai_responses.loop.events import RunDone
from openai_responses.loop.spending import Spending
from openai_responses.models.resolve import ResolvedModel, resolve_model
from openai_responses.models.usage import Usage, format_money, window_share
from owui_chat.answers import explain_ending
from owui_chat.events import AnswerReport
from owui_manifold.call.agent import CALLER_PARAMETERS, answering_name
from owui_manifold.call.config import FILE_INPUT_KEY, OWN_KEY_PLACE, named_models
from owui_manifold.call.context import ArrivedCall, Call
from owui_manifold.prepare.request import Prepared
from shells.failures import has_unasked_removals, report_run
from strategies.metadata import RunMetadata


def report_request(prepared: Prepared) -> None:
    """Log that a request is about to be sent, without any of its text."""
    request = prepared.request
    call = prepared.call
    call.log.line(
        "DEBUG",
        f"request to {prepared.call.endpoint.host}: {request.model}, "
        f"{len(request.input)} input items, {len(request.tools or ())} tools, "
        f"stream {request.stream}, background {request.runs_in_background}, "
        f"stored {bool(prepared.row)}, native {call.caller.is_open_webui}",
    )
    if call.caller.task:  # it has parameters of its own, which no one chose
        return
    # What the caller or the user chose.
    asked: dict[str, object] = {}
    if call.config.effort:
        asked["reasoning_effort"] = call.config.effort
    if call.config.verbosity:
        asked["verbosity"] = call.config.verbosity
    asked |= call.body
    asked.pop(FILE_INPUT_KEY, None)  # for the pipe alone, as are those of an agent
    if call.agent:
        for name in CALLER_PARAMETERS:
            asked.pop(name, None)
    log_unsent_parameters(call.log, call.caller, asked, request, call.memory.left_out)


_DIAGNOSIS = ("type", "reason", "cache_missed_tokens")
"""What is logged of why the prompt cache missed."""


def report_end(
    prepared: Prepared, ended: RunDone, spending: Spending
) -> tuple[AnswerReport, RunDone]:
    """Log how a run ended; return what else is known, and it.

    A failure gets its error id.
    """
    call = prepared.call
    trace = ended.trace
    ending = explain_ending(ended, prepared.request.input[-1:])
    if has_unasked_removals(trace):
        call.memory.count_dropped(trace.removed)
    message = ""
    if call.config.own_key and "api_key" in ending.fault.settings:
        # An administrator cannot change a user's own key.
        message = f"{ending.message} It is your own key: check {OWN_KEY_PLACE}"
    ended = report_run(
        call.log,
        ended._replace(ending=ending),
        call.config.shell,
        is_admin=call.caller.reads_reasons,
        model=prepared.request.model,
        message=message,
    )
    if not call.config.expert.prompt_cache_diagnostics:
        ended = ended._replace(trace=trace._replace(response_id=""))
    elif trace.cache:
        details = [f"{key} {str(trace.cache.get(key))[:40]}" for key in _DIAGNOSIS]
        call.log.note(f"prompt cache: {', '.join(details)}")
    took = work_of(prepared, ended, spending)
    if ended.usages and took.cost is not None:
        source = _source_of_cost(prepared, ended.usages)
        call.log.line("DEBUG", f"cost {format_money(took.cost.dollars)}: {source}")
    shown = shown_to_user(call, took)
    report = AnswerReport(
        cost=shown.cost if ended.usages else None,
        usage_note=_usage_note(prepared, ended),
        window_share=took.window_share,
    )
    if call.agent:
        log_metadata(call.log, took)
        report = report._replace(
            rounds=took.rounds, tool_calls=took.tool_calls, metadata=shown.wire()
        )
    return report, ended


def _source_of_cost(prepared: Prepared, usages: Iterable[Usage]) -> str:
    """Return who says what responses cost, for the log."""
    call = prepared.call
    own_prices = call.config.prices
    if own_prices and prepared.request.model in own_prices:
        return "CUSTOM_MODEL_PRICING_JSON"
    stated = [usage.cost is not None for usage in usages]
    if all(stated):
        return f"{call.endpoint.host} says so"
    if any(stated):
        return f"{call.endpoint.host} says some of it, the rest by OpenAI's prices"
    return "by OpenAI's prices"


_MIN_TOOL_TOKENS = 1000
"""Fewer are never mentioned."""
_MANY_TOOL_TOKENS = 4000
"""More are always mentioned; in between, if they are more than half of the input."""
_CHARACTERS_OF_A_TOKEN = 4


def _usage_note(prepared: Prepared, ended: RunDone) -> str:
    """Return the message that tools explain many input tokens of a chat's first answer.

    Only administrators can do something about it, and read it once in a chat.
    """
    call = prepared.call
    if not call.caller.reads_reasons:
        return ""
    request = prepared.request
    usage = ended.usage
    questions = [item for item in request.input if item.get("role") == "user"]
    if usage is None or len(questions) > 1:
        return ""
    tools = request.tools or ()
    try:
        size = len(compact_json(tools)) // _CHARACTERS_OF_A_TOKEN
    except ValueError:
        size = len(str(tools)) // _CHARACTERS_OF_A_TOKEN
    # Each response of the run has read the tools again.
    tokens = min(size * len(ended.usages), usage.input)
    notable = min(_MANY_TOOL_TOKENS, usage.input / 2)
    if tokens <= max(_MIN_TOOL_TOKENS, notable):
        return ""
    if not call.memory.first_time(f"tools of {call.caller.chat_id}"):
        return ""
    count = f"{round(tokens, -2):,}"
    return f"about {count} tokens describe {len(tools)} tools"


def work_of(prepared: Prepared, ended: RunDone, spending: Spending) -> RunMetadata:
    """Return what a run took. Rounds and calls are its own, as are its tokens."""
    call = prepared.call
    model = prepared.request.model
    return RunMetadata(
        strategy=call.agent.strategy if call.agent else "",
        model=model,
        ending=ended.ending.kind,
        rounds=spending.own_rounds,
        tool_calls=spending.own_calls,
        latency=spending.seconds,
        cost=prepared.cost_of(ended.usages, ended.output),
        usage=ended.usage or Usage(),
        window_share=window_share(ended.last_usage, call.resolve(model).facts),
    )


def shown_to_user(call: Call, took: RunMetadata) -> RunMetadata:
    """Return what the user is shown of what a run took."""
    if call.caller.is_in_others_chat and "SHOW_COST" in call.config.replaced:
        return took._replace(cost=None)  # the owner of the chat reads what users read
    return took if call.valves.SHOW_COST else took._replace(cost=None)


def report_refusal(arrived: ArrivedCall, error: Exception) -> RunMetadata | None:
    """Log what an agent's answer took that was refused before its run, and return it.

    None if no agent was to answer, or if something else went wrong.
    """
    agent = arrived.answering_agent()
    if agent is None:
        return None
    config = arrived.config
    overrides: Mapping[str, ResolvedModel] = {}
    with suppress(InvalidRequest):  # it may be what refused the answer
        overrides = named_models(config.valves)
    name = answering_name(arrived.caller.model, config.agent)
    model = resolve_model(name, overrides)
    return log_refusal(arrived.log, agent.strategy, model.id, error)
