"""No chat gets stuck, whatever a server refuses; `scripts/fuzz.py` runs a thousand."""

from types import ModuleType

import pytest

from fuzz import run_chats, write_figures
from golden_run.built_files import BUILT_PIPE, load_pipe
from stand_in.chats import convert_output

CHATS = range(8)


@pytest.fixture(scope="module")
def built() -> ModuleType:
    return load_pipe(BUILT_PIPE)


@pytest.mark.asyncio
async def test_no_chat_gets_stuck(built: ModuleType) -> None:
    """Every answer is there, no call is run twice, the history sent is valid."""
    reports = await run_chats(CHATS, built, at_once=10)

    figures = write_figures(reports)
    assert [report.number for report in reports] == list(CHATS)
    assert [report.number for report in reports if report.problems] == [], figures
    assert any(report.extra for report in reports)


def test_the_stand_in_gives_calls_back_as_the_host_does() -> None:
    part = {"type": "output_text", "text": "Rain."}
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "1", "output": "yes"}

    messages = convert_output(
        [
            {"type": "reasoning", "summary": []},
            call,
            output,
            {"type": "message", "content": [part]},
        ]
    )

    assert [message["role"] for message in messages] == [
        "assistant",
        "tool",
        "assistant",
    ]
    assert messages[0]["tool_calls"][0]["id"] == messages[1]["tool_call_id"] == "1"
    assert messages[2]["content"] == "Rain."
