"""What an administrator says of a model, over what the catalog says.

`{"my-gpt": {"like": "gpt-5.2", "name": "Our GPT", "context": 100000}}`: the facts of
the model that it is like, or of its family, with some of them replaced.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.json_texts import typed_object
from openai_responses.models import (
    REASONING_EFFORTS,
    ModelFacts,
    ResolvedModel,
    resolve_model,
)

_YES_OR_NO_FACTS = frozenset(
    f.name for f in fields(ModelFacts) if f.type in (bool, "bool")
)
_NUMBER_FACTS = frozenset({"max_output_tokens", "context"})
_TEXT_FACTS = frozenset({"default_effort", "shutdown", "successor"})
_SAMPLINGS = ("always", "with_none", "never")


@dataclass(frozen=True, slots=True)
class Override:
    """What is said of one model; empty texts say nothing."""

    like: str = ""
    name: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


Overrides = Mapping[str, Override]


def read_overrides(text: str) -> dict[str, Override]:
    """Return what a JSON object says of models, by their ids; raises InvalidRequest."""
    if not text.strip():
        return {}
    table = typed_object(text)
    if table is None:
        raise InvalidRequest(
            "MODEL_OVERRIDES_JSON is not a JSON object. An administrator has to correct "
            'it in the valves, for example {"my-gpt": {"like": "gpt-5.2"}}.'
        )
    return {model: _read_override(model, row) for model, row in table.items()}


def resolve_overridden(name: str, overrides: Overrides) -> ResolvedModel:
    """Understand a name as `resolve_model` does, by what the administrator says first.

    An effort at the end of a name of theirs is one, if the model takes it.
    """
    if name in overrides:
        return _overridden(name, overrides[name])
    base, _, effort = name.rpartition("-")
    if base in overrides and effort in REASONING_EFFORTS:
        model = _overridden(base, overrides[base])
        if model.takes_effort(effort):
            return replace(model, effort=effort, name=f"{model.name} ({effort})")
    return resolve_model(name)


def _overridden(name: str, said: Override) -> ResolvedModel:
    model = resolve_model(said.like or name)
    facts = replace(model.facts, **said.facts)
    if not said.like:
        return replace(model, facts=facts, name=said.name or model.name)
    return ResolvedModel(
        id=name, family=name, effort=None, facts=facts, name=said.name or name
    )


def _read_override(model: str, row: object) -> Override:
    if not isinstance(row, Mapping):
        raise InvalidRequest(_entry_complaint(model, "is no JSON object"))
    said = dict(row)
    texts = {key: said.pop(key) for key in ("like", "name") if key in said}
    for key, value in (*texts.items(), *said.items()):
        if not _can_be(key, value):
            raise InvalidRequest(
                _entry_complaint(model, f"has a wrong {str(key)[:40]}")
            )
    if "efforts" in said:
        said["efforts"] = tuple(said["efforts"])
    return Override(**texts, facts=said)


def _can_be(key: str, value: object) -> bool:
    """Say whether `value` is one that the fact named `key` can have."""
    if key in _YES_OR_NO_FACTS:
        return isinstance(value, bool)
    if key in _NUMBER_FACTS:
        return isinstance(value, int) and value > 0
    if key == "sampling":
        return value in _SAMPLINGS
    if key == "efforts":
        rows = value if isinstance(value, list) else [value]
        return isinstance(value, list) and all(row in REASONING_EFFORTS for row in rows)
    return key in (_TEXT_FACTS | {"like", "name"}) and isinstance(value, str)


def _entry_complaint(model: str, what: str) -> str:
    return (
        f"MODEL_OVERRIDES_JSON: the entry {model} {what}. An administrator has to "
        "correct it in the valves."
    )
