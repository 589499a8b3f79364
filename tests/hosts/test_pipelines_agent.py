"""The built pipeline on a Pipelines server: loading, valves, clients, crowds, the end."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from golden_run.built_files import BUILT_PIPELINE
from hosts.people.client import Client, Json
from hosts.people.questions import tool_choice
from hosts.servers.offline import free_port
from hosts.servers.pipelines_server import PipelinesServer, completion_body
from hosts.setup.agent import (
    FUNCTION_CALLING,
    PIPELINE_ID,
    REACT,
    agent_valves_changed,
    install_pipeline,
    own_valves,
)
from simulator import Simulator

pytestmark = [pytest.mark.pipelines, pytest.mark.asyncio]

PATIENCE = 120
CROWD = 100
WEATHER: Json = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}


@pytest_asyncio.fixture(scope="module")
async def server(running_simulator: Simulator) -> AsyncIterator[PipelinesServer]:
    async with PipelinesServer() as running:
        await install_pipeline(running, own_valves(running_simulator))
        yield running


def text_of(chunks: list[Json]) -> str:
    deltas = [c["choices"][0]["delta"] for c in chunks if c.get("choices")]
    return "".join(delta.get("content") or "" for delta in deltas)


# --------------------------------------------------------------------- it is loaded


async def test_an_administrator_loads_tries_saves_and_restarts(
    simulator: Simulator,
) -> None:
    """Two agents; a copy under another name; valves that outlive the server (R5, R25).

    It loads without installing anything (R31, R7).

    Values that no version ever allowed are brought to what can be meant. No thread of
    ours keeps an idle process.
    """
    copy = "second_copy"
    async with PipelinesServer() as server:
        await install_pipeline(server, own_valves(simulator))
        models = {model["id"]: model["name"] for model in await server.models()}
        assert models == {
            FUNCTION_CALLING: "GPT-5 Function Calling",
            REACT: "GPT-5 ReAct",
        }
        assert "nstalling" not in server.log()  # no pip
        assert not (server.folder / "failed").exists()
        await server.upload(copy, BUILT_PIPELINE.read_text())
        await server.set_valves(copy, own_valves(simulator))
        for model in (REACT, f"{copy}.gpt5_react"):
            assert text_of(await server.chunks(model, "sim:short hello"))

        shown = await server.valves(PIPELINE_ID)
        assert await server.set_valves(PIPELINE_ID, shown) == shown
        await server.stop()
        assert server.exit_code == 0
        assert "Traceback" not in server.log()

        bad: Json = {name: {"no": "sense"} for name in shown}
        bad |= {"MAXIMUM_ITERATIONS": 99, "POLICY_STYLE": None, "GONE": 1}
        (server.folder / copy / "valves.json").write_text(json.dumps(bad))
        server.launch()
        await server.ready()

        assert await server.valves(PIPELINE_ID) == shown
        assert text_of(await server.chunks(REACT, "sim:short hello"))
        valves = await server.valves(copy)
        assert (valves["MAXIMUM_ITERATIONS"], valves["POLICY_STYLE"]) == (30, "full")
        assert "GONE" not in valves


# ----------------------------------------------------------------------- its valves


async def test_nobody_reads_a_secret(
    server: PipelinesServer, simulator: Simulator
) -> None:
    """Neither from the valves nor their file nor the log; an answer still works (R30)."""
    before = await server.valves(PIPELINE_ID)
    headers = json.dumps({"X-Secret": "header-canary"})
    given = {**before, "EXTRA_HEADERS": headers, "DEBUG": True}
    shown = [await server.set_valves(PIPELINE_ID, given)]
    async with Client(server.url) as stranger:
        shown += [
            await stranger.call("GET", f"/{PIPELINE_ID}/valves"),
            await stranger.call("GET", f"/{PIPELINE_ID}/valves/spec"),
        ]
    assert text_of(await server.chunks(REACT, "sim:short hello"))
    stored = (server.folder / PIPELINE_ID / "valves.json").read_text()
    await server.set_valves(PIPELINE_ID, before)

    assert simulator.requests[-1].headers["X-Secret"] == "header-canary"
    for text in (json.dumps(shown), stored, server.log()):
        assert simulator.api_key not in text
        assert "header-canary" not in text


LIES: dict[str, Json] = {
    "stored key": {"BASE_URL": "{evil}"},
    "key of the environment": {"BASE_URL": "{evil}", "API_KEY": ""},
    "named key": {"BASE_URL": "{evil}", "API_KEY": "env:OPENAI_API_KEY"},
    "proxy": {"PROXY": "{evil}"},
}
"""What a page of another site sends for the address of its own server."""


async def test_key_goes_only_where_the_server_allows(simulator: Simulator) -> None:
    """A page of any origin sends other valves, and reads the stored ones before."""
    allowed = {
        "GPT5_AGENT_ALLOW": f"url:{simulator.base_url}",
        "OPENAI_API_KEY": simulator.api_key,
    }
    own = own_valves(simulator)
    async with Simulator() as evil, PipelinesServer(allowed) as server:
        await install_pipeline(server, own)
        for name, lie in LIES.items():
            changes = {k: v.replace("{evil}", evil.base_url) for k, v in lie.items()}
            await update_as_a_page(server, changes)
            before = len(server.log())
            await server.chunks(REACT, "sim:short hello")
            assert "GPT5_AGENT_ALLOW" in server.log()[before:], name
            assert evil.requests == simulator.requests == [], name
            await server.set_valves(PIPELINE_ID, own)
        assert text_of(await server.chunks(REACT, "sim:short hello"))


async def update_as_a_page(server: PipelinesServer, changes: Json) -> None:
    """Change valves as a page of another site does, without any key."""
    origin = {"Origin": "https://evil.example"}
    async with Client(server.url) as page:
        stored = await page.call("GET", f"/{PIPELINE_ID}/valves")
        address = f"{server.url}/{PIPELINE_ID}/valves/update"
        body = {**stored, **changes}
        async with page.http.post(address, json=body, headers=origin) as changed:
            assert changed.status == 200
            assert changed.headers["Access-Control-Allow-Origin"] == "*"


# --------------------------------------------------------------------- plain clients


async def test_a_plain_client_gets_chunks_or_a_whole_answer(
    server: PipelinesServer, simulator: Simulator
) -> None:
    """Nothing but chat completion chunks, ended once (R29); whole, with what it took.

    Of its words nothing is in the log (R27).
    """
    raw = await server.raw_stream(FUNCTION_CALLING, "sim:chat hello")
    assert raw.endswith(b"data: [DONE]\n\n")
    assert raw.count(b'"finish_reason": "stop"') == 1
    assert raw.count(b"data: [DONE]") == 1

    answer = await server.complete(FUNCTION_CALLING, "sim:chat hello")
    assert "That is all" in answer["choices"][0]["message"]["content"]
    assert answer["usage"]["total_tokens"] > 0
    assert answer["execution_metadata"]["rounds"] == 1
    assert "stream:false" in server.log()
    assert "That is all" not in server.log()
    assert simulator.api_key not in server.log()


async def test_a_plain_client_runs_its_own_tools(
    server: PipelinesServer, simulator: Simulator
) -> None:
    """It gets the calls, and answers them in a request of its own."""
    chunks = await server.chunks(FUNCTION_CALLING, "sim:tool weather?", tools=[WEATHER])

    deltas = [c["choices"][0]["delta"] for c in chunks if c.get("choices")]
    (call,) = next(d["tool_calls"] for d in deltas if d.get("tool_calls"))
    reasons = [c["choices"][0].get("finish_reason") for c in chunks if c.get("choices")]
    assert "tool_calls" in reasons
    call = {key: call[key] for key in ("id", "type", "function")}
    messages = [
        {"role": "user", "content": "sim:tool weather?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": "Sunny."},
    ]
    body = {"model": FUNCTION_CALLING, "messages": messages, "tools": [WEATHER]}
    answer = [c async for c in server.stream("/chat/completions", body)]

    assert "It said: Sunny." in text_of(answer)
    kinds = [item.get("type") for item in simulator.requests[-1].body["input"]]
    assert kinds[-2:] == ["function_call", "function_call_output"]


# ------------------------------------------------------ a server that is not there


async def test_a_stopped_server_is_told_with_its_reason(
    server: PipelinesServer,
) -> None:
    """By the errors of the oldest aiohttp, which has fewer kinds of them."""
    stopped = f"http://127.0.0.1:{free_port()}/v1"

    async with agent_valves_changed(server, BASE_URL=stopped):
        chunks = await server.chunks(FUNCTION_CALLING, "hello")

    assert (
        "The model's server at 127.0.0.1 cannot be reached: it refused the connection."
    ) in json.dumps(chunks)
    assert "Traceback" not in server.log()


# --------------------------------------------------------------- readers who leave


SILENT = "sim:chat,stall=0 hello"
WAYS = (SILENT, "sim:slow,deltas=9999 hello", *["sim:chat,stall=12 hello"] * 98)
BEAT = b'"delta": {}, "finish_reason": null'


async def test_a_hundred_readers_leave(
    server: PipelinesServer, simulator: Simulator
) -> None:
    """All answers are open at the same time; the model's server is let go (R26).

    Also where not a word has come yet: such a reader, as long as he stays, is sent a
    harmless chunk again and again.
    """
    address = f"{server.url}/chat/completions"
    bodies = [completion_body(FUNCTION_CALLING, way) for way in WAYS]
    asked = [server.http.post(address, json=body) for body in bodies]
    answers = await asyncio.gather(*asked)

    await simulator.requested(len(WAYS), timeout=PATIENCE)
    assert simulator.open_streams == len(WAYS)
    assert {answer.status for answer in answers} == {200}
    seen = b""
    while seen.count(BEAT) < 2:
        seen += await answers[0].content.readany()
    for answer in answers[1:]:
        await answer.content.readany()
    for answer in answers:
        answer.close()

    await simulator.all_ended(timeout=PATIENCE)
    assert all(request.closed_by_client for request in simulator.requests)


async def test_a_hundred_answers_at_once(
    server: PipelinesServer, simulator: Simulator
) -> None:
    """Each reader gets the answer to its own question."""
    asked = [
        server.chunks(FUNCTION_CALLING, f"sim:chat I am number {number}.")
        for number in range(CROWD)
    ]

    answers = await asyncio.gather(*asked)

    for number, chunks in enumerate(answers):
        assert f"I am number {number}." in text_of(chunks)
        assert "That is all for now." in text_of(chunks)
    assert len(simulator.requests) == CROWD


# ------------------------------------------------------------------------- the end


async def test_a_reload_tells_open_readers(
    server: PipelinesServer, simulator: Simulator
) -> None:
    """Their answers end with a message, and upstream nothing goes on."""
    stalled = "sim:chat,stall=12 hello"
    reading = asyncio.ensure_future(server.chunks(FUNCTION_CALLING, stalled))
    await simulator.requested(timeout=PATIENCE)

    await server.call("POST", "/pipelines/reload")

    chunks = await reading
    assert "Ask again." in chunks[-1]["error"]["message"]
    await simulator.all_ended(timeout=PATIENCE)


@pytest.mark.sandbox
@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
async def test_open_answers_end_when_the_server_is_stopped(
    simulator: Simulator, loop: str
) -> None:
    """The server itself would wait for them; SIGTERM is what a container sends.

    The sandbox runs whatever loop the server has: uvloop does not start its processes
    by itself.
    """
    given = {**own_valves(simulator), "SANDBOX": True}
    choice = tool_choice("python_execute")
    question = f"sim:tool {json.dumps({'code': '6 * 7'})}"
    async with PipelinesServer(loop=loop) as server:
        await install_pipeline(server, given)
        await server.chunks(REACT, question, tool_choice=choice)
        output = simulator.requests[-1].body["input"][-1]["output"]
        assert json.loads(output)["result"] == 42

        simulator.forget()
        stalled = "sim:chat,stall=12 hello"
        reading = asyncio.ensure_future(server.chunks(FUNCTION_CALLING, stalled))
        await simulator.requested(timeout=PATIENCE)
        await server.stop()

        chunks = await reading
        assert "Ask again." in chunks[-1]["error"]["message"]
        assert server.exit_code == 0  # so it was not killed
        assert "Traceback" not in server.log()
