"""Tokens are counted, and prompts cached, as at the API."""

from typing import Any

import pytest

from simulator.sealing import Seal, seal_content
from simulator.tokens import PromptCache
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

LONG = "All work and no play makes a dull stand-in. " * 200


def usage(reply: Any) -> Any:
    return reply.body["usage"]


def cached(reply: Any) -> int:
    return int(usage(reply)["input_tokens_details"]["cached_tokens"])


async def test_a_prefix_of_an_earlier_request_is_cached(client: Client) -> None:
    """When it is long enough; reasoning is part of the output."""
    first = await client.ask([{"role": "user", "content": LONG}])
    items = [
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Go on"},
    ]
    second = await client.ask(items)
    short = [await client.ask("Hello") for _ in range(2)]

    count = usage(second)
    assert cached(first) == cached(short[1]) == 0
    assert cached(second) % 128 == 0
    assert 0 <= usage(first)["input_tokens"] - cached(second) < 128 + 16
    written = count["input_tokens_details"]["cache_write_tokens"]
    assert written == count["input_tokens"] - cached(second)
    assert count["total_tokens"] == count["input_tokens"] + count["output_tokens"]
    thought = count["output_tokens_details"]["reasoning_tokens"]
    assert 0 < thought < count["output_tokens"]
    older = await client.ask(LONG, model="gpt-5.5")
    assert usage(older)["input_tokens_details"]["cache_write_tokens"] == 0


@pytest.mark.parametrize(
    ("change", "is_cached"),
    [
        ({"prompt_cache_key": "b"}, False),
        ({"model": "gpt-5.6-luna"}, False),
        ({"instructions": "Be brief."}, False),
        ({"reasoning": {"effort": "low"}}, False),
        ({"text": {"verbosity": "low"}}, False),
        ({"text": {"format": {"type": "json_object"}}}, False),
        ({"parallel_tool_calls": False}, False),
        ({"service_tier": "flex"}, False),
        ({"context_management": [{"type": "compaction"}]}, False),
        ({"key": "sk-simulator-2"}, False),
        ({"reasoning": {"effort": "medium"}}, True),
        ({"tool_choice": "none"}, True),
        ({"metadata": {"a": "b"}}, True),
        ({"max_output_tokens": 64}, True),
        ({"service_tier": "default"}, True),
    ],
)
async def test_what_changes_the_head_of_a_prompt(
    client: Client, change: dict[str, Any], is_cached: bool
) -> None:
    """A default that is said, and what is on no list, keep the cache."""
    fields = dict(change)
    key = fields.pop("key", "sk-simulator-1")
    body = client.body(f"{LONG} JSON", prompt_cache_key="a")
    await client.post(body)
    reply = await client.post({**body, **fields}, key=key)

    assert (cached(reply) > 1024) == is_cached


async def test_newer_models_never_cache_instructions(client: Client) -> None:
    """From 6.2 on they come after the input and are paid for in full every time."""
    for instructions in (LONG, LONG, f"{LONG}!"):
        reply = await client.ask(LONG, model="gpt-6.2-sol", instructions=instructions)
    plain = await client.ask(LONG, model="gpt-6.2-sol")

    assert usage(reply)["input_tokens"] > 1.9 * usage(plain)["input_tokens"]
    assert cached(reply) > 0.9 * usage(plain)["input_tokens"]
    assert usage(reply)["input_tokens_details"]["cache_write_tokens"] < 128
    assert usage(reply)["input_tokens"] - cached(reply) > 2000


async def test_sealed_reasoning_counts_where_it_is_whole() -> None:
    """What is given back unchanged is read from the cache, its thoughts included."""
    cache = PromptCache()
    content = seal_content(Seal("rs_1", "org", "gpt-6", "0" * 32, None, 64))
    sealed = b'"%s"' % content.encode()
    cache.read("k", b"a" * 8192 + sealed + b"b")

    assert cache.read("k", b"a" * 8192 + 2 * sealed) == 2048
    assert cache.read("k", b"a" * 8192 + 2 * sealed) == 2176
    assert cache.read("k", b"a" * 8192 + b'"gAAAAy"') == 2048
    assert cache.read("k", b"a" * 8192 + b'"gAAAAy"' * 2) == 2048
