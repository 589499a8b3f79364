"""The file of recordings: one JSON object a line.

`form` says how much of the bytes was kept: `wire` all, `lines` not those between the
lines, `parsed` only the parsed events, `body` a parsed answer.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
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
        return f"line {self.number}, {self.host}, {self.repository}, {self.form}"

    @property
    def host(self) -> str:
        """The server; empty if it was not recorded."""
        return urlsplit(self.url).netloc

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
        """The final response object, of a stream or of a JSON answer."""
        if not self.is_stream:
            return _parse_response(self.body)
        for event in reversed(self.events):
            if event.get("type") in FINAL_TYPES:
                response = event.get("response")
                return response if isinstance(response, dict) else None
        return None


@dataclass(frozen=True)
class Difference:
    """One difference between our answer and a recorded one."""

    group: str
    recording: Recording
    detail: str


def read_recordings(path: Path) -> list[Recording]:
    """Return all exchanges of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [_read_row(number, line) for number, line in enumerate(lines, start=1)]


def _read_row(number: int, line: str) -> Recording:
    row = json.loads(line)
    body = row["body"]
    text = body if isinstance(body, str) else json.dumps(body)
    return Recording(
        number=number,
        url=row["url"],
        status=row["status"],
        request=row["req"],
        body=text,
        form=row["form"],
        repository=row["repo"],
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
