"""HTTP calls to an Open WebUI server."""

import io
import json
from collections.abc import AsyncIterator
from typing import Any, Self, TypeAlias

import aiohttp

Json: TypeAlias = dict[str, Any]

REQUEST_SECONDS = 300


class OpenWebUIError(RuntimeError):
    """The server refused a call."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"HTTP {status}: {body}")
        self.status = status
        self.body = body


class Client:
    """A connection to one server, signed in or not."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.token = ""
        self._http: aiohttp.ClientSession | None = None

    @property
    def http(self) -> aiohttp.ClientSession:
        """The session, opened on first use."""
        if self._http is None or self._http.closed:
            timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
            # A kept connection can end at the server while a request is on its way.
            connector = aiohttp.TCPConnector(force_close=True)
            self._http = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self._http

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    async def __aenter__(self) -> Self:
        """Nothing to open: the session comes with the first call."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._http:
            await self._http.close()

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of a reply, or its text where it is none."""
        headers = self.headers
        data: io.BytesIO | None = None
        if body is not None:
            # aiohttp warns of bytes of a megabyte, which the text of a pipe may have.
            data = io.BytesIO(json.dumps(body).encode())
            headers["Content-Type"] = "application/json"
        async with self.http.request(
            method, self.url + path, headers=headers, data=data
        ) as response:
            raw = await response.text()
            try:
                answer = json.loads(raw)
            except json.JSONDecodeError:
                answer = raw
            if response.status >= 400:
                raise OpenWebUIError(response.status, answer)
            return answer

    async def stream(self, path: str, body: Json) -> AsyncIterator[Json]:
        """The `data:` objects of a streamed reply, `[DONE]` left out."""
        async with self.http.post(
            self.url + path, json=body, headers=self.headers
        ) as response:
            if response.status >= 400:
                raise OpenWebUIError(response.status, await response.text())
            async for line in response.content:
                event = line.strip().removeprefix(b"data:").strip()
                if line.startswith(b"data:") and event != b"[DONE]":
                    yield json.loads(event)
