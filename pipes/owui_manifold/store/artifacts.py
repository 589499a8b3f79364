"""Stores the images and files of a run in the host before they are shown.

An event goes in; the same event with a `card` comes out.
"""

import asyncio
import base64
import hashlib
import re
from collections.abc import Iterable
from contextlib import suppress

from openai_responses.errors import AnswerTooLarge, ResponsesError
from openai_responses.items import (
    Item,
    content_parts,
    image_url,
    is_code,
    is_image_call,
    is_web_address,
    item_type,
    message_text,
)
from openai_responses.json_input import JsonObject
from openai_responses.loop.events import RunEvent
from openai_responses.redaction import describe_exception
from openai_responses.transport.connections import Connections, container_file
from openai_responses.transport.deadlines import Deadlines, Timeouts
from openai_responses.transport.stream import ItemDone, PartialImage
from owui_chat.file_names import image_name, shorten_name
from owui_chat.files import container_addresses, file_citations
from owui_chat.wording import as_plain_markdown
from owui_host.files import store_file
from owui_host.users import user_model
from owui_manifold.call.context import Call

_MAX_FETCHED = 32 * 1024**2
"""Bytes of one file of a container; it is in memory until the host has stored it."""
_MAX_FILES = 20
"""Files of one text."""
_MAX_FILES_OF_RUN = 200
"""Of all texts: each may be new, and stays in the user's account."""

_NO_IMAGE = "The model's server gave an image that cannot be read."
_NOT_STORED = "{} could not be stored in Open WebUI, for example because of its size."
_GONE = "{} could not be fetched: the container that held it has expired."
_TOO_BIG = f"{{}} was not fetched: it is larger than {_MAX_FETCHED // 1024**2} MB."
_NOT_FETCHED = "{} could not be fetched from where the code ran."
_ERROR = re.compile(rb'\s*\{\s*"error"\s*:')
"""How an error begins that a gateway sends with a status of 200."""


