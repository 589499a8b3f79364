"""Whose key a request is sent with: the pipe's, or the own one of the user who asks."""

from dataclasses import replace

from openai_responses.endings import Ending
from openai_responses.endpoint import Endpoint
from openai_responses.errors import InvalidRequest
from owui_manifold.job import Asked
from owui_manifold.settings import endpoint_of

_NO_OWN_KEY = (
    "This pipe wants an OpenAI API key of your own. Set API_KEY in your settings of "
    "this pipe: the slider icon beside the chat input, or Controls > Valves."
)
_WRONG_OWN_KEY = (
    "OpenAI does not accept your own API key. Check API_KEY in your settings of this "
    "pipe: the slider icon beside the chat input, or Controls > Valves."
)
_BILLED_HEADERS = frozenset(
    {"authorization", "api-key", "openai-organization", "openai-project"}
)
_UNAUTHORIZED = 401


def own_key(asked: Asked) -> str:
    """Return the user's own key, if the administrator lets them use one."""
    allowed = asked.valves.USER_API_KEYS != "off"
    return asked.user_valves.API_KEY.strip() if allowed else ""


def asked_endpoint(asked: Asked) -> Endpoint:
    """Return where a user's requests go; raises InvalidRequest for what cannot work.

    What names the account of the administrator goes with the administrator's key only.
    """
    key = own_key(asked)
    if not key:
        if asked.valves.USER_API_KEYS == "required" and not asked.caller.is_admin:
            raise InvalidRequest(_NO_OWN_KEY)
        return endpoint_of(asked.valves)
    endpoint = endpoint_of(asked.valves, key)
    rest = {
        name: text
        for name, text in endpoint.extra_headers.items()
        if name.lower() not in _BILLED_HEADERS
    }
    return replace(endpoint, organization="", project="", extra_headers=rest)


def ending_for(asked: Asked, ending: Ending, status: int | None) -> Ending:
    """Return the ending of a run; a wrong key is told to the one who can correct it."""
    if status == _UNAUTHORIZED and own_key(asked):
        return replace(ending, sentence=_WRONG_OWN_KEY)
    return ending
