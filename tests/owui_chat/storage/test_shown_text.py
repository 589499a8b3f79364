"""A text of the model, stored as what the shown text does not have."""

import json
import time
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.items import Item
from openai_responses.requests.replay import strip_for_replay
from owui_chat.storage.shown_text import (
    refer_to_shown,
    refers_to_shown,
    restore_from_shown,
)
from runs.sample import message, refusal

RAIN = "It rains in Bergen, as it does on most days of the year. " * 3 + "So it goes."
LINK = "([a.example](https://a.example?utm_source=openai))"


def texts_of(item: Item) -> list[object]:
    return [part.get("text", part.get("refusal")) for part in item["content"]]


@pytest.mark.parametrize(
    ("item", "shown", "stored"),
    [
        pytest.param(
            message("1", f"\n{RAIN}\n"),
            RAIN,
            [["\n", [0, 182], "\n"]],
            id="white space at the ends",
        ),
        pytest.param(
            message("1", f"{RAIN} {LINK} {RAIN}"),
            f"{RAIN} [1] {RAIN}\n\n[1]: https://a.example",
            [[[0, 183], LINK, [186, 183]]],
            id="a link that is shown as a number",
        ),
        pytest.param(refusal("1", RAIN), RAIN, [[[0, 182]]], id="refusal"),
        pytest.param(
            {**message("1", ""), "content": message("1", RAIN)["content"] * 2},
            RAIN + RAIN,
            [[[0, 182]], [[182, 182]]],
            id="two parts",
        ),
        pytest.param(message("1", " Rain.\n"), "Rain.", [" Rain.\n"], id="short"),
        pytest.param(message("1", "x" * 99), RAIN, ["x" * 99], id="another text"),
    ],
)
def test_what_the_shown_text_has_is_not_stored_again(
    item: Item, shown: str, stored: list[object]
) -> None:
    kept = refer_to_shown(item, shown)

    assert texts_of(kept) == stored
    assert refers_to_shown(kept) == (stored != texts_of(item))
    assert restore_from_shown(json.loads(json.dumps(kept)), f"\n{shown} ") == item


@given(
    st.lists(st.text(max_size=60), max_size=6),
    st.lists(st.sampled_from([RAIN, LINK, " ", "\n", "[1]", RAIN * 9]), max_size=9),
    st.randoms(use_true_random=False),
)
def test_any_text_comes_back(
    others: list[str], known: list[str], random: Random
) -> None:
    pieces = [*others, *known]
    random.shuffle(pieces)
    item = strip_for_replay(message("1", "".join(pieces)))
    shown = "".join(known)

    assert restore_from_shown(refer_to_shown(item, shown), shown) == item


def test_another_text_of_a_megabyte_takes_no_time() -> None:
    """Each character that is not found is searched for; so few are."""
    began = time.process_time()

    kept = refer_to_shown(message("1", "ab" * 500_000), "ba " * 400_000)

    assert not refers_to_shown(kept)
    assert time.process_time() - began < 0.5
