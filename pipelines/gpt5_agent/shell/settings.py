"""One call of the pipeline: who calls, and the settings from valves and request.

Open WebUI removes the metadata from a body before the pipeline gets it, but shows it to
the pipeline's own inlet and keeps what the inlet adds.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from gpt5_agent.ports import StoreFile, Tool
from gpt5_agent.request import AgentRequest, OwnToolSettings, show_always
from gpt5_agent.shell.json_valves import THIS_PLACE, read_expert_settings
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.presets import find_preset
from gpt5_agent.shell.sealing import reveal_secret
from gpt5_agent.shell.valves import Valves
from gpt5_agent.tools.host_calls import find_own_names
from openai_responses.endpoint import Endpoint, connection_secrets
from openai_responses.errors import InvalidRequest, valve_error
from openai_responses.json_input import (
    as_list,
    as_mapping,
    clamp_number,
    parse_string_map,
)
from openai_responses.loop.attempts import Limits
from openai_responses.loop.tools import (
    ApprovalRules,
    Approver,
    CallLimits,
    read_rules,
    read_timeouts,
)
from openai_responses.models.resolve import resolve_model
from openai_responses.repairs.memory import RepairMemory
from openai_responses.requests.build import Settings
from openai_responses.requests.parameters import hash_ids, read_bool
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections, Timeouts
from owui_chat.file_names import shorten_name
from strategies.metadata import RunMetadata
from strategies.parameters import MAX_ITERATIONS, StrategyParameters

CONTEXT_KEY = "agent_context"
_MAX_ATTACHED = 20
"""Attached files that are put into the sandbox."""
_FILE_KEYS = ("type", "id", "name")
_MIN_COMPACTION_TOKENS = 1000
"""The API refuses a lower threshold."""
_CONTEXT_IDS = ("chat_id", "message_id", "user_id", "task")


class PipelineCaller(NamedTuple):
    """Which message of which chat is answered, or which task of the host."""

    model: str = ""
    chat_id: str = ""
    message_id: str = ""
    user_id: str = ""
    task: str = ""
    streams: bool = False
    is_admin: bool = False
    tool_ids: frozenset[str] = frozenset()
    """What Open WebUI may put in front of the names of its tools."""
    files: tuple[tuple[str, str], ...] = ()
    """The ids and names of the files that are attached to the chat."""

    @property
    def is_host(self) -> bool:
        """Whether Open WebUI itself reads and stores the answer."""
        return bool(self.chat_id and self.message_id)

    @property
    def can_ask(self) -> bool:
        """Whether the host can show a card: it needs a stream."""
        return self.is_host and self.streams

    @property
    def workspace(self) -> str:
        """The key of a user's files in a chat; empty without a chat."""
        return f"{self.user_id}/{self.chat_id}" if self.chat_id else ""


