"""What gateways and local servers send, and OpenAI does not, in the real Open WebUI."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import expect

from chats.pictures import PDF
from hosts.browser.page import ChatPage
from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.sent import chat_bodies
from hosts.setup.pipes import valves_changed
from openai_responses.items import message_text
from simulator import Simulator
from simulator.files import SIDE_PIXELS, draw_picture
from upstream.server import Upstream

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
PICTURES = Path(__file__).parents[2] / "artifacts"
USED = calling("get_weather", "toolkit")
SIZES = [(1280, 900), (390, 844)]
TAGGED = ["tagged", "half-tagged"]
PICTURE = base64.b64decode(draw_picture(200))
BLOCK = '<details type="reasoning" done="true" duration="3">\nWhy?\n</details>'
WIDTH = """node => new Promise(tell => {
  const told = () => tell(node.naturalWidth);
  if (node.complete) told(); else node.onload = told;
})"""
USAGE: Json = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


@asynccontextmanager
async def streaming_like(admin: User, profile: str) -> AsyncIterator[None]:
    """The pipe talks to a server that streams so."""
    headers = json.dumps({"X-Simulator-Profile": profile})
    async with valves_changed(admin, PIPE, EXTRA_HEADERS=headers, COMPATIBILITY="auto"):
        yield


@asynccontextmanager
async def answering(
    admin: User, *output: Json, usage: Json | None = None, **valves: Any
) -> AsyncIterator[Upstream]:
    """The pipe talks to a server that always answers so, and has one picture."""

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith(".png"):
            return web.Response(body=PICTURE, content_type="image/png")
        told = json.dumps(output).replace("HERE", str(request.url.origin()))
        response = {"id": "resp_1", "status": "completed", "usage": usage or USAGE}
        return web.json_response({**response, "output": json.loads(told)})

    async with Upstream(answer) as upstream:
        address = upstream.base_url
        given = {"BASE_URL": address, "COMPATIBILITY": "auto", **valves}
        async with valves_changed(admin, PIPE, **given):
            yield upstream


def said(text: str) -> Json:
    """A message of the model."""
    part = {"type": "output_text", "text": text, "annotations": []}
    head = {"id": "msg_1", "type": "message", "role": "assistant"}
    return {**head, "status": "completed", "content": [part]}


def drawn(result: str) -> Json:
    """An image that a gateway gives."""
    head = {"id": "ig_1", "type": "image_generation_call", "status": "completed"}
    return {**head, "result": result}


# ------------------------------------------------------------------------- thoughts


@pytest.mark.asyncio
@pytest.mark.usefixtures("toolkit")
@pytest.mark.parametrize("profile", TAGGED)
async def test_thoughts_in_tags_are_stored_as_reasoning(
    tab: Tab, admin: User, simulator: Simulator, profile: str
) -> None:
    """In each round; no tag is stored as text, nor sent in this turn or the next."""
    async with streaming_like(admin, profile):
        first = await tab.send(MODEL, "sim:tool,delay=5 weather?", body=USED)
        again = await tab.regenerate(MODEL, first, body=USED)
        later = await tab.send(
            MODEL, "sim:chat,delay=5 thanks", chat_id=first.chat_id, body=USED
        )

    for turn in (first, again, later):
        assert turn.error is None
        stored = await tab.message(turn)
        shown = [item for item in stored["output"] if ":" not in item["type"]]
        assert shown[0]["type"] == "reasoning"
        assert shown[0]["content"][0]["text"]
        assert shown[0]["status"] == "completed"
        assert "think>" not in json.dumps(stored)
    bodies = chat_bodies(simulator)
    assert "think>" not in json.dumps(bodies)
    between = [item["type"] for item in bodies[1]["input"]]
    assert between[1:] == ["reasoning", "function_call", "function_call_output"]


@pytest.mark.asyncio
@pytest.mark.browser
@pytest.mark.usefixtures("toolkit")
@pytest.mark.parametrize("profile", TAGGED)
async def test_thoughts_in_tags_on_the_page(
    page: ChatPage, admin: User, profile: str
) -> None:
    """A thought that opens, as with Open WebUI's own connection; also after a reload."""
    PICTURES.mkdir(exist_ok=True)
    async with streaming_like(admin, profile):
        await page.open_model(MODEL, tools="toolkit")
        await page.watch("think>")
        await page.ask("sim:tool,delay=30 weather?")
        assert await page.seen() == []
        await page.ask("sim:chat,delay=10 And in Markdown?")
        for reload in (False, True):
            if reload:
                await page.reload()
            answer = await page.last_answer()
            assert "think>" not in answer
            assert "Thought" in answer
            for width, height in SIZES:
                await page.resize(width, height)
                await page.screenshot(PICTURES / f"thought-{profile}-{width}.png")
            await page.resize(*SIZES[0])
        copied = await page.copy_last()
        assert "think>" not in copied
        await page.page.get_by_text("Thought").last.click()
        await page.screenshot(PICTURES / f"thought-{profile}-open.png")


@pytest.mark.asyncio
@pytest.mark.browser
async def test_a_thought_ends_while_the_answer_grows(
    page: ChatPage, admin: User, simulator: Simulator
) -> None:
    """This server ends its thought with the response."""
    PICTURES.mkdir(exist_ok=True)
    async with streaming_like(admin, "llama.cpp"):
        await page.open_model(MODEL)
        await page.ask("sim:chat,hold=40 Why?", wait=False)
        text = page.answers.last.locator("#response-content-container")
        await expect(text).to_contain_text("Thought for", timeout=20_000)
        await expect(text).not_to_contain_text("Thinking")
        for width, height in SIZES:
            await page.resize(width, height)
            await page.screenshot(PICTURES / f"thought-has-ended-{width}.png")
        simulator.release()
        await page.page.get_by_label("Copy").last.wait_for()


