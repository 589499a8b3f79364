"""Remote MCP servers, from REMOTE_MCP_SERVERS_JSON to tools of a request.

A description that cannot be used leaves out only its server. No message quotes a
value, because any value may be a secret.
"""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from openai_responses.endpoint import url_parts
from openai_responses.items import Item
from openai_responses.json_input import JsonObject, as_mapping, matches_schema
from openai_responses.redaction import header_secrets
from openai_responses.requests.parameters import given_values
from shells.valve_messages import PIPE_SHELL

_SERVER_LABEL = "[A-Za-z][A-Za-z0-9_-]{0,63}"
_SOME_TEXT = r".*\S.*"
_TOOL_FILTER = {"tool_names": [_SOME_TEXT], "read_only": bool}


def _is_address(value: object) -> bool:
    is_one_word = isinstance(value, str) and value.split() == [value]
    return is_one_word and url_parts(str(value)) is not None


def _are_headers(value: object) -> bool:
    return isinstance(value, Mapping) and matches_schema(list(value.values()), [str])


_SERVER_FIELDS: Mapping[str, tuple[Any, str]] = {
    "server_label": (
        _SERVER_LABEL,
        "a letter followed by up to 63 letters, digits, hyphens and underscores",
    ),
    "server_url": (_is_address, "an address that begins with http:// or https://"),
    "connector_id": (_SOME_TEXT, "a text"),
    "tunnel_id": (_SOME_TEXT, "a text"),
    "authorization": (_SOME_TEXT, "a text"),
    "headers": (_are_headers, "a JSON object of texts"),
    "allowed_tools": (
        ([_SOME_TEXT], _TOOL_FILTER),
        "a list of names, or an object that chooses tools",
    ),
    "require_approval": (
        ("always|never", {"always": _TOOL_FILTER, "never": _TOOL_FILTER}),
        "`always`, `never` or an object of both",
    ),
    "server_description": (_SOME_TEXT, "a text"),
}
"""The keys that are sent, each with its form and the words for valid values."""

_TARGETS = ("server_url", "connector_id", "tunnel_id")

_NEVER_SECRET = (
    "type",
    "server_label",
    "connector_id",
    "allowed_tools",
    "require_approval",
    "server_description",
)
"""Keys whose values are never secret; any other may hold anything."""


class RemoteServers(NamedTuple):
    """The servers that can be offered, and messages for an administrator.

    `complaints` are those that say why a server is left out, `notes` which fields are
    not sent. `secrets` holds every text that may be secret.
    """

    tools: tuple[Item, ...] = ()
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def read_servers(text: str) -> RemoteServers:
    """Return the servers of the valve: a JSON list, or a single JSON object."""
    try:
        rows = _load_rows(text)
    except ValueError as error:
        complaint = _servers_error(str(error))
        return RemoteServers(complaints=(complaint,), secrets=(text,))
    tools: dict[str, Item] = {}
    complaints: list[str] = []
    notes: list[str] = []
    secrets: list[str] = []
    for number, row in enumerate(rows, 1):
        fields = given_values(as_mapping(row))
        secrets += _secrets_of(fields)
        label = fields.get("server_label")
        is_label = matches_schema(label, _SERVER_LABEL)
        name = str(label) if is_label else f"server {number}"
        reason = _server_error(row, fields, tools)
        if reason:
            problem = f"{name} is left out, because {reason}"
            complaints.append(_servers_error(problem))
            continue
        tools[name.lower()] = _tool_of(fields)
        unknown = sorted(fields.keys() - {*_SERVER_FIELDS, "type"})
        if unknown:
            names = ", ".join(unknown)
            notes.append(_servers_error(f"keys of {name} are not sent: {names}"))
    return RemoteServers(
        tools=tuple(tools.values()),
        complaints=tuple(complaints),
        notes=tuple(notes),
        secrets=tuple(secrets),
    )


def _secrets_of(fields: JsonObject) -> list[str]:
    """Return every text of a description that may be secret."""
    secrets: list[str] = []
    for key, value in fields.items():
        if key not in _NEVER_SECRET:
            secrets += _secret_values(value)
    return secrets


def _tool_of(fields: JsonObject) -> Item:
    """Return the tool of a request that a valid description stands for."""
    known = {key: fields[key] for key in _SERVER_FIELDS if key in fields}
    return {"type": "mcp", **known}


def _load_rows(text: str) -> list[object]:
    """Return the descriptions in the text of the valve; raises ValueError.

    A number of thousands of digits, or nesting without an end, is refused like any
    other text that is not JSON.
    """
    try:
        given = json.loads(text) if text.strip() else []
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"it is not JSON ({place})") from None
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    return given if isinstance(given, list) else [given]


def _servers_error(problem: str) -> str:
    return (
        f"REMOTE_MCP_SERVERS_JSON: {problem}. An administrator can correct it in "
        f"{PIPE_SHELL.valves}; until then, chats continue without it."
    )


def _secret_values(value: object) -> list[str]:
    """Return the texts in a value, and the parts of them that are secret alone."""
    if isinstance(value, str):
        return _secrets_of_text(value)
    rows: Iterable[object] = ()
    if isinstance(value, Mapping):
        rows = value.values()
    elif isinstance(value, list):
        rows = value
    secrets: list[str] = []
    for row in rows:
        secrets += _secret_values(row)
    return secrets


def _secrets_of_text(text: str) -> list[str]:
    """Return a text that may be secret; of an address also its password and query."""
    address = url_parts(text)
    if address is None:
        return header_secrets(text)
    query_values = [value for _, value in parse_qsl(address.query)]
    return [text, address.password or "", *query_values]


def _server_error(row: object, fields: JsonObject, before: Mapping[str, Item]) -> str:
    """Return what is wrong with a description; empty if it can be used.

    `before` are the servers in front of it, by their labels in small letters.
    """
    if not isinstance(row, Mapping):
        return "it is not a JSON object"
    if "server_label" not in fields:
        return "it has no server_label"
    for key, (form, expected) in _SERVER_FIELDS.items():
        if key in fields and not matches_schema(fields[key], form):
            return f"its {key} is not {expected}"
    if fields["server_label"].lower() in before:
        return "another entry has the same server_label"
    targets = [key for key in _TARGETS if key in fields]
    if len(targets) != 1:
        return "it needs a server_url, a connector_id or a tunnel_id, and only one"
    if "connector_id" in fields and "authorization" not in fields:
        return "a connector needs an authorization"
    return ""
