"""The tools of a server with an OpenAPI document."""

import json
from functools import partial
from typing import Any
from urllib.parse import urljoin

import aiohttp

from toolbox.openapi.calls import (
    InvalidOpenApiArgument,
    OpenApiRequest,
    OpenApiResponse,
    build_openapi_request,
    is_text_type,
)
from toolbox.openapi.document import (
    InvalidOpenApiSchema,
    OpenApiDocument,
    OpenApiOperation,
    web_origin,
)
from toolbox.remote_tools import (
    MAX_REMOTE_BYTES,
    MAX_TOOLS_PER_SERVER,
    RemoteConnection,
    RemoteError,
    RemoteTool,
    build_error_result,
    is_tool_allowed,
    make_remote_tool,
    redact_secrets,
    run_with_timeout,
)
from toolbox.server_entries import ServerEntry

_MAX_REDIRECTED_REQUESTS = 4
_MAX_TEXT_BYTES = 1024 * 1024
_METHOD_PRESERVING_STATUSES = (307, 308)
_REDIRECT_STATUSES = (301, 302, *_METHOD_PRESERVING_STATUSES)


class OpenApiClient:
    """One server, for one run; everything is opened on first use."""

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet."""
        self._entry = entry
        self._name = f"The tool server {entry.label}"
        self._connection = RemoteConnection(self._name)

    async def list_tools(self) -> tuple[OpenApiOperation, ...]:
        """Return what the server's document offers; raises RemoteError."""
        body = await run_with_timeout(
            self._load_document(), self._entry.seconds, self._name
        )
        try:
            content = json.loads(body)
            document = OpenApiDocument(content, self._entry.url, self._entry.base_url)
            allowed = self._entry.allowed
            found = [
                one
                for one in document.operations()
                if is_tool_allowed(allowed, one.spec.own_name)
            ]
        except (ValueError, RecursionError, InvalidOpenApiSchema):
            raise RemoteError(
                f"{self._name} has no OpenAPI document of version 3, as JSON, at its "
                "address."
            ) from None
        return tuple(found[:MAX_TOOLS_PER_SERVER])

    def make_tool(self, operation: OpenApiOperation) -> RemoteTool:
        """Return a tool that the server runs."""
        run = partial(self._call, operation)
        return make_remote_tool(self._entry.label, operation.spec, run)

    async def close(self) -> None:
        """Close what is open."""
        await self._connection.close()

    async def _load_document(self) -> bytes:
        url = self._entry.url
        async with self._connection.send(
            "GET", url, self._headers_for(url)
        ) as response:
            if response.status != 200:
                raise RemoteError(
                    f"{self._name} does not give its document "
                    f"(HTTP {response.status})."
                )
            return await self._connection.read_body(response, MAX_REMOTE_BYTES)

    async def _call(
        self, operation: OpenApiOperation, arguments: dict[str, Any]
    ) -> Any:
        try:
            request = build_openapi_request(operation, arguments)
        except InvalidOpenApiArgument as unusable:
            return build_error_result(f"The call was not made: {unusable}.")
        answering = self._send(request)
        answer = await run_with_timeout(answering, self._entry.seconds, self._name)
        return answer.as_tool_result()

    async def _send(self, request: OpenApiRequest) -> OpenApiResponse:
        """Send a request; follow redirections on the same host."""
        url = request.url
        for _ in range(_MAX_REDIRECTED_REQUESTS):
            headers = {**request.headers, **self._headers_for(url)}
            sent = self._connection.send(request.method, url, headers, request.body)
            async with sent as response:
                place = response.headers.get("Location", "")
                if not place or not _should_follow(response.status, request.method):
                    return await self._read_response(response)
            target = urljoin(url, place)
            if web_origin(target) != web_origin(url):
                raise RemoteError(f"{self._name} sends calls on to another host.")
            url = target
        raise RemoteError(f"{self._name} sends calls round in circles.")

    async def _read_response(self, response: aiohttp.ClientResponse) -> OpenApiResponse:
        """Return an answer: the beginning of a text, or a whole file."""
        status, kind = response.status, response.content_type
        if not is_text_type(kind):
            content = await self._connection.read_body(response, MAX_REMOTE_BYTES)
            return OpenApiResponse(status, kind, content=content)
        start, is_whole = await self._connection.read_beginning(
            response, _MAX_TEXT_BYTES
        )
        text = redact_secrets(start.decode("utf-8", "replace"), self._entry.secrets)
        return OpenApiResponse(status, kind, text=text, is_whole=is_whole)

    def _headers_for(self, url: str) -> dict[str, str]:
        """Return our headers, for our host only."""
        home = self._entry.base_url or self._entry.url
        is_home = web_origin(url) == web_origin(home)
        return dict(self._entry.headers) if is_home else {}


def _should_follow(status: int, method: str) -> bool:
    """Say whether a redirection repeats the same request."""
    return status in _METHOD_PRESERVING_STATUSES or (
        method == "GET" and status in _REDIRECT_STATUSES
    )
