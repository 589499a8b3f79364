"""Changes that make a request acceptable to a server that refused it.

A `Repair` is data: a chat stores those of its items, and those of tools and parameters
are remembered for the account. They are applied whenever a request is sent, so later
turns do not meet the refusal again, and begin with the same bytes. Items and tools are
named by a digest, because their places change.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from openai_responses.clock import hex_digest
from openai_responses.items import (
    ADDED_TOOLS,
    CONFIGURATION,
    Item,
    content_parts,
    drop_last_reasoning,
    drop_orphans,
    has_plain_reasoning,
    is_call,
    is_encrypted,
    is_paired,
    item_type,
    message_text,
    part_text,
    text_message,
)


class Repair(NamedTuple):
    """One change.

    Of items, named by the `target`:
        item         is left out, with the reasoning in front of it; a call and its
                     output become words
        text         its words alone stay; images and files become a line of text
        kind         all items `type@digest` or calls `type:name@digest` are left out
                     like one item, up to the item with the digest
    Of all items up to the `target`:
        reasoning    what is encrypted is left out
        plain        texts of people and model, calls and outputs stay, nothing else
    Of the account:
        field        a path like `input:reasoning.status` is left out everywhere
        tool         is left out
        reasoning_text  reasoning in plain text is left out; there is no target
        lower        items of the type `target` go into the fields of the request
        parameter    a path like `reasoning.effort` gets the JSON `new`, or is left out,
                     if it has the JSON `value`, or whatever it has
    """

    action: str
    target: str
    value: str = ""
    new: str = ""


APPENDED = frozenset({ADDED_TOOLS, CONFIGURATION})
"""The items that say at their place what fields of a request say."""

CHAT_ACTIONS = ("item", "text", "kind", "reasoning", "plain")
"""What is about the items of one chat."""

_MEDIA = ("input_image", "input_file")
_MEDIA_GONE = "[A picture or file stood here. It could not be sent.]"


def json_digest(value: object) -> str:
    """Return a short name for a JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hex_digest(text)[:32]


def repair_payload(
    payload: Mapping[str, Any], repairs: Iterable[Repair]
) -> dict[str, Any]:
    """Return the body of a request with all `repairs`."""
    repairs = [*repairs]
    payload = lower_payload(payload, {r.target for r in repairs if r.action == "lower"})
    items = [sent for _, sent in repair_items(payload["input"], repairs)]
    changed = {**payload, "input": items}
    for repair in repairs:
        if change := _CHANGES.get(repair.action):
            changed = change(changed, repair)
    return changed


