"""The way to an MCP server that is a program on this machine."""

import asyncio

from toolbox.json_rpc import RpcMessage, rpc_messages, rpc_reply, rpc_text
from toolbox.mcp_child import Child, start_child
from toolbox.mcp_wire import MOST_ASIDES
from toolbox.remote_tools import RemoteFailed, with_secrets_hidden
from toolbox.server_entries import ServerEntry


class McpStdio:
    """One program, which lives as long as the session."""

    def __init__(self, entry: ServerEntry) -> None:
        """Start nothing yet."""
        self.version = ""
        self._entry = entry
        self._name = f"The MCP server {entry.label}"
        self._child: Child | None = None
        self._waiting: dict[int, asyncio.Future[RpcMessage]] = {}
        self._asides = 0
        self._end = "has ended"

    async def open(self) -> None:
        """Start the program; what is left of another one ends."""
        await self.close()
        self._child = Child(self._take, self._fail)
        environment = dict(self._entry.environment)
        try:
            await start_child(self._child, self._entry.command, environment)
        except (OSError, ValueError):
            raise RemoteFailed(f"{self._name} cannot be started.") from None

    async def ask(self, request: RpcMessage) -> RpcMessage:
        """Write a request, wait for the line that answers it."""
        answer: asyncio.Future[RpcMessage] = asyncio.get_running_loop().create_future()
        self._waiting[request["id"]] = answer
        try:
            await self.tell(request)
            return await answer
        finally:
            del self._waiting[request["id"]]

    async def tell(self, notification: RpcMessage) -> None:
        """Write a line."""
        if self._child is None or self._child.is_over:
            raise RemoteFailed(f"{self._name} {self._end}.")
        self._child.write(rpc_text(notification))

    async def close(self) -> None:
        """End the program."""
        if self._child is not None:
            await self._child.close()

    def _take(self, line: bytes) -> bool:
        """Take a line of the program; what is no message is a word to nobody."""
        self._asides += 1
        text = with_secrets_hidden(line.decode("utf-8", "replace"), self._entry.secrets)
        try:
            messages = rpc_messages(text)
        except ValueError:
            messages = []
        for message in messages:
            self._take_message(message)
        if self._asides <= MOST_ASIDES:
            return True
        self._end = "wrote too much and was ended"
        return False

    def _take_message(self, message: RpcMessage) -> None:
        number = message.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        reply = rpc_reply(message)
        if reply is not None and self._child is not None:
            self._child.write(rpc_text(reply))
        elif waiting is not None and not waiting.done():
            self._asides = 0
            waiting.set_result(message)

    def _fail(self) -> None:
        """Tell those who wait that nothing comes any more."""
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(RemoteFailed(f"{self._name} {self._end}."))