def read_inlet_context(
    body: Mapping[str, Any], user: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what an inlet's body says of the chat: ids, those of its tools, the role.

    The files are the last ones attached, each with type, id and name.
    """
    metadata = as_mapping(body.get("metadata"))
    context: dict[str, Any] = {
        key: str(metadata[key]) for key in _CONTEXT_IDS if metadata.get(key)
    }
    if user is not None and user.get("role") == "admin":
        context["is_admin"] = True
    tool_ids = as_list(metadata.get("tool_ids"))
    if tool_ids:
        context["tool_ids"] = tool_ids
    files = as_list(metadata.get("files"))[-_MAX_ATTACHED:]
    if files:
        context["files"] = [_select_file_fields(as_mapping(file)) for file in files]
    return context


def _select_file_fields(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the pipe needs of an attached file."""
    return {key: file.get(key) for key in _FILE_KEYS}


def _read_attached(rows: object) -> Iterator[tuple[str, str]]:
    """Yield ids and names of files; a name that is taken gets its row's number."""
    taken: set[str] = set()
    for number, row in enumerate(map(as_mapping, as_list(rows)), 1):
        if row.get("type") not in ("file", "image") or not row.get("id"):
            continue
        name = shorten_name(str(row.get("name") or "file"))
        if name in taken:
            name = f"{number}-{name}"
        taken.add(name)
        yield str(row["id"]), name


def _read_tool_id(reference: object) -> str:
    """Return the id of a toolkit (`id`) or a server (`server:kind:id|functions`)."""
    tool_id = str(reference).partition("|")[0]
    for kind in ("server:", "mcp:", "openapi:"):
        tool_id = tool_id.removeprefix(kind)
    return tool_id


def read_caller(body: Mapping[str, Any]) -> PipelineCaller:
    """Return who calls; a body that passed no inlet is a plain client's."""
    context = as_mapping(body.get(CONTEXT_KEY))
    return PipelineCaller(
        model=str(body.get("model") or ""),
        streams=bool(body.get("stream")),
        is_admin=context.get("is_admin") is True,
        tool_ids=frozenset(map(_read_tool_id, as_list(context.get("tool_ids")))),
        files=tuple(_read_attached(context.get("files"))),
        **{key: str(context.get(key) or "") for key in _CONTEXT_IDS},
    )


class AgentInput(NamedTuple):
    """One question: `can_ask` allows approvals in the chat, `tools` run here.

    `notices` are for administrators, where `is_new` says that they were not yet shown.
    """

    strategy: str
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    valves: Valves
    can_ask: bool = False
    tools: Sequence[Tool] = ()
    caller: PipelineCaller = PipelineCaller()
    notices: tuple[str, ...] = ()
    is_new: Callable[[str], bool] = show_always
    store_file: StoreFile | None = None
    repairs: RepairMemory | None = None

    def choose_text(self, key: str, default: str) -> str:
        """Return a text of the request; an object or list in it as JSON."""
        value = self.body.get(key)
        if isinstance(value, Mapping | list):
            return json.dumps(value)
        if isinstance(value, str) and value.strip():
            return value
        return default


def build_agent_request(
    question: AgentInput, endpoint: Endpoint, connections: Connections, log: AgentLog
) -> AgentRequest:
    """Return the request to the agent; raises InvalidRequest."""
    valves = question.valves
    rules, rules_error = read_rules(valves.TOOL_APPROVAL, THIS_PLACE)
    notices = question.notices
    if rules_error:
        log.warn(rules_error)
        notices = (*notices, rules_error)

    def log_metadata(metadata: RunMetadata) -> None:
        log.line(json.dumps(metadata.wire()))

    return AgentRequest(
        strategy=question.strategy,
        parameters=_build_parameters(question),
        messages=question.messages,
        body=question.body,
        endpoint=endpoint,
        connections=connections,
        limits=_build_run_limits(valves),
        settings=_build_request_settings(question, endpoint),
        own_tools=_build_tool_settings(question, rules),
        query=question.choose_text("query", ""),
        context=question.body.get("context") or valves.CONTEXT or None,
        notices=notices if question.caller.is_admin else (),
        is_new=question.is_new,
        chat=question.caller.workspace,
        log=log.line,
        debug=valves.DEBUG,
        on_end=log_metadata,
        user_id=question.caller.user_id,
        repairs=question.repairs,
    )


def _build_parameters(question: AgentInput) -> StrategyParameters:
    """Return what the strategy is to do: the request decides before the valves.

    Raises InvalidRequest.
    """
    valves = question.valves
    return StrategyParameters(
        model=question.choose_text("agent_model", valves.MODEL),
        instruction=question.choose_text("instruction", valves.INSTRUCTION),
        prompt_policy_overrides=question.choose_text(
            "prompt_policy_overrides", valves.PROMPT_POLICY_OVERRIDES
        ),
        policy_style=valves.POLICY_STYLE,
        guide=find_preset(valves.PRESET, valves.PRESETS_DIR),
        maximum_iterations=clamp_number(
            question.body.get("maximum_iterations"),
            1,
            MAX_ITERATIONS,
            valves.MAXIMUM_ITERATIONS,
        ),
        maximum_seconds=valves.MAXIMUM_SECONDS,
        maximum_tokens=valves.MAXIMUM_TOKENS,
        emit_intermediate_thoughts=_shows_thoughts(question),
    )


def _build_tool_settings(question: AgentInput, rules: ApprovalRules) -> OwnToolSettings:
    """Return the tools that run here, and the rules for all tools."""
    valves = question.valves
    default_seconds, own_seconds, _ = read_timeouts(valves.TOOL_TIMEOUTS, THIS_PLACE)
    own_names = partial(find_own_names, tool_ids=question.caller.tool_ids)
    return OwnToolSettings(
        tools=question.tools,
        approver=Approver(rules, other_names=own_names),
        limits=CallLimits(
            seconds=default_seconds,
            characters=valves.TOOL_OUTPUT_CHARACTERS,
            own=own_seconds,
        ),
        asks_in_chat=question.can_ask,
        delegates=valves.DELEGATION,
        store_file=question.store_file,
    )


def _shows_thoughts(question: AgentInput) -> bool:
    """Say whether thoughts between the rounds are shown; raises InvalidRequest."""
    name = "emit_intermediate_thoughts"
    chosen = question.body.get(name)
    if chosen is None:
        return question.valves.EMIT_INTERMEDIATE_THOUGHTS
    return read_bool(name, chosen)


def read_api_key(valves: Valves) -> str:
    """Return the API key, or nothing if there is none that can be read."""
    with suppress(InvalidRequest):
        return _read_api_key(valves)
    return ""


def _read_api_key(valves: Valves) -> str:
    """Return the API key of the valves or of the environment; empty without one.

    Raises InvalidRequest for a key that cannot be read.
    """
    key = reveal_secret(valves.API_KEY, "API_KEY")
    return key or os.environ.get("OPENAI_API_KEY", "").strip()


def build_endpoint(valves: Valves, log: AgentLog) -> Endpoint:
    """Return where requests go; `log` hides its secrets. Raises InvalidRequest."""
    key = _read_api_key(valves)
    if not key:
        raise InvalidRequest(
            "This pipeline has no API key yet. An administrator has to set API_KEY in "
            "its valves (Admin Panel > Settings > Pipelines)."
        )
    headers = _read_extra_headers(valves.EXTRA_HEADERS)
    proxy = reveal_secret(valves.PROXY, "PROXY")
    log.hide(connection_secrets(headers.values(), proxy, key))
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key=key,
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers=headers,
        verify_ssl=valves.VERIFY_SSL,
        ca_bundle=valves.CA_BUNDLE.strip(),
        proxy=proxy,
        strict=valves.COMPATIBILITY == "strict",
    )


