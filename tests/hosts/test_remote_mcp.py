"""Remote MCP servers in the real Open WebUI: cards, consent, memory."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.browser.page import PICTURES, RESTS, ChatPage
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import assert_nothing_dropped, chat_bodies, outputs
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import MODEL, PIPE, valves_changed
from openai_responses.requests.replay import refused_pair, replay_items, replay_output
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

SECRET = "canary-of-the-clocks"
SERVERS = [
    {
        "server_label": "clocks",
        "server_url": "https://clocks.example/mcp",
        "authorization": SECRET,
    }
]
NO = "Nobody was there to approve this call of clocks_now. Continue without it."


@pytest_asyncio.fixture(autouse=True)
async def servers(admin: User, pipe: list[str]) -> AsyncIterator[None]:
    """A remote server in the valves, while a test of this file runs."""
    async with valves_changed(admin, PIPE, REMOTE_MCP_SERVERS_JSON=json.dumps(SERVERS)):
        yield


def cards(message: Json) -> list[Json]:
    return [item for item in message["output"] if "call_id" in item]


def inputs(simulator: Simulator) -> list[list[Json]]:
    return [body["input"] for body in chat_bodies(simulator)]


def lines(message: Json) -> list[str]:
    """The stored status lines, but for the one that sums the answer up."""
    descriptions = [line["description"] for line in message.get("statusHistory", [])]
    return [line for line in descriptions if not line.startswith("Finished in")]


@pytest.mark.asyncio
async def test_a_call_is_shown_stored_and_remembered(
    tab: Tab, simulator: Simulator, server: OpenWebUI
) -> None:
    """One of the host's own cards; the next turn sends it, and the list once."""
    first = await tab.send(MODEL, "sim:mcp what time is it?")
    second = await tab.send(MODEL, "sim:mcp and now?", chat_id=first.chat_id)

    assert first.error is second.error is None
    call, output = cards(await tab.message(first))
    assert (call["name"], call["arguments"]) == ("clocks_now", '{"zone":"UTC"}')
    assert (call["status"], output["status"]) == ("completed", "completed")
    assert output["output"] == [{"type": "input_text", "text": "12:00"}]
    assert lines(await tab.message(first)) == ["clocks offers 2 tools."]
    before, after = inputs(simulator)
    received = replay_output(outputs(simulator)[0], with_reasoning=True)
    assert after[: len(before) + len(received)] == [*before, *received]
    assert [item["type"] for item in after].count("mcp_list_tools") == 1
    assert "mcp_list_tools" not in [i["type"] for i in outputs(simulator)[1]]
    assert_nothing_dropped(simulator)
    assert SECRET not in json.dumps(server.stored_chat(first.chat_id))
    assert SECRET not in json.dumps([first.events, second.events])


@pytest.mark.asyncio
async def test_call_runs_only_after_consent(tab: Tab, simulator: Simulator) -> None:
    """The host's card asks; only a clear yes lets the call be made."""
    for answer in (True, None):
        simulator.forget()
        await assert_consent_decides(tab, simulator, answer)


async def assert_consent_decides(
    tab: Tab, simulator: Simulator, answer: bool | None
) -> None:
    """What is asked, made, shown and sent again, after one answer of the person."""
    asked = tab.answer_questions(answer)
    first = await tab.send(MODEL, "sim:mcp-approval what time is it?")
    second = await tab.send(MODEL, "sim:mcp and now?", chat_id=first.chat_id)

    assert first.error is second.error is None
    [question] = asked
    assert question["tool_call"]["name"] == "clocks_now"
    assert question["tool_call"]["arguments"] == {"zone": "UTC"}
    [_, resumed, later] = inputs(simulator)
    request, response = resumed[-2:]
    assert response["approval_request_id"] == request["id"]
    assert response["approve"] is (answer is True)
    call, output = cards(await tab.message(first))
    status = "completed" if answer else "failed"
    assert (call["status"], output["status"]) == (status, status)
    made = [item for item in outputs(simulator)[1] if item["type"] == "mcp_call"]
    pair = replay_items(made[0]) if answer else refused_pair(request, NO)
    assert [item for item in later if "call_id" in item] == pair
    assert not [item for item in later if item["type"].startswith("mcp_approval")]
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_stop_leaves_no_open_call(tab: Tab, simulator: Simulator) -> None:
    """The host runs nothing of it, and the chat goes on."""
    turn = await tab.begin(MODEL, "sim:mcp,stall=23")
    await turn.until(lambda seen: "clocks_now" in json.dumps(seen.events))
    await tab.stop(turn)
    await tab.settle(turn)
    after = await tab.send(MODEL, "sim:short go on", chat_id=turn.chat_id)

    assert after.error is None
    assert not [i for i in inputs(simulator)[-1] if "call_id" in i]
    assert {request.status for request in simulator.requests} == {200}


@pytest.mark.asyncio
@pytest.mark.browser
async def test_page_shows_the_call_and_asks(
    page: ChatPage, simulator: Simulator
) -> None:
    """The question with its arguments, then the card, also when the chat is opened again."""
    await page.open_model(MODEL)
    await page.ask("sim:mcp-approval what time is it?", wait=False)
    allow = page.page.get_by_role("button", name="Allow", exact=True)
    await allow.wait_for()
    await page.screenshot(PICTURES / "remote-mcp-consent.png")
    await allow.click()

    await page.page.get_by_text("1 of the calls were made").wait_for()
    await page.open_again()
    await page.page.get_by_text("clocks_now").first.click()
    await page.page.get_by_text("View Result from").click()
    for word in ("UTC", "12:00"):
        await page.page.get_by_text(word, exact=True).first.wait_for()
    await page.page.wait_for_function(RESTS)
    await page.screenshot(PICTURES / "remote-mcp-call.png")
    assert page.errors == []
