"""Has OpenAI compare a request with that of the answer before it.

The response then says why the prompt cache missed (`prompt_cache_diagnostics`).
"""

from openai_responses.json_input import as_mapping, as_text, value_at
from openai_responses.requests.build import ResponsesRequest
from owui_manifold.call.context import CheckedCall
from owui_manifold.store.stored_chat import StoredChat

_MAX_ID_LENGTH = 200


def with_cache_comparison(
    call: CheckedCall, request: ResponsesRequest, stored: StoredChat | None
) -> ResponsesRequest:
    """Return a request that names the response before it, if that is wanted and known.

    Other servers refuse the field.
    """
    if stored is None or not call.endpoint.is_openai:
        return request
    if not call.config.expert.prompt_cache_diagnostics:
        return request
    earlier = _earlier_response_id(stored, call.caller.message_id)
    if not earlier or not call.resolve(request.model).facts.diagnostics:
        return request
    options = {
        **(request.prompt_cache_options or {}),
        "comparison_response_id": earlier,
    }
    return request.model_copy(update={"prompt_cache_options": options})


def _earlier_response_id(stored: StoredChat, answer_id: str) -> str:
    """Return the id of the response before an answer, or nothing.

    The host has that answer in front of this one's question, with the id in its usage.
    """
    answer = as_mapping(stored.messages.get(answer_id))
    question = as_mapping(stored.messages.get(as_text(answer.get("parentId"))))
    earlier = as_mapping(stored.messages.get(as_text(question.get("parentId"))))
    response_id = as_text(value_at(earlier, "usage", "response_id"))
    if not response_id.startswith("resp") or len(response_id) > _MAX_ID_LENGTH:
        return ""
    return response_id
