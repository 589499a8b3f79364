"""Files of Open WebUI, over its API.

An uploaded file belongs to the owner of the key, usually an administrator; nothing sets
another owner (docs/reference/open-webui.md, "Events and stored files"). What a user's
Python wrote must not lie in an administrator's account, so it is sent only to the user's
own. The API does not say whose a key is (0.12.4, routers/auths.py: only to a browser's
session), but each stored file says it: a file without content of the user is stored, and
removed, before the first one. Open WebUI does not check which files a question names,
and the key may read everybody's: only the user's own are read.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from typing import Any

import aiohttp

from gpt5_agent.ports import HostFileError
from openai_responses.json_input import parse_json_object
from openai_responses.transport.connections import new_session
from openai_responses.transport.unpacking import Unpacker, UnpackingError
from owui_chat.file_names import stored_name

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
"""Of one request, from its connection to the last byte of its answer."""
_MAX_ANSWER_BYTES = 8 * 1024 * 1024
_OWNER_CHECK = ("account-check.bin", b"-")
"""Name and content of a file that shows whose account it is in; the host stores no empty
one (0.12.4, storage/provider.py)."""
_NOT_THE_USERS = (
    "A file has to belong to the person who asks, and OPEN_WEBUI_API_KEY is the key of "
    "another account."
)


class HostFiles:
    """The files of a user: those that are `attached` to a chat, by id, and new ones.

    Without an address, a key or a user nothing is read or stored: `store` raises
    HostFileError, `read` returns why. No redirection is followed, because the key would
    go along.
    """

    def __init__(
        self,
        url: str,
        key: str,
        user_id: str = "",
        attached: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Open nothing yet; `attached` are ids and names."""
        self.attached = attached
        self._url = url.strip().rstrip("/")
        self._key = key
        self._user_id = user_id
        self._owner_id = ""
        self._session: aiohttp.ClientSession | None = None

    async def read(self, file_id: str) -> bytes | str:
        """Return the content of a file that the user owns, or why there is none."""
        path = f"files/{re.sub('[^A-Za-z0-9-]', '_', file_id)}"
        try:
            row = _read_row(await self._call("GET", path))
            if row.get("user_id") != self._user_id:
                return "It belongs to someone else."
            return await self._call("GET", f"{path}/content")
        except HostFileError as failed:
            return str(failed)

    async def store(self, name: str, content: bytes) -> str:
        """Store a file of the user, return its path.

        Its type is that of its ending: no type that a tool claims is used. Raises
        HostFileError, also if the key is not the user's own.
        """
        if not self._owner_id:
            # Stop between the two requests leaves the file of one byte in that account:
            # what would remove it then had to outlive the answer.
            row = await self._upload(*_OWNER_CHECK)
            await self._remove(row)
            self._owner_id = str(row.get("user_id"))
        if self._owner_id != self._user_id:
            raise HostFileError(_NOT_THE_USERS)
        row = await self._upload(name, content)
        if row.get("user_id") != self._user_id:
            await self._remove(row)
            raise HostFileError(_NOT_THE_USERS)
        return f"/api/v1/files/{row.get('id')}/content"

    async def _upload(self, name: str, content: bytes) -> Mapping[str, Any]:
        """Store a file, return its row; raises HostFileError."""
        name, media_type = stored_name(name)
        boundary = token_hex(16)
        head = (
            f"--{boundary}\r\n"
            'Content-Disposition: form-data; name="file"; '
            f'filename="{_header_text(name)}"\r\n'
            f"Content-Type: {_header_text(media_type)}\r\n\r\n"
        )
        end = f"\r\n--{boundary}--"
        body = head.encode("utf-8", "replace") + content + end.encode()
        form_type = f"multipart/form-data; boundary={boundary}"
        path = "files/?process=false"
        return _read_row(await self._call("POST", path, body, form_type))

    async def _remove(self, row: Mapping[str, Any]) -> None:
        """Remove a stored file.

        Without an index of the file, the host removes it and answers HTTP 400 (0.12.4,
        routers/files.py, `delete_file_by_id`).
        """
        with suppress(HostFileError):
            await self._call("DELETE", f"files/{row.get('id')}")

    async def aclose(self) -> None:
        session = self._session
        self._session = None
        if session is not None:
            await session.close()

    async def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        media_type: str = "application/json",
    ) -> bytes:
        """Return the body of an answer; raises HostFileError."""
        if not self._user_id:
            raise HostFileError(
                "A file has to belong to a person, and who asks is unknown."
            )
        if not (self._url and self._key):
            raise HostFileError(
                "An administrator has to set OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY in "
                "the valves of this pipeline."
            )
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": media_type,
        }
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._exchange(method, path, headers, body)
        except TimeoutError:
            raise HostFileError(
                f"Open WebUI did not answer within {_ANSWER_SECONDS:g} s."
            ) from None

    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> bytes:
        """Send a request, return the body of its answer; raises HostFileError."""
        if self._session is None:  # it stores no cookie and uses no proxy
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
            self._session = new_session(timeout=timeout)
        request = self._session.request(
            method,
            f"{self._url}/api/v1/{path}",
            headers=headers,
            data=body,
            allow_redirects=False,
        )
        try:
            async with request as response:
                status = response.status
                if 300 <= status < 400:
                    raise HostFileError(
                        f"Open WebUI redirects requests (HTTP {status}). Redirects are "
                        "not followed, because they would send the key to another "
                        "address. An administrator has to check the address in "
                        "OPEN_WEBUI_URL."
                    )
                if status != 200:
                    raise HostFileError(f"Open WebUI answered with HTTP {status}.")
                return await _read_body(response)
        except (aiohttp.ClientError, OSError, ValueError):
            raise HostFileError(
                "Open WebUI cannot be reached, or its answer was interrupted."
            ) from None


def _read_row(answer: bytes) -> Mapping[str, Any]:
    """Return the row of a file; raises HostFileError for anything else."""
    row = parse_json_object(answer.decode("utf-8", "replace"))
    if not row or not row.get("id"):
        raise HostFileError("OPEN_WEBUI_URL is not the address of Open WebUI.")
    return row


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    """Return a body; raises HostFileError if it is too long.

    A proxy in front of the host may pack it.
    """
    body = bytearray()
    arrived = 0
    unpacker = Unpacker(",".join(response.headers.getall("Content-Encoding", [])))
    while True:
        chunk = await response.content.readany()
        arrived += len(chunk)
        try:
            for text in unpacker.feed(chunk):
                body += text
                if len(body) > _MAX_ANSWER_BYTES:
                    break
        except UnpackingError:
            raise HostFileError(
                "Open WebUI sent a compressed answer, which cannot be read."
            ) from None
        if max(len(body), arrived) > _MAX_ANSWER_BYTES:
            raise HostFileError(f"Open WebUI sent more than {_MAX_ANSWER_BYTES} bytes.")
        if not chunk:
            return bytes(body)


def _header_text(text: str) -> str:
    """Return a text that can be part of a header of a form."""
    return re.sub(r'[^ -~\u00a0-\uffff]|["\\]', "_", text)
