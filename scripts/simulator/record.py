"""What the stand-in remembers of a request."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SECRET = ("authorization", "api-key")


@dataclass
class RecordedRequest:
    """One request, and how it was answered."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    started_at: float
    method: str = "POST"
    query: dict[str, str] = field(default_factory=dict)
    connection: tuple[str, int] | None = None
    scenario: str | None = None
    status: int | None = None
    response: dict[str, Any] | None = None
    events_sent: int = 0
    ended_at: float | None = None
    finished: bool = False
    closed_by_client: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the answer is still being written."""
        return self.ended_at is None


def mask(headers: Mapping[str, str]) -> dict[str, str]:
    """Return headers without their secrets."""
    return {
        name: "***" if name.lower() in SECRET else value
        for name, value in headers.items()
    }
