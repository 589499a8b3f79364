"""How a valve is written: as a field of a class, with all that is known of it.

The name and the type are those of the field, so that mypy follows who reads it. From the
row come the default, the bounds, what the page and docs/ say, and the place there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationInfo, field_validator

from openai_responses.json_input import clamp_number

Door = Literal["pipe", "pipelines"]
"""Where an administrator finds a valve: in Open WebUI, or at the Pipelines server."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a valve in addition to its name, type and default."""

    text: str
    pipelines: str = ""
    """What the Pipelines server says instead, where the valve is not quite the same."""
    example: str = ""
    is_secret: bool = False
    bounds: tuple[int, int] | None = None
    """The least and the most of a number. The host shows no reason for a refused value,
    so one outside of them becomes the nearest."""
    then: tuple[str, ...] = ()
    """The shared valves that follow on the page."""

    def __call__(self, schema: dict[str, Any]) -> None:
        """Have the page draw a secret as a password: pydantic calls this."""
        if self.is_secret:
            schema["input"] = {"type": "password"}


def valve(  # noqa: PLR0913 - one for each column
    default: object,
    text: str,
    *,
    pipelines: str = "",
    example: str = "",
    secret: bool = False,
    bounds: tuple[int, int] | None = None,
    then: tuple[str, ...] = (),
    **limits: Any,
) -> Any:
    """Return the field of a valve; `limits` are pydantic's."""
    row = Row(text, pipelines, example, secret, bounds, then)
    return Field(default=default, description=text, json_schema_extra=row, **limits)


def rows_of(valves: type[BaseModel]) -> dict[str, Row]:
    """Return the rows of a class of valves, by their names."""
    rows: dict[str, Row] = {}
    for name, field in valves.model_fields.items():
        if isinstance(field.json_schema_extra, Row):
            rows[name] = field.json_schema_extra
    return rows


class BoundedValves(BaseModel):
    """Valves whose numbers are kept within their bounds."""

    @field_validator("*", mode="before")
    @classmethod
    def _keep_in_bounds(cls, value: object, about: ValidationInfo) -> object:
        """Return the nearest number that is allowed, the default for anything else."""
        field = cls.model_fields[str(about.field_name)]
        row = field.json_schema_extra
        if not isinstance(row, Row) or row.bounds is None:
            return value
        return clamp_number(value, *row.bounds, field.default)


def describe(row: Row, default: object, door: Door) -> str:
    """Return what a page says of a valve, in Markdown.

    Open WebUI shows `Default` in the place of a default, so the text has it.
    """
    if door == "pipelines":
        text = row.pipelines or row.text
        if not row.example:
            return text
        full_stop = "" if row.example.endswith(".") else "."
        return f"{text} Example: `{row.example}`{full_stop}"
    if isinstance(default, bool):
        return f"{row.text} Default: {'on' if default else 'off'}."
    shown = "empty" if default == "" else f"`{default}`"
    return f"{row.text} Default: {shown}."


def page_order(valves: type[BaseModel], shared: Sequence[str]) -> list[str]:
    """Return the names of valves in the order of the page.

    The own valves of a class keep their order. Each of the `shared` ones follows the
    row that names it in `then`; one that none names follows the shared one before it.
    """
    rows = rows_of(valves)
    followers: dict[str, list[str]] = {name: list(rows[name].then) for name in rows}
    placed = {name for names in followers.values() for name in names}
    first: list[str] = []
    for before, name in zip(["", *shared], shared, strict=False):
        if name not in placed:
            followers.get(before, first).append(name)
    order: list[str] = []
    waiting = [name for name in rows if name not in shared][::-1] + first[::-1]
    while waiting:
        name = waiting.pop()
        order.append(name)
        waiting += followers[name][::-1]
    return order


def page_schema(
    door: Door,
    shared: Sequence[str] = (),
    quote: Callable[[str], str] = str,
) -> Callable[[dict[str, Any], type[BaseModel]], None]:
    """Return what puts the order and the words of a page into the schema of valves.

    `quote` makes plain text of Markdown, where a page shows it so.
    """

    def arrange(schema: dict[str, Any], valves: type[BaseModel]) -> None:
        fields = schema["properties"]
        schema["properties"] = {
            name: {**fields[name], "description": quote(text)}
            for name, text in page_texts(valves, door, shared).items()
        }

    return arrange


def page_texts(
    valves: type[BaseModel], door: Door, shared: Sequence[str] = ()
) -> Mapping[str, str]:
    """Return what a page says of each of its valves, in the order of the page."""
    rows = rows_of(valves)
    return {
        name: describe(rows[name], valves.model_fields[name].default, door)
        for name in page_order(valves, shared)
    }
