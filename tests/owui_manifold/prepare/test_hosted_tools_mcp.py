"""Remote servers of the administrator, from the valve to the answer."""

import json
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import NATIVE, grown, statuses
from calls.sample import TOOL, USER, chat
from calls.valves import expert

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
SECRET = "canary-of-the-clocks"
CLOCKS: Json = {
    "server_label": "clocks",
    "server_url": "https://clocks.example/mcp",
    "authorization": SECRET,
}
ADMIN = {**USER, "role": "admin"}


def valve(*rows: Any) -> str:
    return json.dumps(list(rows))


def with_servers(desk: Desk, text: str, **more: Any) -> None:
    desk.set_valves(REMOTE_MCP_SERVERS_JSON=text, **more)


def lines(chunks: list[Json]) -> list[str]:
    """The status lines of an answer, but for the one that sums it up."""
    return [
        status for status in statuses(chunks) if not status.startswith("Finished in")
    ]


def asking_admin(**more: Any) -> Json:
    return {"__user__": ADMIN, **more}


class Page:
    """Answers the host's questions, one after the other, and remembers them."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[Json] = []

    async def __call__(self, event: Json) -> Any:
        self.asked.append(event)
        return self._answers.pop(0)


async def test_servers_are_offered_behind_the_searches(desk: Desk) -> None:
    """In the order of the valve, as they were written there, in front of functions."""
    other = {**CLOCKS, "server_label": "atlas", "require_approval": "never"}
    with_servers(desk, valve(CLOCKS, other), ENABLE_WEB_SEARCH=True)
    await desk.chunks(chat("Hi", tools=[TOOL]))

    tools = desk.bodies[0]["tools"]
    assert [tool["type"] for tool in tools] == ["web_search", "mcp", "mcp", "function"]
    assert tools[1:3] == [{"type": "mcp", **CLOCKS}, {"type": "mcp", **other}]


async def test_a_filters_server_takes_the_place_of_ours(desk: Desk) -> None:
    """By its label, where an administrator lets bodies name servers."""
    theirs = {"type": "mcp", **CLOCKS, "authorization": "theirs"}
    body = chat("Hi", extra_tools=[theirs])
    with_servers(desk, valve(CLOCKS))
    await desk.chunks(body)
    opened = "mcp.server_url, mcp.authorization"
    desk.set_valves(EXPERT_JSON=expert(caller_may_set=opened))
    await desk.chunks(body)

    bodies = [body["tools"] for body in desk.bodies]
    assert bodies == [[{"type": "mcp", **CLOCKS}], [theirs]]


async def test_invalid_server_list_is_reported_to_administrators(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """At every answer, in the chat and in the log; the chat goes on without.

    Only the log has it for users; tasks, of which each chat has several, are silent.
    """
    with_servers(desk, valve({"server_url": "https://clocks.example"}))
    await desk.result(chat("Hi"), **asking_admin(), __task__="title_generation")
    assert "REMOTE_MCP_SERVERS_JSON" not in caplog.text

    shown = [
        lines(await desk.ask("Hi", **given))
        for given in (NATIVE, asking_admin(), asking_admin())
    ]

    others, [line], [again] = shown
    assert others == []
    assert "server 1 is left out, because it has no server_label" in line
    assert again == line
    assert caplog.text.count(line) == caplog.text.count("WARNING") == 3
    assert [request.status for request in desk.sim.requests] == [200] * 4
    assert "tools" not in desk.sent


async def test_keys_that_are_not_sent_are_named_once(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Once in the log, once in a chat of an administrator, never to others."""
    with_servers(desk, valve({**CLOCKS, "token": SECRET}))
    shown = [
        lines(await desk.ask("Hi", **given))
        for given in (NATIVE, asking_admin(), asking_admin())
    ]

    others, [note], again = shown
    assert others == again == []
    assert "keys of clocks are not sent: token." in note
    assert caplog.text.count(note) == 1
    assert "token" not in desk.bodies[0]["tools"][0]


@pytest.mark.parametrize(
    ("scenario", "text"),
    [
        ("mcp", valve({**CLOCKS, "headers": {"X-Key": SECRET}})),
        ("mcp-error", valve({**CLOCKS, "headers": {"X-Key": SECRET}})),
        ("html-error", valve({**CLOCKS, "token": SECRET})),
        ("mcp", valve({**CLOCKS, "server_label": "not a label"})),
        ("html-error", f'[{{"authorization": "{SECRET}"'),
    ],
)
async def test_no_secret_is_shown_kept_or_logged(
    desk: Desk, caplog: pytest.LogCaptureFixture, text: str, scenario: str
) -> None:
    """Whatever is wrong, and whatever the server says."""
    with_servers(desk, text, EXPERT_JSON=expert(audit_log=True))
    chunks = await desk.ask(f"sim:{scenario}", **asking_admin())

    assert chunks
    for visible in (json.dumps(chunks), caplog.text, json.dumps(desk.host.kept)):
        assert SECRET not in visible


@pytest.mark.parametrize("approve", [True, False])
async def test_the_hosts_card_asks(desk: Desk, approve: bool) -> None:
    """As for a tool of its own; the answer goes on in the same message."""
    page = Page(approve)
    with_servers(desk, valve(CLOCKS))
    chunks = await desk.ask("sim:mcp-approval", __event_call__=page)

    [question] = page.asked
    call = question["data"]["tool_call"]
    assert (call["name"], call["arguments"]) == ("clocks_now", {"zone": "UTC"})
    assert desk.bodies[1]["input"][-1]["approve"] is approve
    assert grown(chunks).endswith("12:00." if approve else "without.")
