"""The tools of a server with an OpenAPI document, each call one HTTP request."""

import asyncio
import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import aiohttp

from openai_responses.json_input import JsonTooLarge, load_json
from toolbox.openapi.document import (
    PATH_PARAMETER,
    OpenApiDocument,
    OpenApiOperation,
    OpenApiParameter,
    web_origin,
)
from toolbox.remote_tools import (
    MAX_REMOTE_BYTES,
    MAX_TOOLS_PER_SERVER,
    LeftOutTools,
    RemoteConnection,
    RemoteError,
    RemoteTool,
    build_error_result,
    make_remote_tool,
    redact_secrets,
    run_with_timeout,
    truncate_text,
)
from toolbox.server_entries import ServerEntry

_MAX_TEXT_BYTES = 1024 * 1024
_MAX_HTTP_ERROR_CHARACTERS = 2_000
_STYLE_SEPARATORS: Mapping[str, str] = {"spaceDelimited": " ", "pipeDelimited": "|"}


class _InvalidArgument(Exception):
    """An argument cannot be sent; the text is for the model."""


class _OpenApiRequest(NamedTuple):
    """A request without our headers."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


class OpenApiClient:
    """One server, for one run; everything is opened on first use."""

    def __init__(self, entry: ServerEntry) -> None:
        """Open nothing yet."""
        self._entry = entry
        self._name = f"The tool server {entry.label}"
        self._connection = RemoteConnection(self._name, "OPENAPI_SERVERS_JSON")
        self.left_out = LeftOutTools()

    async def list_tools(self) -> tuple[OpenApiOperation, ...]:
        """Return what the server's document offers; raises RemoteError."""
        body = await run_with_timeout(
            self._load_document(), self._entry.seconds, self._name
        )
        # A long document takes a while: on a thread, other chats go on.
        return await asyncio.to_thread(self._read_operations, body)

    def _read_operations(self, body: bytes) -> tuple[OpenApiOperation, ...]:
        entry = self._entry
        try:
            content = load_json(body)
            document = OpenApiDocument(
                content, entry.url, entry.base_url, entry.allowed
            )
            unusable = list[str]()
            found = document.operations(unusable.append)
            tools = tuple(islice(found, MAX_TOOLS_PER_SERVER))
            with suppress(JsonTooLarge):  # of what is only counted
                self.left_out.extra = sum(1 for _ in found)
            self.left_out.unusable = len(unusable)
            return tools
        except ValueError:
            raise RemoteError(
                f"{self._name} has no OpenAPI document of version 3, as JSON, at its "
                "address."
            ) from None

    def make_tool(self, operation: OpenApiOperation) -> RemoteTool:
        """Return a tool that the server runs."""
        run = partial(self._call, operation)
        return make_remote_tool(self._entry.label, operation.spec, run)

    async def close(self) -> None:
        """Close what is open."""
        await self._connection.close()

    async def _load_document(self) -> bytes:
        url = self._entry.url
        headers = self._headers_for(url)
        async with self._connection.send("GET", url, headers) as response:
            if response.status != 200:
                status = f"HTTP {response.status}"
                raise RemoteError(
                    f"{self._name} does not give its document ({status})."
                )
            return await self._connection.read_body(response)

    async def _call(
        self, operation: OpenApiOperation, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            request = _build_openapi_request(operation, arguments)
        except _InvalidArgument as unusable:
            return build_error_result(f"The call was not made: {unusable}.")
        sending = self._send(request)
        return await run_with_timeout(sending, self._entry.seconds, self._name)

    async def _send(self, request: _OpenApiRequest) -> dict[str, Any]:
        """Return the result of a request."""
        method, url, headers, body = request
        headers = {**headers, **self._headers_for(url)}
        async with self._connection.send(method, url, headers, body) as response:
            return await self._read_result(response)

    async def _read_result(self, response: aiohttp.ClientResponse) -> dict[str, Any]:
        """Return the result for the model, in MCP's form."""
        kind = response.content_type
        is_text = kind.startswith("text/") or kind.endswith(("json", "xml"))
        most = _MAX_TEXT_BYTES if is_text else MAX_REMOTE_BYTES
        content = await self._connection.read_body(response, most)
        text = content[:most].decode("utf-8", "replace") if is_text else ""
        text = redact_secrets(text, self._entry.secrets)
        status = f"HTTP {response.status}"
        if response.status >= 300:
            reason = truncate_text(text, _MAX_HTTP_ERROR_CHARACTERS)
            return build_error_result(f"{status}: {reason or 'no reason given'}")
        if content and not is_text:
            encoded = base64.b64encode(content).decode("ascii")
            return {"content": [{"type": "blob", "data": encoded, "mimeType": kind}]}
        if kind.endswith("json") and len(content) <= most:
            try:
                # A part of its own: a list of parts could name our files.
                return {"content": [{"type": "json", "json": load_json(text)}]}
            except ValueError:
                pass
        told = text or f"{status}, with no content."
        cut = "" if len(content) <= most else "\n[the rest is left out]"
        return {"content": [{"type": "text", "text": told + cut}]}

    def _headers_for(self, url: str) -> dict[str, str]:
        """Return our headers, for our host only."""
        home = self._entry.base_url or self._entry.url
        is_home = web_origin(url) == web_origin(home)
        return dict(self._entry.headers) if is_home else {}


def _build_openapi_request(
    operation: OpenApiOperation, arguments: Mapping[str, Any]
) -> _OpenApiRequest:
    """Return the request of a call; raises _InvalidArgument."""
    query: list[tuple[str, str]] = []
    path: dict[str, str] = {}
    headers: dict[str, str] = {}
    for parameter in operation.parameters:
        value = arguments.get(parameter.argument)
        if value is None:
            continue
        if parameter.location == "query":
            query += _query_pairs(parameter, value)
        elif parameter.location == "path":
            path[parameter.name] = quote(
                _serialize_parameter(parameter, value), safe=""
            )
        else:
            headers[parameter.name] = _serialize_parameter(parameter, value)
    url = _fill_path(operation.url, path)
    for name, text in headers.items():
        if not (text.isascii() and text.isprintable()):
            raise _InvalidArgument(f"{name} holds what no header can")
    if query:
        url = f"{url}?{urlencode(query, quote_via=quote)}"
    body = None
    if operation.body and operation.body in arguments:
        body = json.dumps(arguments[operation.body], ensure_ascii=False).encode()
        headers["Content-Type"] = "application/json"
    return _OpenApiRequest(operation.method, url, headers, body)


def _fill_path(url: str, texts: Mapping[str, str]) -> str:
    """Return the URL with its path parameters.

    Each stays inside its own segment: `..` would lead to another operation.
    """
    for name in PATH_PARAMETER.findall(url):
        if not texts.get(name):
            raise _InvalidArgument(f"{name} must not be empty")
    filled = PATH_PARAMETER.sub(lambda braced: texts[braced[1]], url)
    if {".", ".."} & set(urlsplit(filled).path.split("/")):
        raise _InvalidArgument("a part of the path must not be . or ..")
    return filled


def _query_pairs(parameter: OpenApiParameter, value: Any) -> Iterator[tuple[str, str]]:
    """Yield a value as pairs of a query (OpenAPI 3.1, Parameter Object)."""
    match value:
        case dict() if parameter.style == "deepObject":
            for key, one in value.items():
                yield f"{parameter.name}[{key}]", _serialize_scalar(one)
        case dict() if parameter.explodes and parameter.style == "form":
            for key, one in value.items():
                yield key, _serialize_scalar(one)
        case list() if parameter.explodes and parameter.style != "json":
            for one in value:
                yield parameter.name, _serialize_scalar(one)
        case _:
            yield parameter.name, _serialize_parameter(parameter, value)


def _serialize_parameter(parameter: OpenApiParameter, value: Any) -> str:
    if parameter.style == "json":
        return json.dumps(value)
    between = _STYLE_SEPARATORS.get(parameter.style, ",")
    if isinstance(value, list):
        return between.join(map(_serialize_scalar, value))
    if isinstance(value, dict):
        sign = "=" if parameter.explodes else between
        return between.join(
            f"{key}{sign}{_serialize_scalar(one)}" for key, one in value.items()
        )
    return _serialize_scalar(value)


def _serialize_scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
