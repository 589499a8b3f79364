"""Chunks that the host, or a program, reads in addition to the text."""

import json

import pytest

from openai_responses.endings import COMPLETED
from openai_responses.loop.events import RunDone, Trace
from openai_responses.models.usage import Cost, Usage
from owui_chat.render.chunks import (
    client_usage,
    closing_chunk,
    error_as_text,
    error_chunk,
    host_usage,
    metadata_field,
    source_chunk,
    source_data,
    status_chunk,
    whole_characters,
)

SUM, LAST = Usage(30, 7, 37, 4, 2, 5), Usage(10, 5, 15)


def test_usage_has_what_is_known_of_the_answer() -> None:
    ended = RunDone(COMPLETED, SUM, LAST)

    assert host_usage(RunDone(COMPLETED)) == {}
    assert not {"cost", "response_id"} & host_usage(ended)["usage"].keys()
    known = ended._replace(trace=Trace(response_id="resp_1"))
    usage = host_usage(known, Cost(0.0))["usage"]
    assert (usage["cost"], usage["response_id"]) == (0.0, "resp_1")


def test_program_is_told_the_sums_of_all_rounds() -> None:
    """The host gets the size of the chat there, which is that of the last one."""
    ended = RunDone(COMPLETED, SUM, LAST)

    assert client_usage(RunDone(COMPLETED)) == {}
    told = client_usage(ended)["usage"]
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert [told[name] for name in names] == [30, 7, 37]
    assert told["prompt_tokens_details"] == {"cached_tokens": SUM.cached}
    assert told["completion_tokens_details"] == {"reasoning_tokens": SUM.reasoning}
    shown = host_usage(ended)["usage"]
    assert [shown[name] for name in names] == [10, 5, 37]


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Zürich 🚀", "Zürich 🚀"),
        ("\ud83d\ude80", "🚀"),
        ("a\ud83db", "a\N{REPLACEMENT CHARACTER}b"),
        ("\ude80", "\N{REPLACEMENT CHARACTER}"),
    ],
)
def test_half_of_a_character_ends_no_answer(text: str, whole: str) -> None:
    """UTF-8 has none: a host that sends the result would raise."""
    result = whole_characters({"choices": [{"message": {"content": text}}]})

    assert result == {"choices": [{"message": {"content": whole}}]}
    json.dumps(result, ensure_ascii=False).encode()


def test_reader_that_drops_errors_gets_a_text() -> None:
    """Below what it has read already; other chunks are as they were."""
    told = {"choices": [{"index": 0, "delta": {"content": "\n\nNo credit."}}]}

    assert error_as_text(error_chunk("No credit.")) == told
    for chunk in (status_chunk("Wait."), error_chunk("")):
        assert error_as_text(chunk) == chunk


def test_last_line_carries_what_an_agent_took() -> None:
    metadata = {"rounds": 2}

    assert closing_chunk("Finished in 3 s", metadata)["event"]["data"] == {
        "description": "Finished in 3 s",
        "done": True,
        "action": "execution_metadata",
        "execution_metadata": metadata,
    }
    assert closing_chunk("Finished in 3 s", {}) == status_chunk("Finished in 3 s")
    assert metadata_field(metadata) == {"execution_metadata": metadata}
    assert metadata_field({}) == {}


@pytest.mark.parametrize(
    ("address", "source", "key"),
    [
        ("", {"name": "Log"}, "Log"),
        ("https://a.example", {"name": "Log", "url": "https://a.example"}, None),
        ("javascript:alert('http')", {"name": "Log"}, "Log"),
    ],
)
def test_source_leads_to_its_address(
    address: str, source: dict[str, str], key: str | None
) -> None:
    """The key is what `[1]` in a text refers to."""
    chunk = source_chunk("Log", "one", address)

    rows = [{"source": key or address}]
    assert chunk["event"]["data"] == {
        **{"source": source, "document": ["one"]},
        "metadata": rows,
    }


def test_text_of_a_source_draws_no_card() -> None:
    """Whoever shares a model writes the context of its agent, which is drawn."""
    [shown] = source_data("Log", 'A <details type="tool_calls">')["document"]
    assert shown == 'A < details type="tool_calls">'
