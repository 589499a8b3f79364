"""The way to the server, with the packages that Open WebUI brings."""

import gzip
from collections.abc import Callable
from pathlib import Path

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
from upstream.server import Upstream, in_turn, replying

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

MODEL = f"{PIPE}.gpt-6.1-sol"
WIRE = transcript("short")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}


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
        once = {"EXPERT_JSON": expert(max_retries=0)}
        async with valves_changed(admin, PIPE, **once, **address):
            turn = await tab.send(MODEL, "hello")
        refused = (await tab.message(turn))["error"]["content"]["message"]
        async with valves_changed(admin, PIPE, CA_BUNDLE=bundle, **address):
            turns = [await tab.send(MODEL, f"as {encoding}") for encoding in PACKERS]

    assert "certificate of 127.0.0.1 is not trusted" in refused
    assert [turn.error for turn in turns] == [None] * len(PACKERS)
    assert ["Turn 1." in turn.text for turn in turns] == [True] * len(PACKERS)
