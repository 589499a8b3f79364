"""What people attach, and what tools draw, in the real Open WebUI."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from chats.parts import file_part
from chats.pictures import PDF, data_url
from hosts.people.questions import calling
from hosts.people.tabs import Tab
from hosts.people.uploads import attach, attached
from hosts.people.users import User
from hosts.sent import (
    assert_each_continues,
    assert_nothing_dropped,
    chat_bodies,
    kinds,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import MODEL, PIPE, PLUGINS, install_tools, valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

DRAWING = (PLUGINS / "drawing.py").read_text()
TEXT = b"The password is swordfish.\n"


@pytest_asyncio.fixture(scope="module")
async def drawing(admin: User) -> AsyncIterator[dict[str, Any]]:
    """Tools that return pictures, for everybody; the fields that choose them."""
    await install_tools(admin, "drawing", DRAWING)
    yield calling("draw_map", "drawing")
    await admin.call("DELETE", "/api/v1/tools/id/drawing/delete")


def parts_of(body: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """The parts of a type in all items of a request."""
    contents = [item.get("content") or item.get("output") for item in body["input"]]
    parts = [part for rows in contents if isinstance(rows, list) for part in rows]
    return [part for part in parts if part["type"] == kind]


# ----------------------------------------------------------------------- documents


@pytest.mark.asyncio
async def test_documents_stay_where_they_were_attached(
    tab: Tab, member: User, admin: User, simulator: Simulator
) -> None:
    """The next turn sends them again, byte for byte, at the same place."""
    files = [
        await attach(member, "report.pdf", PDF, "application/pdf"),
        await attach(member, "note.txt", TEXT, "text/plain"),
    ]
    async with valves_changed(admin, PIPE, FILE_INPUT="all"):
        first = await tab.send(MODEL, "sim:chat read", files=files)
        later = await attach(member, "late.pdf", PDF + b"%", "application/pdf")
        second = await tab.send(
            MODEL, "sim:chat and this", chat_id=first.chat_id, files=[later]
        )
        third = await tab.send(MODEL, "sim:chat so?", chat_id=first.chat_id)

    assert first.error is second.error is third.error is None
    bodies = chat_bodies(simulator)
    question = bodies[0]["input"][0]["content"]
    assert question[:2] == [
        file_part("report.pdf", PDF, "application/pdf"),
        file_part("note.txt", TEXT, "text/plain"),
    ]
    assert question[-1]["text"].endswith("sim:chat read")
    sent = [[p["filename"] for p in parts_of(b, "input_file")] for b in bodies]
    assert sent == [
        ["report.pdf", "note.txt"],
        ["report.pdf", "note.txt", "late.pdf"],
        ["report.pdf", "note.txt", "late.pdf"],
    ]
    assert_each_continues(simulator)
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_file_that_open_webui_cannot_read_is_announced(tab: Tab) -> None:
    """The page shows that while it is uploaded, for some seconds."""
    scan = await attach(tab.user, "scan.pdf", PDF, "application/pdf")

    turn = await tab.send(MODEL, "sim:chat read", files=[scan])

    lines = [line.get("description", "") for line in turn.statuses]
    assert any("could not read scan.pdf" in line for line in lines)


@pytest.mark.asyncio
async def test_file_of_somebody_else_is_not_read(
    tab: Tab, server: OpenWebUI, admin: User, simulator: Simulator
) -> None:
    """Whoever writes a foreign id into a request gets a message and no byte."""
    secret = b"%PDF-1.4 canary-in-the-file"
    theirs = await attach(admin, "plan.pdf", secret, "application/pdf")
    smuggled = attached(theirs["id"], "plan.pdf", "application/pdf")
    async with valves_changed(admin, PIPE, FILE_INPUT="all"):
        turn = await tab.send(MODEL, "sim:chat read", files=[smuggled])

    assert "plan.pdf cannot be read" in str(turn.error)
    assert chat_bodies(simulator) == []
    seen = json.dumps(turn.events) + json.dumps(server.stored_chat(turn.chat_id))
    assert data_url(secret, "application/pdf").partition(",")[2] not in seen


# ------------------------------------------------------------------------ pictures


@pytest.mark.asyncio
async def test_pictures_of_tools_keep_the_prefix(
    tab: Tab, simulator: Simulator, drawing: dict[str, Any]
) -> None:
    """They stay in the outputs, the same bytes; the chat holds their address."""
    turn = await tab.send(MODEL, "sim:parallel draw", body=drawing)
    tools = {"tool_ids": drawing["tool_ids"]}
    await tab.send(MODEL, "sim:chat so?", chat_id=turn.chat_id, body=tools)

    assert turn.error is None
    bodies = chat_bodies(simulator)
    assert len(bodies) == 3
    for body in bodies[1:]:
        images = parts_of(body, "input_image")
        assert len(images) == kinds(body["input"]).count("function_call_output") > 0
        assert all(i["image_url"].startswith("data:image/png;base64,") for i in images)
    assert "Here are the images" not in json.dumps(bodies)
    assert "base64" not in json.dumps(await tab.user.chat(turn.chat_id))
    assert_each_continues(simulator)
    assert_nothing_dropped(simulator)
