"""When a message asks for a check of the set-up, and what is checked."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from openai_responses.transport import Connections
from owui_chat.kept_cards import ShownEvent
from owui_manifold.accounts import asked_endpoint
from owui_manifold.checkup import CHECK_COMMAND, Checkup
from owui_manifold.hosted_tools import hosted_tools
from owui_manifold.job import Asked, messages_of, model_of, overrides_of
from owui_manifold.offered_models import listed_models
from owui_manifold.settings import limits_of


def is_checkup(asked: Asked) -> bool:
    """Say whether an administrator asks for a check; others talk to the model."""
    messages = messages_of(asked.body)
    last: Mapping[str, Any] = messages[-1] if messages else {}
    said = last.get("content")
    is_command = isinstance(said, str) and said.strip() == CHECK_COMMAND
    return is_command and last.get("role") == "user" and asked.caller.is_admin


async def checkup_of(
    asked: Asked, connections: Connections
) -> AsyncGenerator[tuple[ShownEvent, str], None]:
    """Yield the events of a check; raises InvalidRequest for unusable settings."""
    valves, model = asked.valves, model_of(asked)
    features = asked.around.metadata.get("features")
    hosted = hosted_tools(valves, asked.user_valves, features, model)
    limits = limits_of(valves, tools_ran=False)
    checkup = Checkup(model, asked_endpoint(asked), connections, limits)
    listed = listed_models(valves, overrides_of(valves))
    async with aclosing(checkup.events(listed, hosted.items)) as events:
        async for event in events:
            yield event, ""
