"""What a person sees: the real page in Chromium."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import expect

from hosts.browser.chromium import Chromium
from hosts.browser.page import PICTURES, ChatPage
from hosts.people.users import User
from hosts.sent import chat_bodies, kinds
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.browser,
    pytest.mark.usefixtures("pipe", "simulator"),
]

MODEL = "openai_responses.gpt-6.1-sol"
SIGN = "openai_responses:"
SURROUNDINGS = "list", "table", "quote", "unclosed-fence"


@pytest_asyncio.fixture
async def stranger(member: User, chromium: Chromium) -> AsyncIterator[ChatPage]:
    """The page of somebody who has to log in first."""
    async with ChatPage(member, chromium, signed_in=False) as opened:
        yield opened


@pytest.mark.asyncio
async def test_two_turns_by_hand(stranger: ChatPage, simulator: Simulator) -> None:
    """Log in, choose the model, ask twice, reload: reasoning opens, no marker."""
    await stranger.log_in()
    await stranger.choose_model("GPT-6.2 Sol")
    await stranger.watch(SIGN)

    await stranger.ask("sim:chat Good morning")
    await stranger.ask("sim:chat And a second question")

    assert await stranger.seen() == []
    answer = await stranger.last_answer()
    assert "Thought for" in answer
    assert "I was given 1 reasoning item back" in answer
    assert answer.count("This is turn 2.") == 1
    await stranger.screenshot(PICTURES / "two-turns.png")
    await stranger.reload()
    assert await stranger.last_answer() == answer
    sent = [b for b in chat_bodies(simulator) if len(b["input"]) > 1]
    assert kinds(sent[0]["input"]) == ["user", "reasoning", "assistant", "user"]
    await stranger.answers.last.get_by_text("Thought for").click()
    await stranger.page.get_by_text("Reading the question").wait_for()
    await stranger.page.get_by_text("Planning the answer").wait_for()
    await stranger.screenshot(PICTURES / "reasoning.png")
    assert stranger.errors == []


@pytest.mark.asyncio
@pytest.mark.usefixtures("in_row")
async def test_a_marker_is_never_visible(page: ChatPage) -> None:
    """Not for a moment while it streams, nor read again, whatever is around it."""
    await page.open_model(MODEL)

    for scenario in SURROUNDINGS:
        await page.watch(SIGN)
        await page.ask(f"sim:{scenario},delay=5")

        assert await page.seen() == [], scenario
        assert SIGN not in await page.last_answer(), scenario
        copied = await page.copy_last()
        assert SIGN in copied, scenario  # so there was one that could be seen

    await page.open_again()
    for answer in await page.all_answers(len(SURROUNDINGS)):
        assert SIGN not in answer


@pytest.mark.asyncio
async def test_how_answers_end(page: ChatPage, simulator: Simulator) -> None:
    """The text stays, and a line above it says why; a continued answer has none.

    OpenAI's words about a safety stop draw nothing and lead nowhere.
    """
    last = page.answers.last
    await page.open_model(MODEL)
    await page.ask("sim:misaligned hello")
    await last.get_by_text("Ask before you read **secrets**").wait_for()
    assert "safety monitoring stopped" in await page.last_answer()
    assert await last.locator("a, script, img[src*=example]").count() == 0
    assert not [address for address in page.blocked if "example.com" in address]
    await page.screenshot(PICTURES / "safety-stop.png")

    await page.ask("sim:cut")
    await last.get_by_text("This is turn 2.").wait_for()
    await last.get_by_text("broke before the answer was complete").wait_for()
    await page.open_again()
    await last.get_by_text("This is turn 2.").wait_for()
    await last.get_by_text("broke before the answer was complete").wait_for()
    assert "(Error id: " in await page.last_answer()

    before = simulator.default_scenario
    try:
        simulator.default_scenario = "incomplete"
        await page.ask("Tell me.")
        line = last.get_by_text("reached its length limit")
        for name, size in (("wide", (1280, 800)), ("phone", (390, 700))):
            await page.resize(*size)
            await page.scroll_to_end()
            await expect(line).to_be_in_viewport()
            await page.screenshot(PICTURES / f"length-limit-{name}.png")
        simulator.default_scenario = "chat"
        await page.page.locator("#continue-response-button").click()
        await last.get_by_text("Finished in").wait_for()
        await page.open_again()
        await last.get_by_text("Finished in").wait_for()
    finally:
        simulator.default_scenario = before
    assert (await page.last_answer()).count("This is turn 3.") == 2
    await expect(line).not_to_be_visible()
    assert page.errors == []
