"""Remote MCP servers as an administrator describes them -> tools of a request.

A description that cannot be used leaves out its server alone, with a sentence that says
why; neither a sentence nor a note quotes a value, because any may be a secret.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from openai_responses.endpoint import url_parts
from openai_responses.items import Item
from openai_responses.mcp_fields import SERVER_FIELDS, is_server_label
from openai_responses.redaction import header_secrets

_NO_SECRETS = frozenset(
    {
        "allowed_tools",
        "connector_id",
        "require_approval",
        "server_description",
        "server_label",
        "type",
    }
)
"""Keys whose values are no secrets; those of other keys may be."""


@dataclass(frozen=True, slots=True)
class RemoteServers:
    """The servers that can be offered, and what an administrator should know.

    `complaints` say what keeps a server out of a request, `notes` what of one is not
    sent.
    """

    tools: tuple[Item, ...] = ()
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def read_servers(text: str) -> RemoteServers:
    """Return the servers of a JSON list, or of a single JSON object."""
    try:
        rows = _rows(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return RemoteServers(
            complaints=(_servers_sentence(f"it is no JSON ({place})"),)
        )
    except (ValueError, RecursionError):  # a number or a nesting without end
        return RemoteServers(complaints=(_servers_sentence("it is no JSON"),))
    tools: dict[str, Item] = {}
    complaints: list[str] = []
    notes: list[str] = []
    for number, row in enumerate(rows, 1):
        fields = _given_fields(row)
        label = fields.get("server_label")
        name = str(label) if is_server_label(label) else f"server {number}"
        complaint = _server_complaint(row, fields, tools)
        if complaint:
            complaints.append(
                _servers_sentence(f"{name} is left out, because {complaint}")
            )
            continue
        known = {key: fields[key] for key in SERVER_FIELDS if key in fields}
        tools[name.lower()] = {"type": "mcp", **known}
        unknown = ", ".join(sorted(fields.keys() - {*SERVER_FIELDS, "type"}))
        notes += (
            [_servers_sentence(f"keys of {name} are not sent: {unknown}")]
            if unknown
            else []
        )
    return RemoteServers(tuple(tools.values()), tuple(complaints), tuple(notes))


def secrets_in_servers(text: str) -> list[str]:
    """Return every text of the descriptions that may be a secret."""
    try:
        rows = _rows(text)
    except (ValueError, RecursionError):
        return [text]
    given = [_given_fields(row).items() for row in rows]
    values = [value for row in given for key, value in row if key not in _NO_SECRETS]
    return _door_openers(values)


def _rows(text: str) -> list[Any]:
    given = json.loads(text) if text.strip() else []
    return given if isinstance(given, list) else [given]


def _servers_sentence(what: str) -> str:
    return (
        f"REMOTE_MCP_SERVERS_JSON: {what}. An administrator can correct it in the "
        "valves of this pipe; until then, chats go on without."
    )


def _door_openers(value: object) -> list[str]:
    """Return the texts of a value, and the words in them that open a door."""
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _door_openers(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in _door_openers(inner)]
    if not isinstance(value, str):
        return []
    parts = url_parts(value)
    if parts is None:
        return header_secrets(value)
    return [value, parts.password or "", *(text for _, text in parse_qsl(parts.query))]


def _given_fields(row: object) -> Mapping[str, Any]:
    """Return the fields of a description; null means not given."""
    fields = row if isinstance(row, Mapping) else {}
    return {key: value for key, value in fields.items() if value is not None}


def _server_complaint(
    row: object, fields: Mapping[str, Any], before: Mapping[str, Item]
) -> str | None:
    """Return what is wrong with a description, or None."""
    if not isinstance(row, Mapping):
        return "it is no JSON object"
    if "server_label" not in fields:
        return "it has no server_label"
    for key, (fits, expected) in SERVER_FIELDS.items():
        if key in fields and not fits(fields[key]):
            return f"its {key} is not {expected}"
    if fields["server_label"].lower() in before:
        return "its server_label is not its own"
    targets = [key for key in ("server_url", "connector_id") if key in fields]
    if len(targets) != 1:
        return "it needs a server_url or a connector_id, one of them"
    if "connector_id" in fields and "authorization" not in fields:
        return "a connector needs an authorization"
    return None
