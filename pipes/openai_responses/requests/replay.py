"""Output items of earlier responses, as they are sent back in the input.

Who made an item: reasoning is readable only for its own family and endpoint.

Encrypted reasoning of another model, server or organisation is refused or silently
dropped by the API (responses-api.md §2.1, rules 4, 10 and 11).

Calls of remote MCP servers, told to the model as calls with outputs.

With `store: false` the API takes an `mcp_call` back but does not show it to the model:
no token is counted for it, and what the server said is forgotten. As a function's call
with its output it is read (seen live by two users of the API in 2026). So this pair
stands for it in every later request; it is also what a host makes of the card.

A person's consent belongs to one response: the API would make a call again whose
approval comes back without it. What the model has acted on becomes such a pair, too.

How an item goes back to the API in a later request.

What the model produced stays byte for byte. Ids go, because with `store: false` they
would be looked up and not found, and so do states, which Azure refuses on reasoning
(responses-api.md §2.1, rules 1 to 3, 6, 7 and 9). Hosted items must have both. Their
ids are made anew, always the same for the same item: the API's own would call for the
reasoning in front of them, which a chat may have lost.
"""

import hashlib
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from openai_responses.endpoint import Endpoint
from openai_responses.items import (
    Item,
    content_parts,
    has_encrypted_reasoning,
    has_image,
    image_message,
    is_host_returned,
    is_hosted,
    is_reasoning,
    item_type,
    kind_of,
    part_text,
)
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.tools import ToolNames


@dataclass(frozen=True, slots=True)
class Origin:
    """The model family, the server's name, the account there that produced an item.

    `endpoint` and `account` are empty where an earlier writer did not note them.
    """

    family: str
    endpoint: str = ""
    account: str = ""

    def can_decrypt(self, maker: Self) -> bool:
        """Say whether we may send reasoning that `maker` produced."""
        same_server = maker.endpoint in ("", self.endpoint)
        same_account = maker.account in ("", self.account)
        return same_server and same_account and maker.family == self.family

    def wire(self) -> dict[str, str]:
        """Return the form in which it is stored."""
        account = {"account": self.account} if self.account else {}
        return {"family": self.family, "endpoint": self.endpoint, **account}


def origin_at(family: str, endpoint: Endpoint) -> Origin:
    """Return who makes items of `family` at `endpoint`."""
    return Origin(family, endpoint.host, endpoint.owner())


def read_origin(wire: object, host_model: str) -> Origin:
    """Return a stored origin, or what the host's id of the model tells.

    The host's id is `{function id}.{model}`; earlier writers stored nothing else.
    """
    if isinstance(wire, Mapping) and wire.get("family"):
        endpoint, account = (str(wire.get(k) or "") for k in ("endpoint", "account"))
        return Origin(str(wire["family"]), endpoint, account)
    return Origin(resolve_model(host_model.split(".", 1)[-1]).family)


_REMOTE_SIGN = "mcp"
"""How the ids of remote calls begin, and no others."""


def remote_name(item: Mapping[str, Any]) -> str:
    """Return what a remote tool is called here: its server's label, then its name.

    Open WebUI names the tools of its own MCP servers alike.
    """
    return ToolNames().sent_name(f"{item.get('server_label')}_{item.get('name')}")


def remote_call(item: Mapping[str, Any]) -> Item:
    """Return the call that `item` made, or asked to be allowed."""
    return {
        "type": "function_call",
        "call_id": _remote_call_id(item),
        "name": remote_name(item),
        "arguments": str(item.get("arguments") or "{}"),
    }


def remote_output(item: Mapping[str, Any]) -> Item:
    """Return what came of an `mcp_call`: its output, or what went wrong."""
    return _call_output(item, _remote_error(item) or str(item.get("output") or ""))


def remote_pair(item: Mapping[str, Any]) -> list[Item]:
    """Return a whole `mcp_call` as the model is told of it later."""
    return [remote_call(item), remote_output(item)]


def refused_pair(request: Mapping[str, Any], why: str) -> list[Item]:
    """Return a call that was asked for and not allowed."""
    return [remote_call(request), _call_output(request, f"Error: {why}")]


def remote_failed(item: Mapping[str, Any]) -> bool:
    """Say whether an `mcp_call` came to nothing."""
    return bool(item.get("error")) or item.get("status") == "failed"


def is_approval_request(item: Mapping[str, Any]) -> bool:
    """Say whether the API asks whether it may make a call."""
    return item_type(item) == "mcp_approval_request"


def drop_settled_approvals(items: Sequence[Item]) -> list[Item]:
    """Return `items` without the approvals that are over.

    One that the model has not acted on yet stays, because the next response does; a
    request that nobody answered cannot be sent at all.
    """
    requests = {item["id"]: item for item in items if is_approval_request(item)}
    last = _last_act(items, {_remote_call_id(request) for request in requests.values()})
    answers = {
        item.get("approval_request_id"): (place > last, item)
        for place, item in enumerate(items)
        if _is_response(item)
    }
    kept: list[Item] = []
    for item in items:
        is_open, answer = answers.get(_asked_id(item), (False, {}))
        if is_open or _asked_id(item) is None:
            kept.append(item)
        elif is_approval_request(item) and answer.get("approve") is False:
            kept += refused_pair(item, str(answer.get("reason") or ""))
    return kept


