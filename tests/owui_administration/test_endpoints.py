"""Entries of ENDPOINTS_JSON: whom they are for, and what they change."""

import json
from typing import Any

import pytest

from owui_administration.endpoints import (
    EndpointEntry,
    endpoints_mistake,
    read_endpoints,
)
from owui_manifold.call.config import build_endpoint
from owui_manifold.call.valves import Valves

Json = dict[str, Any]
SHARED: Json = {
    "API_KEY": "sk-of-the-valves",
    "BASE_URL": "https://valves.example/v1",
    "ORGANIZATION": "org-valves",
    "PROJECT": "proj-valves",
    "EXTRA_HEADERS": '{"X-Secret": "canary-of-the-valves"}',
    "FILE_SEARCH_VECTOR_STORES": "vs_1",
    "AUTH": "bearer",
    "COMPATIBILITY": "strict",
}


def entry(**given: Any) -> EndpointEntry:
    """One entry, as it is read."""
    [read] = read_endpoints(json.dumps([given])) or ()
    return read


@pytest.mark.parametrize("text", ["", "  ", "[]"])
def test_empty_text_has_no_entries(text: str) -> None:
    """Without entries the endpoint in the valves is everybody's."""
    assert read_endpoints(text) == []


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("{", "ENDPOINTS_JSON is not valid JSON"),
        ("7", "ENDPOINTS_JSON is not a list"),
        ('{"api_key": "canary"}', "ENDPOINTS_JSON is not a list"),
        ('["canary"]', "it is not a JSON object"),
        (
            '[{"api_key": "canary", "grups": ["a"]}]',
            "the key `grups` is unknown (known keys: groups",
        ),
        ('[{"api_key": "canary", "groups": "a"}]', "`groups` has a wrong value"),
        ('[{"api_key": ["canary"]}]', "`api_key` has a wrong value"),
        ('[{"base_url": "https://canary.example"}]', "`api_key` is missing"),
        ('[{"auth": "bearer", "api_key": " "}]', "`api_key` is missing"),
        (
            '[{"api_key": "canary", "auth": "oauth"}]',
            "`auth` has to be 'key', 'bearer' or 'entra_id'",
        ),
        ('[{"project": "canary"}]', "`api_key` is missing"),
        (
            '[{"api_key": "canary", "base_url": "ftp://canary.example"}]',
            "is not an http or https address",
        ),
        (
            '[{"api_key": "canary", "base_url": "https://me:canary@a.example"}]',
            "contains a user name",
        ),
        ("[" * 500 + "]" * 500, "ENDPOINTS_JSON is not valid JSON"),
    ],
)
def test_unreadable_entry_is_used_for_nobody(text: str, mistake: str) -> None:
    """An entry may keep chats from a server, so it is not passed over.

    What is wrong is told without its values, which may be keys.
    """
    assert read_endpoints(text) is None
    told = endpoints_mistake(text)
    assert mistake in told
    assert "canary" not in told


@pytest.mark.parametrize(
    ("given", "groups", "is_for"),
    [
        ({}, set(), True),
        ({"groups": ["staff"]}, {"staff", "id-1"}, True),
        ({"groups": ["id-1"]}, {"staff", "id-1"}, True),
        ({"groups": ["staff", "pupils"]}, {"others"}, False),
        ({"groups": ["staff"]}, set(), False),
        ({"models": ["gpt-6*"]}, set(), True),
        ({"models": ["GPT-6*"]}, set(), True),
        ({"models": ["gpt-6.1-sol"]}, set(), True),
        ({"models": []}, set(), False),
        ({"models": ["*-high"]}, set(), True),
        ({"models": ["gpt-5*", "o3"]}, set(), False),
        ({"groups": ["staff"], "models": ["gpt-5*"]}, {"staff"}, False),
    ],
)
def test_entry_is_for_groups_and_models(
    given: Json, groups: set[str], is_for: bool
) -> None:
    """A group by name or id, a model by the name that was asked for or its own."""
    asked = {"gpt-6.1-sol-high", "gpt-6.1-sol"}

    assert entry(api_key="sk", **given).is_for(groups, asked) is is_for


@pytest.mark.parametrize(
    "given",
    [
        {"api_key": "sk-own"},
        {"base_url": "https://other.example", "api_key": "sk-own"},
        {"base_url": "https://it.azure.com", "auth": "entra_id"},
    ],
)
def test_nothing_of_the_valves_account_goes_elsewhere(given: Json) -> None:
    """Neither its key nor what belongs to it, to another server or with another key."""
    valves = Valves.model_validate(SHARED)

    applied = valves.model_copy(update=entry(**given).valves())

    headers = build_endpoint(applied).headers()
    names = {"Authorization", "Content-Type"}
    names |= {"api-key"} if "auth" in given else set()
    assert set(headers) <= names
    assert "valves" not in json.dumps(headers)
    assert applied.FILE_SEARCH_VECTOR_STORES == ""
    assert given.get("base_url", valves.BASE_URL) == applied.BASE_URL
