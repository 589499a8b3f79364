"""The way to the server, with the packages that Open WebUI brings."""

import gzip
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import brotli
import pytest
import trustme
import zstandard

from calls.valves import expert
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.setup.pipes import PIPE, valves_changed
from runs.transcripts import transcript
from upstream.certificates import bundle_of, server_side
from upstream.forward_proxy import ForwardProxy
from upstream.server import Upstream, in_turn, replying, streaming

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

MODEL = f"{PIPE}.gpt-6.1-sol"
WIRE = transcript("short")
CANARY = "canary-of-the-proxy"
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


async def answered(tab: Tab, admin: User, **valves: Any) -> tuple[str, str]:
    """The text of an answer, and the message about how it failed."""
    async with valves_changed(admin, PIPE, EXPERT_JSON=expert(max_retries=0), **valves):
        turn = await tab.send(MODEL, "hello")
    stored = await tab.message(turn)
    told = stored["error"]["content"]["message"] if "error" in stored else ""
    return stored.get("content") or "", told


@pytest.mark.asyncio
async def test_certificate_and_packed_answers(
    tab: Tab, admin: User, tmp_path: Path
) -> None:
    """An unknown authority is refused by name; with its bundle, any packing is read.

    What else may be wrong with a server is in tests/openai_responses/transport.
    """
    authority = trustme.CA()
    bundle = bundle_of(authority, tmp_path / "ca.pem")
    packed = [
        replying(pack(WIRE), 200, "text/plain", {"Content-Encoding": encoding})
        for encoding, pack in PACKERS.items()
    ]
    async with Upstream(in_turn(*packed), server_side(authority)) as upstream:
        address = {"BASE_URL": upstream.base_url}
        _, refused = await answered(tab, admin, **address)
        async with valves_changed(admin, PIPE, CA_BUNDLE=bundle, **address):
            turns = [await tab.send(MODEL, f"as {encoding}") for encoding in PACKERS]

    assert "certificate of 127.0.0.1 is not trusted" in refused
    assert [turn.error for turn in turns] == [None] * len(PACKERS)
    assert ["Turn 1." in turn.text for turn in turns] == [True] * len(PACKERS)


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
