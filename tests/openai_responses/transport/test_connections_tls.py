"""Whose certificate is trusted: the system's, a file's, or anybody's."""

import os
from pathlib import Path

import pytest
import trustme

from openai_responses.endpoint import Endpoint
from openai_responses.errors import ConnectionFailed, InvalidRequest
from openai_responses.transport.connections import Connections, Deadlines, Timeouts
from upstream.certificates import bundle_of, server_side
from upstream.server import KEY, Upstream, replying

pytestmark = pytest.mark.asyncio

ANSWER = replying('{"output": []}')


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return an authority that nobody else knows."""
    return trustme.CA()


async def ask(
    connections: Connections,
    upstream: Upstream,
    *,
    verify_ssl: bool = True,
    ca_bundle: str = "",
) -> object:
    """Send a request and return the response object."""
    endpoint = Endpoint(
        upstream.base_url, KEY, verify_ssl=verify_ssl, ca_bundle=ca_bundle
    )
    async with connections.request(
        endpoint, "/responses", {"input": []}, Deadlines(Timeouts())
    ) as answer:
        return await answer.response_object()


async def test_unknown_authority(
    connections: Connections, authority: trustme.CA
) -> None:
    """It is refused, and nothing is sent."""
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        with pytest.raises(ConnectionFailed) as refused:
            await ask(connections, upstream)
        assert upstream.requests == []
    assert str(refused.value) == (
        "The certificate of 127.0.0.1 is not trusted here. An administrator has to "
        "check BASE_URL, CA_BUNDLE and VERIFY_SSL in the valves."
    )


async def test_without_a_check(connections: Connections, authority: trustme.CA) -> None:
    """Whoever asks for it trusts anybody; the connection is used again."""
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        for _ in range(3):
            answer = await ask(connections, upstream, verify_ssl=False)
            assert answer == {"output": []}
        assert len(upstream.connections) == 1


async def test_bundle(
    connections: Connections, authority: trustme.CA, tmp_path: Path
) -> None:
    """A server is trusted that the file vouches for; the connection is used again."""
    bundle = bundle_of(authority, tmp_path / "ca.pem")
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        for _ in range(3):
            answer = await ask(connections, upstream, ca_bundle=bundle)
            assert answer == {"output": []}
        assert len(upstream.connections) == 1


async def test_bundle_of_somebody_else(
    connections: Connections, authority: trustme.CA, tmp_path: Path
) -> None:
    """Nobody is trusted that it does not vouch for."""
    bundle = bundle_of(trustme.CA(), tmp_path / "ca.pem")
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        with pytest.raises(ConnectionFailed, match="not trusted here"):
            await ask(connections, upstream, ca_bundle=bundle)
        assert upstream.requests == []


async def test_bundle_for_another_host(
    connections: Connections, authority: trustme.CA, tmp_path: Path
) -> None:
    """A good certificate of another server is none of this one."""
    bundle = bundle_of(authority, tmp_path / "ca.pem")
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        address = upstream.base_url.replace("127.0.0.1", "localhost")
        endpoint = Endpoint(address, KEY, ca_bundle=bundle)
        with pytest.raises(ConnectionFailed, match="certificate of localhost"):
            async with connections.request(
                endpoint, "/responses", {}, Deadlines(Timeouts())
            ):
                pass


async def test_bundle_that_was_replaced(
    connections: Connections, authority: trustme.CA, tmp_path: Path
) -> None:
    """The next request reads it anew: nobody restarts a server for a certificate."""
    path = tmp_path / "ca.pem"
    bundle = bundle_of(trustme.CA(), path)
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        with pytest.raises(ConnectionFailed, match="not trusted here"):
            await ask(connections, upstream, ca_bundle=bundle)
        bundle_of(authority, path)
        os.utime(path, ns=(0, 0))
        answer = await ask(connections, upstream, ca_bundle=bundle)
        assert answer == {"output": []}
        assert len(connections._certificates) == 1


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"no certificate",
        b"\xff\xfe\x00",
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ],
)
@pytest.mark.parametrize("name", ["ca.pem", "with a \0 in it", "."])
async def test_bundle_that_is_none(
    connections: Connections,
    tmp_path: Path,
    content: bytes | None,
    name: str,
) -> None:
    """The sentence names the valve, and nothing is sent."""
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    bundle = str(tmp_path / name)
    async with Upstream(ANSWER) as upstream:
        with pytest.raises(InvalidRequest, match="CA_BUNDLE is not a file with"):
            await ask(connections, upstream, ca_bundle=bundle)
        assert upstream.requests == []


async def test_bundle_that_nobody_asks_for(connections: Connections) -> None:
    """Without a check the file is not read."""
    async with Upstream(ANSWER) as upstream:
        answer = await ask(
            connections, upstream, verify_ssl=False, ca_bundle="/no/such/file"
        )
        assert answer == {"output": []}
