"""What the inlet hands to the pipe, and what the pipe makes of it (R29)."""

from dataclasses import replace
from typing import Any

import pytest

from gpt5_agent.request import PipelineCaller
from gpt5_agent.shell.inlet import (
    CONTEXT_KEY,
    accepted_body,
    read_attached,
    read_caller,
    read_inlet_context,
)
from openai_responses.loop.tools import Approver

METADATA = {
    "chat_id": "c-1",
    "message_id": "m-1",
    "session_id": "s-1",
    "user_id": "u-1",
    "variables": {"{{USER_NAME}}": "Ann"},
    "task": None,
}


def test_the_pipe_reads_what_the_inlet_kept() -> None:
    """The ids of chat, message and user; nothing else about the person.

    The host shows a card only for what it reads as it comes, so nobody is asked where
    nothing streams (R33). A task is answered without the loop (R28).
    """
    context = read_inlet_context({"model": "x", "metadata": METADATA})
    titled = read_inlet_context({"metadata": {**METADATA, "task": "title_generation"}})

    caller = read_caller({"model": "a.b", "stream": True, CONTEXT_KEY: context})
    whole = read_caller({"stream": False, CONTEXT_KEY: context})
    program = read_caller({"stream_options": {"include_usage": True}})

    assert context == {"chat_id": "c-1", "message_id": "m-1", "user_id": "u-1"}
    assert caller == PipelineCaller("a.b", "u-1", "c-1", "m-1", streams=True)
    assert caller.is_open_webui
    assert whole.is_open_webui
    assert (caller.can_ask, whole.can_ask) == (True, False)
    assert not caller.wants_usage_chunk
    assert program == PipelineCaller("", wants_usage_chunk=True)
    assert read_caller({CONTEXT_KEY: titled}).task == "title_generation"


def test_the_pipe_learns_which_files_are_attached() -> None:
    rows: list[Any] = [
        {"type": "file", "id": "f-1", "name": "a.csv"},
        {"type": "image", "id": "f-2", "name": "a.csv"},
        *({"type": "collection", "id": "k-1", "name": "docs"}, {"type": "file"}, 7),
        {"type": "file", "id": "f-3"},
    ]
    body = {"metadata": {**METADATA, "files": rows}}
    numbered = [{**rows[0], "id": f"f-{number}"} for number in range(30)]
    many = {"metadata": {**METADATA, "files": numbered}}

    attached = read_attached({CONTEXT_KEY: read_inlet_context(body)})

    assert attached.files == (("f-1", "a.csv"), ("f-2", "a.csv"), ("f-3", "file"))
    last = [file["id"] for file in read_inlet_context(many)["files"]]
    assert last == [row["id"] for row in numbered[10:]]


def test_the_pipe_learns_whose_tools_and_who_asks() -> None:
    """Ids of toolkits and servers, which the host may put in front of their tools."""
    ids = ["files", "server:0", "server:mcp:docs", "server:openapi:shop|a,b"]
    body = {"metadata": {**METADATA, "tool_ids": ids}}

    for role in ("user", "admin"):
        passed = {CONTEXT_KEY: read_inlet_context(body, {"role": role})}
        names = read_attached(passed).tool_names
        assert names.toolkit_ids == {"files", "0", "shop"}
        assert names.mcp_ids == {"docs"}
        assert read_caller(passed).is_admin is (role == "admin")


def test_files_belong_to_a_user_in_a_chat() -> None:
    """Who knows the id of a chat alone has not its files; a plain client has none."""
    context = read_inlet_context({"metadata": METADATA})

    assert read_caller({CONTEXT_KEY: context}).workspace == "u-1/c-1"
    assert read_caller({CONTEXT_KEY: {"user_id": "u-1"}}).workspace == ""


def test_task_of_another_function_is_a_program() -> None:
    """It gets an answer of the loop, in the form for programs, like that of the pipe."""
    context = read_inlet_context({"metadata": {**METADATA, "task": "research"}})

    caller = read_caller({CONTEXT_KEY: context})
    assert not caller.task
    assert not caller.is_open_webui
    assert caller.chat_id == METADATA["chat_id"]


PLAIN: list[dict[str, Any]] = [
    {},
    {CONTEXT_KEY: None},
    {CONTEXT_KEY: "c-1"},
    {CONTEXT_KEY: {"chat_id": "c-1"}},
    {CONTEXT_KEY: {"message_id": "m-1"}},
    {CONTEXT_KEY: read_inlet_context({"metadata": None})},
    {"metadata": METADATA},
]


@pytest.mark.parametrize("body", PLAIN, ids=repr)
def test_without_both_ids_a_plain_client_reads(body: dict[str, Any]) -> None:
    """Also where somebody sends nonsense in the inlet's place."""
    assert not read_caller(body).is_open_webui


CALLS: dict[str, Any] = {"role": "assistant", "tool_calls": [{"id": "call_1"}]}
TOLD = {**CALLS, "content": ""}


@pytest.mark.parametrize(
    ("body", "accepted"),
    [
        ({}, {"stream": False}),
        ({"stream": None}, {"stream": False}),
        ({"stream": True, "messages": "x"}, {"stream": True, "messages": "x"}),
        (
            {"stream": True, "messages": [{**CALLS, "content": None}, CALLS, TOLD, 7]},
            {"stream": True, "messages": [TOLD, TOLD, TOLD, 7]},
        ),
    ],
    ids=["no stream", "null", "a stream", "calls without a text"],
)
def test_server_accepts_what_chat_completions_allow(
    body: dict[str, Any], accepted: dict[str, Any]
) -> None:
    """Its own defaults are others: a stream, and a content in each message."""
    assert accepted_body(body) == accepted


@pytest.mark.parametrize("ids", [[f"kit_{n}" for n in range(60)], ["x" * 300]])
def test_rules_hold_for_each_tool_of_a_chat_that_names_too_many(ids: list[str]) -> None:
    """All of them with all names of tools took seconds, for which others waited."""
    context = read_inlet_context({"metadata": {"tool_ids": ids}})

    names = read_attached({CONTEXT_KEY: context}).tool_names
    approver = Approver(
        [("crm_*", "ask")], other_names=names.other_names, may_match=names.may_match
    )

    assert approver.rule_for("mail") == "ask"
    assert len(names.other_names("mail")) <= 50
    assert not replace(names, own_tools=frozenset({"mail"})).may_match("mail", "crm_*")
