"""A built file, compressed: what Open WebUI's editor formats and saves at once.

The editor sends its whole text through Black, in the event loop of the server: seconds
for the readable file, in which nobody is answered. One long text costs Black nothing.
The packed file carries the same source with its digest and runs that; line numbers in a
traceback are those of the readable file.
"""

import ast
import base64
import hashlib
import zlib

LINE = 88
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
import hashlib
import zlib

DIGEST = "{digest}"
PACKED = """
{packed}
"""
SOURCE = zlib.decompress(base64.b85decode("".join(PACKED.split())))
if hashlib.sha256(SOURCE).hexdigest() != DIGEST:
    raise ImportError("This file was changed or cut. Download it again.")
exec(compile(SOURCE, "{name}", "exec"))
del PACKED, SOURCE
'''


class PackedError(Exception):
    """A file is not one that was packed here."""


def pack(source: str, readable: str) -> str:
    """Return the packed form of a built file at the path `readable`."""
    keys = source.removeprefix('"""\n').partition("\n\n")[0]
    text = base64.b85encode(zlib.compress(source.encode(), 9)).decode()
    rows = (text[start : start + LINE] for start in range(0, len(text), LINE))
    return _TEMPLATE.format(
        keys=keys,
        readable=readable,
        name=readable.rpartition("/")[2],
        digest=hashlib.sha256(source.encode()).hexdigest(),
        packed="\n".join(rows),
    )


def unpack(text: str) -> str:
    """Return the source within a packed file, which is not run."""
    try:
        given = dict(_constants(text))
        source = zlib.decompress(base64.b85decode("".join(given["PACKED"].split())))
        digest = given["DIGEST"]
    except (SyntaxError, KeyError, ValueError, zlib.error) as error:
        raise PackedError("This is no packed file, or it is damaged.") from error
    if hashlib.sha256(source).hexdigest() != digest:
        raise PackedError("The digest is not that of the source.")
    return source.decode()


def _constants(text: str) -> list[tuple[str, str]]:
    return [
        (node.targets[0].id, node.value.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]
