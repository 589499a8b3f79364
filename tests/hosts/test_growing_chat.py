"""A chat that changes on its way loses nothing: twenty turns in a real Open WebUI."""

import pytest

from bench.growing import (
    MEMORY,
    MODELS,
    STEPS,
    Talk,
    find_changes,
    happen,
    line_of,
    losses_of,
    requests_of,
    switches_ready,
)
from hosts.pipes import valves_changed
from hosts.sent import host_items, kinds
from hosts.tabs import Tab
from hosts.users import User
from openai_responses.appended import APPENDED
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"


@pytest.mark.asyncio
async def test_nothing_is_lost_in_twenty_turns(
    admin: User, simulator: Simulator
) -> None:
    """Effort, web search, tools, clock, memory, a picture, code and a failed tool."""
    person = await admin.add_user("keeper@example.com", "keeper")
    async with (
        person,
        Tab(person) as tab,
        switches_ready(admin),
        valves_changed(admin, PIPE, COMPATIBILITY="openai"),
    ):
        talks = [Talk(f"{PIPE}.{model}", tab) for model in MODELS]
        await happen(talks, admin, PIPE)
        messages = {
            number: message
            for talk in talks
            for number, message in (await person.chat(talk.turns[0].chat_id))[
                "history"
            ]["messages"].items()
        }

    for model, talk in zip(MODELS, talks, strict=True):
        asked = requests_of(simulator, model)
        found = losses_of(asked)
        assert [turn.error for turn in talk.turns] == [None] * len(STEPS)
        made = {kind for one in asked for kind in kinds((one.response or {})["output"])}
        assert {
            "web_search_call",
            "image_generation_call",
            "code_interpreter_call",
        } <= made
        assert MEMORY in str(asked[-1].body)
        assert find_changes(asked) == [""] * (len(asked) - 1)
        assert found.is_met, line_of(found)
        assert found.given == found.thought
        stored = [messages[turn.message_id] for turn in talk.turns]
        assert len(stored) == len(STEPS)
        # Neither a line of status nor an item tells of what was appended.
        lines = {
            line["description"].split(" ")[0]
            for message in stored
            for line in message["statusHistory"]
        }
        assert lines <= {"Finished", "Searched", "Drawing", "Picture"}, lines
        shown = str([[m["content"], *host_items(m)] for m in stored])
        assert not [kind for kind in APPENDED if kind in shown]
