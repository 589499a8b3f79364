"""What the next turn sends of a run that the real host has stored, and what it should."""

import json
from collections.abc import Sequence
from typing import Any, cast

from hosts.servers.functions import HostFunctions
from openai_responses.items import (
    Item,
    content_parts,
    drop_orphans,
    has_plain_reasoning,
    is_call,
    is_call_output,
    is_commentary,
    is_kept_hosted,
    item_type,
    message_text,
    part_text,
)
from openai_responses.loop.events import ResponseDone, RunEvent, ToolOutput
from openai_responses.requests.replay import (
    past_items,
    replay_items,
    strip_for_replay,
)
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.input.history import build_input
from owui_chat.messages import StoredMessage, UserMessage, parse_messages
from owui_chat.storage.details_carrier import restore_from_details
from owui_chat.storage.output_carrier import (
    output_records,
    parse_output_records,
    restore_from_outputs,
    stored_outputs,
)
from owui_chat.storage.records import Record, message_key, read_records, write_records
from runs.sample import (
    AUTHOR,
    ORIGIN,
    Ids,
    answered_call,
    ended_items,
    has_marker,
    joined_rounds,
    message,
    natives,
    tell,
    texts_of,
)
from stand_in.signing import SIGN

Json = dict[str, Any]
Round = Sequence[RunEvent]
ASKED = {"role": "user", "content": "Weather?"}
ASKED_ITEM = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Weather?"}],
}


# ------------------------------------------------------------- as the host does


def stored_by_host(
    host: HostFunctions,
    rounds: Sequence[Round],
    carrier: str = "markers",
    ids: Ids | None = None,
) -> tuple[list[Item], dict[str, Record]]:
    """Run the rounds with the tools in between: the host's output items, our records."""
    scope = AUTHOR._replace(carrier="details", sign=SIGN)
    rendered = tell(
        joined_rounds(rounds),
        scope if carrier == "details" else AUTHOR,
        ids,
        in_output=carrier == "output",
    )
    output = host.reduce(natives(rendered.chunks))
    return _cleaned(output), rendered.records


def _cleaned(output: list[Item]) -> list[Item]:
    """The last message without its outer white space."""
    if not output or item_type(output[-1]) != "message":
        return output
    last = output[-1]
    text = last["content"][-1]["text"].strip()
    if not text:
        return output[:-1]
    content = [*last["content"][:-1], {**last["content"][-1], "text": text}]
    return [*output[:-1], {**last, "content": content}]


def sent_next(
    host: HostFunctions, rounds: Sequence[Round], carrier: str = "markers"
) -> list[Item]:
    """What the next turn sends of the rounds."""
    output, records = stored_by_host(host, rounds, carrier)
    answer = {"m-1": {"role": "assistant", "output": output}}
    chat = {message_key("m-1"): write_records(records, SIGN)}
    if carrier == "output":
        chat = parse_output_records(output_records(answer))
        assert not any(has_marker(json.dumps(m)) for m in host.convert(output))
    messages = [ASKED, *host.convert(output), ASKED]
    instructions, parts = parse_messages(messages)
    read = read_records(json.loads(json.dumps(chat)), SIGN)
    assert read == records
    parts[0] = cast(UserMessage, parts[0])._replace(stored=StoredMessage({}, "m-1"))
    parts = restore_from_outputs(parts, stored_outputs(answer, "m-1"))
    if carrier == "details":
        parts, read = restore_from_details(parts, SIGN)
    items = build_input(parts, read, ORIGIN)
    assert instructions == ""
    assert items[0] == items[-1] == ASKED_ITEM
    return items[1:-1]


# ------------------------------------------------------------- what must survive


def expected(rounds: Sequence[Round], carrier: str = "markers") -> list[Item]:
    """The items of the rounds as they are sent back, the outputs in their place.

    The host strips texts, and a marker would have to be in front of one.
    """
    items: list[Item] = []
    for events in rounds:
        theirs = _outputs_of_the_server(events)
        late = [] if carrier == "details" else _sealed_after_text(events)
        known = [
            item
            for item in told_items(events)
            if item not in late and (_survives(item) or item.get("call_id") in theirs)
        ]
        if not items and known and _stands_alone(known[0]):
            text = message_text(known[0])
            is_whole = carrier != "markers" and text != text.strip()
            known[0] = known[0] if is_whole else plain(text.strip())
        replayed = [sent for item in known for sent in replay_items(_as_text(item))]
        items += [sent for item in replayed for sent in past_items(item)]
        given = {i["call_id"]: i for i in ended_items(events) if is_call_output(i)}
        for call in filter(is_call, known):
            if call["call_id"] not in theirs:
                items.append(given.get(call["call_id"]) or answered_call(call))
    return drop_orphans([*items, ASKED_ITEM])[:-1]


def told_items(events: Round) -> list[Item]:
    """The items that ended, then the message that broke off, as far as it came.

    A remark in passing that broke off is nothing that anybody can use.
    """
    items = ended_items(events)
    for index, text in texts_of(events).items():
        [begun] = [
            e.item
            for e in events
            if isinstance(e, ItemAdded) and e.output_index == index
        ]
        ended = any(isinstance(e, ItemDone) and e.output_index == index for e in events)
        if not ended and not is_commentary(begun):
            items.append({**begun, "content": plain(text.strip())["content"]})
    return items


def _sealed_after_text(events: Round) -> list[Item]:
    """The reasoning that had ended, and was sealed when a text was behind it."""
    ended = set[int]()
    followed = set[int]()
    late: list[Item] = []
    for event in events:
        match event:
            case TextDelta(index, "text"):
                followed |= ended
            case ItemDone(index, item) if has_plain_reasoning(item):
                ended.add(index)
            case ItemDone(index, item) if index in followed:
                late.append(item)
    return late


def _survives(item: Item) -> bool:
    if item_type(item) == "reasoning":
        return bool(item.get("encrypted_content"))
    has_text = bool(message_text(item).strip())
    return has_text or is_call(item) or is_kept_hosted(item)


def _outputs_of_the_server(events: Round) -> set[object]:
    """The ids of the calls that a response itself answers."""
    answered = set[object]()
    theirs = set[object]()
    for event in events:
        if isinstance(event, ToolOutput):
            answered.add(event.item["call_id"])
        elif isinstance(event, ResponseDone):  # there may be two of a gateway's
            theirs |= answered
    return theirs


def _as_text(item: Item) -> Item:
    """The output of a call as the host gives it back: the parts of a text are one."""
    parts = content_parts(item.get("output"))
    if not is_call_output(item) or not parts:
        return item
    return {**item, "output": "".join(part_text(part) for part in parts)}


def _stands_alone(item: Item) -> bool:
    """Nothing but its shown text is known of a first message without a phase.

    A refusal is kept whole.
    """
    is_bare = item_type(item) == "message" and not item.get("phase")
    parts = content_parts(item["content"]) if is_bare else []
    return is_bare and not any(part["type"] == "refusal" for part in parts)


def plain(text: str) -> Item:
    """A message of this text, as it is sent again."""
    return strip_for_replay(message("x", text))
