"""A network between a server and the simulator: TLS, and round trips that take time.

Whatever is sent waits for half a round trip in each direction, the messages of TLS among
it. The kernel opens a TCP connection within this machine at once, so the first message
on one waits for another round trip.
"""

import asyncio
import ssl
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import urlsplit

import trustme

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.host import Address

HOST = "127.0.0.1"
CHUNK_BYTES = 65536

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter


class Network(NamedTuple):
    """What a server has to know to reach the API."""

    address: Address
    environment: Mapping[str, str]


@contextmanager
def run_network(address: Address, round_trip_ms: float) -> Iterator[Network]:
    """Run the relay as a process; without a round trip, the address is the simulator's."""
    if round_trip_ms == 0:
        yield Network(address, {})
        return
    with TemporaryDirectory() as folder:
        authority_file = str(Path(folder) / "authority.pem")
        options = [address.base_url, str(round_trip_ms), authority_file]
        with subprocess.Popen(
            [sys.executable, __file__, *options], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout
            try:
                base_url = process.stdout.readline().strip()
                relayed = address._replace(base_url=base_url)
                yield Network(relayed, {"SSL_CERT_FILE": authority_file})
            finally:
                process.terminate()


async def relay(base_url: str, round_trip_ms: float, authority_file: str) -> None:
    """Print the relay's address, and relay until the process ends.

    The file gets the authority that vouches for the certificate.
    """
    target = urlsplit(base_url)
    assert target.hostname
    assert target.port
    authority = trustme.CA()
    authority.cert_pem.write_to_path(authority_file)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    decrypting = Relay(target.hostname, target.port, 0)
    inner = await asyncio.start_server(decrypting.accept, HOST, 0, ssl=context)
    delaying = Relay(HOST, _port(inner), round_trip_ms / 1e3)
    outer = await asyncio.start_server(delaying.accept, HOST, 0)
    print(f"https://{HOST}:{_port(outer)}{target.path}", flush=True)
    await asyncio.gather(inner.serve_forever(), outer.serve_forever())


def _port(server: asyncio.Server) -> int:
    return int(server.sockets[0].getsockname()[1])


class Relay(NamedTuple):
    """Copies what arrives to a place that is so far away."""

    host: str
    port: int
    round_trip: float
    """In seconds."""

    async def accept(self, reader: Reader, writer: Writer) -> None:
        """Copy both directions of a connection until both have ended."""
        far_reader, far_writer = await asyncio.open_connection(self.host, self.port)
        # The client would send its first message when TCP's handshake had ended.
        first_arrival = asyncio.get_running_loop().time() + 1.5 * self.round_trip
        await asyncio.gather(
            self._copy(reader, far_writer, first_arrival),
            self._copy(far_reader, writer, 0),
        )

    async def _copy(self, reader: Reader, writer: Writer, due: float) -> None:
        """Write each chunk half a round trip later, and none before it is `due`."""
        loop = asyncio.get_running_loop()
        with suppress(ConnectionError):
            chunk = await reader.read(CHUNK_BYTES)
            while chunk:
                due = max(due, loop.time() + self.round_trip / 2)
                loop.call_at(due, writer.write, chunk)
                chunk = await reader.read(CHUNK_BYTES)
        loop.call_at(due, writer.close)


if __name__ == "__main__":
    asyncio.run(relay(sys.argv[1], float(sys.argv[2]), sys.argv[3]))
