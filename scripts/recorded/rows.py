"""The recordings: files of one JSON object a line, and streams as they are.

`form` says how much of the bytes was kept: `wire` all, `lines` not those between the
lines, `parsed` only the parsed events, `body` a parsed answer.
"""

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FINAL_TYPES = ("response.completed", "response.incomplete", "response.failed")
EDITED_SOURCES = ("vercel/", "prism-php/", "braintrustdata/")
"""Repositories that keep about twenty recordings edited by hand."""


@dataclass(frozen=True)
class Recording:
    """One exchange with a server of the Responses API."""

    file: str
    """The name of its file, without the endings."""
    number: int
    """Its line in the file, from 1."""
    url: str
    status: int
    request: Mapping[str, Any] | None
    body: str
    form: str
    repository: str

    @property
    def source(self) -> str:
        """The line and where it was published, to find it again."""
        place = f"{self.file}, line {self.number}"
        return f"{place}, {self.host}, {self.repository}, {self.form}"

    @property
    def host(self) -> str:
        """The server without its port; empty if it was not recorded."""
        return urlsplit(self.url).hostname or ""

    @property
    def is_openai(self) -> bool:
        """Whether the server is OpenAI's own."""
        return self.host == "api.openai.com"

    @property
    def creates_response(self) -> bool:
        """Whether the request is a `POST /responses`."""
        return urlsplit(self.url).path.endswith("/responses")

    @property
    def is_stream(self) -> bool:
        """Whether the body is an event stream."""
        return self.body.lstrip().startswith(("event:", "data:", ":"))

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The parsed events of a stream, read by the simplest possible reader."""
        return list(_plain_events(self.body))

    @cached_property
    def final(self) -> Mapping[str, Any] | None:
        """The final response object, of a stream or of a JSON answer.

        Codex's backend ends its streams with `output: []` (25 of 26): the output is
        that of the finished items then.
        """
        if not self.is_stream:
            return _parse_response(self.body)
        for event in reversed(self.events):
            if event.get("type") in FINAL_TYPES:
                response = event.get("response")
                if not isinstance(response, dict):
                    return None
                return {**response, "output": response.get("output") or self._finished}
        return None

    @property
    def _finished(self) -> list[Any]:
        """The finished items of a stream in their order."""
        items = {
            event.get("output_index", 0): event["item"]
            for event in self.events
            if event.get("type") == "response.output_item.done"
        }
        return [items[index] for index in sorted(items)]


@dataclass(frozen=True)
class Difference:
    """One difference between our answer and a recorded one."""

    group: str
    recording: Recording
    detail: str


def find_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files of recordings that folders hold, and those that are named."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            files += sorted([*path.rglob("*.jsonl.gz"), *path.rglob("*.sse")])
        elif path.exists():
            files.append(path)
    return files


def read_recordings(path: Path) -> list[Recording]:
    """Return all exchanges of a file; of a stream without its request the only one."""
    if path.suffix == ".sse":
        return [_read_stream(path)]
    file = path.name.split(".", 1)[0]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = enumerate(lines, start=1)
        return [_read_row(file, number, line) for number, line in rows]


def _read_row(file: str, number: int, line: str) -> Recording:
    row = json.loads(line)
    body = row["body"]
    text = body if isinstance(body, str) else json.dumps(body)
    return Recording(
        file=file,
        number=number,
        url=row["url"],
        status=row["status"],
        request=row["req"],
        body=text,
        form=row["form"],
        repository=row["repo"],
    )


def _read_stream(path: Path) -> Recording:
    return Recording(
        file=path.stem,
        number=1,
        url="",
        status=200,
        request=None,
        body=path.read_bytes().decode(),
        form="wire",
        repository=path.parent.name,
    )


def _parse_response(body: str) -> dict[str, Any] | None:
    """Return the response object of a JSON answer; None if it is something else."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return None
    if isinstance(parsed, dict) and parsed.get("object") == "response":
        return parsed
    return None


def _plain_events(body: str) -> Iterator[dict[str, Any]]:
    for line in body.splitlines():
        if not line.startswith("data:"):
            continue
        try:
            event = json.loads(line.removeprefix("data:"))
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event
