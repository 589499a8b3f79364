"""Turn the drafts of a transcript into finished items."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import Template
from typing import Any

from simulator.asked import Asked
from simulator.canonical import PrefixHash, canonical_item
from simulator.compacting import SEALED
from simulator.ids import NO_PARTNER, PREFIXES, Place, call_id
from simulator.sealing import Seal, seal
from simulator.tokens import REASONING_TOKENS

Item = dict[str, Any]
PHASED_FROM = (5, 3)
# Items that have no status of their own on the wire.
STATELESS = (
    *("reasoning", "compaction", "custom_tool_call"),
    *("mcp_list_tools", "mcp_approval_request"),
)
INCLUDED = {
    "web_search_call": ("web_search_call.action.sources", "sources"),
    "file_search_call": ("file_search_call.results", "results"),
    "code_interpreter_call": ("code_interpreter_call.outputs", "outputs"),
}


@dataclass(frozen=True)
class Author:
    """What sealed reasoning has to know about its making."""

    response: str
    organisation: str
    prefix: PrefixHash


def fill(drafts: Sequence[Item], asked: Asked, author: Author) -> list[Item]:
    """Return finished items with ids, call ids and sealed reasoning."""
    wanted = [one for one in drafts if asked.reasons or one["type"] != "reasoning"]
    words = asked.words()
    finished: list[Item] = []
    for index, draft in enumerate(wanted):
        partner = _partner(wanted, index)
        place = Place(author.response, index, partner)
        item = _finish(substitute(draft, words), place, asked)
        if item["type"] in SEALED:
            item["encrypted_content"] = _seal(item["id"], asked, author)
        author.prefix.read(canonical_item(item))
        finished.append(item)
    return finished


def substitute(value: Any, words: Mapping[str, str]) -> Any:
    """Fill the words that a draft leaves open."""
    if isinstance(value, str):
        return Template(value).safe_substitute(words) if "$" in value else value
    if isinstance(value, list):
        return [substitute(inner, words) for inner in value]
    if isinstance(value, dict):
        return {name: substitute(inner, words) for name, inner in value.items()}
    return value


def _partner(items: Sequence[Item], index: int) -> int:
    """Return the place of what a reasoning led to, or of the reasoning before."""
    if items[index]["type"] == "reasoning":
        later = range(index + 1, len(items))
        led_to = (one for one in later if items[one]["type"] != "reasoning")
        return next(led_to, NO_PARTNER)
    after_reasoning = index and items[index - 1]["type"] == "reasoning"
    return index - 1 if after_reasoning else NO_PARTNER


def _finish(draft: Item, place: Place, asked: Asked) -> Item:
    kind = draft["type"]
    item: Item = {"id": place.id(PREFIXES[kind]), **draft}
    if kind not in STATELESS:
        item.setdefault("status", "completed")
    if kind in ("function_call", "custom_tool_call"):
        item["call_id"] = call_id(place.response, place.index)
    if kind == "message" and asked.model.series >= PHASED_FROM:
        item.setdefault("phase", "final_answer")
    if kind == "reasoning" and not asked.wants_summary:
        item["summary"] = []
    return _without_unasked(item, asked)


def _without_unasked(item: Item, asked: Asked) -> Item:
    wish, field = INCLUDED.get(item["type"], ("", ""))
    if not field or wish in (asked.body.get("include") or []):
        return item
    if "action" in item:
        action = {key: one for key, one in item["action"].items() if key != field}
        return {**item, "action": action}
    return {**item, field: None}


def _seal(id: str, asked: Asked, author: Author) -> str:
    return seal(
        Seal(
            item=id,
            organisation=author.organisation,
            family=asked.model.family,
            prefix=author.prefix.digest(),
            end_user=asked.body.get("safety_identifier"),
            tokens=REASONING_TOKENS,
        )
    )
