"""Calls of remote servers on the page, in the database and in the next turn."""

from typing import Any

import pytest

from calls.outcomes import host_events
from hosts.servers.functions import HostFunctions
from openai_responses.endings import COMPLETED, CUT
from openai_responses.items import Item
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.requests.replay import refused_pair, replay_items, replay_output
from openai_responses.transport.stream import ItemAdded, ItemDone
from owui_chat.input.history import build_input
from owui_chat.messages import parse_messages
from runs.sample import (
    ORIGIN,
    Told,
    ended_items,
    message,
    natives,
    reasoning,
    run_of,
    run_of_transcript,
    shifted,
    tell,
)

Json = dict[str, Any]
ASKED = {"role": "user", "content": "What time is it?"}
UNLISTED = "clocks did not list its tools"
REQUEST: Item = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "clocks",
    "name": "now",
    "arguments": '{"zone": "UTC"}',
}
each_transcript = pytest.mark.parametrize(
    "name", ["mcp", "mcp-two", "mcp-parallel", "mcp-error", "mcp-unlisted"]
)


def sent_next(
    host: HostFunctions, rendered: Told, records: Json | None = None
) -> list[Item]:
    """What the next turn sends of a message that the host stored."""
    messages = [ASKED, *host.convert(host.reduce(natives(rendered.chunks))), ASKED]
    _, parts = parse_messages(messages)
    known = rendered.records if records is None else records
    return build_input(parts, known, ORIGIN)[1:-1]


def statuses(rendered: Told) -> list[str]:
    """The status lines above the answer, but for the one that sums it up."""
    lines = [data["description"] for data in host_events(rendered.chunks, "status")]
    return [line for line in lines if not line.startswith("Finished in")]


def refused() -> list[RunEvent]:
    """What a run reports in which a person did not allow a call."""
    call, output = refused_pair(REQUEST, "No.")
    call = {**call, "id": "fc_mcpr_1"}
    said = message("1", "I go on.")
    [*asked, _] = run_of(reasoning("1"), REQUEST)
    [*rest, _, _] = run_of(said)
    return [
        *(*asked, ItemAdded(2, call), ItemDone(2, call)),
        ToolOutput(3, output, failed=True),
        *(shifted(event, 4) for event in rest),
        RunDone(COMPLETED, output=(reasoning("1"), REQUEST, call, output, said)),
    ]


def calls_in(items: list[Item]) -> list[Item]:
    return [item for item in items if "call_id" in item]


def test_a_call_is_a_card_of_the_hosts_own(host_functions: HostFunctions) -> None:
    rendered = tell(run_of_transcript("mcp.sse"))

    thought, call, output, answered = host_functions.reduce(natives(rendered.chunks))
    assert (thought["type"], answered["type"]) == ("reasoning", "message")
    assert (call["type"], call["name"]) == ("function_call", "clocks_now")
    assert call["arguments"] == '{"zone":"UTC"}'
    assert (call["status"], output["status"]) == ("completed", "completed")
    assert output["type"] == "function_call_output"
    assert output["output"] == [{"type": "input_text", "text": "12:00"}]
    assert output["call_id"] == call["call_id"]
    assert len({item["id"] for item in (thought, call, output, answered)}) == 4
    [begun] = [c["item"] for c in rendered.chunks if _begins(c, call["id"])]
    assert (begun["arguments"], begun["status"]) == ("", "in_progress")
    grown = [c for c in rendered.chunks if "arguments.delta" in c.get("type", "")]
    assert len(grown) > 1
    assert "".join(chunk["delta"] for chunk in grown) == call["arguments"]


def _begins(chunk: Json, item_id: str) -> bool:
    is_added = chunk.get("type") == "response.output_item.added"
    return is_added and chunk["item"]["id"] == item_id


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mcp-error", "Error: The zone Atlantis is not known."),
        ("mcp-http-error", "Error: Gateway Timeout"),
    ],
)
def test_a_call_that_failed_shows_why(
    name: str, words: str, host_functions: HostFunctions
) -> None:
    rendered = tell(run_of_transcript(f"{name}.sse"))

    _, call, output, _ = host_functions.reduce(natives(rendered.chunks))
    assert (call["status"], output["status"]) == ("failed", "failed")
    assert output["output"][0]["text"] == words


SHELL: Item = {
    **{"type": "shell_call", "id": "sh_1", "call_id": "call_1"},
    "action": {"commands": ["ls", "make", 7], "timeout_ms": 1},
}
ENDED_WELL = {"type": "exit", "exit_code": 0}
ENDED_BADLY = {"type": "exit", "exit_code": 2}


def printed(stdout: str, outcome: Json, stderr: str = "") -> Json:
    return {"stdout": stdout, "stderr": stderr, "outcome": outcome}


