"""A built file, compressed: what people import and paste into Open WebUI.

The editor sends its whole text through Black, in the event loop of the server: seconds
for the readable file, in which no one is answered. One long text costs Black nothing.
The packed file carries the same source with its digest and runs that; line numbers in a
traceback are those of the readable file.

Nothing of a packed file is its own but the payload. So a file is checked by writing it
again from its payload and comparing all of it: no line can be added or changed. This
needs the standard library alone, and neither parses nor runs what it reads.
"""

import base64
import hashlib
import zlib
from itertools import zip_longest
from pathlib import Path

LINE_LENGTH = 88
MAX_PACKED_CHARACTERS = 4_000_000
MAX_SOURCE_BYTES = 8_000_000
"""Bounds against a file made to fill the memory: many times what is packed today."""
_PAYLOAD_BEGINS = '\nPACKED = """\n'
_PAYLOAD_ENDS = '\n"""\n'
_TEMPLATE = '''\
"""
{keys}

This is {readable}, compressed: Open WebUI formats a file
when it is saved, and formatting the readable one keeps the server busy for seconds.
The source is that file in the repository of this project, in the same release. DIGEST
is its SHA-256. `python scripts/release.py --verify FILE` unpacks a packed file without
running it, and compares.
"""

import base64
import gc
import hashlib
import zlib

DIGEST = "{digest}"
PACKED = """
{payload}
"""
SOURCE = zlib.decompress(base64.b85decode("".join(PACKED.split())))
if hashlib.sha256(SOURCE).hexdigest() != DIGEST:
    raise ImportError("This file was changed or cut. Download it again.")
{loader}'''
_CHAPTERS = '''

def run_chapters(source):
    """Run the source in pieces of whole chapters, which begin with a ruler.

    To compile all of it at once takes 60 MB more, which the server keeps. Empty lines
    in front of a piece give its lines their numbers.
    """
    start = line = 0
    while start < len(source):
        end = source.find("\\n\\n# -----", start + 50_000) + 1 or len(source)
        piece = "\\n" * line + source[start:end]
        exec(compile(piece, "{name}", "exec"), globals())
        line += source.count("\\n", start, end)
        start = end

'''
_LOADER = _CHAPTERS + """
# The collector would look ninety times through what is being made, and find nothing.
collects = gc.isenabled()
gc.disable()
try:
    run_chapters(SOURCE.decode())
finally:
    if collects:
        gc.enable()
del PACKED, SOURCE, collects, run_chapters
"""
_SECOND_LOADER = _CHAPTERS + """
run_chapters(SOURCE.decode())
del PACKED, SOURCE, run_chapters
"""
_FIRST_LOADER = """\
exec(compile(SOURCE, "{name}", "exec"))
del PACKED, SOURCE
"""
"""These two are of earlier files, which can still be verified."""


class PackedError(Exception):
    """A file is not exactly what `pack` writes; the message says why."""


def pack(source: str, readable: str) -> str:
    """Return the packed form of a built file at the path `readable`."""
    compressed = zlib.compress(source.encode(), 9)
    payload = base64.b85encode(compressed).decode()
    return _fill_template(source, readable, payload, _LOADER)


def read_packed(file: Path) -> str:
    """Return the text of a file that may be anything; raises PackedError, OSError."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(MAX_PACKED_CHARACTERS + 1)
    except UnicodeDecodeError as error:
        raise PackedError("This is not a text file.") from error
    if len(text) > MAX_PACKED_CHARACTERS:
        reason = f"A packed file has at most {MAX_PACKED_CHARACTERS:,} characters."
        raise PackedError(reason)
    return text


def unpack(text: str, readable: str) -> str:
    """Return the source within a packed file, if nothing else is in the file.

    Compressing again would depend on the version of zlib, so the payload is taken as it
    is and only its surroundings are written anew. Raises PackedError.
    """
    _, begin, rest = text.partition(_PAYLOAD_BEGINS)
    rows, end, _ = rest.partition(_PAYLOAD_ENDS)
    if not begin or not end:
        raise PackedError("This is not a packed file.")
    payload = "".join(rows.split())
    source = _decompress(payload)
    expected = _fill_template(source, readable, payload, _LOADER)
    earlier = [
        _fill_template(source, readable, payload, loader).replace("import gc\n", "", 1)
        for loader in (_FIRST_LOADER, _SECOND_LOADER)
    ]
    if text != expected and text not in earlier:
        raise PackedError(_describe_difference(text, expected))
    return source


def _fill_template(source: str, readable: str, payload: str, loader: str) -> str:
    """Return the whole packed file; the frontmatter is that of the source."""
    name = readable.rpartition("/")[2]
    keys = source.removeprefix('"""\n').partition("\n\n")[0]
    starts = range(0, len(payload), LINE_LENGTH)
    return _TEMPLATE.format(
        keys=keys,
        readable=readable,
        digest=hashlib.sha256(source.encode()).hexdigest(),
        payload="\n".join(payload[start : start + LINE_LENGTH] for start in starts),
        loader=loader.format(name=name),
    )


def _decompress(payload: str) -> str:
    """Return the text of a payload; stops at a size that no source of ours has."""
    damaged = "The packed text is damaged or cut."
    decompressor = zlib.decompressobj()
    try:
        compressed = base64.b85decode(payload)
        source = decompressor.decompress(compressed, MAX_SOURCE_BYTES + 1)
        if len(source) > MAX_SOURCE_BYTES:
            reason = f"The packed text unpacks to more than {MAX_SOURCE_BYTES:,} bytes."
            raise PackedError(reason)
        if not decompressor.eof or decompressor.unused_data:
            raise PackedError(damaged)
        return source.decode()
    except (ValueError, zlib.error) as error:
        raise PackedError(damaged) from error


def _describe_difference(text: str, expected: str) -> str:
    """Name the first line that is not what the payload asks for."""
    pairs = zip_longest(text.split("\n"), expected.split("\n"))
    differs = [line != expected_line for line, expected_line in pairs]
    number = differs.index(True) + 1
    return f"Line {number} was changed or added; it does not belong there."