def item_names(items: Iterable[Item]) -> list[str]:
    """Return the names of items: a digest, and a number where the same item comes again.

    What is appended to a chat changes no name.
    """
    counts, names = Counter[str](), list[str]()
    for name in map(json_digest, items):
        names.append(f"{name}.{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return names


def repair_items(
    items: Sequence[Item], repairs: Iterable[Repair]
) -> list[tuple[str, Item]]:
    """Return the items that are sent, each behind the name of the one it was made of."""
    changes = {repair[:2] for repair in repairs}
    items = [item for item in items if ("lower", item_type(item)) not in changes]
    names = item_names(items)
    wanted = {one for one in changes if one[0] in CHAT_ACTIONS}
    if not wanted:
        return list(zip(names, items, strict=True))
    rows = list(zip(names, items, _actions_of(items, names, wanted), strict=True))
    lost = {item.get("call_id") for _, item, action in rows if action == "item"}
    changed: list[Item] = []
    made_of: dict[int, str] = {}
    for name, item, action in rows:
        is_told = is_paired(item) and item.get("call_id") in lost
        if is_told or action == "item":
            drop_last_reasoning(changed)
        if is_told or action != "item":
            one = plain_item(item) if action else item
            # Without words the model would call again.
            changed.append(_told_item(item) if is_told else one)
            made_of[id(changed[-1])] = name
    return [(made_of[id(sent)], sent) for sent in drop_orphans(changed)]


def _actions_of(
    items: Sequence[Item], names: Sequence[str], wanted: Set[tuple[str, str]]
) -> list[str]:
    """Return what is done to each item: `item`, `text`, or nothing."""
    last = {name: place for place, name in enumerate(names)}
    ends: dict[str, int] = {}  # of what holds up to an item, kinds by `type`
    for action, target in wanted:
        what, _, end = target.rpartition("@")
        limit = what if action == "kind" else f"@{action}"
        ends[limit] = max(ends.get(limit, -1), last.get(end, -1))
    actions: list[str] = []
    for place, (item, name) in enumerate(zip(items, names, strict=True)):
        here = {one for one in ("item", "text") if (one, name) in wanted}
        kind = item_type(item)
        kinds = {"@reasoning", "@plain", kind, f"{kind}:{item.get('name')}"}
        here |= {one for one in kinds if place <= ends.get(one, -1)}
        is_plain = here & {"text", "@plain"}
        actions.append("item" if _is_left_out(item, here) else "text" * bool(is_plain))
    return actions


_MOST_TOLD = 20_000


def _told_item(item: Item) -> Item:
    """Return a call or an output as words of the model."""
    text = f"I got this result: {plain_item(item).get('output')}"
    if is_call(item):
        text = (
            f"I called {item.get('name')}: {item.get('arguments') or item.get('input')}"
        )
    return text_message("assistant", text[:_MOST_TOLD])


def _is_left_out(item: Item, actions: Set[str]) -> bool:
    if item.get("role", "assistant") != "assistant":
        return False  # what people and the administrator wrote always stays
    if actions - {"text", "@reasoning", "@plain"}:
        return True
    if "@reasoning" in actions and is_encrypted(item):
        return True
    has_words = is_paired(item) or (item_type(item) == "message" and message_text(item))
    return "@plain" in actions and not has_words


def has_media(item: Item) -> bool:
    """Say whether `item` holds an image or a file."""
    return item != _without_media(item)


def _without_media(item: Item) -> Item:
    lists = {k: v for k in ("content", "output") if isinstance(v := item.get(k), list)}
    gone = {"type": "input_text", "text": _MEDIA_GONE}
    return item | {
        key: [gone if part.get("type") in _MEDIA else part for part in content_parts(v)]
        for key, v in lists.items()
    }


def plain_item(item: Item) -> Item:
    """Return a message, a call or an output with its words alone."""
    bare = _without_media(item)
    if item_type(bare) != "message":
        if isinstance(output := bare.get("output"), list):
            bare["output"] = "\n".join(map(part_text, content_parts(output)))
        names = ("type", "call_id", "name", "arguments", "input", "output")
        return {key: bare[key] for key in names if key in bare}
    return text_message(bare.get("role"), message_text(bare))


def lower_payload(payload: Mapping[str, Any], kinds: Set[str]) -> dict[str, Any]:
    """Return a request whose own fields say what items of these `kinds` said."""
    items, rest = payload["input"], list[Item]()
    changed = {**payload, "input": rest}
    for item in items if kinds else ():
        if (kind := item_type(item)) not in kinds:
            rest.append(item)
        elif kind == CONFIGURATION:
            for key in item.keys() & {"reasoning", "text"}:
                changed[key] = {**changed.get(key, {}), **item[key]}
    if ADDED_TOOLS in kinds and (tools := declared_tools(payload)):
        changed["tools"] = tools
    return changed if kinds else {**payload}


def declared_tools(payload: Mapping[str, Any]) -> list[Item]:
    """Return the tools of a request and of its items."""
    added = (i["tools"] for i in payload["input"] if item_type(i) == ADDED_TOOLS)
    return [tool for tools in (payload.get("tools") or (), *added) for tool in tools]


def _without_field(payload: dict[str, Any], repair: Repair) -> dict[str, Any]:
    where, _, path = repair.target.partition(":")
    kind, *keys = path.split(".")

    def without(rows: Iterable[Item]) -> list[Item]:
        return [_without_key(r, keys) if item_type(r) == kind else r for r in rows]

    changed = {**payload, where: without(payload.get(where) or ())}
    if where == "tools":
        changed["input"] = [
            {**i, where: without(i[where])} if item_type(i) == ADDED_TOOLS else i
            for i in payload["input"]
        ]
    return {key: value for key, value in changed.items() if key != where or value}


def _without_key(value: Any, keys: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_without_key(row, keys) for row in value]
    if not isinstance(value, dict) or keys[0] not in value:
        return value
    if len(keys) > 1:
        return {**value, keys[0]: _without_key(value[keys[0]], keys[1:])}
    return {key: inner for key, inner in value.items() if key != keys[0]}


def all_tools(tools: Iterable[Item]) -> Iterator[Item]:
    """Yield `tools`, and those in their namespaces."""
    for tool in tools:
        yield tool
        yield from content_parts(tool.get("tools"))


def _without_tool(payload: dict[str, Any], repair: Repair) -> dict[str, Any]:
    """Leave out a tool, and a choice that may have meant it."""
    tools = payload.get("tools") or []
    kept = _other_tools(tools, repair.target)
    if kept == tools:
        is_added = any(json_digest(t) == repair.target for t in declared_tools(payload))
        lowered = lower_payload(payload, {ADDED_TOOLS})
        return _without_tool(lowered, repair) if is_added else payload
    choice = _remaining_choice(payload.get("tool_choice"), kept)
    changed = {**payload, "tools": kept, "tool_choice": choice if kept else None}
    return {key: value for key, value in changed.items() if value not in (None, [])}


def _remaining_choice(choice: object, tools: Sequence[Item]) -> object:
    """Return a choice among the `tools` that are left; None if it may mean another."""
    if not isinstance(choice, Mapping):
        return None if choice == "required" else choice
    names = {
        one for tool in all_tools(tools) for one in (tool_name(tool), tool.get("type"))
    }
    if not isinstance(allowed := choice.get("tools"), list):
        return choice if tool_name(choice) in names else None
    chosen = [one for one in allowed if tool_name(one) in names]
    return {**choice, "tools": chosen} if chosen else "none"


def _other_tools(tools: Sequence[Item], target: str) -> list[Item]:
    """Return `tools` without one; without a search, nothing finds what is deferred."""
    kept = [tool for tool in tools if json_digest(tool) != target]
    is_searched = any(tool.get("type") == "tool_search" for tool in kept)
    found: list[Item] = []
    for tool in kept:
        if "tools" not in tool:
            found.append(tool)
        elif inner := [
            one
            for one in content_parts(tool["tools"])
            if json_digest(one) != target
            and (is_searched or not one.get("defer_loading"))
        ]:
            found.append({**tool, "tools": inner})
    return found


def tool_name(tool: Mapping[str, Any]) -> str:
    """Return what names a tool: its name, its label, or its type."""
    return str(tool.get("name") or tool.get("server_label") or tool.get("type"))


def _change_parameter(payload: dict[str, Any], repair: Repair) -> dict[str, Any]:
    path = repair.target.split(".")
    found = parameter_at(payload, path)
    if found is None or (repair.value and repair.value != json.dumps(found)):
        return payload
    changed: dict[str, Any] = _without_key(payload, path)
    if repair.new:
        new = json.loads(repair.new)
        outer = {**payload[path[0]], path[1]: new} if len(path) > 1 else new
        changed = {**payload, path[0]: outer}
    return {key: value for key, value in changed.items() if value != {}}


def _without_reasoning_text(payload: dict[str, Any], _: Repair) -> dict[str, Any]:
    kept = [item for item in payload["input"] if not has_plain_reasoning(item)]
    return {**payload, "input": kept}


_CHANGES = {
    "reasoning_text": _without_reasoning_text,
    "field": _without_field,
    "tool": _without_tool,
    "parameter": _change_parameter,
}


def parameter_at(payload: Mapping[str, Any], path: Sequence[str]) -> object:
    """Return the value at a path of one or two names, None for nothing."""
    found: object = payload
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
