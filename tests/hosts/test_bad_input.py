"""What goes wrong at the administrator's or the caller's end: a message each."""

import json

import pytest

from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import answered
from hosts.setup.pipes import PLUGINS, valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.1-sol"


async def refused(tab: Tab, admin: User, model: str = MODEL, **valves: str) -> str:
    """The message under an answer that was refused, the same once it is stored."""
    async with valves_changed(admin, PIPE, **valves):
        turn = await tab.send(model, "sim:short hello")
    stored = (await tab.message(turn))["error"]["content"]
    assert stored == turn.error
    return str(stored["message"])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("model", "valves", "words"),
    [
        (MODEL, {"API_KEY": ""}, "no API key yet"),
        (f"{PIPE}.gpt-99-unheard-of", {}, "gpt-99-unheard-of does not exist"),
    ],
    ids=["nothing is sent", "refused by the server"],
)
async def test_refusal_is_stored_as_the_error_of_the_message(
    tab: Tab, admin: User, model: str, valves: dict[str, str], words: str
) -> None:
    """One way through the host; tests/owui_manifold/test_pipe.py has each cause."""
    assert words in await refused(tab, admin, model, **valves)


@pytest.mark.asyncio
async def test_chat_without_messages_is_refused(
    member: User, simulator: Simulator
) -> None:
    """There is nothing to answer; nothing is sent."""
    answer = await member.call(
        "POST",
        "/api/chat/completions",
        {"model": MODEL, "messages": [], "stream": True},
    )

    assert "There is no message to answer" in json.dumps(answer)
    assert answered(simulator) == []


OLDER_HOST = (PLUGINS / "older_host.py").read_text()


@pytest.mark.asyncio
async def test_host_below_the_oldest_version_is_refused(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The message names both versions; nothing is sent or written."""
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
