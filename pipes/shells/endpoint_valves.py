"""Where requests go, by the valves that pipe and agents have in common."""

import os
from collections.abc import Mapping

from openai_responses.endpoint import Endpoint, bare_key
from openai_responses.errors import InvalidRequest
from openai_responses.json_input import parse_string_map
from settings.shared_valves import SharedValves
from shells.valve_messages import HEADERS_EXAMPLE, Shell, valve_error


def environment_key() -> str:
    """Return the API key of the server's environment; empty without one."""
    return bare_key(os.environ.get("OPENAI_API_KEY", ""))


def missing_key_error(shell: Shell) -> InvalidRequest:
    """Return the error of a shell whose administrator has set no key."""
    return InvalidRequest(
        f"This {shell.noun} has no API key yet. An administrator has to set API_KEY in "
        f"its valves ({shell.valves_page}).",
        remedy="setup",
    )


def read_headers(text: str, shell: Shell) -> Mapping[str, str]:
    """Return the headers of EXTRA_HEADERS; raises InvalidRequest."""
    headers = parse_string_map(text)
    if headers is None:
        problem = "EXTRA_HEADERS is not a JSON object with texts as values"
        raise valve_error(problem, shell, HEADERS_EXAMPLE)
    return headers


def endpoint_of_valves(
    valves: SharedValves,
    *,
    api_key: str,
    proxy: str,
    headers: Mapping[str, str],
    token: str = "",
) -> Endpoint:
    """Return the endpoint of the valves.

    The secrets are arguments, because the agents' valves may hold them encrypted.
    """
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key=api_key,
        token=token,
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers=headers,
        verify_ssl=valves.VERIFY_SSL,
        ca_bundle=valves.CA_BUNDLE.strip(),
        proxy=proxy,
        compatibility=valves.COMPATIBILITY,
    )
