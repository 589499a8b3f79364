"""Bodies in the forms of Brotli and zstd, stored without being made smaller.

No package is needed for that, so also an environment without one can send them.
"""

_BLOCK = 1 << 15


def stored_brotli(text: bytes) -> bytes:
    """Return a text as Brotli (RFC 7932, 9): blocks that are not compressed."""
    packed = bytearray()
    for at in range(0, len(text), _BLOCK):
        block = text[at : at + _BLOCK]
        # Not the last one, four digits for the length, the length, not compressed.
        header = (len(block) - 1) << 3 | 1 << 19
        if at == 0:
            header <<= 1  # a window of 64 kB
        packed += header.to_bytes(3, "little") + block
    return bytes(packed) + b"\x03"


def stored_zstd(text: bytes) -> bytes:
    """Return a text as zstd (RFC 8878, 3.1.1): blocks that are not compressed."""
    packed = bytearray(b"\x28\xb5\x2f\xfd\x00\x58")
    for at in range(0, len(text), _BLOCK):
        block = text[at : at + _BLOCK]
        packed += (len(block) << 3).to_bytes(3, "little") + block
    return bytes(packed) + b"\x01\x00\x00"
