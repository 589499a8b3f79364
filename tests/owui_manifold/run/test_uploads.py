"""Files for code are uploaded once, and again where the API lost them."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from calls.turns import answered, asked_as, row_of
from openai_responses.errors import InvalidRequest
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Timeouts
from owui_manifold.call.context import CheckedCall
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.run import uploads
from owui_manifold.run.answer import answer_events
from simulator import Simulator
from stand_in.host import StandInHost
from upstream.server import Upstream, replying, started

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
TABLE = b"city,people\nBern,130000\n"


def attach(host: StandInHost, *file_ids: str) -> None:
    """Let the question of the chat come with files."""
    messages = host.chats.rows["chat-1"].chat["history"]["messages"]
    messages["q0"]["files"] = [
        {"type": "file", "id": file_id, "name": host.files.rows[file_id].filename}
        for file_id in file_ids
    ]


def asked(sim: Simulator, text: str, **given: Any) -> CheckedCall:
    """The question of a chat with code."""
    return asked_as(sim, "Be brief.", text, ENABLE_CODE_INTERPRETER=True, **given)


def uploaded(sim: Simulator) -> Json:
    """The contents of the container of the last request, by the names of its files."""
    (tool,) = sim.requests[-1].body["tools"]
    files = [sim.uploads.files[file_id] for file_id in tool["container"]["file_ids"]]
    return {file.name: file.content for file in files}


@pytest.mark.parametrize(
    ("status", "problem", "is_planned_again"),
    [
        (500, r"^a\.csv could not be copied to Python", True),
        (403, r"cannot upload files for Python.* Open WebUI then reads a\.csv", False),
        *((s, r"cannot upload files for Python", False) for s in (401, 404, 405, 501)),
    ],
)
async def test_failed_upload_says_which_file(
    status: int,
    problem: str,
    is_planned_again: bool,
    sim: Simulator,
    host: StandInHost,
    connections: Connections,
) -> None:
    """Nothing is asked without it; who may never upload is not asked again."""
    row_of(host, "How many?")
    attach(host, host.files.add(TABLE, "a.csv"))
    async with Upstream(replying(b"{}", status=status)) as upstream:
        address = upstream.endpoint.base_url
        call = asked(sim, "How many?", BASE_URL=address)
        prepared = await build_chat_request(call)

        with pytest.raises(InvalidRequest, match=problem):
            async for _ in answer_events(prepared, connections):
                pass

        assert len(upstream.requests) == 1
    again = await build_chat_request(call)
    assert bool(again.python_files) == is_planned_again
    # What one user's file met says nothing about the files of others.
    refused = call.capabilities.refused_uploads
    account = call.endpoint.account()
    assert refused.holds(account, "user-1") != is_planned_again
    assert not refused.holds(account, "user-2")


async def test_lost_uploads_are_repeated_at_the_next_try(
    sim: Simulator, host: StandInHost, connections: Connections
) -> None:
    """Somebody deleted them at OpenAI; which ones, the refusal does not say."""
    row_of(host, "sim:short One?")
    attach(host, host.files.add(TABLE, "a.csv"), host.files.add(b"b", "b.csv"))
    call = asked(sim, "sim:short One?")
    await answered(call, connections)
    sim.uploads.forget()

    await answered(call, connections)
    await answered(call, connections)

    statuses = [request.status for request in sim.requests]
    assert (statuses[1], statuses[-1]) == (404, 200)
    assert uploaded(sim) == {"a.csv": TABLE, "b.csv": b"b"}


@pytest.mark.parametrize(
    "timeouts", [Timeouts(first_event=0.3), Timeouts(first_event=60, total=0.3)]
)
async def test_upload_whose_answer_comes_in_drops(
    sim: Simulator,
    host: StandInHost,
    connections: Connections,
    timeouts: Timeouts,
) -> None:
    """It ends at its limit, however many bytes come."""

    async def drops(request: web.Request) -> web.StreamResponse:
        body = await started(request)
        while True:
            await asyncio.sleep(0.02)
            await body.write(b" ")

    row_of(host, "How many?")
    attach(host, host.files.add(TABLE, "a.csv"))
    async with asyncio.timeout(50), Upstream(drops) as upstream:
        call = asked(sim, "How many?", BASE_URL=upstream.endpoint.base_url)
        prepared = await build_chat_request(call)
        limits = prepared.limits._replace(timeouts=timeouts)
        answer = answer_events(prepared._replace(limits=limits), connections)

        with pytest.raises(InvalidRequest, match="did not answer in time"):
            async for _ in answer:
                pass


@pytest.mark.parametrize(
    ("most", "fits"), [(len(TABLE), True), (len(TABLE) - 1, False)]
)
async def test_file_of_the_size_that_may_be_uploaded(
    most: int,
    fits: bool,
    sim: Simulator,
    host: StandInHost,
    connections: Connections,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One byte more is too many: it may have grown since it was chosen."""
    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", most)
    row_of(host, "sim:short One?")
    attach(host, host.files.add(TABLE, "a.csv"))
    call = asked(sim, "sim:short One?")

    if fits:
        await answered(call, connections)
        assert uploaded(sim) == {"a.csv": TABLE}
    else:
        with pytest.raises(InvalidRequest, match="too large"):
            await answered(call, connections)
        assert not sim.requests


async def test_empty_file_is_left_out(
    sim: Simulator, host: StandInHost, connections: Connections
) -> None:
    """The API refuses one; the question is answered all the same."""
    row_of(host, "sim:short One?")
    attach(host, host.files.add(b"", "a.csv"))

    await answered(asked(sim, "sim:short One?"), connections)

    [request] = sim.requests
    assert request.status == 200
