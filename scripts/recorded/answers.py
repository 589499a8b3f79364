"""The facts of an answer, in which ours and the recorded one are compared."""

import json
from collections.abc import Iterable, Iterator, Mapping
from os.path import commonprefix
from typing import Any, NamedTuple

Item = Mapping[str, Any]
CONTEXT_CHARACTERS = 60


class AnswerFacts(NamedTuple):
    """The parts of an answer that people or later turns depend on."""

    text: str
    refusal: str
    summaries: str
    calls: tuple[str, ...]
    """`name(arguments)` of functions and custom tools, in their order."""
    sources: tuple[str, ...]
    tokens: tuple[int, int] | None
    status: str


def facts_of_response(response: Mapping[str, Any]) -> AnswerFacts:
    """Return the facts of a final response object."""
    usage = response.get("usage")
    tokens = (usage["input_tokens"], usage["output_tokens"]) if usage else None
    return facts_of_items(
        response.get("output") or [], tokens, str(response.get("status"))
    )


def facts_of_items(
    items: Iterable[Item], tokens: tuple[int, int] | None, status: str
) -> AnswerFacts:
    """Return the facts of output items."""
    parts: list[Item] = []
    summaries: list[str] = []
    calls: list[str] = []
    for item in items:
        match item.get("type"):
            case "message":
                parts += _parts(item, "content")
            case "reasoning":
                summaries += [part.get("text", "") for part in _parts(item, "summary")]
            case "function_call":
                arguments = _normalize_json(item.get("arguments"))
                calls.append(f"{item.get('name')}({arguments})")
            case "custom_tool_call":
                calls.append(f"{item.get('name')}({item.get('input')})")
    return AnswerFacts(
        text=_join_field(parts, "text"),
        refusal=_join_field(parts, "refusal"),
        summaries="".join(summaries),
        calls=tuple(calls),
        sources=tuple(_sources(parts)),
        tokens=tokens,
        status=status,
    )


def _join_field(parts: Iterable[Item], field: str) -> str:
    return "".join(part.get(field) or "" for part in parts)


def _sources(parts: Iterable[Item]) -> Iterator[str]:
    for part in parts:
        for citation in _parts(part, "annotations"):
            yield _describe_source(citation)


def _parts(item: Item, field: str) -> list[Item]:
    """Return a list of an item, which may be null."""
    return item.get(field) or []


def differing_facts(ours: AnswerFacts, theirs: AnswerFacts) -> list[tuple[str, str]]:
    """Return the names of the facts that differ, each with both values."""
    rows = []
    for name in AnswerFacts._fields:
        own = getattr(ours, name)
        recorded = getattr(theirs, name)
        if own != recorded:
            rows.append((name, describe_difference(recorded, own)))
    return rows


def describe_difference(recorded: object, own: object) -> str:
    """Return both values from shortly before their first difference."""
    theirs = repr(recorded)
    ours = repr(own)
    common = commonprefix([theirs, ours])  # noqa: RUF071 - texts, not paths
    start = max(0, len(common) - CONTEXT_CHARACTERS)
    return f"recorded …{theirs[start:]:.200}, ours …{ours[start:]:.200}"


def _describe_source(annotation: Mapping[str, Any]) -> str:
    """Return the type and the address or the file of a citation."""
    fields = [annotation.get(name) for name in ("type", "url", "file_id")]
    return " ".join(str(field) for field in fields if field)


def _normalize_json(arguments: object) -> str:
    """Return arguments in one spelling: gateways write other white space."""
    try:
        return json.dumps(json.loads(str(arguments)), sort_keys=True)
    except ValueError:
        return str(arguments)
