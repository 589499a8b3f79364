"""The way to a server: through which proxy, and whose certificate is trusted."""

import os
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme

from openai_responses.endpoint import Endpoint
from openai_responses.errors import ConnectionFailed, InvalidSetting, SettingFault
from openai_responses.transport.connections import Connections
from runs.against_server import CANARY, Runs, limits
from upstream.certificates import bundle_of, server_side
from upstream.forward_proxy import ForwardProxy
from upstream.server import KEY, Upstream, ask, free_port, post, replying

pytestmark = pytest.mark.asyncio

ANSWER = replying('{"output": []}')
BASIC = f"Basic {b64encode(f'user:{CANARY}'.encode()).decode()}"


def port_of(upstream: Upstream) -> int:
    return int(upstream.base_url.split(":")[2].split("/")[0])


def through(proxy: str, base_url: str = "http://model.test/v1") -> Endpoint:
    """Return the way to a server that only a proxy can find."""
    return Endpoint(base_url, KEY, proxy=proxy)


@asynccontextmanager
async def proxied(
    credentials: str = "",
) -> AsyncIterator[tuple[Upstream, ForwardProxy]]:
    """Lend a server, and a proxy that leads to it."""
    async with (
        Upstream(ANSWER) as upstream,
        ForwardProxy(port_of(upstream), credentials) as proxy,
    ):
        yield upstream, proxy


def with_password(proxy: ForwardProxy) -> str:
    return proxy.address.replace("//", f"//user:{CANARY}@")


@pytest.mark.parametrize(
    ("credentials", "form", "sent"),
    [
        ("", "{0.address}", None),
        ("", " {0.host}\n", None),
        (BASIC, f"http://user:{CANARY}@{{0.host}}", BASIC),
    ],
    ids=["address", "host", "password"],
)
async def test_request_goes_through_the_proxy(
    connections: Connections, credentials: str, form: str, sent: str | None
) -> None:
    """It is asked for the whole address, and alone gets its credentials."""
    async with proxied(credentials) as (upstream, proxy):
        endpoint = through(form.format(proxy))
        assert await ask(connections, endpoint) == {"output": []}
        (request,) = upstream.requests
    assert proxy.requests == ["POST http://model.test/v1/responses HTTP/1.1"]
    assert proxy.headers[0].get("proxy-authorization") == sent
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert CANARY not in repr(request.headers)


async def test_proxy_connects_to_https_and_sees_nothing(
    connections: Connections, tmp_path: Path
) -> None:
    authority = trustme.CA()
    bundle = bundle_of(authority, tmp_path / "ca.pem")
    async with (
        Upstream(ANSWER, server_side(authority)) as upstream,
        ForwardProxy(port_of(upstream), BASIC) as proxy,
    ):
        endpoint = Endpoint(
            "https://model.test/v1", KEY, ca_bundle=bundle, proxy=with_password(proxy)
        )
        assert await ask(connections, endpoint) == {"output": []}
        (request,) = upstream.requests
    assert proxy.requests == ["CONNECT model.test:443 HTTP/1.1"]
    assert proxy.headers[0]["proxy-authorization"] == BASIC
    assert "authorization" not in proxy.headers[0]
    assert "Proxy-Authorization" not in request.headers


@pytest.mark.parametrize("base_url", ["http://model.test/v1", "https://model.test/v1"])
async def test_refusing_proxy_is_named_without_its_password(
    runs: Runs, base_url: str
) -> None:
    async with proxied("Basic other") as (upstream, proxy):
        told = await runs.at(through(with_password(proxy), base_url))
        assert upstream.requests == []
    assert "proxy" in told.ending.message
    assert told.ending.fault.settings == ("proxy",)
    assert CANARY not in repr(told.events)


@pytest.mark.parametrize(
    "proxy", ["http://", "socks5://127.0.0.1:1", f"http://{CANARY}:port", "http://[::1"]
)
async def test_proxy_that_is_no_address(runs: Runs, proxy: str) -> None:
    """Nothing is sent past it; a second attempt would not help."""
    async with Upstream(ANSWER) as upstream:
        told = await runs.at(through(proxy, upstream.base_url), limits(retries=1))
        assert upstream.requests == []
    assert told.log == ["run invalid"]
    assert told.ending.fault == SettingFault(("proxy",), "certain")
    assert CANARY not in repr(told.events)


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
async def test_proxy_of_the_environment(
    connections: Connections, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    async with proxied() as (_, proxy):
        monkeypatch.setenv(name, proxy.address)
        assert await ask(connections, through("")) == {"output": []}
    assert len(proxy.requests) == 1


async def test_proxy_of_the_administrator_wins(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("NO_PROXY", "*")
    async with proxied() as (_, proxy):
        assert await ask(connections, through(proxy.address)) == {"output": []}
    assert len(proxy.requests) == 1


@pytest.mark.parametrize(
    ("name", "excepted"),
    [("no_proxy", "127.0.0.1"), ("NO_PROXY", "localhost,127.0.0.1:{port}")],
)
async def test_hosts_without_a_proxy(
    connections: Connections, monkeypatch: pytest.MonkeyPatch, name: str, excepted: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    async with Upstream(ANSWER) as upstream:
        monkeypatch.setenv(name, excepted.format(port=port_of(upstream)))
        assert await ask(connections, upstream.endpoint) == {"output": []}


async def test_netrc_is_not_read(
    connections: Connections, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a file in the home directory says of the server is not sent there."""
    host = "us.openai.azure.com"  # Azure's key leaves the place for it free
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"machine {host}\nlogin user\npassword {CANARY}\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with proxied() as (upstream, proxy):
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        await ask(connections, through("", f"http://{host}"))
        (request,) = upstream.requests
    assert request.path == "/openai/v1/responses"
    assert request.headers["api-key"] == KEY
    assert "Authorization" not in request.headers


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
