"""Pictures and files that the model makes, in the real Open WebUI."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from aiohttp import ClientResponse

from hosts.browser.page import PICTURES, ChatPage
from hosts.people.client import Json
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User, download, new_user
from hosts.sent import assert_nothing_dropped, chat_bodies, host_items, kinds
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import MODEL, PIPE, valves_changed
from runs.transcripts import transcript
from simulator import Simulator
from simulator.files import TABLE, draw_picture
from upstream.server import Upstream, replying

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "making")]

SIGNATURE = "iVBORw0KGgo"
"""How every PNG begins in base64."""
FIRST, SECOND = (draw_picture(200 - 60 * given) for given in range(2))


@pytest_asyncio.fixture(scope="module")
async def making(admin: User, pipe: list[str]) -> AsyncIterator[None]:
    on = {"ENABLE_IMAGE_GENERATION": True, "ENABLE_CODE_INTERPRETER": True}
    async with valves_changed(admin, PIPE, **on):
        yield


def pictures_in(items: list[Json]) -> list[str]:
    """The base64 of the input pictures of a request, in their order."""
    parts = [part for item in items for part in item.get("content") or ()]
    urls = [part["image_url"] for part in parts if part["type"] == "input_image"]
    return [url.removeprefix("data:image/png;base64,") for url in urls]


def raw_rows(server: OpenWebUI, turn: Turn) -> str:
    """All that the database holds of a chat, as text."""
    chat = json.dumps(server.stored_chat(turn.chat_id))
    return chat + json.dumps(server.sql("select * from chat_message"), default=str)


@pytest.mark.asyncio
async def test_a_picture_is_stored_and_comes_back_with_every_turn(
    tab: Tab, server: OpenWebUI, admin: User, simulator: Simulator
) -> None:
    """`Make it darker` works: each picture is at its place, in the same bytes."""
    first = await tab.send(MODEL, "sim:draw a disc")
    second = await tab.send(MODEL, "sim:draw darker", chat_id=first.chat_id)
    await tab.send(MODEL, "sim:draw darker still", chat_id=first.chat_id)

    bodies = chat_bodies(simulator)
    turn_of_one = ["user", "reasoning", "user", "assistant"]
    assert kinds(bodies[2]["input"]) == [*turn_of_one, *turn_of_one, "user"]
    assert [pictures_in(body["input"]) for body in bodies] == [
        [],
        [FIRST],
        [FIRST, SECOND],
    ]
    assert bodies[2]["input"][: len(bodies[1]["input"])] == bodies[1]["input"]
    (file,) = (await tab.message(first))["files"]
    assert file["type"] == "image"
    wanted = (200, base64.b64decode(FIRST))
    assert await download(tab.user, file["url"]) == wanted
    async with new_user(admin) as stranger:
        assert (await download(stranger, file["url"]))[0] == 404
    assert SIGNATURE not in raw_rows(server, second)
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_code_is_shown_with_its_files_and_replayed(
    tab: Tab, server: OpenWebUI, admin: User, simulator: Simulator
) -> None:
    """The card, the link, the chart; and the next turns get the model's own words.

    They name no container: it is dead after 20 minutes.
    """
    first = await tab.send(MODEL, "sim:count the people")
    for model, text in (
        (MODEL, "sim:short thanks"),
        (MODEL, "sim:count again"),
        (f"{PIPE}.gpt-6.1-sol", "sim:short thanks"),
    ):
        await tab.send(model, text, chat_id=first.chat_id)

    stored = await tab.message(first)
    _, code, message = host_items(stored)
    assert code["type"] == "open_webui:code_interpreter"
    assert code["code"].startswith("import csv\n")
    assert code["code"].endswith("\n14400000")
    (chart,) = stored["files"]
    assert chart["type"] == "image"
    text = message["content"][0]["text"]
    assert "sandbox:" not in text
    link = text.partition("[people.csv](")[2].partition(")")[0]
    assert await download(tab.user, link) == (200, TABLE)
    assert (await download(tab.user, chart["url"]))[0] == 200
    async with new_user(admin) as stranger:
        assert (await download(stranger, link))[0] == 404
    _, second, third, last = (body["input"] for body in chat_bodies(simulator))
    code_turn = ["user", "function_call", "function_call_output", "assistant"]
    with_reasoning = ["user", "reasoning", *code_turn[1:]]
    assert kinds(second) == [*with_reasoning, "user"]
    assert third[: len(second)] == second
    assert kinds(last) == [*code_turn, "user", "assistant", *code_turn, "user"]
    assert "(sandbox:/mnt/data/people.csv)" in json.dumps(last[3])
    assert "<code_interpreter>" not in json.dumps(last)
    assert "api/v1/files" not in json.dumps(last)
    assert SIGNATURE not in raw_rows(server, first)
    paths = [r.path for r in simulator.requests if r.path.startswith("/v1/containers")]
    assert len(paths) == 4
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_file_of_code_is_no_page_of_open_webui(admin: User) -> None:
    """Whoever asks is an administrator, whose files the host shows in its own origin."""
    async with named_file(admin, "report.html.gz") as (url, answer):
        assert url.startswith("/api/v1/files/")
        assert answer.status == 200
        assert await answer.read() == b"<script>alert(1)</script>"
        assert answer.headers["Content-Type"] == "application/octet-stream"


@asynccontextmanager
async def named_file(
    admin: User, name: str
) -> AsyncIterator[tuple[str, ClientResponse]]:
    """Have code write a file; lend its address, and the page that the host makes of it."""
    stream = transcript("count").replace(b"people.csv", name.encode())
    answers = {
        "POST": replying(stream, content_type="text/event-stream"),
        "GET": replying(b"<script>alert(1)</script>"),
    }
    async with (
        Upstream(lambda request: answers[request.method](request)) as upstream,
        valves_changed(admin, PIPE, BASE_URL=upstream.base_url),
        Tab(admin) as tab,
    ):
        turn = await tab.send(MODEL, "count the people")
        stored = await tab.message(turn)

    text = host_items(stored)[-1]["content"][0]["text"]
    url = text.partition(f"[{name}](")[2].partition(")")[0]
    page = f"{admin.url}{url}/html"
    async with admin.http.get(page, headers=admin.headers) as answer:
        yield url, answer


@pytest.mark.asyncio
async def test_the_host_runs_no_code_of_ours(tab: Tab, simulator: Simulator) -> None:
    """Not where it runs code that it finds in answers, and the answer was interrupted."""
    body = {
        "params": {"function_calling": "legacy"},
        "features": {"code_interpreter": True},
    }
    turn = await tab.send(MODEL, "sim:count,cut=36 the people", body=body)

    assert turn.error
    assert len(chat_bodies(simulator)) == 1
    assert not turn.of_type("execute:python")


@pytest.mark.browser
@pytest.mark.asyncio
async def test_page_shows_pictures_and_code(page: ChatPage) -> None:
    """A picture that grows, and is gone after a Stop, also later; a whole one stays.

    It is above its text, before and after the chat is opened again; code in its card.
    """
    await page.open_model(MODEL)
    await page.ask("sim:draw,stall=16 a disc", wait=False)
    sketch = page.answers.last.locator("img[src^='data:image/png']")
    await sketch.wait_for()
    await page.screenshot(PICTURES / "sketch.png")
    await page.stop()
    await page.open_again()

    await page.page.get_by_text("Generating an image").wait_for()
    assert await sketch.count() == 0

    await page.ask("sim:draw a disc")
    shown = page.answers.last.locator("img[src*='/api/v1/files/']")
    await shown.wait_for()
    await page.screenshot(PICTURES / "picture.png")
    await page.open_again()
    await shown.wait_for()

    await page.ask("sim:count the people")
    await page.page.get_by_text("Ran 1 analysis").click()
    await page.page.get_by_text("Analyzed").click()
    await page.page.get_by_text("14400000").hover()  # once it moves no more
    await page.screenshot(PICTURES / "code.png")

    assert page.errors == []
