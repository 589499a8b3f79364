"""What an administrator learns of REMOTE_MCP_SERVERS_JSON: in the log and in the chat."""

from openai_responses.mcp_servers import read_servers
from owui_manifold.job import Job


def remote_notices(job: Job) -> list[str]:
    """Write what is wrong with the servers to the log; return what this chat shows.

    Only administrators are shown anything. What keeps a server out is told at every
    answer, what of one is not sent once to the log and once in a chat.
    """
    asked = job.asked
    if asked.caller.task or job.before:
        return []
    servers = read_servers(asked.valves.REMOTE_MCP_SERVERS_JSON)
    is_news, is_admin = asked.lessons.is_news, asked.caller.is_admin
    shown = [*servers.complaints] if is_admin else []
    written = [*servers.complaints]
    for note in servers.notes:
        written += [note] if is_news(f"log: {note}") else []
        shown += [note] if is_admin and is_news(f"chat: {note}") else []
    for line in written:
        asked.log.line("WARNING", line)
    return shown
