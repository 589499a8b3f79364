"""Reads an OpenAPI document into operations that can be tools.

References inside the document are copied to `$defs`; nothing is loaded from elsewhere.
Headers that carry credentials, and parameters that the document declares as API keys,
are never arguments of the model. The host of all calls is the one that an administrator
configured; only the path comes from the document.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from openai_responses.json_input import (
    JsonBudget,
    JsonTooLarge,
    as_list,
    as_mapping,
    as_text,
)
from toolbox.remote_tools import (
    MAX_DESCRIPTION_CHARACTERS,
    MAX_SCHEMA_SIZE,
    RemoteToolSpec,
    check_schema_size,
    is_tool_allowed,
)

_MAX_DOCUMENT_WORK = 20 * MAX_SCHEMA_SIZE
_MAX_URL_CHARACTERS = 2_000
_MAX_OPENAPI_SCHEMA_DEPTH = 40
_MAX_DEFINITIONS = 100
_MAX_REFERENCE_HOPS = 10
_INVALID_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9._-]")


class _OpenApiContent(NamedTuple):
    """A document, and how much may still be read of it for one operation."""

    root: Any
    budget: JsonBudget

    def resolve(self, node: object) -> Mapping[str, Any]:
        """Return an object of the document, or the one that it refers to."""
        for _ in range(_MAX_REFERENCE_HOPS):
            if not isinstance(node, Mapping):
                break
            if "$ref" not in node:
                return node
            node = self.follow(node["$ref"])
        raise ValueError

    def follow(self, reference: object) -> Any:
        """Return the target of a reference (RFC 6901) inside the document."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise ValueError
        self.budget.spend(len(reference))
        node: Any = self.root
        for step in unquote(reference[2:]).split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or name not in node:
                raise ValueError
            node = node[name]
        return node


_NODE_SIZE, _ROW_SIZE = 10, 50
_PARAMETER_LOCATIONS = ("path", "query", "header")
_RESERVED_HEADERS = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "te", "upgrade"}
)
_SECRET_HEADER = re.compile("auth|cookie|forward|key|secret|token|transfer")
"""Headers that the model must not set: ours, and those with credentials."""
_EXPLODED_STYLES = ("form", "deepObject")


class OpenApiParameter(NamedTuple):
    """A parameter; `argument` is its name in the tool, `style` its serialization.

    `json` is the style of a parameter with a media type.
    """

    argument: str
    name: str
    location: str
    style: str
    explodes: bool


