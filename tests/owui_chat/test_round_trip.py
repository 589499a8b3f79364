"""A run, kept and shown, stored by the real host and read back, is the run again."""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from host_functions import HostFunctions
from openai_responses.items import (
    Item,
    is_call,
    item_type,
    message_text,
    replayed,
    without_orphans,
)
from openai_responses.run_events import ItemEnded, ItemStarted, RunEvent
from owui_chat.history import build_input
from owui_chat.markers import has_marker
from owui_chat.messages import read_messages
from owui_chat.stored import Record, message_key, read_records, write_records
from run_sample import (
    ORIGIN,
    Ids,
    call,
    ended_items,
    message,
    reasoning,
    refusal,
    rounds_of_transcripts,
    run_of,
    run_of_transcript,
    search,
    tell,
    texts_of,
    without,
)

Json = dict[str, Any]
Round = Sequence[RunEvent]
SCENARIOS = rounds_of_transcripts()
ASKED = {"role": "user", "content": "Weather?"}
ASKED_ITEM = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Weather?"}],
}


# ------------------------------------------------------------- as the host does


def stored_by_host(
    host: HostFunctions, rounds: Sequence[Round]
) -> tuple[list[Item], dict[str, Record]]:
    """Run the rounds, the host's tools in between: its output items, our records."""
    output: list[Item] = []
    records: dict[str, Record] = {}
    pending: list[Item] = []
    ids = Ids()
    for events in rounds:
        told = tell(events, pending, ids=ids)
        pending = told.pending
        records |= told.records
        shown = host.reduce([chunk for chunk in told.chunks if "type" in chunk])
        output += [_written_anew(item) for item in shown]
        output += [_result(item) for item in shown if is_call(item)]
    return _cleaned(output), records


def _written_anew(item: Item) -> Item:
    """A call as the host stores it (utils/middleware.py:3095)."""
    if not is_call(item):
        return item
    try:
        arguments = json.dumps(json.loads(item["arguments"]), separators=(",", ":"))
    except ValueError:
        arguments = "{}"
    return {**item, "arguments": arguments, "status": "completed"}


def _result(item: Item) -> Item:
    part = {"type": "input_text", "text": f"output of {item['call_id']}"}
    return {
        "type": "function_call_output",
        "call_id": item["call_id"],
        "output": [part],
        "status": "completed",
    }


def _cleaned(output: list[Item]) -> list[Item]:
    """The last message without its outer white space (utils/middleware.py:5482)."""
    if not output or item_type(output[-1]) != "message":
        return output
    last = output[-1]
    text = last["content"][-1]["text"].strip()
    if not text:
        return output[:-1]
    content = [*last["content"][:-1], {**last["content"][-1], "text": text}]
    return [*output[:-1], {**last, "content": content}]


def sent_next(host: HostFunctions, rounds: Sequence[Round]) -> list[Item]:
    """What the next turn sends of the rounds."""
    output, records = stored_by_host(host, rounds)
    chat = {message_key("m-1"): write_records(records)}
    messages = [ASKED, *host.convert(output), ASKED]
    instructions, stretches = read_messages(messages)
    read = read_records(json.loads(json.dumps(chat)))
    assert read == records
    items = build_input(stretches, read, ORIGIN)
    assert instructions == ""
    assert items[0] == items[-1] == ASKED_ITEM
    return items[1:-1]


# ------------------------------------------------------------- what must survive


def expected(rounds: Sequence[Round]) -> list[Item]:
    """The items of the rounds as they are sent back, the outputs in their place."""
    items: list[Item] = []
    for events in rounds:
        known = [item for item in _items(events) if _survives(item)]
        if not items and known and _stands_alone(known[0]):
            known[0] = _plain(message_text(known[0]).strip())
        items += map(replayed, known)
        items += [
            _answered(item) for item in known if item_type(item) == "function_call"
        ]
    return without_orphans([*items, ASKED_ITEM])[:-1]


def _items(events: Round) -> list[Item]:
    """The items that ended, then the message that broke off, as far as it came."""
    items = ended_items(events)
    for index, text in texts_of(events).items():
        [begun] = [
            e.item for e in events if isinstance(e, ItemStarted) and e.index == index
        ]
        if not any(isinstance(e, ItemEnded) and e.index == index for e in events):
            items.append({**begun, "content": _plain(text.strip())["content"]})
    return items


