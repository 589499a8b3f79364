"""Checks remote servers and the answers to their approval requests.

The types of the openai package have been checked before.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.refusals import refuse, refuse_exclusive_fields

Tool = Mapping[str, Any]
Item = Mapping[str, Any]
LABEL_PATTERN = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,63}")
SERVER_URL_PATTERN = re.compile(r"https?://[^\s/]+\S*", re.IGNORECASE)
TARGETS = ("server_url", "connector_id", "tunnel_id")


def check_servers(
    tools: Sequence[Tool], path: str = "tools", seen: set[str] | None = None
) -> None:
    """Raise the refusal for the first remote server that cannot be used.

    ``seen`` holds the labels of the lists before.

    Source: reports of OpenAI's users.
    """
    labels = set() if seen is None else seen
    for index, tool in enumerate(tools):
        if tool["type"] != "mcp":
            continue
        _check_server(tool, f"{path}[{index}]")
        label = tool["server_label"].lower()
        if label in labels:
            raise refuse("duplicate_label", label=tool["server_label"])
        labels.add(label)


def _check_server(tool: Tool, path: str) -> None:
    """Source: types of openai 3.54.0; the words, and what belongs together, are assumed."""
    if not LABEL_PATTERN.fullmatch(tool["server_label"]):
        raise refuse(
            "pattern", path=f"{path}.server_label", pattern=LABEL_PATTERN.pattern
        )
    targets = [name for name in TARGETS if name in tool]
    if not targets:
        raise refuse("missing_parameter", path=f"{path}.server_url")
    if len(targets) > 1:
        raise refuse_exclusive_fields(path, targets)
    if "server_url" in tool and not SERVER_URL_PATTERN.fullmatch(tool["server_url"]):
        raise refuse("server_address", path=path)
    if "connector_id" in tool and not tool.get("authorization"):
        raise refuse("missing_parameter", path=f"{path}.authorization")


def check_approvals(items: Sequence[Item]) -> None:
    """Raise unless every approval request has its one answer, and the reverse.

    Source: reports of OpenAI's users; the refusal of an answer without its request is
    assumed.
    """
    open_ids: list[str] = []
    for item in items:
        if item.get("type") == "mcp_approval_request":
            open_ids.append(item["id"])
        elif item.get("type") == "mcp_approval_response":
            request_id = item["approval_request_id"]
            if request_id not in open_ids:
                raise refuse("unknown_approval", id=request_id)
            open_ids.remove(request_id)
    if open_ids:
        raise refuse("open_approvals", names=", ".join(open_ids))


def find_approved_calls(items: Sequence[Item]) -> list[Item]:
    """Return the requests that were allowed and whose call has not been made yet.

    An approval without its call still waits for it, however old it is.
    """
    made = {
        item.get("approval_request_id")
        for item in items
        if item.get("type") == "mcp_call"
    }
    allowed = {
        item["approval_request_id"]
        for item in items
        if item.get("type") == "mcp_approval_response" and item["approve"]
    }
    return [
        item
        for item in items
        if item.get("type") == "mcp_approval_request" and item["id"] in allowed - made
    ]
