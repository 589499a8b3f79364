"""What the valves and a request come to: one question to the agent."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpt5_agent.asked import AgentAsked, AgentLimits, OwnTools, Persona
from gpt5_agent.log import AgentLog
from gpt5_agent.ports import Tool
from gpt5_agent.presets import find_guide
from gpt5_agent.sealing import revealed
from gpt5_agent.valves import Valves, within
from openai_responses.endpoint import Endpoint, Network, proxy_secrets
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import parse_string_map
from openai_responses.loop.attempts import Limits
from openai_responses.loop.recovery import RetryPolicy
from openai_responses.loop.tools import Approver, CallLimits, read_rules
from openai_responses.redaction import header_secrets
from openai_responses.requests.build import Settings
from openai_responses.requests.parameters import read_bool
from openai_responses.transport.connections import Connections, Timeouts


@dataclass(frozen=True, slots=True)
class Question:
    """One call of the pipeline: which agent, what was said, what else was given.

    `in_chat` says whether a person can be asked in the chat; `tools` run here.
    """

    strategy: str
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    valves: Valves
    in_chat: bool = False
    tools: Sequence[Tool] = ()

    def chosen(self, key: str, otherwise: str) -> str:
        """Return a text that the request names, else that of the valves."""
        given = self.body.get(key)
        if isinstance(given, Mapping | list):
            return json.dumps(given)
        return given if isinstance(given, str) and given.strip() else otherwise


def agent_asked(
    question: Question, endpoint: Endpoint, connections: Connections, log: AgentLog
) -> AgentAsked:
    """Return what the agent is asked; raises InvalidRequest for what cannot work."""
    valves, body = question.valves, question.body
    return AgentAsked(
        strategy=question.strategy,
        model=question.chosen("agent_model", valves.MODEL),
        messages=question.messages,
        body=body,
        endpoint=endpoint,
        connections=connections,
        limits=_limits(valves),
        settings=_settings(valves, streams=bool(body.get("stream"))),
        persona=_persona(question),
        budget=AgentLimits(
            within(body.get("maximum_iterations"), 1, 30, valves.MAXIMUM_ITERATIONS),
            valves.MAXIMUM_SECONDS,
            valves.MAXIMUM_TOKENS,
        ),
        own=_own_tools(question),
        query=question.chosen("query", ""),
        context=body.get("context") or valves.CONTEXT or None,
        log=log.line,
        debug=valves.DEBUG,
        ended=lambda metadata: log.line(json.dumps(metadata.wire())),
    )


def emits_thoughts(question: Question) -> bool:
    """Say whether thoughts between the rounds are shown; raises InvalidRequest."""
    given = question.body.get("emit_intermediate_thoughts")
    if given is None:
        return question.valves.EMIT_INTERMEDIATE_THOUGHTS
    return read_bool("emit_intermediate_thoughts", given)


def build_endpoint(valves: Valves) -> Endpoint:
    """Return where requests go; raises InvalidRequest for what cannot work."""
    key = revealed(valves.API_KEY, "API_KEY")
    key = key or os.environ.get("OPENAI_API_KEY", "").strip()
    if not key:
        raise InvalidRequest(
            "This pipeline has no API key yet. An administrator has to set API_KEY in "
            "its valves (Admin Panel > Settings > Pipelines)."
        )
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key=key,
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers=_headers(valves.EXTRA_HEADERS),
        network=Network(
            valves.VERIFY_SSL,
            valves.CA_BUNDLE.strip(),
            revealed(valves.PROXY, "PROXY"),
        ),
        strict=valves.COMPATIBILITY == "strict",
    )


def valve_secrets(endpoint: Endpoint) -> list[str]:
    """Return the texts that must be in no line of the log."""
    secrets = [endpoint.api_key, *proxy_secrets(endpoint.network.proxy)]
    for value in endpoint.extra_headers.values():
        secrets += header_secrets(value)
    return [text for text in secrets if text.strip()]


def _headers(stored: str) -> Mapping[str, str]:
    """Return the headers of a JSON object; raises InvalidRequest for anything else."""
    given = parse_string_map(revealed(stored, "EXTRA_HEADERS"))
    if given is not None:
        return {name: revealed(v, "EXTRA_HEADERS") for name, v in given.items()}
    raise InvalidRequest(
        "EXTRA_HEADERS is not a JSON object of texts. An administrator has to correct "
        'it in the valves of this pipeline, for example {"X-Team": "blue"}.'
    )


def _limits(valves: Valves) -> Limits:
    timeouts = Timeouts(
        connect=valves.CONNECT_TIMEOUT_SECONDS,
        first_event=valves.FIRST_EVENT_TIMEOUT_SECONDS,
        idle=valves.IDLE_TIMEOUT_SECONDS,
    )
    return Limits(timeouts=timeouts, retries=RetryPolicy(valves.MAX_RETRIES))


def _settings(valves: Valves, *, streams: bool) -> Settings:
    summary = valves.REASONING_SUMMARY
    return Settings(
        effort=valves.REASONING_EFFORT or None,
        summary=None if summary == "disabled" else summary,
        verbosity=valves.VERBOSITY or None,
        stream=streams and valves.ENABLE_STREAM,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
    )


def _persona(question: Question) -> Persona:
    valves = question.valves
    return Persona(
        instruction=question.chosen("instruction", valves.INSTRUCTION),
        overrides=question.chosen(
            "prompt_policy_overrides", valves.PROMPT_POLICY_OVERRIDES
        ),
        style=valves.POLICY_STYLE,
        guide=find_guide(valves.PRESET, valves.PRESETS_DIR),
    )


def _own_tools(question: Question) -> OwnTools:
    valves = question.valves
    return OwnTools(
        tools=question.tools,
        approver=Approver(read_rules(valves.TOOL_APPROVAL)),
        limits=CallLimits(
            seconds=valves.TOOL_TIMEOUT_SECONDS,
            characters=valves.TOOL_OUTPUT_CHARACTERS,
        ),
        asks_in_chat=question.in_chat,
        files_root=valves.FILES_ROOT.strip(),
    )
