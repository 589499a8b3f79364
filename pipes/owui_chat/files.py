"""Files that an answer made: their addresses and the lines below the text.

The pipe stores images and files and adds a `card` to the finished item: the `files`
to show, the `address` of an image that the host does not have, the `links` from
addresses inside a container to addresses of the host, and `notes`, lines of Markdown
below a text.
"""

import re
from itertools import islice
from urllib.parse import unquote

from openai_responses.items import Item, content_parts
from openai_responses.json_input import JsonObject
from owui_chat.file_names import shorten_name
from owui_chat.wording import as_plain_markdown

MAX_TOOL_FILE_BYTES = 5 * 1024 * 1024
"""Of one file that a tool returns, as specified (docs/reference/specification.md, P12)."""

# A sentence may end after an address: its last character is no punctuation.
_CONTAINER_ADDRESS = re.compile(r"sandbox:/[^\s()<>\[\]\"']*[^\s()<>\[\]\"'.,;:!?]")


def file_citations(item: JsonObject) -> list[Item]:
    """Return the citations of container files in a message, one for each file."""
    citations: dict[str, Item] = {}
    for part in content_parts(item.get("content")):
        for annotation in content_parts(part.get("annotations")):
            if annotation.get("type") == "container_file_citation":
                citations[str(annotation.get("file_id"))] = annotation
    return list(citations.values())


_MOST_ADDRESSES = 1_000
"""Of a text, of which the names are read."""


def container_addresses(text: str) -> dict[str, list[str]]:
    """Return the addresses of container files in `text`, by the names of the files.

    The names are such that `shorten_name` returns.
    """
    found = islice(_CONTAINER_ADDRESS.finditer(text), _MOST_ADDRESSES)
    named: dict[str, list[str]] = {}
    for address in dict.fromkeys(match[0] for match in found):
        named.setdefault(_address_name(address), []).append(address)
    return named


def _address_name(address: str) -> str:
    """Return the name of a file by its address, at most 200 characters of it."""
    return shorten_name(unquote(address).rpartition("/")[2])


def link_files(text: str, card: JsonObject) -> str:
    """Return a text with the addresses and notes of its card."""
    links = card.get("links") or {}

    def host_address(match: re.Match[str]) -> str:
        """Return the host's address of a file that was stored."""
        address = match[0]
        return str(links.get(address, address))

    linked = _CONTAINER_ADDRESS.sub(host_address, text)
    return "\n\n".join([linked, *card.get("notes", ())])


def file_lines(card: JsonObject) -> str:
    """Return the links and notes of a card, for a text that was shown without them."""
    links = card.get("links") or {}
    lines: list[str] = []
    for address, url in links.items():
        lines.append(f"[{as_plain_markdown(_address_name(address))}]({url})")
    lines += card.get("notes", ())
    return "".join(f"\n\n{line}" for line in lines)
