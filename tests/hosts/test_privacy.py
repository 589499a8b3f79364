"""What lies in the database and in the log, and who can read it."""

import json
from typing import Any

import pytest

from hosts.open_webui import OpenWebUI
from hosts.pipes import valves_changed
from hosts.sent import chat_bodies, kinds
from hosts.tabs import Tab
from hosts.users import User
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.1-sol"
ANSWER, THOUGHT = "That is all for now.", "Reading the question"


def kept(chat: dict[str, Any]) -> str:
    """What our keys of a chat hold, as text."""
    ours = {k: v for k, v in chat.items() if k.startswith("openai_responses_pipe")}
    assert ours
    return json.dumps(ours)


def rest(chat: dict[str, Any]) -> str:
    """What the host keeps of a chat beside our keys, as text."""
    return json.dumps(
        {k: v for k, v in chat.items() if not k.startswith("openai_responses_pipe")}
    )


@pytest.mark.asyncio
async def test_with_encryption_our_keys_are_unreadable(
    tab: Tab, admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """The valve's help says what the host keeps in clear all the same: it does."""
    async with valves_changed(admin, PIPE, STORE_ENCRYPTION="on"):
        first = await tab.send(MODEL, "sim:chat hello")
        await tab.send(MODEL, "sim:short again", chat_id=first.chat_id)

    chat = server.stored_chat(first.chat_id)
    for text in (ANSWER, THOUGHT, "encrypted_content", "reasoning", "phase"):
        assert text not in kept(chat)
    assert ANSWER in rest(chat)
    assert THOUGHT in rest(chat)
    body = chat_bodies(simulator)[-1]
    assert kinds(body["input"]) == ["user", "reasoning", "assistant", "user"]
    schema = (await admin.valves_spec(PIPE))["properties"]
    told = schema["STORE_ENCRYPTION"]["description"]
    for word in ("text", "reasoning summaries", "tool cards", "shared or exported"):
        assert word in told


@pytest.mark.asyncio
async def test_without_encryption_the_reasoning_is_ciphertext_all_the_same(
    tab: Tab, server: OpenWebUI
) -> None:
    """OpenAI's own encryption stays; the summary can be read."""
    turn = await tab.send(MODEL, "sim:chat hello")

    chat = server.stored_chat(turn.chat_id)
    assert '"encrypted_content": "gAAAA' in kept(chat)
    assert THOUGHT in kept(chat)
    assert ANSWER not in kept(chat)


@pytest.mark.asyncio
async def test_a_changed_key_breaks_no_chat(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The items cannot be read any more; the chat goes on without them."""
    on = {"STORE_ENCRYPTION": "on", "STORE_ENCRYPTION_KEY": "first long random text"}
    async with valves_changed(admin, PIPE, **on):
        first = await tab.send(MODEL, "sim:short hello")
    async with valves_changed(admin, PIPE, **on | {"STORE_ENCRYPTION_KEY": "other"}):
        second = await tab.send(MODEL, "sim:short again", chat_id=first.chat_id)

    assert second.error is None
    body = chat_bodies(simulator)[-1]
    assert kinds(body["input"]) == ["user", "assistant", "user"]
    assert "openai_responses:" not in json.dumps(body)


@pytest.mark.asyncio
async def test_switching_encryption_loses_nothing(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """What was written one way is read the other way."""
    first = await tab.send(MODEL, "sim:short one")
    async with valves_changed(admin, PIPE, STORE_ENCRYPTION="on"):
        await tab.send(MODEL, "sim:short two", chat_id=first.chat_id)
    await tab.send(MODEL, "sim:short three", chat_id=first.chat_id)

    bodies = chat_bodies(simulator)
    assert [kinds(b["input"]).count("reasoning") for b in bodies] == [0, 1, 2]


@pytest.mark.asyncio
async def test_what_a_shared_or_exported_chat_reveals(
    tab: Tab, member: User, simulator: Simulator
) -> None:
    """The README says so: both carry our keys."""
    turn = await tab.send(MODEL, "sim:short hello")

    shared = await member.share_chat(turn.chat_id)
    seen = await member.call("GET", f"/api/v1/chats/share/{shared['share_id']}")

    assert '"encrypted_content": "gAAAA' in kept(seen["chat"])
    assert "gAAAA" in kept(await member.chat(turn.chat_id))


@pytest.mark.asyncio
async def test_the_audit_log_is_one_line_a_request(
    tab: Tab, admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """Request, then success or error, with one id and without a word of the chat."""
    before = len(server.log())
    async with valves_changed(admin, PIPE, AUDIT_LOG=True, MAX_RETRIES=0):
        await tab.send(MODEL, "sim:short canary-of-the-prompt")
        await tab.send(MODEL, "sim:quota canary-of-the-prompt")

    lines = [line for line in server.log()[before:].splitlines() if "_api_" in line]
    told = [json.loads(line[line.index("{") :]) for line in lines]
    assert [line["event"].removeprefix("responses_api_") for line in told] == [
        *("request", "success"),
        *("request", "error"),
    ]
    assert told[0]["request_id"] == told[1]["request_id"] != told[2]["request_id"]
    assert told[1]["response_model"] == "gpt-6.1-sol"
    assert (told[3]["status_code"], told[3]["use_custom_base_url"]) == (429, True)
    assert "canary-of-the-prompt" not in json.dumps(told)


@pytest.mark.asyncio
async def test_the_log_of_a_failure_is_for_administrators_who_want_it(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """As a source under the answer; a user who switched it on gets none."""
    want = {"SHOW_LOG_ON_ERROR": True}
    await admin.set_user_valves(PIPE, want)
    await tab.user.set_user_valves(PIPE, want)
    async with Tab(admin) as theirs:
        failed = await theirs.send(MODEL, "sim:failed hello")
        fine = await theirs.send(MODEL, "sim:short hello")
        stored = [await theirs.message(turn) for turn in (failed, fine)]
    users = await tab.send(MODEL, "sim:failed hello")
    for user in (admin, tab.user):
        await user.set_user_valves(PIPE, {"SHOW_LOG_ON_ERROR": False})

    (source,) = stored[0]["sources"]
    assert source["source"]["name"] == "Log of this answer"
    assert "server_error" in source["document"][0]
    assert not stored[1].get("sources")
    assert not (await tab.message(users)).get("sources")
