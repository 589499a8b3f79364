"""Answers of a sandbox are read with distrust."""

import json
import tracemalloc
from pathlib import Path

import pytest

from sandbox.backend import SandboxLimits
from sandbox.runs import (
    FileSlice,
    Sandbox,
    SandboxReply,
    SandboxReplyMissing,
    _read_reply,
)
from sandbox.tools import SandboxResult
from sandboxes.owned import OwnedTools
from sandboxes.pretended import Pretended, confined_answering, execute

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIMITS = SandboxLimits(output=100, disk=1000)
MANIFEST = b'[["file", "a.txt", 384, 5]]\n'


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool"


async def read(spool: Path, answer: object, rest: bytes = b"") -> SandboxReply:
    return await read_bytes(spool, json.dumps(answer).encode() + b"\n" + rest)


async def read_bytes(spool: Path, content: bytes) -> SandboxReply:
    program = f"import sys\nsys.stdout.buffer.write({compact(content)})"
    return await Sandbox(Pretended(program), LIMITS).run({}, None, spool)


def content_of(spool: Path) -> bytes:
    return spool.read_bytes()


def compact(content: bytes) -> str:
    """Return an expression for bytes; a command has no room for many."""
    first = content[:1]
    is_long = len(content) > 50_000 and content == first * len(content)
    return f"{first!r} * {len(content)}" if is_long else repr(content)


async def test_answer_with_a_workspace(spool: Path) -> None:
    answer = {"done": "x", "changed": [["a.txt", 0, 5]]}

    reply = await read(spool, answer, MANIFEST + b"bytes")

    begin = len(json.dumps(answer)) + 1
    assert reply.archive == begin
    [changed] = reply.changed
    assert changed == FileSlice("a.txt", begin + len(MANIFEST), 5)
    assert content_of(spool)[changed.start :][: changed.size] == b"bytes"
    assert await read(spool, {"text": "x"}) == SandboxReply({"text": "x"}, None)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"no json\n", b"[]\n", b'"text"\n', b"[" * 100_000, b"\xff\n"],
)
async def test_malformed_reply_counts_as_missing(spool: Path, content: bytes) -> None:
    with pytest.raises(SandboxReplyMissing):
        await read_bytes(spool, content)


def reply_in(spool: Path, line: bytes) -> SandboxReply | None:
    spool.write_bytes(line + b"\n")
    return _read_reply(spool, LIMITS)


@pytest.mark.parametrize("many", [b"[]," * 60_000, b'"",' * 60_000, b"9" * 120_000])
async def test_answer_of_many_values_is_none(spool: Path, many: bytes) -> None:
    """Code that took the program over could keep the server busy for seconds with it."""
    line = b'{"listed": [' + many + b"0.0]}"

    assert json.loads(line)
    assert reply_in(spool, line) is None


async def test_longest_answer_is_one(spool: Path) -> None:
    """A folder of as many files as there may be; their names are what they like."""
    row = {"name": '"[{,\\' * 50, "kind": "file", "size": 10**15}
    answer = {"listed": [row] * LIMITS.files, "more": 10**15}

    read_back = reply_in(spool, json.dumps(answer).encode())

    assert read_back == SandboxReply(answer, None)


async def test_endless_line_is_no_answer(spool: Path) -> None:
    """Only so much of it is read, though as much may be written."""
    program = "print('{\"text\": \"' + 'x' * (5 << 20) + '\"}')"

    with pytest.raises(SandboxReplyMissing):
        await Sandbox(Pretended(program), LIMITS).run({}, None, spool)

    assert len(content_of(spool)) > 5 << 20


@pytest.mark.parametrize(
    "changed",
    [
        "text",
        {},
        [5],
        [["a", 0]],
        [["a", 0, 1, 2]],
        [[1, 0, 1]],
        [["a", -1, 1]],
        [["a", 0, -1]],
        [["a", 0, 6]],
        [["a", 5, 1]],
        [["a", 0.5, 1]],
        [["a", "0", 1]],
        [["a", 10**30, 1]],
        None,
    ],
)
async def test_files_outside_the_workspace_are_no_files(
    spool: Path, changed: object
) -> None:
    answer = {"done": "x", "changed": changed}

    assert (await read(spool, answer, MANIFEST + b"bytes")).changed == ()


async def test_files_have_no_more_bytes_than_the_workspace(spool: Path) -> None:
    """Ten names for the same bytes are no ten copies on the server's disk."""
    names = [[name, 0, 5] for name in "abcdefghij"]

    reply = await read(spool, {"done": "x", "changed": names}, MANIFEST + b"bytes")

    assert [part.name for part in reply.changed] == ["a"]


async def test_line_in_front_of_the_files_has_an_end(spool: Path) -> None:
    """None of it is held by the server, and not all of it is read."""
    reply, held = read_measured(spool, LIMITS)

    assert reply is not None
    assert reply.archive
    assert held < 2 << 20
    assert read_measured(spool, LIMITS._replace(files=10))[0] is None


def read_measured(
    spool: Path, limits: SandboxLimits
) -> tuple[SandboxReply | None, int]:
    """Read an answer with 4 MB of such a line; return the bytes that this held."""
    spool.write_bytes(b'{"done": "x"}\n' + bytes(4 << 20))
    tracemalloc.start()
    reply = _read_reply(spool, limits)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return reply, held


INVALID = "Error: The sandbox returned an invalid answer."
NOTHING = '{"stdout": "", "stderr": "", "result": null, "files": []'
RUN = {"stdout": "", "stderr": "", "result": "", "status": 0}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({}, INVALID),
        ({"stdout": 1}, INVALID),
        ({"refused": "half \ud800"}, "Error: half ?"),
        ({**RUN, "result": "[1"}, f"{NOTHING}}}"),
        ({**RUN, "result": [1]}, f"{NOTHING}}}"),
        ({**RUN, "result": '{"json": [' + "[]," * 100 + "[]]}"}, f"{NOTHING}}}"),
        (
            {**RUN, "stopped": {"a": "{0.__class__}"}},
            f'{{"status": "failed", {NOTHING[1:]}, "note": "The code was stopped."}}',
        ),
    ],
)
async def test_senseless_answers_are_told_all_the_same(
    answer: dict[str, object], text: str
) -> None:
    """Nothing raises, and nothing in them is a format."""
    assert (await called(answer)).text == text


async def called(answer: object, rest: bytes = b"") -> SandboxResult:
    backends = [Pretended(confined_answering(answer, rest))]
    tools = OwnedTools(LIMITS, make_backends=lambda _: backends)
    result = await execute(tools)
    await tools.close()
    return result


async def test_answer_of_a_run() -> None:
    """The names come from what was found to be true."""
    changed = [["a", 0, 9], ["b/ü", 1, 2]]
    answer = {**RUN, "stdout": "é", "result": '{"json": [1]}', "changed": changed}

    result = await called(answer, MANIFEST + b"abc")

    assert (
        result.text == '{"stdout": "é", "stderr": "", "result": [1], "files": ["b/ü"]}'
    )
    assert [file.name for file in result.files] == ["ü"]
    assert not result.failed


async def test_more_files_than_are_handed_out_are_left(spool: Path) -> None:
    """Code that took the program over could return thousands, and each is stored."""
    many = [[f"{number}.txt", 0, 0] for number in range(LIMITS.returned_files + 1)]
    reply = await read(spool, {"done": "x", "changed": many})
    assert [file.name for file in reply.changed] == [name for name, *_ in many[:-1]]
