"""Who is asked about a call, and what counts as a yes."""

from typing import Any

import pytest

from call_sample import call_of, host_context
from openai_responses.errors import InvalidRequest
from owui_manifold.context import PipeCall
from owui_manifold.host_tools import build_approver, withheld_tools
from owui_manifold.valves import Valves

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
ASKS: Json = {"params": {"tool_approval_mode": "ask"}}


class Page:
    """A page that gives one answer to all that it is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.shown: list[Json] = []

    async def __call__(self, event: Json) -> Any:
        """Show an event."""
        self.shown.append(event)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def ruled(rules: str, **host: Any) -> PipeCall:
    """A call under the administrator's rules."""
    return call_of({}, Valves(TOOL_APPROVAL=rules), host=host_context(**host))


async def is_allowed(
    page: Page | None, metadata: Json, rules: str = "", name: str = "get_weather"
) -> bool:
    """Whether a call may run."""
    approver = build_approver(ruled(rules, metadata=metadata, event_call=page))
    return await approver.refusal("call_1", name, {"city": "Bern"}) is None


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"params": None},
        {"params": {}},
        {"params": {"tool_approval_mode": "full"}},
    ],
)
async def test_nobody_is_asked_unless_the_chat_says_so(metadata: Json) -> None:
    """As in the host."""
    page = Page(False)

    assert await is_allowed(page, metadata)
    assert page.shown == []


async def test_page_shows_the_hosts_card_with_the_call() -> None:
    """Its id, its name and its arguments."""
    page = Page(True)

    assert await is_allowed(page, ASKS)
    [event] = page.shown
    assert event["type"] == "confirmation"
    assert event["data"]["tool_call"] == {
        "id": "call_1",
        "name": "get_weather",
        "arguments": {"city": "Bern"},
    }
    assert "get_weather" in event["data"]["message"]


@pytest.mark.parametrize(
    "answer",
    [
        False,
        None,
        1,
        "true",
        {"error": "disconnected"},
        TimeoutError(),
        RuntimeError("the socket is gone"),
    ],
    ids=str,
)
async def test_only_true_is_a_yes(answer: Any) -> None:
    """Whoever left or did not answer is an object, or an exception."""
    assert not await is_allowed(Page(answer), ASKS)


async def test_nobody_there_is_a_no() -> None:
    """A plain caller has no page."""
    assert not await is_allowed(None, ASKS)
    assert await is_allowed(None, {})


@pytest.mark.parametrize(
    ("rules", "metadata", "answer", "allowed", "asked"),
    [
        ("get_*=deny", {}, True, False, 0),
        ("get_*=ask", {}, True, True, 1),
        ("get_*=ask", {}, False, False, 1),
        ("get_*=auto", ASKS, False, True, 0),
        ("other=deny", ASKS, True, True, 1),
    ],
)
async def test_rules_come_before_the_chats_mode(
    rules: str, metadata: Json, answer: bool, allowed: bool, asked: int
) -> None:
    """The administrator knows the tools."""
    page = Page(answer)

    assert await is_allowed(page, metadata, rules) is allowed
    assert len(page.shown) == asked


async def test_question_to_the_user_is_not_asked_about() -> None:
    """Unless a rule says so."""
    page = Page(False)

    assert await is_allowed(page, ASKS, name="ask_user")
    assert page.shown == []
    assert not await is_allowed(page, ASKS, "ask_user=deny", "ask_user")


async def test_rule_that_is_none_gives_a_sentence() -> None:
    """Before any tool runs."""
    with pytest.raises(InvalidRequest, match="TOOL_APPROVAL"):
        build_approver(ruled("shell=sometimes"))


@pytest.mark.parametrize(
    ("rules", "withheld"),
    [
        ("", set()),
        ("shell=ask", set()),
        ("other=deny", set()),
        ("shell=deny", {"shell", "call_tool"}),
        ("shell=auto, *=deny", {"call_tool", "get_weather"}),
    ],
)
async def test_what_is_denied_is_not_left_to_the_host(
    rules: str, withheld: set[str]
) -> None:
    """Nor what could run it by its name."""
    tools: dict[str, Json] = {
        "shell": {"tool_id": "toolkit"},
        "get_weather": {"tool_id": "toolkit"},
        "call_tool": {"tool_id": "builtin:call_tool"},
    }

    assert withheld_tools(ruled(rules, tools=tools)) == withheld
