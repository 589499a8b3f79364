"""What the API refuses is left out, told and remembered, in the real Open WebUI."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from calls.outcomes import RESPONDED
from calls.valves import expert
from chats.pictures import PNG
from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.sent import answered, assert_each_continues, chat_bodies, kinds, outputs
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, valves_changed
from simulator import Simulator
from simulator.faults import (
    FailedStart,
    refuse_item,
    refuse_parameter,
    refuse_tool,
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
SAID = "The server said: "


@pytest_asyncio.fixture(scope="module")
async def recovering_pipe(
    admin: User, pipe_source: str, pipe_valves: Json
) -> AsyncIterator[None]:
    """A copy of the pipe: what it learns of refusals is not for other tests.

    Nor is its patience: half a minute is the least that the valve takes.
    """
    models = {"MODEL_ID": "gpt-6.2-sol, gpt-5.2"}
    source = pipe_source.replace("ge=30,", "ge=1,")
    assert source != pipe_source
    await install_pipe(admin, PIPE, source, pipe_valves | models)
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
    """The statuses of the requests from a number on."""
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


@pytest_asyncio.fixture
async def in_row(admin: User) -> AsyncIterator[None]:
    """Records in a key of the chat's row, with markers."""
    async with valves_changed(admin, PIPE, HISTORY_CARRIER="markers"):
        yield


@pytest.mark.usefixtures("in_row")
async def test_refused_reasoning_is_left_out_for_good(
    tab: Tab, simulator: Simulator
) -> None:
    """What cannot be read; if nothing is named, words alone are sent, this once."""
    chat = Chat(tab, simulator)
    await chat.ask("sim:two-reasonings Hello")
    await chat.ask("sim:tool The weather?", body=CALLED)
    thought = outputs(simulator)[0][0]["encrypted_content"]
    unread = refuse_item("reasoning", text=thought, form="phrase")
    simulator.faults.append(unread)
    await chat.heal(
        "sim:short First.",
        "The server could not read earlier reasoning in this chat: answering without it.",
    )

    newest = outputs(simulator)[-1][0]["encrypted_content"]
    unnamed = refuse_item("reasoning", text=newest, form="unnamed")
    simulator.faults.append(unnamed)
    await chat.heal(
        "sim:short Second.",
        "The server rejected this chat as it was: only its texts and tool results were "
        "sent.",
    )
    healed = kinds(chat_bodies(simulator)[-1]["input"])
    assert "reasoning" not in healed
    simulator.faults.remove(unnamed)
    await chat.ask("sim:short Third.")
    assert "reasoning" in kinds(chat_bodies(simulator)[-1]["input"])


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
            if match[1] in line and "refused: HTTP" in line
        ]
        assert words in line


TRANSIENT = (
    FailedStart("failed", text="Retry 0", usage=True),
    FailedStart("error", text="Retry 1", code="rate_limit_exceeded", times=2),
    FailedStart("cut", text="Retry 2"),
    FailedStart("failed", text="Retry 3", after_rounds=1, usage=True),
)


