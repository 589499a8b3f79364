"""Uploads files to the Files API, from where code containers get them.

An uploaded file expires by itself: nothing has to be deleted, also if the host stops.
"""

from collections.abc import Mapping
from typing import NamedTuple

from openai_responses.digest import hex_digest
from openai_responses.endings import UNREADABLE
from openai_responses.endpoint import Endpoint
from openai_responses.errors import UnreadableAnswer
from openai_responses.json_input import as_mapping, as_text
from openai_responses.transport.connections import Connections, Deadlines, EncodedBody

UPLOAD_SECONDS = 86_400
"""How long an uploaded file lives: a day. The API takes an hour to 30 days (guide "API
reference", "Upload file")."""


class Upload(NamedTuple):
    """A file to upload."""

    name: str
    content: bytes


async def upload_file(
    endpoint: Endpoint, connections: Connections, file: Upload, deadlines: Deadlines
) -> str:
    """Upload a file for code containers; return the id that it gets.

    Raises the same errors as `Connections.request`.
    """
    body = _multipart_body(file, _upload_fields(endpoint))
    async with connections.request(endpoint, "/files", body, deadlines) as answer:
        file_id = as_text(as_mapping(await answer.read_json()).get("id"))
    if not file_id:
        raise UnreadableAnswer(UNREADABLE.sentence, UNREADABLE.fault)
    return file_id


def _upload_fields(endpoint: Endpoint) -> Mapping[str, str]:
    """Return the fields that go with the file.

    Azure does not know the purpose `user_data`; its guide "Responses API" uses
    `assistants` instead.
    """
    purpose = "assistants" if endpoint.is_azure else "user_data"
    return {
        "purpose": purpose,
        "expires_after[anchor]": "created_at",
        "expires_after[seconds]": str(UPLOAD_SECONDS),
    }


def _multipart_body(file: Upload, fields: Mapping[str, str]) -> EncodedBody:
    """Return a file and its fields as `multipart/form-data` (RFC 7578)."""
    boundary = hex_digest(f"{file.name} {len(file.content)}")
    while boundary.encode() in file.content:
        boundary = hex_digest(boundary)
    name_field = f'name="file"; filename="{_quoted_name(file.name)}"'
    lines: list[bytes] = []
    for name, value in fields.items():
        lines += [
            f"--{boundary}".encode(),
            f'Content-Disposition: form-data; name="{name}"'.encode(),
            b"",
            value.encode(),
        ]
    lines += [
        f"--{boundary}".encode(),
        f"Content-Disposition: form-data; {name_field}".encode(errors="replace"),
        b"Content-Type: application/octet-stream",
        b"",
        file.content,
        f"--{boundary}--".encode(),
        b"",
    ]
    return EncodedBody(b"\r\n".join(lines), f"multipart/form-data; boundary={boundary}")


def _quoted_name(name: str) -> str:
    """Return a file's name as browsers write it into a header (HTML, "Form data")."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
