"""The arguments of an OpenAPI operation: what a model gives, where it goes."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbox.openapi_schemas import OpenApiSchemas, SchemaUnusable, resolved

_PLACES = ("path", "query", "header")
_OURS = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "te", "upgrade"}
)
_SECRET_WORDS = ("auth", "cookie", "forward", "key", "secret", "token", "transfer")
"""Headers of which a model does not decide: ours, and those that open doors."""
_EXPLODED = ("form", "deepObject")


@dataclass(frozen=True, slots=True)
class OpenApiParameter:
    """A parameter; `argument` is what the tool calls it, `style` how it is written.

    The style `json` is that of a parameter with a media type.
    """

    argument: str
    name: str
    place: str
    style: str
    explodes: bool


class OpenApiArguments:
    """The arguments of one operation; `body` is the one that is sent as JSON."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        """Begin with none."""
        self.parameters: dict[tuple[str, str], OpenApiParameter] = {}
        self.body = ""
        self._document = document
        self._schemas = OpenApiSchemas(document)
        self._properties: dict[str, Any] = {}
        self._required: dict[str, None] = {}
        self._keys = frozenset(_keys_of(document))

    def schema(self) -> dict[str, Any]:
        """Return the schema of all arguments."""
        definitions = self._schemas.definitions
        return {
            "type": "object",
            "properties": self._properties,
            "required": list(self._required),
            **({"$defs": definitions} if definitions else {}),
        }

    def add_parameters(self, rows: object) -> None:
        """Add parameters; one of an operation takes the place of its path's.

        Raises SchemaUnusable.
        """
        for row in rows if isinstance(rows, list) else []:
            said = resolved(row, self._document)
            place, name = str(said.get("in")), str(said.get("name"))
            if self._is_models(place, name):
                self._add(place, name, said)

    def add_body(self, body: object) -> None:
        """Add a body of JSON; raises SchemaUnusable for one that has to be another."""
        if body is None:
            return
        said = resolved(body, self._document)
        media = _json_media(said.get("content"))
        if media is not None:
            self.body = self._free_name("body")
            schema = self._schemas.standing_alone(media.get("schema") or {})
            self._properties[self.body] = schema
        if said.get("required") is True:
            if media is None:
                raise SchemaUnusable
            self._required[self.body] = None

    def _is_models(self, place: str, name: str) -> bool:
        """Say whether a parameter is the model's to give."""
        if place not in _PLACES or (place, name.lower()) in self._keys:
            return False
        low = name.lower()
        is_closed = low in _OURS or any(word in low for word in _SECRET_WORDS)
        return place != "header" or not is_closed

    def _add(self, place: str, name: str, said: Mapping[str, Any]) -> None:
        before = self.parameters.get((place, name))
        argument = before.argument if before else self._free_name(name, place)
        media = _json_media(said.get("content"))
        node = (said if media is None else media).get("schema")
        schema = self._schemas.standing_alone(node or {"type": "string"})
        if said.get("description") and "$ref" not in schema:
            schema = {**schema, "description": str(said["description"])}
        self._properties[argument] = schema
        if place == "path" or said.get("required") is True:
            self._required[argument] = None
        usual = "form" if place == "query" else "simple"
        style = str(said.get("style") or usual) if media is None else "json"
        explodes = said.get("explode", style in _EXPLODED) is True
        self.parameters[place, name] = OpenApiParameter(
            argument, name, place, style, explodes
        )

    def _free_name(self, name: str, place: str = "request") -> str:
        return f"{place}_{name}" if name in self._properties else name


def _json_media(content: object) -> Mapping[str, Any] | None:
    """Return what is said of a content that is JSON, or None."""
    for kind, media in (content if isinstance(content, Mapping) else {}).items():
        name = str(kind).partition(";")[0].strip().lower()
        is_json = name == "application/json" or name.endswith("+json")
        if is_json and isinstance(media, Mapping):
            return media
    return None


def _keys_of(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield place and name of each key that a document says it wants."""
    try:
        parts = resolved(document.get("components"), document)
        schemes = resolved(parts.get("securitySchemes"), document)
    except SchemaUnusable:
        return
    for scheme in schemes.values():
        if isinstance(scheme, Mapping) and scheme.get("type") == "apiKey":
            yield str(scheme.get("in")), str(scheme.get("name")).lower()
