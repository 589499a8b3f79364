"""The models that are imported for everybody: those of the settings, with descriptions."""

from collections.abc import Iterable
from typing import Any

from openai_responses.models.resolve import ResolvedModel, resolve_model
from owui_manifold.call.config import named_models
from owui_manifold.call.valves import Valves
from releasing.contents import import_file, model_entry
from strategies.parameters import STRATEGY_NAMES

_SIZES = {
    "astra": "The largest model, for the hardest work.",
    "sol": "The large model, for hard questions and long work with tools.",
    "terra": "The middle size, for most questions at half the price of Sol.",
    "luna": "The small model: fast and cheap, for short questions and drafts.",
    "mini": "A small model: fast and cheap.",
    "pro": "Thinks longest, for the hardest questions.",
}
_AGENT = (
    "Plans, uses tools and goes on until the question is answered, with {}. For work of "
    "several steps."
)
_NO_SIZE = "A model of OpenAI, with its reasoning kept in the chat."
# People read it above the input of a new chat, before they ask for a picture. A phone
# shows about 105 characters of a description.
_SWITCHES = "Search, Python, images: in the menu below."


def models_file(pipe: str, names: Iterable[str], filters: Iterable[str]) -> str:
    """Return what *Import Models* takes: models of a pipe, for everybody.

    Those that think longest, and research, are for administrators alone.
    """
    known = named_models(Valves())
    filter_ids = list(filters)
    return import_file(
        _model(f"{pipe}.{name}", resolve_model(name, known), filter_ids)
        for name in names
    )


def _model(
    model_id: str, model: ResolvedModel, filters: Iterable[str]
) -> dict[str, Any]:
    description = describe(model)
    if model_id.rpartition(".")[2] in STRATEGY_NAMES:
        description = _AGENT.format(resolve_model(model.id).name)
    # These cost many times as much; without a grant only administrators see a model.
    is_costly = model.pro or model.research or "-pro" in model.id
    return model_entry(
        model_id,
        model.name,
        f"{description} {_SWITCHES}" if filters else description,
        filters,
        sees=bool(model.facts.vision),
        is_public=not is_costly,
    )


def describe(model: ResolvedModel) -> str:
    """Return one or two sentences for the list of models."""
    size = _describe_size(model.id)
    return f"{size} Effort: {model.effort}." if model.effort else size


def _describe_size(model_id: str) -> str:
    for word, sentence in _SIZES.items():
        if word in model_id:
            return sentence
    return _NO_SIZE
