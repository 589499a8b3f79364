"""What becomes of what a tool returned (R24)."""

import base64
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from gpt5_agent.tools.execution import OwnTools, describe_tool
from openai_responses.loop.tools import ToolResult
from skipping_loop import run_skipping

Json = dict[str, Any]
PIXEL = base64.b64encode(b"\x89PNG pixel").decode()
NOTE = base64.b64encode(b"rain").decode()


IMAGE_SENT_TEXT = "image generated and sent to user. Tell user to review it now."


class Returning:
    """A tool that returns what it was made with."""

    name = "own"
    description = "Return it."
    args: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, result: object) -> None:
        self._result = result

    async def execute(self, args: Json) -> object:
        """Return it."""
        return self._result


def answer(result: object) -> ToolResult:
    """What is made of a result; there are no files here."""
    return run_skipping(OwnTools([Returning(result)], "").call("own", {}))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ("Rain.", "Rain."),
        ("", ""),
        ({"rain": True, "ü": None}, 'tool response: {"rain": true, "ü": null}.'),
        ([], "tool response: []."),
        ([{"type": "surprise"}], 'tool response: [{"type": "surprise"}].'),
        (
            [{"type": "text", "text": "a"}, 7],
            'tool response: [{"type": "text", "text": "a"}, 7].',
        ),
        (None, "tool response: null."),
        (7, "tool response: 7."),
    ],
)
def test_r24_text_is_told_as_it_is_other_values_as_json(
    result: object, text: str
) -> None:
    """Nothing is shown beside it."""
    assert answer(result) == ToolResult(text)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"type": "text", "text": "Rain."}, "Rain."),
        ({"type": "json", "json": {"a": 1}}, 'tool response: {"a": 1}.'),
        (
            {"type": "link", "url": "https://a.example"},
            "result link: https://a.example. please tell user to check it.",
        ),
        (
            {"type": "resource_link", "uri": "https://a.example", "name": "A"},
            "result link: https://a.example. please tell user to check it.",
        ),
        ({"type": "resource", "resource": {"uri": "a:b", "text": "Rain."}}, "Rain."),
    ],
)
def test_r24_parts_have_their_texts(part: Json, text: str) -> None:
    """MCP's parts are parts too."""
    assert answer([part, {"type": "text", "text": "End."}]) == ToolResult(
        f"{text}\nEnd."
    )


@pytest.mark.parametrize(
    ("part", "url"),
    [
        ({"type": "image", "data": PIXEL}, f"data:image/png;base64,{PIXEL}"),
        (
            {"type": "image", "data": PIXEL, "mimeType": "image/webp"},
            f"data:image/webp;base64,{PIXEL}",
        ),
        (
            {"type": "blob", "data": PIXEL, "name": "a.gif"},
            f"data:image/gif;base64,{PIXEL}",
        ),
        ({"type": "image_link", "url": "https://a.example/b.png"}, None),
        (
            {
                "type": "resource",
                "resource": {"uri": "a:b", "blob": PIXEL, "mimeType": "image/png"},
            },
            f"data:image/png;base64,{PIXEL}",
        ),
    ],
)
def test_r24_pictures_are_shown_and_told_of(part: Json, url: str | None) -> None:
    """The model knows that there is one; the page gets it."""
    shown = url or part["url"]

    assert answer([part]) == ToolResult(IMAGE_SENT_TEXT, card={"images": [shown]})


def test_r24_other_files_lie_in_the_card_of_the_call() -> None:
    """They have a name without a path, and a type."""
    told = answer(
        [
            {"type": "blob", "data": NOTE, "name": "/a/b/note.txt"},
            {"type": "blob", "data": NOTE, "mimeType": "application/x-own"},
        ]
    )

    assert told.card == {
        "files": [
            {
                "type": "file",
                "name": "note.txt",
                "url": f"data:text/plain;base64,{NOTE}",
            },
            {
                "type": "file",
                "name": "file",
                "url": f"data:application/x-own;base64,{NOTE}",
            },
        ]
    }
    assert "Generated file note.txt (text/plain, 4 bytes)" in str(told.output)


def test_result_of_mcp_says_itself_whether_it_failed() -> None:
    """Its text reaches the model."""
    content = [{"type": "text", "text": "No such city."}]

    assert answer({"isError": True, "content": content}) == ToolResult(
        "No such city.", failed=True
    )
    assert answer({"isError": False, "content": content}) == ToolResult("No such city.")
    assert answer({"isError": True, "content": []}).failed


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"type": "image", "data": "no base64!"}, "is not base64"),
        (
            {"type": "blob", "data": base64.b64encode(bytes(5 * 1024**2 + 1)).decode()},
            "is larger than 5 MB",
        ),
        ({"type": "file", "path": "/files/a.txt"}, "FILES_ROOT is not set"),
    ],
)
def test_file_that_cannot_be_had_is_refused(part: Json, why: str) -> None:
    """The sentence is for the model."""
    found = answer([part])

    assert found.failed
    assert str(found.output).startswith("tool invoke error: ")
    assert str(found.output).endswith(why)


# ----------------------------------------------------------------- own tools


CITY: Json = {"type": "object", "properties": {"city": {"type": "string"}}}


class Weather:
    """A tool of the port, as a class."""

    name = "weather report"
    description = "Say how the weather is."

    @property
    def args(self) -> Json:
        """Return what it wants."""
        return CITY

    async def execute(self, args: Json) -> object:
        """Return what it was asked for."""
        return args.get("part", args)


class Made:
    """A tool of the port, made from its parts."""

    def __init__(self) -> None:
        self.name = "weather report"
        self.description = "Say how the weather is."
        self.args = CITY

    async def execute(self, args: Json) -> object:
        """Return what it was asked for."""
        return args.get("part", args)


@pytest.mark.parametrize("make", [Weather, Made])
def test_every_tool_of_the_port_is_called_by_its_name(
    make: type[Weather] | type[Made], tmp_path: Path
) -> None:
    """What it returns becomes an answer, files of the folder included."""
    (tmp_path / "a.txt").write_bytes(b"rain")
    tool = make()
    tools = OwnTools([tool], str(tmp_path))
    name = tool.name

    async def work() -> list[ToolResult]:
        file = {"type": "file", "path": "/files/a.txt"}
        outside = {"type": "file", "path": "/files/../b.txt"}
        given: list[Json] = [{"city": "Bern"}, {"part": [file]}, {"part": [outside]}]
        return [await tools.call(name, arguments) for arguments in given]

    plain, read, refused = run_skipping(work())

    assert tools.schemas == {"weather report": CITY}
    assert plain == ToolResult('tool response: {"city": "Bern"}.')
    assert read.card["files"][0]["name"] == "a.txt"
    assert refused == ToolResult(
        "tool invoke error: there is no such file below /files", failed=True
    )
    assert describe_tool(tool) == {
        "name": "weather report",
        "description": "Say how the weather is.",
        "parameters": CITY,
    }
