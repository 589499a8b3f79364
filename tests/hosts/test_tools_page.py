"""What a person sees of tools, in the real page in Chromium."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from hosts.page import ChatPage
from hosts.pipes import valves_changed
from hosts.users import User

pytestmark = [
    pytest.mark.host,
    pytest.mark.browser,
    pytest.mark.usefixtures("pipe", "toolkit", "simulator"),
]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
TOOL = "blocking_weather"  # the first one that the toolkit offers
ASK = "sim:tool How is the weather in Zürich?"
CARD = ["INPUT", "city", "Zürich", "OUTPUT", "Heavy sun in Zürich."]
PICTURES = Path(__file__).parents[2] / "artifacts"


@pytest_asyncio.fixture
async def chat(page: ChatPage) -> AsyncIterator[ChatPage]:
    """A new chat in which the toolkit is switched on."""
    PICTURES.mkdir(exist_ok=True)
    await page.page.goto(f"{page.user.url}/?models={MODEL}&tools=toolkit")
    await page.page.wait_for_selector("#chat-input")
    yield page
    assert page.errors == []


@pytest.mark.asyncio
async def test_a_card_opens_to_its_arguments_and_its_result(chat: ChatPage) -> None:
    """And it is the same after a reload."""
    await chat.ask(ASK)

    for picture in ("tool-card", "tool-card-after-reload"):
        await chat.page.get_by_text("Explored").click()
        await chat.page.get_by_text(f"View Result from {TOOL}").click()
        output = chat.answers.last.get_by_text("Output", exact=True)
        await (await output.element_handle()).wait_for_element_state("stable")
        await chat.screenshot(PICTURES / f"{picture}.png")
        shown = (await chat.last_answer()).split("\n")
        words = [word for word in shown if word]
        begin = words.index("INPUT")
        assert words[begin : begin + len(CARD)] == CARD
        await chat.reload()


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("answer", "said"), [("Allow", "Heavy sun in Zürich."), ("Deny", "did not approve")]
)
async def test_an_approval_is_asked_for_on_the_page(
    chat: ChatPage, admin: User, answer: str, said: str
) -> None:
    """Tool and arguments are there to be read before anybody answers."""
    async with valves_changed(admin, PIPE, TOOL_APPROVAL=f"{TOOL}=ask"):
        await chat.ask(ASK, wait=False)
        question = chat.page.get_by_role("dialog").filter(has_text="Tool Permissions")
        button = question.get_by_role("button", name=answer)
        await button.wait_for()
        await chat.screenshot(PICTURES / f"approval-{answer.lower()}.png")
        asked = await question.inner_text()
        await button.click()
        await chat.page.get_by_text(said).first.wait_for()

    await chat.screenshot(PICTURES / f"approval-{answer.lower()}-answered.png")
    assert TOOL in asked
    assert '"city": "Zürich"' in asked
