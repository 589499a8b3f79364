"""The HTTP request of one tool call, and the tool result of its response."""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from toolbox.openapi.document import OpenApiOperation, OpenApiParameter
from toolbox.remote_tools import build_error_result, truncate_text

_STYLE_SEPARATORS: Mapping[str, str] = {"spaceDelimited": " ", "pipeDelimited": "|"}
_URL_PARAMETER = re.compile(r"\{([^{}]*)\}")


class InvalidOpenApiArgument(Exception):
    """An argument cannot be sent; the text is for the model."""


class OpenApiRequest(NamedTuple):
    """A request without our headers."""

    method: str
    url: str
    headers: Mapping[str, str] = MappingProxyType({})
    body: bytes | None = None


def build_openapi_request(
    operation: OpenApiOperation, arguments: Mapping[str, Any]
) -> OpenApiRequest:
    """Return the request of a call; raises InvalidOpenApiArgument."""
    given = {
        parameter: arguments[parameter.argument]
        for parameter in operation.parameters
        if arguments.get(parameter.argument) is not None
    }
    query = [
        pair
        for parameter, value in given.items()
        if parameter.location == "query"
        for pair in _query_pairs(parameter, value)
    ]
    url = _fill_path(operation.url, given)
    headers = {
        parameter.name: _serialize_header(parameter, value)
        for parameter, value in given.items()
        if parameter.location == "header"
    }
    body = None
    if operation.body and operation.body in arguments:
        body = json.dumps(arguments[operation.body], ensure_ascii=False).encode()
        headers["Content-Type"] = "application/json"
    if query:
        url = f"{url}?{urlencode(query, quote_via=quote)}"
    return OpenApiRequest(operation.method, url, headers, body)


def _fill_path(url: str, given: Mapping[OpenApiParameter, Any]) -> str:
    """Return the URL with its path parameters.

    Each stays inside its own segment: `..` would lead to another operation.
    """
    texts = {
        parameter.name: quote(_serialize_parameter(parameter, value), safe="")
        for parameter, value in given.items()
        if parameter.location == "path"
    }
    for name in _URL_PARAMETER.findall(url):
        if not texts.get(name):
            raise InvalidOpenApiArgument(f"{name} must not be empty")
    filled = _URL_PARAMETER.sub(lambda braced: texts[braced[1]], url)
    if {".", ".."} & set(urlsplit(filled).path.split("/")):
        raise InvalidOpenApiArgument("a part of the path must not be . or ..")
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


def _serialize_header(parameter: OpenApiParameter, value: Any) -> str:
    text = _serialize_parameter(parameter, value)
    if not (text.isascii() and text.isprintable()):
        raise InvalidOpenApiArgument(f"{parameter.name} holds what no header can")
    return text


def _serialize_parameter(parameter: OpenApiParameter, value: Any) -> str:
    between = _STYLE_SEPARATORS.get(parameter.style, ",")
    match value:
        case list() if parameter.style != "json":
            return between.join(map(_serialize_scalar, value))
        case dict() if parameter.style != "json":
            sign = "=" if parameter.explodes else between
            pairs = [
                f"{key}{sign}{_serialize_scalar(one)}" for key, one in value.items()
            ]
            return between.join(pairs)
    return json.dumps(value) if parameter.style == "json" else _serialize_scalar(value)


def _serialize_scalar(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_MAX_HTTP_ERROR_CHARACTERS = 2_000


class OpenApiResponse(NamedTuple):
    """An answer: a text, or the content of a file.

    If `is_whole` is false the text is only the beginning.
    """

    status: int
    media_type: str
    text: str = ""
    content: bytes = b""
    is_whole: bool = True

    def as_tool_result(self) -> dict[str, Any]:
        """Return the result for the model, in MCP's form.

        A value becomes a part of its own: a list of parts could name our files.
        """
        if self.status >= 300:
            reason = (
                truncate_text(self.text, _MAX_HTTP_ERROR_CHARACTERS)
                or "no reason given"
            )
            return build_error_result(f"HTTP {self.status}: {reason}")
        return {"content": [self._content_part()]}

    def _content_part(self) -> dict[str, Any]:
        if self.content:
            encoded = base64.b64encode(self.content).decode("ascii")
            return {"type": "blob", "data": encoded, "mimeType": self.media_type}
        if self.is_whole and self.media_type.endswith("json"):
            try:
                return {"type": "json", "json": json.loads(self.text)}
            except (ValueError, RecursionError):
                pass
        cut = "" if self.is_whole else "\n[the rest is left out]"
        told = self.text or f"HTTP {self.status}, with no content."
        return {"type": "text", "text": told + cut}


def is_text_type(media_type: str) -> bool:
    """Say whether a media type is a text."""
    return media_type.startswith("text/") or media_type.endswith(("json", "xml"))
