"""The name and the type under which a file of a model or a tool is stored.

Open WebUI sends an administrator's file inline, in its own origin, with the type that
`mimetypes` reads from the name (docs/reference/open-webui.md, "Events and stored
files"). A script in such a page has the rights of whoever opens the link, and a name
deceives: `mimetypes` ignores an encoding, so `report.html.gz` is `text/html`.

So a list says which endings a browser only shows or downloads. A file with any other
ending, or with none, is stored under its name with `.bin`, which is only downloaded.
"""

import re
from collections.abc import Mapping

_MAX_FILE_NAME = 200
"""Characters of a foreign name that are read."""
_MAX_ENDING = 20
_MAX_BYTES = 200
"""Of a stored name: the host puts 37 in front, and its file system takes 255."""

_OFFICE = "application/vnd.openxmlformats-officedocument"
INERT_TYPES: Mapping[str, str] = {
    # Images, without SVG, which runs scripts.
    "avif": "image/avif",
    "bmp": "image/bmp",
    "gif": "image/gif",
    "heic": "image/heic",
    "ico": "image/x-icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "webp": "image/webp",
    # Sound and video.
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "wav": "audio/wav",
    "webm": "video/webm",
    # Documents. Viewers of browsers keep a PDF's scripts out of the page's origin.
    "doc": "application/msword",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "epub": "application/epub+zip",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "pdf": "application/pdf",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "rtf": "application/rtf",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    # Texts. A browser shows them as they are; `js` and `css` are parts of pages.
    "csv": "text/csv",
    "geojson": "application/geo+json",
    "ics": "text/calendar",
    "ipynb": "application/x-ipynb+json",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "log": "text/plain",
    "md": "text/markdown",
    "py": "text/x-python",
    "sql": "application/sql",
    "tex": "application/x-tex",
    "toml": "application/toml",
    "tsv": "text/tab-separated-values",
    "txt": "text/plain",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    # Data and archives, which are only downloaded.
    "7z": "application/x-7z-compressed",
    "arrow": "application/vnd.apache.arrow.file",
    "bin": "application/octet-stream",
    "db": "application/vnd.sqlite3",
    "feather": "application/vnd.apache.arrow.file",
    "h5": "application/x-hdf5",
    "npy": "application/octet-stream",
    "npz": "application/octet-stream",
    "parquet": "application/vnd.apache.parquet",
    "pkl": "application/octet-stream",
    "sqlite": "application/vnd.sqlite3",
    "stl": "model/stl",
    "tar": "application/x-tar",
    "tgz": "application/gzip",
    "zip": "application/zip",
}
"""The endings that a browser runs nothing of, with their types."""

_COMPRESSED_TYPES: Mapping[str, str] = {
    "bz2": "application/x-bzip2",
    "gz": "application/gzip",
    "xz": "application/x-xz",
}
"""Endings that `mimetypes` looks past: the type is that of the ending before."""

_IMAGE_ENDINGS: Mapping[str, str] = {
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
}
"""The ending of each type of image that models and their tools generate."""

_UNFIT = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What no file system or database takes, as NUL and the bytes of a name that is not
UTF-8; what ends a line; and what turns the direction of a line around, so that another
ending is read."""


def shorten_name(name: str) -> str:
    """Return at most 200 characters of a foreign name: its beginning and its ending.

    Whoever chooses a name chooses its length too, so this comes before anything else
    reads it.
    """
    if len(name) <= _MAX_FILE_NAME:
        return name
    return name[: _MAX_FILE_NAME - _MAX_ENDING] + name[-_MAX_ENDING:]


def stored_name(name: str) -> tuple[str, str]:
    """Return the name and the MIME type under which a file is stored.

    `name` is any text: a directory before it is left out, and a browser runs nothing
    that has the returned name.
    """
    base = shorten_name(name.replace("\\", "/").rpartition("/")[2]) or "file"
    base = _UNFIT.sub("_", base)
    surplus = len(base.encode()) - _MAX_BYTES
    if surplus > 0:  # letters may have four bytes
        head = base[:-_MAX_ENDING].encode()[:-surplus].decode(errors="ignore")
        base = head + base[-_MAX_ENDING:]
    stem, _, ending = base.lower().rpartition(".")
    if stem and ending in INERT_TYPES:
        return base, INERT_TYPES[ending]
    # What was compressed is named before: `notes.txt.gz`, or `notes.gz` for anything.
    _, dot, inner = stem.rpartition(".")
    is_inert = inner in INERT_TYPES if dot else bool(stem)
    if ending in _COMPRESSED_TYPES and is_inert:
        return base, _COMPRESSED_TYPES[ending]
    return f"{base}.bin", INERT_TYPES["bin"]


def document_name(media_type: str) -> str:
    """Return the name of a document that has only a type; most are PDFs."""
    endings = {kind: ending for ending, kind in INERT_TYPES.items()}
    return f"file.{endings.get(media_type, 'pdf')}"


def image_name(media_type: str) -> str:
    """Return the name of an image that has only a type."""
    ending = _IMAGE_ENDINGS.get(media_type)
    return f"image.{ending}" if ending else "image"
