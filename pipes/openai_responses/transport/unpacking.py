"""Compressed bodies, unpacked piece by piece.

Nothing compressed is asked for, but proxies compress all the same, or an administrator's
header asks for it. 1.5 MB of gzip can become 1.5 GB, so no piece is large: a reader that
counts what it takes stops in time.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
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


_Unpack = Callable[[bytes], Iterator[bytes]]
_HasEnded = Callable[[], bool]


class UnpackingError(Exception):
    """Bytes that cannot be unpacked, or in a way that is not known here."""


class Unpacker:
    """Unpacks one body, whose header `Content-Encoding` is `encoding`.

    What is not packed at all is passed on: proxies forget to remove the header.
    """

    def __init__(self, encoding: str) -> None:
        names: set[str] = set()
        for name in encoding.lower().split(","):
            names.add(_SYNONYMS.get(name.strip(), name.strip()))
        names.discard("identity")
        self._name = " ".join(names)
        self._begin = b""
        self._unpack: _Unpack | None = None
        self._has_ended: _HasEnded = _ends_anywhere
        if not names:
            self._unpack = _pass_on

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """Yield the next pieces of the text; no bytes mean the end of the body.

        Raises UnpackingError.
        """
        if self._unpack is None:
            self._begin += packed
            if packed and len(self._begin) < _TELLING_BYTES:
                return
            packed = self._begin
            self._begin = b""
            self._unpack, self._has_ended = _choose(self._name, packed)
        try:
            yield from self._unpack(packed)
        except Exception:  # each package has its own
            raise UnpackingError from None

    @property
    def has_ended(self) -> bool:
        """Whether the packed bytes say that no more follow; a text may end anywhere."""
        return self._has_ended()


def _ends_anywhere() -> bool:
    return True


def _pass_on(text: bytes) -> Iterator[bytes]:
    """Yield a text that is not packed."""
    if text:
        yield text


def _choose(name: str, begin: bytes) -> tuple[_Unpack, _HasEnded]:
    """Return what unpacks a body that begins so, and says whether it has ended.

    Raises UnpackingError.
    """
    mark = _PACKED_MARKS.get(name)
    is_packed = mark.match(begin) if mark else not _TEXT_BEGIN.match(begin)
    if not is_packed:
        return _pass_on, _ends_anywhere
    match name:
        case "gzip":
            inflation = _Inflation(partial(zlib.decompressobj, 31))
            return inflation.unpack, inflation.has_ended
        case "deflate":
            # Some servers leave out the header of zlib (RFC 9110, 8.4.1.2).
            has_header = begin[0] & 15 == 8 and int.from_bytes(begin[:2]) % 31 == 0
            inflation = _Inflation(
                partial(zlib.decompressobj, 15 if has_header else -15)
            )
            return inflation.unpack, inflation.has_ended
        case "br":
            return _brotli()
        case "zstd":
            return _zstd()
    raise UnpackingError


class _Inflation:
    """Unpacks gzip and deflate; of gzip, any number of members in a row."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._inflater = start()
        self._is_whole = False
        """Whether a member has ended: what then comes may be padding."""

    def has_ended(self) -> bool:
        """Say whether a member has ended."""
        return self._is_whole

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        """Yield the pieces of the text."""
        while True:
            try:
                text = self._inflater.decompress(packed, _PIECE_BYTES)
            except zlib.error:
                if self._is_whole:
                    return
                raise
            if text:
                yield text
            packed = self._inflater.unconsumed_tail
            if self._inflater.eof:
                self._is_whole = True
                packed = self._inflater.unused_data
                self._inflater = self._start()
            # A full piece may have left a part of a repetition behind.
            if not packed and len(text) < _PIECE_BYTES:
                return


def _brotli() -> tuple[_Unpack, _HasEnded]:
    """Return what unpacks Brotli, if a package for it is there; raises UnpackingError.

    Before version 1.2 they have no limit for what they unpack at once.
    """
    decompressor = _import_first("brotli", "brotlicffi").Decompressor()
    if not hasattr(decompressor, "can_accept_more_data"):
        raise UnpackingError

    def unpack(packed: bytes) -> Iterator[bytes]:
        while not decompressor.is_finished():
            text = decompressor.process(packed, output_buffer_limit=_PIECE_BYTES)
            if text:
                yield text
            packed = b""
            if not text or decompressor.can_accept_more_data():
                return

    return unpack, decompressor.is_finished


def _zstd() -> tuple[_Unpack, _HasEnded]:
    """Return what unpacks zstd, if a package for it is there; raises UnpackingError."""
    package = _import_first("zstandard")

    def start() -> Any:
        limited = package.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        return limited.decompressobj()

    decompressor = start()
    is_whole = False

    def unpack(packed: bytes) -> Iterator[bytes]:
        nonlocal decompressor, is_whole
        for at in range(0, len(packed), _ZSTD_INPUT):
            part = packed[at : at + _ZSTD_INPUT]
            while part:
                text = decompressor.decompress(part)
                if text:
                    yield text
                part = b""
                if decompressor.eof:
                    is_whole = True
                    part = decompressor.unused_data
                    decompressor = start()

    return unpack, lambda: is_whole


def _import_first(*names: str) -> Any:
    """Return the first of these packages that is there; raises UnpackingError."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise UnpackingError
