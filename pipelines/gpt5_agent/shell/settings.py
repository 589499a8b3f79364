"""One call of the pipeline: who calls, and the settings from valves and request.

Open WebUI removes the metadata from a body before the pipeline gets it, but shows it to
the pipeline's own inlet and keeps what the inlet adds.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from gpt5_agent.agent.policy import find_preset
from gpt5_agent.ports import StoreFile, Tool
from gpt5_agent.request import AgentLimits, AgentRequest, OwnToolSettings, Persona
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.sealing import reveal_secret, server_secret
from gpt5_agent.shell.valves import Valves
from gpt5_agent.tools.guard import find_own_names
from openai_responses.endpoint import Endpoint, connection_secrets
from openai_responses.errors import InvalidRequest, valve_error
from openai_responses.json_input import (
    as_list,
    as_mapping,
    clamp_number,
    parse_string_map,
)
from openai_responses.loop.attempts import Limits
from openai_responses.loop.tools import Approver, CallLimits, read_rules
from openai_responses.models.resolve import resolve_model
from openai_responses.repairs.memory import RepairMemory
from openai_responses.requests.build import Settings
from openai_responses.requests.parameters import hash_ids, read_bool
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections, Timeouts

CONTEXT_KEY = "agent_context"
_MAX_ATTACHED = 20
"""Attached files that are put into the sandbox."""
_FILE_KEYS = ("type", "id", "name")
_USER_KEYS = ("id", "name", "email", "role")
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
    user: Mapping[str, str] = MappingProxyType({})
    """The id, name, address and role of the user, as far as Open WebUI tells them."""
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
    """Return what an inlet's body says of the chat: ids, those of its tools, the role."""
    metadata = as_mapping(body.get("metadata"))
    context: dict[str, Any] = {
        key: str(metadata[key]) for key in _CONTEXT_IDS if metadata.get(key)
    }
    if (user or {}).get("role") == "admin":
        context["is_admin"] = True
    if user and forwards_user_info():
        context["user"] = {key: user.get(key) for key in _USER_KEYS}
    if tool_ids := as_list(metadata.get("tool_ids")):
        context["tool_ids"] = tool_ids
    if files := as_list(metadata.get("files"))[-_MAX_ATTACHED:]:
        rows = map(as_mapping, files)
        context["files"] = [{k: row.get(k) for k in _FILE_KEYS} for row in rows]
    return context


def _read_attached(rows: object) -> Iterator[tuple[str, str]]:
    """Yield ids and names of files; no name comes twice."""
    names: set[str] = set()
    for number, row in enumerate(map(as_mapping, as_list(rows)), 1):
        if row.get("type") in ("file", "image") and row.get("id"):
            name = str(row.get("name") or "file")
            names.add(name := f"{number}-{name}" if name in names else name)
            yield str(row["id"]), name


def forwards_user_info() -> bool:
    """Say whether Open WebUI's switch of this name is on for this server, too."""
    return os.environ.get("ENABLE_FORWARD_USER_INFO_HEADERS", "").lower() == "true"


def _read_user(given: Mapping[str, Any]) -> dict[str, str]:
    return {k: v for k in _USER_KEYS if isinstance(v := given.get(k), str) and v}


def _read_tool_id(given: object) -> str:
    """Return the id of a toolkit (`id`) or a server (`server:kind:id|functions`)."""
    tool_id = str(given).partition("|")[0]
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
        user=_read_user(as_mapping(context.get("user"))),
        tool_ids=frozenset(map(_read_tool_id, as_list(context.get("tool_ids")))),
        files=tuple(_read_attached(context.get("files"))),
        **{key: str(context.get(key) or "") for key in _CONTEXT_IDS},
    )


class AgentInput(NamedTuple):
    """One question: `can_ask` allows approvals in the chat, `tools` run here."""

    strategy: str
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    valves: Valves
    can_ask: bool = False
    tools: Sequence[Tool] = ()
    caller: PipelineCaller = PipelineCaller()
    notices: tuple[str, ...] = ()
    is_new: Callable[[str], bool] = bool
    store_file: StoreFile | None = None
    repairs: RepairMemory | None = None

    def choose_text(self, key: str, otherwise: str) -> str:
        """Return a text of the request; an object or list in it as JSON."""
        given = self.body.get(key)
        if isinstance(given, Mapping | list):
            return json.dumps(given)
        return given if isinstance(given, str) and given.strip() else otherwise


