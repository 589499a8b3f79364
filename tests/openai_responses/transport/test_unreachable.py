"""Why a server cannot be reached: each cause in its own words, with its own setting."""

import asyncio
import errno
import json
import socket
import ssl
import subprocess

import aiohttp
import pytest
import trustme
from aiohttp.client_reqrep import ConnectionKey
from aioresponses import aioresponses
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from hosts.promises import PIPES
from hosts.servers.offline import pipelines_python
from openai_responses.endpoint import Endpoint
from openai_responses.errors import ConnectionFailed, SettingFault
from openai_responses.transport.connections import Connections
from openai_responses.transport.unreachable import unreachable_error
from upstream.certificates import server_side
from upstream.server import KEY, ask, free_port

pytestmark = pytest.mark.asyncio

HOST = "nowhere.invalid"
ADDRESS = f"https://{HOST}/v1"
TO_HOST = ConnectionKey(HOST, 443, True, True, None, None, None)
REQUEST = aiohttp.RequestInfo(
    URL(ADDRESS), "POST", CIMultiDictProxy(CIMultiDict()), URL(ADDRESS)
)


def system_error(number: int) -> aiohttp.ClientConnectorError:
    """What aiohttp says about a connection that the system refused."""
    return aiohttp.ClientConnectorError(TO_HOST, OSError(number, "CANARY"))


def name_error(number: int) -> aiohttp.ClientConnectorDNSError:
    """What it says about a name."""
    return aiohttp.ClientConnectorDNSError(TO_HOST, socket.gaierror(number, "CANARY"))


def untrusted(reason: str) -> aiohttp.ClientConnectorCertificateError:
    """What it says about a certificate."""
    cause = ssl.SSLCertVerificationError(1, "CANARY")
    cause.verify_message = reason
    return aiohttp.ClientConnectorCertificateError(TO_HOST, cause)


def proxy_error(status: int) -> aiohttp.ClientHttpProxyError:
    """What it says about the answer of a proxy."""
    return aiohttp.ClientHttpProxyError(REQUEST, (), status=status, message="CANARY")


NO_TLS = ssl.SSLError(1, "CANARY")
NO_TLS.reason = "WRONG_VERSION_NUMBER"


SERVER = f"The model's server at {HOST} cannot be reached: "
PROXY = "http://user:CANARY@127.0.0.1:{}"


NOT_IN_TIME = "it did not accept the connection in time"
CLOSED = "it closed the connection without an answer"


@pytest.mark.parametrize(
    ("failure", "words", "settings"),
    [
        (name_error(socket.EAI_NONAME), "its name was not found", "base_url proxy"),
        (
            name_error(socket.EAI_AGAIN),
            "the name server does not answer",
            "base_url proxy",
        ),
        (system_error(errno.ECONNREFUSED), "it refused the connection", "base_url"),
        (system_error(errno.EHOSTUNREACH), "there is no route to it", "base_url proxy"),
        (system_error(errno.ETIMEDOUT), NOT_IN_TIME, "base_url proxy"),
        (aiohttp.ConnectionTimeoutError("CANARY"), NOT_IN_TIME, "base_url proxy"),
        (aiohttp.ServerDisconnectedError("CANARY"), CLOSED, "base_url"),
        (ConnectionResetError(errno.ECONNRESET, "CANARY"), CLOSED, "base_url"),
        (aiohttp.ClientPayloadError("CANARY"), "ClientPayloadError", "base_url"),
    ],
)
async def test_each_cause_has_its_words(
    connections: Connections, failure: Exception, words: str, settings: str
) -> None:
    """Which are ours: those of the system could quote anything."""
    with aioresponses() as network:
        network.post(f"{ADDRESS}/responses", exception=failure)
        with pytest.raises(ConnectionFailed) as failed:
            await ask(connections, Endpoint(ADDRESS, KEY))
    assert str(failed.value) == f"{SERVER}{words}. Try again."
    fault = failed.value.fault
    assert " ".join(fault.settings) == settings
    assert fault.certainty == "possible"
    assert failed.value.__cause__ is None


CERTIFICATE = "base_url ca_bundle verify_ssl"


@pytest.mark.parametrize(
    ("failure", "words", "settings"),
    [
        (
            untrusted("certificate has expired"),
            f"The certificate of {HOST} is not trusted: certificate has expired.",
            CERTIFICATE,
        ),
        (untrusted(""), f"The certificate of {HOST} is not trusted.", CERTIFICATE),
        (
            aiohttp.ClientConnectorSSLError(TO_HOST, NO_TLS),
            f"The model's server at {HOST} does not use TLS, but its address begins "
            "with https.",
            "base_url",
        ),
        (proxy_error(407), "The HTTP proxy rejected the request.", "proxy"),
        (
            aiohttp.ClientProxyConnectionError(TO_HOST, NO_TLS),
            "The HTTP proxy at 127.0.0.1:1 cannot be reached: it does not use TLS, or its "
            "certificate is not trusted.",
            "proxy",
        ),
        (
            proxy_error(502),
            f"The HTTP proxy does not connect to {HOST} (HTTP 502).",
            "proxy base_url",
        ),
        (
            # It is the same for the proxy and for what the proxy connects to.
            aiohttp.ConnectionTimeoutError("CANARY"),
            f"The HTTP proxy does not connect to {HOST} (it takes too long).",
            "proxy base_url",
        ),
    ],
)
async def test_what_does_not_pass(
    connections: Connections, failure: Exception, words: str, settings: str
) -> None:
    endpoint = Endpoint(ADDRESS, KEY, proxy="http://127.0.0.1:1")
    with aioresponses() as network:
        network.post(f"{ADDRESS}/responses", exception=failure)
        with pytest.raises(ConnectionFailed) as failed:
            await ask(connections, endpoint)
    assert str(failed.value) == words
    assert " ".join(failed.value.fault.settings) == settings


