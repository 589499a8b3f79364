"""The table of docs/parameters.md says what is sent."""

import re
from pathlib import Path
from typing import Any

import pytest

from calls.sample import call_of, chat
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.parameters import (
    ACCOUNT_KEYS,
    ANSWER_KEYS,
    read_parameters,
)
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.prepare.chat import build_chat_request
from stand_in.host import StandInHost

DOCUMENT = Path(__file__).resolve().parents[1] / "docs/parameters.md"
NOT_THE_CALLERS = {
    *("model", "input", "instructions", "store", "background", "include", "tools"),
    *("background_options", "repairs"),
}
CODE = re.compile(r"`([^`]+)`")


def rows() -> dict[str, list[str]]:
    """The cells after each parameter."""
    text = DOCUMENT.read_text("utf-8")
    table = text.partition("<!-- parameters -->\n")[2].partition("<!-- end -->")[0]
    lines = [re.split(r" ?\| ", line.strip("| \n")) for line in table.splitlines()[2:]]
    return {cells[0].strip("`"): cells[1:] for cells in lines}


def names_in(payload: dict[str, Any]) -> set[str]:
    """What a request holds, in the words of the table."""
    inner = {
        f"{key}.{name}"
        for key in ("reasoning", "text")
        for name in payload.get(key, ())
    }
    return (payload.keys() - {"reasoning", "text"}) | inner


@pytest.mark.asyncio
async def test_table_marks_the_parameters_sent_by_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """By the defaults of all valves, for a model that reasons."""
    StandInHost(monkeypatch, tmp_path)
    job = await build_chat_request(call_of(chat("Hi"), Valves(API_KEY="sk-1")))

    sent = names_in(job.request.payload()) - NOT_THE_CALLERS - {"reasoning.context"}
    assert sent == {name for name, cells in rows().items() if cells[3] == "yes"}
    assert {cells[3] for cells in rows().values()} == {"yes", "no"}
    assert job.request.reasoning == {"summary": "auto", "context": "all_turns"}


def test_every_parameter_has_a_row() -> None:
    """And no row is about something else."""
    fields = ResponsesRequest.model_fields.keys() - NOT_THE_CALLERS
    flat = fields - {"reasoning", "text"}
    inner = {"reasoning.effort", "reasoning.summary", "text.verbosity", "text.format"}
    assert rows().keys() == flat | inner


def test_the_table_says_who_sets_what() -> None:
    """And for what is the administrator's, why."""
    who = {name: cells[4] for name, cells in rows().items()}
    ours = {name for name, cell in who.items() if cell.startswith("administrator: ")}
    theirs = {name for name, cell in who.items() if cell.startswith("caller")}

    assert ours == ACCOUNT_KEYS.keys()
    inner = {name for name in who if "." in name}
    assert theirs == {"stream", *ANSWER_KEYS, *inner}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 5),
        ("max_completion_tokens", 5),
        ("reasoning_effort", "low"),
        ("reasoning_summary", "auto"),
        ("verbosity", "low"),
        ("response_format", {"type": "json_object"}),
        ("enable_stream", True),
    ],
)
def test_other_names_of_parameters_are_in_the_table(name: str, value: object) -> None:
    """Each is read, and named in some row."""
    others = {other for cells in rows().values() for other in CODE.findall(cells[0])}
    read, _ = read_parameters({name: value})

    assert name in others
    assert name == "enable_stream" or name not in read


def test_every_valve_that_is_named_exists() -> None:
    """A renamed one would be looked for in vain."""
    named = set(re.findall(r"`([A-Z_]{4,})`", DOCUMENT.read_text("utf-8")))
    known = Valves.model_fields.keys() | UserValves.model_fields.keys()
    assert named - {"DEBUG", "WARNING"} <= known
