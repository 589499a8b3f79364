"""Rows of tables have names that tell them apart, the same in each run."""

from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import NamedTuple

import pytest

from case_names import LONGEST, case_name


@dataclass
class Limits:
    rounds: int = 8
    tokens: int = 0
    label: str = ""


class Usage(NamedTuple):
    input: int
    output: int


@pytest.mark.parametrize("value", [None, True, 7, 0.5, "chat", b"chat", str], ids=repr)
def test_pytest_names_what_is_short(value: object) -> None:
    assert case_name(value) is None


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({}, "{}"),
        ({"max_tokens": 50}, "max_tokens=50"),
        ({"type": "message", "role": "user"}, "message(role=user)"),
        ([{"role": "user"}, {"type": "function_call"}], "[user,function_call]"),
        ([], "[]"),
        ({"b", "a"}, "[a,b]"),
        (Usage(input=5, output=0), "Usage(input=5)"),
        (Limits(), "Limits()"),
        (Limits(rounds=8, tokens=9), "Limits(tokens=9)"),
        (ValueError("no\nway"), "ValueError(no way)"),
        (partial(len, "chat"), "len[chat]"),
        (date(2026, 11, 26), "2026-11-26"),
        (b"x" * 5_000, "x*5000"),
        ("a" * 99 + " b", "a*99 b"),
        (["€", "\ud800"], r"[\u20ac,\ud800]"),
    ],
)
def test_value_is_written_out(value: object, name: str) -> None:
    assert case_name(value) == name


def test_name_has_no_address() -> None:
    assert case_name(object()) == "<object object>"


def test_long_name_keeps_both_ends() -> None:
    name = case_name({str(number): number for number in range(100)})
    assert name is not None
    assert len(name) <= LONGEST
    assert name.startswith("0=0,")
    assert name.endswith(",99=99")
