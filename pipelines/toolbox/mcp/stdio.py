"""MCP over stdin and stdout of a child process.

The process runs in a process group of its own and is ended together with all that it
started. It gets only PATH, HOME and LANG of the server's environment, because other
variables may hold keys.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from toolbox.mcp.messages import (
    MAX_UNRELATED_MESSAGES,
    RpcMessage,
    build_rpc_reply,
    encode_rpc_message,
    parse_rpc_messages,
)
from toolbox.remote_tools import MAX_REMOTE_BYTES, RemoteError
from toolbox.server_entries import ServerEntry

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

    def write(self, line: bytes) -> None:
        """Write a line to its stdin, if that is open."""
        stdin = self._stdin()
        if stdin is not None:
            stdin.write(line + b"\n")

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


class McpStdioTransport:
    """One program, which lives as long as the session.

    `version` is what was agreed on in the handshake.
    """

    def __init__(self, entry: ServerEntry) -> None:
        """Start nothing yet."""
        self.version = ""
        self._entry = entry
        self._name = f"The MCP server {entry.label}"
        self._child: _ChildProcess | None = None
        self._waiting: dict[int, asyncio.Future[RpcMessage]] = {}
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

    async def request(self, request: RpcMessage) -> RpcMessage:
        """Return the answer to a request; raises RemoteError."""
        answer: asyncio.Future[RpcMessage] = asyncio.get_running_loop().create_future()
        self._waiting[request["id"]] = answer
        try:
            await self.notify(request)
            return await answer
        finally:
            del self._waiting[request["id"]]

    async def notify(self, notification: RpcMessage) -> None:
        """Send a message that has no answer; raises RemoteError."""
        if self._child is None or self._child.is_over:
            raise RemoteError(f"{self._name} {self._end_reason}.")
        self._child.write(encode_rpc_message(notification))

    async def close(self) -> None:
        """End the program."""
        if self._child is not None:
            await self._child.close()

    def _receive_line(self, line: bytes) -> bool:
        """Read a line of the program; a line that is no message is ignored."""
        self._unrelated_messages += 1
        text = line.decode("utf-8", "replace")
        with suppress(ValueError):
            for message in parse_rpc_messages(text, self._entry.secrets):
                self._receive_message(message)
        if self._unrelated_messages <= MAX_UNRELATED_MESSAGES:
            return True
        self._end_reason = "wrote too much and was ended"
        return False

    def _receive_message(self, message: RpcMessage) -> None:
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        reply = build_rpc_reply(message)
        if reply is not None and self._child is not None:
            self._child.write(encode_rpc_message(reply))
        elif waiting is not None and not waiting.done():
            self._unrelated_messages = 0
            waiting.set_result(message)

    def _fail_waiting(self) -> None:
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RemoteError(f"{self._name} {self._end_reason}."))
