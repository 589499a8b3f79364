"""A real Open WebUI server that needs no network.

    async with OpenWebUI() as server:
        await server.admin.install_function("stub", source)
        text = await server.admin.complete("stub.one", "hello")

Each server has a directory of its own, removed when the server stops unless the
caller named it. Driving it: `users` over REST, `tabs` over Socket.IO, `page` in a
browser.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import aiohttp

from hosts.people.client import Json
from hosts.people.users import User
from hosts.servers.forks import BOOT, ForkedProcess, ForkServer
from hosts.servers.offline import (
    ADMIN_EMAIL,
    ADMIN_PASSWORD,
    NEWEST,
    BootError,
    free_port,
    host_environment,
    host_python,
)

BOOT_SECONDS = 300
STOP_SECONDS = 5


class OpenWebUI:
    """One server process with a directory of its own."""

    def __init__(
        self,
        *,
        version: str = NEWEST,
        home: Path | None = None,
        port: int | None = None,
        env: Mapping[str, str] | None = None,
        python: Path | None = None,
        forks: ForkServer | None = None,
    ) -> None:
        self._forks = forks
        self.python = python or host_python(version)
        self.port = port or free_port()
        # The host imports from the folder above: a folder that nothing else writes to.
        self.home = home or Path(tempfile.mkdtemp(prefix="open-webui-")) / "server"
        self._temporary = home is None
        self._extra = dict(env or {})
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None
        self._admin: User | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin(self) -> User:
        if self._admin is None:
            raise BootError("The server has not been started.")
        return self._admin

    async def __aenter__(self) -> Self:
        try:
            self._launch()
            await self._ready(time.monotonic() + BOOT_SECONDS)
            password = self._extra.get("WEBUI_ADMIN_PASSWORD", ADMIN_PASSWORD)
            self._admin = User(self.url, ADMIN_EMAIL, password)
            await self._admin.sign_in()
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _launch(self) -> None:
        self.home.mkdir(parents=True, exist_ok=True)
        arguments = ["open_webui.main:app", "--host", "127.0.0.1"]
        arguments += ["--port", str(self.port), "--log-level", "warning"]
        if self._forks and sys.platform == "linux":
            env = self._environment()
            self._process = self._forks.launch(self.python, arguments, env, self.home)
            return
        # `-P`: the directory of boot.py holds modules with names of the host's.
        command = [str(self.python), "-P", str(BOOT), *arguments]
        log = self.home / "server.log"
        env = self._environment()
        self._process = start_process(command, log, env=env, cwd=self.home)

    def _environment(self) -> dict[str, str]:
        """The variables of the process: no web page of another site may use it."""
        own_pages = f"{self.url};http://localhost:{self.port}"
        given = {"CORS_ALLOW_ORIGIN": own_pages, **self._extra}
        return host_environment(self.python, self.home) | given

    async def _ready(self, deadline: float) -> None:
        async with aiohttp.ClientSession() as http:
            while time.monotonic() < deadline:
                if not self.is_running:
                    break
                with contextlib.suppress(aiohttp.ClientError):
                    async with http.get(f"{self.url}/ready") as response:
                        if response.status == 200:
                            return
                await asyncio.sleep(0.1)
        raise BootError(f"Open WebUI did not come up:\n{self.log()[-4000:]}")

    def kill(self) -> None:
        """End the process as a machine that fails does."""
        if self._process is None:
            raise BootError("The server has not been started.")
        self._process.kill()
        self._process.wait()

    async def start_again(self) -> None:
        """Start another process for what the last one has stored."""
        self._launch()
        await self._ready(time.monotonic() + BOOT_SECONDS)

    async def stop(self) -> None:
        """End the process whatever else fails."""
        try:
            if self._admin:
                await self._admin.close()
        finally:
            if self._process:
                await end_process(self._process)
            if self._temporary:
                shutil.rmtree(self.home.parent, ignore_errors=True)

    # ---- looking inside

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        if self._process is None:
            raise BootError("The server has not been started.")
        return self._process.pid

    def log(self) -> str:
        return (self.home / "server.log").read_text(errors="replace")

    def sql(self, query: str, *values: Any) -> list[Json]:
        """Rows of the database, which is opened for reading only."""
        address = f"file:{self.home / 'data/webui.db'}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
            database.row_factory = sqlite3.Row
            return [dict(row) for row in database.execute(query, values)]

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Let another process hold the lock of whoever writes to SQLite."""
        path = self.home / "data/webui.db"
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")

    def stored_chat(self, chat_id: str) -> Json:
        """A chat as it lies in the database."""
        row = self.sql("select chat from chat where id = ?", chat_id)[0]
        chat: Json = json.loads(row["chat"])
        return chat


def start_process(
    command: Sequence[str], log: Path, **more: Any
) -> subprocess.Popen[bytes]:
    """Start a server that prints into a file; to answer Ctrl-C is ours."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            **more,
        )


async def end_process(
    process: subprocess.Popen[bytes] | ForkedProcess,
    seconds: float = STOP_SECONDS,
    how: signal.Signals = signal.SIGTERM,
) -> None:
    """Ask a server to end; insist after a while."""
    process.send_signal(how)
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(process.wait, seconds)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
