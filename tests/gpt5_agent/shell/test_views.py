"""What Open WebUI, or a plain client, gets of a run."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from agents.sample import WeatherTool, calls, events_of, host_tool, question
from calls.outcomes import host_events
from event_loops.skipping_loop import run_skipping
from gpt5_agent.events import (
    AgentEvent,
    AgentState,
    RoundEnded,
    StateChanged,
    StepEnded,
    StepStarted,
)
from gpt5_agent.shell.views import ClientRenderer, HostRenderer
from openai_responses.items import Item
from openai_responses.loop.events import Status
from openai_responses.requests.replay import Origin
from owui_chat.storage.details_carrier import read_details
from runs.sample import message, reasoning
from runs.scripted import ScriptedProvider
from shells.caller import ChatCaller
from stand_in.signing import SIGN

Json = dict[str, Any]
SAID = message("9", "It rains.")
LOOKING = [reasoning("1"), message("1", "I look."), calls("get_weather", 1)]
PIXEL = "data:image/png;base64,AA=="


def reported(*answers: list[Item], tool: Any = None, **more: Any) -> list[AgentEvent]:
    """What the agent reports of these answers of a model."""
    asked = question(tool or WeatherTool(), **more)
    return run_skipping(events_of(asked, ScriptedProvider(*answers)))


def on_page(events: Sequence[AgentEvent]) -> tuple[list[Json], HostRenderer]:
    """The chunks that Open WebUI gets."""
    view = HostRenderer(True, Origin("gpt-5", "127.0.0.1"), SIGN)
    chunks = [chunk for event in events for chunk in view.show(event)]
    assert json.dumps(chunks)
    return chunks, view


def in_client(events: Sequence[AgentEvent]) -> tuple[list[Json], ClientRenderer]:
    view = ClientRenderer(True, ChatCaller("m"))
    return [chunk for event in events for chunk in view.show(event)], view


def statuses(chunks: Sequence[Json], action: str) -> list[Json]:
    told = host_events([*chunks], "status")
    return [status for status in told if status.get("action") == action]


def deltas_of(chunks: Sequence[Json]) -> list[Json]:
    return [choice["delta"] for chunk in chunks for choice in chunk["choices"]]


def test_page_gets_native_events_of_all_rounds() -> None:
    chunks, view = on_page(reported(LOOKING, [reasoning("2"), SAID]))

    items = view.result("m")["output"]
    card = ["function_call", "function_call_output"]
    kinds = [item["type"] for item in items]
    assert kinds == [*["reasoning"] * 2, *card, "reasoning", "message"]
    placed = [c["output_index"] for c in chunks if "output_index" in c]
    assert list(dict.fromkeys(placed)) == list(range(6))
    ids = [item["id"] for item in items]
    assert len(set(ids)) == len(ids)
    assert all(chunk.get("choices") is not None for chunk in chunks)


def test_r15_metadata_are_an_event_that_the_host_stores() -> None:
    """A status line: the host keeps these with the message."""
    chunks, _ = on_page([Status("Again."), *reported(LOOKING, [SAID])])

    [status] = statuses(chunks, "execution_metadata")
    assert status["done"] is True
    assert status["description"] == (
        "Finished in under a second · 30 tokens · 2 rounds · 1 tool call · 1 note"
    )
    assert status["execution_metadata"]["total_tokens"] == 30
    usages = [chunk["usage"] for chunk in chunks if "usage" in chunk]
    assert [usage["total_tokens"] for usage in usages] == [30]


def test_r16_steps_are_told_as_they_begin_and_stored_as_they_end() -> None:
    """A status that never ends would shimmer for ever."""
    chunks, _ = on_page(reported(LOOKING, [SAID]))

    begun = host_events(chunks, "agent:log")
    ended = statuses(chunks, "agent_log")
    labels = [event["label"] for event in begun[:3]]
    assert labels == ["ROUND 1", "gpt-5 Thought", "CALL get_weather"]
    assert {event["id"] for event in begun} == {status["id"] for status in ended}
    assert all(status["done"] and status["seconds"] >= 0 for status in ended)
    assert [status["tokens"] for status in ended if "tokens" in status] == [15, 15]
    assert "Bern" not in json.dumps([*begun, *ended])


def test_r16_debugging_shows_what_was_given_and_returned() -> None:
    """To whoever may see the chat anyway."""
    chunks, _ = on_page(reported(LOOKING, [SAID], debug=True))

    details = [event.get("detail") for event in host_events(chunks, "agent:log")]
    assert '{"city":"Bern"}' in details
    stored = [event.get("detail") for event in host_events(chunks, "status")]
    assert "Rain in Bern." in stored


def test_r24_pictures_of_a_tool_are_a_delta_that_the_host_stores() -> None:
    """A note tells of other files, next to the answer; the output has no picture."""
    link = {"type": "image_link", "url": PIXEL}
    file = {"type": "blob", "data": "AA==", "name": "a.txt"}
    events = reported(LOOKING, [SAID], tool=WeatherTool(result=[link, file]))
    chunks, view = on_page(events)
    plain, _ = in_client(events)

    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    for shown in (chunks, plain):
        choices = [choice for chunk in shown for choice in chunk["choices"]]
        drawn = [choice for choice in choices if "images" in choice["delta"]]
        assert drawn == [{"index": 0, "delta": {"images": [image]}}]
    output = view.result("m")["output"]
    assert len({chunk.get("id") for chunk in plain}) == 1  # strict clients want it
    assert PIXEL not in json.dumps(output)
    kinds = [item["type"] for item in output]
    assert kinds.count("message") == kinds.count("function_call_output") == 1
    [note] = [item for item in output if item["id"].startswith("note")]
    assert "> a.txt could not be stored" in note["content"][0]["text"]
    thoughts = [delta.get("reasoning_content", "") for delta in deltas_of(plain)]
    assert sum("a.txt could not be stored" in text for text in thoughts) == 1


def test_error_keeps_what_was_shown() -> None:
    """R25: a chunk, after the metadata; a line if the answer can be continued."""
    chunks, view = on_page(reported(LOOKING, []))

    told = [chunk for chunk in chunks if chunk.get("event", {}).get("type") == "status"]
    metadata, last = [chunk["event"]["data"] for chunk in told[-2:]]
    assert metadata["action"] == "execution_metadata"
    assert "The connection to the model broke" in last["description"]
    assert not [chunk for chunk in chunks if "error" in chunk]
    result = view.result("m")
    assert result["error"]["message"]
    assert result["execution_metadata"]["ending"] == "cut"
    assert result["output"]


@pytest.mark.parametrize(("show", "prompt_tokens"), [(on_page, 10), (in_client, 20)])
def test_r27_result_is_complete(show: Any, prompt_tokens: int) -> None:
    """The answer alone is its content; thoughts are apart.

    A plain client gets the tokens of all rounds, in a stream as well; the page shows how
    full the last request was.
    """
    chunks, view = show(reported(LOOKING, [reasoning("2"), SAID]))

    result = view.result("m")

    [choice] = result["choices"]
    assert choice["finish_reason"] == "stop"
    assert choice["message"]["content"] == "It rains."
    assert choice["message"]["reasoning_content"] == "Thinking.\n\nI look.\n\nThinking."
    assert "tool_calls" not in choice["message"]
    [in_stream] = [chunk["usage"] for chunk in chunks if "usage" in chunk]
    for usage in (in_stream, result["usage"]):
        assert usage["prompt_tokens"] == prompt_tokens
        assert usage["total_tokens"] == 30
    assert result["execution_metadata"]["tool_calls"] == 1
    assert result["id"].startswith("chatcmpl-")
    assert result["model"] == "m"
    assert ("output" in result) is (show is on_page)


def test_client_runs_its_own_tools() -> None:
    """Their calls come at the end; nothing says that the answer is over."""
    body = {"tools": [host_tool("mine")]}
    chunks, view = in_client(reported([calls("mine", 1)], body=body))

    [asked] = [d["tool_calls"] for d in deltas_of(chunks) if "tool_calls" in d]
    assert asked[0]["function"]["name"] == "mine"
    assert not any("execution_metadata" in chunk for chunk in chunks)
    choice = view.result("m")["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["id"] == "call_1"


@pytest.mark.parametrize(
    ("state", "lines"),
    [
        ("waiting_for_confirmation", ["m answered in 1 s", "Waiting for your answer"]),
        ("thinking", ["m answered in 1 s", "Step 1 took 2 s"]),
    ],
)
def test_line_above_a_question_says_that_it_waits(
    state: AgentState, lines: list[str]
) -> None:
    """The end of a round is no news to whoever has to answer."""
    step = StepStarted(id="ROUND 1", parent="", kind="round", name="1")
    model = StepStarted(id="MODEL m", parent="ROUND 1", kind="model", name="m")
    ends = [StepEnded(model, 1.0), StepEnded(step, 2.25)]

    chunks, _ = on_page([step, model, StateChanged(state), *ends])

    told = [line["description"] for line in statuses(chunks, "agent_log")]
    assert told == lines
    assert statuses(chunks, "agent_log")[-1]["seconds"] == 2.25


def test_round_without_a_thought_keeps_a_yes_for_the_chat() -> None:
    """In a carrier that is made for it; nothing else needs one at the end."""
    notes = {"allowed": ["permission"]}
    view = HostRenderer(False, Origin("gpt-5", "127.0.0.1"), SIGN)

    assert not [*view.show(RoundEnded("1", (), {"allowed": []}))]
    assert [*view.show(RoundEnded("2", (), notes))]

    [carrier] = view.result("m")["output"]
    [turn] = read_details(carrier["reasoning_details"], SIGN)
    assert turn.notes == notes


def test_round_with_a_thought_keeps_a_yes_with_its_items() -> None:
    notes = {"allowed": ["permission"]}
    _, view = on_page(reported([reasoning("1"), SAID]))

    assert [*view.show(RoundEnded("1", ((0, reasoning("1")),), notes))]

    [turn] = read_details(view.result("m")["output"][0]["reasoning_details"], SIGN)
    assert turn.items
    assert turn.notes == notes


def test_last_round_without_a_thought_keeps_a_yes_in_an_earlier_one() -> None:
    """The page would show one of its own below the answer, with nothing in it."""
    notes = {"allowed": ["permission"]}
    _, view = on_page(reported(LOOKING, [SAID]))
    shown = [item["id"] for item in view.result("m")["output"]]

    assert [*view.show(RoundEnded("3", ((0, SAID),), notes))]

    output = view.result("m")["output"]
    assert [item["id"] for item in output] == shown
    first, yes = read_details(output[0]["reasoning_details"], SIGN)
    assert first.items
    assert (yes.items, yes.notes) == ([], notes)
