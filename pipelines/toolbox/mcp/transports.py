"""Two ways to an MCP server: streamable HTTP, and a child process.

The messages are JSON-RPC 2.0; HTTP follows protocol revision 2025-06-18. A child
process runs in a process group of its own and is ended together with all that it
started. It gets only PATH, HOME and LANG of the server's environment, because other
variables may hold keys.
"""

import asyncio
import json
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import aiohttp

from openai_responses.transport.stream import EventStreamDecoder
from toolbox.remote_tools import (
    MAX_REMOTE_BYTES,
    RemoteConnection,
    RemoteError,
    redact_secrets,
)
from toolbox.server_entries import ServerEntry

_RpcMessage = dict[str, Any]

_MAX_UNRELATED_MESSAGES = 1_000
"""How many messages a server may send that answer nothing, before it has failed."""
_METHOD_NOT_FOUND = -32601
_MAX_ID_CHARACTERS = 200
"""A server's request with a longer id is ignored: its answers would fill the memory."""


def build_rpc_message(
    method: str, params: Mapping[str, Any] | None = None, number: int | None = None
) -> dict[str, Any]:
    """Return a request; without a number, a message that has no answer."""
    return {
        "jsonrpc": "2.0",
        **({} if number is None else {"id": number}),
        "method": method,
        **({} if params is None else {"params": dict(params)}),
    }


def _encode_rpc_message(message: _RpcMessage) -> bytes:
    """Return a message as it is sent, in one line."""
    text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", errors="replace")


def _build_rpc_reply(message: _RpcMessage) -> _RpcMessage | None:
    """Return the answer to a request of the server; None for any other message.

    Only `ping` is supported.
    """
    number = message.get("id")
    is_request = "method" in message and isinstance(number, int | str)
    if not is_request or len(str(number)) > _MAX_ID_CHARACTERS:
        return None
    head = {"jsonrpc": "2.0", "id": number}
    if message["method"] == "ping":
        return {**head, "result": {}}
    return {**head, "error": {"code": _METHOD_NOT_FOUND, "message": "Method not found"}}


_SESSION_HEADER = "Mcp-Session-Id"


class SessionExpired(Exception):
    """The server has forgotten the session and did nothing of the message."""


class _McpTransport:
    """What both have: `version` was agreed on in the handshake, empty before it."""

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet."""
        self.version = ""
        self._entry = entry
        self._name = f"The MCP server {entry.label}"

    def _parse(self, text: str) -> list[_RpcMessage]:
        """Return the messages of a text without our secrets; raises RemoteError."""
        try:
            given = json.loads(redact_secrets(text, self._entry.secrets))
        except (ValueError, RecursionError):
            given = None
        rows = given if isinstance(given, list) else [given]
        if not all(isinstance(row, dict) for row in rows):
            raise RemoteError(f"{self._name} does not speak MCP.")
        return rows


class McpHttpTransport(_McpTransport):
    """One session with a server, if the server has sessions."""

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet."""
        super().__init__(entry)
        self._connection = RemoteConnection(self._name, "MCP_SERVERS_JSON")
        self._session_id = ""

    async def open(self) -> None:
        """Forget the session; the next answer brings another."""
        self.version = self._session_id = ""

    async def request(self, request: _RpcMessage) -> _RpcMessage:
        """Return the answer to a request; raises RemoteError, SessionExpired.

        Requests of the server are answered meanwhile.
        """
        async with self._post(request) as response:
            if request["method"] == "initialize":
                self._session_id = response.headers.get(_SESSION_HEADER, "")
            asides = 0
            async with aclosing(self._read_messages(response)) as messages:
                async for message in messages:
                    number = message.get("id")
                    is_ours = isinstance(number, int) and number == request["id"]
                    if is_ours and "method" not in message:
                        return message
                    asides += 1
                    if asides > _MAX_UNRELATED_MESSAGES:
                        break
                    await self._reply(message)
        raise RemoteError(f"{self._name} gave no answer to a request.")

    async def notify(self, notification: _RpcMessage) -> None:
        """Post a message that has no answer; raises RemoteError, SessionExpired."""
        async with self._post(notification):
            pass

    async def _reply(self, message: _RpcMessage) -> None:
        """Answer the server's request, if it is one; a running call is not repeated."""
        reply = _build_rpc_reply(message)
        try:
            if reply is not None:
                await self.notify(reply)
        except SessionExpired:
            raise RemoteError(f"{self._name} has ended its session.") from None

    async def close(self) -> None:
        """End the session at the server; errors are ignored."""
        try:
            if self._session_id:
                with suppress(RemoteError):
                    url, headers = self._entry.url, self._headers()
                    async with self._connection.send("DELETE", url, headers):
                        pass
        finally:
            await self._connection.close()

    @asynccontextmanager
    async def _post(
        self, message: _RpcMessage
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        url, headers = self._entry.url, self._headers()
        body = _encode_rpc_message(message)
        async with self._connection.send("POST", url, headers, body) as response:
            status = response.status
            if status == 404 and _SESSION_HEADER in headers:
                raise SessionExpired
            if status in (401, 403):
                raise RemoteError(f"{self._name} does not let us in (HTTP {status}).")
            if not 200 <= status < 300:
                raise RemoteError(f"{self._name} refused a request (HTTP {status}).")
            yield response

    def _headers(self) -> dict[str, str]:
        ours = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
            "MCP-Protocol-Version": self.version,
            _SESSION_HEADER: self._session_id,
        }
        ours = {name: text for name, text in ours.items() if text}
        return {**ours, **dict(self._entry.headers)}

    async def _read_messages(
        self, response: aiohttp.ClientResponse
    ) -> AsyncGenerator[_RpcMessage, None]:
        if response.content_type != "text/event-stream":
            body = await self._connection.read_body(response)
            for message in self._parse(body.decode("utf-8", "replace")):
                yield message
            return
        decoder = EventStreamDecoder()
        async with aclosing(self._connection.read_chunks(response)) as chunks:
            async for chunk in chunks:
                for event in decoder.feed(chunk):
                    for message in self._parse(event.data):
                        yield message
        # The decoder is not closed: an event that the end cut off is not an answer.