def _read_extra_headers(stored: str) -> Mapping[str, str]:
    """Return the headers of EXTRA_HEADERS; raises InvalidRequest."""
    headers = parse_string_map(reveal_secret(stored, "EXTRA_HEADERS"))
    if headers is None:
        raise valve_error(
            "EXTRA_HEADERS is not a JSON object of texts",
            '{"X-Team": "blue"}',
            place=THIS_PLACE,
        )
    return {
        name: reveal_secret(value, "EXTRA_HEADERS") for name, value in headers.items()
    }


def _build_run_limits(valves: Valves) -> Limits:
    """Return the limits of one request, in seconds, and how often it is retried."""
    expert = read_expert_settings(valves)
    timeouts = Timeouts(
        connect=expert.connect_timeout_seconds,
        first_event=expert.first_event_timeout_seconds,
        idle=expert.idle_timeout_seconds,
    )
    return Limits(timeouts=timeouts, retries=RetryPolicy(expert.max_retries))


def _build_request_settings(question: AgentInput, endpoint: Endpoint) -> Settings:
    """Return the fields of a request that the valves decide."""
    valves = question.valves
    caller = question.caller
    summary = valves.REASONING_SUMMARY
    return Settings(
        effort=valves.REASONING_EFFORT or None,
        summary=None if summary == "disabled" else summary,
        verbosity=valves.VERBOSITY or None,
        stream=bool(question.body.get("stream")) and valves.ENABLE_STREAM,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults={
            **hash_ids("chat", caller.user_id, caller.chat_id),
            "context_management": _build_compaction(question, endpoint),
        },
    )


def _build_compaction(
    question: AgentInput, endpoint: Endpoint
) -> list[dict[str, Any]] | None:
    """Return when OpenAI compacts a chat; None if it does not.

    At COMPACTION_TOKENS, or at half of the model's window if that is less.
    """
    valves = question.valves
    threshold = valves.COMPACTION_TOKENS
    if threshold == 0 or endpoint.is_azure:
        return None
    model = resolve_model(question.choose_text("agent_model", valves.MODEL))
    window = model.facts.context_window
    if window:
        threshold = min(threshold, window // 2)
    threshold = max(threshold, _MIN_COMPACTION_TOKENS)
    return [{"type": "compaction", "compact_threshold": threshold}]