@pytest.mark.parametrize(
    ("rows", "text", "status"),
    [
        ([printed("a", ENDED_WELL), printed("b", ENDED_WELL)], "a\nb", "completed"),
        ([printed("a", ENDED_BADLY, "no")], "a\nno\nExit code: 2", "failed"),
        (
            [printed("", {"type": "timeout"})],
            "The commands took too long.",
            "failed",
        ),
        (
            None,
            "Error: this was not run, because the answer was interrupted.",
            "failed",
        ),
    ],
)
def test_commands_of_openais_shell_are_a_card(
    rows: list[Json] | None, text: str, status: str, host_functions: HostFunctions
) -> None:
    """Opened by an administrator alone; another item has what they printed."""
    output = {**SHELL, "type": "shell_call_output", "id": "sho_1", "output": rows}
    lone = {**output, "id": "sho_2", "call_id": "call_2"}
    other = message("1", "Done.")

    rendered = tell(run_of(SHELL, *([lone, output] if rows else []), other))

    items = host_functions.reduce(natives(rendered.chunks))
    by_type = {item["type"]: item for item in items}
    assert len(by_type) == len(items) == 3
    assert by_type["function_call"]["arguments"] == '{"commands": ["ls", "make"]}'
    shown = by_type["function_call_output"]
    assert (shown["output"][0]["text"], shown["status"]) == (text, status)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("mcp", ["clocks offers 2 tools."]),
        ("mcp-two", ["clocks offers 2 tools.", "atlas offers 2 tools."]),
        ("mcp-parallel", ["clocks offers 1 tool."]),
        ("mcp-unlisted", [f"{UNLISTED}: the answer continues without them."]),
    ],
)
def test_a_list_is_a_line(name: str, lines: list[str]) -> None:
    """One for each server; a failure is no secret, its words may be."""
    assert statuses(tell(run_of_transcript(f"{name}.sse"))) == lines


@pytest.mark.parametrize(
    ("listed", "line"),
    [
        ({"tools": []}, "clocks offers 0 tools."),
        ({"tools": [{}], "error": "secret"}, UNLISTED),
        ({"tools": [{}], "server_label": None}, "An MCP server offers 1 tool."),
        ({"tools": None}, UNLISTED),
    ],
)
def test_a_list_of_any_form_is_a_line(listed: Json, line: str) -> None:
    """Other servers send what they like."""
    item = {"type": "mcp_list_tools", "server_label": "clocks", **listed}

    [shown] = statuses(tell([ItemAdded(0, item), ItemDone(0, item)]))
    assert shown.startswith(line)
    assert "secret" not in shown


def test_a_question_shows_nothing_by_itself(host_functions: HostFunctions) -> None:
    """The host has a card of its own to ask; a call without output it would run."""
    rendered = tell(run_of_transcript("mcp-approval.1.sse"))

    assert not calls_in(host_functions.reduce(natives(rendered.chunks)))


def test_a_call_that_broke_off_is_closed(host_functions: HostFunctions) -> None:
    """The host would run what has no output; the next turn knows nothing of it."""
    whole = run_of_transcript("mcp.sse")
    ends = [e.item["type"] if isinstance(e, ItemDone) else "" for e in whole]
    rendered = tell([*whole[: ends.index("mcp_call")], RunDone(CUT)])

    call, output = calls_in(host_functions.reduce(natives(rendered.chunks)))
    assert (call["status"], output["status"]) == ("incomplete", "failed")
    assert call["call_id"] == output["call_id"]
    assert "may have made this call" in output["output"][0]["text"]
    assert not calls_in(sent_next(host_functions, rendered))


@each_transcript
def test_the_next_turn_sends_what_the_next_round_would(
    name: str, host_functions: HostFunctions
) -> None:
    """The list once, each call with its output after it, byte for byte."""
    events = run_of_transcript(f"{name}.sse")

    sent = sent_next(host_functions, tell(events))

    assert sent == replay_output(ended_items(events), with_reasoning=True)
    assert not [item for item in sent if item["type"] == "mcp_call"]


def test_a_list_that_failed_is_not_sent(host_functions: HostFunctions) -> None:
    """The next turn asks the server again."""
    sent = sent_next(host_functions, tell(run_of_transcript("mcp-unlisted.sse")))

    assert [item["type"] for item in sent] == ["reasoning", "message"]


def test_a_refused_call_is_remembered(host_functions: HostFunctions) -> None:
    """As a card and a call that failed, with the reasoning that led to it."""
    rendered = tell(refused())

    _, call, output, _ = host_functions.reduce(natives(rendered.chunks))
    assert (call["name"], call["status"]) == ("clocks_now", "failed")
    assert (output["status"], output["output"][0]["text"]) == ("failed", "Error: No.")
    thought, *pair, said = sent_next(host_functions, rendered)
    assert (thought["type"], said["type"]) == ("reasoning", "message")
    assert pair == refused_pair(REQUEST, "No.")


@each_transcript
def test_without_a_record_the_call_is_still_known(
    name: str, host_functions: HostFunctions
) -> None:
    """A chat that was exported without its keys: a valid input, no half pairs."""
    events = run_of_transcript(f"{name}.sse")
    made = [item for item in ended_items(events) if item["type"] == "mcp_call"]

    sent = sent_next(host_functions, tell(events), {})

    assert calls_in(sent) == [item for call in made for item in replay_items(call)]


def test_remote_output_is_stored_once() -> None:
    """In the host's output, not in our records as well."""
    rendered = tell(run_of_transcript("mcp.sse"))

    kept = [item for record in rendered.records.values() for item in record.payload]
    assert [item["type"] for item in kept] == [
        *("mcp_list_tools", "reasoning", "function_call", "message")
    ]
