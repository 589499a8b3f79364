"""Small pictures and the files of the container, the same on every machine."""

import base64
import struct
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from simulator.accounts import Account
from simulator.refusals import refuse

PICTURES = Path(__file__).with_name("pictures")
SIDE_PIXELS = 64
RADIUS_PIXELS = 24
SIGNATURE = b"\x89PNG\r\n\x1a\n"


@cache
def draw_picture(shade: int) -> str:
    """Return a PNG of a disc on white, as base64; ``shade`` is 0 (black) to 255.

    It has two colors, and one bit for each pixel. The pixels are not compressed:
    compressors differ from machine to machine.
    """
    head = struct.pack(">IIBBBBB", SIDE_PIXELS, SIDE_PIXELS, 1, 3, 0, 0, 0)
    palette = bytes([255, 255, 255, shade, shade // 2, shade // 4])
    squared_offsets = [(pixel - SIDE_PIXELS // 2) ** 2 for pixel in range(SIDE_PIXELS)]
    rows = b""
    for y in squared_offsets:
        bits = "".join(str(int(x + y <= RADIUS_PIXELS**2)) for x in squared_offsets)
        # The byte at the beginning of a row says: no filter.
        rows += b"\0" + int(bits, 2).to_bytes(SIDE_PIXELS // 8, "big")
    content = SIGNATURE
    for name, body in (
        (b"IHDR", head),
        (b"PLTE", palette),
        (b"IDAT", zlib.compress(rows, 0)),
        (b"IEND", b""),
    ):
        checksum = struct.pack(">I", zlib.crc32(name + body))
        content += struct.pack(">I", len(body)) + name + body + checksum
    return base64.b64encode(content).decode()


def read_picture(name: str) -> str:
    return base64.b64encode((PICTURES / f"{name}.png").read_bytes()).decode()


CONTAINER = "cntr_68e0000000000000000000000000000000000000"
EXPIRED = "cntr_68e0000000000000000000000000000000000404"
ORGANIZATION = "org-simulator-1"
TABLE_FILE = "cfile_68e00000000000000000000000000001"
CHART_FILE = "cfile_68e00000000000000000000000000002"
TEMPERATURES_FILE = "cfile_68e00000000000000000000000000003"
TABLE = "city,people\nZürich,400000\n東京,14000000\n".encode()
FILES: Mapping[str, bytes] = {
    TABLE_FILE: TABLE,
    CHART_FILE: base64.b64decode(draw_picture(90)),
    TEMPERATURES_FILE: b"Jan,5\nFeb,5\nMar,6\nApr,9\nMay,14\nJun,19\nJul,22\nAug,23\n"
    b"Sep,20\nOct,15\nNov,10\n",
}


def container_file(account: Account, container: str, file: str) -> bytes:
    """Return a file's bytes or raise the refusal.

    Source: OpenAI's community 1321773, litellm 30936. The refusal of a missing file is
    assumed.
    """
    if container != CONTAINER or account.organization != ORGANIZATION:
        raise refuse("unknown_container", id=container)
    if file not in FILES:
        raise refuse("unknown_file", id=file)
    return FILES[file]
