"""Remote MCP servers, from REMOTE_MCP_SERVERS_JSON to tools of a request.

A description that cannot be used leaves out only its server. No message quotes a
value, because any value may be a secret.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from openai_responses.endpoint import url_parts
from openai_responses.items import Item
from openai_responses.json_input import (
    JsonObject,
    as_mapping,
    load_json,
    matches_schema,
)
from openai_responses.redaction import header_secrets
from openai_responses.requests.parameters import given_values
from shells.valve_messages import PIPE_SHELL
from shells.valve_texts import json_mistake

_SERVER_LABEL = "[A-Za-z][A-Za-z0-9_-]{0,63}"
_SOME_TEXT = r".*\S.*"
_TOOL_FILTER = {"tool_names": [_SOME_TEXT], "read_only": bool}


def _is_address(value: object) -> bool:
    is_one_word = isinstance(value, str) and value.split() == [value]
    return is_one_word and url_parts(str(value)) is not None


def _are_headers(value: object) -> bool:
    return isinstance(value, Mapping) and matches_schema(list(value.values()), [str])


class _ServerKey(NamedTuple):
    """What is known of a key of a description."""

    form: Any
    valid: str
    """The valid values in words."""
    is_public: bool = False
    """Whether its value is never secret."""


_SERVER_KEYS: Mapping[str, _ServerKey] = {
    "server_label": _ServerKey(
        _SERVER_LABEL,
        "a letter followed by up to 63 letters, digits, hyphens and underscores",
        is_public=True,
    ),
    "server_url": _ServerKey(
        _is_address, "an address that begins with http:// or https://"
    ),
    "connector_id": _ServerKey(_SOME_TEXT, "a text", is_public=True),
    "tunnel_id": _ServerKey(_SOME_TEXT, "a text"),
    "authorization": _ServerKey(_SOME_TEXT, "a text"),
    "headers": _ServerKey(_are_headers, "a JSON object with texts as values"),
    "allowed_tools": _ServerKey(
        ([_SOME_TEXT], _TOOL_FILTER),
        "a list of names, or an object that chooses tools",
        is_public=True,
    ),
    "require_approval": _ServerKey(
        ("always|never", {"always": _TOOL_FILTER, "never": _TOOL_FILTER}),
        "`always`, `never` or an object of both",
        is_public=True,
    ),
    "server_description": _ServerKey(_SOME_TEXT, "a text", is_public=True),
}
"""The keys that are sent. Any other may hold anything, so its value may be secret."""

_TARGETS = ("server_url", "connector_id", "tunnel_id")


class RemoteServers(NamedTuple):
    """The servers that can be offered, and messages for an administrator."""

    tools: tuple[Item, ...] = ()
    problems: tuple[str, ...] = ()
    """Why a server is left out."""
    notes: tuple[str, ...] = ()
    """Which keys of a server are not sent."""
    secrets: tuple[str, ...] = ()
    """Every text that may be secret."""


@lru_cache(maxsize=8)
def read_servers(text: str) -> RemoteServers:
    """Return the servers of the valve: a JSON list, or a single JSON object."""
    text = text if text.strip() else "[]"
    if mistake := json_mistake(text):
        problem = _servers_message(f"it {mistake}")
        return RemoteServers(problems=(problem,), secrets=(text,))
    given = load_json(text)
    rows = given if isinstance(given, list) else [given]
    tools: dict[str, Item] = {}
    problems: list[str] = []
    notes: list[str] = []
    secrets: list[str] = []
    for number, row in enumerate(rows, 1):
        fields = given_values(as_mapping(row))
        known = {key: fields[key] for key in _SERVER_KEYS if key in fields}
        for key, value in fields.items():
            is_public = key == "type" or (key in known and _SERVER_KEYS[key].is_public)
            if not is_public:
                secrets += _secret_values(value)
        label = fields.get("server_label")
        is_label = matches_schema(label, _SERVER_LABEL)
        name = str(label) if is_label else f"server {number}"
        reason = _server_error(row, fields, tools)
        if reason:
            problem = f"{name} is left out, because {reason}"
            problems.append(_servers_message(problem))
            continue
        tools[name.lower()] = {"type": "mcp", **known}
        unknown = sorted(fields.keys() - {*known, "type"})
        if unknown:
            names = ", ".join(unknown)
            notes.append(_servers_message(f"keys of {name} are not sent: {names}"))
    return RemoteServers(
        tools=tuple(tools.values()),
        problems=tuple(problems),
        notes=tuple(notes),
        secrets=tuple(secrets),
    )


def _servers_message(problem: str) -> str:
    return (
        f"REMOTE_MCP_SERVERS_JSON: {problem}. An administrator can correct it in "
        f"{PIPE_SHELL.valves}; until then, chats continue without it."
    )


def _secret_values(value: object) -> list[str]:
    """Return the texts in a value, and the parts of them that are secret alone."""
    if isinstance(value, str):
        address = url_parts(value)
        if address is None:
            return header_secrets(value)
        query_values = [text for _, text in parse_qsl(address.query)]
        return [value, address.password or "", *query_values]
    rows: Iterable[object] = ()
    if isinstance(value, Mapping):
        rows = value.values()
    elif isinstance(value, list):
        rows = value
    secrets: list[str] = []
    for row in rows:
        secrets += _secret_values(row)
    return secrets


def _server_error(row: object, fields: JsonObject, before: Mapping[str, Item]) -> str:
    """Return what is wrong with a description; empty if it can be used.

    `before` are the servers in front of it, by their labels in small letters.
    """
    if not isinstance(row, Mapping):
        return "it is not a JSON object"
    if "server_label" not in fields:
        return "it has no server_label"
    for key, known in _SERVER_KEYS.items():
        if key in fields and not matches_schema(fields[key], known.form):
            return f"its {key} is not {known.valid}"
    if fields["server_label"].lower() in before:
        return "another entry has the same server_label"
    targets = [key for key in _TARGETS if key in fields]
    if len(targets) != 1:
        return "it needs a server_url, a connector_id or a tunnel_id, and only one"
    if "connector_id" in fields and "authorization" not in fields:
        return "a connector needs an authorization"
    return ""
