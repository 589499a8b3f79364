"""OpenAI's searches in a real Open WebUI: offered, shown, cited, given back."""

import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.browser.page import PICTURES, ChatPage
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User, permissions
from hosts.sent import (
    assert_nothing_dropped,
    chat_bodies,
    host_items,
    kinds,
    outputs,
    stripped,
)
from hosts.servers.website import Website
from hosts.setup.pipes import MODEL, PIPE, install_pipe, valves_changed
from owui_chat.storage.markers import strip_markers
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

SWITCHED = {"features": {"web_search": True}}
PAGES = [
    "https://www.harbour.example/chronicle?year=1963",
    "https://almanac.example/ice_(lake)",
    "https://museum.example/ships#frozen",
]
SHOWN = "The harbour froze in 1963. [1] The ice was 40 cm thick [2], and no ship left"


@pytest_asyncio.fixture
async def searching(admin: User) -> AsyncIterator[None]:
    async with valves_changed(admin, PIPE, ENABLE_WEB_SEARCH=True):
        yield


def offered(simulator: Simulator) -> list[str]:
    return [tool["type"] for tool in chat_bodies(simulator)[-1].get("tools", [])]


def same(item: Json) -> Json:
    """An item without what may differ when it is given back."""
    kept = stripped(item)
    if "action" in kept:
        kept["action"] = {k: v for k, v in kept["action"].items() if k != "sources"}
    return kept


def assert_prefixes(simulator: Simulator) -> None:
    """Each request begins with the one before it and its answer, but for ids."""
    bodies = chat_bodies(simulator)
    received = outputs(simulator)
    for before, output, after in zip(bodies, received, bodies[1:], strict=False):
        expected = [same(item) for item in [*before["input"], *output]]
        assert [same(item) for item in after["input"][: len(expected)]] == expected
    assert_nothing_dropped(simulator)


def text_of(stored: Json) -> str:
    """The text of a stored answer, without a line that names kept items."""
    return strip_markers(str(stored["content"]))


@pytest.mark.asyncio
@pytest.mark.usefixtures("searching")
async def test_a_search_is_shown_cited_and_sent_again(
    tab: Tab, simulator: Simulator
) -> None:
    """Its cards, the pages it found, numbers in the text, sources in their order.

    The next turn sends the searches and the model's own links, so that its reasoning
    stays valid. A page with streaming off gets the sources, too.
    """
    turn = await tab.send(MODEL, "sim:web-search When did it freeze?")
    again = await tab.send(MODEL, "sim:chat thanks", chat_id=turn.chat_id)

    stored = await tab.message(turn)
    assert turn.error is again.error is None
    assert [item["type"] for item in host_items(stored)] == [
        *("reasoning", "web_search_call", "reasoning"),
        *("web_search_call", "web_search_call", "message"),
    ]
    assert text_of(stored).startswith(SHOWN)
    assert "an array such as `[0, 1]` stays as it is. [3]" in stored["content"]
    sources = stored["sources"]
    assert [source["source"]["url"] for source in sources] == PAGES
    assert sources[0]["source"]["name"] == "The chronicle of the harbour"
    (status,) = [s for s in stored["statusHistory"] if s.get("action") == "web_search"]
    assert status["urls"] == PAGES[:2]
    shown = [
        event for event in turn.events if "openai_responses:kept" not in str(event)
    ]
    assert "utm_source" not in str([host_items(stored), sources, shown])
    first, second = chat_bodies(simulator)
    assert first["tools"][0]["user_location"] == {"type": "approximate"}
    assert_prefixes(simulator)
    assert kinds(second["input"]) == [
        *("user", "reasoning", "web_search_call", "reasoning"),
        *("web_search_call", "web_search_call", "assistant", "user"),
    ]
    assert "utm_source=openai" in second["input"][-2]["content"][0]["text"]

    off = await tab.send(MODEL, "sim:web-search When?", body={"stream": False})
    whole = await tab.message(off)
    assert text_of(whole).startswith(SHOWN)
    rows = [row for source in whole["sources"] for row in source["metadata"]]
    assert [row["source"] for row in rows] == PAGES


@pytest_asyncio.fixture
async def research(
    admin: User, pipe_source: str, pipe_valves: dict[str, str]
) -> AsyncIterator[str]:
    """A model that researches, in the background, of a pipe of its own."""
    given = {
        "MODEL_ID": "gpt-6.2-sol-research",
        "BACKGROUND_MODELS": "*-research",
        "SHOW_COST": True,
    }
    valves = {**pipe_valves, **given}
    (model,) = await install_pipe(admin, "research", pipe_source, valves)
    yield model
    await admin.delete_function("research")


def assert_researched(stored: Json, sent: Json) -> None:
    """An answer with its searches and sources, within the ceiling."""
    assert text_of(stored).startswith(SHOWN)
    rows = [row for source in stored["sources"] for row in source["metadata"]]
    assert [row["source"] for row in rows] == PAGES
    cards = [item["type"] for item in host_items(stored)]
    assert cards.count("web_search_call") == 3
    lines = [str(status.get("description")) for status in stored["statusHistory"]]
    assert lines[0].startswith("Research takes several minutes: at most 60 searches")
    assert "Searched 2 sites for" in " ".join(lines)
    assert re.search(r" · \$0\.0[3-9]", lines[-1])  # three searches, one cent each
    assert sent["tools"][0]["return_token_budget"] == "unlimited"
    assert (sent["background"], sent["max_tool_calls"]) == (True, 60)
    assert sent["max_output_tokens"] == 64_000


