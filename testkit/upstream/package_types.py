"""The types of the openai package, asked whether they know an event."""

import typing
from functools import cache
from typing import Any

from openai import BaseModel
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

EVENT_CLASSES: dict[str, type[BaseModel]] = {
    typing.get_args(shape.model_fields["type"].annotation)[0]: shape
    for shape in typing.get_args(typing.get_args(ResponseStreamEvent)[0])
}


RECORDED_FIELDS = frozenset(
    {
        "response.billing",
        "response.frequency_penalty",
        "response.presence_penalty",
        "response.store",
        "custom_tool_call.status",
    }
)
"""Fields of recorded answers that no class of openai 3.54.0 knows."""


def unknown_fields(value: Any, path: str = "") -> list[str]:
    """List the fields of a parsed object that its class does not know."""
    if isinstance(value, BaseModel):
        owner = getattr(value, "object", None) or getattr(value, "type", None)
        extra = [
            f"{path}.{name}"
            for name in value.model_extra or {}
            if f"{owner}.{name}" not in RECORDED_FIELDS
        ]
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        return extra + unknown_fields(fields, path)
    if isinstance(value, dict):
        named = [(f"{path}.{name}", inner) for name, inner in value.items()]
        return [
            unknown for name, inner in named for unknown in unknown_fields(inner, name)
        ]
    if isinstance(value, list):
        return [unknown for inner in value for unknown in unknown_fields(inner, path)]
    return []


@cache
def adapter_of(type: str) -> TypeAdapter[Any]:
    return TypeAdapter(EVENT_CLASSES[type])


def check_event(event: dict[str, Any]) -> None:
    """Raise unless the class for the event's type takes it as it is."""
    bare = {name: value for name, value in event.items() if name != "obfuscation"}
    if bare["type"] == "error" and "error" in bare:
        assert set(bare) == {"type", "sequence_number", "error"}
        assert set(bare["error"]) == {"type", "code", "message", "param"}
        return
    parsed = adapter_of(bare["type"]).validate_python(bare)
    assert unknown_fields(parsed) == []
