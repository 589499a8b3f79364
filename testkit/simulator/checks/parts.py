"""Whether the images and files of an input can be read."""

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from simulator.refusals import Refusal, refuse, refuse_exclusive_fields

Part = Mapping[str, Any]
IMAGE_URL_PATTERN = re.compile(r"^https?://", re.IGNORECASE)
DATA_URL_PATTERN = re.compile(r"^data:([^;,]*)((?:;[^;,]*)*?);base64,(.*)$", re.DOTALL)
SIGNATURES = {
    "image/png": re.compile(rb"^\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"^\xff\xd8\xff"),
    "image/gif": re.compile(rb"^GIF8[79]a"),
    "image/webp": re.compile(rb"^RIFF....WEBP", re.DOTALL),
}
GIF_FRAME = b"\x00\x21\xf9\x04"
OFFICE_TYPES = "application/vnd.openxmlformats-officedocument"
DOCUMENTS = (
    "application/pdf",
    "application/json",
    "application/msword",
    "application/rtf",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.oasis.opendocument.text",
    f"{OFFICE_TYPES}.wordprocessingml.document",
    f"{OFFICE_TYPES}.presentationml.presentation",
    f"{OFFICE_TYPES}.spreadsheetml.sheet",
)
MAX_IMAGES = 1500
MAX_FILE_BYTES = 50_000_000
MAX_IMAGE_BYTES = 20_000_000


def check_parts(items: Sequence[Mapping[str, Any]]) -> None:
    """Raise the refusal for the first image or file that cannot be read.

    Source: docs/reference/responses-api.md, "Values"; the wording is assumed.
    """
    images = 0
    size = 0
    places = [
        (rows, f"input[{index}].{name}")
        for index, item in enumerate(items)
        for name in ("content", "output")
        if isinstance(rows := item.get(name), list)
    ]
    for rows, place in places:
        for number, part in enumerate(rows):
            if part.get("type") == "input_image":
                images += 1
                _check_image(part, f"{place}[{number}]")
            elif part.get("type") == "input_file":
                size += _check_file(part, f"{place}[{number}]")
    if images > MAX_IMAGES:
        raise refuse("image_count", count=images, limit=MAX_IMAGES)
    if size > MAX_FILE_BYTES:
        raise refuse("files_size")


def _check_image(part: Part, path: str) -> None:
    """Source: openai/codex 5346, opencode 23983; the size and its words are assumed."""
    _read_single_source(part, path, ("image_url", "file_id"))
    url = part.get("image_url")
    if url is None or IMAGE_URL_PATTERN.match(url):
        return
    url_path = f"{path}.image_url"
    data_url = DATA_URL_PATTERN.match(url)
    if data_url is None:
        raise _refuse_image(url_path, "a valid URL", "a value with an invalid format")
    if not data_url[1].startswith("image/"):
        wanted = "a base64-encoded data URL with an image MIME type (e.g. "
        wanted += "'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
        raise _refuse_image(url_path, wanted, f"unsupported MIME type '{data_url[1]}'")
    content = _decode_data(data_url[3], url_path)
    if len(content) > MAX_IMAGE_BYTES:
        raise refuse("image_size", count=len(content), limit=MAX_IMAGE_BYTES)
    kinds = [kind for kind, begin in SIGNATURES.items() if begin.match(content)]
    if not kinds or content.count(GIF_FRAME) > 1:
        raise refuse("image_format")


def _check_file(part: Part, path: str) -> int:
    """Check one file; return how many bytes it brings.

    Source: types of openai 3.54.0; the words for a file of another kind are recorded.
    Assumed: the other words, and which kinds these are, but for the recorded
    `application/pdf`, `text/csv` and those of Office.
    """
    _read_single_source(part, path, ("file_data", "file_id", "file_url"))
    file_data = part.get("file_data")
    if file_data is None:
        return 0
    if not part.get("filename"):
        raise refuse("missing_parameter", path=f"{path}.filename")
    data_path = f"{path}.file_data"
    data_url = DATA_URL_PATTERN.match(file_data)
    if data_url is None:
        got = "a value without the 'data:' prefix"
        raise refuse("file_type", path=data_path, got=got)
    kind = data_url[1]
    if kind not in DOCUMENTS and not kind.startswith("text/"):
        got = f"unsupported MIME type '{kind}'"
        raise refuse("file_type", path=data_path, got=got)
    content = _decode_data(data_url[3], data_path)
    if not content or (kind == DOCUMENTS[0] and not content.startswith(b"%PDF-")):
        raise refuse("file_content", name=part["filename"], path=data_path)
    return len(content)


def _read_single_source(part: Part, path: str, names: Sequence[str]) -> None:
    """Source: types of openai 3.54.0; the wording is assumed."""
    sources = [name for name in names if part.get(name) is not None]
    if not sources:
        raise refuse("missing_parameter", path=f"{path}.{names[0]}")
    if len(sources) > 1:
        raise refuse_exclusive_fields(path, sources)


def _decode_data(payload: str, path: str) -> bytes:
    """Source: openai/codex 5346."""
    try:
        return base64.b64decode(payload, validate=True)
    except ValueError:
        raise _refuse_image(
            path, "base64-encoded data", "a value that is not"
        ) from None


def _refuse_image(path: str, wanted: str, got: str) -> Refusal:
    return refuse("part_value", path=path, wanted=wanted, got=got)
