"""A chat that changes on its way loses nothing in a real Open WebUI."""

import pytest

from hosts.chats.growing_chat import (
    MEMORY,
    STEPS,
    GrowingChat,
    changes_between,
    count_reasoning,
    growing_tools,
    let_grow,
    requests_of,
)
from hosts.chats.lighthouse import MIN_CACHED, cached_shares
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import host_items, kinds
from hosts.setup.pipes import PIPE, valves_changed
from openai_responses.appended import APPENDED
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

MODELS = ("gpt-6.1-sol", "gpt-6.2-sol")
HOSTED_CALLS = {"web_search_call", "image_generation_call", "code_interpreter_call"}


@pytest.mark.asyncio
async def test_nothing_is_lost_while_settings_change(
    admin: User, simulator: Simulator
) -> None:
    """Effort, web search, tools, clock, memory, a picture, code and a failed tool."""
    person = await admin.add_user("keeper@example.com", "keeper")
    messages: Json = {}
    async with (
        person,
        Tab(person) as tab,
        growing_tools(admin),
        valves_changed(admin, PIPE, COMPATIBILITY="openai"),
    ):
        chats = [GrowingChat(f"{PIPE}.{model}", tab) for model in MODELS]
        await let_grow(chats, admin, PIPE)
        for chat in chats:
            stored = await person.chat(chat.turns[0].chat_id)
            messages |= stored["history"]["messages"]

    for model, chat in zip(MODELS, chats, strict=True):
        requests = requests_of(simulator, model)
        answers = [request.response or {} for request in requests]
        assert [turn.error for turn in chat.turns] == [None] * len(STEPS)
        outputs = [item for answer in answers for item in answer["output"]]
        assert set(kinds(outputs)) >= HOSTED_CALLS
        assert MEMORY in str(requests[-1].body)
        assert changes_between(requests) == []
        assert min(cached_shares(requests)) >= MIN_CACHED
        assert not any(answer.get("input_transformations") for answer in answers)
        made = sum(count_reasoning(answer["output"]) for answer in answers[:-1])
        assert count_reasoning(requests[-1].body["input"]) == made
        # Neither a line of status nor an item tells of what was appended.
        answers_in_chat = [messages[turn.message_id] for turn in chat.turns]
        lines = set()
        for message in answers_in_chat:
            for line in message["statusHistory"]:
                lines.add(line["description"].split(" ")[0])
        assert lines <= {"Finished", "Searched", "Generating", "Image"}, lines
        shown = str([[m["content"], *host_items(m)] for m in answers_in_chat])
        assert not [kind for kind in APPENDED if kind in shown]
