"""Packed bodies become texts, piece by piece, whatever their header says."""

import gzip
import sys
import tracemalloc
import zlib
from collections.abc import Callable, Iterator

import brotli
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from openai_responses.transport.unpacking import _PIECE_BYTES, Unpacker, UnpackingError

MEGABYTE = 1 << 20
TEXT = b"".join(
    b'data: {"type": "keepalive", "n": %d}\n\n' % number for number in range(3)
)


def raw(text: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(text) + packer.flush()


PACKED = {
    "gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "raw deflate": raw(TEXT),
    "br": brotli.compress(TEXT),
    "zstd": zstandard.compress(TEXT),
}
bytewise = pytest.mark.parametrize("size", [10_000_000, 1], ids=["whole", "bytewise"])


def pieces_of(encoding: str, packed: bytes, size: int = 10_000_000) -> Iterator[bytes]:
    """Yield the pieces that a body becomes."""
    unpacker = Unpacker(encoding)
    for at in range(0, len(packed), size):
        yield from unpacker.feed(packed[at : at + size])
    yield from unpacker.feed(b"")


def unpacked(encoding: str, packed: bytes, size: int = 10_000_000) -> bytes:
    return b"".join(pieces_of(encoding, packed, size))


@bytewise
@pytest.mark.parametrize("kind", PACKED)
def test_packed_text_is_read(kind: str, size: int) -> None:
    assert unpacked(kind.removeprefix("raw "), PACKED[kind], size) == TEXT


@pytest.mark.parametrize("kind", ["br", "zstd"])
def test_packing_without_its_package(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind for which no package is there is one that is not known."""
    for package in ("brotli", "brotlicffi", "zstandard"):
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UnpackingError):
        unpacked(kind, PACKED[kind])


@pytest.mark.parametrize(
    "encoding", ["gzip", "GZip", "x-gzip", "gzip, gzip", "identity, gzip"]
)
def test_name_of_an_encoding_has_several_forms(encoding: str) -> None:
    """Repetitions of a large text go over the ends of pieces."""
    large = bytes(range(256)) * 5000
    assert unpacked(encoding, gzip.compress(large)) == large
    assert unpacked(encoding, gzip.compress(large), 100) == large


@pytest.mark.parametrize(
    "encoding", ["compress", "gzip, br", "utf-8", "aws-chunked", "gzip, zstd"]
)
def test_unknown_encoding_of_packed_bytes(encoding: str) -> None:
    with pytest.raises(UnpackingError):
        unpacked(encoding, PACKED["gzip"])


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_any_bytes_without_the_mark_of_an_encoding(encoding: str) -> None:
    """A file of a container may be anything."""
    assert unpacked(encoding, b"city,rain\nBern,3\n") == b"city,rain\nBern,3\n"


PLAIN = {
    "an event": TEXT,
    "a name": b"event: x\ndata: {}\n\n",
    "a comment": b": still here\n\n" + TEXT,
    "an id": b"id: 1\ndata: {}\n\n",
    "a retry": b"retry: 1000\n\n" + TEXT,
    "a short comment": b":\n\n",
    "JSON": b'{"output": []}',
    "short JSON": b"{}",
    "a page": b"<!DOCTYPE html>",
    "a byte-order mark": b"\xef\xbb\xbf" + TEXT,
    "white space": b"\n \r\n\t" + b" " * 50 + TEXT,
    "nothing": b"",
}


@bytewise
@pytest.mark.parametrize("encoding", ["", "gzip", "br", "zstd", "utf-8"])
def test_text_under_a_header_that_is_not_true(encoding: str, size: int) -> None:
    """A proxy has unpacked it and left the header."""
    assert {name: unpacked(encoding, PLAIN[name], size) for name in PLAIN} == PLAIN


@given(
    text=st.one_of(
        st.just(TEXT),
        st.text(max_size=40).map(
            lambda text: f'{{"id": "{text}'.encode(errors="replace")
        ),
        st.binary(max_size=40).map(lambda rest: b"data: " + rest),
        st.binary(max_size=40).map(lambda rest: b": " + rest),
        st.binary(max_size=40).map(lambda rest: b"\n<html" + rest),
    ),
    level=st.integers(0, 9),
    window=st.integers(9, 15),
    strategy=st.integers(0, 4),
)
@example(text=TEXT[:23], level=0, window=15, strategy=0)  # could be zlib's by its sum
def test_packed_text_is_never_taken_for_a_text(
    text: bytes, level: int, window: int, strategy: int
) -> None:
    """Deflate without a header begins with any byte."""
    packer = zlib.compressobj(level, wbits=-window, strategy=strategy)
    packed = packer.compress(text) + packer.flush()
    assert unpacked("deflate", packed) == text


@pytest.mark.parametrize("window", [31, 15, -15], ids=["gzip", "deflate", "raw"])
def test_event_is_there_as_soon_as_its_bytes_are(window: int) -> None:
    """Nothing waits for the next event."""
    packer = zlib.compressobj(wbits=window)
    unpacker = Unpacker("gzip" if window == 31 else "deflate")
    for number in range(20):
        event = b'data: {"type": "response.output_text.delta", "n": %d}\n\n' % number
        packed = packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH)
        assert b"".join(unpacker.feed(packed)) == event


@pytest.mark.parametrize("more", [-1, 0, 1, 2, 9])
def test_whole_text_of_a_chunk_is_there(more: int) -> None:
    """Also where a few bits stand for the rest of it, after a full piece."""
    text = b"x" * (_PIECE_BYTES + more)
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)
    assert b"".join(Unpacker("gzip").feed(packed)) == text
    without_flush = packed[:-5]
    assert b"".join(Unpacker("gzip").feed(without_flush)) == text


@bytewise
@pytest.mark.parametrize(
    ("kind", "padding"),
    [("gzip", b""), ("gzip", bytes(20)), ("gzip", b"end"), ("zstd", b"")],
)
def test_members_in_a_row(kind: str, padding: bytes, size: int) -> None:
    """Some servers pack each event on its own; what is no member is padding."""
    assert unpacked(kind, PACKED[kind] * 3 + padding, size) == TEXT * 3


def damaged(window: int) -> bytes:
    """Return a packed text, then a block of a type that there is not."""
    packer = zlib.compressobj(wbits=window)
    return packer.compress(TEXT) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * 20


DAMAGED = {
    "gzip": damaged(31),
    "deflate": damaged(15),
    "raw deflate": damaged(-15),
    **{kind: PACKED[kind][:-20] + b"\xff" * 300 for kind in ("br", "zstd")},
}


@bytewise
@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_body(kind: str, size: int) -> None:
    """What came before is there; the error has nothing of the bytes."""
    pieces = pieces_of(kind.removeprefix("raw "), DAMAGED[kind], size)
    texts: list[bytes] = []
    with pytest.raises(UnpackingError) as error:
        texts.extend(pieces)
    assert str(error.value) == ""
    # The packages keep back a whole chunk, and those of the last two a whole block.
    if size == 1 and kind not in ("br", "zstd"):
        assert b"".join(texts) == TEXT


def test_mere_mark_of_gzip() -> None:
    assert unpacked("gzip", b"\x1f\x8b") == b""
    with pytest.raises(UnpackingError):
        unpacked("gzip", b"\x1f\x8b" + b"\xff" * 20)


def inflating() -> bytes:
    packer = zlib.compressobj(9, wbits=31)
    packed = [packer.compress(bytes(MEGABYTE)) for _ in range(30)]
    return b"".join([*packed, packer.flush()])


# Blocks of one letter, each 128 kB (RFC 8878, 3.1.1.2.2).
ZSTD_BOMB = b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10\n" * 1000 + b"\x03\x00\x10\n"


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_bomb_comes_in_small_pieces(encoding: str) -> None:
    """A reader that counts can stop at any of them."""
    bombs: dict[str, Callable[[], bytes]] = {
        "gzip": inflating,
        "br": lambda: brotli.compress(bytes(30 * MEGABYTE), quality=1),
        "zstd": lambda: ZSTD_BOMB,
    }
    bomb = bombs[encoding]()
    size = 0
    tracemalloc.start()
    for piece in pieces_of(encoding, bomb):
        assert len(piece) <= 8 * _PIECE_BYTES
        size += len(piece)
        if size > 20 * MEGABYTE:
            break
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert size > 20 * MEGABYTE
    assert held < 16 * MEGABYTE


def test_memory_that_a_sender_of_zstd_may_ask_for() -> None:
    """Its header asks for 128 MB."""
    wide = b"\x28\xb5\x2f\xfd\x00\x88" + b"\x02\x00\x10\n" * 20
    with pytest.raises(UnpackingError):
        unpacked("zstd", wide)


@pytest.mark.parametrize("name", PACKED)
def test_packed_body_says_where_it_ends(name: str) -> None:
    """But a text that nobody has packed does not."""
    for body, has_ended in ((PACKED[name], True), (PACKED[name][:-9], False)):
        unpacker = Unpacker(name.rpartition(" ")[2])
        assert b"".join(unpacker.feed(body)) in TEXT
        assert list(unpacker.feed(b"")) == []
        assert unpacker.has_ended is has_ended
    unpacker = Unpacker(name.rpartition(" ")[2])
    assert list(unpacker.feed(TEXT[:-9])) == [TEXT[:-9]]
    assert unpacker.has_ended
