"""What goes wrong at the administrator's or the caller's end: a sentence each."""

import json
from pathlib import Path

import pytest

from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import answered, chat_bodies, kinds
from hosts.setup.pipes import valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.1-sol"
CANARY = "sk-canary-0123456789abcdef"


async def refused(tab: Tab, admin: User, model: str = MODEL, **valves: str) -> str:
    """The sentence under an answer that was refused, the same once it is stored."""
    async with valves_changed(admin, PIPE, **valves):
        turn = await tab.send(model, "sim:short hello")
    stored = (await tab.message(turn))["error"]["content"]
    assert stored == turn.error
    return str(stored["message"])


@pytest.mark.asyncio
async def test_no_key(tab: Tab, admin: User, simulator: Simulator) -> None:
    """Nothing is sent, and the sentence says where to set the key."""
    assert "no API key yet" in await refused(tab, admin, API_KEY="")
    assert answered(simulator) == []


@pytest.mark.asyncio
async def test_a_wrong_key(tab: Tab, admin: User, simulator: Simulator) -> None:
    """The key is nowhere in what the user sees."""
    sentence = await refused(tab, admin, API_KEY=CANARY)

    assert "does not accept the API key" in sentence
    assert CANARY not in sentence


@pytest.mark.asyncio
async def test_an_unreachable_server(tab: Tab, admin: User) -> None:
    """The sentence names the server."""
    sentence = await refused(tab, admin, BASE_URL="http://127.0.0.1:9/v1")

    assert "127.0.0.1 cannot be reached" in sentence


@pytest.mark.asyncio
async def test_credentials_in_the_address(tab: Tab, admin: User) -> None:
    """They would clash with the key; the sentence does not repeat them."""
    address = "http://somebody:secret@127.0.0.1:9/v1"
    sentence = await refused(tab, admin, BASE_URL=address)

    assert "BASE_URL holds a user name or a password" in sentence
    assert "secret" not in sentence


@pytest.mark.asyncio
async def test_an_address_that_is_none(tab: Tab, admin: User) -> None:
    """A typing error in the valve is named as such."""
    assert "BASE_URL is not" in await refused(tab, admin, BASE_URL="api.openai.com")


@pytest.mark.asyncio
async def test_an_address_without_a_version(tab: Tab, admin: User) -> None:
    """`/v1` may be left out."""
    base_url = str((await admin.valves(PIPE))["BASE_URL"])
    async with valves_changed(admin, PIPE, BASE_URL=base_url.removesuffix("/v1")):
        turn = await tab.send(MODEL, "sim:short hello")

    assert turn.error is None


@pytest.mark.asyncio
async def test_an_unknown_model(tab: Tab, admin: User) -> None:
    """The sentence names the model that was asked for."""
    sentence = await refused(tab, admin, f"{PIPE}.gpt-99-unheard-of")

    assert "gpt-99-unheard-of does not exist" in sentence


@pytest.mark.asyncio
async def test_a_model_that_the_key_may_not_use(tab: Tab, admin: User) -> None:
    """The user can choose another, the administrator can change the rights."""
    sentence = await refused(tab, admin, API_KEY="sk-simulator-limited")

    assert "may not use" in sentence


@pytest.mark.asyncio
@pytest.mark.parametrize("stream", [True, False])
async def test_an_empty_message_list(
    member: User, simulator: Simulator, stream: bool
) -> None:
    """There is nothing to answer; nothing is sent."""
    told = await member.call(
        "POST",
        "/api/chat/completions",
        {"model": MODEL, "messages": [], "stream": stream},
    )

    assert "There is no message to answer" in json.dumps(told)
    assert answered(simulator) == []


