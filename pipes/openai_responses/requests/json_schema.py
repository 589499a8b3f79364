"""JSON Schemas of functions, as the API takes them.

Tool servers send schemas of every draft and of OpenAPI, and some that are not schemas
at all. One that the API refuses makes every message of a chat fail. So each is copied
once: the copy has the keywords of draft 2020-12 that have valid values, at every depth.
Nothing is guessed; what is left out allows more than before, never something else. The
tool's own schema stays as it is, and arguments are checked against that one.

The API demands more than the draft (docs/reference/responses-api.md, "Function tools"):

- The root is an object with `properties`, and not a choice.
- An object has `properties`, an array has `items`.
- A reference names a definition at the root.
- A pattern is one that Python's `re` compiles, and that other engines read alike.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from openai_responses.json_input import (
    JsonBudget,
    JsonObject,
    JsonTooLarge,
    as_list,
    as_mapping,
    json_size,
    resolve_reference,
)
from openai_responses.requests.strict_schema import (
    NoStrictForm,
    Schema,
    json_types,
    strict_schema_form,
)

LARGEST_SCHEMA = 300_000
"""The size of the largest schema that is read, as `json_size` counts it."""
MAX_STRICT_WORK = 300_000
"""The size of all schemas of a request that get a strict form."""
_MAX_STRICT_SCHEMA = 10_000
"""As `json_size` counts, ten for each value. Strict mode takes 5,000 properties, 1,000
values of enums, 120,000 characters of both, and 15,000 of one long enum (guide
"Structured outputs", "Supported schemas")."""


def function_parameters(
    schema: JsonObject, strict_left: JsonBudget | None = None
) -> tuple[Schema, bool]:
    """Return a function's parameters as the API takes them, and whether for strict mode.

    With `strict_left`, the work that may still be done, simple ones get their strict
    form; see `strict_schema_form`. Raises JsonTooLarge for a schema above
    LARGEST_SCHEMA or of more than 64 levels.
    """
    # Whoever runs a tool server chooses the size; each of its schemas is walked in each
    # request.
    json_size(schema, LARGEST_SCHEMA)
    copy = _SchemaCopy(schema)
    root = copy.schema

    # Without `type: object` at the root, or with a choice there, the whole request is
    # refused (vercel/ai 7005, janhq/jan 7017). A model that knew no property of the
    # choice could not call the function, so the root gets those of all its options.
    properties: Schema = {}
    for part in reversed([*joined_schemas(root, root, choose=list)]):
        properties.update(as_mapping(part.get("properties")))  # the first option counts
    parameters = {key: root[key] for key in root if key not in _REFUSED_AT_THE_ROOT}
    parameters |= {"type": "object", "properties": properties}
    is_plain_object = (
        not root.keys() & _REFUSED_AT_THE_ROOT
        and schema.get("type", "object") == "object"
    )
    if strict_left is None or not copy.is_exact or not is_plain_object:
        return parameters, False
    try:
        strict_left.spend(json_size(parameters, _MAX_STRICT_SCHEMA))
        return strict_schema_form(parameters), True
    except (JsonTooLarge, NoStrictForm):
        return parameters, False


# ---------------------------------------------------------------- valid values


def _is_json_value(value: object) -> bool:
    """Say whether JSON can express a value; it has no NaN and no infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def is_json_number(value: object) -> bool:
    """Say whether a value is a number that JSON has."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return _is_json_value(value)


_SCHEMA = (Mapping, bool)
"""The types of a schema, and of a part of one."""


def _is_filled_list(value: object) -> bool:
    return isinstance(value, list) and value != []


def _is_json_list(value: object) -> bool:
    return _is_filled_list(value) and _is_json_value(value)


def _is_length(value: object) -> bool:
    return type(value) is int and value >= 0


_MAX_PATTERN_CHARACTERS = 500
_READ_DIFFERENTLY = re.compile(
    r"""
    \(\?(?!:)       # lookaround, flags, named groups
    | \\[1-9ANZ]    # back references, anchors and names of Python alone
    | \[\^?\[       # sets in sets
    | -- | && | ~~ | \|\|
    | [*+?}]\+      # possessive repeats
    """,
    re.VERBOSE,
)
"""Parts of a pattern that Python, ECMAScript and Rust read differently, or refuse."""


_FAR_CHARACTER = re.compile(
    r"[^\x00-\x7f]|\\u(?!00[0-7])[0-9a-fA-F]{4}|\\U(?!000000[0-7])[0-9a-fA-F]{8}"
)
"""For a set with such a character Python makes a table: 100 sets take 0.2 s to compile, and
a schema has room for hundreds of such patterns. The last character of ASCII, which is
after all others, is right where they are."""


def _is_portable_pattern(pattern: object) -> bool:
    """Say whether a pattern can be sent: the API refuses what `re` does not compile."""
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN_CHARACTERS:
        return False
    # gpt-5.5 and gpt-5.6 answer 400 "regex lookaround is not supported", gpt-5.4 ends
    # the stream with a bare `server_error` (anomalyco/opencode 32073, vercel/ai 20021).
    if _READ_DIFFERENTLY.search(pattern):
        return False
    pattern = _FAR_CHARACTER.sub("\x7f", pattern)
    try:
        # OpenAI's validator is Python's `jsonschema`: `\p{L}` "is not a 'regex'"
        # (Alishahryar1/free-claude-code 1730).
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


_SCHEMA_KEYWORDS = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAP_KEYWORDS = frozenset(
    {
        "$defs",
        "definitions",
        "dependentSchemas",
        "patternProperties",
        "properties",
    }
)

_VALID_VALUES: Mapping[str, Any] = {
    **dict.fromkeys(_SCHEMA_KEYWORDS, _SCHEMA),
    **dict.fromkeys(_SCHEMA_LIST_KEYWORDS, _is_filled_list),
    **dict.fromkeys(_SCHEMA_MAP_KEYWORDS, Mapping),
    "$comment": str,
    "const": _is_json_value,
    "contentEncoding": str,
    "contentMediaType": str,
    "default": _is_json_value,
    "deprecated": bool,
    "description": str,
    "enum": _is_json_list,
    "examples": _is_json_list,
    "exclusiveMaximum": is_json_number,
    "exclusiveMinimum": is_json_number,
    "format": str,
    "maxContains": _is_length,
    "maxItems": _is_length,
    "maxLength": _is_length,
    "maxProperties": _is_length,
    "maximum": is_json_number,
    "minContains": _is_length,
    "minItems": _is_length,
    "minLength": _is_length,
    "minProperties": _is_length,
    "minimum": is_json_number,
    "multipleOf": lambda value: is_json_number(value) and value > 0,
    "pattern": _is_portable_pattern,
    "readOnly": bool,
    "required": list,
    "title": str,
    "type": lambda value: json_types(value) != [],
    "uniqueItems": bool,
    "writeOnly": bool,
}
"""The keywords that are sent, with the types of their values, or a check of them.

They are those of draft 2020-12, and `definitions`, which it still knows. Left out are
`$schema`, which is no longer true of the copy, words that give a part another name or
base (`$id`, `$anchor`, `$dynamicRef`), and `dependentRequired`, a map of lists that
nobody sends. `$ref` has a check of its own.
"""

_NEEDED_FOR_STRICT_MODE = frozenset(
    {
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "dependencies",
        "dependentRequired",
        "enum",
        "items",
        "nullable",
        "properties",
        "required",
        "type",
    }
)
"""Words without which a strict form would be a guess, if they are left out."""


# ---------------------------------------------------------------- copy


class _SchemaCopy:
    """A schema with its valid keywords; each node is read once.

    `is_exact` is false if a word was left out that strict mode would have to express.
    """

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self.is_exact = True
        self.schema = self._copy_keywords(root)

    def _copy(self, node: object) -> Schema | bool:
        """Return the copy of a node; what is not a schema allows everything."""
        if isinstance(node, bool):
            return node
        if isinstance(node, Mapping):
            return self._copy_keywords(node)
        return {}

    def _copy_keywords(self, node: JsonObject) -> Schema:
        copy: Schema = {}
        for keyword, value in node.items():
            if keyword == "$ref":  # to a definition at the root, or to the root
                is_valid = (
                    isinstance(value, str)
                    and _DEFINITION.fullmatch(value) is not None
                    and isinstance(resolve_reference(self._root, value), _SCHEMA)
                )
            else:
                check = _VALID_VALUES.get(keyword)
                if isinstance(check, type | tuple):
                    is_valid = isinstance(value, check)
                else:
                    is_valid = check is not None and check(value)
            if is_valid:
                copy[keyword] = self._copy_value(keyword, value)
            elif keyword in _NEEDED_FOR_STRICT_MODE:
                self.is_exact = False
        types = json_types(copy.get("type"))
        # An object without `properties` is refused, also without strict mode (forgecode
        # 1359), and so is an array without `items`.
        if "object" in types:
            copy.setdefault("properties", {})
        if "array" in types:
            copy.setdefault("items", {})
        return copy

    def _copy_value(self, keyword: str, value: Any) -> Any:
        if keyword in _SCHEMA_KEYWORDS:
            return self._copy(value)
        if keyword in _SCHEMA_LIST_KEYWORDS:
            return [self._copy(part) for part in value]
        if keyword in _SCHEMA_MAP_KEYWORDS:
            copies: Schema = {}
            for name, part in value.items():
                is_name = isinstance(name, str)
                if keyword == "patternProperties":
                    is_name = _is_portable_pattern(name)
                if is_name:
                    copies[name] = self._copy(part)
            return copies
        if keyword == "required" or (keyword == "type" and isinstance(value, list)):
            # The draft wants each text once.
            texts = [text for text in value if isinstance(text, str)]
            return list(dict.fromkeys(texts))
        return value


_REFUSED_AT_THE_ROOT = frozenset(
    {"$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"}
)


# ---------------------------------------------------------------- reading

_DEFINITION = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")


def joined_schemas(
    root: JsonObject, node: Any, choose: Callable[[list[Any]], list[Any]]
) -> Iterator[JsonObject]:
    """Yield a part of a schema and all that it joins to itself; of a choice, what is chosen.

    Each comes once, because references may lead to the same part many times.
    """
    yielded: set[int] = set()
    ahead = [node]
    while ahead:
        part = ahead.pop()
        if not isinstance(part, Mapping) or id(part) in yielded:
            continue
        yielded.add(id(part))
        yield part
        joined: list[Any] = []
        if "$ref" in part:
            joined.append(resolve_reference(root, part["$ref"]))
        joined += as_list(part.get("allOf"))
        joined += choose(as_list(part.get("anyOf")))
        joined += choose(as_list(part.get("oneOf")))
        ahead += reversed(joined)
