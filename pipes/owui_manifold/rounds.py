"""What one round of tools leaves for the next, inside one request of the host.

The host runs the tools and calls the pipe again. `request.state` is the same object for
all these calls, but the messages are made anew each time (docs/reference/open-webui.md,
"Ids of a call" and "Rounds of tools"). So the next round sends exactly what the last
one sent, what it received, and the outputs, reasoning included.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from openai_responses.items import Item, item_type, open_calls
from openai_responses.loop.run import next_request
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import Origin
from owui_chat.input.history import tool_message_item
from owui_chat.messages import ChatPart, ToolMessage

_ATTRIBUTE = "openai_responses_rounds"


class DelegatedRound(NamedTuple):
    """The end of a round whose calls the host is to run.

    `received` are input items; `pending` waits for its marker; `cited` are the keys of
    the sources that the page has. The host may cite what its tools read in the
    instructions (RAG_SYSTEM_CONTEXT), so the `request` goes on as it was sent, with
    the repairs that no chat may be able to store, and to its `origin`.
    """

    request: ResponsesRequest
    received: tuple[Item, ...]
    pending: tuple[Item, ...]
    cited: tuple[str, ...] = ()
    origin: Origin | None = None


def save_round(state: Any, message_id: str, ended: DelegatedRound) -> None:
    """Leave `ended` for the next call for the same message."""
    rounds = getattr(state, _ATTRIBUTE, {})
    setattr(state, _ATTRIBUTE, {**rounds, message_id: ended})


def load_round(state: Any, message_id: str) -> DelegatedRound | None:
    """Return what the round before left, if this call follows one."""
    found = getattr(state, _ATTRIBUTE, {}).get(message_id)
    return found if isinstance(found, DelegatedRound) else None


def continue_round(
    ended: DelegatedRound, parts: Sequence[ChatPart]
) -> ResponsesRequest | None:
    """Return the request after `ended`; None when a call of it has no output."""
    outputs = {s.call_id: s for s in parts if isinstance(s, ToolMessage)}
    calls = {item["call_id"]: item_type(item) for item in open_calls(ended.received)}
    if not calls or not all(call_id in outputs for call_id in calls):
        return None
    answers = [tool_message_item(outputs[call_id], calls) for call_id in calls]
    return next_request(ended.request, [*ended.received, *answers])