class ArtifactStore:
    """Stores the pictures and files of one run, each content once."""

    def __init__(
        self, call: Call, connections: Connections, fetch_timeouts: Timeouts
    ) -> None:
        """Store files for the current user, at the message that is being written.

        `fetch_timeouts` hold for fetching the files of one text from a container.
        """
        self._call = call
        self._connections = connections
        self._fetch_timeouts = fetch_timeouts
        self._files_left = _MAX_FILES_OF_RUN
        self._entries: dict[str, Item | None] = {}
        """The entries of stored files by the digests of their contents; None for what
        the host refused."""

    async def add_card(self, event: RunEvent) -> RunEvent | None:
        """Return `event` with what was stored for it; None for what is not shown.

        Plain clients get images inside the answer, not on a card, and cited files only
        in a stream, where their addresses are below the text.
        """
        caller = self._call.caller
        if isinstance(event, PartialImage):
            # They replace each other only in saved chats; in temporary ones the page
            # would show all of them.
            return event if caller.may_have_row else None
        if not isinstance(event, ItemDone) or self._call.host.request is None:
            return event
        item = event.item
        card: JsonObject = {}
        if is_image_call(item) and caller.is_open_webui and item.get("result"):
            url = image_url(item)
            if is_web_address(url):
                # The page fetches it: whatever this server fetched could be one of its
                # own network.
                card = {"address": url}
            else:
                card = await self._store_pictures([url]) or {"notes": [_NO_IMAGE]}
        elif is_code(item) and caller.is_open_webui:
            outputs = content_parts(item.get("outputs"))
            card = await self._store_pictures(str(part.get("url")) for part in outputs)
        elif item_type(item) == "message" and (caller.is_open_webui or caller.streams):
            most = min(_MAX_FILES, self._files_left)
            citations = file_citations(item)[:most]
            self._files_left -= len(citations)
            if citations:
                card = await self._store_cited_files(citations, message_text(item))
        return event._replace(card=card) if card else event

    async def _store_pictures(self, urls: Iterable[str]) -> JsonObject:
        """Return the card of images that came whole, as data URLs."""
        files: list[Item] = []
        notes: list[str] = []
        for url in urls:
            kind, content = await asyncio.to_thread(_read_data_url, url)
            if not content:
                continue
            entry = await self._store_once(image_name(kind), content)
            if entry:
                files.append(entry)
            else:
                notes.append(_NOT_STORED.format("The image"))
        return _build_card(files=files, notes=notes)

    async def _store_cited_files(
        self, citations: Iterable[Item], text: str
    ) -> JsonObject:
        """Return the card of a text that names files in a container."""
        files: list[Item] = []
        notes: list[str] = []
        links: dict[str, str] = {}
        deadlines = Deadlines(self._fetch_timeouts)
        shown_ids = {entry["id"] for entry in self._entries.values() if entry}
        named = container_addresses(text)
        for citation in citations:
            # Without a directory. A path may have millions of parts; `pathlib` would make
            # an object of each.
            path = str(citation.get("filename") or "")
            name = shorten_name(path.rpartition("/")[2]) or "file"
            entry = await self._store_cited_file(citation, name, deadlines)
            if isinstance(entry, str):
                notes.append(f"*{as_plain_markdown(entry)}*")
                continue
            addresses = named.get(name, [])
            for address in addresses:
                links[address] = str(entry["url"])
            is_image = entry["type"] == "image"
            if is_image and entry["id"] not in shown_ids:
                files.append(entry)
                shown_ids.add(entry["id"])
            elif not is_image and not addresses:
                notes.append(f"[{as_plain_markdown(name)}]({entry['url']})")
        return _build_card(files=files, notes=notes, links=links)

    async def _store_cited_file(
        self, citation: Item, name: str, deadlines: Deadlines
    ) -> Item | str:
        """Fetch a file from its container and store it; return why if that fails."""
        try:
            content = await container_file(
                self._call.endpoint,
                self._connections,
                str(citation.get("container_id")),
                str(citation.get("file_id")),
                _MAX_FETCHED,
                deadlines,
            )
        except AnswerTooLarge:
            return _TOO_BIG.format(name)
        except ResponsesError as error:
            self._call.log.warn(f"no container file: {error}")
            reason = _GONE if error.status == 404 else _NOT_FETCHED
            return reason.format(name)
        if _ERROR.match(content) and not name.lower().endswith(".json"):
            self._call.log.warn("no container file: an error came in its place")
            return _NOT_FETCHED.format(name)
        entry = await self._store_once(name, content)
        return entry or _NOT_STORED.format(name)

    async def _store_once(self, name: str, content: bytes) -> Item | None:
        """Return the entry of a stored file; None if nothing is stored.

        The same content is stored once in a run. It belongs to the user who asked: if
        the host names no one, or somebody whom it no longer knows, there is no owner.
        """
        digest = (await asyncio.to_thread(hashlib.sha256, content)).hexdigest()
        if digest in self._entries:
            return self._entries[digest]
        caller = self._call.caller
        if not caller.user_id:
            return None
        try:
            user = await user_model(caller.user_id)
            if user is None:
                return None
            request = self._call.host.request
            entry = await store_file(request, name, content, caller.place, user)
        except Exception as error:  # the host's database, or its storage, is away
            self._call.log.warn(f"no file stored: {describe_exception(error)}")
            return None
        self._entries[digest] = entry
        return entry


def _build_card(**parts: object) -> JsonObject:
    """Return a card without its empty parts."""
    return {name: value for name, value in parts.items() if value}


def _read_data_url(url: str) -> tuple[str, bytes]:
    """Return the type and the bytes of a picture; no bytes for any other address."""
    head, _, encoded = url.partition(";base64,")
    kind = head.lower().partition("data:")[2].partition(";")[0]
    kind = "image/jpeg" if kind == "image/jpg" else kind
    with suppress(ValueError):
        if kind.startswith("image/"):
            return kind, base64.b64decode("".join(encoded.split()), validate=True)
    return kind, b""
