"""Parses the JSON lists of tool servers that an administrator typed.

An invalid entry is skipped, with a sentence that says why; the other entries stay. No
sentence quotes a value, because any value may be a secret. The keys are those of the
API's own MCP tool where it has them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

_ADDRESS_FORM = "an address that begins with http:// or https:// and holds no password"
_MAP_FORM = "a JSON object of texts"
_EXPECTED_FORMS: Mapping[str, str] = {
    "server_label": "a letter followed by up to 31 letters, digits, hyphens and "
    "underscores",
    "server_url": _ADDRESS_FORM,
    "base_url": _ADDRESS_FORM,
    "authorization": "a text",
    "headers": _MAP_FORM,
    "allowed_tools": "a list of names",
    "timeout": "a number of seconds from 1 to 600",
    "command": "a list of texts, the program first",
    "env": _MAP_FORM,
}
_TOOL_SERVER_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")


def _check_label(text: str) -> str:
    if not _TOOL_SERVER_LABEL.fullmatch(text):
        raise ValueError
    return text


def _check_address(text: str) -> str:
    """Return an http or https address without a password; raises ValueError."""
    parts = urlsplit(text)  # raises it too: brackets without an address
    is_sound = parts.hostname and parts.port != 0 and "@" not in parts.netloc
    if not is_sound or text.split() != [text] or parts.scheme not in ("http", "https"):
        raise ValueError
    return text


_Address = Annotated[str, AfterValidator(_check_address)]
_StringMap = Mapping[str, str]


class _ServerRow(BaseModel):
    """An entry as it is typed."""

    model_config = ConfigDict(extra="forbid", strict=True)

    server_label: Annotated[str, AfterValidator(_check_label)]
    authorization: str | None = None
    headers: _StringMap = {}
    allowed_tools: list[str] | None = None
    timeout: float = Field(default=60.0, ge=1, le=600)


class _McpRow(_ServerRow):
    """An MCP server as it is typed."""

    server_url: _Address = ""
    base_url: ClassVar[str] = ""
    command: list[str] = []
    env: _StringMap = {}


class _OpenApiRow(_ServerRow):
    """A server with an OpenAPI document as it is typed."""

    server_url: _Address
    base_url: _Address = ""
    command: ClassVar[list[str]] = []
    env: ClassVar[_StringMap] = {}


def _describe_row_error(error: ValidationError) -> str:
    """Return the first problem of an entry."""
    first = error.errors(include_input=False, include_url=False)[0]
    key = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        named = f" ({key})" if key.isidentifier() and len(key) <= 40 else ""
        return f"it has a key that is not known here{named}"
    if first["type"] == "missing":
        return f"it has no {key}"
    return f"its {key} is not {_EXPECTED_FORMS[key]}"


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


@dataclass(frozen=True, slots=True, repr=False)
class ServerEntry:
    """One server; `allowed` are patterns of its tools' own names, None allows all.

    An MCP server has a `url` or a `command`. `base_url` replaces the address in an
    OpenAPI document. `secrets` must not appear in anything that the server sends.
    """

    label: str
    url: str = ""
    base_url: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    allowed: tuple[str, ...] | None = None
    seconds: float = 60.0
    command: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    secrets: tuple[str, ...] = ()


class ServerEntries(NamedTuple):
    """The usable servers, and the problems of the others."""

    entries: tuple[ServerEntry, ...] = ()
    problems: tuple[str, ...] = ()


_RevealSecret = Callable[[str], str | None]


class ToolServerSettings(NamedTuple):
    """The servers in the valves; `allows_programs` is for MCP over stdio.

    `reveal` gives what a reference (`env:NAME`, `file:PATH`) stands for, and any other
    text as it is; None for what cannot be read.
    """

    mcp: str = ""
    openapi: str = ""
    allows_programs: bool = False
    reveal: _RevealSecret = str

    def read_entries(self) -> tuple[ServerEntries, ServerEntries]:
        """Return the MCP servers and the OpenAPI servers."""
        mcp = _EntryReader(
            "MCP_SERVERS_JSON", _McpRow, self.reveal, self.allows_programs
        )
        openapi = _EntryReader("OPENAPI_SERVERS_JSON", _OpenApiRow, self.reveal)
        return mcp.read_entries(self.mcp), openapi.read_entries(self.openapi)


class _EntryReader(NamedTuple):
    """Reads the entries of a valve; `starts_programs` allows a `command`."""

    valve: str
    row: type[_McpRow] | type[_OpenApiRow]
    reveal: _RevealSecret
    starts_programs: bool = False

    def read_entries(self, text: str) -> ServerEntries:
        """Return the entries of a JSON list, or of a single JSON object."""
        try:
            given = json.loads(text) if text.strip() else []
        except (ValueError, RecursionError):
            return ServerEntries(problems=(self._sentence("it is no JSON"),))
        entries: dict[str, ServerEntry] = {}
        complaints: list[str] = []
        for number, row in enumerate(given if isinstance(given, list) else [given], 1):
            try:
                entry = self._build_entry(row)
                if entry.label.lower() in entries:
                    raise _InvalidEntry("its server_label is not its own")
                entries[entry.label.lower()] = entry
            except _InvalidEntry as wrong:
                name = _read_label(row) or f"server {number}"
                complaints.append(
                    self._sentence(f"{name} is left out, because {wrong}")
                )
        return ServerEntries(tuple(entries.values()), tuple(complaints))

    def _sentence(self, what: str) -> str:
        return (
            f"{self.valve}: {what}. An administrator can correct it in the valves of "
            "this pipeline; until then, chats go on without."
        )

    def _build_entry(self, given: object) -> ServerEntry:
        row = self._parse_row(given)
        token = {"": row.authorization} if row.authorization else {}
        tokens = [text for _, text in self._reveal_all("authorization", token)]
        headers = [("Authorization", f"Bearer {text}") for text in tokens]
        headers += self._reveal_all("headers", row.headers)
        environment = tuple(self._reveal_all("env", row.env))
        secrets = [*_referenced_secrets(headers, row.headers), *tokens]
        return ServerEntry(
            label=row.server_label,
            url=row.server_url,
            base_url=row.base_url,
            headers=tuple(headers),
            allowed=None if row.allowed_tools is None else tuple(row.allowed_tools),
            seconds=row.timeout,
            command=tuple(row.command),
            environment=environment,
            secrets=(
                *dict.fromkeys(secrets),
                *_referenced_secrets(environment, row.env),
            ),
        )

    def _parse_row(self, given: object) -> _McpRow | _OpenApiRow:
        if not isinstance(given, dict):
            raise _InvalidEntry("it is no JSON object")
        said = {key: value for key, value in given.items() if value is not None}
        try:
            row = self.row.model_validate(said)
        except ValidationError as error:
            raise _InvalidEntry(_describe_row_error(error)) from None
        if bool(row.server_url) == bool(row.command):
            raise _InvalidEntry("it needs a server_url or a command, one of them")
        if row.command and not self.starts_programs:
            raise _InvalidEntry("it starts a program, which the valves do not allow")
        return row

    def _reveal_all(self, key: str, texts: _StringMap) -> Iterator[tuple[str, str]]:
        for name, text in texts.items():
            if key == "headers" and not _HEADER_NAME.fullmatch(name):
                raise _InvalidEntry("a name among its headers is no header's name")
            meant = self.reveal(text)
            if meant is None:
                raise _InvalidEntry(f"a secret that its {key} refers to cannot be read")
            if not meant.isprintable():
                raise _InvalidEntry(f"its {key} hold what cannot be sent")
            yield name, meant


class _InvalidEntry(Exception):
    """An entry cannot be used; says why, without a value."""


def _referenced_secrets(
    revealed: Iterable[tuple[str, str]], typed: _StringMap
) -> list[str]:
    """Return the secrets that stood behind references.

    Of a header also the part after its scheme, which may be repeated alone.
    """
    plain = set(typed.values())
    texts = [text for _, text in revealed if text not in plain]
    return [one for text in texts for one in (text, *text.split()[1:])]


def _read_label(row: object) -> str:
    label = row.get("server_label") if isinstance(row, dict) else None
    is_label = isinstance(label, str) and _TOOL_SERVER_LABEL.fullmatch(label)
    return str(label) if is_label else ""
