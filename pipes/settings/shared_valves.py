"""The valves that the pipe and the agents of the Pipelines server both have.

One that is added here is on both pages, in docs/settings.md and in
docs/agent-settings.md, after the one above it.
"""

from typing import Literal

from openai_responses.endpoint import DEFAULT_BASE_URL, Compatibility
from settings.table import StoredValves, valve

SECRET_FORMS = "`env:NAME` or `file:PATH`; any other text is encrypted when saved."
"""How the Pipelines server reads a secret (gpt5_agent/shell/sealing.py)."""


class SharedValves(StoredValves):
    """Settings of an administrator at both doors."""

    API_KEY: str = valve(
        "",
        "An OpenAI API key. If empty, `OPENAI_API_KEY` of Open WebUI's environment is "
        "used.",
        pipelines=f"Key for BASE_URL: {SECRET_FORMS} If empty, the environment's "
        "OPENAI_API_KEY is used.",
        example="env:OPENAI_API_KEY",
        secret=True,
    )
    BASE_URL: str = valve(
        DEFAULT_BASE_URL,
        "Address of the Responses API, with or without `/v1`.",
        pipelines="Address of the Responses API, with or without `/v1`; the Pipelines "
        "server has to allow any but OpenAI's.",
        example=DEFAULT_BASE_URL,
    )
    ORGANIZATION: str = valve(
        "",
        "Organization to bill, if the key has access to several.",
        example="org-abc",
        own_key="never",
    )
    PROJECT: str = valve(
        "",
        "Project to bill, if the key has access to several.",
        example="proj_abc",
        own_key="never",
    )
    EXTRA_HEADERS: str = valve(
        "",
        'Headers to add or replace, as a JSON object: `{"X-Team": "blue"}`. Open '
        "WebUI's placeholders, such as `{{USER_ID}}`, are filled in "
        "(docs/gateways.md).",
        pipelines="Headers to add or replace, as a JSON object; a value can be "
        f"{SECRET_FORMS}",
        example='{"X-Team": "env:TEAM_KEY"}',
        secret=True,
        own_key="headers",
    )
    COMPATIBILITY: Compatibility = valve(
        "auto",
        "`auto` sends what OpenAI supports, and drops what the model's server rejects. "
        "`openai` also treats the server as OpenAI's own. `strict` sends only what every "
        "server supports.",
    )
    PROXY: str = valve(
        "",
        "Address of an HTTP proxy; it may include user and password. If empty, "
        "HTTPS_PROXY and NO_PROXY of the environment are used.",
        pipelines=f"Address of an HTTP proxy: {SECRET_FORMS} The Pipelines server has "
        "to allow it. If empty, its environment's HTTPS_PROXY and NO_PROXY are used.",
        example="http://10.0.0.1:3128",
        secret=True,
    )
    CA_BUNDLE: str = valve(
        "",
        "Path of a file with the certificates to trust. If empty, the system's are "
        "used.",
        example="/etc/ssl/company.pem",
    )
    VERIFY_SSL: bool = valve(
        True,
        "Check the certificate of the model's server. Turn this off for tests only: "
        "others on the network can then read the key.",
        pipelines="Check the certificate of the model's server. Turn this off for tests "
        "only: others on the network can then read the key, so the Pipelines server has "
        "to allow it.",
    )
    ENABLE_STREAM: bool = valve(
        True,
        "Stream answers. Turn this off for servers that cannot stream, or "
        "organizations that may not.",
    )
    TOOL_APPROVAL: str = valve(
        "",
        "Which tools need a person's approval: rules `pattern=auto`, `ask` or `deny`, "
        "separated by commas: `delete_*=ask, shell=deny`. Other tools follow the chat's "
        "controls. A rule applies both to a tool's name in the chat and to its own name "
        "without a server's id.",
        pipelines="Which tools need a person's approval: rules `pattern=auto`, `ask` "
        "or `deny`, separated by commas; they apply to Open WebUI's tools too.",
        example="delete_*=ask, shell=deny",
    )
    TOOL_TIMEOUTS: str = valve(
        "default: 120",
        "Time limits of tool calls in seconds, excluding time waiting for approval, by "
        "name or pattern: `default: 120, crawl_*: 600`. Parallel calls share five "
        "times the default. Open WebUI's sub-agents and images time out after one "
        "hour.",
        pipelines="Time limits of tool calls in seconds, by name or pattern. Parallel "
        "calls share five times the default.",
        example="default: 120, python_execute: 300",
    )
    TOOL_OUTPUT_CHARACTERS: int = valve(
        100_000,
        "Longest tool output that the model gets; the middle of a longer one is left "
        "out.",
        bounds=(1000, 10_000_000),
    )
    PARALLEL_TOOL_CALLS: bool = valve(True, "Let the model call tools in parallel.")
    REASONING_SUMMARY: Literal["auto", "concise", "detailed", "disabled"] = valve(
        "auto",
        "Detail of the reasoning summaries. OpenAI gives them to verified "
        "organizations only; otherwise choose `disabled`.",
    )
    COMPACTION_TOKENS: int = valve(
        0,
        "Let OpenAI compact a chat whose input has more tokens than this. 0: never. "
        "Not available on Azure.",
        pipelines="Let OpenAI compact the chat, also between two rounds, when its input "
        "has more tokens than this, or than half of the model's context window. 0: "
        "never.",
        bounds=(0, 10_000_000),
    )
    EXPERT_JSON: str = valve(
        "",
        "A JSON object of rarely needed settings, such as timeouts, retries and the "
        'audit log (docs/settings.md lists them): `{"max_retries": 3}`.',
        pipelines="A JSON object of rarely needed settings, such as timeouts, retries "
        "and what requests may set (docs/agent-settings.md lists them).",
        example='{"max_retries": 3}',
    )


SHARED = tuple(SharedValves.model_fields)
"""Their names, in the order of the table."""
