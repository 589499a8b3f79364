"""Entries of ENDPOINTS_JSON: whom they are for, and what they change."""

import json
from typing import Any

import pytest

from calls.facts import call_facts
from openai_responses.endpoint import Endpoint
from openai_responses.recent_texts import UserReports
from owui_administration.endpoints import (
    EndpointChoice,
    EndpointEntry,
    choose_endpoints,
    endpoint_trials,
    read_endpoints,
)
from owui_manifold.call.config import build_endpoint
from owui_manifold.call.valves import Valves
from stand_in.host import StandInHost

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
    [read], _ = read_endpoints(json.dumps([given]))
    return read


@pytest.mark.parametrize("text", ["", "  ", "[]", "{}", '""'])
def test_empty_text_has_no_entries(text: str) -> None:
    assert read_endpoints(text) == ([], "")


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("\n{", "ENDPOINTS_JSON is not JSON (line 2, column 2)"),
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
        ("[" * 500 + "]" * 500, "ENDPOINTS_JSON is not JSON"),
    ],
)
def test_unreadable_entry_is_used_for_nobody(text: str, mistake: str) -> None:
    """An entry may keep chats from a server, so it is not passed over.

    What is wrong is told without its values, which may be keys.
    """
    entries, told = read_endpoints(text)
    assert entries == ()
    assert mistake in told
    assert "canary" not in told


@pytest.mark.parametrize(
    ("given", "groups", "is_for"),
    [
        ({}, set(), True),
        ({"groups": ["staff"]}, {"staff", "id-1"}, True),
        ({"groups": ["id-1"]}, {"staff", "id-1"}, True),
        ({"groups": ["staff", "pupils"]}, {"others"}, False),
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
        {"base_url": "", "api_key": "sk-own"},  # OpenAI's own
        {"base_url": "https://it.azure.com", "auth": "entra_id"},
    ],
)
def test_nothing_of_the_valves_account_goes_elsewhere(given: Json) -> None:
    """Neither its key nor what belongs to it, to another server or with another key."""
    valves = Valves.model_validate(SHARED)

    applied = valves.model_copy(update=entry(**given).valves())

    endpoint = build_endpoint(applied)
    headers = endpoint.headers()
    names = {"Authorization", "Content-Type"}
    names |= {"api-key"} if "auth" in given else set()
    assert set(headers) <= names
    assert "valves" not in json.dumps(headers)
    assert applied.FILE_SEARCH_VECTOR_STORES == ""
    assert given.get("base_url", valves.BASE_URL) == applied.BASE_URL
    assert entry(**given).at(valves.BASE_URL).host == endpoint.host


EAST: Json = {"base_url": "https://east.example/v1", "api_key": "sk-east"}
WEST: Json = {"base_url": "https://west.example/v1", "api_key": "sk-west"}
NORTH: Json = {"base_url": "https://north.example/v1", "api_key": "sk-north"}
SILENT = "The model's server did not answer: asking the next one."
UNABLE = "The model's server could not answer: asking the next one."
LOST = "The earlier reasoning of this chat belongs to another server or account."


def choice(
    *entries: Json, failures: UserReports | None = None, user: str = "user-1"
) -> EndpointChoice:
    read = [entry(**given) for given in entries]
    return EndpointChoice(read, SHARED["BASE_URL"], failures or UserReports(), user)


def first_of(chosen: EndpointChoice) -> str:
    return chosen.valves()["BASE_URL"]


@pytest.mark.parametrize(
    ("kind", "code", "status", "asks_next", "is_down"),
    [
        ("unreachable", None, 0, True, True),
        ("unreadable", None, 200, True, True),
        ("first_event_timeout", None, 0, True, True),
        ("failed", "server_error", 200, True, True),
        ("failed", "rate_limit_exceeded", 200, True, True),
        ("failed", "insufficient_quota", 200, True, True),
        ("failed", "invalid_api_key", 400, True, True),
        ("failed", None, 401, True, True),
        ("failed", None, 429, True, True),
        ("failed", None, 500, True, True),
        ("failed", None, 499, False, False),
        ("failed", "model_not_found", 400, True, False),
        ("failed", None, 403, True, False),
        ("failed", None, 404, True, False),
        ("failed", "request_above_rate_limit", 429, True, False),
        ("failed", "flex_unavailable", 429, True, False),
        ("failed", "invalid_prompt", 400, False, False),
        ("failed", "cyber_policy", 403, False, False),
        ("cut", None, 200, False, False),
    ],
)
def test_failure_decides_who_is_asked_next(
    kind: str, code: str | None, status: int, *, asks_next: bool, is_down: bool
) -> None:
    """A server that is down is the last for a minute, for whoever met it."""
    failures = UserReports()
    chosen = choice(EAST, WEST, failures=failures)

    notice = chosen.mark_failed(kind, code, status)

    silent = kind in ("unreachable", "first_event_timeout")
    assert notice == ((SILENT if silent else UNABLE) if asks_next else "")
    assert first_of(chosen) == (WEST if asks_next else EAST)["base_url"]
    later = choice(EAST, WEST, failures=failures)
    assert first_of(later) == (WEST if is_down else EAST)["base_url"]
    other = choice(EAST, WEST, failures=failures, user="user-2")
    assert first_of(other) == EAST["base_url"]


def test_the_last_one_that_fails_is_the_end() -> None:
    """Its failure is remembered all the same; no chat returns to it meanwhile."""
    failures = UserReports()
    chosen = choice(WEST, failures=failures)

    assert chosen.mark_failed("unreachable", None, 0) == ""
    assert first_of(chosen) == WEST["base_url"]
    later = choice(WEST, EAST, NORTH, failures=failures)
    assert first_of(later) == EAST["base_url"]
    assert later.return_to("west.example", "") is False
    assert first_of(later) == EAST["base_url"]
    later.mark_failed("unreachable", None, 0)
    assert first_of(later) == NORTH["base_url"]


