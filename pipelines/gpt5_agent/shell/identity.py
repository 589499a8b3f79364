"""What proves to a server who asks: a token of Entra ID, headers about the user."""

import os
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import quote

from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.settings import (
    PipelineCaller,
    build_endpoint,
    forwards_user_info,
)
from gpt5_agent.shell.valves import Valves
from openai_responses.endpoint import Endpoint
from openai_responses.transport.entra import EntraTokens, entra_scope

_HEADERS: Mapping[str, tuple[str, str]] = {
    "name": ("USER_INFO_HEADER_USER_NAME", "User-Name"),
    "id": ("USER_INFO_HEADER_USER_ID", "User-Id"),
    "email": ("USER_INFO_HEADER_USER_EMAIL", "User-Email"),
    "role": ("USER_INFO_HEADER_USER_ROLE", "User-Role"),
    "chat": ("SESSION_INFO_HEADER_CHAT_ID", "Chat-Id"),
}
"""Variables and names of Open WebUI (docs/gateways.md)."""


async def open_endpoint(
    valves: Valves, caller: PipelineCaller, tokens: EntraTokens, log: AgentLog
) -> Endpoint:
    """Return where requests go, with what proves who asks; raises InvalidRequest."""
    endpoint = build_endpoint(valves, log)
    if valves.AUTH == "entra_id":
        scope = valves.AUTH_SCOPE.strip() or entra_scope(endpoint)
        endpoint = replace(endpoint, token=await tokens.token(scope))
        log.hide([endpoint.token])
    if valves.FORWARD_USER_INFO in ("always", *["auto"] * endpoint.is_gateway):
        headers = {**_user_headers(caller), **endpoint.extra_headers}
        endpoint = replace(endpoint, extra_headers=headers)
    return endpoint


def _user_headers(caller: PipelineCaller) -> dict[str, str]:
    if not (caller.user and forwards_user_info()):
        return {}
    told = {**caller.user, "chat": caller.chat_id}
    return {
        os.environ.get(f"FORWARD_{variable}", f"X-OpenWebUI-{name}"): quote(
            told[key].strip(), safe=" @+:", errors="replace"
        )
        for key, (variable, name) in _HEADERS.items()
        if told.get(key)
    }
