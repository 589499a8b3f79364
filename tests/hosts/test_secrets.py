"""No secret gets out of the pipe, whatever breaks and whoever quotes it.

Canaries are planted where secrets are, every error path is walked at the most talkative
log level, and then all that people or administrators can read is searched.
"""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from calls.valves import expert
from hosts.people.client import Json, OpenWebUIError
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.sent import answered, chat_bodies
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import PIPE, PLUGINS, valves_changed
from simulator import Simulator
from simulator.accounts import CANARY_KEY

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

USER_SPEC = f"/api/v1/functions/id/{PIPE}/valves/user/spec"
MODEL = f"{PIPE}.gpt-6.1-sol"
WRONG_KEY = "sk-canary-wrong-51d7aa09c3e4"
PASSWORD = "canary-password-e29b"
PROMPT = "canaryprompt4c7f"
OUTPUT = "canaryoutput81de"
KEYS = (CANARY_KEY, WRONG_KEY, PASSWORD)
SECRETS = (*KEYS, PROMPT, OUTPUT)

STREAM_LEAKS = ("leaky-stream", "leaky-stream-nested", "leaky-stream-failed")
LEAKS = ("leaky-error", "leaky-error-401", "leaky-error-500", *STREAM_LEAKS)
FAULTS = ("drop", "html-200")
UNUSABLE: dict[str, Json] = {
    "wrong key": {"API_KEY": WRONG_KEY},
    "key that cannot be sent": {"API_KEY": f"{CANARY_KEY}\n{WRONG_KEY}"},
    "password": {"BASE_URL": f"http://somebody:{PASSWORD}@127.0.0.1:9/v1"},
    "key in the path": {"BASE_URL": f"http://127.0.0.1:9/{PASSWORD}?key={PASSWORD}"},
    "no address": {"BASE_URL": f"somebody:{PASSWORD}@127.0.0.1"},
    "wrong port": {"BASE_URL": f"http://somebody:{PASSWORD}/x@127.0.0.1"},
}
LOG_TAP = (PLUGINS / "log_tap.py").read_text()


@pytest_asyncio.fixture(scope="module")
async def tapped(admin: User) -> AsyncIterator[None]:
    """A file that gets every line of the pipe, also those that the host drops."""
    await admin.install_function("log_tap", LOG_TAP)
    yield
    await admin.delete_function("log_tap")


@pytest_asyncio.fixture(autouse=True)
async def talkative(admin: User, tapped: None) -> AsyncIterator[None]:
    """A canary for a key, which the simulator accepts, and every line logged."""
    talk = {"LOG_LEVEL": "DEBUG", "EXPERT_JSON": expert(audit_log=True)}
    async with valves_changed(admin, PIPE, API_KEY=CANARY_KEY, **talk):
        yield


_SERVER_WORDS = re.compile(r"The model's server said: .*")


def canaries_in(places: object, *canaries: str) -> list[str]:
    """The canaries, and telling parts of them, that are anywhere in some places."""
    text = places if isinstance(places, str) else json.dumps(places)
    parts = {canary: (canary, canary[-6:]) for canary in canaries}
    return [canary for canary, tells in parts.items() if any(p in text for p in tells)]


class Logs:
    """What was logged since a test began: by the server, and by the pipe at any level."""

    def __init__(self, server: OpenWebUI) -> None:
        self.server = server
        self._begin = [len(text) for text in self._texts()]

    def _texts(self) -> tuple[str, str]:
        ours = self.server.home / "data/pipe.log"
        return self.server.log(), ours.read_text()

    @property
    def new(self) -> list[str]:
        begins = zip(self._texts(), self._begin, strict=True)
        return [text[begin:] for text, begin in begins]

    def check(self) -> None:
        """They name no secret; prompts and outputs only where a server quotes them."""
        for text in self.new:
            assert canaries_in(text, *KEYS) == []
            ours = _SERVER_WORDS.sub("", text)
            assert canaries_in(ours, *SECRETS) == []
            assert "encrypted_content" not in ours

    async def check_turn(self, tab: Tab, turn: Turn) -> None:
        """Neither what the tab saw, nor the chat's row, nor the logs hold a key."""
        assert canaries_in([turn.events, tab.stray], *KEYS) == []
        assert canaries_in(self.server.stored_chat(turn.chat_id), *KEYS) == []
        self.check()


@pytest.fixture
def logs(server: OpenWebUI, tapped: None) -> Logs:
    return Logs(server)


def assert_canaries_are_found() -> None:
    """Whole, in a structure, or the end that the API leaves of a masked key."""
    masked = f"sk-{'*' * 20}{CANARY_KEY[-6:]}"
    assert canaries_in({"a": [f"x{CANARY_KEY}"]}, *SECRETS) == [CANARY_KEY]
    assert canaries_in(f"{masked} {PROMPT}", *SECRETS) == [CANARY_KEY, PROMPT]
    assert canaries_in("nothing", *SECRETS) == []


