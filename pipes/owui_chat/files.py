"""Files that an answer made: their addresses and the lines below the text.

The pipe stores pictures and files and adds a `card` to the finished item: the `files`
to show, the `links` from addresses inside a container to addresses of the host, and
`notes`, lines of Markdown below a text.
"""

import re
from urllib.parse import unquote

from openai_responses.items import Item, content_parts
from openai_responses.json_input import JsonObject
from owui_chat.file_names import shorten_name

_CONTAINER_ADDRESS = re.compile(r"sandbox:/[^\s()<>\[\]\"']*[^\s()<>\[\]\"'.,;:!?]")


def file_citations(item: JsonObject) -> list[Item]:
    """Return the citations of container files in a message, one for each file."""
    parts = content_parts(item.get("content"))
    rows = [row for part in parts for row in content_parts(part.get("annotations"))]
    cited = (row for row in rows if row.get("type") == "container_file_citation")
    return list({str(row.get("file_id")): row for row in cited}.values())


def container_addresses(text: str, name: str) -> list[str]:
    """Return the addresses in `text` of the container file with this name.

    `name` is one that `shorten_name` returned.
    """
    addresses = dict.fromkeys(_CONTAINER_ADDRESS.findall(text))
    return [address for address in addresses if _address_name(address) == name]


def _address_name(address: str) -> str:
    """Return the name of a file by its address, at most 200 characters of it."""
    return shorten_name(unquote(address).rpartition("/")[2])


def link_files(text: str, card: JsonObject) -> str:
    """Return a text with the addresses and notes of its card."""
    links = card.get("links") or {}
    linked = _CONTAINER_ADDRESS.sub(lambda found: links.get(found[0], found[0]), text)
    return "\n\n".join([linked, *card.get("notes", ())])


def file_lines(card: JsonObject) -> str:
    """Return the links and notes of a card, for a text that was shown without them."""
    links = (card.get("links") or {}).items()
    lines = [f"[{_address_name(address)}]({url})" for address, url in links]
    return "".join(f"\n\n{line}" for line in [*lines, *card.get("notes", ())])
