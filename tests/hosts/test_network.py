"""The way to the server: certificates, proxies, silence, nonsense on the wire."""

import gzip
import zlib
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import brotli
import pytest
import pytest_asyncio
import trustme
import zstandard
from aiohttp import web

from calls.valves import expert
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.pipes import install_pipe, valves_changed
from runs.transcripts import FOLDER
from simulator import Simulator
from upstream.certificates import bundle_of, server_side
from upstream.forward_proxy import ForwardProxy
from upstream.server import Answerer, Upstream, replying, started, streaming

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.1-sol"
WIRE = (FOLDER / "short.sse").read_bytes()
CANARY = "canary-of-the-proxy"


async def answered(tab: Tab, admin: User, **valves: Any) -> tuple[str, str]:
    """The text of an answer, and the message about how it failed or ended."""
    async with valves_changed(admin, PIPE, EXPERT_JSON=expert(max_retries=0), **valves):
        turn = await tab.send(MODEL, "hello")
    stored = await tab.message(turn)
    lines = [line["description"] for line in stored.get("statusHistory", [])]
    told = [line for line in lines[-1:] if not line.startswith("Finished in")]
    if "error" in stored:
        told = [stored["error"]["content"]["message"]]
    return stored.get("content") or "", "".join(told)


@pytest.mark.asyncio
async def test_unknown_certificate_needs_a_bundle_or_no_check(
    tab: Tab, admin: User, tmp_path: Path
) -> None:
    """Refused by name; trusted with its bundle, or without a check."""
    authority = trustme.CA()
    bundle = bundle_of(authority, tmp_path / "ca.pem")
    async with Upstream(streaming(WIRE), server_side(authority)) as upstream:
        address = {"BASE_URL": upstream.base_url}
        _, refused = await answered(tab, admin, **address)
        with_bundle, _ = await answered(tab, admin, CA_BUNDLE=bundle, **address)
        unchecked, _ = await answered(tab, admin, VERIFY_SSL=False, **address)

    assert "certificate of 127.0.0.1 is not trusted" in refused
    assert "Turn 1." in with_bundle
    assert "Turn 1." in unchecked


@pytest.mark.asyncio
async def test_proxy_is_asked_with_its_password(tab: Tab, admin: User) -> None:
    """It is asked with its password, which no one sees when it refuses."""
    basic = f"Basic {b64encode(f'user:{CANARY}'.encode()).decode()}"
    base_url = {"BASE_URL": "http://model.test/v1"}
    async with Upstream(streaming(WIRE)) as upstream:
        port = int(upstream.base_url.split(":")[2].split("/")[0])
        async with ForwardProxy(port, basic) as proxy:
            right = f"http://user:{CANARY}@{proxy.host}"
            text, _ = await answered(tab, admin, PROXY=right, **base_url)
            wrong = f"http://user:{CANARY}-wrong@{proxy.host}"
            _, refused = await answered(tab, admin, PROXY=wrong, **base_url)

    assert "Turn 1." in text
    assert "check PROXY" in refused
    assert CANARY not in refused


def endless_line(beginning: bytes) -> Answerer:
    """Begin an answer, then write one line without an end."""

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = await started(request)
        await stream.write(beginning + b"data: ")
        while True:
            await stream.write(b"x" * 1_000_000)

    return answer


@pytest.mark.asyncio
async def test_oversized_answers_are_cut_off(tab: Tab, admin: User) -> None:
    """A gzip bomb, a redirection and an endless line end with messages.

    Chat and key go nowhere else, the text that came is kept, and the next answer works.
    """
    half = WIRE[: WIRE.index(b"event: response.output_text.done")]
    # Each bracket may become a value of 32 bytes.
    heavy = b": [[[[[[[[\n" * 1_100_000
    bomb = gzip.compress(half + heavy, compresslevel=1)
    packed = {"Content-Encoding": "gzip"}
    key = {"EXTRA_HEADERS": '{"X-Gateway-Key": "canary"}'}
    async with Upstream(replying(bomb, 200, "text/event-stream", packed)) as upstream:
        unpacked, bombed = await answered(tab, admin, BASE_URL=upstream.base_url)
    async with Upstream(streaming(WIRE)) as thief:
        moved = replying("", 307, headers={"Location": thief.base_url})
        async with Upstream(moved) as upstream:
            _, refused = await answered(tab, admin, BASE_URL=upstream.base_url, **key)
        assert not thief.requests
        text, none = await answered(tab, admin, BASE_URL=thief.base_url)
    async with Upstream(endless_line(half)) as upstream:
        kept, too_large = await answered(tab, admin, BASE_URL=upstream.base_url)
        await upstream.left.wait()

    assert "Turn 1." in unpacked
    assert "more data than is accepted" in bombed
    assert "redirects requests (HTTP 307)" in refused
    assert "BASE_URL" in refused
    assert "canary" not in refused
    assert ("Turn 1." in text, none) == (True, "")
    assert "Turn 1." in kept
    assert "more data than is accepted" in too_large


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


@pytest.mark.asyncio
@pytest.mark.parametrize("encoding", PACKERS)
async def test_compressed_answer_is_read(tab: Tab, admin: User, encoding: str) -> None:
    """Open WebUI brings the packages for Brotli and zstd."""
    packed = PACKERS[encoding](WIRE)
    headers = {
        "Content-Encoding": encoding,
        "Content-Security-Policy": "x" * 60_000,
    }
    answer = replying(packed, 200, "text/plain", headers)
    async with Upstream(answer) as upstream:
        text, error = await answered(tab, admin, BASE_URL=upstream.base_url)

    assert ("Turn 1." in text, error) == (True, "")


SILENCES = {
    "sim:chat,wait=3600000 hello": "first_event_timeout_seconds",
    "sim:stall hello": "idle_timeout_seconds",
}


@pytest_asyncio.fixture
async def hasty(
    admin: User, pipe_source: str, pipe_valves: dict[str, str]
) -> AsyncIterator[str]:
    """A copy of the pipe that takes limits under half a minute, too."""
    source = pipe_source.replace("ge=30,", "ge=1,")
    assert source != pipe_source
    valves = {
        **pipe_valves,
        "MODEL_ID": "gpt-6-luna",
        "EXPERT_JSON": expert(max_retries=0),
    }
    await install_pipe(admin, "hasty", source, valves)
    yield "hasty"
    await admin.delete_function("hasty")


@pytest.mark.asyncio
async def test_silence_ends_the_answer(
    tab: Tab, admin: User, hasty: str, simulator: Simulator
) -> None:
    """At the beginning and in the middle, each with a limit and a message."""
    turns = []
    for text, limit in SILENCES.items():
        async with valves_changed(
            admin, hasty, EXPERT_JSON=expert(max_retries=0, **{limit: 5})
        ):
            turns.append(await tab.begin(f"{hasty}.gpt-6-luna", text))
            await simulator.requested(len(turns))
    for turn in turns:
        await turn.until(lambda seen: seen.finished.is_set())
        await tab.settle(turn)

    stored = [await tab.message(turn) for turn in turns]
    assert "sent nothing for too long" in stored[0]["error"]["content"]["message"]
    middle = stored[1]["statusHistory"][-1]["description"]
    assert "stopped sending in the middle" in middle
    assert "error" not in stored[1]
    assert "This is turn 1." in stored[1]["content"]
