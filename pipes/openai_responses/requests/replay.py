"""Output items of earlier responses, as they are sent again.

The API refuses or silently drops encrypted reasoning of another model family, server or
organization, so the origin of an item is stored with it
(docs/reference/responses-api.md, "Refusals of input items", 4, 10 and 11).

What the model produced stays byte for byte, without ids, which the API would look up
and not find, and without `status`, which Azure refuses on reasoning (the same section,
1 to 3, 6, 7 and 9). Hosted items need both. They get a new id, always the same for the
same item: the API's own id would require the reasoning before the item, which a chat
may have lost.

The API accepts an `mcp_call` but does not show it to the model (seen live in 2026), so
later requests contain a function call with its output instead; it is also what a host
makes of the card. An approval belongs to one response: without it the API would make
the call again. An approval that the model has acted on becomes a pair, too.

Code that the API ran is itself within its run only: its container is dead after 20 idle
minutes, and the chat with it (docs/reference/responses-api.md, "Hosted items again").
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, Self

from openai_responses.digest import hex_digest
from openai_responses.endpoint import Endpoint
from openai_responses.items import (
    Item,
    code_output,
    content_parts,
    has_encrypted_reasoning,
    has_image,
    has_plain_reasoning,
    image_message,
    is_call_output,
    is_code,
    is_encrypted,
    is_hosted,
    is_reasoning,
    is_returnable_hosted,
    item_type,
    json_text,
    kind_of,
    message_text,
    part_text,
)
from openai_responses.json_input import JsonObject, as_list, as_mapping, as_text
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.tools import ToolNames


class Origin(NamedTuple):
    """The model family, the server, and the account that produced an item.

    Earlier writers stored neither of the latter two.
    """

    family: str
    endpoint: str = ""
    account: str = ""

    def shares_server(self, maker: Self) -> bool:
        """Say whether tools of the server of `maker` are known here."""
        return maker.endpoint in ("", self.endpoint)

    def can_decrypt(self, maker: Self) -> bool:
        """Say whether reasoning of `maker` can be sent here."""
        same_account = maker.account in ("", self.account)
        same_family = maker.family == self.family
        return self.shares_server(maker) and same_account and same_family

    def wire(self) -> dict[str, str]:
        """Return the form in which `reasoning_details` hold it."""
        fields = {"family": self.family, "endpoint": self.endpoint}
        if self.account:
            fields["account"] = self.account
        return fields


def origin_at(family: str, endpoint: Endpoint) -> Origin:
    """Return the origin of items of `family` from `endpoint`."""
    return Origin(family, endpoint.host, endpoint.reasoning_scope_id())


def read_origin(wire: object, model: str) -> Origin:
    """Return a stored origin, or the one that the name of the model implies."""
    fields = as_mapping(wire)
    row = as_list(wire)
    if len(row) == len(Origin._fields):
        fields = dict(zip(Origin._fields, map(as_text, row), strict=True))
    family = fields.get("family")
    if family:
        endpoint = str(fields.get("endpoint") or "")
        account = str(fields.get("account") or "")
        return Origin(str(family), endpoint, account)
    return Origin(resolve_model(model).family)


_REMOTE_PREFIX = "mcp"
"""How the ids of remote calls begin, and no others."""


def is_remote_id(call_id: str) -> bool:
    """Say whether the API made the call itself, at a remote server."""
    return call_id.startswith(_REMOTE_PREFIX)


def remote_name(item: JsonObject) -> str:
    """Return the label of the server and the name of the tool, as one name."""
    return ToolNames().sent_name(f"{item.get('server_label')}_{item.get('name')}")


def remote_pair(item: JsonObject) -> list[Item]:
    """Return the call that `item` made, with its output or error."""
    output = str(item.get("output") or "")
    error = item.get("error")
    if error:
        text = error
        if isinstance(error, Mapping):
            content = error.get("content")
            text = error.get("message") or content
            if isinstance(content, list):
                text = "\n".join(part_text(part) for part in content_parts(content))
        output = f"Error: {text or 'the server did not say what went wrong.'}"
    return _remote_call_pair(item, output)


def refused_pair(request: JsonObject, why: str) -> list[Item]:
    """Return a call that was denied, with its output."""
    return _remote_call_pair(request, f"Error: {why}")


def _remote_call_pair(item: JsonObject, output: str) -> list[Item]:
    """Return the call that `item` made or requested, with an output."""
    arguments = json_text(item.get("arguments")) or "{}"
    return _call_pair(_remote_call_id(item), remote_name(item), arguments, output)


def _call_pair(call_id: str, name: str, arguments: str, output: str) -> list[Item]:
    call = {"type": "function_call", "call_id": call_id, "name": name}
    return [
        {**call, "arguments": arguments},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def remote_failed(item: JsonObject) -> bool:
    """Say whether an `mcp_call` failed."""
    return bool(item.get("error")) or item.get("status") == "failed"


def is_approval_request(item: JsonObject) -> bool:
    """Say whether the API asks for permission to make a call."""
    return item.get("type") == "mcp_approval_request"


def drop_settled_approvals(items: Sequence[Item]) -> list[Item]:
    """Return `items` without approvals that were acted on, or that have no answer."""
    answers = {
        item.get("approval_request_id"): item for item in items if _is_response(item)
    }
    # The approvals after which the model has done nothing yet. A call with the id of a
    # request is none of its acts: the host makes one of the card of a request that was
    # denied.
    requests = {_remote_call_id(item) for item in items if is_approval_request(item)}
    open_ids: set[object] = set()
    for item in items:
        if _is_response(item):
            open_ids.add(item.get("approval_request_id"))
        elif not is_call_output(item) and item.get("call_id") not in requests:
            open_ids.clear()
    open_items: list[Item] = []
    for item in items:
        if is_approval_request(item) and item["id"] not in open_ids:
            # What was denied stays, as a call with the reason.
            answer = answers.get(item["id"], {})
            if answer.get("approve") is False:
                open_items += refused_pair(item, str(answer.get("reason") or ""))
            continue
        answered_id = item.get("approval_request_id") if _is_response(item) else None
        if answered_id is None or answered_id in open_ids:
            open_items.append(item)
    return open_items


def reorder_remote_outputs(items: Sequence[Item]) -> list[Item]:
    """Return `items` with the output of each remote call directly after it."""
    # In the host's messages all outputs of a round come after all of its calls.
    outputs = {
        item["call_id"]: item
        for item in items
        if _is_remote(item, "function_call_output")
    }
    ordered: list[Item] = []
    for item in items:
        if not _is_remote(item, "function_call_output"):
            ordered.append(item)
        if _is_remote(item, "function_call") and item["call_id"] in outputs:
            ordered.append(outputs[item["call_id"]])
    return ordered


def _is_response(item: JsonObject) -> bool:
    return item.get("type") == "mcp_approval_response"


def _is_remote(item: JsonObject, kind: str) -> bool:
    return item_type(item) == kind and is_remote_id(str(item.get("call_id")))


def _remote_call_id(item: JsonObject) -> str:
    own = str(item.get("id") or "")
    return own if is_remote_id(own) else f"{_REMOTE_PREFIX}_{own}"


_NEVER_REPLAYED = ("id", "status", "created_by")
_MADE_HERE = "replayed"


def strip_for_replay(item: Item) -> Item:
    """Return `item` in the form that is sent again: without ids, status and nulls.

    `logprobs` of a message and `action.sources` of a search are removed, too.
    """
    kept = _without(item, _NEVER_REPLAYED)
    if is_hosted(item):
        if not is_returnable_hosted(item):
            return kept
        kind = kind_of(item)
        needed = {key: item.get(key) for key in kind.nullable}
        for key in ("id", "status"):
            if item.get(key):
                needed[key] = item[key]
        if needed.get("outputs"):  # images are large and only users need them
            parts = content_parts(needed["outputs"])
            needed["outputs"] = [part for part in parts if part.get("type") != "image"]
        # "Unknown parameter: 'input[n].action.sources'", although the API itself sent
        # them (pydantic-ai 2.68.0).
        if item_type(item) == "web_search_call":
            needed["action"] = _without(item["action"], ("sources",))
        # Only what later turns send gets another id: within a run an approval names the
        # id of the request for it.
        if "id" in needed and kind.returned == "always":
            needed["id"] = _new_id(str(item["id"]))
        return {**kept, **needed}
    # "Invalid 'input[39].content': array too long. Expected an array with maximum
    # length 0" (musistudio/claude-code-router 1783, of other servers' reasoning).
    if is_encrypted(item) and kept.get("content"):
        return _without(kept, ("content",))
    if isinstance(kept.get("content"), list) and item_type(item) == "message":
        parts = content_parts(kept["content"])
        kept = {**kept, "content": [_without(part, ("logprobs",)) for part in parts]}
    return kept


def _without(fields: Item, names: Sequence[str]) -> Item:
    """Return an object without nulls and `names`: if it has none, itself."""
    if fields.keys().isdisjoint(names) and None not in fields.values():
        return fields
    return {
        key: value
        for key, value in fields.items()
        if key not in names and value is not None
    }


def replay_items(item: Item) -> list[Item]:
    """Return the items that represent `item` in later requests."""
    if item_type(item) == "mcp_call":
        return remote_pair(item)
    if has_plain_reasoning(item):  # its server wants it as it was
        return [{key: value for key, value in item.items() if value not in (None, "")}]
    if has_image(item):
        return [image_message(item)]
    return [strip_for_replay(item)]


_MAX_CODE_LENGTH = 20_000
_CODE_IS_GONE = "[The container of this code is gone, with its files.]"


CHANGED_LATER = {"code_interpreter_call", "image_generation_call"}
"""The types of items that later requests show as other items."""


def past_items(item: Item) -> list[Item]:
    """Return the items that represent `item` when its run is over.

    A request that names a dead container is refused. So code becomes a call with its
    output, always the same for the same item.
    """
    if has_image(item):
        return [image_message(item)]
    if not is_code(item):
        return [item]
    code = as_text(item.get("code"))
    call_id = _new_id(as_text(item.get("id")) or f"ci_{code}")
    arguments = json.dumps({"code": code[:_MAX_CODE_LENGTH]})
    text = f"{code_output(item)[:_MAX_CODE_LENGTH]}\n{_CODE_IS_GONE}"
    return _call_pair(call_id, "code_interpreter", arguments, text)


def replay_output(output: Iterable[Item], *, with_reasoning: bool) -> list[Item]:
    """Return the output of a response for the next request of its run."""
    rows = replayed_rows(output, with_reasoning=with_reasoning)
    return [*chain.from_iterable(rows)]


def replayed_rows(
    output: Iterable[Item], *, with_reasoning: bool
) -> Iterator[list[Item]]:
    """Yield for each item of a response what the next request has of it."""
    last: Item = {}
    for item in output:
        if is_reasoning(item):
            goes_back = with_reasoning and (
                has_encrypted_reasoning(item) or has_plain_reasoning(item)
            )
        elif item_type(item) == "message" and not message_text(item):
            # LiteLLM ends one in the middle of an answer that has calls alone
            # (BerriAI/litellm 37852), and Anthropic refuses it. OpenAI's reasoning needs
            # it.
            goes_back = has_encrypted_reasoning(last)
        else:
            goes_back = (
                not is_hosted(item) or is_returnable_hosted(item) or has_image(item)
            )
        rows = replay_items(item) if goes_back else []
        last = rows[-1] if rows else last
        yield rows


def _new_id(own: str) -> str:
    """Return an id of the kind of `own`, always the same for the same item."""
    # An id has at most 64 characters and the prefix of its kind, else it is refused
    # (cockpit-tools 2090).
    prefix, _, rest = own.partition("_")
    if rest.startswith(_MADE_HERE):
        return own
    return f"{prefix[:8]}_{_MADE_HERE}{hex_digest(own)[:40]}"
