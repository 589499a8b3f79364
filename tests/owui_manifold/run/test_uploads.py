"""Files for code are uploaded once, and again where the API lost them."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from aiohttp import web

from calls.turns import asked_as, row_of
from openai_responses.errors import InvalidRequest
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Timeouts
from owui_manifold.call.context import CheckedCall
from owui_manifold.call.uploads import UploadKey
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.run import uploads
from owui_manifold.run.answer import answer_events
from simulator import Simulator
from stand_in.host import StandInHost
from upstream.server import Upstream, replying, started

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
TABLE = b"city,people\nBern,130000\n"
QUESTION = "sim:short How many?"


@dataclass(eq=False)
class Desk:
    """A chat with one question, to which files are attached for code."""

    sim: Simulator
    host: StandInHost
    connections: Connections

    def attach(self, **files: bytes) -> None:
        """Let the question come with these files, which are CSV."""
        row_of(self.host, QUESTION)
        messages = self.host.chats.rows["chat-1"].chat["history"]["messages"]
        messages["q0"]["files"] = [
            {"type": "file", "id": self.host.files.add(content, f"{name}.csv")}
            | {"name": f"{name}.csv"}
            for name, content in files.items()
        ]

    def asked(self, **valves: Any) -> CheckedCall:
        return asked_as(
            self.sim, "Be brief.", QUESTION, ENABLE_CODE_INTERPRETER=True, **valves
        )

    async def answer(self, call: CheckedCall, timeouts: Timeouts | None = None) -> None:
        prepared = await build_chat_request(call)
        if timeouts:
            limits = prepared.limits._replace(timeouts=timeouts)
            prepared = prepared._replace(limits=limits)
        async for _ in answer_events(prepared, self.connections):
            pass

    @property
    def uploaded(self) -> Json:
        """The contents of the container of the last request, by names of files."""
        [tool] = self.sim.requests[-1].body["tools"]
        ids = tool["container"]["file_ids"]
        files = [self.sim.uploads.files[file_id] for file_id in ids]
        return {file.name: file.content for file in files}


@pytest.fixture
def desk(sim: Simulator, host: StandInHost, connections: Connections) -> Desk:
    """A desk whose model is the simulator."""
    return Desk(sim, host, connections)


@pytest.mark.parametrize(
    ("status", "problem", "is_planned_again"),
    [
        (500, r"^a\.csv could not be copied to Python", True),
        (403, r"cannot upload files for Python.* Open WebUI then reads a\.csv", False),
        *((s, r"cannot upload files for Python", False) for s in (401, 404, 405, 501)),
    ],
)
async def test_failed_upload_says_which_file(
    status: int, problem: str, is_planned_again: bool, desk: Desk
) -> None:
    """Nothing is asked without it; who may never upload is not asked again."""
    desk.attach(a=TABLE)
    async with Upstream(replying(b"{}", status=status)) as upstream:
        call = desk.asked(BASE_URL=upstream.endpoint.base_url)

        with pytest.raises(InvalidRequest, match=problem):
            await desk.answer(call)

        assert len(upstream.requests) == 1
    again = await build_chat_request(call)
    assert bool(again.python_files) == is_planned_again
    # What one user's file met says nothing about the files of others.
    refused = call.capabilities.refused_uploads
    account = call.endpoint.account()
    assert refused.holds(account, "user-1") != is_planned_again
    assert not refused.holds(account, "user-2")


async def test_lost_uploads_are_repeated_at_the_next_try(desk: Desk) -> None:
    """Somebody deleted them at OpenAI; which ones, the refusal does not say."""
    desk.attach(a=TABLE, b=b"b")
    call = desk.asked()
    await desk.answer(call)
    desk.sim.uploads.forget()

    await desk.answer(call)
    await desk.answer(call)

    statuses = [request.status for request in desk.sim.requests]
    assert (statuses[1], statuses[-1]) == (404, 200)
    assert desk.uploaded == {"a.csv": TABLE, "b.csv": b"b"}


@pytest.mark.parametrize(
    "timeouts", [Timeouts(first_event=0.3), Timeouts(first_event=60, total=0.3)]
)
async def test_upload_whose_answer_comes_in_drops(
    timeouts: Timeouts, desk: Desk
) -> None:
    """It ends at its limit, however many bytes come."""

    async def drops(request: web.Request) -> web.StreamResponse:
        body = await started(request)
        while True:
            await asyncio.sleep(0.02)
            await body.write(b" ")

    desk.attach(a=TABLE)
    async with asyncio.timeout(50), Upstream(drops) as upstream:
        call = desk.asked(BASE_URL=upstream.endpoint.base_url)

        with pytest.raises(InvalidRequest, match="did not answer in time"):
            await desk.answer(call, timeouts)


async def test_file_of_the_size_that_may_be_uploaded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One byte more is too many: it may have grown since it was chosen."""
    desk.attach(a=TABLE)
    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", len(TABLE) - 1)
    with pytest.raises(InvalidRequest, match="too large"):
        await desk.answer(desk.asked())
    assert not desk.sim.requests

    monkeypatch.setattr(uploads, "MAX_FILE_BYTES", len(TABLE))
    await desk.answer(desk.asked())
    assert desk.uploaded == {"a.csv": TABLE}


async def test_empty_file_is_left_out(desk: Desk) -> None:
    """The API refuses one; the question is answered all the same."""
    desk.attach(a=b"")

    await desk.answer(desk.asked())

    [request] = desk.sim.requests
    assert request.status == 200


async def test_file_that_was_replaced_is_uploaded_again(desk: Desk) -> None:
    """Under its old id, of the same size: its place in the storage is another."""
    desk.attach(a=TABLE)
    call = desk.asked()
    await desk.answer(call)
    [row] = desk.host.files.rows.values()
    newer = desk.host.files.folder / "newer"
    newer.write_bytes(TABLE.swapcase())
    row.path = str(newer)

    await desk.answer(call)

    assert desk.uploaded == {"a.csv": TABLE.swapcase()}


async def test_upload_is_remembered_for_its_user_and_chat(desk: Desk) -> None:
    desk.attach(a=TABLE)
    call = desk.asked()
    await desk.answer(call)

    [row] = desk.host.files.rows.values()
    account = call.endpoint.account()
    size = len(TABLE)
    key = UploadKey(account, "user-1", "chat-1", row.id, row.path, size, "a.csv")
    assert call.capabilities.uploads.find(key)
