"""Which recordings are read, and what is taken for the output of one."""

import gzip
import json
from pathlib import Path
from typing import Any

from recorded.answers import facts_of_response
from recorded.explained import Explanation
from recorded.rows import Difference, Recording, find_files, read_recordings
from recorded.streams import compare_streams

MESSAGE = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
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
    assert (facts.text, facts.calls) == ("Hello", ("look_up({})",))
    assert compare_streams([without]) == []
    assert own.final["output"] == [CALL]


def test_a_server_with_its_port_is_the_server(tmp_path: Path) -> None:
    """Some recorders write the port of OpenAI's server."""
    urls = ("https://api.openai.com:443/v1/responses", "http://api.example.com/v1")
    path = write_rows(tmp_path / "a.jsonl.gz", *(row("{}", url) for url in urls))

    assert [each.is_openai for each in read_recordings(path)] == [True, False]


def test_a_reason_is_of_its_file_and_line(tmp_path: Path) -> None:
    """The same line of another file has no explanation."""
    reason = Explanation("Known.", ("pipe",), (1,), file="a")
    recordings = [
        read_one(tmp_path, "{}"),
        *read_recordings(write_rows(tmp_path / "b.jsonl.gz", row("{}"))),
        read_recordings(write_rows(tmp_path / "a.jsonl.gz", row(""), row("")))[1],
    ]
    explained = [reason.explains(Difference("pipe", each, "")) for each in recordings]

    assert explained == [True, False, False]
