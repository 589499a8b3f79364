"""Pictures that are small, can be told apart, and are the same everywhere."""

import base64
import struct
import zlib
from functools import cache

SIDE = 64
RADIUS = 24
SIGNATURE = b"\x89PNG\r\n\x1a\n"


@cache
def picture(shade: int) -> str:
    """Return a PNG of a disc on white, as base64; ``shade`` is 0 (black) to 255.

    It is stored, not compressed: compressors differ from machine to machine.
    """
    head = struct.pack(">IIBBBBB", SIDE, SIDE, 1, 3, 0, 0, 0)
    palette = bytes([255, 255, 255, shade, shade // 2, shade // 4])
    rows = b"".join(b"\0" + _row(y).to_bytes(SIDE // 8, "big") for y in range(SIDE))
    chunks = [
        (b"IHDR", head),
        (b"PLTE", palette),
        (b"IDAT", zlib.compress(rows, 0)),
        (b"IEND", b""),
    ]
    png = SIGNATURE + b"".join(_chunk(name, body) for name, body in chunks)
    return base64.b64encode(png).decode()


def _row(y: int) -> int:
    inside = (x for x in range(SIDE) if _distance(x) + _distance(y) <= RADIUS**2)
    return sum(1 << (SIDE - 1 - x) for x in inside)


def _distance(place: int) -> int:
    return (place - SIDE // 2) ** 2


def _chunk(name: bytes, body: bytes) -> bytes:
    checked = name + body
    return (
        struct.pack(">I", len(body)) + checked + struct.pack(">I", zlib.crc32(checked))
    )
