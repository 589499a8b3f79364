"""A valve with a JSON object: each key is checked on its own."""

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shells.valve_texts import describe_mistake, read_json_valve


class Keys(BaseModel):
    """Keys of a valve."""

    tries: int = Field(2, ge=0, le=5, description="How often.")
    wait: float = Field(30, ge=1, le=60, description="How long.")
    mode: Literal["a", "b"] = Field("a", description="How.")


LONG = "x" * 200
WHOLE = {"tries": 5, "wait": 1, "mode": "b"}


@pytest.mark.parametrize(
    ("text", "read", "problems"),
    [
        (" \n", {}, []),
        (json.dumps(WHOLE), WHOLE, []),
        ("[]", {}, ["VALVE is not a JSON object. Otherwise."]),
        ("1" * 10_000, {}, ["VALVE is not JSON. Otherwise."]),
        (
            '{"tries": 6}',
            {"tries": 5},
            ["`tries` cannot be 6. The most is 5, which applies."],
        ),
        (
            '{"wait": 0.5}',
            {"wait": 1},
            ["`wait` cannot be 0.5. The least is 1, which applies."],
        ),
        (
            '{"tries": -1}',
            {"tries": 0},
            ["`tries` cannot be -1. The least is 0, which applies."],
        ),
        ('{"wait": NaN}', {}, ["`wait` cannot be nan. How long. Otherwise."]),
        (
            '{"tries": "x", "mode": "c", "wait": 9}',
            {"wait": 9},
            [
                "`tries` cannot be 'x'. How often. Otherwise.",
                "`mode` cannot be 'c'. Choose 'a' or 'b'. Otherwise.",
            ],
        ),
        (
            f'{{"tries": "{LONG}"}}',
            {},
            [f"`tries` cannot be '{LONG[:79]}. How often. Otherwise."],
        ),
        (
            '{"try": 1, "tries": 1}',
            {"tries": 1},
            ["VALVE contains unknown names: try. Known keys: tries, wait, mode."],
        ),
        (
            '{"tries": 1,\n "wait": 2,}',
            {},
            ["VALVE is not JSON (line 2, column 12). Otherwise."],
        ),
    ],
)
def test_a_key_that_is_wrong_costs_no_other(
    text: str, read: dict[str, Any], problems: list[str]
) -> None:
    """A number becomes the nearest that is allowed; NaN is near to nothing."""
    keys, told = read_json_valve("VALVE", text, Keys, "Otherwise.")

    assert keys == Keys(**read)
    whole = [p if p.startswith("VALVE") else f"VALVE: {p}" for p in problems]
    assert list(told) == whole


@pytest.mark.parametrize(
    ("text", "effect"),
    [("[]", ", so its defaults apply."), ('{"wait": "x"}', "Its default applies.")],
)
def test_what_follows_is_the_default_unless_told_otherwise(
    text: str, effect: str
) -> None:
    _, [told] = read_json_valve("VALVE", text, Keys)

    assert told.endswith(effect)


class Entry(BaseModel):
    """An entry of a list."""

    model_config = ConfigDict(extra="forbid")

    name: str
    mode: Literal["", "a", "b"] = ""
    size: float = Field(1, ge=0.5)


@pytest.mark.parametrize(
    ("entry", "mistake"),
    [
        ("hunter2", "it is not a JSON object"),
        ({}, "`name` is missing"),
        (
            {"name": "n", "hunter": 2},
            "the key `hunter` is unknown (known keys: name, mode, size)",
        ),
        ({"name": "n", "mode": "hunter2"}, "`mode` has to be 'a' or 'b'"),
        ({"name": "n", "size": 0}, "`size` has to be at least 0.5"),
        ({"name": 7}, "`name` has a wrong value (input should be a valid string)"),
        (
            {"name": "n", LONG: 2},
            "the key is unknown (known keys: name, mode, size)",
        ),
        (
            {"name": "n", "sk-canary": 2},
            "the key is unknown (known keys: name, mode, size)",
        ),
    ],
)
def test_mistake_is_told_without_its_value(entry: object, mistake: str) -> None:
    """It may be a secret."""
    with pytest.raises(ValidationError) as refused:
        Entry.model_validate(entry)

    assert describe_mistake(refused.value, Entry) == mistake
