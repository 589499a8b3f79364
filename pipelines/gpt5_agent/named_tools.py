"""The servers of tools that the administrator named, with their secrets looked up."""

from gpt5_agent.sealing import revealed
from openai_responses.errors import InvalidRequest
from toolbox.tool_servers import NamedServers


def named_servers(
    mcp: str, openapi: str, *, allows_programs: bool = False
) -> NamedServers:
    """Return the servers; raises InvalidRequest where a whole valve cannot be read."""
    return NamedServers(
        revealed(mcp, "MCP_SERVERS_JSON"),
        revealed(openapi, "OPENAPI_SERVERS_JSON"),
        allows_programs,
        _revealed_or_none,
    )


def _revealed_or_none(text: str) -> str | None:
    """Return a secret, or None: the entry that needs it is then left out alone."""
    try:
        return revealed(text, "an entry")
    except InvalidRequest:
        return None
