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


# ---------------------------------------------------------------------- loading


async def test_ids_come_from_the_attribute_or_the_file(server: PipelinesServer) -> None:
    """A manifold's models carry its id, and its name in front of their own."""
    listed = await server.models()
    names = {model["id"]: model["name"] for model in listed}

    assert names["plain"] == "plain"
    assert names["agents.first"] == "Agents: First"
    assert names["agents.second"] == "Agents: Second"
    assert {model["pipeline"]["type"] for model in listed} == {"pipe", "manifold"}
    files = (await server.call("GET", "/pipelines"))["data"]
    ids = {file["id"]: file["name"] for file in files}
    assert ids == {"plain": "plain", "agents": "sample", "answers": "answers"}


async def test_only_the_folder_itself_is_read(server: PipelinesServer) -> None:
    """What lies deeper is no pipeline."""
    deeper = server.folder / "deeper"
    deeper.mkdir()
    (deeper / "hidden.py").write_text(PLAIN)

    await server.call("POST", "/pipelines/reload")

    assert "hidden" not in {model["id"] for model in await server.models()}


async def test_a_type_called_pipe_hides_a_pipeline(server: PipelinesServer) -> None:
    """It is loaded, and offered nowhere."""
    source = PLAIN.replace("    def pipe", '    type = "pipe"\n\n    def pipe')

    await server.upload("hidden_by_type", source)
    offered = {model["id"] for model in await server.models()}
    loaded = {file["id"] for file in (await server.call("GET", "/pipelines"))["data"]}
    await server.call("DELETE", "/pipelines/delete", {"id": "hidden_by_type"})

    assert "hidden_by_type" in loaded - offered


@pytest.mark.parametrize("name", UNLOADABLE)
async def test_a_failed_load_is_called_a_success(
    server: PipelinesServer, name: str
) -> None:
    """The upload answers true, the file is moved away, the log alone says why."""
    source, words = UNLOADABLE[name]
    before = len(server.log())

    answer = await server.upload(name, source)

    assert answer["status"] is True
    assert not (server.folder / f"{name}.py").exists()
    assert (server.folder / "failed" / f"{name}.py").exists()
    assert name not in {model["id"] for model in await server.models()}
    assert words in server.log()[before:]


async def test_a_reload_stops_the_old_and_starts_the_new(
    server: PipelinesServer,
) -> None:
    """An upload of one file makes every pipeline anew."""
    await server.set_valves("agents", {"WORD": "two"})
    text = (await server.complete(FIRST, "x"))["choices"][0]["message"]["content"]

    await server.upload("plain", PLAIN)

    again = (await server.complete(FIRST, "x"))["choices"][0]["message"]["content"]
    assert text == "first two 1 ['started', 'valves two 1']"
    assert again == "first two 1 ['started']"


async def test_a_failing_startup_ends_the_server() -> None:
    """Neither it nor unreadable valves are forgiven: nothing else is served either."""
    async with PipelinesServer() as server:
        await server.upload("plain", PLAIN)
        with pytest.raises(OpenWebUIError, match="no start today"):
            await server.upload("broken", STARTUP_FAILS)
        await server.stop()

        server.launch()
        with pytest.raises(BootError, match="no start today"):
            await server.ready()


async def test_unreadable_valves_end_the_server() -> None:
    """A stored value that the model refuses keeps the whole server from booting."""
    async with PipelinesServer() as server:
        await server.upload("sample", MANIFOLD)
        await server.stop()
        for stored in ('{"NUMBER": "no number"}', "no json", "[1]"):
            (server.folder / "sample/valves.json").write_text(stored)

            server.launch()
            with pytest.raises(BootError, match="startup failed"):
                await server.ready()


# ----------------------------------------------------------------------- valves


async def test_stored_valves_lie_over_the_defaults(server: PipelinesServer) -> None:
    """The file has what was set; a reload puts it over the defaults."""
    (server.folder / "sample/valves.json").write_text('{"NUMBER": 7, "OLD": 1}')

    await server.call("POST", "/pipelines/reload")

    assert await server.valves("agents") == {"WORD": "one", "NUMBER": 7, "KIND": "a"}


async def test_an_update_replaces_all_valves(server: PipelinesServer) -> None:
    """What an update leaves out goes back to its default, and is stored so."""
    await server.set_valves("agents", {"WORD": "two", "NUMBER": 2})

    await server.set_valves("agents", {"NUMBER": 3})

    wanted = {"WORD": "one", "NUMBER": 3, "KIND": "a"}
    assert await server.valves("agents") == wanted
    stored = (server.folder / "sample/valves.json").read_text()
    assert json.loads(stored) == wanted


async def test_a_refused_valve_is_told_with_what_was_given(
    server: PipelinesServer,
) -> None:
    """The error quotes the value: a model that raises shows what it was given."""
    with pytest.raises(OpenWebUIError, match="a canary") as refused:
        await server.set_valves("agents", {"NUMBER": "a canary"})

    assert refused.value.status == 500


async def test_the_valves_have_no_lock(server: PipelinesServer) -> None:
    """Anybody reads and writes valves and completes; the lists alone want the key."""
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


# ---------------------------------------------------------------------- filters


