"""What a person switched on in the composer, told by the companion filter.

It stands in `__metadata__["openai_responses"]`: `version`, `web_search`,
`code_interpreter` (true) and `thinking` (an effort).
"""

from collections.abc import Mapping
from typing import Any

from openai_responses.models import REASONING_EFFORTS
from owui_manifold.valves import UserValves

_KEY = "openai_responses"
_WISHES_VERSION = 1
_SWITCHES = {"web_search": "WEB_SEARCH", "code_interpreter": "CODE_INTERPRETER"}

OTHER_VERSION = (
    "The filter OpenAI Responses Controls is of another version than this pipe, so its "
    "switches do nothing. An administrator has to install both from the same release."
)


def with_wishes(user: UserValves, metadata: Mapping[str, Any]) -> UserValves:
    """Return a user's settings as the switches change them for this message."""
    told = metadata.get(_KEY)
    if not isinstance(told, Mapping) or told.get("version") != _WISHES_VERSION:
        return user
    wishes = {valve: "on" for switch, valve in _SWITCHES.items() if told.get(switch)}
    if told.get("thinking") in REASONING_EFFORTS:
        wishes["REASONING_EFFORT"] = str(told["thinking"])
    return user.model_copy(update=wishes)


def is_of_another_version(metadata: Mapping[str, Any]) -> bool:
    """Say whether a filter spoke that this pipe does not understand."""
    told = metadata.get(_KEY)
    return isinstance(told, Mapping) and told.get("version") != _WISHES_VERSION