def build_agent_request(
    question: AgentInput, endpoint: Endpoint, connections: Connections, log: AgentLog
) -> AgentRequest:
    """Return the request to the agent; raises InvalidRequest."""
    valves, body, choose_text = question.valves, question.body, question.choose_text
    iterations = body.get("maximum_iterations")
    rules, rules_error = read_rules(valves.TOOL_APPROVAL, "the valves of this pipeline")
    notices = question.notices
    if rules_error:
        log.warn(rules_error)
        notices = (*notices, rules_error)
    return AgentRequest(
        strategy=question.strategy,
        model=choose_text("agent_model", valves.MODEL),
        messages=question.messages,
        body=body,
        endpoint=endpoint,
        connections=connections,
        limits=_build_run_limits(valves),
        settings=_build_request_settings(question, endpoint),
        persona=Persona(
            choose_text("instruction", valves.INSTRUCTION),
            choose_text("prompt_policy_overrides", valves.PROMPT_POLICY_OVERRIDES),
            valves.POLICY_STYLE,
            find_preset(valves.PRESET, valves.PRESETS_DIR),
        ),
        budget=AgentLimits(
            clamp_number(iterations, 1, 30, valves.MAXIMUM_ITERATIONS),
            valves.MAXIMUM_SECONDS,
            valves.MAXIMUM_TOKENS,
        ),
        own_tools=OwnToolSettings(
            question.tools,
            Approver(
                rules,
                other_names=partial(find_own_names, tool_ids=question.caller.tool_ids),
            ),
            CallLimits(
                seconds=valves.TOOL_TIMEOUT_SECONDS,
                characters=valves.TOOL_OUTPUT_CHARACTERS,
            ),
            question.can_ask,
            valves.DELEGATION,
            question.store_file,
        ),
        query=choose_text("query", ""),
        context=body.get("context") or valves.CONTEXT or None,
        notices=notices if question.caller.is_admin else (),
        is_new=question.is_new,
        chat=question.caller.workspace,
        secret=endpoint.api_key or server_secret(),
        log=log.line,
        debug=valves.DEBUG,
        on_end=lambda metadata: log.line(json.dumps(metadata.wire())),
        user_id=question.caller.user_id,
        repairs=question.repairs,
    )


def shows_thoughts(question: AgentInput) -> bool:
    """Say whether thoughts between the rounds are shown; raises InvalidRequest."""
    name = "emit_intermediate_thoughts"
    given = question.body.get(name)
    default = question.valves.EMIT_INTERMEDIATE_THOUGHTS
    return default if given is None else read_bool(name, given)


def read_api_key(valves: Valves) -> str:
    """Return the API key, or nothing if there is none that can be read."""
    with suppress(InvalidRequest):
        return _read_api_key(valves)
    return ""


def _read_api_key(valves: Valves) -> str:
    key = reveal_secret(valves.API_KEY, "API_KEY")
    return key or os.environ.get("OPENAI_API_KEY", "").strip()


def build_endpoint(valves: Valves, log: AgentLog) -> Endpoint:
    """Return where requests go; `log` hides its secrets. Raises InvalidRequest."""
    key = _read_api_key(valves)
    takes_token = valves.AUTH == "entra_id"
    if not key and not takes_token:
        raise InvalidRequest(
            "This pipeline has no API key yet. An administrator has to set API_KEY in "
            "its valves (Admin Panel > Settings > Pipelines)."
        )
    headers = _read_extra_headers(valves.EXTRA_HEADERS)
    proxy = reveal_secret(valves.PROXY, "PROXY")
    log.hide(connection_secrets(headers.values(), proxy, key))
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key="" if takes_token else key,
        token=key if valves.AUTH == "bearer" else "",
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers=headers,
        verify_ssl=valves.VERIFY_SSL,
        ca_bundle=valves.CA_BUNDLE.strip(),
        proxy=proxy,
        strict=valves.COMPATIBILITY == "strict",
    )


def _read_extra_headers(stored: str) -> Mapping[str, str]:
    given = parse_string_map(reveal_secret(stored, "EXTRA_HEADERS"))
    if given is not None:
        return {name: reveal_secret(v, "EXTRA_HEADERS") for name, v in given.items()}
    problem = "EXTRA_HEADERS is not a JSON object of texts"
    example = '{"X-Team": "blue"}'
    raise valve_error(problem, example, place="the valves of this pipeline")


def _build_run_limits(valves: Valves) -> Limits:
    timeouts = Timeouts(
        connect=valves.CONNECT_TIMEOUT_SECONDS,
        first_event=valves.FIRST_EVENT_TIMEOUT_SECONDS,
        idle=valves.IDLE_TIMEOUT_SECONDS,
    )
    return Limits(timeouts=timeouts, retries=RetryPolicy(valves.MAX_RETRIES))


def _build_request_settings(question: AgentInput, endpoint: Endpoint) -> Settings:
    valves, caller = question.valves, question.caller
    model = resolve_model(question.choose_text("agent_model", valves.MODEL))
    most = valves.COMPACTION_TOKENS
    window = model.facts.context or 2 * most
    threshold = max(min(most, window // 2), 1000)  # the API refuses less
    compaction = [{"type": "compaction", "compact_threshold": threshold}]
    compacts = most and not endpoint.is_azure
    streams, summary = bool(question.body.get("stream")), valves.REASONING_SUMMARY
    return Settings(
        effort=valves.REASONING_EFFORT or None,
        summary=None if summary == "disabled" else summary,
        verbosity=valves.VERBOSITY or None,
        stream=streams and valves.ENABLE_STREAM,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults={
            **hash_ids("chat", caller.user_id, caller.chat_id),
            "context_management": compaction if compacts else None,
        },
    )
