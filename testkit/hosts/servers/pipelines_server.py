"""A Pipelines server of its own process and folder: the stand-in, or the real one.

    async with PipelinesServer() as server:
        await server.upload("echo", source)
        answer = await server.complete("echo", "hello")

It runs on the versions of the real server's requirements. `PIPELINES_SERVER` names a
checkout of the real one, to be started in the place of the stand-in; `UVICORN_LOOP`
names its event loop, as for the real one's `start.sh`.
"""

import asyncio
import contextlib
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any, Self

import aiohttp

from hosts.people.client import Client, Json, OpenWebUIError
from hosts.servers.offline import BootError, free_port, pipelines_python
from hosts.servers.open_webui import end_process, start_process

TESTKIT = Path(__file__).resolve().parents[2]
BOOT_SECONDS = 180
STOP_SECONDS = 60


class PipelinesServer(Client):
    """One server process with a folder of its own; its key is always sent."""

    def __init__(
        self,
        env: Mapping[str, str] | None = None,
        *,
        loop: str | None = None,
        port: int | None = None,
    ) -> None:
        self.port = port or free_port()
        super().__init__(f"http://127.0.0.1:{self.port}")
        self.token = secrets.token_hex(16)  # whoever has it uploads code
        self.home = Path(tempfile.mkdtemp(prefix="pipelines-"))
        self.folder = self.home / "pipelines"
        self.folder.mkdir()
        self._extra = dict(env or {})
        self._loop = loop or os.environ.get("UVICORN_LOOP", "auto")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        """A session that keeps no connection: an answer that breaks ends its own."""
        if self._http is None or self._http.closed:
            connector = aiohttp.TCPConnector(force_close=True, limit=0)
            self._http = aiohttp.ClientSession(connector=connector)
        return self._http

    async def __aenter__(self) -> Self:
        try:
            self.launch()
            await self.ready()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
        await self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def launch(self) -> None:
        """Start the process as `start.sh` does; its loop is uvloop by default."""
        real = os.environ.get("PIPELINES_SERVER")
        program = ["main:app"]
        if not real:
            program = ["--factory", "hosts.servers.pipelines_stand_in.server:app"]
        command = [str(pipelines_python()), "-m", "uvicorn"]
        command += [*program, "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--forwarded-allow-ips", "*", "--loop", self._loop]
        env = {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "PYTHONPATH": str(TESTKIT),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PIP_NO_INDEX": "1",
            "PIPELINES_DIR": str(self.folder),
            "PIPELINES_API_KEY": self.token,
            "GPT5_AGENT_ALLOW": "SANDBOX, wheels, env:*, file:*, url:http://127.0.0.1:*",
            **self._extra,
        }
        log, home = self.home / "server.log", real or self.home
        self._process = start_process(command, log, env=env, cwd=home)

    async def ready(self) -> None:
        """Wait until it answers; a process that ended never will."""
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline and self.is_running:
            with contextlib.suppress(aiohttp.ClientError):
                await self.call("GET", "/")
                return
            await asyncio.sleep(0.05)
        raise BootError(f"The Pipelines server did not come up:\n{self.log()[-4000:]}")

    async def stop(self) -> None:
        """End the process in order, as a container does."""
        if self._process:
            await end_process(self._process, STOP_SECONDS)

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """How the process ended; negative if it had to be killed."""
        return self._process.poll() if self._process else None

    def log(self) -> str:
        return (self.home / "server.log").read_text(errors="replace")

    # ---- what an administrator does

    async def upload(self, name: str, source: str) -> Json:
        """Upload a file, as Open WebUI's settings page does."""
        form = aiohttp.FormData()
        form.add_field("file", BytesIO(source.encode()), filename=f"{name}.py")
        address = f"{self.url}/pipelines/upload"
        async with self.http.post(address, data=form, headers=self.headers) as answer:
            reply: Json = await answer.json()
            if answer.status >= 400:
                raise OpenWebUIError(answer.status, reply)
            return reply

    async def models(self) -> list[Json]:
        listed: list[Json] = (await self.call("GET", "/models"))["data"]
        return listed

    async def valves(self, pipeline_id: str) -> Json:
        stored: Json = await self.call("GET", f"/{pipeline_id}/valves")
        return stored

    async def set_valves(self, pipeline_id: str, values: Json) -> Json:
        path = f"/{pipeline_id}/valves/update"
        stored: Json = await self.call("POST", path, values)
        return stored

    # ---- what Open WebUI does

    async def complete(self, model: str, text: str, **more: Any) -> Json:
        body = {**completion_body(model, text), "stream": False, **more}
        answer: Json = await self.call("POST", "/chat/completions", body)
        return answer

    async def raw_stream(self, model: str, text: str, **more: Any) -> bytes:
        """All bytes of a streamed answer; raises what the connection raises."""
        body = {**completion_body(model, text), **more}
        address = f"{self.url}/chat/completions"
        async with self.http.post(address, json=body) as answer:
            assert answer.status == 200, await answer.text()
            return await answer.read()

    async def chunks(self, model: str, text: str, **more: Any) -> list[Json]:
        """The chunks of a streamed answer, its end left out."""
        body = {**completion_body(model, text), **more}
        return [chunk async for chunk in self.stream("/chat/completions", body)]


def completion_body(model: str, text: str) -> Json:
    return {"model": model, "messages": [{"role": "user", "content": text}]}
