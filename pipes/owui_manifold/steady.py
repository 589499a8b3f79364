"""A chat as its last request began it."""

from openai_responses.models import ResolvedModel
from owui_chat.messages import Stretch
from owui_chat.paired import paired_messages
from owui_chat.prefix import as_sent, first_instructions, sent_now
from owui_manifold.job import Asked
from owui_manifold.rounds import last_round
from owui_manifold.store import ChatStore
from owui_manifold.valves import Valves


def steadied(
    asked: Asked,
    instructions: str,
    stretches: list[Stretch],
    store: ChatStore | None,
    model: ResolvedModel,
) -> tuple[str, list[Stretch]]:
    """Return the instructions and the chat, as they were sent where they were.

    What is sent for the first time goes to `store`.
    """
    if store is None:
        return instructions, stretches
    pairs = paired_messages(stretches, store.messages, asked.around.metadata)
    if not pairs:
        return instructions, stretches
    is_stable = _is_stable(asked.valves, model)
    if _is_new(asked, store):
        given = instructions if is_stable else None
        store.keep_sent(sent_now(stretches, pairs, store.sent, given))
    first = first_instructions(pairs, store.sent) if is_stable else None
    told = as_sent(stretches, pairs, store.sent)
    return instructions if first is None else first, told


def _is_stable(valves: Valves, model: ResolvedModel) -> bool:
    wanted = valves.STABLE_INSTRUCTIONS
    return model.facts.prefix_bound if wanted == "auto" else wanted == "on"


def _is_new(asked: Asked, store: ChatStore) -> bool:
    """Say whether this is the first request for the message that is asked."""
    message_id = asked.caller.message_id
    continues = asked.around.metadata.get("assistant_message_id")
    is_begun = message_id in store.sent or last_round(asked.state, message_id)
    return not (continues or is_begun)
