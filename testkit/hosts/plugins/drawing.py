"""
title: Drawing
description: Tools that return pictures
"""

import base64
import struct
import zlib


def png(shade: int) -> str:
    """A picture of one gray point."""
    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    chunks = [
        (b"IHDR", head),
        (b"IDAT", zlib.compress(bytes([0, shade]))),
        (b"IEND", b""),
    ]
    content = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        checksum = struct.pack(">I", zlib.crc32(name + body))
        content += struct.pack(">I", len(body)) + name + body + checksum
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


class Tools:
    """What the methods say is what the model reads."""

    def draw_map(self, city: str) -> str:
        """
        A map of a city.
        :param city: name of the city
        """
        return png(len(city))
