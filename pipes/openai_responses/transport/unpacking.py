"""Compressed bodies, unpacked piece by piece.

Nothing compressed is asked for, but proxies compress all the same, or an administrator's
header asks for it. 1.5 MB of gzip can become 1.5 GB, so no piece is large: a reader that
counts what it takes stops in time.
"""

import re
import zlib
from collections.abc import Iterator
from importlib import import_module
from typing import Any

_PIECE_BYTES = 1 << 18
"""The most that one piece of a text has."""
_ZSTD_INPUT = 32
"""Bytes that a decompressor of zstd gets at once, because it has no limit of its output:
a block of 4 bytes becomes 128 kB (RFC 8878, 3.1.1.2.2)."""
_ZSTD_WINDOW = 1 << 23
"""The memory that a sender may ask for (RFC 9659)."""

_TELLING_BYTES = 10
"""Those by which packed bytes are told from a text: the length of gzip's header."""
_TEXT_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:[{<:]|data:|event:|id:|retry:|\Z)")
"""How JSON, a page and an event stream begin. No packed text of that kind does: read as
deflate or Brotli, these bytes end at once, or their first letter is none of ASCII's."""
_PACKED_MARKS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
}
"""How packed bytes of these kinds begin."""
_SYNONYMS = {"x-gzip": "gzip", "": "identity", "none": "identity"}


class UnpackingError(Exception):
    """Bytes that cannot be unpacked, or in a way that is not known here."""


class Unpacker:
    """Unpacks one body, whose header `Content-Encoding` is `encoding`.

    What is not packed at all is passed on: proxies forget to remove the header.
    """

    def __init__(self, encoding: str) -> None:
        stated = {name.strip() for name in encoding.lower().split(",")}
        names = {_SYNONYMS.get(name, name) for name in stated} - {"identity"}
        self._name = " ".join(names)
        self._begin = b""
        """What has come until the packing is known."""
        self._packing: _Packing | None = None if names else _Packing()

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """Yield the next pieces of the text; no bytes mean the end of the body.

        Raises UnpackingError.
        """
        if self._packing is None:
            self._begin += packed
            if packed and len(self._begin) < _TELLING_BYTES:
                return
            packed = self._begin
            self._begin = b""
            self._packing = _find_packing(self._name, packed)
        try:
            yield from self._packing.unpack(packed)
        except Exception:  # each package has its own
            raise UnpackingError from None

    @property
    def has_ended(self) -> bool:
        """Whether the packed bytes say that no more follow; a text may end anywhere."""
        return self._packing is None or self._packing.has_ended


class _Packing:
    """A way in which a body is packed: this one, not at all."""

    has_ended = True

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """Yield the pieces of the text."""
        if packed:
            yield packed


def _find_packing(name: str, begin: bytes) -> _Packing:
    """Return how a body is packed that begins so; raises UnpackingError."""
    mark = _PACKED_MARKS.get(name)
    is_packed = mark.match(begin) if mark else not _TEXT_BEGIN.match(begin)
    if not is_packed:
        return _Packing()
    match name:
        case "gzip":
            return _Inflation(31)
        case "deflate":
            # Some servers leave out the header of zlib (RFC 9110, 8.4.1.2).
            has_header = begin[0] & 15 == 8 and int.from_bytes(begin[:2]) % 31 == 0
            return _Inflation(15 if has_header else -15)
        case "br":
            return _Brotli()
        case "zstd":
            return _Zstd()
    raise UnpackingError


class _Inflation(_Packing):
    """Unpacks gzip and deflate; of gzip, any number of members in a row."""

    def __init__(self, window_bits: int) -> None:
        self._window_bits = window_bits
        self._inflater = zlib.decompressobj(window_bits)
        self.has_ended = False
        """Whether a member has ended: what then comes may be padding."""

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        while True:
            try:
                text = self._inflater.decompress(packed, _PIECE_BYTES)
            except zlib.error:
                if self.has_ended:
                    return
                raise
            if text:
                yield text
            packed = self._inflater.unconsumed_tail
            if self._inflater.eof:
                self.has_ended = True
                packed = self._inflater.unused_data
                self._inflater = zlib.decompressobj(self._window_bits)
            # A full piece may have left a part of a repetition behind.
            if not packed and len(text) < _PIECE_BYTES:
                return


class _Brotli(_Packing):
    def __init__(self) -> None:
        """Raise UnpackingError without a package for it, or with an old one.

        Before version 1.2 they have no limit for what they unpack at once.
        """
        self._decompressor = _import_first("brotli", "brotlicffi").Decompressor()
        if not hasattr(self._decompressor, "can_accept_more_data"):
            raise UnpackingError
        self.has_ended = False

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        while not self.has_ended:
            text = self._decompressor.process(packed, output_buffer_limit=_PIECE_BYTES)
            self.has_ended = bool(self._decompressor.is_finished())
            if text:
                yield text
            packed = b""
            if not text or self._decompressor.can_accept_more_data():
                return


class _Zstd(_Packing):
    """Unpacks zstd; any number of frames in a row."""

    def __init__(self) -> None:
        """Raise UnpackingError without a package for it."""
        self._package = _import_first("zstandard")
        self._decompressor = self._start()
        self.has_ended = False
        """Whether a frame has ended."""

    def _start(self) -> Any:
        limited = self._package.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        return limited.decompressobj()

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        for at in range(0, len(packed), _ZSTD_INPUT):
            part = packed[at : at + _ZSTD_INPUT]
            while part:
                text = self._decompressor.decompress(part)
                if text:
                    yield text
                part = b""
                if self._decompressor.eof:
                    self.has_ended = True
                    part = self._decompressor.unused_data
                    self._decompressor = self._start()


def _import_first(*names: str) -> Any:
    """Return the first of these packages that is there; raises UnpackingError."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise UnpackingError
