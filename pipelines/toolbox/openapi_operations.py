"""An OpenAPI document -> the operations that can be tools."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin, urlsplit

from toolbox.openapi_arguments import OpenApiArguments, OpenApiParameter
from toolbox.openapi_schemas import SchemaUnusable, resolved
from toolbox.remote_tools import RemoteSpec, is_modest

_METHODS = ("get", "put", "post", "delete", "patch")
_PATH = re.compile(r"(?:/[^?#]*)+")
_BRACED = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class OpenApiOperation:
    """A tool that is a request; `url` has the parameters of its path in braces.

    `body` is the argument that is sent as JSON, empty for none.
    """

    spec: RemoteSpec
    method: str
    url: str
    parameters: tuple[OpenApiParameter, ...] = ()
    body: str = ""


@dataclass(frozen=True, slots=True)
class OpenApiDocument:
    """A document that was found at `url`; its calls go to `base_url`, if there is one."""

    content: Any
    url: str
    base_url: str = ""

    def operations(self) -> Iterator[OpenApiOperation]:
        """Yield the operations that can be called; raises SchemaUnusable.

        One that is elsewhere, or wants a body that is no JSON, is not among them.
        """
        if not isinstance(self.content, Mapping):
            raise SchemaUnusable
        paths = self.content.get("paths")
        is_known = str(self.content.get("openapi")).startswith("3.")
        if not is_known or not isinstance(paths, Mapping):
            raise SchemaUnusable
        for path, item in paths.items():
            for method in _METHODS if _PATH.fullmatch(path) else ():
                try:
                    operation = self._operation(path, method, item)
                except SchemaUnusable:
                    continue
                if operation is not None:
                    yield operation

    def _operation(
        self, path: str, method: str, item: object
    ) -> OpenApiOperation | None:
        """Return an operation, if there is one; raises SchemaUnusable."""
        holder = resolved(item, self.content)
        if method not in holder:
            return None
        said = resolved(holder[method], self.content)
        arguments = OpenApiArguments(self.content)
        arguments.add_parameters(holder.get("parameters"))
        arguments.add_parameters(said.get("parameters"))
        arguments.add_body(said.get("requestBody"))
        schema = arguments.schema()
        known = {name for place, name in arguments.parameters if place == "path"}
        if not known.issuperset(_BRACED.findall(path)) or not is_modest(schema):
            raise SchemaUnusable
        name = said.get("operationId") or f"{method}_{path.strip('/')}"
        return OpenApiOperation(
            RemoteSpec(str(name), _words_on(said), schema),
            method.upper(),
            self._base(said, holder) + path,
            tuple(arguments.parameters.values()),
            arguments.body,
        )

    def _base(self, *holders: Mapping[str, Any]) -> str:
        """Return where an operation is; raises SchemaUnusable for another host.

        Only the path is the document's: the host is always one that an administrator
        named.
        """
        if self.base_url:
            return _start_of(self.base_url, urlsplit(self.base_url).path)
        lists = [holder.get("servers") for holder in (*holders, self.content)]
        servers: list[Any] = next(
            (one for one in lists if isinstance(one, list) and one), [{}]
        )
        try:
            base = urljoin(self.url, _server_address(servers[0]))
        except ValueError:  # brackets without an address
            raise SchemaUnusable from None
        if web_origin(base) != web_origin(self.url):
            raise SchemaUnusable
        return _start_of(self.url, urlsplit(base).path)


def web_origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of an address; of none that is of no use."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return ("", "", 0)
    return (parts.scheme, parts.hostname or "", port)


def _start_of(url: str, path: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{path.rstrip('/')}"


def _server_address(server: object) -> str:
    """Return the address of a server, its variables replaced by what is usual."""
    said = server if isinstance(server, Mapping) else {}
    variables = said.get("variables")
    url = str(said.get("url") or "/")
    for name, one in (variables if isinstance(variables, Mapping) else {}).items():
        usual = one.get("default") if isinstance(one, Mapping) else None
        url = url.replace(f"{{{name}}}", str(usual or ""))
    return url


def _words_on(operation: Mapping[str, Any]) -> str:
    texts = (operation.get("summary"), operation.get("description"))
    return "\n".join(dict.fromkeys(str(text) for text in texts if text))
