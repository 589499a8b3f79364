"""What a Pipelines server does with a file, its valves, a question, an answer.

All of this was seen in the real server. `PIPELINES_SERVER`, set to a checkout of it,
shows it again.
"""

import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from hosts.people.client import Client, Json, OpenWebUIError
from hosts.plugins.pipeline_samples import (
    ANSWERS,
    ASYNC_GENERATOR,
    COROUTINES,
    MANIFOLD,
    PLAIN,
    STARTUP_FAILS,
    UNLOADABLE,
)
from hosts.servers.offline import BootError
from hosts.servers.pipelines_server import PipelinesServer, completion_body

pytestmark = [pytest.mark.pipelines, pytest.mark.asyncio]

FIRST = "agents.first"


@pytest_asyncio.fixture(scope="module")
async def shared() -> AsyncIterator[PipelinesServer]:
    """A server with the samples that load."""
    async with PipelinesServer() as running:
        for name, source in (("plain", PLAIN), ("sample", MANIFOLD)):
            await running.upload(name, source)
        yield running


@pytest_asyncio.fixture
async def server(shared: PipelinesServer) -> PipelinesServer:
    """The same, with the kinds of answers as they were at first."""
    await shared.upload("answers", ANSWERS)
    return shared


def contents(chunks: list[Json]) -> list[object]:
    """What each chunk adds to the text; None for the chunk that ends it."""
    return [chunk["choices"][0]["delta"].get("content") for chunk in chunks]


async def answer_of(server: PipelinesServer, model: str, text: str) -> str:
    answer = await server.complete(model, text)
    content: str = answer["choices"][0]["message"]["content"]
    return content


# ---------------------------------------------------------------------- loading


async def test_ids_come_from_the_attribute_or_the_file(server: PipelinesServer) -> None:
    """A manifold's models carry its id, and its name in front of their own.

    What lies in a deeper folder is no pipeline. A type that is called "pipe" hides one:
    it is loaded, and offered nowhere.
    """
    deeper = server.folder / "deeper"
    deeper.mkdir()
    (deeper / "hidden.py").write_text(PLAIN)
    typed = PLAIN.replace("    def pipe", '    type = "pipe"\n\n    def pipe')
    await server.upload("hidden_by_type", typed)
    await server.call("POST", "/pipelines/reload")

    listed = await server.models()
    files = (await server.call("GET", "/pipelines"))["data"]
    await server.call("DELETE", "/pipelines/delete", {"id": "hidden_by_type"})

    names = {model["id"]: model["name"] for model in listed}
    assert names["plain"] == "plain"
    assert names["agents.first"] == "Agents: First"
    assert names["agents.second"] == "Agents: Second"
    assert {model["pipeline"]["type"] for model in listed} == {"pipe", "manifold"}
    assert {file["id"]: file["name"] for file in files} == {
        "plain": "plain",
        "agents": "sample",
        "answers": "answers",
        "hidden_by_type": "hidden_by_type",
    }
    assert not {"hidden", "hidden_by_type"} & names.keys()


async def test_a_failed_load_is_called_a_success(server: PipelinesServer) -> None:
    """The upload answers true, the file is moved away, the log alone says why."""
    for name, (source, words) in UNLOADABLE.items():
        before = len(server.log())
        answer = await server.upload(name, source)

        assert answer["status"] is True, name
        assert not (server.folder / f"{name}.py").exists(), name
        assert (server.folder / "failed" / f"{name}.py").exists(), name
        assert name not in {model["id"] for model in await server.models()}
        assert words in server.log()[before:], name


async def test_a_reload_stops_the_old_and_starts_the_new(
    server: PipelinesServer,
) -> None:
    """An upload of one file makes every pipeline anew."""
    await server.set_valves("agents", {"WORD": "two"})
    text = await answer_of(server, FIRST, "x")

    await server.upload("plain", PLAIN)

    assert text == "first two 1 ['started', 'valves two 1']"
    assert await answer_of(server, FIRST, "x") == "first two 1 ['started']"


async def test_a_failing_startup_or_valve_ends_the_server() -> None:
    """Nothing else is served either: a start that raises, a value that is refused."""
    async with PipelinesServer() as server:
        await server.upload("sample", MANIFOLD)
        with pytest.raises(OpenWebUIError, match="no start today"):
            await server.upload("broken", STARTUP_FAILS)
        await server.stop()
        server.launch()
        with pytest.raises(BootError, match="no start today"):
            await server.ready()

        (server.folder / "broken.py").unlink()
        (server.folder / "sample/valves.json").write_text('{"NUMBER": "no number"}')
        server.launch()
        with pytest.raises(BootError, match="startup failed"):
            await server.ready()


# ----------------------------------------------------------------------- valves


async def test_an_update_replaces_all_valves(server: PipelinesServer) -> None:
    """What an update leaves out goes back to its default, and is stored so.

    A reload puts the file over the defaults. The error of a refused value quotes it.
    There is no lock: anybody reads and writes valves and completes; the lists alone
    want the key.
    """
    (server.folder / "sample/valves.json").write_text('{"NUMBER": 7, "OLD": 1}')
    await server.call("POST", "/pipelines/reload")
    assert await server.valves("agents") == {"WORD": "one", "NUMBER": 7, "KIND": "a"}

    await server.set_valves("agents", {"WORD": "two", "NUMBER": 2})
    await server.set_valves("agents", {"NUMBER": 3})
    wanted = {"WORD": "one", "NUMBER": 3, "KIND": "a"}
    assert await server.valves("agents") == wanted
    stored = (server.folder / "sample/valves.json").read_text()
    assert json.loads(stored) == wanted

    with pytest.raises(OpenWebUIError, match="a canary") as refused:
        await server.set_valves("agents", {"NUMBER": "a canary"})
    assert refused.value.status == 500

    async with Client(server.url) as stranger:
        await stranger.call("POST", "/agents/valves/update", {"WORD": "three"})

        assert (await stranger.call("GET", "/agents/valves"))["WORD"] == "three"
        spec = await stranger.call("GET", "/v1/agents/valves/spec")
        assert set(spec["properties"]) == {"WORD", "NUMBER", "KIND"}
        body = {**completion_body("plain", "x"), "stream": False}
        assert await stranger.call("POST", "/chat/completions", body)
        for method, path in (
            ("GET", "/models"),
            ("GET", "/pipelines"),
            ("POST", "/pipelines/reload"),
        ):
            with pytest.raises(OpenWebUIError) as refused:
                await stranger.call(method, path)
            assert refused.value.status in (401, 403)


