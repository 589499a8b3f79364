"""Servers of tools as an administrator names them in JSON, one entry each.

An entry that cannot be used is left out alone, with a sentence that says why; no
sentence quotes a value, because any may be a secret. The keys are those of the API's
own MCP tool, as far as it has them.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from pydantic import ValidationError

from toolbox.server_rows import McpRow, OpenApiRow, Texts, is_label, row_misfit

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")

Reveal = Callable[[str], str | None]
"""Gives what a reference (`env:NAME`, `file:PATH`) stands for, and any other text as
it is; None for what cannot be read."""


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """One server; `allowed` are patterns of its tools' own names, None allows all.

    An MCP server has a `url` or a `command`. `base_url` is where the calls of an
    OpenAPI document go, if it is to be another place than the document says; `secrets`
    must not be told by anything that the server sends.
    """

    label: str
    url: str = field(default="", repr=False)
    base_url: str = field(default="", repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    allowed: tuple[str, ...] | None = None
    seconds: float = 60.0
    command: tuple[str, ...] = field(default=(), repr=False)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class ServerEntries:
    """The servers that can be used, and what is wrong with the others."""

    entries: tuple[ServerEntry, ...] = ()
    complaints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryReading:
    """How the entries of a valve are read; `starts_programs` allows a `command`."""

    valve: str
    row: type[McpRow] | type[OpenApiRow]
    reveal: Reveal
    starts_programs: bool = False

    def read(self, text: str) -> ServerEntries:
        """Return the entries of a JSON list, or of a single JSON object."""
        try:
            given = json.loads(text) if text.strip() else []
        except (ValueError, RecursionError):
            return ServerEntries(complaints=(self._sentence("it is no JSON"),))
        entries: dict[str, ServerEntry] = {}
        complaints: list[str] = []
        for number, row in enumerate(given if isinstance(given, list) else [given], 1):
            try:
                entry = self._entry(row)
                if entry.label.lower() in entries:
                    raise _EntryWrong("its server_label is not its own")
                entries[entry.label.lower()] = entry
            except _EntryWrong as wrong:
                name = _name_of(row) or f"server {number}"
                what = f"{name} is left out, because {wrong}"
                complaints.append(self._sentence(what))
        return ServerEntries(tuple(entries.values()), tuple(complaints))

    def _sentence(self, what: str) -> str:
        return (
            f"{self.valve}: {what}. An administrator can correct it in the valves of "
            "this pipeline; until then, chats go on without."
        )

    def _entry(self, given: object) -> ServerEntry:
        row = self._row(given)
        token = {"": row.authorization} if row.authorization else {}
        tokens = [text for _, text in self._revealed("authorization", token)]
        headers = [("Authorization", f"Bearer {text}") for text in tokens]
        headers += self._revealed("headers", row.headers)
        entry = ServerEntry(
            label=row.server_label,
            url=row.server_url or "",
            headers=tuple(headers),
            allowed=None if row.allowed_tools is None else tuple(row.allowed_tools),
            seconds=row.timeout,
            secrets=tuple(dict.fromkeys([*_hidden(headers, row.headers), *tokens])),
        )
        if isinstance(row, OpenApiRow):
            return replace(entry, base_url=row.base_url or "")
        environment = tuple(self._revealed("env", row.env))
        return replace(
            entry,
            command=tuple(row.command),
            environment=environment,
            secrets=(*entry.secrets, *_hidden(environment, row.env)),
        )

    def _row(self, given: object) -> McpRow | OpenApiRow:
        if not isinstance(given, dict):
            raise _EntryWrong("it is no JSON object")
        said = {key: value for key, value in given.items() if value is not None}
        try:
            row = self.row.model_validate(said)
        except ValidationError as error:
            raise _EntryWrong(row_misfit(error)) from None
        if isinstance(row, McpRow):
            self._check_target(row)
        return row

    def _check_target(self, row: McpRow) -> None:
        if bool(row.server_url) == bool(row.command):
            raise _EntryWrong("it needs a server_url or a command, one of them")
        if row.command and not self.starts_programs:
            raise _EntryWrong("it starts a program, which the valves do not allow")

    def _revealed(self, key: str, texts: Texts) -> Iterator[tuple[str, str]]:
        for name, text in texts.items():
            if key == "headers" and not _HEADER_NAME.fullmatch(name):
                raise _EntryWrong("a name among its headers is no header's name")
            meant = self.reveal(text)
            if meant is None:
                raise _EntryWrong(f"a secret that its {key} refers to cannot be read")
            if not meant.isprintable():
                raise _EntryWrong(f"its {key} hold what cannot be sent")
            yield name, meant


class _EntryWrong(Exception):
    """An entry cannot be used; says why, without a value."""


def _hidden(revealed: Iterable[tuple[str, str]], typed: Texts) -> list[str]:
    """Return the texts that nobody typed: what stood behind a reference.

    Of a header also what follows the name of its scheme, which may be repeated alone.
    """
    plain = set(typed.values())
    texts = [text for _, text in revealed if text not in plain]
    return [one for text in texts for one in (text, *text.split()[1:])]


def _name_of(row: object) -> str:
    label = row.get("server_label") if isinstance(row, dict) else None
    return str(label) if is_label(label) else ""
