"""What a person sees of tools, in the real page in Chromium."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from hosts.browser.chromium import Chromium
from hosts.browser.page import PICTURES, ChatPage
from hosts.people.users import User
from hosts.setup.pipes import MODEL, PIPE, valves_changed

pytestmark = [
    pytest.mark.host,
    pytest.mark.browser,
    pytest.mark.usefixtures("pipe", "toolkit", "simulator"),
]

TOOL = "blocking_weather"  # the first one that the toolkit offers
ASK = "sim:tool How is the weather in Zürich?"
CARD = ["INPUT", "city", "Zürich", "OUTPUT", "Heavy sun in Zürich."]
ASKED = (
    (ASK, "Deny", "did not approve", [TOOL, '"city": "Zürich"']),
    (
        "sim:parallel How is the weather?",
        "Allow",
        "Heavy sun in Zürich. |",
        [f"1. {TOOL}", f"2. {TOOL}"],
    ),
    (
        "sim:hidden-arguments",
        "Deny",
        "did not approve",
        [r'"city": "Bern\\u202egpj.exe\\u200b\\udb40\\udc41"'],
    ),
)
"""What is asked, the button, words of the answer, and what the dialog shows."""


@pytest.mark.asyncio
async def test_calls_are_shown_and_asked_about(page: ChatPage, admin: User) -> None:
    """A card opens to its arguments and its result, also when the chat is opened again.

    Where a rule asks, tools and arguments can be read before anybody answers: of
    several calls, and of one whose characters the page would turn around or not draw.
    """
    await page.open_model(MODEL, tools="toolkit")
    async with valves_changed(admin, PIPE, TOOL_APPROVAL=f"{TOOL}=ask"):
        for number, (text, button, words, shown) in enumerate(ASKED):
            await page.ask(text, wait=False)
            dialog = page.page.get_by_role("dialog")
            question = dialog.filter(has_text="Tool Permissions")
            answer = question.get_by_role("button", name=button)
            await answer.wait_for()
            await take_pictures(page, f"approval-{number}", answer)
            asked = await question.inner_text()
            await answer.click()
            await page.answers.last.get_by_text(words).first.wait_for()
            assert [part for part in shown if part not in asked] == [], text
    await page.ask(ASK)
    await assert_card_opens(page, "tool-card")
    await page.open_again()
    await assert_card_opens(page, "tool-card-after-reload")
    assert page.errors == []


async def assert_card_opens(chat: ChatPage, picture: str) -> None:
    """To what was asked and what came of it."""
    await chat.answers.last.get_by_text("Explored").click()
    await chat.answers.last.get_by_text(f"View Result from {TOOL}").click()
    output = chat.answers.last.get_by_text("Output", exact=True)
    await (await output.element_handle()).wait_for_element_state("stable")
    await chat.screenshot(PICTURES / f"{picture}.png")
    words = [word for word in (await chat.last_answer()).split("\n") if word]
    begin = words.index("INPUT")
    assert words[begin : begin + len(CARD)] == CARD


ALLOW = ".tool-call-allow-button"
SCREENS = {"wide": (1280, 800), "phone": (390, 700)}


async def take_pictures(chat: ChatPage, name: str, shown: Locator) -> None:
    """Of a large screen and of a phone; what is shown has to be on both."""
    for screen, size in SCREENS.items():
        await chat.resize(*size)
        await expect(shown).to_be_in_viewport(ratio=1)
        await chat.screenshot(PICTURES / f"{name}-{screen}.png")
    await chat.resize(*SCREENS["wide"])


@pytest_asyncio.fixture
async def asking(member: User) -> AsyncIterator[None]:
    """The person's chats ask before a tool runs; the host keeps that until it is null."""
    path = "/api/v1/users/user/settings/update"
    mode = {"tool_approval_mode": "ask"}
    await member.call("POST", path, {"ui": {"params": mode}})
    yield
    await member.call("POST", path, {"ui": {"params": None}})


@pytest.mark.asyncio
@pytest.mark.usefixtures("asking")
async def test_buttons_at_the_card_outlive_the_page(
    page: ChatPage, member: User, chromium: Chromium
) -> None:
    """Whoever closes it decides later, in another page: first yes, then no."""
    await page.open_model(MODEL, tools="toolkit")
    await page.ask("sim:parallel How is the weather?", wait=False)
    allow = page.answers.last.locator(ALLOW).last
    await allow.wait_for()
    await take_pictures(page, "approval-at-card", allow)
    address = page.page.url
    await page.leave()

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
