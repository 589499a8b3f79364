"""Models of a Pipelines server, where the agent pipeline runs.

The pipe asks the filter for its own models. For these Open WebUI calls the filter: its
`inlet` before the question, its `stream` for each event of the answer.
"""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from openai_responses.clock import utc_today
from openai_responses.json_input import JsonObject, as_mapping, as_text, value_at
from openai_responses.models.usage import Usage, read_usage
from owui_administration.usage_table import UsageRow
from shells.administration import MILLIONTHS, UNKNOWN_CALL, CallFacts


class LimitReached(Exception):
    """A question is refused; the host shows the message in the chat."""


def agent_facts(user: JsonObject, model: str) -> CallFacts:
    """Return the facts of a question to an agent; `user` is the host's `__user__`."""
    return {
        **UNKNOWN_CALL,
        "user_id": as_text(user.get("id")),
        "email": as_text(user.get("email")),
        "role": as_text(user.get("role")),
        "model": model,
    }


def find_agent_model(model: JsonObject, request: Any) -> str:
    """Return the model of a Pipelines server that the host asks; empty for others.

    It is the id as the host lists it, with the server's in front.
    `model` is the host's `__model__`. One of the workspace has only the id of its base,
    which the application that has got the `request` knows.
    """
    base_id = value_at(model, "info", "base_model_id")
    if base_id:
        if request is None:
            return ""
        model = as_mapping(request.app.state.MODELS.get(base_id))
    if "pipeline" not in model:
        return ""
    return str(model.get("id"))


def listed_name(model_id: str) -> str:
    """Return the name by which a Pipelines server lists a model."""
    return model_id.split(".", 1)[-1]


def is_legacy(metadata: JsonObject) -> bool:
    """Say whether the host chooses the tools of a chat in a request of its own.

    That is a task of the same model, for which the host calls no filter
    (utils/middleware.py:1044 of 0.12.4).
    """
    return bool(value_at(metadata, "params", "function_calling") == "legacy")


_FLAG = TypeAdapter(bool)


def wants_stream(body: JsonObject) -> bool:
    """Say whether a request asks for a stream.

    Open WebUI takes every text for a yes (`form_data.get("stream")`, 0.12.4), also
    "false"; a Pipelines server lets pydantic read the field, and streams if there is
    none. Only an answer with a stream shows the filter its usage, so whatever is not
    plainly a yes is a no, and the filter tells it to both of them.
    """
    try:
        return _FLAG.validate_python(body.get("stream"))
    except ValidationError:
        return False


def usage_row(user_id: object, model: str, usage: JsonObject) -> UsageRow:
    """Return what an answer reports, in the API's names or those of Chat Completions.

    A cost that is not reported counts as none.
    """
    counts = read_usage(usage) or Usage()
    return UsageRow(
        user_id=as_text(user_id),
        day=utc_today().isoformat(),
        model=model,
        requests=1,
        input=counts.input,
        cached=counts.cached,
        output=counts.output,
        money=round((counts.cost or 0) * MILLIONTHS),
    )
