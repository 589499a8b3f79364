"""Files that code left in a container, fetched before it expires."""

from contextlib import aclosing
from urllib.parse import quote

from openai_responses.deadlines import Deadlines
from openai_responses.endpoint import Endpoint
from openai_responses.errors import UnreadableAnswer
from openai_responses.transport import Connections


async def container_file(
    endpoint: Endpoint,
    connections: Connections,
    ids: tuple[str, str],
    most_bytes: int,
    deadlines: Deadlines,
) -> bytes:
    """Return the bytes of a file; raises the errors of `transport`.

    `ids` are those of the container and of the file. A file of more than `most_bytes`
    is an UnreadableAnswer, and not read on.
    """
    container, file = (quote(part, safe="") for part in ids)
    path = f"/containers/{container}/files/{file}/content"
    found = bytearray()
    asked = connections.get(endpoint, path, deadlines)
    async with asked as answer, aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            found += chunk
            if len(found) > most_bytes:
                raise UnreadableAnswer(f"It has more than {most_bytes} bytes.")
    return bytes(found)
