"""The arguments of a call -> the request that it is."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from toolbox.openapi_arguments import OpenApiParameter
from toolbox.openapi_operations import OpenApiOperation

_BETWEEN: Mapping[str, str] = {"spaceDelimited": " ", "pipeDelimited": "|"}
_IN_BRACES = re.compile(r"\{([^{}]*)\}")


class ArgumentUnusable(Exception):
    """An argument has no place in the request; says which, for the model."""


@dataclass(frozen=True, slots=True)
class OpenApiRequest:
    """A request, without what proves who we are."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None


def openapi_request(
    operation: OpenApiOperation, arguments: Mapping[str, Any]
) -> OpenApiRequest:
    """Return the request of a call; raises ArgumentUnusable."""
    given = {
        parameter: arguments[parameter.argument]
        for parameter in operation.parameters
        if arguments.get(parameter.argument) is not None
    }
    query = [
        pair
        for parameter, value in given.items()
        if parameter.place == "query"
        for pair in _query_pairs(parameter, value)
    ]
    url = _filled_path(operation.url, given)
    headers = {
        parameter.name: _header_text(parameter, value)
        for parameter, value in given.items()
        if parameter.place == "header"
    }
    body = None
    if operation.body and operation.body in arguments:
        body = json.dumps(arguments[operation.body], ensure_ascii=False).encode()
        headers["Content-Type"] = "application/json"
    if query:
        url = f"{url}?{urlencode(query, quote_via=quote)}"
    return OpenApiRequest(operation.method, url, headers, body)


def _filled_path(url: str, given: Mapping[OpenApiParameter, Any]) -> str:
    """Return an address with the parameters of its path.

    Each stays inside its own segment: `..` would lead to another operation.
    """
    texts = {
        parameter.name: quote(_joined_text(parameter, value), safe="")
        for parameter, value in given.items()
        if parameter.place == "path"
    }
    for name in _IN_BRACES.findall(url):
        if not texts.get(name):
            raise ArgumentUnusable(f"{name} must not be empty")
    filled = _IN_BRACES.sub(lambda braced: texts[braced[1]], url)
    if {".", ".."} & set(urlsplit(filled).path.split("/")):
        raise ArgumentUnusable("a part of the path must not be . or ..")
    return filled


def _query_pairs(parameter: OpenApiParameter, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the pairs that a value is in a query (OpenAPI 3.1, Parameter Object)."""
    match value:
        case dict() if parameter.style == "deepObject":
            for key, one in value.items():
                yield f"{parameter.name}[{key}]", _argument_text(one)
        case dict() if parameter.explodes and parameter.style == "form":
            for key, one in value.items():
                yield key, _argument_text(one)
        case list() if parameter.explodes and parameter.style != "json":
            for one in value:
                yield parameter.name, _argument_text(one)
        case _:
            yield parameter.name, _joined_text(parameter, value)


def _header_text(parameter: OpenApiParameter, value: Any) -> str:
    text = _joined_text(parameter, value)
    if not (text.isascii() and text.isprintable()):
        raise ArgumentUnusable(f"{parameter.name} holds what no header can")
    return text


def _joined_text(parameter: OpenApiParameter, value: Any) -> str:
    """Return a value as one text."""
    between = _BETWEEN.get(parameter.style, ",")
    match value:
        case list() if parameter.style != "json":
            return between.join(map(_argument_text, value))
        case dict() if parameter.style != "json":
            sign = "=" if parameter.explodes else between
            pairs = [f"{key}{sign}{_argument_text(one)}" for key, one in value.items()]
            return between.join(pairs)
    return json.dumps(value) if parameter.style == "json" else _argument_text(value)


def _argument_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