class _OpenApiArguments:
    """The arguments of one operation; `body` is the one that is sent as JSON."""

    def __init__(
        self, content: _OpenApiContent, api_keys: frozenset[tuple[str, str]]
    ) -> None:
        """Begin with none."""
        self.parameters: dict[tuple[str, str], OpenApiParameter] = {}
        self.body = ""
        self._content = content
        self._definitions: dict[str, Any] = {}
        self._definition_names: dict[str, str] = {}
        self._properties: dict[str, Any] = {}
        self._required: dict[str, None] = {}
        self._api_keys = api_keys

    def build_schema(self) -> dict[str, Any]:
        """Return the schema of all arguments."""
        definitions = self._definitions
        return {
            "type": "object",
            "properties": self._properties,
            "required": list(self._required),
            **({"$defs": definitions} if definitions else {}),
        }

    def add_parameters(self, rows: object) -> None:
        """Add parameters, an operation's in place of its path's; raises ValueError."""
        for row in as_list(rows):
            self._content.budget.spend(_ROW_SIZE)
            said = self._content.resolve(row)
            place, name = as_text(said.get("in")), as_text(said.get("name"))
            self._content.budget.spend(len(name))
            if name and self._is_model_argument(place, name):
                self._add_parameter(place, name, said)

    def add_body(self, body: object) -> None:
        """Add a JSON body; raises ValueError if another one is required."""
        if body is None:
            return
        said = self._content.resolve(body)
        media = _find_json_media(said.get("content"))
        if media is not None:
            self.body = self._free_name("body")
            schema = self._make_standalone(media.get("schema") or {})
            self._properties[self.body] = schema
        if said.get("required") is True:
            if media is None:
                raise ValueError
            self._required[self.body] = None

    def _is_model_argument(self, place: str, name: str) -> bool:
        if place not in _PARAMETER_LOCATIONS or (place, name.lower()) in self._api_keys:
            return False
        low = name.lower()
        is_closed = low in _RESERVED_HEADERS or _SECRET_HEADER.search(low)
        return place != "header" or not is_closed

    def _add_parameter(self, place: str, name: str, said: Mapping[str, Any]) -> None:
        before = self.parameters.get((place, name))
        argument = before.argument if before else self._free_name(name, place)
        media = _find_json_media(said.get("content"))
        node = (said if media is None else media).get("schema")
        schema = self._make_standalone(node or {"type": "string"})
        if said.get("description") and "$ref" not in schema:
            schema = {**schema, "description": as_text(said["description"])}
        self._properties[argument] = schema
        if place == "path" or said.get("required") is True:
            self._required[argument] = None
        usual = "form" if place == "query" else "simple"
        style = str(said.get("style") or usual) if media is None else "json"
        explodes = said.get("explode", style in _EXPLODED_STYLES) is True
        self.parameters[place, name] = OpenApiParameter(
            argument, name, place, style, explodes
        )

    def _free_name(self, name: str, place: str = "request") -> str:
        return f"{place}_{name}" if name in self._properties else name

    def _make_standalone(
        self, node: Any, levels: int = _MAX_OPENAPI_SCHEMA_DEPTH
    ) -> Any:
        """Return a schema whose references lead to `definitions`; raises ValueError."""
        if levels == 0:
            raise JsonTooLarge
        if isinstance(node, list | Mapping):
            self._content.budget.spend(_NODE_SIZE * (1 + len(node)))
        if isinstance(node, list):
            return [self._make_standalone(one, levels - 1) for one in node]
        if not isinstance(node, Mapping):
            return node
        if isinstance(node.get("$ref"), str):
            return {"$ref": f"#/$defs/{self._define(node['$ref'], levels - 1)}"}
        return {
            str(key): self._make_standalone(value, levels - 1)
            for key, value in node.items()
        }

    def _define(self, reference: str, levels: int) -> str:
        """Copy a referenced schema to `definitions`; return its name there."""
        if reference not in self._definition_names:
            if len(self._definition_names) == _MAX_DEFINITIONS:
                raise JsonTooLarge
            last = _INVALID_NAME_CHARACTER.sub("_", reference.rpartition("/")[2])
            taken = last in self._definition_names.values()
            name = f"{last}_{len(self._definition_names)}" if taken else last
            self._definition_names[reference] = name
            target = self._content.follow(reference)
            self._definitions[name] = self._make_standalone(target, levels)
        return self._definition_names[reference]


def _find_json_media(content: object) -> Mapping[str, Any] | None:
    for kind, media in as_mapping(content).items():
        name = str(kind).partition(";")[0].strip().lower()
        is_json = name == "application/json" or name.endswith("+json")
        if is_json and isinstance(media, Mapping):
            return media
    return None


def _api_key_parameters(content: _OpenApiContent) -> Iterator[tuple[str, str]]:
    try:
        parts = content.resolve(content.root.get("components"))
        schemes = content.resolve(parts.get("securitySchemes"))
    except ValueError:
        return
    for scheme in schemes.values():
        said = as_mapping(scheme)
        if said.get("type") == "apiKey":
            yield as_text(said.get("in")), as_text(said.get("name")).lower()


_METHODS = ("get", "put", "post", "delete", "patch")
_PATH_PATTERN = re.compile(r"/[^?#]*")
PATH_PARAMETER = re.compile(r"\{([^{}]*)\}")


class OpenApiOperation(NamedTuple):
    """A tool that is a request; `url` has its path parameters in braces.

    `body` is the argument that is sent as JSON, or empty.
    """

    spec: RemoteToolSpec
    method: str
    url: str
    parameters: tuple[OpenApiParameter, ...] = ()
    body: str = ""


