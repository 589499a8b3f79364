"""The connections of the tools to other servers, and how much is read from them.

A connection follows no redirection, keeps no cookie, asks no proxy, and takes nothing
that is compressed: a few bytes of that can stand for gigabytes.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager

import aiohttp

from toolbox.remote_tools import LARGEST_ANSWER, RemoteFailed

_CONNECT_SECONDS = 10.0


class RemoteConnection:
    """The connections of one run to one server; `name` is what people call it."""

    def __init__(self, name: str) -> None:
        """Open nothing yet."""
        self._name = name
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def send(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, lend its response; raises RemoteFailed.

        Leaving early closes the connection. It is up to the caller to end a wait.
        """
        try:
            response = await self._opened().request(
                method,
                url,
                headers={"Accept-Encoding": "identity", **headers},
                data=body,
                allow_redirects=False,
            )
            try:
                yield response
            finally:
                response.close()  # nothing happens when it was read to its end
        except (aiohttp.ClientError, OSError, ValueError):
            raise RemoteFailed(
                f"{self._name} cannot be reached, or its answer broke off."
            ) from None

    async def pieces(
        self, response: aiohttp.ClientResponse, most: int
    ) -> AsyncGenerator[bytes, None]:
        """Yield a body as it comes; raises RemoteFailed for one that is too long."""
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise RemoteFailed(f"{self._name} sent a compressed answer, unasked.")
        left = most
        async for piece in response.content.iter_any():
            left -= len(piece)
            if left < 0:
                raise RemoteFailed(f"{self._name} sent more than {most} bytes.")
            yield piece

    async def body(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        """Return a whole body; raises RemoteFailed for one that is too long."""
        return b"".join([piece async for piece in self.pieces(response, most)])

    async def beginning(
        self, response: aiohttp.ClientResponse, most: int
    ) -> tuple[bytes, bool]:
        """Return no more of a body than that, with whether it is all."""
        taken: list[bytes] = []
        async with aclosing(self.pieces(response, LARGEST_ANSWER)) as pieces:
            async for piece in pieces:
                taken.append(piece)
                if sum(map(len, taken)) > most:
                    return b"".join(taken)[:most], False
        return b"".join(taken), True

    async def close(self) -> None:
        """Close what is open."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=_CONNECT_SECONDS
                ),
                auto_decompress=False,
            )
        return self._session
