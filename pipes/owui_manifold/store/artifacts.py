"""Stores the images and files of a run in the host before they are shown.

An event goes in; the same event with a `card` comes out.
"""

import asyncio
import base64
import hashlib
from collections.abc import Iterable
from contextlib import suppress

from openai_responses.errors import AnswerTooLarge, ResponsesError
from openai_responses.items import (
    Item,
    content_parts,
    image_url,
    is_code,
    is_image_call,
    item_type,
    message_text,
)
from openai_responses.json_input import JsonObject
from openai_responses.loop.events import RunEvent
from openai_responses.transport.connections import (
    Connections,
    Deadlines,
    Timeouts,
    container_file,
)
from openai_responses.transport.stream import ItemDone, PartialImage
from owui_chat.file_names import StoredName, image_name, shorten_name, stored_name
from owui_chat.files import container_addresses, file_citations
from owui_host.files import NewFile, store_file
from owui_host.users import user_model
from owui_manifold.call.context import CheckedCall

_MAX_FETCHED = 32 * 1024**2
"""Bytes of one file of a container; it is in memory until the host has stored it."""
_MAX_FILES = 20
"""Files of one text."""

_NOT_STORED = "{} could not be stored in Open WebUI, for example because of its size."
_GONE = "{} could not be fetched: the container that held it has expired."
_TOO_BIG = f"{{}} was not fetched: it is larger than {_MAX_FETCHED // 1024**2} MB."
_NOT_FETCHED = "{} could not be fetched from where the code ran."


class ArtifactStore:
    """Stores the pictures and files of one run, each content once."""

    def __init__(
        self, call: CheckedCall, connections: Connections, patience: Timeouts
    ) -> None:
        """Store files for the current user, at the message that is being written.

        `patience` holds for fetching the files of one text from a container.
        """
        self._call = call
        self._connections = connections
        self._patience = patience
        self._stored: dict[str, Item | None] = {}
        """The entries of stored files by the digests of their contents; None for what
        the host refused."""

    async def stored(self, event: RunEvent) -> RunEvent | None:
        """Return `event` with what was stored for it; None for what is not shown.

        Partial images replace each other only in saved chats; in temporary ones the
        page would show all of them.
        """
        if isinstance(event, PartialImage):
            return event if self._call.caller.may_have_row else None
        if not isinstance(event, ItemDone) or self._call.host.request is None:
            return event
        card = await self._card(event.item)
        return event._replace(card=card) if card else event

    async def _card(self, item: Item) -> JsonObject:
        """Return what to show with an item.

        Plain clients get images inside the answer, not on a card, and cited files only
        in a stream, where their addresses stand below the text.
        """
        caller = self._call.caller
        host_reads = caller.host_reads
        if is_image_call(item) and host_reads and item.get("result"):
            return await self._pictures([image_url(item)])
        if is_code(item) and host_reads:
            outputs = content_parts(item.get("outputs"))
            return await self._pictures(str(part.get("url")) for part in outputs)
        cited = file_citations(item) if host_reads or caller.streams else []
        if item_type(item) == "message" and cited:
            return await self._cited(cited[:_MAX_FILES], message_text(item))
        return {}

    async def _pictures(self, urls: Iterable[str]) -> JsonObject:
        """Return the card of images that came whole, as data URLs."""
        files: list[Item] = []
        notes: list[str] = []
        for url in urls:
            kind, content = await asyncio.to_thread(_read_data_url, url)
            if content:
                stored = await self._store(image_name(kind), content)
                if stored:
                    files.append(stored)
                else:
                    notes.append(_NOT_STORED.format("The image"))
        return _filled_card(files=files, notes=notes)

    async def _cited(self, cited: Iterable[Item], text: str) -> JsonObject:
        """Return the card of a text that names files in a container."""
        files: list[Item] = []
        notes: list[str] = []
        links: dict[str, str] = {}
        deadlines = Deadlines(self._patience)
        shown_ids = {file["id"] for file in self._stored.values() if file}
        for citation in cited:
            name = _file_name(citation)
            stored = await self._fetched(citation, name, deadlines)
            addresses = container_addresses(text, name)
            if isinstance(stored, str):
                notes.append(f"*{stored}*")
                continue
            links |= {address: str(stored["url"]) for address in addresses}
            is_image = stored["type"] == "image"
            if is_image and stored["id"] not in shown_ids:
                files.append(stored)
                shown_ids.add(stored["id"])
            elif not is_image and not addresses:
                notes.append(f"[{name}]({stored['url']})")
        return _filled_card(files=files, notes=notes, links=links)

    async def _fetched(
        self, citation: Item, name: str, deadlines: Deadlines
    ) -> Item | str:
        """Return a stored file of a container, or why there is none."""
        container_and_file = (
            str(citation.get("container_id")),
            str(citation.get("file_id")),
        )
        try:
            content = await container_file(
                self._call.endpoint,
                self._connections,
                container_and_file,
                _MAX_FETCHED,
                deadlines,
            )
        except AnswerTooLarge:
            return _TOO_BIG.format(name)
        except ResponsesError as error:
            self._call.log.warn(f"no container file: {error}")
            return (_GONE if error.status == 404 else _NOT_FETCHED).format(name)
        stored = await self._store(stored_name(name), content)
        return stored or _NOT_STORED.format(name)

    async def _store(self, name: StoredName, content: bytes) -> Item | None:
        """Store a file; the same content is stored and shown once in a run.

        It belongs to the person who asked. If the host names nobody, or somebody whom
        it no longer knows, nothing is stored: there is no other owner.
        """
        digest = (await asyncio.to_thread(hashlib.sha256, content)).hexdigest()
        if digest not in self._stored:
            caller = self._call.caller
            host = self._call.host
            message = {"chat_id": caller.chat_id, "message_id": caller.message_id}
            saved = message if caller.may_have_row else {}
            user = await user_model(caller.user_id) if caller.user_id else None
            if user is None:
                return None
            file = NewFile(name.name, name.media_type, content)
            self._stored[digest] = await store_file(host.request, file, saved, user)
        return self._stored[digest]


def _file_name(citation: Item) -> str:
    """Return the name of a cited file, without a directory and at most 200 characters.

    `rpartition`, because `pathlib` reads each part of a path.
    """
    path = str(citation.get("filename") or "")
    return shorten_name(path.rpartition("/")[2]) or "file"


def _filled_card(**parts: object) -> JsonObject:
    """Return a card without its empty parts."""
    return {name: value for name, value in parts.items() if value}


def _read_data_url(url: str) -> tuple[str, bytes]:
    """Return the type and the bytes of a picture; no bytes for any other address."""
    head, _, encoded = url.partition(";base64,")
    kind = head.partition("data:")[2]
    with suppress(ValueError):
        if kind.startswith("image/"):
            return kind, base64.b64decode(encoded)
    return kind, b""
