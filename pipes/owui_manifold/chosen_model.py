"""The model that answers a chat, where its name leaves the choice to us."""

from collections.abc import Sequence

from openai_responses.auto_model import choose_model
from openai_responses.items import Item
from openai_responses.models import ResolvedModel
from openai_responses.overrides import resolve_overridden
from owui_chat.messages import Said, Stretch
from owui_manifold.job import Asked, model_of, overrides_of
from owui_manifold.store import ChatStore


def choice_for(
    asked: Asked, stretches: Sequence[Stretch], store: ChatStore | None
) -> tuple[ResolvedModel, str]:
    """Return the model, and a sentence that says why it was chosen; or none."""
    records = store.records.values() if store else ()
    choice = choose_model(
        asked.caller.model,
        _first_question(stretches),
        tools=bool(asked.around.metadata.get("tool_ids")),
        earlier={record.origin.family for record in records},
    )
    if choice is None:
        return model_of(asked), ""
    model = resolve_overridden(choice.model, overrides_of(asked.valves))
    return model, f"{model.name} answers: {choice.why}."


def _first_question(stretches: Sequence[Stretch]) -> Item | None:
    for stretch in stretches:
        if isinstance(stretch, Said) and stretch.item.get("role") == "user":
            return stretch.item
    return None
