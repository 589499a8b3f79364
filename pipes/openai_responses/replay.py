"""How an item goes back to the API in a later request.

What the model produced stays byte for byte. Ids go, because with `store: false` they
would be looked up and not found, and so do states, which Azure refuses on reasoning
(responses-api.md §2.1, rules 1 to 3, 6, 7 and 9). Hosted items must have both. Their
ids are made anew, always the same for the same item: the API's own would call for the
reasoning in front of them, which a chat may have lost.
"""

import hashlib
from collections.abc import Iterable

from openai_responses.hosted import is_hosted, is_returned_hosted
from openai_responses.items import (
    Item,
    content_parts,
    has_encrypted_reasoning,
    is_reasoning,
    item_type,
)
from openai_responses.pictures import has_picture, picture_message
from openai_responses.remote_calls import remote_pair

_NEVER_REPLAYED = ("id", "status", "created_by")
_MADE_HERE = "replayed"
_NULL_COUNTS = {"code_interpreter_call": ("code", "outputs")}
"""Fields that have to be there even where they are null."""


def replayed(item: Item) -> Item:
    """Return `item` as it is given back: without ids, states and absent values.

    Those inside the content of a message go too (`logprobs`), and the pages that a
    search found (`action.sources`).
    """
    kept = {k: v for k, v in item.items() if k not in _NEVER_REPLAYED and v is not None}
    if item_type(item) == "message" and isinstance(kept.get("content"), list):
        kept["content"] = list(map(_replayed_part, content_parts(kept["content"])))
    if is_returned_hosted(item):
        kept |= _demanded(item)
    return kept


def restated(item: Item) -> list[Item]:
    """Return what stands for a whole output item in later requests, in its order."""
    if item_type(item) == "mcp_call":
        return remote_pair(item)
    return [picture_message(item) if has_picture(item) else replayed(item)]


def given_back(output: Iterable[Item], *, with_reasoning: bool) -> list[Item]:
    """Return the output of a turn as the next one of the same run sends it back."""
    going = (item for item in output if _goes_back(item, with_reasoning))
    return [told for item in going for told in restated(item)]


def _goes_back(item: Item, with_reasoning: bool) -> bool:
    if is_reasoning(item):
        return with_reasoning and has_encrypted_reasoning(item)
    return not is_hosted(item) or is_returned_hosted(item) or has_picture(item)


def _demanded(item: Item) -> Item:
    """Return the fields of a hosted item that are not simply left as they are."""
    kind = item_type(item)
    demanded = {key: item.get(key) for key in _NULL_COUNTS.get(kind, ())}
    demanded |= {key: item[key] for key in ("id", "status") if item.get(key)}
    if demanded.get("outputs"):  # pictures are for people, and large
        parts = content_parts(demanded["outputs"])
        demanded["outputs"] = [p for p in parts if p.get("type") != "image"]
    if kind == "web_search_call":
        action = item["action"].items()
        demanded["action"] = {
            k: v for k, v in action if k != "sources" and v is not None
        }
    # An approval is named by the id of the request for it.
    if "id" in demanded and not kind.startswith("mcp_approval"):
        demanded["id"] = _new_id(str(item["id"]))
    return demanded


def _new_id(own: str) -> str:
    """Return an id of the kind that `own` is; replayed again, it stays the same."""
    prefix, _, rest = own.partition("_")
    if rest.startswith(_MADE_HERE):
        return own
    digest = hashlib.sha256(own.encode("utf-8", "replace")).hexdigest()
    return f"{prefix}_{_MADE_HERE}{digest[:40]}"


def _replayed_part(part: Item) -> Item:
    return {k: v for k, v in part.items() if k != "logprobs" and v is not None}
