"""What people ask of the pipe in addition to an answer: checks, switches, the cost."""

from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    NATIVE,
    closings,
    grown,
    statuses,
    usages,
)
from calls.sample import IDS, USER, chat
from chats.pictures import PDF
from owui_manifold.call.valves import UserValves
from stand_in.host import Row

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

ADMIN = {**USER, "role": "admin"}


def asked_by(user: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"__user__": user, "__metadata__": {**IDS, **metadata}}


async def test_check_answers_an_administrator(desk: Desk) -> None:
    """As an answer that streams, is stored and can be read in one piece."""
    streamed = grown(await desk.ask("/check", **asked_by(ADMIN)))
    whole = await desk.result(chat(" /check "), **asked_by(ADMIN))

    assert "✅ **A small request**" in streamed
    assert streamed.strip() == whole["choices"][0]["message"]["content"].strip()
    assert "/check" not in str(desk.bodies)


@pytest.mark.parametrize(
    ("texts", "caller"),
    [
        pytest.param(["/check"], NATIVE, id="of a user"),
        pytest.param(["What does /check do?"], asked_by(ADMIN), id="in the middle"),
        pytest.param(["Hi", "/check"], asked_by(ADMIN), id="of the model"),
    ],
)
async def test_check_inside_a_message_goes_to_the_model(
    desk: Desk, texts: list[str], caller: dict[str, Any]
) -> None:
    """A check is an administrator's, and a message of its own."""
    await desk.ask(*texts, **caller)

    assert texts[0] in str(desk.sent["input"])


async def test_a_switch_of_the_composer_holds_for_its_message(desk: Desk) -> None:
    """The filter tells it in the metadata; the next message is as before."""
    wishes = {"version": 1, "web_search": True, "thinking": "low"}
    await desk.ask("Hi", **asked_by(USER, openai_responses=wishes))
    await desk.ask("Hi", **asked_by(USER))

    switched, plain = desk.bodies[-2:]
    assert switched["reasoning"]["effort"] == "low"
    assert [tool["type"] for tool in switched["tools"]] == ["web_search"]
    assert "tools" not in plain
    assert "effort" not in plain["reasoning"]


@pytest.mark.parametrize(
    ("valve", "own", "role", "shown"),
    [
        (False, "inherit", "user", False),
        (True, "inherit", "user", True),
        (False, "on", "user", True),
        (True, "off", "user", False),
        (False, "off", "admin", False),
        (False, "inherit", "admin", True),  # they pay
    ],
)
async def test_last_line_shows_time_and_tokens(
    desk: Desk, valve: bool, own: Any, role: str, shown: bool
) -> None:
    """And the cost, where it is shown; the host adds up what is in the usage."""
    desk.set_valves(SHOW_COST=valve)
    user = {**USER, "role": role, "valves": UserValves(SHOW_COST=own)}
    chunks = await desk.ask("Hi", **asked_by(user))

    [line] = closings(chunks)
    assert "tokens" in line
    assert ("$" in line) is shown
    [usage] = usages(chunks)
    assert (usage.get("cost", 0) > 0) is shown
    assert ("cost" in usage) is shown


@pytest.mark.parametrize(
    ("may_change", "wishes", "is_whole"),
    [
        ("file_input", ("pdf", None), True),
        ("file_input", ("pdf", "off"), False),
        ("effort", ("pdf", "pdf"), False),
    ],
)
async def test_a_user_chooses_whole_documents_where_allowed(
    desk: Desk, may_change: str, wishes: tuple[Any, str | None], is_whole: bool
) -> None:
    """In their settings, or for one chat in its custom parameters."""
    file = {"type": "file", "id": desk.host.files.add(PDF, "a.pdf"), "name": "a.pdf"}
    question = {"role": "user", "parentId": None, "files": [file]}
    rows = {"history": {"messages": {"q0": question}, "currentId": "q0"}}
    desk.host.chats.rows["chat-1"] = Row("user-1", rows)
    desk.set_valves(USER_MAY_CHANGE=may_change)
    own, parameter = wishes
    user = {**USER, "valves": UserValves(FILE_INPUT=own)}
    body = chat("Read it.")
    if parameter is not None:
        body["file_input"] = parameter

    chunks = await desk.chunks(body, **asked_by(user, user_message_id="q0"))

    sent = desk.sent
    kinds = [part["type"] for part in sent["input"][0]["content"]]
    assert kinds == ["input_file"] * is_whole + ["input_text"]
    assert "file_input" not in sent
    refused = [line for line in statuses(chunks) if "File Input" in line]
    assert bool(refused) is (may_change != "file_input")
