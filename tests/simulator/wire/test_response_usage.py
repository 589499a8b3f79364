"""Tokens are counted as the API counts them."""

from typing import Any

import pytest

from simulator.sealing import Seal, seal_content
from simulator.tokens import PromptCache, count_common_prefix, count_tokens
from upstream.simulated import Client

LONG = "All work and no play makes a dull stand-in. " * 200


def usage(reply: Any) -> Any:
    """Return the usage of an answer."""
    return reply.body["usage"]


@pytest.mark.asyncio
async def test_a_prefix_of_an_earlier_request_is_cached(client: Client) -> None:
    """A second turn finds the first in the cache, when it is long enough."""
    first = await client.ask([{"role": "user", "content": LONG}], prompt_cache_key="a")
    items = [
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Go on"},
    ]
    second = await client.ask(items, prompt_cache_key="a")

    assert usage(first)["input_tokens_details"]["cached_tokens"] == 0
    known = usage(second)["input_tokens_details"]["cached_tokens"]
    assert known % 128 == 0
    assert 0 <= usage(first)["input_tokens"] - known < 128 + 16
    assert usage(second)["input_tokens_details"]["cache_write_tokens"] == (
        usage(second)["input_tokens"] - known
    )


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"prompt_cache_key": "b"}, "sk-simulator-1"),
        ({"model": "gpt-5.6-luna"}, "sk-simulator-1"),
        ({"instructions": "Be brief."}, "sk-simulator-1"),
        ({"reasoning": {"effort": "low"}}, "sk-simulator-1"),
        ({"text": {"verbosity": "low"}}, "sk-simulator-1"),
        ({"text": {"format": {"type": "json_object"}}}, "sk-simulator-1"),
        ({"parallel_tool_calls": False}, "sk-simulator-1"),
        ({"service_tier": "flex"}, "sk-simulator-1"),
        ({"context_management": [{"type": "compaction"}]}, "sk-simulator-1"),
        ({}, "sk-simulator-2"),
    ],
)
async def test_changed_head_or_key_is_not_cached(
    client: Client, change: dict[str, Any], key: str
) -> None:
    """Another key, model, head, setting or organization shares nothing."""
    body = client.body(f"{LONG} JSON", prompt_cache_key="a")
    await client.post(body)
    reply = await client.post({**body, **change}, key=key)

    assert usage(reply)["input_tokens_details"]["cached_tokens"] == 0


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "change",
    [
        {"reasoning": {"effort": "medium"}},
        {"tool_choice": "none"},
        {"metadata": {"a": "b"}},
        {"max_output_tokens": 64},
        {"service_tier": "default"},
    ],
)
async def test_explicit_defaults_keep_the_cache(
    client: Client, change: dict[str, Any]
) -> None:
    """A default that is said, and what is on no list."""
    body = client.body(LONG)
    await client.post(body)
    reply = await client.post({**body, **change})

    assert usage(reply)["input_tokens_details"]["cached_tokens"] > 1024


@pytest.mark.asyncio
async def test_newer_models_never_cache_instructions(client: Client) -> None:
    """From 6.2 on they come after the input and are paid for in full every time."""
    for instructions in (LONG, LONG, f"{LONG}!"):
        reply = await client.ask(LONG, model="gpt-6.2-sol", instructions=instructions)
    plain = await client.ask(LONG, model="gpt-6.2-sol")

    count = usage(reply)
    details = count["input_tokens_details"]
    assert count["input_tokens"] > 1.9 * usage(plain)["input_tokens"]
    assert details["cached_tokens"] > 0.9 * usage(plain)["input_tokens"]
    uncached = count["input_tokens"] - details["cached_tokens"]
    assert details["cache_write_tokens"] < 128
    assert uncached > 2000


@pytest.mark.asyncio
async def test_forgetting_empties_record_and_cache(client: Client) -> None:
    """forget() empties record and cache."""
    await client.ask(LONG)
    client.simulator.forget()
    reply = await client.ask(LONG)

    assert usage(reply)["input_tokens_details"]["cached_tokens"] == 0
    assert len(client.simulator.requests) == 1


@pytest.mark.asyncio
async def test_short_prompts_are_not_cached(client: Client) -> None:
    """Less than 1,024 tokens in common count as nothing."""
    await client.ask("Hello")
    reply = await client.ask("Hello")

    details = usage(reply)["input_tokens_details"]
    assert details == {"cached_tokens": 0, "cache_write_tokens": 0}


@pytest.mark.asyncio
async def test_older_models_count_no_cache_writes(client: Client) -> None:
    """Cache writes are counted from 5.6 on."""
    reply = await client.ask(LONG, model="gpt-5.5")

    assert usage(reply)["input_tokens_details"]["cache_write_tokens"] == 0


@pytest.mark.asyncio
async def test_reasoning_is_part_of_the_output(client: Client) -> None:
    """Reasoning is part of the output; total is input with output."""
    count = usage(await client.ask())

    assert (
        0 < count["output_tokens_details"]["reasoning_tokens"] < count["output_tokens"]
    )
    assert count["total_tokens"] == count["input_tokens"] + count["output_tokens"]


@pytest.mark.parametrize(
    ("left", "right", "shared"),
    [(b"", b"abc", 0), (b"abc", b"abd", 2), (b"abc", b"abc", 3), (b"ab", b"abc", 2)],
)
def test_shared_bytes_at_the_head_are_counted(
    left: bytes, right: bytes, shared: int
) -> None:
    """The shared bytes at the head are counted."""
    assert count_common_prefix(left, right) == shared


def test_the_longest_of_several_counts() -> None:
    """The cache compares with all it saw under a key."""
    cache = PromptCache()
    cache.read("k", b"a" * 8000)
    cache.read("k", b"a" * 6000 + b"b")

    assert cache.read("k", b"a" * 7000 + b"c") == 1664
    assert count_tokens("four") == 1


def test_sealed_reasoning_counts_where_it_is_whole() -> None:
    """What is given back unchanged is read from the cache, its thoughts included."""
    cache = PromptCache()
    content = seal_content(Seal("rs_1", "org", "gpt-6", "0" * 32, None, 64))
    sealed = b'"%s"' % content.encode()
    cache.read("k", b"a" * 8192 + sealed + b"b")

    assert cache.read("k", b"a" * 8192 + 2 * sealed) == 2048
    assert cache.read("k", b"a" * 8192 + 2 * sealed) == 2176
    assert cache.read("k", b"a" * 8192 + b'"gAAAAy"') == 2048
    assert cache.read("k", b"a" * 8192 + b'"gAAAAy"' * 2) == 2048
