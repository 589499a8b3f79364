"""The request for a small task of the host: a title, tags, follow-up questions."""

from gpt5_agent.asked import AgentAsked
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import ResponsesRequest, Settings, build_request
from owui_chat.input.history import build_input
from owui_chat.input.tasks import task_format, task_messages
from owui_chat.messages import parse_messages

_NOT_FOR_TASKS = (
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "reasoning",
    "reasoning_effort",
    "text",
    "verbosity",
    "response_format",
)


def task_request(asked: AgentAsked, task: str) -> ResponsesRequest:
    """Return the request for a task: short, without tools, policies or memory.

    Where the host reads the answer as JSON, the model is held to that form.
    Raises InvalidRequest for what cannot be sent.
    """
    model = resolve_model(asked.model)
    messages = task_messages(list(asked.messages))
    instructions, stretches = parse_messages(messages)
    body = {k: v for k, v in asked.body.items() if k not in _NOT_FOR_TASKS}
    form = task_format(task, messages)
    if form and model.facts.known_family:
        body["text"] = {"format": form}
    settings = Settings(
        effort=model.lowest_effort(), stream=False, encrypted_reasoning=False
    )
    items = build_input(stretches, {}, None)
    return build_request(model, instructions, items, body, settings)