@pytest.mark.parametrize(
    ("host", "reason"),
    [("127.0.0.1:{}", "it refused"), ("no-such.invalid:{}", ".* name")],
)
async def test_proxy_of_the_valve(
    connections: Connections, host: str, reason: str
) -> None:
    """It is named without its password.

    Its name is looked up here, by the real name server or by none; that of the model's
    server never is.
    """
    host = host.format(free_port())
    endpoint = Endpoint(ADDRESS, KEY, proxy=f"http://user:CANARY@{host}")
    told = f"^The HTTP proxy at {host} cannot be reached: {reason}"
    with pytest.raises(ConnectionFailed, match=told) as failed:
        await ask(connections, endpoint)
    assert failed.value.fault == SettingFault(("proxy",))


async def test_proxy_of_the_environment(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No valve is the cause, so none is named."""
    port = free_port()
    monkeypatch.setenv("HTTPS_PROXY", PROXY.format(port))
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ConnectionFailed) as failed:
        await ask(connections, Endpoint(ADDRESS, KEY))
    assert str(failed.value) == (
        f"The HTTP proxy at 127.0.0.1:{port}, which this server's environment names, "
        "cannot be reached: it refused the connection. An administrator has to check "
        "that environment."
    )
    assert failed.value.fault.settings == ()


# Prints what is told, by the aiohttp of the interpreter, about a stopped server and
# about the same behind each proxy in its arguments.
ASK = """
import asyncio, json, sys
from openai_responses.endpoint import Endpoint
from openai_responses.errors import ConnectionFailed
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Deadlines, Timeouts

async def told(address, proxy):
    connections = Connections()
    endpoint = Endpoint(address, "key", proxy=proxy)
    try:
        async with connections.request(endpoint, "/x", {}, Deadlines(Timeouts())):
            pass
    except ConnectionFailed as error:
        return [str(error), error.was_sent]
    finally:
        await connections.close()

for proxy in ["", *sys.argv[2:]]:
    print(json.dumps(asyncio.run(told(sys.argv[1], proxy))))
"""


@pytest.mark.pipelines
async def test_the_oldest_aiohttp_has_the_same_words() -> None:
    """It has no error of its own for a name; the name of a proxy is still told."""
    ports = [free_port() for _ in range(2)]
    proxies = [f"http://127.0.0.1:{ports[1]}", "http://no-such.invalid:3128"]
    command = [str(pipelines_python()), "-c", ASK, f"http://127.0.0.1:{ports[0]}/v1"]

    asked = await asyncio.create_subprocess_exec(
        *(*command, *proxies), env={"PYTHONPATH": str(PIPES)}, stdout=subprocess.PIPE
    )
    printed, _ = await asked.communicate()

    server, proxy, name = map(json.loads, printed.splitlines())
    refused = "cannot be reached: it refused the connection."
    assert server == [f"The model's server at 127.0.0.1 {refused} Try again.", False]
    assert proxy == [f"The HTTP proxy at 127.0.0.1:{ports[1]} {refused}", False]
    assert name[0].startswith(
        "The HTTP proxy at no-such.invalid:3128 cannot be reached"
    )
    assert "name" in name[0]


@pytest.mark.pipelines
async def test_the_oldest_aiohttp_tells_of_a_certificate() -> None:
    """Its error for one has none of the system in it."""
    context = server_side(trustme.CA())

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", ssl=context) as server:
        port = server.sockets[0].getsockname()[1]
        # In a thread: for a process, the clock of the tests does not wait.
        asked = await asyncio.to_thread(
            subprocess.run,
            [str(pipelines_python()), "-c", ASK, f"https://127.0.0.1:{port}/v1"],
            env={"PYTHONPATH": str(PIPES)},
            stdout=subprocess.PIPE,
            check=True,
        )

    message, was_sent = json.loads(asked.stdout)
    assert message.startswith("The certificate of 127.0.0.1 is not trusted: ")
    assert not was_sent


async def test_who_has_a_proxy_is_not_told_to_set_one() -> None:
    """The proxy did not help, so only the address can be wrong."""
    endpoint = Endpoint(ADDRESS, KEY)
    without, behind = (
        unreachable_error(system_error(errno.EHOSTUNREACH), endpoint, proxy)
        for proxy in (None, "http://p")
    )
    assert without.fault.settings == ("base_url", "proxy")
    assert behind.fault.settings == ("base_url",)


@pytest.mark.parametrize(
    ("failure", "was_sent", "passes"),
    [
        (system_error(errno.ECONNREFUSED), False, True),
        (name_error(socket.EAI_NONAME), False, True),
        (untrusted("certificate has expired"), False, False),
        (proxy_error(502), False, True),
        (proxy_error(407), False, False),
        (aiohttp.ConnectionTimeoutError("CANARY"), False, True),
        (aiohttp.ServerDisconnectedError("CANARY"), True, True),
        (ConnectionResetError(errno.ECONNRESET, "CANARY"), True, True),
        (aiohttp.ClientPayloadError("CANARY"), True, True),
    ],
)
async def test_server_that_was_not_reached_got_nothing(
    failure: Exception, *, was_sent: bool, passes: bool
) -> None:
    """So another one may be asked without asking twice.

    What only an administrator can change is tried once.
    """
    error = unreachable_error(failure, Endpoint(ADDRESS, KEY), None)
    assert (error.was_sent, error.failure is not None) == (was_sent, passes)