_CHILD_EXIT_SECONDS = 2.0
"""How long a program may take to end by itself once its stdin is closed."""
_STDOUT = 1
_INHERITED_VARIABLES = ("PATH", "HOME", "LANG")
"""What a program gets of our environment; the rest may hold keys."""


class _ChildProcess(asyncio.SubprocessProtocol):
    """One running program; `is_over` says that no more output can come."""

    def __init__(
        self, take: Callable[[bytes], bool], ended: Callable[[], object]
    ) -> None:
        """Give each line to `take`, which returns False to end; call `ended` last."""
        self.is_over = False
        self._on_line = take
        self._on_end = ended
        self._partial_line = bytearray()
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def pipe_data_received(self, _fd: int, data: bytes) -> None:
        """Split the output into lines."""
        *lines, begun = data.split(b"\n")
        for line in lines:
            whole, self._partial_line = bytes(self._partial_line + line), bytearray()
            if not self._on_line(whole):
                self.kill()
                return
        self._partial_line += begun
        if len(self._partial_line) > MAX_REMOTE_BYTES:
            self.kill()

    def pipe_connection_lost(self, fd: int, _exc: Exception | None) -> None:
        """Report the end of its output."""
        if fd == _STDOUT:
            self.is_over = True
            self._on_end()

    def process_exited(self) -> None:
        """End what it started, at once: its group number can be reused later."""
        self.kill()
        self.is_over = True
        self._exited.set()

    def write(self, message: _RpcMessage) -> None:
        """Write a message to its stdin, if that is open."""
        stdin = self._stdin()
        if stdin is not None:
            stdin.write(_encode_rpc_message(message) + b"\n")

    def kill(self) -> None:
        """End the program with all that it started."""
        if self._transport is not None and not self._exited.is_set():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._transport.get_pid(), signal.SIGKILL)

    async def close(self) -> None:
        """Let it end by itself, or end it."""
        if self._transport is None:
            return
        try:
            stdin = self._stdin()
            if stdin is not None:
                stdin.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CHILD_EXIT_SECONDS):
                    await self._exited.wait()
            self.kill()
            await self._exited.wait()
        finally:
            self.kill()
            self._transport.close()

    def _stdin(self) -> asyncio.WriteTransport | None:
        stdin = self._transport and self._transport.get_pipe_transport(0)
        return stdin if isinstance(stdin, asyncio.WriteTransport) else None


class McpStdioTransport(_McpTransport):
    """One program, which lives as long as the session."""

    def __init__(self, entry: ServerEntry) -> None:
        """Start nothing yet."""
        super().__init__(entry)
        self._child: _ChildProcess | None = None
        self._waiting: dict[int, asyncio.Future[_RpcMessage]] = {}
        self._unrelated_messages = 0
        self._end_reason = "has ended"

    async def open(self) -> None:
        """Start the program, end an earlier one; raises RemoteError."""
        await self.close()
        child = self._child = _ChildProcess(self._receive_line, self._fail_waiting)
        known = os.environ
        inherited = {
            name: known[name] for name in _INHERITED_VARIABLES if name in known
        }
        try:
            await asyncio.get_running_loop().subprocess_exec(
                lambda: child,
                *self._entry.command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={**inherited, **dict(self._entry.environment)},
                start_new_session=True,
            )
        except (OSError, ValueError):
            raise RemoteError(f"{self._name} cannot be started.") from None

    async def request(self, request: _RpcMessage) -> _RpcMessage:
        """Return the answer to a request; raises RemoteError."""
        answer: asyncio.Future[_RpcMessage] = asyncio.get_running_loop().create_future()
        self._waiting[request["id"]] = answer
        try:
            await self.notify(request)
            return await answer
        finally:
            del self._waiting[request["id"]]

    async def notify(self, notification: _RpcMessage) -> None:
        """Send a message that has no answer; raises RemoteError."""
        if self._child is None or self._child.is_over:
            raise RemoteError(f"{self._name} {self._end_reason}.")
        self._child.write(notification)

    async def close(self) -> None:
        """End the program."""
        if self._child is not None:
            await self._child.close()

    def _receive_line(self, line: bytes) -> bool:
        """Read a line of the program; a line that is no message is ignored."""
        self._unrelated_messages += 1
        text = line.decode("utf-8", "replace")
        with suppress(RemoteError):
            for message in self._parse(text):
                self._receive_message(message)
        if self._unrelated_messages <= _MAX_UNRELATED_MESSAGES:
            return True
        self._end_reason = "wrote too much and was ended"
        return False

    def _receive_message(self, message: _RpcMessage) -> None:
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        reply = _build_rpc_reply(message)
        if reply is not None and self._child is not None:
            self._child.write(reply)
        elif waiting is not None and not waiting.done():
            self._unrelated_messages = 0
            waiting.set_result(message)

    def _fail_waiting(self) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RemoteError(f"{self._name} {self._end_reason}."))
