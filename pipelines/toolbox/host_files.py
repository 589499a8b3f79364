"""Files of Open WebUI, over its API.

An uploaded file belongs to the owner of the key. Open WebUI lets another user read it
if a note of the file's owner names it and is shared with that user
(docs/reference/open-webui.md, "Events and stored files"). Open WebUI does not check
which files a question names, and the key may read everybody's: only the user's own are
read.
"""

import json
import re
from collections.abc import Mapping, Sequence
from secrets import token_hex
from typing import Any

from openai_responses.json_input import parse_json_object
from owui_chat.file_names import stored_name
from toolbox.remote_tools import RemoteConnection, RemoteError, run_with_timeout

_HOST = "Open WebUI"
_HOST_SECONDS = 30.0


class HostFiles:
    """The files of a user: those that are `attached` to a chat, by id, and new ones.

    Without an address, a key or a user each call raises RemoteError.
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
        self._connection = RemoteConnection(_HOST, "OPEN_WEBUI_URL")

    async def read(self, file_id: str) -> bytes | str:
        """Return the content of a file that the user owns, or why there is none."""
        path = f"files/{re.sub('[^A-Za-z0-9-]', '_', file_id)}"
        try:
            if (await self._call_json("GET", path)).get("user_id") != self._user_id:
                return "It belongs to somebody else."
            return await self._call("GET", f"{path}/content")
        except RemoteError as failed:
            return str(failed)

    async def store(self, name: str, content: bytes) -> str:
        """Store a file that the user can open, return its path; raises RemoteError.

        Its type is that of its ending: no type that a tool claims is used.
        """
        name, media_type = stored_name(name)
        edge = token_hex(16)
        head = (
            f'--{edge}\r\nContent-Disposition: form-data; name="file"; '
            f'filename="{_header_text(name)}"\r\n'
            f"Content-Type: {media_type}\r\n\r\n"
        )
        body = head.encode("utf-8", "replace") + content + f"\r\n--{edge}--".encode()
        kind = f"multipart/form-data; boundary={edge}"
        row = await self._call_json("POST", "files/?process=false", body, kind)
        path = f"/api/v1/files/{row.get('id')}/content"
        if row.get("user_id") != self._user_id:
            reader = {"principal_type": "user", "principal_id": self._user_id}
            files = [{"type": "file", "id": row.get("id")}]
            note = {
                "title": name,
                "data": {"content": {"md": f"Open it: {path}"}, "files": files},
                "access_grants": [{**reader, "permission": "read"}],
            }
            body = json.dumps(note).encode()
            made = await self._call_json("POST", "notes/create", body)
            if not made.get("access_grants"):  # the host leaves out what may not be
                raise RemoteError(
                    "The owner of OPEN_WEBUI_API_KEY may not share notes."
                )
        return path

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _call_json(self, *request: Any) -> Mapping[str, Any]:
        row = parse_json_object((await self._call(*request)).decode("utf-8", "replace"))
        if not row or not row.get("id"):
            raise RemoteError("OPEN_WEBUI_URL is not the address of Open WebUI.")
        return row

    async def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        kind: str = "application/json",
    ) -> bytes:
        if not (self._url and self._key and self._user_id):
            raise RemoteError(
                "An administrator has to set OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY in "
                "the valves of this pipeline."
            )
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": kind}

        async def exchange() -> bytes:
            url = f"{self._url}/api/v1/{path}"
            async with self._connection.send(method, url, headers, body) as response:
                if response.status != 200:
                    raise RemoteError(f"{_HOST} answered with HTTP {response.status}.")
                return await self._connection.read_body(response)

        return await run_with_timeout(exchange(), _HOST_SECONDS, _HOST)


def _header_text(text: str) -> str:
    """Return a text that can stand in a header of a form."""
    return re.sub(r'[^ -~\u00a0-\uffff]|["\\]', "_", text)
