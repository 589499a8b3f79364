"""Other functions that ask our models, and filters that read what they answer.

A function inside of a chat may ask with the chat's metadata, and then gets the events
that the page would get.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hosts.people.questions import ASKS, calling
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import chat_bodies, tool_outputs
from hosts.setup.pipes import MODEL, PLUGINS, install_tools
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

ASKING = (PLUGINS / "asking.py").read_text()
ONCE = re.compile(r"It says: Turn 1\.[^:]*$")


def with_class(name: str) -> str:
    head, *classes = re.split(r"(?m)^(?=class )", ASKING)
    [chosen] = [text for text in classes if text.startswith(f"class {name}:")]
    return head + chosen


@asynccontextmanager
async def installed(admin: User, source: str) -> AsyncIterator[None]:
    await admin.install_function("asking", source)
    try:
        yield
    finally:
        await admin.delete_function("asking")


@pytest.mark.asyncio
async def test_each_kind_of_function_gets_the_text_once(
    admin: User, admins_tab: Tab, simulator: Simulator
) -> None:
    """A pipe passes it on, a tool gives it to the model, a filter puts it before a question.

    An action asks without a chat, as a program does.
    """
    async with installed(admin, with_class("Pipe")):
        await admin.models()
        turn = await admins_tab.send("asking", "Hi")
    stored = await admins_tab.message(turn)
    assert turn.error is None
    assert ONCE.search(stored["content"]), stored["content"]
    assert stored["content"].count("Turn 1.") == 1
    assert len(chat_bodies(simulator)) == 1

    simulator.forget()
    await install_tools(admin, "asking", with_class("Tools"))
    try:
        body = calling("ask", "asking")
        turn = await admins_tab.send(MODEL, "sim:tool ask", body=body)
    finally:
        await admin.call("DELETE", "/api/v1/tools/id/asking/delete")
    assert turn.error is None
    outputs = [text for body in chat_bodies(simulator) for text in tool_outputs(body)]
    assert outputs
    assert all(ONCE.search(text) for text in outputs), outputs

    async with installed(admin, with_class("Filter")):
        await admin.set_global("asking", True)
        turn = await admins_tab.send(MODEL, "sim:short Hi.")
    assert turn.error is None
    asked = chat_bodies(simulator)[-1]["input"][-1]["content"][0]["text"]
    assert ONCE.search(asked), asked

    form = {"model": MODEL, "id": "m", "chat_id": "", "session_id": "", "messages": []}
    async with installed(admin, with_class("Action")):
        await admin.models()
        answer = await admin.call("POST", "/api/chat/actions/asking", form)
    assert ONCE.search(answer["content"]), answer


@pytest.mark.asyncio
@pytest.mark.usefixtures("toolkit")
async def test_a_person_is_asked_about_calls_for_a_pipe(
    admin: User, admins_tab: Tab
) -> None:
    """The pipe makes no call, and Open WebUI sees none that it could ask about."""
    source = with_class("Pipe").replace("sim:short", "sim:tool")
    source = source.replace("WITH_TOOLS = False", "WITH_TOOLS = True")
    asked = admins_tab.answer_questions(True)
    async with installed(admin, source):
        await admin.models()
        body = {"tool_ids": ["toolkit"], **ASKS}
        turn = await admins_tab.send("asking", "Hi", body=body)
    stored = await admins_tab.message(turn)

    assert turn.error is None
    assert len(asked) == 1
    assert "It said: Heavy sun in" in stored["content"]
