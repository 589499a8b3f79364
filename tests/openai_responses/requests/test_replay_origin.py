"""Reasoning is read by those who made it, and by no one else."""

import pytest

from openai_responses.endpoint import Endpoint
from openai_responses.requests.replay import Origin, origin_at, read_origin

HERE = Origin("gpt-5.6-sol", "api.openai.com", "ours")


@pytest.mark.parametrize(
    ("maker", "readable"),
    [
        (HERE, True),
        (Origin("gpt-5.6-sol"), True),  # noted by an earlier writer
        (Origin("gpt-5.6-sol", "api.openai.com"), True),
        (Origin("gpt-5.6-sol", "api.openai.com", "theirs"), False),
        (Origin("gpt-5.6-sol", "another.host"), False),
        (Origin("gpt-5.6-luna", "api.openai.com"), False),
        (Origin("gpt-5.6-luna"), False),
    ],
)
def test_reasoning_is_readable_where_family_server_and_account_agree(
    maker: Origin, readable: bool
) -> None:
    assert HERE.can_decrypt(maker) is readable


def test_stored_origin_is_read_back() -> None:
    assert read_origin(HERE.wire(), "gpt-4o") == HERE


@pytest.mark.parametrize("wire", [None, {"family": ""}, {"endpoint": "y"}])
@pytest.mark.parametrize(
    ("model", "family"),
    [("gpt-5.2-2025-12-11", "gpt-5.2"), ("gpt-5-thinking-high", "gpt-5")],
)
def test_origin_that_nobody_noted(wire: object, model: str, family: str) -> None:
    """The name of the model tells the family, without date or alias."""
    assert read_origin(wire, model) == Origin(family)


def test_origin_of_a_careless_writer() -> None:
    """Values that are no texts become some."""
    assert read_origin({"family": 7, "endpoint": None}, "y") == Origin("7")


URL = "https://api.openai.com/v1"
KEY = "sk-canary-77c1"
ONE_KEY = Endpoint(URL, KEY)
NAMED = Endpoint(URL, KEY, organization="org-1")


@pytest.mark.parametrize(
    ("maker", "reader", "readable"),
    [
        (ONE_KEY, Endpoint(f"{URL}/responses", f" {KEY} "), True),
        (ONE_KEY, Endpoint(URL, "sk-canary-88d2"), False),
        (NAMED, Endpoint(URL, "sk-canary-88d2", organization="org-1"), True),
        (NAMED, Endpoint(URL, KEY, organization="org-2"), False),
        (NAMED, Endpoint("https://eu.api.openai.com", KEY, "org-1"), False),
    ],
)
def test_keys_of_one_organization_read_each_others(
    maker: Endpoint, reader: Endpoint, readable: bool
) -> None:
    """Without its name only the key itself tells whose it is."""
    made = origin_at("gpt-5.2", maker)
    asked = origin_at("gpt-5.2", reader)

    assert asked.can_decrypt(made) is readable


def test_origin_contains_no_part_of_the_key() -> None:
    """It is stored in the chat."""
    stored = str(origin_at("gpt-5.2", ONE_KEY).wire())

    assert "canary" not in stored
    assert "77c1" not in stored
