"""Files for code are uploaded once, and again where the API lost them."""

import asyncio
from typing import Any
from unittest.mock import AsyncMock

import pytest
from aiohttp import web

from calls.turns import StoredChat
from openai_responses.errors import InvalidRequest
from openai_responses.loop.events import Status
from openai_responses.transport.deadlines import Timeouts
from owui_manifold.call.uploads import UploadKey
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.run import uploads
from owui_manifold.run.answer import answer_events
from upstream import wire
from upstream.server import Upstream, replying, started, stream_in_pieces, until

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
TABLE = b"city,people\nBern,130000\n"
QUESTION = "sim:short How many?"


def attach(chat: StoredChat, **files: bytes) -> None:
    """Let the question come with these files, which are CSV."""
    chat.hold(QUESTION)
    chat.usual = {"ENABLE_CODE_INTERPRETER": True}
    ids = [chat.host.files.add(files[name], f"{name}.csv") for name in files]
    chat.attach(0, *ids)


@pytest.mark.parametrize(
    ("status", "problem", "is_planned_again"),
    [
        (500, r"^a\.csv could not be copied to Python", True),
        (403, r"cannot upload files for Python.* Open WebUI then reads a\.csv", False),
        *((s, r"cannot upload files for Python", False) for s in (401, 404, 405, 501)),
    ],
)
async def test_failed_upload_says_which_file(
    status: int, problem: str, is_planned_again: bool, chat: StoredChat
) -> None:
    """Nothing is asked without it; who may never upload is not asked again."""
    attach(chat, a=TABLE)
    async with Upstream(replying(b"{}", status=status)) as upstream:
        call = chat.asked("Be brief.", QUESTION, BASE_URL=upstream.endpoint.base_url)

        with pytest.raises(InvalidRequest, match=problem):
            await chat.finish(call)

        assert len(upstream.requests) == 1
    again = await build_chat_request(call)
    assert bool(again.python_files) == is_planned_again
    # What one user's file met says nothing about the files of others.
    refused = call.memory.refused_uploads
    account = call.endpoint.account()
    assert refused.holds(account, "user-1") != is_planned_again
    assert not refused.holds(account, "user-2")


async def test_lost_uploads_are_repeated_at_the_next_try(chat: StoredChat) -> None:
    """Somebody deleted them at OpenAI; which ones, the refusal does not say."""
    attach(chat, a=TABLE, b=b"b")
    call = chat.asked("Be brief.", QUESTION)
    await chat.finish(call)
    chat.sim.uploads.forget()

    await chat.finish(call)
    await chat.finish(call)

    statuses = [request.status for request in chat.sim.requests]
    assert (statuses[1], statuses[-1]) == (404, 200)
    assert chat.uploads_of() == {"a.csv": TABLE, "b.csv": b"b"}


@pytest.mark.parametrize(
    "timeouts",
    [
        Timeouts(first_event=0.3),
        Timeouts(first_event=60, total=0.3),
        Timeouts(first_event=0.3, total=60),
    ],
)
async def test_upload_whose_answer_comes_in_drops(
    timeouts: Timeouts, chat: StoredChat
) -> None:
    """It ends at its limit, however many bytes come."""

    async def drops(request: web.Request) -> web.StreamResponse:
        body = await started(request)
        while True:
            await asyncio.sleep(0.02)
            await body.write(b" ")

    attach(chat, a=TABLE)
    async with asyncio.timeout(50), Upstream(drops) as upstream:
        call = chat.asked("Be brief.", QUESTION, BASE_URL=upstream.endpoint.base_url)

        prepared = await build_chat_request(call)
        limits = prepared.limits._replace(timeouts=timeouts)
        answer = answer_events(prepared._replace(limits=limits), chat.connections)

        with pytest.raises(InvalidRequest, match="did not answer in time"):
            async for _ in answer:
                pass


async def test_line_about_copying_is_no_note(chat: StoredChat) -> None:
    """Nobody needs to read it once the answer is there."""
    attach(chat, a=TABLE)
    prepared = await build_chat_request(chat.asked("Be brief.", QUESTION))

    events = [event async for event in answer_events(prepared, chat.connections)]

    assert events[0] == Status("Copying 1 file to Python", is_note=False)


async def test_file_of_the_size_that_may_be_uploaded(
    chat: StoredChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One byte more is too many: it may have grown since it was chosen."""
    attach(chat, a=TABLE)
    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", len(TABLE) - 1)
    with pytest.raises(InvalidRequest, match="too large"):
        await chat.ask("Be brief.", QUESTION)
    assert not chat.sim.requests

    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", len(TABLE))
    await chat.ask("Be brief.", QUESTION)
    assert chat.uploads_of() == {"a.csv": TABLE}


async def test_file_that_is_gone_by_then_is_named(
    chat: StoredChat, monkeypatch: pytest.MonkeyPatch
) -> None:
    attach(chat, a=TABLE)
    prepared = await build_chat_request(chat.asked("Be brief.", QUESTION))
    monkeypatch.setattr(uploads, "read_file", AsyncMock(return_value=None))

    with pytest.raises(InvalidRequest, match=r"a\.csv .* gone"):
        async for _ in answer_events(prepared, chat.connections):
            pass


async def test_empty_file_is_left_out(chat: StoredChat) -> None:
    """The API refuses one; the question is answered all the same."""
    attach(chat, a=b"")

    await chat.ask("Be brief.", QUESTION)

    [request] = chat.sim.requests
    assert request.status == 200


async def test_file_that_was_replaced_is_uploaded_again(chat: StoredChat) -> None:
    """Under its old id, of the same size: its place in the storage is another."""
    attach(chat, a=TABLE)
    call = chat.asked("Be brief.", QUESTION)
    await chat.finish(call)
    [row] = chat.host.files.rows.values()
    newer = chat.host.files.folder / "newer"
    newer.write_bytes(TABLE.swapcase())
    row.path = str(newer)

    await chat.finish(call)

    assert chat.uploads_of() == {"a.csv": TABLE.swapcase()}


async def test_two_files_of_a_user_are_in_memory_at_once(chat: StoredChat) -> None:
    """With one in each of a hundred chats the server would have no memory left.

    Who waited needs no upload of a file that is there by then.
    """
    attach(chat, a=TABLE)
    may_end = asyncio.Event()
    uploads = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal uploads
        if request.path.endswith("/files"):
            uploads += 1
            await may_end.wait()
            return web.json_response({"id": "file-1"})
        whole = wire.on_the_wire(*wire.whole_stream(wire.message("Many.")))
        return await stream_in_pieces(request, whole)

    async with Upstream(answer) as upstream:
        call = chat.asked("Be brief.", QUESTION, BASE_URL=upstream.base_url)
        asked = [asyncio.create_task(chat.finish(call)) for _ in range(5)]
        await until(lambda: uploads == 2)
        for _ in range(100):
            await asyncio.sleep(0)
        may_end.set()
        await asyncio.gather(*asked)

    assert uploads == 2
    assert len(upstream.requests) == 7


async def test_upload_is_remembered_for_its_user_and_chat(chat: StoredChat) -> None:
    attach(chat, a=TABLE)
    call = chat.asked("Be brief.", QUESTION)
    await chat.finish(call)

    [row] = chat.host.files.rows.values()
    account = call.endpoint.account()
    size = len(TABLE)
    key = UploadKey(account, "user-1", "chat-1", row.id, row.path, size, "a.csv")
    assert call.memory.uploads.find(key)