def _last_act(items: Sequence[Item], refused: Container[str]) -> int:
    """Return the place of the last item that the model made, or -1."""
    acts = (
        place
        for place, item in enumerate(items)
        if not kind_of(item).from_client and item.get("call_id") not in refused
    )
    return max(acts, default=-1)


def _asked_id(item: Mapping[str, Any]) -> object:
    """Return the id of the request that `item` is or answers; None for others."""
    if is_approval_request(item):
        return item["id"]
    return item.get("approval_request_id") if _is_response(item) else None


def reorder_remote_outputs(items: Iterable[Item]) -> list[Item]:
    """Return `items` with the output of each remote call right behind it.

    Calls that ran at the same time stand in the host's order otherwise.
    """
    rows = list(items)
    outputs = {
        item["call_id"]: item
        for item in rows
        if _is_remote(item, "function_call_output")
    }
    told: list[Item] = []
    for item in rows:
        if _is_remote(item, "function_call") and item["call_id"] in outputs:
            told += [item, outputs[item["call_id"]]]
        elif not _is_remote(item, "function_call_output"):
            told.append(item)
    return told


def _is_response(item: Mapping[str, Any]) -> bool:
    return item_type(item) == "mcp_approval_response"


def _is_remote(item: Mapping[str, Any], kind: str) -> bool:
    return item_type(item) == kind and str(item.get("call_id")).startswith(_REMOTE_SIGN)


def _remote_call_id(item: Mapping[str, Any]) -> str:
    own = str(item.get("id") or "")
    return own if own.startswith(_REMOTE_SIGN) else f"{_REMOTE_SIGN}_{own}"


def _call_output(item: Mapping[str, Any], text: str) -> Item:
    kind = "function_call_output"
    return {"type": kind, "call_id": _remote_call_id(item), "output": text}


def _remote_error(item: Mapping[str, Any]) -> str:
    """Return what went wrong, in the words of the server or of the API."""
    error = item.get("error")
    if not error:
        return ""
    fields = error if isinstance(error, Mapping) else {"message": error}
    content = fields.get("content")
    text = fields.get("message") or content
    if isinstance(content, list):
        text = "\n".join(map(part_text, content_parts(content)))
    return f"Error: {text or 'the server did not say what went wrong.'}"


_NEVER_REPLAYED = ("id", "status", "created_by")
_MADE_HERE = "replayed"


def strip_for_replay(item: Item) -> Item:
    """Return `item` as it is given back: without ids, states and absent values.

    Those inside the content of a message go too (`logprobs`), and the pages that a
    search found (`action.sources`).
    """
    kept = {k: v for k, v in item.items() if k not in _NEVER_REPLAYED and v is not None}
    if item_type(item) == "message" and isinstance(kept.get("content"), list):
        kept["content"] = list(map(_strip_part, content_parts(kept["content"])))
    if is_host_returned(item):
        kept |= _demanded(item)
    return kept


def replay_items(item: Item) -> list[Item]:
    """Return what stands for a whole output item in later requests, in its order."""
    if item_type(item) == "mcp_call":
        return remote_pair(item)
    return [image_message(item) if has_image(item) else strip_for_replay(item)]


def replay_output(output: Iterable[Item], *, with_reasoning: bool) -> list[Item]:
    """Return the output of a turn as the next one of the same run sends it back."""
    going = (item for item in output if _goes_back(item, with_reasoning))
    return [told for item in going for told in replay_items(item)]


def _goes_back(item: Item, with_reasoning: bool) -> bool:
    if is_reasoning(item):
        return with_reasoning and has_encrypted_reasoning(item)
    return not is_hosted(item) or is_host_returned(item) or has_image(item)


def _demanded(item: Item) -> Item:
    """Return the fields of a hosted item that are not simply left as they are."""
    kind = kind_of(item)
    demanded = {key: item.get(key) for key in kind.nullable}
    demanded |= {key: item[key] for key in ("id", "status") if item.get(key)}
    if demanded.get("outputs"):  # pictures are for people, and large
        parts = content_parts(demanded["outputs"])
        demanded["outputs"] = [p for p in parts if p.get("type") != "image"]
    if kind.tool == "web_search":
        action = item["action"].items()
        demanded["action"] = {
            k: v for k, v in action if k != "sources" and v is not None
        }
    # An approval is named by the id of the request for it.
    if "id" in demanded and kind.returned == "always":
        demanded["id"] = _new_id(str(item["id"]))
    return demanded


def _new_id(own: str) -> str:
    """Return an id of the kind that `own` is; replayed again, it stays the same."""
    prefix, _, rest = own.partition("_")
    if rest.startswith(_MADE_HERE):
        return own
    digest = hashlib.sha256(own.encode("utf-8", "replace")).hexdigest()
    return f"{prefix}_{_MADE_HERE}{digest[:40]}"


def _strip_part(part: Item) -> Item:
    return {k: v for k, v in part.items() if k != "logprobs" and v is not None}