@pytest.mark.asyncio
async def test_research_survives_a_closed_tab(
    member: User, research: str, simulator: Simulator
) -> None:
    """The answer is there when somebody opens the chat again."""
    async with Tab(member) as closed:
        turn = await closed.begin(research, "sim:web-search,hold=9 When did it freeze?")
        await turn.until(lambda seen: seen.statuses)
    simulator.release()
    async with Tab(member) as opened:
        stored = await opened.ended_message(turn)

    assert_researched(stored, chat_bodies(simulator)[0])


@pytest.mark.asyncio
async def test_who_turns_the_search_on(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The page's switch does where the host allows the user to search.

    Unless the user chose otherwise, or it is not mapped.
    """
    await tab.send(MODEL, "sim:web-search When?", body=SWITCHED)
    assert "web_search" not in offered(simulator)
    async with Website() as site, site.reachable(admin):
        await tab.send(MODEL, "sim:web-search When?", body=SWITCHED)
        assert offered(simulator)[0] == "web_search"
        names = {tool.get("name") for tool in chat_bodies(simulator)[-1]["tools"]}
        assert not {"search_web", "fetch_url"} & names

        async with permissions(admin, "features", web_search=False):
            await tab.send(MODEL, "sim:web-search When?", body=SWITCHED)
        assert "web_search" not in offered(simulator)

        await tab.user.set_user_valves(PIPE, {"WEB_SEARCH": "off"})
        await tab.send(MODEL, "sim:web-search When?", body=SWITCHED)
        assert "web_search" not in offered(simulator)
        names = {tool.get("name") for tool in chat_bodies(simulator)[-1]["tools"]}
        assert {"search_web", "fetch_url"} <= names  # the switch means Open WebUI's

        await tab.user.set_user_valves(PIPE, {"WEB_SEARCH": "on"})
        await tab.send(MODEL, "sim:web-search When?")
        assert "web_search" in offered(simulator)

        await tab.user.set_user_valves(PIPE, {"WEB_SEARCH": "inherit"})
        async with valves_changed(admin, PIPE, MAP_WEB_SEARCH=False):
            await tab.send(MODEL, "sim:web-search When?", body=SWITCHED)
        assert "web_search" not in offered(simulator)


@pytest.mark.asyncio
async def test_a_search_in_files_names_them(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """As sources, and after the words that cite them."""
    stores = "vs_harbour, vs_log"
    async with valves_changed(admin, PIPE, FILE_SEARCH_VECTOR_STORES=stores):
        turn = await tab.send(MODEL, "sim:file-search When did it burn?")
        await tab.send(MODEL, "sim:chat thanks", chat_id=turn.chat_id)

    stored = await tab.message(turn)
    assert "built in 1902[1]. It burned in 1963, as the log tells[2]." in (
        stored["content"]
    )
    names = [name for source in stored["sources"] for name in source["document"]]
    assert names == ["harbour.pdf", "log-1963.md"]
    (card,) = [i for i in stored["output"] if i["type"] == "file_search_call"]
    assert card["queries"] == ["pier", "fire at the pier"]
    assert_prefixes(simulator)


@pytest.mark.asyncio
@pytest.mark.browser
@pytest.mark.usefixtures("searching")
async def test_page_shows_searches_and_their_sources(
    page: ChatPage, simulator: Simulator
) -> None:
    """Each stage while it lasts; then pages, queries and thoughts that open.

    A copied answer has the addresses as definitions of links, which the page neither
    draws nor reads aloud.
    """
    await page.open_model(MODEL)
    await page.watch("ing")  # Thinking, Exploring

    await page.ask("sim:web-search,delay=30 When did it freeze?")

    seen = await page.seen()
    assert any("Thinking..." in text for text in seen)
    assert any("Exploring Web Search" in text for text in seen)
    line = "Searched 2 sites for when did the harbour freeze, thickness of the ice"
    assert any(line in text for text in seen)
    assert not any("utm_source" in text or "](" in text for text in seen)
    answer = await page.last_answer()
    for part in ("Explored 3 Web Search", "The chronicle of the harbour", "3 Sources"):
        assert part in answer
    await page.screenshot(PICTURES / "web-search.png")

    for opened_again in (False, True):
        if opened_again:
            await page.open_again()
        answer = await page.last_answer()
        assert "]: http" not in answer
        assert "The chronicle of the harbour" in answer  # the number is a button
        copied = await page.copy_last()
        assert copied.startswith(SHOWN)
        for number, address in enumerate(PAGES, 1):
            assert f"\n[{number}]: {address} " in copied

    for label in ("Toggle status history", "Toggle details"):
        await page.page.get_by_label(label).first.click()
    for row in await page.page.get_by_text("View Result from").all():
        await row.click()
    for text in ("Search: when did", "Open page: https://www.harbour.example"):
        await page.page.get_by_text(text).first.wait_for()
    await page.screenshot(PICTURES / "web-search-open.png")
    await page.page.get_by_label("View source: Ice on the lake").click()
    await page.page.locator('a[href^="https://almanac.example/ice"]').first.wait_for()
    await page.screenshot(PICTURES / "web-search-source.png")
