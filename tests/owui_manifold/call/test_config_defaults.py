"""What a request says of its chat, its user and the administrator's wishes."""

from typing import Any

import pytest

from calls.sample import call_of, chat
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.prepare.chat import build_chat_request

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

CHAT = Caller("f.gpt-5.2", user_id="u-1", chat_id="c-1", message_id="m-1")
ELSEWHERE = Caller("f.gpt-5.2", user_id="u-1", chat_id="c-2", message_id="m-2")
SOMEBODY = Caller("f.gpt-5.2", user_id="u-2", chat_id="c-3", message_id="m-3")


async def defaults(caller: Caller = CHAT, **valves: Any) -> dict[str, Any]:
    given = Valves.model_validate({"API_KEY": "sk-1", **valves})
    prepared = await build_chat_request(call_of(chat("Hi"), given, caller))
    payload = prepared.request.payload()
    names = ("safety_identifier", "prompt_cache_key")
    return {name: payload[name] for name in names if name in payload}


async def test_a_user_is_one_stable_hash() -> None:
    """In every chat the same, of no other user, and not to be read."""
    mine = await defaults()
    mine_too = await defaults(ELSEWHERE)
    anothers = await defaults(SOMEBODY)
    assert mine["safety_identifier"] == mine_too["safety_identifier"]
    assert mine["safety_identifier"] != anothers["safety_identifier"]
    assert "u-1" not in str(mine)
    assert len(mine["safety_identifier"]) <= 64


@pytest.mark.parametrize(
    ("kind", "same_user_shares", "is_sent"),
    [("chat", False, True), ("user", True, True), ("off", True, False)],
)
async def test_cache_key_is_of_the_chat_or_of_the_user(
    kind: str, same_user_shares: bool, is_sent: bool
) -> None:
    """One for each chat, one for each user, or none."""
    here = (await defaults(CHAT, PROMPT_CACHE_KEY=kind)).get("prompt_cache_key")
    there = (await defaults(ELSEWHERE, PROMPT_CACHE_KEY=kind)).get("prompt_cache_key")
    assert (here == there) is same_user_shares
    assert "u-1" not in str(here)  # a hash
    assert (here is not None) is is_sent
    other = (await defaults(SOMEBODY, PROMPT_CACHE_KEY=kind)).get("prompt_cache_key")
    assert not is_sent or here != other


@pytest.mark.parametrize("word", ["id", "email"])
async def test_older_words_for_the_cache_key_mean_the_user(word: str) -> None:
    """Both mean the user; an address is never sent."""
    assert Valves.model_validate({"PROMPT_CACHE_KEY": word}).PROMPT_CACHE_KEY == "user"


async def test_without_a_chat_the_user_is_the_key() -> None:
    """A plain HTTP client has no chat; without a user nothing is sent."""
    plain = Caller("f.gpt-5.2", user_id="u-1")
    assert await defaults(plain) == await defaults(plain, PROMPT_CACHE_KEY="user")
    assert await defaults(Caller("f.gpt-5.2")) == {}