class OpenApiDocument(NamedTuple):
    """A document loaded from `url`; its calls go to `base_url` if that is set."""

    content: Any
    url: str
    base_url: str = ""
    allowed: Sequence[str] | None = None

    def operations(
        self, left_out: Callable[[str], object] = str
    ) -> Iterator[OpenApiOperation]:
        """Yield the usable operations that are allowed; raises ValueError.

        Operations on other hosts, with a body that is not JSON, or that are too large,
        are left out, and `left_out` is told of them.
        """
        said = as_mapping(self.content)
        paths = said.get("paths")
        is_known = as_text(said.get("openapi")).startswith("3.")
        if not is_known or not isinstance(paths, Mapping):
            raise ValueError("no OpenAPI document of version 3")
        left = JsonBudget(_MAX_DOCUMENT_WORK)
        keys = frozenset(_api_key_parameters(_OpenApiContent(said, left)))
        for path, method in product(filter(_PATH_PATTERN.fullmatch, paths), _METHODS):
            size = min(left.left, MAX_SCHEMA_SIZE)
            content = _OpenApiContent(said, JsonBudget(size))
            try:
                operation = self._operation(path, method, content, keys)
            except ValueError:
                operation = None
                left_out(f"{method} {path}")
            left.spend(size - content.budget.left)
            if operation is not None:
                yield operation

    def _operation(
        self,
        path: str,
        method: str,
        content: _OpenApiContent,
        api_keys: frozenset[tuple[str, str]],
    ) -> OpenApiOperation | None:
        holder = content.resolve(content.root["paths"][path])
        if method not in holder:
            return None
        said = content.resolve(holder[method])
        name = as_text(said.get("operationId")) or f"{method}_{path.strip('/')}"
        if not is_tool_allowed(self.allowed, name):
            return None
        arguments = _OpenApiArguments(content, api_keys)
        arguments.add_parameters(holder.get("parameters"))
        arguments.add_parameters(said.get("parameters"))
        arguments.add_body(said.get("requestBody"))
        schema = arguments.build_schema()
        known = {name for place, name in arguments.parameters if place == "path"}
        if not known.issuperset(PATH_PARAMETER.findall(path)):
            raise ValueError
        check_schema_size(schema)
        return OpenApiOperation(
            RemoteToolSpec(name, _operation_description(said), schema, method == "get"),
            method.upper(),
            self._base_url(said, holder) + path,
            tuple(arguments.parameters.values()),
            arguments.body,
        )

    def _base_url(self, *holders: Mapping[str, Any]) -> str:
        """Return the base of an operation; raises ValueError for another host.

        Only the path comes from the document; an administrator chose the host.
        """
        lists = [holder.get("servers") for holder in (*holders, self.content)]
        servers: list[Any] = next(filter(None, map(as_list, lists)), [{}])
        home = self.base_url or self.url
        base = self.base_url or urljoin(home, _server_url(servers[0]))
        if web_origin(base) != web_origin(home):
            raise ValueError
        parts = urlsplit(home)
        return f"{parts.scheme}://{parts.netloc}{urlsplit(base).path.rstrip('/')}"


def web_origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of an address; empty ones if it is invalid."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ("", "", 0)
    return (parts.scheme, parts.hostname or "", port)


def _server_url(server: object) -> str:
    """Return the address of a server, its variables replaced by their defaults."""
    said = as_mapping(server)
    variables = as_mapping(said.get("variables"))
    url = as_text(said.get("url")) or "/"
    for name, one in variables.items():
        usual = as_mapping(one).get("default")
        text = str(usual or "") if isinstance(usual, str | int) else ""
        if max(len(url), len(text), len(variables)) > _MAX_URL_CHARACTERS:
            raise JsonTooLarge  # a default may hold the names of other variables
        url = url.replace(f"{{{name}}}", text)
    return url


def _operation_description(operation: Mapping[str, Any]) -> str:
    texts = (as_text(operation.get(key)) for key in ("summary", "description"))
    shown = (text[: MAX_DESCRIPTION_CHARACTERS + 1] for text in texts if text)
    return "\n".join(dict.fromkeys(shown))
