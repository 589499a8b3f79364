"""The tools of a server with an OpenAPI document, as the agent is offered them."""

import json
from functools import partial
from typing import Any
from urllib.parse import urljoin

import aiohttp

from toolbox.openapi_answers import OpenApiAnswer, is_text_type
from toolbox.openapi_operations import OpenApiDocument, OpenApiOperation, web_origin
from toolbox.openapi_requests import ArgumentUnusable, OpenApiRequest, openapi_request
from toolbox.openapi_schemas import SchemaUnusable
from toolbox.remote_http import RemoteConnection
from toolbox.remote_tools import (
    LARGEST_ANSWER,
    MOST_TOOLS,
    RemoteFailed,
    RemoteTool,
    allows_tool,
    failed_result,
    in_time,
    remote_tool,
    with_secrets_hidden,
)
from toolbox.server_entries import ServerEntry

_MOST_REQUESTS = 4
_LARGEST_TEXT = 1024 * 1024
_KEPT_METHOD = (307, 308)
_REDIRECTED = (301, 302, *_KEPT_METHOD)


class OpenApiServer:
    """One server, for one run; nothing is opened before it is needed."""

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet."""
        self._entry = entry
        self._name = f"The tool server {entry.label}"
        self._connection = RemoteConnection(self._name)

    async def offered(self) -> tuple[OpenApiOperation, ...]:
        """Return what the server's document offers; raises RemoteFailed."""
        body = await in_time(self._loaded(), self._entry.seconds, self._name)
        try:
            content = json.loads(body)
            document = OpenApiDocument(content, self._entry.url, self._entry.base_url)
            found = [one for one in document.operations() if self._allows(one)]
        except (ValueError, RecursionError, SchemaUnusable):
            raise RemoteFailed(
                f"{self._name} has no OpenAPI document of version 3, as JSON, at its "
                "address."
            ) from None
        return tuple(found[:MOST_TOOLS])

    def tool(self, operation: OpenApiOperation) -> RemoteTool:
        """Return a tool that the server runs."""
        run = partial(self._call, operation)
        return remote_tool(self._entry.label, operation.spec, run)

    async def close(self) -> None:
        """Close what is open."""
        await self._connection.close()

    def _allows(self, operation: OpenApiOperation) -> bool:
        return allows_tool(self._entry.allowed, operation.spec.own_name)

    async def _loaded(self) -> bytes:
        url = self._entry.url
        async with self._connection.send("GET", url, self._keys_for(url)) as response:
            if response.status != 200:
                raise RemoteFailed(
                    f"{self._name} does not give its document "
                    f"(HTTP {response.status})."
                )
            return await self._connection.body(response, LARGEST_ANSWER)

    async def _call(
        self, operation: OpenApiOperation, arguments: dict[str, Any]
    ) -> Any:
        try:
            request = openapi_request(operation, arguments)
        except ArgumentUnusable as unusable:
            return failed_result(f"The call was not made: {unusable}.")
        answering = self._answer(request)
        answer = await in_time(answering, self._entry.seconds, self._name)
        return answer.result()

    async def _answer(self, request: OpenApiRequest) -> OpenApiAnswer:
        """Send a request; follow redirections as long as they stay on the host."""
        url = request.url
        for _ in range(_MOST_REQUESTS):
            headers = {**request.headers, **self._keys_for(url)}
            sent = self._connection.send(request.method, url, headers, request.body)
            async with sent as response:
                place = response.headers.get("Location", "")
                if not place or not _is_followed(response.status, request.method):
                    return await self._read(response)
            target = urljoin(url, place)
            if web_origin(target) != web_origin(url):
                raise RemoteFailed(f"{self._name} sends calls on to another host.")
            url = target
        raise RemoteFailed(f"{self._name} sends calls round in circles.")

    async def _read(self, response: aiohttp.ClientResponse) -> OpenApiAnswer:
        """Return an answer: of a text the beginning, of a file all or nothing."""
        status, kind = response.status, response.content_type
        if not is_text_type(kind):
            content = await self._connection.body(response, LARGEST_ANSWER)
            return OpenApiAnswer(status, kind, content=content)
        start, is_whole = await self._connection.beginning(response, _LARGEST_TEXT)
        text = with_secrets_hidden(
            start.decode("utf-8", "replace"), self._entry.secrets
        )
        return OpenApiAnswer(status, kind, text=text, is_whole=is_whole)

    def _keys_for(self, url: str) -> dict[str, str]:
        """Return our headers, for the host that they are for."""
        home = self._entry.base_url or self._entry.url
        is_home = web_origin(url) == web_origin(home)
        return dict(self._entry.headers) if is_home else {}


def _is_followed(status: int, method: str) -> bool:
    """Say whether a redirection is followed: only where the same is asked again."""
    return status in _KEPT_METHOD or (method == "GET" and status in _REDIRECTED)