# --------------------------------------------------------- filters and messages


async def test_what_reaches_the_pipe_and_what_never_does(
    server: PipelinesServer,
) -> None:
    """The inlet sees metadata and user, without a key; its keys stay in the body.

    The caller gets an exception's own text. A null never reaches the pipe, as other
    clients send with tool calls, nor a manifold's bare id.
    """
    body = {**completion_body(FIRST, "x"), "metadata": {"chat_id": "c"}}
    form: Json = {"body": body, "user": {"name": "Ann"}}
    async with Client(server.url) as stranger:
        seen = await stranger.call("POST", f"/{FIRST}/filter/inlet", form)
        out = await stranger.call("POST", f"/{FIRST}/filter/outlet", form)

    assert seen["agent_context"] == ["Ann", "c"]
    assert out == body
    passed = {"agent_context": seen["agent_context"], "stream": False}
    answer = await server.complete("plain", "x", **passed)
    content = answer["choices"][0]["message"]["content"]
    assert content == "plain: x, 1, ['Ann', 'c']"
    form["user"] = None
    with pytest.raises(OpenWebUIError, match="NoneType") as refused:
        await server.call("POST", f"/{FIRST}/filter/inlet", form)

    assert refused.value.status == 500

    messages: list[Json] = [{"role": "assistant", "content": None}]
    statuses: list[int] = []
    for stream in (True, False):
        body = {"model": "plain", "messages": messages, "stream": stream}
        with pytest.raises(OpenWebUIError) as refused:
            await server.call("POST", "/chat/completions", body)
        statuses.append(refused.value.status)
    for model in ("agents", "no such"):
        with pytest.raises(OpenWebUIError) as refused:
            await server.complete(model, "x")
        statuses.append(refused.value.status)

    assert statuses == [422, 422, 404, 404]


# ---------------------------------------------------------------------- streams


async def test_what_becomes_of_a_streamed_answer(server: PipelinesServer) -> None:
    """Texts and bytes are content; a dict, a model or a line is sent as it is.

    Only generators and strings are finished by the server. An exception breaks the
    body: the status was sent long before.
    """
    raw = await server.raw_stream("answers", "text")
    chunks = await server.chunks("answers", "text")
    assert contents(chunks) == ["said", None]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert raw.endswith(b"data: [DONE]")
    by_default = await server.raw_stream("plain", "x")
    assert by_default.startswith(b"data: ")

    assert contents(await server.chunks("answers", "texts")) == ["one", "two", None]
    dicts = await server.raw_stream("answers", "dicts")
    assert dicts.startswith(b'data: {"event": 1}\n\ndata: {"word":"w"}\n\n')
    lines = await server.raw_stream("answers", "lines")
    assert lines.startswith(b"data: {}\n\ndata: 1\n\n")

    own = await server.raw_stream("answers", "own")
    assert b"one" in own
    assert b"[DONE]" not in own
    assert b'"stop"' not in own

    with pytest.raises(aiohttp.ClientPayloadError):
        await server.raw_stream("answers", "breaks")


async def test_what_becomes_of_a_whole_answer(server: PipelinesServer) -> None:
    """A dict or a model is the answer; all that a generator yields is joined as text.

    The server writes what was said into its log. An error has a status, and no words.
    An async pipe is silently empty: neither kind is awaited.
    """
    assert await server.complete("answers", "dict") == {"whole": True}
    assert await server.complete("answers", "model") == {"word": "w"}
    assert (await answer_of(server, "answers", "dicts")).startswith("{'event': 1}")
    before = len(server.log())
    await server.complete("answers", "text")
    assert "stream:false:said" in server.log()[before:]
    with pytest.raises(OpenWebUIError) as refused:
        await server.complete("answers", "raises")
    assert (refused.value.status, refused.value.body) == (500, "Internal Server Error")

    samples = {"coroutine": COROUTINES, "async_generator": ASYNC_GENERATOR}
    for name, source in samples.items():
        await server.upload(name, source)
        streamed = await server.raw_stream(name, "x")
        whole = await answer_of(server, name, "x")
        await server.call("DELETE", "/pipelines/delete", {"id": name})
        assert (streamed, whole) == (b"", ""), name


async def test_a_reader_who_leaves_is_not_noticed(server: PipelinesServer) -> None:
    """A generator that waits is not closed: it runs on, and is pulled no more."""
    body = completion_body("answers", "waits")
    async with server.http.post(f"{server.url}/chat/completions", json=body) as answer:
        assert b"begun" in await answer.content.readany()
        answer.close()

    await server.complete("answers", "let_go")

    seen = await server.complete("answers", "was_seen")
    while "waited" not in seen["choices"][0]["message"]["content"]:
        seen = await server.complete("answers", "was_seen")
    events = json.loads(seen["choices"][0]["message"]["content"])
    assert events[:2] == ["let go", "waited to the end"]
    assert "pulled after that" not in events