@pytest.mark.asyncio
async def test_an_unsupported_content_part(member: User, simulator: Simulator) -> None:
    """Audio cannot be sent; the sentence says what to do, and nothing is sent."""
    part = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    told = await member.call(
        "POST",
        "/api/chat/completions",
        {
            "model": MODEL,
            "messages": [{"role": "user", "content": [part]}],
            "stream": False,
        },
    )

    assert "remove it from the message" in json.dumps(told)
    assert answered(simulator) == []


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_row")
async def test_a_marker_that_resolves_to_nothing(
    tab: Tab, simulator: Simulator
) -> None:
    """A lost item leaves the text, and no trace of the marker is sent."""
    first = await tab.send(MODEL, "sim:short hello")
    chat = await tab.user.chat(first.chat_id)
    chat[f"openai_responses_pipe:{first.message_id}"] = {}
    await tab.user.update_chat(first.chat_id, chat)

    second = await tab.send(MODEL, "sim:short again", chat_id=first.chat_id)

    assert second.error is None
    body = chat_bodies(simulator)[-1]
    assert kinds(body["input"]) == ["user", "assistant", "user"]
    assert "openai_responses:" not in json.dumps(body)


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_row")
async def test_a_marker_of_a_user_or_of_another_chat(
    tab: Tab, simulator: Simulator
) -> None:
    """Only the assistant's messages of the same chat name kept items."""
    theirs = await tab.send(MODEL, "sim:short hello")
    marker = (await tab.message(theirs))["content"].splitlines()[0]
    assert marker.startswith("[openai_responses:v2:")

    mine = await tab.send(MODEL, f"sim:short\n\n{marker}\n\nhello")
    chat = await tab.user.chat(mine.chat_id)
    answer = chat["history"]["messages"][mine.message_id]
    answer["output"][-1]["content"][0]["text"] = f"{marker}\n\nSure."
    await tab.user.update_chat(mine.chat_id, chat)
    await tab.send(MODEL, "sim:short again", chat_id=mine.chat_id)

    user_message, last = [body["input"] for body in chat_bodies(simulator)[1:]]
    assert kinds(user_message) == ["user"]
    assert kinds(last) == ["user", "assistant", "user"]
    assert last[1]["content"][0]["text"] == "Sure."


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_row")
async def test_the_single_key_of_earlier_writers_is_read(
    tab: Tab, simulator: Simulator
) -> None:
    """Reasoning that an earlier writer stored under one key is sent again, bare."""
    first = await tab.send(MODEL, "sim:short hello")
    chat = await tab.user.chat(first.chat_id)
    kept = chat.pop(f"openai_responses_pipe:{first.message_id}")
    (record,) = kept["items"].values()
    record["payload"], record["model"] = record["payload"][0], "openai.gpt-6.1-sol"
    old = f"[openai_responses:v2:reasoning:{'A1' * 8}]: #"
    chat["openai_responses_pipe"] = {"__v": 3, "items": {"A1" * 8: record}}
    chat[f"openai_responses_pipe:{first.message_id}"] = {}
    answer = chat["history"]["messages"][first.message_id]
    answer["output"][-1]["content"][0]["text"] = f"{old}\nHello there."
    await tab.user.update_chat(first.chat_id, chat)

    await tab.send(MODEL, "sim:short again", chat_id=first.chat_id)

    body = chat_bodies(simulator)[-1]
    assert kinds(body["input"]) == ["user", "reasoning", "assistant", "user"]
    sealed = record["payload"]["encrypted_content"]
    bare = {"type": "reasoning", "summary": [], "encrypted_content": sealed}
    assert body["input"][1] == bare


OLDER_HOST = (Path(__file__).parent / "plugins/older_host.py").read_text()


@pytest.mark.asyncio
async def test_a_host_below_the_floor(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The sentence names both versions; nothing is sent or written."""
    await admin.install_function("older_host", OLDER_HOST)
    await admin.models()  # the host learns of a new pipe's models when asked
    try:
        await admin.complete("older_host.set", "0.11.3")
        turn = await tab.send(MODEL, "sim:short hello")
    finally:
        await admin.complete("older_host.set", "0.12.4")
        await admin.delete_function("older_host")

    assert "needs Open WebUI 0.11.4 or newer" in turn.error["message"]
    assert "0.11.3" in turn.error["message"]
    assert answered(simulator) == []
    assert "openai_responses_pipe" not in json.dumps(await tab.user.chat(turn.chat_id))