# --------------------------------------------------------------------------- pictures


@pytest.mark.asyncio
@pytest.mark.browser
@pytest.mark.parametrize(
    "result",
    [
        f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}",
        "HERE/picture.png",
    ],
    ids=["data URL", "address"],
)
async def test_a_picture_of_a_gateway_is_on_the_page(
    page: ChatPage, admin: User, result: str, request: pytest.FixtureRequest
) -> None:
    """Stored, or shown from where it is; the same after a reload."""
    name = request.node.callspec.id.replace(" ", "-")
    PICTURES.mkdir(exist_ok=True)
    async with answering(admin, drawn(result), said("There.")) as upstream:
        await page.open_model(MODEL)
        await page.ask("Draw.")
        for reload in (False, True):
            if reload:
                await page.reload()
            picture = page.answers.last.locator("img[data-cy=image]")
            await expect(picture).to_have_count(1)
            await picture.wait_for()
            assert await picture.evaluate(WIDTH) == SIDE_PIXELS
            for size in SIZES:
                await page.resize(*size)
                await page.screenshot(PICTURES / f"picture-{name}-{size[0]}.png")
            await page.resize(*SIZES[0])
        paths = {request.path for request in upstream.requests}
        agents = [
            request.headers["User-Agent"]
            for request in upstream.requests
            if request.path == "/picture.png"
        ]

    assert ("/picture.png" in paths) is (name == "address")
    assert all("Chrome" in agent for agent in agents)  # never the server


@pytest.mark.asyncio
@pytest.mark.browser
async def test_a_picture_that_cannot_be_read_says_so(
    page: ChatPage, admin: User
) -> None:
    """Not that it was generated."""
    PICTURES.mkdir(exist_ok=True)
    async with answering(admin, drawn("file:///etc/passwd"), said("There.")):
        await page.open_model(MODEL)
        await page.ask("Draw.")
        for reload in (False, True):
            if reload:
                await page.reload()
            answer = await page.last_answer()
            assert "The server gave an image that cannot be read." in answer
            assert "Image generated" not in answer
        for width, height in SIZES:
            await page.resize(width, height)
            await page.screenshot(PICTURES / f"picture-unreadable-{width}.png")


# ------------------------------------------------------------------- costs, words, files


@pytest.mark.asyncio
async def test_the_server_says_what_an_answer_costs(
    admins_tab: Tab, admin: User
) -> None:
    """Without that, the prices of another server are unknown."""
    async with answering(admin, said("Rain."), usage={**USAGE, "cost": 0.25}):
        stated = await admins_tab.send(MODEL, "Weather?")
    async with answering(admin, said("Rain.")):
        unknown = await admins_tab.send(MODEL, "Weather?")

    lines = [
        (await admins_tab.message(turn))["statusHistory"][-1]["description"]
        for turn in (stated, unknown)
    ]
    assert "$0.25" in lines[0]
    assert "$" not in lines[1]
    assert (await admins_tab.message(stated))["usage"]["cost"] == 0.25


@pytest.mark.asyncio
async def test_words_of_the_model_stay_whatever_they_look_like(
    tab: Tab, admin: User
) -> None:
    """An example of Open WebUI's own block, in code."""
    text = f"So it is stored:\n\n```html\n{BLOCK}\n```\n\nThat is all."
    async with answering(admin, said(text)) as upstream:
        first = await tab.send(MODEL, "How?")
        await tab.send(MODEL, "Thanks.", chat_id=first.chat_id)
        sent = [body["input"] for body in upstream.bodies if body and "input" in body]

    turns = [items for items in sent if len(items) == 3]
    assert turns
    assert all(message_text(items[1]) == text for items in turns)


@pytest.mark.asyncio
async def test_code_in_tags_is_said_to_run_nothing(tab: Tab, admin: User) -> None:
    """Open WebUI asks for tags in Legacy, and runs none of them."""
    code = "<code_interpreter>\nprint(1)\n</code_interpreter>"
    legacy = {
        "features": {"code_interpreter": True},
        "params": {"function_calling": "legacy"},
    }
    async with answering(admin, said(code)) as upstream:
        turn = await tab.send(MODEL, "Compute.", body=legacy)
        asked = json.dumps(upstream.bodies)

    stored = await tab.message(turn)
    lines = [status["description"] for status in stored["statusHistory"]]
    assert "code_interpreter" in asked
    assert any("Code Interpreter runs nothing here" in line for line in lines)
    assert [i["type"] for i in stored["output"] if ":" not in i["type"]] == ["message"]


@pytest.mark.asyncio
async def test_people_choose_whole_documents_for_a_chat(
    tab: Tab, member: User, admin: User, simulator: Simulator
) -> None:
    """In its parameters, or in their settings; only where the administrator lets them."""
    files = [await attach(member, "report.pdf", PDF, "application/pdf")]
    chosen = {"params": {"custom_params": {"file_input": "pdf"}}}
    for may_change in ("effort", "file_input"):
        async with valves_changed(admin, PIPE, USER_MAY_CHANGE=may_change):
            await tab.send(MODEL, "sim:chat read", files=files)
            await tab.send(MODEL, "sim:chat read", files=files, body=chosen)
            await member.set_user_valves(PIPE, {"FILE_INPUT": "pdf"})
            await tab.send(MODEL, "sim:chat read", files=files)
            await member.set_user_valves(PIPE, {"FILE_INPUT": "inherit"})

    first_parts = [
        body["input"][0]["content"][0]["type"] for body in chat_bodies(simulator)
    ]
    assert first_parts == [
        *["input_text"] * 4,
        *["input_file"] * 2,
    ]
