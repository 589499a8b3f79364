"""The valves that correct what is known about models, and their prices."""

from collections.abc import Mapping
from functools import lru_cache

from openai_responses.errors import InvalidRequest
from openai_responses.json_input import matches_schema, parse_json_object
from openai_responses.models.facts import ModelFacts, ModelPrices
from openai_responses.models.resolve import (
    REASONING_EFFORTS,
    ResolvedModel,
    resolve_model,
)
from shells.valve_messages import PIPE_SHELL, valve_error, valve_message
from shells.valve_texts import json_mistake, unknown_key


def _is_count(value: object) -> bool:
    return type(value) is int and value > 0  # True is an int, too


_OVERRIDE_FORMS = {
    "like": str,
    "name": str,
    **{
        name: bool
        for name, default in ModelFacts()._asdict().items()
        if isinstance(default, bool)
    },
    "context_window": _is_count,
    "default_effort": str,
    "efforts": ["|".join(REASONING_EFFORTS)],
    "lacks": [str],
    "max_input_tokens": _is_count,
    "max_output_tokens": _is_count,
    "sampling": "always|with_none|never",
    "shutdown": str,
    "successor": str,
}
"""The facts that an entry can have, with the form of each; the usual ones first."""


@lru_cache(maxsize=8)
def read_overrides(text: str) -> dict[str, ResolvedModel]:
    """Return the models of MODEL_OVERRIDES_JSON; raises InvalidRequest.

    An entry takes the facts of the model in `like`, or of its family, and replaces some
    of them: `{"my-gpt": {"like": "gpt-5.2", "vision": false}}`.
    """
    table = parse_json_object(text.strip() or "{}")
    if table is None:
        mistake = json_mistake(text) or "is not a JSON object"
        problem = f"MODEL_OVERRIDES_JSON {mistake}"
        raise valve_error(problem, PIPE_SHELL, '{"my-gpt": {"like": "gpt-5.2"}}')
    return {model: _read_override(model, row) for model, row in table.items()}


def _read_override(model_id: str, row: object) -> ResolvedModel:
    """Return the model that an entry describes; raises InvalidRequest."""
    if not isinstance(row, Mapping):
        raise _entry_error(model_id, "is not a JSON object")
    for key, value in row.items():
        if key not in _OVERRIDE_FORMS:
            mistake = unknown_key(str(key), _OVERRIDE_FORMS)
            raise _entry_error(model_id, f"has a mistake: {mistake}")
        if not matches_schema({key: value}, _OVERRIDE_FORMS):
            raise _entry_error(model_id, f"has a wrong value for `{key}`")
    facts = dict(row)
    like = facts.pop("like", "")
    name = facts.pop("name", "")
    if "context_window" in facts:  # the limit of another window says nothing
        facts.setdefault("max_input_tokens", None)
    for key in ("efforts", "lacks"):
        if key in facts:
            facts[key] = tuple(facts[key])
    model = resolve_model(like or model_id)
    if like:
        model = ResolvedModel(model_id, model_id, None, model.facts, model_id)
        if model_id.startswith("ft:"):  # fine-tuned models have prices of their own
            facts["prices"] = None
    return model._replace(facts=model.facts._replace(**facts), name=name or model.name)


def _entry_error(model: str, what: str) -> InvalidRequest:
    return valve_error(f"MODEL_OVERRIDES_JSON: the entry {model} {what}", PIPE_SHELL)


_MAX_PRICE = 1_000_000
_MODEL_NAME_LENGTH = 80
_NAMED_MODELS = 5
"""What a message repeats of the valve."""


def _is_price(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) and 0 <= value < _MAX_PRICE


_PRICES = {
    "input": _is_price,
    "cached": _is_price,
    "cached_input": _is_price,  # jrkropp's word for it
    "cache_write": _is_price,
    "output": _is_price,
    "fast": _is_price,
    "ultrafast": _is_price,
}
"""The prices and factors that an administrator can state."""

_UNKNOWN_PRICES = ModelPrices(None, None, None, None)


@lru_cache(maxsize=8)
def read_prices(text: str) -> tuple[Mapping[str, ModelPrices] | None, str]:
    """Return the prices of CUSTOM_MODEL_PRICING_JSON by model id, and what is wrong.

    The prices of an entry that cannot be read are unknown; those of the catalog do not
    count. None: the text is no table, so no price is known at all.
    """
    table = parse_json_object(text.strip() or "{}")
    if table is None:
        mistake = json_mistake(text)
        return None, _prices_message(f": it {mistake}" if mistake else "")
    prices: dict[str, ModelPrices] = {}
    unread: list[str] = []
    for model, row in table.items():
        has_both = matches_schema(row, _PRICES) and "input" in row and "output" in row
        if not has_both:
            prices[model] = _UNKNOWN_PRICES
            unread.append(model[:_MODEL_NAME_LENGTH])
            continue
        prices[model] = ModelPrices(
            input=row["input"],
            cached=row.get("cached", row.get("cached_input")),
            cache_write=row.get("cache_write"),
            output=row["output"],
            fast=row.get("fast"),
            ultrafast=row.get("ultrafast"),
        )
    names = ", ".join(unread[:_NAMED_MODELS])
    return prices, _prices_message(f" for {names}") if unread else ""


def _prices_message(where: str) -> str:
    problem = f"CUSTOM_MODEL_PRICING_JSON has no valid prices{where}"
    return valve_message(problem, PIPE_SHELL, '{"my-model": {"input": 2, "output": 8}}')
