"""Chats and settings of others go on with the pipe."""

import pytest

from calls.old_valves import OLD_USER_VALVES, OLD_VALVES
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import chat_bodies, kinds
from hosts.setup.pipes import MODEL, install_pipe
from owui_manifold.call.valves import Valves
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "toolkit"),
]

OWN = "own.gpt-6.2-sol"
TOOLS = {"tool_ids": ["toolkit"]}


async def test_chat_of_the_hosts_own_connection_continues(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """With its texts, tool calls and results; it stored no reasoning."""
    connection = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [simulator.base_url],
        "OPENAI_API_KEYS": [simulator.api_key],
        "OPENAI_API_CONFIGS": {"0": {"api_type": "responses", "prefix_id": "own"}},
    }
    before = await admin.call("GET", "/openai/config")
    await admin.call("POST", "/openai/config/update", connection)
    try:
        await admin.models()
        await admin.share_model(OWN, "own")
        first = await tab.send(OWN, "sim:tool what time is it?", body=TOOLS)
    finally:
        await admin.call("POST", "/openai/config/update", before)
    second = await tab.send(MODEL, "sim:short and now?", chat_id=first.chat_id)
    third = await tab.send(MODEL, "sim:short and later?", chat_id=first.chat_id)

    assert [turn.error for turn in (first, second, third)] == [None, None, None]
    *_, taken_over, next_turn = chat_bodies(simulator)
    call, output = taken_over["input"][1:3]
    assert kinds(taken_over["input"]) == [
        "user",
        "function_call",
        "function_call_output",
        "assistant",
        "user",
    ]
    assert output["call_id"] == call["call_id"]
    assert kinds(next_turn["input"])[5:] == ["reasoning", "assistant", "user"]


OLD = "old_manifold"
WITHOUT_EFFECT = OLD_VALVES.keys() - Valves.model_fields
FIELDS = "\n".join(f"        {name}: Any = None" for name in OLD_VALVES)
OLD_PIPE = f"""
from typing import Any
from pydantic import BaseModel


class Pipe:
    class Valves(BaseModel):
{FIELDS}

    class UserValves(BaseModel):
        LOG_LEVEL: str = "INHERIT"

    def pipes(self):
        return [{{"id": "gpt-5.2", "name": "gpt-5.2"}}]

    def pipe(self, body: dict, __user__: dict) -> str:
        return ""
"""


async def test_stored_settings_of_an_earlier_pipe_are_read_and_saved(
    tab: Tab,
    admins_tab: Tab,
    admin: User,
    simulator: Simulator,
    pipe_source: str,
    pipe_valves: Json,
) -> None:
    """The update is not refused, no setting of a user is dropped, both can be saved.

    `/check` names each setting that has no effect, until the valves are saved.
    """
    server = {name: pipe_valves[name] for name in ("BASE_URL", "API_KEY")}
    await admin.install_function(OLD, OLD_PIPE)
    await admin.set_valves(OLD, {**OLD_VALVES, **server})
    await tab.user.set_user_valves(OLD, OLD_USER_VALVES)

    try:
        await admin.install_function(OLD, pipe_source)  # refused if it cannot be read
        before = await admin.valves(OLD)
        await admin.models()
        # gpt-5-auto cannot be checked: each question has another model.
        checked = await admins_tab.send(f"{OLD}.gpt-5-thinking-high", "/check")
        saved = await admin.set_valves(OLD, before)
        await install_pipe(
            admin, OLD, pipe_source, {**pipe_valves, "MODEL_ID": "gpt-5.2"}
        )
        own = await tab.user.user_valves(OLD)
        await tab.user.set_user_valves(OLD, {**own, "VERBOSITY": "low"})
        # As a page stored it that knew the old word alone.
        turn = await tab.send(f"{OLD}.gpt-5.2", "sim:short hello")
        sent = chat_bodies(simulator)[-1]
        saved_own = await tab.user.user_valves(OLD)
        checked_again = await admins_tab.send(f"{OLD}.gpt-5.2", "/check")
    finally:
        await admin.delete_function(OLD)

    assert before.keys() == OLD_VALVES.keys()
    for name in WITHOUT_EFFECT:
        assert f"\n  - `{name}`: " in checked.text
        assert name not in checked_again.text
    assert saved.keys() == before.keys() - WITHOUT_EFFECT
    assert saved["PROMPT_CACHE_KEY"] == "user"
    assert saved["PERSIST_REASONING_TOKENS"] == "response"
    assert turn.error is None
    assert sent["text"] == {"verbosity": "low"}
    assert saved_own == {"LOG_LEVEL": "inherit", "VERBOSITY": "low"}
