"""Whose certificate is trusted: the system's, a file's, or anybody's."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from openai_responses.endpoint import Endpoint
from openai_responses.errors import ConnectionFailed, InvalidSetting, SettingFault
from openai_responses.transport.connections import Connections
from upstream.certificates import bundle_of, server_side
from upstream.server import KEY, Upstream, ask, post, replying

pytestmark = pytest.mark.asyncio

ANSWER = replying('{"output": []}')


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Return an authority that no one else knows."""
    return trustme.CA()


async def test_unknown_authority_is_refused(
    connections: Connections, authority: trustme.CA
) -> None:
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        with pytest.raises(ConnectionFailed) as refused:
            await ask(connections, upstream.endpoint)
        assert upstream.requests == []
    sentence = "The certificate of 127.0.0.1 is not trusted: "
    assert str(refused.value).startswith(sentence)
    assert refused.value.fault.settings == ("base_url", "ca_bundle", "verify_ssl")


@pytest.mark.parametrize("verify_ssl", [True, False])
async def test_trusted_server_answers_over_one_connection(
    connections: Connections, authority: trustme.CA, tmp_path: Path, verify_ssl: bool
) -> None:
    """One that the file vouches for; or anybody, without a check and a file."""
    path = tmp_path / "ca.pem"
    bundle = bundle_of(authority, path) if verify_ssl else "/no/such/file"
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        endpoint = replace(upstream.endpoint, verify_ssl=verify_ssl, ca_bundle=bundle)
        for _ in range(3):
            assert await ask(connections, endpoint) == {"output": []}
        assert len(upstream.connections) == 1


async def test_bundle_for_another_host(
    connections: Connections, authority: trustme.CA, tmp_path: Path
) -> None:
    """A good certificate of another server is none of this one."""
    bundle = bundle_of(authority, tmp_path / "ca.pem")
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        address = upstream.base_url.replace("127.0.0.1", "localhost")
        endpoint = Endpoint(address, KEY, ca_bundle=bundle)
        with pytest.raises(ConnectionFailed, match="certificate of localhost"):
            async with post(connections, endpoint):
                pass


async def test_bundle_that_was_replaced(
    connections: Connections, authority: trustme.CA, tmp_path: Path
) -> None:
    """The next request reads it anew: no one restarts a server for a certificate."""
    path = tmp_path / "ca.pem"
    bundle = bundle_of(trustme.CA(), path)
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        with pytest.raises(ConnectionFailed, match="is not trusted"):
            await ask(connections, replace(upstream.endpoint, ca_bundle=bundle))
        assert upstream.requests == []
        bundle_of(authority, path)
        os.utime(path, ns=(0, 0))
        answer = await ask(connections, replace(upstream.endpoint, ca_bundle=bundle))
        assert answer == {"output": []}
        assert len(connections._certificates) == 1


async def test_few_bundles_are_remembered(
    connections: Connections, authority: trustme.CA, tmp_path: Path
) -> None:
    async with Upstream(ANSWER, server_side(authority)) as upstream:
        for number in range(10):
            bundle = bundle_of(authority, tmp_path / f"{number}.pem")
            await ask(connections, replace(upstream.endpoint, ca_bundle=bundle))

    assert len(connections._certificates) <= 8


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"", "ca.pem"),
        (b"\xff\xfe\x00", "ca.pem"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "ca.pem"),
        (None, "with a \0 in it"),
        (None, "."),
        (None, "other.pem"),
    ],
)
async def test_bundle_that_is_none(
    connections: Connections, tmp_path: Path, content: bytes | None, name: str
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_bytes(content)
    bundle = str(tmp_path / name)
    async with Upstream(ANSWER) as upstream:
        with pytest.raises(InvalidSetting, match="cannot be read") as refused:
            await ask(connections, replace(upstream.endpoint, ca_bundle=bundle))
        assert upstream.requests == []
    assert refused.value.fault == SettingFault(("ca_bundle",), "certain")
