"""Pictures and documents in every form, for tests."""

import base64

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAA"
    "AABJRU5ErkJggg=="
)
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\x00" + bytes(20)
WEBP = b"RIFF\x1a\x00\x00\x00WEBPVP8L" + bytes(20)
_FRAME = b"\x00\x21\xf9\x04\x00\x00\x00\x00\x00\x2c" + bytes(12)
GIF = b"GIF89a" + bytes(7) + _FRAME + b"\x3b"
MOVING_GIF = b"GIF89a" + bytes(7) + _FRAME + _FRAME + b"\x3b"
BMP = b"BM" + bytes(60)
PDF = b"%PDF-1.4\n%%EOF\n"


def data_url(content: bytes, kind: str) -> str:
    """The bytes as an address that holds them."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


PIXEL = data_url(PNG, "image/png")
