"""Reads an OpenAPI document into operations that can be tools.

References inside the document are copied to `$defs`; nothing is loaded from elsewhere.
Headers that carry credentials, and parameters that the document declares as API keys,
are never arguments of the model. The host of all calls is the one that an administrator
configured; only the path comes from the document.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from toolbox.remote_tools import RemoteToolSpec, is_schema_small

_MAX_OPENAPI_SCHEMA_DEPTH = 40
_MAX_DEFINITIONS = 100
_MAX_REFERENCE_HOPS = 10
_INVALID_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9._-]")


def _resolve_openapi_reference(
    node: object, document: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return an object of the document, or the one that it refers to."""
    for _ in range(_MAX_REFERENCE_HOPS):
        if not isinstance(node, Mapping):
            break
        if "$ref" not in node:
            return node
        node = _follow_pointer(node["$ref"], document)
    raise ValueError


def _follow_pointer(reference: object, document: Mapping[str, Any]) -> Any:
    """Return the target of a reference (RFC 6901) inside the document."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        raise ValueError
    node: Any = document
    for step in unquote(reference[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or name not in node:
            raise ValueError
        node = node[name]
    return node


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

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Begin with none."""
        self.parameters: dict[tuple[str, str], OpenApiParameter] = {}
        self.body = ""
        self._document = document
        self._definitions: dict[str, Any] = {}
        self._definition_names: dict[str, str] = {}
        self._properties: dict[str, Any] = {}
        self._required: dict[str, None] = {}
        self._api_keys = frozenset(_api_key_parameters(document))

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
        for row in rows if isinstance(rows, list) else []:
            said = _resolve_openapi_reference(row, self._document)
            place, name = str(said.get("in")), str(said.get("name"))
            if self._is_model_argument(place, name):
                self._add_parameter(place, name, said)

    def add_body(self, body: object) -> None:
        """Add a JSON body; raises ValueError if another one is required."""
        if body is None:
            return
        said = _resolve_openapi_reference(body, self._document)
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
            schema = {**schema, "description": str(said["description"])}
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
            raise ValueError
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
                raise ValueError
            last = _INVALID_NAME_CHARACTER.sub("_", reference.rpartition("/")[2])
            taken = last in self._definition_names.values()
            name = f"{last}_{len(self._definition_names)}" if taken else last
            self._definition_names[reference] = name
            target = _follow_pointer(reference, self._document)
            self._definitions[name] = self._make_standalone(target, levels)
        return self._definition_names[reference]


def _find_json_media(content: object) -> Mapping[str, Any] | None:
    for kind, media in (content if isinstance(content, Mapping) else {}).items():
        name = str(kind).partition(";")[0].strip().lower()
        is_json = name == "application/json" or name.endswith("+json")
        if is_json and isinstance(media, Mapping):
            return media
    return None


def _api_key_parameters(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    try:
        parts = _resolve_openapi_reference(document.get("components"), document)
        schemes = _resolve_openapi_reference(parts.get("securitySchemes"), document)
    except ValueError:
        return
    for scheme in schemes.values():
        if isinstance(scheme, Mapping) and scheme.get("type") == "apiKey":
            yield str(scheme.get("in")), str(scheme.get("name")).lower()


_METHODS = ("get", "put", "post", "delete", "patch")
_PATH_PATTERN = re.compile(r"(?:/[^?#]*)+")
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

    def operations(self) -> Iterator[OpenApiOperation]:
        """Yield the usable operations; raises ValueError.

        Operations on other hosts, or with a body that is not JSON, are left out.
        """
        said = self.content if isinstance(self.content, Mapping) else {}
        paths = said.get("paths")
        is_known = str(said.get("openapi")).startswith("3.")
        if not is_known or not isinstance(paths, Mapping):
            raise ValueError("no OpenAPI document of version 3")
        for path, item in paths.items():
            for method in _METHODS if _PATH_PATTERN.fullmatch(path) else ():
                try:
                    operation = self._operation(path, method, item)
                except ValueError:
                    continue
                if operation is not None:
                    yield operation

    def _operation(
        self, path: str, method: str, item: object
    ) -> OpenApiOperation | None:
        holder = _resolve_openapi_reference(item, self.content)
        if method not in holder:
            return None
        said = _resolve_openapi_reference(holder[method], self.content)
        arguments = _OpenApiArguments(self.content)
        arguments.add_parameters(holder.get("parameters"))
        arguments.add_parameters(said.get("parameters"))
        arguments.add_body(said.get("requestBody"))
        schema = arguments.build_schema()
        known = {name for place, name in arguments.parameters if place == "path"}
        if not known.issuperset(PATH_PARAMETER.findall(path)) or not is_schema_small(
            schema
        ):
            raise ValueError
        name = said.get("operationId") or f"{method}_{path.strip('/')}"
        return OpenApiOperation(
            RemoteToolSpec(str(name), _operation_description(said), schema),
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
        servers: list[Any] = next(
            (one for one in lists if isinstance(one, list) and one), [{}]
        )
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
    said = server if isinstance(server, Mapping) else {}
    variables = said.get("variables")
    url = str(said.get("url") or "/")
    for name, one in (variables if isinstance(variables, Mapping) else {}).items():
        usual = one.get("default") if isinstance(one, Mapping) else None
        url = url.replace(f"{{{name}}}", str(usual or ""))
    return url


def _operation_description(operation: Mapping[str, Any]) -> str:
    texts = (operation.get("summary"), operation.get("description"))
    return "\n".join(dict.fromkeys(str(text) for text in texts if text))