async def test_keys_added_by_the_inlet_reach_the_pipe(server: PipelinesServer) -> None:
    """The inlet sees metadata and user, without a key; its keys stay in the body."""
    body = {**completion_body(FIRST, "x"), "metadata": {"chat_id": "c"}}
    form = {"body": body, "user": {"name": "Ann"}}
    async with Client(server.url) as stranger:
        seen = await stranger.call("POST", f"/{FIRST}/filter/inlet", form)
        out = await stranger.call("POST", f"/{FIRST}/filter/outlet", form)

    assert seen["agent_context"] == ["Ann", "c"]
    assert out == body
    passed = {"agent_context": seen["agent_context"], "stream": False}
    answer = await server.complete("plain", "x", **passed)
    content = answer["choices"][0]["message"]["content"]
    assert content == "plain: x, 1, ['Ann', 'c']"


async def test_an_inlet_that_raises_is_an_error(server: PipelinesServer) -> None:
    """The caller gets the exception's own text."""
    form = {"body": completion_body(FIRST, "x"), "user": None}

    with pytest.raises(OpenWebUIError, match="NoneType") as refused:
        await server.call("POST", f"/{FIRST}/filter/inlet", form)

    assert refused.value.status == 500


# --------------------------------------------------------------------- messages


@pytest.mark.parametrize("stream", [True, False])
async def test_a_message_without_content_is_refused(
    server: PipelinesServer, stream: bool
) -> None:
    """A null, as other clients send with tool calls, never reaches the pipe."""
    messages: list[Json] = [{"role": "assistant", "content": None}]
    body = {"model": "plain", "messages": messages, "stream": stream}

    with pytest.raises(OpenWebUIError) as refused:
        await server.call("POST", "/chat/completions", body)

    assert refused.value.status == 422


async def test_an_unknown_model_is_refused(server: PipelinesServer) -> None:
    """A manifold's bare id is no model."""
    for model in ("agents", "no such"):
        with pytest.raises(OpenWebUIError) as refused:
            await server.complete(model, "x")
        assert refused.value.status == 404


# ---------------------------------------------------------------------- streams


async def test_a_streamed_text_is_one_chunk_with_an_end(
    server: PipelinesServer,
) -> None:
    """A string becomes content, then comes the finish."""
    raw = await server.raw_stream("answers", "text")

    chunks = await server.chunks("answers", "text")
    assert contents(chunks) == ["said", None]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert raw.endswith(b"data: [DONE]")


async def test_streaming_is_the_default(server: PipelinesServer) -> None:
    """A body that does not say gets a stream."""
    assert (await server.raw_stream("plain", "x")).startswith(b"data: ")


async def test_a_generator_yields_texts_dicts_or_lines(server: PipelinesServer) -> None:
    """Texts and bytes are content; a dict, a model or a line is sent as it is."""
    texts = await server.chunks("answers", "texts")
    dicts = await server.raw_stream("answers", "dicts")
    lines = await server.raw_stream("answers", "lines")

    assert contents(texts) == ["one", "two", None]
    assert dicts.startswith(b'data: {"event": 1}\n\ndata: {"word":"w"}\n\n')
    assert lines.startswith(b"data: {}\n\ndata: 1\n\n")


async def test_an_iterator_of_a_class_gets_no_end(server: PipelinesServer) -> None:
    """Only generators and strings are finished by the server."""
    raw = await server.raw_stream("answers", "own")

    assert b"one" in raw
    assert b"[DONE]" not in raw
    assert b'"stop"' not in raw


@pytest.mark.parametrize("name", ["coroutine", "async_generator"])
async def test_an_async_pipe_is_silently_empty(
    server: PipelinesServer, name: str
) -> None:
    """Neither is awaited: no bytes in a stream, no text in a whole answer."""
    source = COROUTINES if name == "coroutine" else ASYNC_GENERATOR
    await server.upload(name, source)

    streamed = await server.raw_stream(name, "x")
    whole = await server.complete(name, "x")

    await server.call("DELETE", "/pipelines/delete", {"id": name})
    assert streamed == b""
    assert whole["choices"][0]["message"]["content"] == ""


async def test_an_exception_breaks_the_stream(server: PipelinesServer) -> None:
    """The status was sent long before; the body ends without its end."""
    with pytest.raises(aiohttp.ClientPayloadError):
        await server.raw_stream("answers", "breaks")


async def test_a_whole_dict_is_returned_as_it_is(server: PipelinesServer) -> None:
    """A dict or a model is the whole answer."""
    assert await server.complete("answers", "dict") == {"whole": True}
    assert await server.complete("answers", "model") == {"word": "w"}


async def test_a_whole_answer_stands_in_the_log(server: PipelinesServer) -> None:
    """The server writes what was said, at its usual level."""
    before = len(server.log())

    await server.complete("answers", "text")

    assert "stream:false:said" in server.log()[before:]


async def test_a_whole_generator_becomes_garbage(server: PipelinesServer) -> None:
    """Everything it yields is joined as text, dicts included."""
    answer = await server.complete("answers", "dicts")

    content = answer["choices"][0]["message"]["content"]
    assert content.startswith("{'event': 1}")


async def test_a_whole_exception_is_a_plain_500(server: PipelinesServer) -> None:
    """Without a stream the error has a status, and no words."""
    with pytest.raises(OpenWebUIError) as refused:
        await server.complete("answers", "raises")

    assert (refused.value.status, refused.value.body) == (500, "Internal Server Error")


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
