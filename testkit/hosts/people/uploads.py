"""Files that a person attaches in the page."""

import io

import aiohttp

from hosts.people.client import Json
from hosts.people.users import User


async def attach(
    user: User, name: str, content: bytes, kind: str, *, process: bool = True
) -> Json:
    """Upload a file; return it as the page then puts it at the message.

    With `process` the server reads its text for retrieval, as for the page, which waits
    until that is done before it sends a message.
    """
    form = aiohttp.FormData()
    form.add_field("file", io.BytesIO(content), filename=name, content_type=kind)
    query = f"process={str(process).lower()}&process_in_background=false"
    address = f"{user.url}/api/v1/files/?{query}"
    async with user.http.post(address, data=form, headers=user.headers) as response:
        response.raise_for_status()
        file_id = (await response.json())["id"]
    # What came of the reading is not in that answer; the page asks again as well.
    stored = await user.call("GET", f"/api/v1/files/{file_id}")
    return attached(file_id, name, kind) | {"file": stored}


def attached(file_id: str, name: str, kind: str) -> Json:
    """A file at a message, by its id."""
    return {
        "type": "image" if kind.startswith("image/") else "file",
        "id": file_id,
        "url": file_id,
        "name": name,
        "content_type": kind,
        "collection_name": "",
        "status": "uploaded",
        "error": "",
        "itemId": file_id,
    }