@pytest.mark.asyncio
async def test_errors_in_a_chat_show_no_secret(
    logs: Logs, tab: Tab, simulator: Simulator
) -> None:
    """The tab gets a message of ours; the key that the server quoted is nowhere."""
    assert_canaries_are_found()
    for scenario in (*LEAKS, *FAULTS):
        simulator.forget()
        turn = await tab.send(MODEL, f"sim:{scenario} {PROMPT}")

        told = turn.error or turn.statuses[-1]["description"]
        assert told, scenario
        assert canaries_in(told, *SECRETS) == [], scenario
        await logs.check_turn(tab, turn)
        if scenario in LEAKS and scenario not in STREAM_LEAKS:
            quoted = answered(simulator)[0].response
            assert canaries_in(quoted, CANARY_KEY) == [CANARY_KEY], scenario

    # What the server quotes is in no other line; this model only calls again.
    simulator.forget()
    turn = await tab.send(MODEL, f"sim:leaky-tool {PROMPT}")
    assert "gave no answer" in turn.error["message"]
    assert canaries_in(turn.error, *SECRETS) == []
    assert PROMPT in chat_bodies(simulator)[1]["input"][-2]["arguments"]
    await logs.check_turn(tab, turn)


@pytest.mark.asyncio
async def test_unusable_valves_show_no_secret(
    logs: Logs, admin: User, member: User, tab: Tab
) -> None:
    """Whatever is wrong with a key or an address, the message does not repeat it.

    Nor does the page of the settings, whose schema names no value. A title that cannot
    be made leaves a line in the log, without the chat.
    """
    for case, valves in UNUSABLE.items():
        async with valves_changed(admin, PIPE, **valves):
            turn = await tab.send(MODEL, f"sim:short {PROMPT}")

        assert turn.error, case
        assert canaries_in(turn.error, *SECRETS) == [], case
        await logs.check_turn(tab, turn)
    assert canaries_in(await admin.valves_spec(PIPE), *SECRETS) == []

    messages = [{"role": "user", "content": f"sim:short {PROMPT}"}]
    for case, stream in (("wrong key", True), ("password", False)):
        async with valves_changed(admin, PIPE, **UNUSABLE[case], **NOT_AGAIN):
            answer = await plain_answer(member, stream, messages)
        assert "error" in json.dumps(answer), case
        assert canaries_in(answer, *SECRETS) == [], case

    body = {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}]}
    before = len(logs.new[1])
    async with valves_changed(admin, PIPE, **UNUSABLE["wrong key"], **NOT_AGAIN):
        answer = await member.call("POST", "/api/v1/tasks/title/completions", body)
    assert canaries_in(answer, *SECRETS) == []
    assert "WARNING" in logs.new[1][before:]
    logs.check()


@pytest.mark.asyncio
async def test_errors_over_plain_http_show_no_secret(
    logs: Logs, admin: User, member: User
) -> None:
    """The caller gets the message alone, not even its own words back."""
    function = {"name": "look", "arguments": json.dumps({"at": PROMPT})}
    called = {"id": "call_1", "type": "function", "function": function}
    ways = (("leaky-error", True), ("leaky-error", False), ("leaky-stream", True))
    async with valves_changed(admin, PIPE, **NOT_AGAIN):
        for scenario, stream in ways:
            messages: list[Json] = [
                {"role": "system", "content": PROMPT},
                {"role": "user", "content": "Look."},
                {"role": "assistant", "content": None, "tool_calls": [called]},
                {"role": "tool", "tool_call_id": "call_1", "content": OUTPUT},
                {"role": "user", "content": f"sim:{scenario} go on"},
            ]
            answer = await plain_answer(member, stream, messages)

            assert "error" in json.dumps(answer), scenario
            assert canaries_in(answer, *SECRETS) == [], scenario
    logs.check()


NOT_AGAIN = {"EXPERT_JSON": expert(max_retries=0)}
"""Chats prove that nothing gets out while an attempt is repeated; it takes a second."""


async def plain_answer(member: User, stream: bool, messages: list[Json]) -> Any:
    """Everything that a plain HTTP client gets."""
    try:
        if stream:
            return [chunk async for chunk in member.chunks(MODEL, messages)]
        return await member.completion(MODEL, messages)
    except OpenWebUIError as refused:
        return {"status": refused.status, "body": refused.body}


@pytest.mark.asyncio
async def test_successful_answer_shows_no_secret(
    logs: Logs, tab: Tab, member: User, simulator: Simulator
) -> None:
    """Nothing is told in good times either, nor in what others load of the pipe."""
    turn = await tab.send(MODEL, f"sim:tool {PROMPT}")
    listed = [await member.models(), await member.call("GET", USER_SPEC)]

    assert turn.error is None
    assert PROMPT in json.dumps(chat_bodies(simulator)[0])
    assert "DEBUG" in logs.new[1]
    assert "responses_api_success" in logs.new[1]
    assert canaries_in(listed, *SECRETS) == []
    await logs.check_turn(tab, turn)
