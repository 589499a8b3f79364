"""What the API refuses is left out, told and remembered, in the real Open WebUI."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from calls.outcomes import RESPONDED
from chats.pictures import PNG
from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.sent import answered, assert_each_continues, chat_bodies, kinds
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, valves_changed
from simulator import Simulator
from simulator.faults import (
    refuse_item,
    refuse_parameter,
)

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("recovering_pipe", "toolkit"),
]

PIPE = "recovering"
MODEL = f"{PIPE}.gpt-6.2-sol"
OTHER = f"{PIPE}.gpt-5.2"
USED: Json = {"tool_ids": ["toolkit"]}
CALLED: Json = calling("get_weather", "toolkit")
SAID = "The model's server said: "


@pytest_asyncio.fixture(scope="module")
async def recovering_pipe(
    admin: User, pipe_source: str, pipe_valves: Json
) -> AsyncIterator[None]:
    """A copy of the pipe: what it learns of refusals is not for other tests."""
    models = {"MODEL_ID": "gpt-6.2-sol, gpt-5.2"}
    await install_pipe(admin, PIPE, pipe_source, pipe_valves | models)
    yield
    await admin.delete_function(PIPE)


def status_lines(turn: Turn) -> list[str]:
    """The status lines of an answer without the last one and without ends of waits."""
    lines = [str(status["description"]) for status in turn.statuses]
    return [
        line
        for line in lines
        if line != RESPONDED and not line.startswith("Finished in ")
    ]


def asked(simulator: Simulator, since: int = 0) -> list[int | None]:
    return [request.status for request in answered(simulator)[since:]]


class Chat:
    """One chat of a tab, whose turns are checked as they come."""

    def __init__(self, tab: Tab, simulator: Simulator) -> None:
        self.tab = tab
        self.simulator = simulator
        self.turns: list[Turn] = []

    async def ask(self, text: str, model: str = MODEL, **more: Any) -> Turn:
        """Ask; there is an answer, and no request of a further turn is refused."""
        if self.turns:
            more["chat_id"] = self.turns[-1].chat_id
        turn = await self.tab.send(model, text, **{"body": USED, **more})
        self.turns.append(turn)
        assert turn.error is None
        assert turn.text.strip()
        return turn

    async def heal(self, text: str, *lines: str, **more: Any) -> None:
        """Ask what is refused; `lines` are the status lines, one a refusal."""
        since = len(answered(self.simulator))
        turn = await self.ask(text, **more)
        assert status_lines(turn) == list(lines)
        assert asked(self.simulator, since) == [400] * len(lines) + [200]

    async def go_on(self) -> None:
        """Three further turns and another model: each is one request, told nothing of.

        Those to the same model continue the last request.
        """
        begun = len(chat_bodies(self.simulator)) - 1
        for number, model in enumerate((MODEL, MODEL, MODEL, OTHER)):
            if model == OTHER:
                assert_each_continues(self.simulator, begun)
            await self.heal(f"sim:short And now, {number}?", model=model)


async def test_refused_items_are_left_out_once(
    tab: Tab, admin: User, member: User, simulator: Simulator
) -> None:
    """A search, a call with its output, a picture, reasoning, and what is not named.

    Each is left out once; further turns and another model pay nothing for it. Code goes
    on although its container is dead.
    """
    chat = Chat(tab, simulator)
    picture = await attach(member, "point.png", PNG, "image/png")
    hosted = {"ENABLE_WEB_SEARCH": True, "ENABLE_CODE_INTERPRETER": True}
    async with valves_changed(admin, PIPE, **hosted):
        await chat.ask("sim:annotations What froze?", files=[picture])
        await chat.ask("sim:code Six times seven?")
        await chat.ask("sim:tool The weather?", body=CALLED)
        simulator.pass_time(1500)
        simulator.faults.append(refuse_item("web_search_call", form="openrouter"))
        simulator.faults.append(
            refuse_item("function_call_output", text="Sunny", form="message")
        )
        simulator.faults.append(refuse_item("message", part="input_image"))
        await chat.heal(
            "sim:short First.",
            "One earlier web search call could not be sent again and was left out.",
            "One earlier function call output was sent as plain text.",
            "An image or file could not be sent to the model and was left out.",
        )
        await chat.go_on()


async def test_administrators_read_the_reason_of_a_refusal(
    tab: Tab, admins_tab: Tab, server: OpenWebUI, simulator: Simulator
) -> None:
    """Administrators read the server's words, users do not; the log has them."""
    simulator.faults.append(refuse_item(text="poison", form="openrouter"))
    sentences = [
        str((await page_tab.send(MODEL, "sim:short poison")).error["message"])
        for page_tab in (tab, admins_tab)
    ]

    users, admins = sentences
    assert SAID not in users
    words = "Invalid 'input[0]': an item of type 'message' is not supported here."
    assert f"{SAID}input[0] (message): {words}" in admins
    for sentence in sentences:
        match = re.search(r"\(Error id: (\w{10})\)", sentence)
        assert match
        [line] = [
            line
            for line in server.log().splitlines()
            if match[1] in line and " refused: model " in line
        ]
        assert words in line


async def test_refusal_in_a_temporary_chat_is_remembered(
    tab: Tab, simulator: Simulator
) -> None:
    """No row says what was refused: it is remembered for the account and the user."""
    messages: list[Json] = []
    paid = []
    for number in range(4):
        since = len(answered(simulator))
        text = f"sim:short Number {number}"
        asking: Json = {"text": text, "body": USED}
        if number == 0:
            asking = {"text": "sim:tool The weather?", "body": CALLED}
        turn = await tab.send(MODEL, **asking, temporary=messages)
        assert turn.error is None
        assert turn.text.strip()
        paid.append(asked(simulator, since))
        data = [event.get("data") or {} for event in turn.events]
        shown = [payload["output"] for payload in data if "output" in payload][-1]
        answer = {"role": "assistant", "content": turn.text, "output": shown}
        messages += [{"role": "user", "content": asking["text"]}, answer]
        if number == 0:
            refused = refuse_item("function_call_output", text="Sunny")
            simulator.faults.append(refused)
        last = kinds(chat_bodies(simulator)[-1]["input"])
        assert ("function_call_output" in last) == (number == 0)
    assert paid == [[200, 200], [400, 200], [200], [200]]


async def test_plain_clients_and_titles_recover_too(
    tab: Tab, member: User, simulator: Simulator
) -> None:
    """A plain client gets its answer, a chat its title, and the next pays nothing."""
    simulator.faults.append(refuse_parameter("reasoning.summary"))
    for _ in range(2):
        result = await member.completion(
            MODEL, [{"role": "user", "content": "sim:short"}]
        )
        assert result["choices"][0]["message"]["content"].startswith("Turn 1.")
    assert asked(simulator) == [400, 200, 200]

    effort = refuse_parameter("reasoning.effort", form="message", chat="### Task:")
    simulator.faults.append(effort)
    simulator.requests.clear()
    tasks = {"title_generation": True}
    turn = await tab.send(MODEL, "sim:short hello", background_tasks=tasks)
    assert turn.error is None
    chat = await tab.user.chat(turn.chat_id)
    assert chat["title"] == "Talking to a Stand-in"
    assert sorted(filter(None, asked(simulator))) == [200, 200, 400]