def _survives(item: Item) -> bool:
    if item_type(item) == "reasoning":
        return bool(item.get("encrypted_content"))
    return is_call(item) or bool(message_text(item).strip())


def _stands_alone(item: Item) -> bool:
    """Nothing but its shown text is known of a first message without a phase."""
    return item_type(item) == "message" and not item.get("phase")


def _plain(text: str) -> Item:
    return replayed(message("x", text))


def _answered(item: Item) -> Item:
    output = f"output of {item['call_id']}"
    return {
        "type": "function_call_output",
        "call_id": item["call_id"],
        "output": output,
    }


# ------------------------------------------------------------- the tests


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_transcript_is_replayed_as_it_came(
    scenario: str, host_functions: HostFunctions
) -> None:
    """Every item that the API may have back, in order, byte for byte."""
    rounds = [run_of_transcript(name) for name in SCENARIOS[scenario]]

    assert sent_next(host_functions, rounds) == expected(rounds)


def test_transcripts_are_not_all_trivial() -> None:
    """The expectation itself holds reasoning, phases, calls and outputs."""
    items = [
        item
        for names in SCENARIOS.values()
        for item in expected([run_of_transcript(name) for name in names])
    ]

    kinds = [item["type"] for item in items]
    assert kinds.count("reasoning") > 20
    assert kinds.count("function_call") > 5
    assert kinds.count("function_call") == kinds.count("function_call_output")
    assert len([item for item in items if item.get("phase")]) > 5


texts = st.text(min_size=1, max_size=20).filter(
    lambda text: bool(text.strip()) and not has_marker(text)
)
phases = st.sampled_from([None, "commentary", "final_answer"])
two_parts = texts.map(
    lambda text: {
        **message("x", text),
        "content": [part for _ in "ab" for part in message("x", text)["content"]],
    }
)
said = st.one_of(
    st.builds(lambda text, phase: message("x", text, phase), texts, phases),
    texts.map(lambda text: refusal("x", text)),
    two_parts,
)
thought = st.builds(
    lambda text, sealed: reasoning(
        "x", text, **({} if sealed else {"encrypted_content": None})
    ),
    st.text(max_size=10),
    st.booleans(),
)
arguments = st.dictionaries(st.text(max_size=3), st.integers(), max_size=2)
calls = arguments.map(lambda given: call("x", json.dumps(given)))
words = st.one_of(said, thought, st.just(search("x")))
spoken = st.lists(words, max_size=5)
round_of_tools = st.builds(
    lambda items, last: [*items, last], st.lists(words | calls, max_size=5), calls
)


def _named(rounds: list[list[Item]]) -> list[list[Item]]:
    """Give every item ids of its own."""
    count = 0
    named: list[list[Item]] = []
    for items in rounds:
        named.append([])
        for item in items:
            count += 1
            ids = {"id": f"{item['type']}_{count}"}
            if is_call(item):
                ids["call_id"] = f"call_{count}"
            named[-1].append({**item, **ids})
    return named


@settings(
    max_examples=200,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(st.lists(round_of_tools, max_size=3), spoken)
def test_any_run_is_replayed_as_it_came(
    host_functions: HostFunctions,
    tool_rounds: list[list[Item]],
    last: list[Item],
) -> None:
    """Rounds of tools with words and thoughts between them, then an answer."""
    named = _named([*tool_rounds, last])
    rounds = [run_of(*items) for items in named]

    assert sent_next(host_functions, rounds) == expected(rounds)


def test_lost_record_loses_only_what_it_held(host_functions: HostFunctions) -> None:
    """A chat whose JSON was exported without its keys still reads."""
    rounds = [run_of(reasoning("1"), call("1")), run_of(message("1", "Rain."))]
    output, _ = stored_by_host(host_functions, rounds)

    _, stretches = read_messages([ASKED, *host_functions.convert(output)])
    items = build_input(stretches, {}, ORIGIN)

    assert [item["type"] for item in items[1:]] == [
        "function_call",
        "function_call_output",
        "message",
    ]
    assert without(items[1], "arguments") == without(replayed(call("1")), "arguments")
    assert items[-1] == _plain("Rain.")
