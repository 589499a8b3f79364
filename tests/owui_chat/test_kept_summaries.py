"""Summaries that the page shows are stored once, and found again as they were."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from measures.work_count import count_work
from openai_responses.items import Item
from openai_responses.json_input import JsonBudget, JsonTooLarge
from owui_chat.kept_summaries import (
    kept_text,
    omit_shown_summaries,
    restore_summaries,
)
from owui_chat.render.items import reasoning_host_item
from runs.sample import call, message

Json = dict[str, Any]


def part(text: str) -> Item:
    return {"type": "summary_text", "text": text}


def thought(*texts: str, sealed: str = "sealed") -> Item:
    """Reasoning as a record has it."""
    summary = [part(text) for text in texts]
    return {"type": "reasoning", "summary": summary, "encrypted_content": sealed}


def page(*items: Item) -> list[Item]:
    """What the host stores of reasoning, and of other items."""
    return [
        reasoning_host_item(item, 3) if item["type"] == "reasoning" else item
        for item in items
    ]


def stored(payload: Sequence[Item], output: Sequence[Item]) -> Json:
    text = kept_text({"payload": list(payload)})
    value: Json = json.loads(omit_shown_summaries(text, output, len(output)))
    return value


def read_again(value: Json, output: Sequence[Item]) -> list[Item]:
    restore_summaries(value, output, len(output), JsonBudget(10_000))
    payload: list[Item] = value["payload"]
    return payload


SEARCHES = [{"type": "web_search_call", "id": f"ws_{n}"} for n in range(60)]


@pytest.mark.parametrize(
    ("payload", "between", "lengths"),
    [
        pytest.param([thought("Why.")], [], [[4]], id="one part"),
        pytest.param([thought("Why.", "How so.")], [], [[4, 7]], id="two parts"),
        pytest.param([thought("😀é", "ü")], [], [[2, 1]], id="characters, not bytes"),
        pytest.param([thought("A\n\nB", "C")], [], [[4, 1]], id="a blank line inside"),
        pytest.param(
            [thought("Why."), thought("Longer.", sealed="other")],
            [call("1"), message("2", "Rain.")],
            [[4], [7]],
            id="two thoughts in front of a call and a text",
        ),
        pytest.param([thought("Why.")], SEARCHES, [[4]], id="many searches between"),
    ],
)
def test_summary_is_stored_where_the_page_shows_it(
    payload: list[Item], between: list[Item], lengths: list[list[int]]
) -> None:
    output = page(*payload, *between)

    value = stored(payload, output)

    assert [row["summary"] for row in value["payload"]] == lengths
    assert [list(row.items()) for row in read_again(value, output)] == [
        list(row.items()) for row in payload
    ]


REVERSED = {**thought(), "summary": [{"text": "Why.", "type": "summary_text"}]}


@pytest.mark.parametrize(
    ("row", "output"),
    [
        pytest.param(thought("Why."), [], id="shown nowhere"),
        pytest.param(thought("Why."), page(thought("Who?")), id="another text"),
        pytest.param(
            thought("Why."), page(thought("Why."), thought("Who?")), id="one is nearer"
        ),
        pytest.param(thought(), page(thought()), id="no summary"),
        pytest.param(thought("Why.", ""), page(thought("Why.")), id="an empty part"),
        pytest.param(thought(*["A"] * 65), page(thought(*["A"] * 65)), id="65 parts"),
        pytest.param(thought(" Why."), page(thought(" Why.")), id="the host may strip"),
        pytest.param(
            thought("A\0B"), page(thought("A\0B")), id="the host leaves it out"
        ),
        pytest.param(REVERSED, page(REVERSED), id="names in another order"),
        pytest.param(
            thought("Why.", sealed=""), page(thought("Why.")), id="words alone"
        ),
        pytest.param(
            thought("Why."), page(thought("Why."), *SEARCHES, *SEARCHES), id="far away"
        ),
    ],
)
def test_what_would_not_come_back_stays(row: Item, output: list[Item]) -> None:
    assert stored([row], output) == {"payload": [row]}


@pytest.mark.parametrize("text", ["", "x", "[]", "{}", '{"payload": [7]}'])
def test_other_texts_stay(text: str) -> None:
    assert omit_shown_summaries(text, page(thought("Why.")), 1) == text


def test_text_without_a_character_of_utf_8_stays_ascii() -> None:
    """The host leaves out halves of characters."""
    row = call("1", arguments='{"a": "\ud83d é"}')
    output = page(thought("Why."))

    text = omit_shown_summaries(
        kept_text({"payload": [thought("Why."), row]}), output, 1
    )

    assert text.isascii()
    assert read_again(json.loads(text), output) == [thought("Why."), row]


@pytest.mark.parametrize(
    "lengths", [[5], [4, 4], [-4, 6], [0], [4] * 65, [True], [4.0], ["4"], [4, {}]]
)
def test_lengths_of_nobody_name_no_summary(lengths: list[Any]) -> None:
    """The owner of a chat can write anything into its row."""
    row = {**thought(), "summary": lengths}

    [read] = read_again({"payload": [row]}, page(thought("Why.")))

    assert read["summary"] in ([], lengths)
    assert part("Why.") not in read["summary"]


def test_thought_of_many_parts_is_not_read_for_each_row() -> None:
    """The owner of a chat writes any number of both: their product would be the work."""
    many = {"type": "reasoning", "summary": [{}] * 1_000}
    rows = [{**thought(), "summary": [1]} for _ in range(20)]
    assert count_work(lambda: read_again({"payload": rows}, [many])) < 2_000


def test_what_is_read_of_one_text_has_a_limit() -> None:
    """A thousand records could name the same large one."""
    rows = [{**thought(), "summary": [6000]} for _ in range(2)]

    with pytest.raises(JsonTooLarge):
        read_again({"payload": rows}, page(thought("x" * 6000)))