def scope_of(given: Json) -> str:
    return Endpoint(given["base_url"], given["api_key"]).reasoning_scope_id()


@pytest.mark.parametrize(
    ("host", "scope", "chosen", "can_read"),
    [
        ("east.example", scope_of(EAST), EAST, True),
        ("west.example", scope_of(WEST), WEST, True),
        ("north.example", scope_of(NORTH), NORTH, True),
        # Records of earlier versions name neither, or the server alone.
        ("", "", EAST, True),
        ("west.example", "", WEST, True),
        ("west.example", scope_of(EAST), EAST, False),
        ("gone.example", "", EAST, False),
        ("", "gone", EAST, False),
    ],
)
def test_chat_returns_to_the_account_that_wrote_its_reasoning(
    host: str, scope: str, chosen: Json, *, can_read: bool
) -> None:
    """If it is still for its user; else the first one says what is lost."""
    endpoints = choice(EAST, WEST, NORTH)

    returned = endpoints.return_to(host, scope)

    assert returned is (chosen is not EAST)
    assert first_of(endpoints) == chosen["base_url"]
    assert endpoints.lost_reasoning_notice(host, scope) == ("" if can_read else LOST)
    for _ in "12":
        endpoints.mark_failed("unreachable", None, 0)
    last = WEST if chosen is NORTH else NORTH
    assert first_of(endpoints) == last["base_url"]


def test_chat_does_not_return_to_an_address_that_cannot_be_used() -> None:
    """That of the valves, which the second entry has; nothing is asked of it."""
    entries = [entry(**EAST), entry(api_key="sk-2")]
    endpoints = EndpointChoice(entries, "none", UserReports(), "ada")

    assert endpoints.return_to("west.example", "") is False
    assert first_of(endpoints) == EAST["base_url"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("entries", "facts", "address"),
    [
        ([], {}, None),
        ([EAST], {}, "https://east.example/v1"),
        ([EAST], {"has_own_key": True}, None),
        ([{**EAST, "groups": ["staff"]}, WEST], {}, "https://east.example/v1"),
        ([{**EAST, "groups": ["pupils"]}, WEST], {}, "https://west.example/v1"),
        ([{**EAST, "groups": ["pupils"]}], {}, None),
        ([{**EAST, "models": ["gpt-6.1-sol"]}], {}, "https://east.example/v1"),
        ([{**EAST, "models": ["*-high"]}], {}, "https://east.example/v1"),
    ],
)
async def test_first_entry_for_user_and_model_answers(
    entries: list[Json], facts: Json, address: str | None, host: StandInHost
) -> None:
    """Where none is for them, and with a key of one's own, the valves decide."""
    host.groups.members = {"staff": {"user-1"}, "pupils": {"user-2"}}
    call = call_facts(user_id="user-1", model="gpt-6.1-sol-high", **facts)

    chosen = await choose_endpoints(json.dumps(entries), call, UserReports())

    assert (first_of(chosen) if chosen else None) == address
    assert not (chosen and chosen.problem)
    assert len(host.groups.users_asked) == any("groups" in entry for entry in entries)


@pytest.mark.asyncio
async def test_unreadable_entries_answer_nobody() -> None:
    """Also with a key of one's own: it may be for an address that is meant otherwise."""
    call = call_facts(user_id="user-1", model="gpt-6.1-sol", has_own_key=True)

    chosen = await choose_endpoints('[{"groups": "x"}]', call, UserReports())

    assert chosen
    assert "Entry 1 of ENDPOINTS_JSON: `groups` has a wrong value" in chosen.problem
    assert "so nothing is sent" in chosen.problem


@pytest.mark.parametrize(
    ("models", "asked"),
    [
        (["gpt-6.1-sol", "gpt-5.2"], ["gpt-6.1-sol", "gpt-5.2", "gpt-6.1-sol"]),
        (["gpt-5.2-high"], ["gpt-5.2-high", "gpt-5.2-high", "gpt-5.2-high"]),
        ([], ["", "", ""]),
    ],
)
def test_each_entry_is_tried_with_a_model_that_it_is_for(
    models: list[str], asked: list[str]
) -> None:
    """Whomever it is for; without such a model with the first one."""
    text = json.dumps(
        [
            {**EAST, "groups": ["staff"]},
            {**WEST, "models": ["gpt-5.2"]},
            {**NORTH, "models": ["o3"]},
        ]
    )

    trials = endpoint_trials(text, SHARED["BASE_URL"], models)

    assert [trial.model for trial in trials] == asked
    for trial, given in zip(trials, (EAST, WEST, NORTH), strict=True):
        assert trial.endpoints.valves()["BASE_URL"] == given["base_url"]
        assert trial.endpoints.mark_failed("unreachable", None, 0) == ""


def test_entries_that_cannot_be_read_are_not_tried() -> None:
    assert endpoint_trials("{", SHARED["BASE_URL"], ["gpt-5.2"]) == []


def test_entry_with_tokens_sends_no_key() -> None:
    """One may be left in it from before."""
    own = entry(base_url="https://it.azure.com", auth="entra_id", api_key="sk-old")
    assert own.is_complete
    assert own.key == own.valves()["API_KEY"] == ""


def test_key_of_an_entry_is_read_as_it_is_copied() -> None:
    """The pipe reads it so, and reasoning belongs to the key."""
    own = entry(api_key=" 'Bearer sk-1' ", organization=" org ")
    assert (own.key, own.at("").organization) == ("sk-1", "org")
