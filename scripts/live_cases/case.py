"""A case: a request, and the answer that it is assumed to get."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Body = Mapping[str, Any]
ASSUMED = "assumed"
TYPES = "types of openai 3.54.0"
CHEAPEST = "gpt-6-luna"


@dataclass(frozen=True)
class Case:
    """One request, and the answer that it is assumed to get."""

    name: str
    body: Body
    source: str
    status: int = 400
    param: str | None = None
    code: str | None = None
    message: str = ""
    """A pattern that the message of the refusal holds."""
    model: str = CHEAPEST
    first: Body = field(default_factory=dict)
    """A request whose output is sent back in front of the body's input."""
    edit: str = "bare"
    """How that output is changed before: a name in `live.EDITS`."""
    fee: float = 0.0
    """US dollars for the hosted tools of the case, at most."""
    untried: str = ""
    """Why the case is not tried against the real API."""


def make_function(name: str = "look_up", **more: Any) -> dict[str, Any]:
    """Return a function tool."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    tool = {"type": "function", "name": name, "parameters": schema, "strict": False}
    return {**tool, **more}


def say(*items: Body, text: str = "Say yes.") -> Body:
    """Return a body whose input ends with a question."""
    return {"input": [*items, {"role": "user", "content": text}]}


def format_text(name: str = "answer", schema: Any = None) -> Body:
    """Return a body that asks for JSON of a schema."""
    schema = schema or {"type": "object", "properties": {"a": {"type": "string"}}}
    format = {"type": "json_schema", "name": name, "schema": schema, "strict": False}
    return {"text": {"format": format}}


SERVER = {
    "type": "mcp",
    "server_label": "one",
    "server_url": "https://mcp.example.com/mcp",
    "require_approval": "never",
}
