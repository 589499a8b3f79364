"""Valves that hold several values: lists of words, and JSON objects.

A JSON object replaces many fields that are rarely changed. Its keys are checked one by
one: a number out of its range becomes the nearest allowed one, a key with any other
invalid value gets its default, and the others still apply.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from openai_responses.json_input import load_json, parse_json_object


def comma_list(text: str) -> list[str]:
    """Return the words of a list separated by commas or lines, each of them once.

    Open WebUI's dialog has a field of several lines for a valve with text.
    """
    words = (word.strip() for word in text.replace("\n", ",").split(","))
    return list(dict.fromkeys(word for word in words if word))


def fits_pattern(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a name fits one of the patterns, like `gpt-5*`, in any case."""
    lower = name.lower()
    return any(fnmatchcase(lower, pattern.lower()) for pattern in patterns)


_MAX_SHOWN_WORDS = 5
_MAX_WORD_CHARACTERS = 40
"""Both limit a message, because an administrator may paste anything."""


def unknown_words(
    valve: str, words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about unknown words of a valve; empty if all are known."""
    unknown = sorted(set(words).difference(known))[:_MAX_SHOWN_WORDS]
    if not unknown:
        return ""
    shown = ", ".join(word[:_MAX_WORD_CHARACTERS] for word in unknown)
    return f"{valve} contains unknown names: {shown}. {advice}"


_Form = TypeVar("_Form", bound=BaseModel)

_MAX_QUOTED = 80
"""Characters of an administrator's text that a message repeats."""


def read_json_valve(
    valve: str,
    text: str,
    form: type[_Form],
    consequence: str = "",
) -> tuple[_Form, Sequence[str]]:
    """Return the settings in the text of a valve, and what is wrong with them.

    `form` names the known keys with their types, ranges and defaults. Each problem is a
    message for administrators; `consequence` is what follows from an invalid value, if
    not that the default applies.
    """
    given = parse_json_object(text.strip() or "{}")
    if given is None:
        mistake = json_mistake(text) or "is not a JSON object"
        effect = f". {consequence}" if consequence else ", so its defaults apply."
        return form(), (f"{valve} {mistake}{effect}",)
    known = form.model_fields
    accepted: dict[str, object] = {}
    problems: list[str] = []
    for key, field in known.items():
        if key not in given:
            continue
        try:
            form.model_validate({key: given[key]})
            accepted[key] = given[key]
            continue
        except ValidationError as error:
            detail = error.errors()[0]
            bound, nearest = _nearest_allowed(error)
        effect = consequence or "Its default applies."
        if nearest is not None:
            accepted[key] = nearest
            advice = f"The {bound} is {nearest:g}, which applies."
        elif detail["type"] == "literal_error":
            advice = f"Choose {_allowed_words(detail['ctx'])}. {effect}"
        else:
            advice = f"{field.description} {effect}"
        shown = repr(given[key])[:_MAX_QUOTED]
        problems.append(f"{valve}: `{key}` cannot be {shown}. {advice}")
    advice = f"Known keys: {', '.join(known)}."
    problem = unknown_words(valve, given, known, advice)
    if problem:
        problems.append(problem)
    return form.model_validate(accepted), tuple(problems)


def json_mistake(text: str) -> str:
    """Return that a text is not JSON, and where; empty if it is JSON.

    The text is not quoted, because it may hold secrets.
    """
    try:
        load_json(text)
    except json.JSONDecodeError as error:
        return f"is not JSON (line {error.lineno}, column {error.colno})"
    except ValueError:  # a number of thousands of digits, or nesting without an end
        return "is not JSON"
    return ""


_PLAIN_NAME = re.compile("[A-Za-z_]{1,40}")


_LISTED_KEYS = re.compile(r" (?:\(known keys: [^():]*+\)|Known keys: [^.:]*+\.)")
"""Both forms of the list that is shown with an unknown key. No key has the signs with
which a list begins, so that many beginnings take linear work."""


def without_known_keys(message: str) -> str:
    """Return a message for those who cannot correct a valve, without the list of its keys."""
    return _LISTED_KEYS.sub("", message)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message about a key that an entry cannot have.

    It is named only if it has nothing but letters: a secret may be in its place, and
    users read why no answer comes.
    """
    named = f"`{key}` " if _PLAIN_NAME.fullmatch(key) else ""
    return f"the key {named}is unknown (known keys: {', '.join(known)})"


def describe_mistake(error: ValidationError, form: type[BaseModel]) -> str:
    """Return what is wrong with an entry of a JSON list; its values are not quoted.

    They may be secrets.
    """
    mistake = error.errors(include_url=False, include_input=False)[0]
    if not mistake["loc"]:
        return "it is not a JSON object"
    key = str(mistake["loc"][0])[:_MAX_QUOTED]
    match mistake["type"]:
        case "extra_forbidden":
            return unknown_key(key, form.model_fields)
        case "missing":
            return f"`{key}` is missing"
        case "literal_error":
            return f"`{key}` has to be {_allowed_words(mistake['ctx'])}"
        case "greater_than_equal":
            return f"`{key}` has to be at least {mistake['ctx']['ge']:g}"
    return f"`{key}` has a wrong value ({mistake['msg'].lower()})"


def _allowed_words(details: Mapping[str, Any]) -> str:
    """Return the words of which a value has to be one, from the details of a mistake."""
    # An empty word is what a missing key has, which nobody writes.
    return str(details["expected"]).removeprefix("'', ")


def _nearest_allowed(error: ValidationError) -> tuple[str, float | None]:
    """Return the bound that a number exceeds, and its name; None for other mistakes."""
    for detail in error.errors():
        if detail["input"] != detail["input"]:  # not a number, which JSON may say
            break
        bounds = detail.get("ctx", {})
        match detail["type"]:
            case "greater_than_equal":
                return "least", float(bounds["ge"])
            case "less_than_equal":
                return "most", float(bounds["le"])
    return "", None