async def test_early_failures_are_retried_and_billed(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """They are made again, leave no trace but a status line, and are billed."""
    undisturbed = await tab.send(MODEL, "sim:tool Weather?", body=CALLED)
    whole = await tab.message(undisturbed)
    for number, fault in enumerate(TRANSIENT):
        simulator.requests.clear()
        simulator.faults.append(fault)
        turn = await tab.send(MODEL, f"sim:tool Retry {number}?", body=CALLED)
        stored = await tab.message(turn)

        assert turn.error is None
        assert len(status_lines(turn)) == fault.times
        assert all("Trying again in a moment." in line for line in status_lines(turn))
        assert asked(simulator) == [200] * (2 + fault.times)
        types = [
            [item["type"] for item in message["output"]] for message in (stored, whole)
        ]
        assert types[0] == types[1]
        assert stored["content"].count("It said: ") == 1
        billed = [
            (r.response or {}).get("response", r.response) for r in answered(simulator)
        ]
        counts = [(response or {}).get("usage") for response in billed]
        total = sum(count["total_tokens"] for count in counts if count)
        assert stored["usage"]["total_tokens"] == total
        assert sum(map(bool, counts)) == 2 + fault.usage

    simulator.faults.append(FailedStart("stall", text="Silence"))
    async with valves_changed(admin, PIPE, EXPERT_JSON=expert(idle_timeout_seconds=1)):
        silent = await tab.send(MODEL, "sim:short Silence")
    assert silent.error is None
    [line] = status_lines(silent)
    assert line.startswith("The model's server did not answer. Trying again")

    simulator.faults.append(FailedStart("cut", text="Nothing"))
    async with valves_changed(admin, PIPE, EXPERT_JSON=expert(max_retries=0)):
        nothing = await tab.send(MODEL, "sim:short Nothing")
    assert "Everything received so far is kept" not in nothing.error["message"]
    assert [i for i in (await tab.message(nothing))["output"] if "content" in i] == []


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


async def test_refused_tools_and_parameters_are_remembered_for_the_model(
    tab: Tab, admins_tab: Tab, admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """A function, OpenAI's own tool, a parameter and an unknown field, each once.

    They are remembered for the model, also in another chat; another model is asked once
    more. What a user chose says nothing about others. The log has the server's words.
    """
    chat = Chat(tab, simulator)
    mine = {**USED, "reasoning_effort": "high"}
    async with valves_changed(admin, PIPE, ENABLE_WEB_SEARCH=True):
        await chat.ask("sim:commentary Member here.", body=mine)
        simulator.faults.append(
            refuse_tool("get_weather", chat="Member here.", form="litellm")
        )
        simulator.faults.append(
            refuse_tool("web_search", chat="Member here.", form="phrase")
        )
        simulator.faults.append(
            refuse_parameter("include", chat="Member here.", delivery="failed")
        )
        await chat.ask("sim:short First.", body=mine)
        first = status_lines(chat.turns[-1])
        since = len(answered(simulator))
        for number in range(3):
            await chat.ask(f"sim:short And now, {number}?", body=mine)
        assert asked(simulator, since) == [200] * 3
        assert_each_continues(simulator, since - 1)
        since = len(answered(simulator))
        for number in range(2):
            await chat.ask(f"sim:short Another {number}?", OTHER, body=mine)
        assert asked(simulator, since) == [400, 400, 200, 200, 200]  # one in a stream

        simulator.faults.append(refuse_item("message", key="phase", form="openrouter"))
        unknown = "The model's server does not accept phase: answering without it."
        await chat.heal("sim:short Once more.", unknown, model=OTHER, body=mine)
        simulator.faults.pop()
        others = await admins_tab.send(MODEL, "sim:short Admin here.", body=USED)

    assert first == [
        "The model's server does not accept the tool get_weather: answering without it.",
        "The model's server does not accept the tool web_search: answering without it.",
        "The model's server does not accept include: answering without it.",
    ]
    assert status_lines(others) == []
    [sent] = chat_bodies(simulator)[-1:]
    names = {tool.get("name") or tool["type"] for tool in sent["tools"]}
    assert {"get_weather", "web_search"} <= names
    assert "include" in sent
    log = server.log()
    assert "(get_weather): Invalid schema for function 'get_weather'" in log


FOREIGN_KEY = "tools[0].allowed_tools 'text' x"
CLOCKS: Json = {
    "type": "mcp",
    "server_label": "clocks",
    "server_url": "https://clocks.example/mcp",
    "allowed_tools": ["read"],
    "require_approval": "never",
}


async def test_a_users_key_changes_nothing_for_others(
    tab: Tab, admins_tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The API would quote it: a place in the request, and the name of a guard."""
    async with valves_changed(
        admin, PIPE, REMOTE_MCP_SERVERS_JSON=json.dumps([CLOCKS])
    ):
        for page_tab, more in ((admins_tab, {}), (tab, {"text": {FOREIGN_KEY: 1}})):
            turn = await page_tab.send(MODEL, "sim:short Hello.", body={**USED, **more})
            assert turn.error is None
        await admins_tab.send(MODEL, "sim:short Hello.", body=USED)

    before, *_, after = chat_bodies(simulator)
    assert CLOCKS.items() <= before["tools"][0].items()
    assert after["tools"] == before["tools"]
    assert all(body["store"] is False for body in chat_bodies(simulator))
    assert asked(simulator) == [200, 200, 200]


@pytest.mark.parametrize(
    ("code", "times"),
    [("service_unavailable_error", 1), ("hiccup", 1), ("hiccup", 2)],
    ids=["named trouble", "unknown trouble", "twice"],
)
async def test_one_bad_moment_costs_a_chat_nothing(
    tab: Tab, simulator: Simulator, code: str, times: int
) -> None:
    """OpenAI itself begins a stream so: the next questions send all reasoning again."""
    turn = await tab.send(MODEL, "sim:chat one")
    simulator.faults.append(FailedStart("error", code, times=times, text="two"))
    second = await tab.send(MODEL, "sim:chat two", chat_id=turn.chat_id)
    simulator.faults.clear()
    third = await tab.send(MODEL, "sim:chat three", chat_id=turn.chat_id)

    assert second.error is None
    assert third.error is None
    bodies = chat_bodies(simulator)
    assert bodies[1] == bodies[2]  # the same bytes, before anything is left out
    assert kinds(bodies[-1]["input"]).count("reasoning") == 2
    assert bodies[-1]["stream"] is True
