"""What scripts/recordings.py reads: recordings, and what the pipe made of them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from recorded.answers import facts_of_response
from recorded.explained import Explanation
from recorded.rows import Difference, Recording, find_files, read_recordings
from recorded.shown import expected_answer, find_doubled_text, read_native, read_plain
from recorded.streams import compare_streams

MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hi there", "annotations": []}],
}
CALL = {"type": "function_call", "name": "look_up", "arguments": "{}", "call_id": "c"}
FINAL: dict[str, Any] = {"id": "resp_1", "status": "completed", "output": []}


def stream_of(*items: dict[str, Any], **final: Any) -> str:
    events = [
        {"type": "response.output_item.done", "output_index": index, "item": item}
        for index, item in reversed(list(enumerate(items)))
    ]
    events.append({"type": "response.completed", "response": {**FINAL, **final}})
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def row(body: str, url: str = "https://api.openai.com/v1/responses") -> dict[str, Any]:
    fixed = {"status": 200, "req": None, "form": "wire", "repo": "a/b"}
    return {**fixed, "url": url, "body": body}


def write_rows(path: Path, *rows: dict[str, Any]) -> Path:
    path.parent.mkdir(exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(each) + "\n" for each in rows)
    return path


def read_one(folder: Path, body: str) -> Recording:
    (recording,) = read_recordings(write_rows(folder / "a.jsonl.gz", row(body)))
    return recording


def test_a_folder_stands_for_all_of_its_files(tmp_path: Path) -> None:
    """Also the streams of the folders below; a file may be named alone."""
    first = write_rows(tmp_path / "a.jsonl.gz", row(""), row(""))
    second = write_rows(tmp_path / "b-2026.jsonl.gz", row(""))
    stream = tmp_path / "servers" / "vllm.think.sse"
    stream.parent.mkdir()
    stream.write_text(stream_of(MESSAGE), "utf-8")
    (tmp_path / "servers" / "notes.txt").write_text("none", "utf-8")

    assert find_files([tmp_path]) == [first, second, stream]
    assert find_files([second, tmp_path / "none"]) == [second]
    read = [read_recordings(path) for path in (first, second, stream)]
    assert [(each.file, each.number) for rows in read for each in rows] == [
        ("a", 1),
        ("a", 2),
        ("b-2026", 1),
        ("vllm.think", 1),
    ]


def test_output_of_a_final_object(tmp_path: Path) -> None:
    """The finished items in their order, as for the pipe, unless it has its own."""
    without, own = [
        read_one(tmp_path, stream_of(MESSAGE, CALL, **final))
        for final in ({}, {"output": [CALL]})
    ]

    assert without.final
    assert own.final
    assert without.final["output"] == [MESSAGE, CALL]
    facts = facts_of_response(without.final)
    assert (facts.text, facts.calls) == ("Hi there", ("look_up({})",))
    assert compare_streams([without]) == []
    assert own.final["output"] == [CALL]


def test_a_reason_is_of_its_file_and_line(tmp_path: Path) -> None:
    """Some recorders write the port of OpenAI's server."""
    urls = ("https://api.openai.com:443/v1/responses", "http://api.example.com/v1")
    ours, other = read_recordings(
        write_rows(tmp_path / "a.jsonl.gz", *(row("{}", url) for url in urls))
    )
    [same_line] = read_recordings(write_rows(tmp_path / "b.jsonl.gz", row("{}")))
    reason = Explanation("Known.", ("pipe",), (1,), file="a")

    assert (ours.is_openai, other.is_openai) == (True, False)
    assert [
        reason.explains(Difference("pipe", each, ""))
        for each in (ours, other, same_line)
    ] == [True, False, False]


COMMENTARY = {
    "type": "message",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "I look."}],
}
THOUGHT = {
    "type": "reasoning",
    "summary": [
        {"type": "summary_text", "text": "One."},
        {"type": "summary_text", "text": "Two."},
    ],
}


def delta(text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "delta": text}


def done(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


@pytest.mark.parametrize(
    ("deltas", "is_doubled"),
    [
        (["Hi ", "there"], False),
        (["Hi ", "there", "Hi there"], True),
        (["Hi "], True),
        (["Hi there[1]"], False),
        (["Hi there[[1]](https://a.example)"], False),
        (
            ["Hi there[1]", '\n\n[1]: https://a.example "A"\n[2]: https://b.example'],
            False,
        ),
    ],
)
def test_doubled_text_is_seen(deltas: list[str], is_doubled: bool) -> None:
    """The deltas have to be the text of the item, but for the numbers of sources."""
    chunks = [*map(delta, deltas), done(MESSAGE)]

    assert bool(find_doubled_text(chunks)) == is_doubled


def test_commentary_and_joined_summaries_are_no_difference() -> None:
    """A page shows commentary as a quotation, and summaries as one text."""
    joined = {**THOUGHT, "summary": [{"type": "summary_text", "text": "One.\n\nTwo."}]}
    quoted = {
        "type": "openai_responses:remark",
        "content": [{"type": "output_text", "text": "> I look."}],
    }
    chunks = [done(joined), done(quoted, 1), done(MESSAGE, 2)]

    expected = expected_answer([THOUGHT, COMMENTARY, MESSAGE], "")
    assert read_native(chunks) == expected


def test_an_early_end_is_a_failure() -> None:
    """A plain client gets a reason of its own to finish, a page a last line.

    That of a good answer says how long it took.
    """
    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": "Hi"}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "finish_reason": "length"}]},
    ]
    early = "The answer reached its length limit. (Error id: 81DWQADJWM)"
    good, failed = (
        {"event": {"type": "status", "data": {"description": text, "done": True}}}
        for text in ("Finished in 2 s", early)
    )

    assert read_plain(chunks).failure == "length"
    assert read_native([done(MESSAGE), good]).failure == ""
    assert read_native([done(MESSAGE), failed]).failure == early
