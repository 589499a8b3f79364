"""How a setting is written: as a field of a class, with all that is known of it.

A setting is a valve, or a key of a valve that holds a JSON object. The name and the type
are those of the field, so that mypy follows who reads it. From the row come the default,
the bounds, what the page, the messages and docs/ say, and the place there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Self

from pydantic import BaseModel, Field, PrivateAttr, model_validator

from openai_responses.json_input import clamp_number, well_formed

Door = Literal["pipe", "pipelines"]
"""Where an administrator finds a valve: in Open WebUI, or at the Pipelines server."""


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of a setting in addition to its name, type and default.

    The fields from `word` on belong to one kind of setting each; they are empty at all
    others.
    """

    text: str
    pipelines: str = ""
    """What the Pipelines server says instead, where the setting is not quite the same."""
    example: str = ""
    is_secret: bool = False
    bounds: tuple[int, int] | None = None
    """The least and the most of a number; one outside of them becomes the nearest. The
    host shows no reason for a refused value, so nobody is told for a valve. For a key,
    an administrator is (shells/valve_texts.py)."""
    then: tuple[str, ...] = ()
    """The shared valves that follow on the page."""
    word: str = ""
    """Of a user's valve: the word of USER_MAY_CHANGE that lets users change it."""
    own_key: Literal["", "headers", "all", "never"] = ""
    """What `user_keys_get` has to be for a user's own key to get this; empty: any."""
    right: Literal["", "costly", "ruling"] = ""
    """Of an agent's parameter in the pipe: a request may lower a `costly` one, and set a
    `ruling` one that has no value yet, unless an administrator allows more."""
    request_key: str = ""
    """Of an agent's parameter: the key of a request to the Pipelines server."""
    parameter: str = ""
    """Of a valve of the Pipelines server: the agent's parameter that it sets."""

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
    word: str = "",
    own_key: Literal["", "headers", "all", "never"] = "",
    **limits: Any,
) -> Any:
    """Return the field of a valve; `limits` are pydantic's."""
    row = Row(text, pipelines, example, secret, bounds, then, word, own_key)
    return row_field(default, row, **limits)


def row_field(default: object, row: Row, **limits: Any) -> Any:
    """Return the field of a row; `limits` are pydantic's."""
    return Field(default=default, description=row.text, json_schema_extra=row, **limits)


def key(
    default: object,
    text: str,
    *,
    pipelines: str = "",
    bounds: tuple[int, int] | None = None,
    **limits: Any,
) -> Any:
    """Return the field of a key of a JSON object; `limits` are pydantic's.

    Its text tells its bounds, because an administrator types it without a form.
    """
    if bounds:
        text = f"{text.removesuffix('.')}, {bounds[0]} to {bounds[1]}."
    return _key_field(default, Row(text, pipelines, bounds=bounds), **limits)


def key_at_pipelines(form: type[BaseModel], name: str, default: object) -> Any:
    """Return the field of a key that has another default at the Pipelines server."""
    row = rows_of(form)[name]
    return _key_field(default, replace(row, text=row.pipelines or row.text))


def _key_field(default: object, row: Row, **limits: Any) -> Any:
    if row.bounds:
        limits["ge"], limits["le"] = row.bounds
    return row_field(default, row, **limits)


def rows_of(valves: type[BaseModel]) -> dict[str, Row]:
    """Return the rows of a class of settings, by their names."""
    fields = valves.model_fields.items()
    extras = {name: field.json_schema_extra for name, field in fields}
    return {name: row for name, row in extras.items() if isinstance(row, Row)}


class OldName(NamedTuple):
    """What became of a valve that is none any more."""

    instead: str
    """What to do."""
    harmless: tuple[object, ...] = ("",)
    """The stored values with which nothing is lost."""


class StoredValves(BaseModel):
    """Valves of an administrator, from whatever a server has stored.

    A host reads them for every call, so what depends on the class alone is made once,
    and one validator does what pydantic would otherwise ask for at each field.
    """

    old_names: ClassVar[Mapping[str, OldName]] = {}
    """Names that may be stored, and have no effect."""
    _bounds: ClassVar[Mapping[str, tuple[int, int, int]]] = {}
    """The least, the most and the default of each number that has bounds."""
    _without_effect: tuple[str, ...] = PrivateAttr(())

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Look up the bounds once."""
        cls._bounds = {
            name: (*row.bounds, cls.model_fields[name].default)
            for name, row in rows_of(cls).items()
            if row.bounds
        }

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, stored: object, read: Callable[[object], Self]) -> Self:
        """Read valves: numbers are kept in bounds, and old names are remembered.

        With half a character in a text, a host could not send them to its page. It passes
        on all that it has stored; when its page saves the valves, it stores only what
        this class has (docs/reference/open-webui.md, "Valves").
        """
        if not isinstance(stored, Mapping):
            return read(stored)
        kept = {
            name: clamp_number(stored[name], least, most, default)
            for name, (least, most, default) in cls._bounds.items()
            if name in stored
        }
        texts = {
            name: well_formed(value)
            for name, value in stored.items()
            if isinstance(value, str)
        }
        valves = read({**stored, **texts, **kept})
        valves._without_effect = tuple(
            name
            for name in cls.old_names.keys() & stored.keys()
            if stored[name] not in (None, *cls.old_names[name].harmless)
        )
        return valves

    def without_effect(self) -> dict[str, str]:
        """Return the stored valves that have no effect, with what to do instead."""
        names = sorted(self._without_effect)
        return {name: self.old_names[name].instead for name in names}


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
    # The first shared valve, if no row names it, comes after all of the class's own.
    first: list[str] = []
    for before, name in zip(["", *shared], shared, strict=False):
        if name not in placed:
            followers.get(before, first).append(name)
    order: list[str] = []
    # A stack: what follows a name comes right after it.
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
