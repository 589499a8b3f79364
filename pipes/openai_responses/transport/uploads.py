"""Uploads files to the Files API, from where code containers get them.

An uploaded file expires by itself: nothing has to be deleted, also if the host stops.
"""

from openai_responses.endings import UNREADABLE, unreadable_answer
from openai_responses.endpoint import Endpoint
from openai_responses.json_input import as_mapping, as_text
from openai_responses.transport.connections import Connections, EncodedBody
from openai_responses.transport.deadlines import Deadlines
from openai_responses.ulid import new_ulid

UPLOAD_SECONDS = 86_400
"""How long an uploaded file lives: a day. The API takes an hour to 30 days (guide "API
reference", "Upload file")."""


async def upload_file(
    endpoint: Endpoint,
    connections: Connections,
    name: str,
    content: bytes,
    deadlines: Deadlines,
) -> str:
    """Upload a file for code containers; return the id that it gets.

    Raises the same errors as `Connections.request`.
    """
    # Azure does not know the purpose `user_data`; its guide "Responses API" uses
    # `assistants` instead.
    fields = {
        "purpose": "assistants" if endpoint.is_azure else "user_data",
        "expires_after[anchor]": "created_at",
        "expires_after[seconds]": str(UPLOAD_SECONDS),
    }
    # The file and its fields as `multipart/form-data` (RFC 7578). Nobody can foresee what
    # ends them: a user who could would write it into a file, and what is taken instead.
    boundary = new_ulid()
    lines: list[bytes] = []
    for field, value in fields.items():
        lines += [
            f"--{boundary}".encode(),
            f'Content-Disposition: form-data; name="{field}"'.encode(),
            b"",
            value.encode(),
        ]
    # As browsers write a file's name into a header (HTML, "Form data").
    quoted = name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = f'Content-Disposition: form-data; name="file"; filename="{quoted}"'
    lines += [
        f"--{boundary}".encode(),
        head.encode(errors="replace"),
        b"Content-Type: application/octet-stream",
        b"",
        content,
        f"--{boundary}--".encode(),
        b"",
    ]
    media_type = f"multipart/form-data; boundary={boundary}"
    body = EncodedBody(b"\r\n".join(lines), media_type)
    async with connections.request(endpoint, "/files", body, deadlines) as answer:
        file_id = as_text(as_mapping(await answer.read_json()).get("id"))
    if not file_id:
        raise unreadable_answer(UNREADABLE)
    return file_id
