"""What a person sees of tools, in the real page in Chromium."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from hosts.browser.chromium import Chromium
from hosts.browser.page import ChatPage
from hosts.people.users import User
from hosts.setup.pipes import install_tools, valves_changed

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
ANSWERS = {"Deny": "did not approve", "Allow": "Heavy sun in Zürich."}
PICTURES = Path(__file__).parents[2] / "artifacts"


@pytest_asyncio.fixture
async def chat(page: ChatPage) -> AsyncIterator[ChatPage]:
    """A new chat in which the toolkit is switched on."""
    PICTURES.mkdir(exist_ok=True)
    await page.open_model(MODEL, tools="toolkit")
    yield page
    assert page.errors == []


@pytest.mark.asyncio
async def test_a_card_opens_to_its_arguments_and_its_result(chat: ChatPage) -> None:
    """And it is the same after a reload."""
    await chat.ask(ASK)

    await assert_card_opens(chat, "tool-card")
    await chat.reload()
    await assert_card_opens(chat, "tool-card-after-reload")


async def assert_card_opens(chat: ChatPage, picture: str) -> None:
    """To what was asked and what came of it."""
    await chat.page.get_by_text("Explored").click()
    await chat.page.get_by_text(f"View Result from {TOOL}").click()
    output = chat.answers.last.get_by_text("Output", exact=True)
    await (await output.element_handle()).wait_for_element_state("stable")
    await chat.screenshot(PICTURES / f"{picture}.png")
    words = [word for word in (await chat.last_answer()).split("\n") if word]
    begin = words.index("INPUT")
    assert words[begin : begin + len(CARD)] == CARD


@pytest.mark.asyncio
async def test_an_approval_is_asked_for_on_the_page(
    chat: ChatPage, admin: User
) -> None:
    """Tool and arguments are there to be read before anybody answers."""
    async with valves_changed(admin, PIPE, TOOL_APPROVAL=f"{TOOL}=ask"):
        for answer, words in ANSWERS.items():
            await chat.ask(ASK, wait=False)
            question = chat.page.get_by_role("dialog").filter(
                has_text="Tool Permissions"
            )
            button = question.get_by_role("button", name=answer)
            await button.wait_for()
            await chat.screenshot(PICTURES / f"approval-{answer.lower()}.png")
            asked = await question.inner_text()
            await button.click()
            await chat.answers.last.get_by_text(words).first.wait_for()
            await chat.screenshot(PICTURES / f"approval-{answer.lower()}-answered.png")

            assert TOOL in asked
            assert '"city": "Zürich"' in asked


BOOKING = """
class Tools:
    def book(self, day: str) -> str:
        \"\"\"
        Book a table.
        :param day: the day
        \"\"\"
        raise ValueError(f"day must look like 2026-12-31, not {day}")
"""


@pytest.mark.asyncio
@pytest.mark.browser
async def test_the_model_reads_what_a_tool_raised(page: ChatPage, admin: User) -> None:
    """It can correct its call; the card shows it to the person, too."""
    await install_tools(admin, "booking", BOOKING)
    try:
        await page.open_model(MODEL, tools="booking")
        await page.ask("sim:tool A table for two?")
        await page.page.get_by_text("Explored").click()
        await page.page.get_by_text("View Result from book").click()
        output = page.answers.last.get_by_text("Output", exact=True)
        await (await output.element_handle()).wait_for_element_state("stable")
        for size in ((1280, 900), (390, 844)):
            await page.resize(*size)
            await page.screenshot(PICTURES / f"tool-raised-{size[0]}.png")
        shown = await page.last_answer()
    finally:
        await admin.call("DELETE", "/api/v1/tools/id/booking/delete")

    raised = "book failed: ValueError: day must look like 2026-12-31, not example"
    assert shown.count(raised) == 2  # the card, and what the model made of it
    assert page.errors == []


ALLOW = ".tool-call-allow-button"
SCREENS = {"wide": (1280, 800), "phone": (390, 700)}


async def take_pictures(chat: ChatPage, name: str, shown: Locator) -> None:
    """Of a large screen and of a phone; what is shown has to be on both."""
    for screen, size in SCREENS.items():
        await chat.resize(*size)
        await expect(shown).to_be_in_viewport(ratio=1)
        await chat.screenshot(PICTURES / f"{name}-{screen}.png")
    await chat.resize(*SCREENS["wide"])


@pytest.mark.asyncio
async def test_buttons_at_the_card_outlive_the_page(
    chat: ChatPage, member: User, chromium: Chromium
) -> None:
    """Whoever closes it decides later, in another page: first yes, then no."""
    ui = {"params": {"tool_approval_mode": "ask"}}
    await member.call("POST", "/api/v1/users/user/settings/update", {"ui": ui})
    await chat.open_model(MODEL, tools="toolkit")
    await chat.ask("sim:parallel How is the weather?", wait=False)
    allow = chat.answers.last.locator(ALLOW).last
    await allow.wait_for()
    await take_pictures(chat, "approval-at-card", allow)
    address = chat.page.url
    await chat.page.goto(f"{member.url}/api/version")  # no chat is open

    async with ChatPage(member, chromium) as other:
        await other.page.goto(address)
        allow = other.answers.last.locator(ALLOW).last
        await allow.wait_for()
        await allow.click()
        deny = other.answers.last.locator(".tool-call-deny-button:enabled").last
        await other.page.get_by_text("Exploring").wait_for()
        await deny.wait_for()
        await other.screenshot(PICTURES / "approval-at-card-second.png")
        await deny.click()
        answer = other.answers.last.get_by_text("Heavy sun in Zürich. | Error: tool")
        await answer.wait_for()
        await take_pictures(other, "approval-at-card-answered", answer)
        assert other.errors == []


@pytest.mark.asyncio
async def test_one_dialog_asks_about_several_calls(chat: ChatPage, admin: User) -> None:
    """A rule of the administrator wants it; all of them can be read."""
    async with valves_changed(admin, PIPE, TOOL_APPROVAL=f"{TOOL}=ask"):
        await chat.ask("sim:parallel How is the weather?", wait=False)
        question = chat.page.get_by_role("dialog").filter(has_text="Tool Permissions")
        allow = question.get_by_role("button", name="Allow")
        await allow.wait_for()
        await take_pictures(chat, "approval-of-two", allow)
        asked = await question.inner_text()
        await allow.click()
        await chat.answers.last.get_by_text("Heavy sun in Zürich. |").first.wait_for()

    assert f"1. {TOOL}" in asked
    assert f"2. {TOOL}" in asked


@pytest.mark.asyncio
async def test_hidden_characters_are_seen_before_a_call_is_approved(
    chat: ChatPage, admin: User
) -> None:
    """The page would turn the line around, and draw nothing for the others."""
    async with valves_changed(admin, PIPE, TOOL_APPROVAL=f"{TOOL}=ask"):
        await chat.ask("sim:hidden-arguments", wait=False)
        question = chat.page.get_by_role("dialog").filter(has_text="Tool Permissions")
        deny = question.get_by_role("button", name="Deny")
        await deny.wait_for()
        await take_pictures(chat, "approval-hidden", deny)
        asked = await question.inner_text()
        await deny.click()
        await chat.answers.last.get_by_text("did not approve").first.wait_for()

    assert r'"city": "Bern\\u202egpj.exe\\u200b\\udb40\\udc41"' in asked
