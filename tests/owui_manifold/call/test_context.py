"""Who asks is told from what the host passes, whatever is missing of it."""

import pytest

from owui_manifold.call.context import Caller, read_caller

BODY = {"model": "my_pipe.gpt-5.2-high", "stream": True}
IDS = {"chat_id": "chat-1", "message_id": "m-1", "session_id": "s-1"}


def test_caller_that_brings_nothing_is_nobody() -> None:
    """A plain HTTP client sends neither a user nor metadata; the host passes nulls."""
    body = {"model": None, "stream": None}
    ids = {"chat_id": None, "message_id": None}

    assert read_caller({}, None, None, None) == Caller(host_model="")
    assert read_caller(body, {"id": None}, ids, None) == Caller(host_model="")


@pytest.mark.parametrize(
    ("options", "wants"),
    [({"include_usage": True}, True), ({"include_usage": False}, False), (7, False)],
)
def test_program_may_ask_for_a_chunk_of_the_usage(options: object, wants: bool) -> None:
    """As with OpenAI's Chat Completions."""
    caller = read_caller({**BODY, "stream_options": options}, None, None, None)
    assert caller.wants_usage_chunk is wants


def test_task_of_another_function_is_a_program() -> None:
    """A sub-agent's calls name it; it needs calls of its tools, and no page reads it."""
    caller = read_caller(BODY, None, IDS, "sub_agent")

    assert caller.task == ""
    assert not caller.is_open_webui
    assert caller.chat_id == "chat-1"
    assert read_caller(BODY, None, IDS, "title_generation").task == "title_generation"


@pytest.mark.parametrize(
    ("user", "is_admin"),
    [
        ({"id": "user-1", "role": "admin"}, True),
        ({"id": "user-1", "role": "ADMIN"}, False),
        ({}, False),
        (None, False),
    ],
)
def test_administrator_is_told_by_the_role(
    user: dict[str, str] | None, is_admin: bool
) -> None:
    """No other role is one."""
    assert read_caller(BODY, user, IDS, None).is_admin is is_admin


@pytest.mark.parametrize(
    ("host_model", "model"),
    [("my_pipe.gpt-5.2-high", "gpt-5.2-high"), ("gpt_4.o3", "o3"), ("plain", "plain")],
)
def test_model_stands_behind_the_first_dot(host_model: str, model: str) -> None:
    """In front of it is the id of the function, which can be anything."""
    assert Caller(host_model).model == model


@pytest.mark.parametrize(
    ("chat_id", "may"),
    [
        ("chat-1", True),
        ("temporary:s-1", False),
        ("local:s-1", False),
        ("channel:c-1", False),
    ],
)
def test_chats_that_name_no_row_have_none(chat_id: str, may: bool) -> None:
    """Temporary chats in both spellings, and channels."""
    assert Caller("f.m", chat_id=chat_id, message_id="m-1").may_have_row is may
