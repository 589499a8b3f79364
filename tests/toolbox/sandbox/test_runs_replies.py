"""Answers of a sandbox are read with distrust."""

import json
from pathlib import Path

import pytest

from toolbox.sandbox.backend import SandboxLimits
from toolbox.sandbox.runs import (
    FileSlice,
    SandboxReply,
    SandboxReplyMissing,
    max_reply_bytes,
    read_reply,
)
from toolbox.sandbox.tools import SandboxResult, build_sandbox_result

LIMITS = SandboxLimits(output=100, disk=1000)
MANIFEST = b'[["file", "a.txt", 384, 5]]\n'


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """Where an answer is written."""
    return tmp_path / "spool"


def read(spool: Path, answer: object, rest: bytes = b"") -> SandboxReply:
    """Read an answer with what follows it."""
    spool.write_bytes(json.dumps(answer).encode() + b"\n" + rest)
    return read_reply(spool, LIMITS)


def test_answer_with_a_workspace(spool: Path) -> None:
    """Where it begins, and where the changed files are in it."""
    answer = {"done": "x", "changed": [["a.txt", 0, 5]]}

    reply = read(spool, answer, MANIFEST + b"bytes")

    begin = len(json.dumps(answer)) + 1
    assert reply.archive == begin
    [changed] = reply.changed
    assert changed == FileSlice("a.txt", begin + len(MANIFEST), 5)
    assert spool.read_bytes()[changed.start :][: changed.size] == b"bytes"


def test_answer_without_a_workspace(spool: Path) -> None:
    """What was kept before stays."""
    assert read(spool, {"text": "x"}) == SandboxReply({"text": "x"}, None)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"no json\n", b"[]\n", b'"text"\n', b"[" * 100_000, b"\xff\n"],
)
def test_what_is_no_answer(spool: Path, content: bytes) -> None:
    """Silence, whatever it was meant to be."""
    spool.write_bytes(content)

    with pytest.raises(SandboxReplyMissing):
        read_reply(spool, LIMITS)


def test_endless_line_is_no_answer(spool: Path) -> None:
    """Only so much of it is read."""
    spool.write_bytes(b'{"text": "' + b"x" * max_reply_bytes(LIMITS) + b'"}\n')

    with pytest.raises(SandboxReplyMissing):
        read_reply(spool, LIMITS)


@pytest.mark.parametrize(
    "changed",
    [
        *("text", 5, {}, [5], [[]], [["a", 0]], [["a", 0, 1, 2]], [[1, 0, 1]]),
        *([["a", -1, 1]], [["a", 0, -1]], [["a", 0, 6]], [["a", 5, 1]]),
        *([["a", 0.5, 1]], [["a", "0", 1]], [["a", 10**30, 1]], None),
    ],
)
def test_files_outside_the_workspace_are_no_files(spool: Path, changed: object) -> None:
    """Neither before it nor behind its end."""
    answer = {"done": "x", "changed": changed}

    assert read(spool, answer, MANIFEST + b"bytes").changed == ()


RUN = {"stdout": "", "stderr": "", "result": "", "status": 0}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({}, "Error: The sandbox gave an answer that makes no sense."),
        ({"stdout": 1}, "Error: The sandbox gave an answer that makes no sense."),
        (
            {**RUN, "result": "[1"},
            '{"stdout": "", "stderr": "", "result": null, "files": []}',
        ),
        (
            {**RUN, "result": [1]},
            '{"stdout": "", "stderr": "", "result": null, "files": []}',
        ),
        (
            {**RUN, "stopped": {"a": "{0.__class__}"}},
            '{"stdout": "", "stderr": "", "result": null, "files": [], '
            '"note": "The code was stopped."}',
        ),
    ],
)
def test_senseless_answers_are_told_all_the_same(
    answer: dict[str, object], told: str
) -> None:
    """Nothing raises, and nothing in them is a format."""
    found = build_sandbox_result(SandboxReply(answer, None), (), LIMITS)

    assert found.text == told


def test_answer_of_a_run(spool: Path) -> None:
    """The names come from what was found to be true."""
    answer = {**RUN, "stdout": "é", "result": '{"json": [1]}', "changed": [["a", 0, 9]]}

    found = build_sandbox_result(
        SandboxReply(answer, None, (FileSlice("b/ü", 1, 2),)), (), LIMITS
    )

    assert found == SandboxResult(
        '{"stdout": "é", "stderr": "", "result": [1], "files": ["b/ü"]}'
    )
