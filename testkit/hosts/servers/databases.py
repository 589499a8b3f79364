"""A PostgreSQL and a Redis of the tests' own, on ports of 127.0.0.1."""

import asyncio
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hosts.servers.offline import free_port
from hosts.servers.open_webui import end_process, start_process
from marking import require_mark

START_SECONDS = 60
MISSING = (
    "The tests of two servers need {name}, which is not installed: run "
    "`apt-get install postgresql redis-server`. An empty PostgreSQL database that "
    "DATABASE_URL names is used instead of one of the tests' own."
)
HASTY = ("fsync=off", "full_page_writes=off")  # it does not outlive the tests


class DatabaseMissingError(RuntimeError):
    """A database is not installed, or did not start."""


@asynccontextmanager
async def lent_postgres() -> AsyncIterator[str]:
    """Lend the address of an empty database: that of DATABASE_URL, or a new one."""
    address = os.environ.get("DATABASE_URL")
    if address:
        yield address
        return
    initdb, postgres, is_ready = map(_program, ("initdb", "postgres", "pg_isready"))
    with _directory() as home:
        data = str(home / "data")
        port = str(free_port())
        _make_cluster(initdb, data)
        places = (f"port={port}", "listen_addresses=127.0.0.1")
        options = (*places, "unix_socket_directories=", *HASTY)
        command = [postgres, "-D", data, *(f"-c{option}" for option in options)]
        asking = [is_ready, "-q", "-h", "127.0.0.1", "-p", port]
        async with _running(command, asking, home / "log", signal.SIGINT):
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"


@asynccontextmanager
async def without_postgres(address: str) -> AsyncIterator[None]:
    """Break all connections to a database, and let it refuse new ones, for a while."""
    name = urlsplit(address).path.removeprefix("/")
    beside = urlsplit(address)._replace(path="/template1").geturl()
    allow = f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS'
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    await _tell(beside, f"{allow} false; {end} WHERE datname = '{name}'")
    try:
        yield
    finally:
        await _tell(beside, f"{allow} true")


async def _tell(address: str, statements: str) -> None:
    command = (_program("psql"), "-q", "-v", "ON_ERROR_STOP=1", address)
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
    )
    await process.communicate(f"{statements};\n".encode())
    assert process.returncode == 0


@asynccontextmanager
async def lent_redis() -> AsyncIterator[str]:
    """Lend the address of an empty Redis."""
    server, client = map(_program, ("redis-server", "redis-cli"))
    with _directory() as home:
        port = str(free_port())
        command = [server, "--port", port, "--bind", "127.0.0.1", "--dir", str(home)]
        command += ["--save", "", "--appendonly", "no"]
        asking = [client, "-p", port, "ping"]
        async with _running(command, asking, home / "log", signal.SIGTERM):
            yield f"redis://127.0.0.1:{port}/0"


def _program(name: str) -> str:
    """Where a program is: where Debian keeps those of each PostgreSQL, or on PATH."""
    packaged = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    path = packaged[-1] if packaged else shutil.which(name)
    if path is None:
        raise DatabaseMissingError(MISSING.format(name=name))
    require_mark("databases")
    return str(path)


@contextmanager
def _directory() -> Iterator[Path]:
    """Lend a directory that whoever runs the databases may write to."""
    with tempfile.TemporaryDirectory(prefix="databases-") as made:
        person = _person()
        if person:
            os.chown(made, person["user"], person["group"])
        yield Path(made)


def _person() -> dict[str, Any]:
    """Who runs the databases: nobody, where we are root, whom PostgreSQL refuses."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _make_cluster(initdb: str, data: str) -> None:
    options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    command = [initdb, "-D", data, *options]
    made = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd="/", **_person()
    )
    if made.returncode:
        raise DatabaseMissingError(f"initdb failed:\n{made.stderr}")


@asynccontextmanager
async def _running(
    command: list[str], asking: list[str], log: Path, stop: signal.Signals
) -> AsyncIterator[None]:
    """Run a server, ready as soon as `asking` succeeds; `stop` ends it at once."""
    process = start_process(command, log, cwd="/", **_person())
    try:
        deadline = time.monotonic() + START_SECONDS
        while not await asyncio.to_thread(_succeeds, asking):
            if process.poll() is not None or time.monotonic() > deadline:
                printed = log.read_text()[-4000:]  # noqa: ASYNC240 - a short file
                raise DatabaseMissingError(f"{command[0]} did not come up:\n{printed}")
            await asyncio.sleep(0.1)
        yield
    finally:
        await end_process(process, how=stop)


def _succeeds(command: list[str]) -> bool:
    try:
        asked = subprocess.run(command, check=False, capture_output=True, timeout=5)
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0
