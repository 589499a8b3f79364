"""A person allows only a call that they saw whole (R33)."""

import json
from typing import Any

import pytest

from agents.sample import calls
from gpt5_agent.tools.approval_cards import (
    build_card_question,
    call_above_card,
    is_too_long_to_show,
)
from gpt5_agent.tools.confirmations import build_confirmation_request

Json = dict[str, Any]
LONG_CODE = "\n".join(f"total_{n} = {n} * {n}" for n in range(55))
HARM = 'import shutil; shutil.rmtree("/data")'


def card_and_block(arguments: Json, name: str = "python_execute") -> tuple[str, str]:
    """What the card says of a call, and what is above it."""
    call = {**calls(name), "arguments": json.dumps(arguments)}
    request = build_confirmation_request(call)
    return build_card_question(request)["question"], call_above_card(request)


def test_short_call_is_whole_on_the_card() -> None:
    assert card_and_block({"city": "Zürich"}, "get_weather") == (
        'May get_weather be called? With: {"city": "Zürich"}',
        "",
    )


def test_card_takes_what_its_host_shows_and_no_character_more() -> None:
    """The host cuts a question after 500 characters, also in mid-argument."""
    empty, _ = card_and_block({"city": ""}, "get_weather")
    fits, longer = (
        card_and_block({"city": "x" * (size - len(empty))}, "get_weather")
        for size in (500, 501)
    )

    assert (len(fits[0]), fits[1]) == (500, "")
    assert "The whole call is above" in longer[0]
    assert "x" * 76 in longer[1]


def test_end_of_long_code_is_shown() -> None:
    """The host cuts a question at 500 characters; the block has every line."""
    question, block = card_and_block({"code": f"{LONG_CODE}\n{HARM}", "seconds": 5})

    reference = question.removesuffix(".")[-4:]
    assert set(reference) <= set("0123456789abcdef")
    assert len(question) <= 500
    assert f"({reference})" in block
    lines = block.splitlines()
    assert lines[2:6] == ["```text", "python_execute", "  code:", "    total_0 = 0 * 0"]
    assert lines[-3:] == [f"    {HARM}", "  seconds: 5", "```"]


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("a\n```\nb", "    ```"),
        ("a\n~~~\n</details>", "    </details>"),
        ("a\rb\nc", r"    a\rb"),
        ("a\u2028b\nc", r"    a\u2028b"),
        ("a\u202egnihton\nc", r"    a\u202egnihton"),
        ("\tif x:\n\t\tpass", "            pass"),
        ("a\n" + " " * 80 + HARM, f"\N{RIGHTWARDS ARROW WITH HOOK}     {HARM}"),
        ("  seconds: 5\nx", "      seconds: 5"),
    ],
)
def test_code_cannot_leave_or_hide_in_its_block(code: str, shown: str) -> None:
    """Nothing ends the block, turns a line around, or is beyond the right edge."""
    _, block = card_and_block({"code": f"{code}\n{LONG_CODE}"})

    lines = block.splitlines()
    fence = lines[-1]
    assert set(fence) == {"`"}
    assert lines[2] == f"{fence}text"
    assert shown in lines[3:-1]
    assert not any(line.startswith(fence) for line in lines[3:-1])
    assert all(len(line) <= 82 for line in lines)


@pytest.mark.parametrize(
    "arguments",
    [{"text": "x" * 500}, {"text": "two  spaces"}, {f"name_{n}": n for n in range(60)}],
)
def test_card_that_cannot_show_a_call_says_where_it_is(arguments: Json) -> None:
    """Also where only the spaces would run together."""
    question, block = card_and_block(arguments)

    assert "The whole call is above, marked" in question
    assert block


@pytest.mark.parametrize(
    ("name", "arguments", "is_too_long"),
    [
        ("send", {"text": "x" * 15_000}, False),
        ("send", {"text": "x" * 25_000}, True),
        ("s" * 480, {}, True),
        ("s" * 60, {}, False),
    ],
)
def test_call_that_is_too_long_to_be_shown(
    name: str, arguments: Json, is_too_long: bool
) -> None:
    """No one can judge it, so it is not asked about."""
    call = {**calls(name), "arguments": json.dumps(arguments)}

    assert is_too_long_to_show(build_confirmation_request(call)) is is_too_long


def test_call_of_megabytes_is_not_written_for_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four million lines took six seconds in which nobody else is answered."""
    monkeypatch.setattr("gpt5_agent.tools.approval_cards.with_escapes", None)
    call = {**calls("send"), "arguments": json.dumps({"text": "\n" * 40_000})}

    assert is_too_long_to_show(build_confirmation_request(call))


def test_names_cannot_hide_in_the_block() -> None:
    """Neither that of the tool nor those of its arguments."""
    _, block = card_and_block({"a\u202eb": "x\ny", "long": LONG_CODE}, "look\u202eup")
    assert block.splitlines()[3:5] == [r"look\u202eup", r"  a\u202eb:"]
