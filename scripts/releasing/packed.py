"""A built file, compressed: what people import and paste into Open WebUI.

The editor sends its whole text through Black, in the event loop of the server: seconds
for the readable file, in which no one is answered. One long text costs Black nothing.
And it reads the whole text of a function from its database for each question, so each
answer that runs holds one: the packed file is a fifth of the readable one.

The packed file carries the code of the readable one with its digest and runs that.
Docstrings and comments stay behind, their lines stay empty: line numbers in a traceback
are those of the readable file.

Nothing of a packed file is its own but the payload. So a file is checked by writing it
again from its payload and comparing all of it: no line can be added or changed. This
needs the standard library alone, and neither parses nor runs what it reads.
"""

import ast
import base64
import hashlib
import io
import lzma
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import zip_longest
from pathlib import Path

LINE_LENGTH = 88
MAX_PACKED_CHARACTERS = 4_000_000
MAX_SOURCE_BYTES = 8_000_000
"""Bounds against a file made to fill the memory: many times what is packed today."""
MAX_UNPACKING_BYTES = 16_000_000
"""The dictionary that a packed file may ask for; ours has 8 MB."""
RULER = "# -----"
"""How the line begins above and below the name of a chapter."""
_PAYLOAD_BEGINS = '\nPACKED = """\n'
_PAYLOAD_ENDS = '\n"""\n'
_TEMPLATE = '''\
"""
{keys}

This is {readable}, compressed, without comments:
Open WebUI formats a file when it is saved, and formatting the readable one keeps the
server busy for seconds. The source is that file in the repository of this project, in
the same release. `python scripts/release.py --verify FILE` unpacks a packed file
without running it, and compares. DIGEST is the SHA-256 of what is unpacked.
"""

import base64
import gc
import hashlib
import lzma

DIGEST = "{digest}"
PACKED = """
{payload}
"""
SOURCE = lzma.decompress(base64.b64decode(PACKED))
if hashlib.sha256(SOURCE).hexdigest() != DIGEST:
    raise ImportError("This file was changed or cut. Download it again.")


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


# The collector would look ninety times through what is being made, and find nothing.
collects = gc.isenabled()
gc.disable()
try:
    run_chapters(SOURCE.decode())
finally:
    if collects:
        gc.enable()
del PACKED, SOURCE, collects, run_chapters
'''


class PackedError(Exception):
    """A file is not exactly what `pack` writes; the message says why."""


def pack(source: str, readable: str) -> str:
    """Return the packed form of a built file at the path `readable`."""
    code = without_comments(source)
    # bzip2 would be a fourteenth smaller, and takes 40 ms more to unpack.
    compressed = lzma.compress(code.encode(), preset=6 | lzma.PRESET_EXTREME)
    payload = base64.b64encode(compressed).decode()
    return _fill_template(code, readable, payload)


@cache
def without_comments(source: str) -> str:
    """Return the same code on the same lines, without comments and docstrings.

    What is read at run time stays: the first docstring (Open WebUI reads its keys), those
    of a class `Tools` (it describes the tools to the model), and the chapters' rulers.
    """
    lines = source.split("\n")
    for text, is_body in _docstrings(ast.parse(source).body[1:]):
        first = text.lineno - 1
        last = text.end_lineno or text.lineno
        rest = lines[first][: text.col_offset] + "pass" if is_body else ""
        lines[first:last] = [rest] + [""] * (last - first - 1)
    readline = io.StringIO("\n".join(lines)).readline
    for token in tokenize.generate_tokens(readline):
        row, column = token.start
        if token.type == tokenize.COMMENT and not token.string.startswith(RULER):
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(lines)


def _docstrings(body: list[ast.stmt]) -> Iterator[tuple[ast.Expr, bool]]:
    """Yield the statements that are nothing but a text, and whether one is the body."""
    for statement in body:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                yield statement, len(body) == 1
            case ast.ClassDef(name="Tools"):
                continue
        for name in ("body", "orelse", "finalbody"):
            yield from _docstrings(getattr(statement, name, []))


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
    """Return the code within a packed file, if nothing else is in the file.

    Compressing again would depend on the version of liblzma, so the payload is taken as it
    is and only its surroundings are written anew. Raises PackedError.
    """
    _, begin, rest = text.partition(_PAYLOAD_BEGINS)
    rows, end, _ = rest.partition(_PAYLOAD_ENDS)
    if not begin or not end:
        raise PackedError("This is not a packed file.")
    payload = "".join(rows.split())
    code = _decompress(payload)
    expected = _fill_template(code, readable, payload)
    if text != expected:
        raise PackedError(_describe_difference(text, expected))
    return code


def _fill_template(code: str, readable: str, payload: str) -> str:
    """Return the whole packed file; the frontmatter is that of the code."""
    keys = code.removeprefix('"""\n').partition("\n\n")[0]
    starts = range(0, len(payload), LINE_LENGTH)
    return _TEMPLATE.format(
        keys=keys,
        readable=readable,
        digest=hashlib.sha256(code.encode()).hexdigest(),
        payload="\n".join(payload[start : start + LINE_LENGTH] for start in starts),
        name=readable.rpartition("/")[2],
    )


def _decompress(payload: str) -> str:
    """Return the text of a payload; stops at a size that no source of ours has."""
    damaged = "The packed text is damaged or cut."
    decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_UNPACKING_BYTES)
    try:
        compressed = base64.b64decode(payload, validate=True)
        code = decompressor.decompress(compressed, MAX_SOURCE_BYTES + 1)
        if len(code) > MAX_SOURCE_BYTES:
            reason = f"The packed text unpacks to more than {MAX_SOURCE_BYTES:,} bytes."
            raise PackedError(reason)
        if not decompressor.eof or decompressor.unused_data:
            raise PackedError(damaged)
        return code.decode()
    except (ValueError, lzma.LZMAError) as error:
        raise PackedError(damaged) from error


def _describe_difference(text: str, expected: str) -> str:
    """Name the first line that is not what the payload asks for."""
    pairs = zip_longest(text.split("\n"), expected.split("\n"))
    differs = [line != expected_line for line, expected_line in pairs]
    number = differs.index(True) + 1
    return f"Line {number} was changed or added; it does not belong there."
