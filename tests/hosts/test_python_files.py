"""Files that a person attaches, for Python, in the real Open WebUI."""

from typing import Any

import pytest

from hosts.people.tabs import Tab
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.sent import answered
from hosts.setup.pipes import valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
TABLE = b"city,people\nAtlantis,4711\n"
WORKBOOK = b"PK\x03\x04 no real workbook"
FOUND = "Atlantis"


def container_of(simulator: Simulator, body: dict[str, Any]) -> dict[str, bytes]:
    """The files that a request puts into its container, by their names."""
    (tool,) = [t for t in body["tools"] if t["type"] == "code_interpreter"]
    files = [simulator.uploads.files[i] for i in tool["container"]["file_ids"]]
    return {file.name: file.content for file in files}


def question_of(body: dict[str, Any]) -> str:
    """The texts of the last message."""
    parts = body["input"][-1]["content"]
    return "\n".join(part["text"] for part in parts if "text" in part)


@pytest.mark.asyncio
async def test_attached_files_are_pythons(
    tab: Tab, member: User, admin: User, simulator: Simulator
) -> None:
    """Uploaded once, named in each turn, and not read a second time as text."""
    table = await attach(member, "sales.csv", TABLE, "text/csv")
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    book = await attach(member, "book.xlsx", WORKBOOK, kind, process=False)
    # The test server has no embeddings: only the full text is found without them.
    files = [file | {"context": "full"} for file in (table, book)]
    # The page names the files of the whole chat next to the message's own.
    whole = {"files": files}
    before = await tab.send(MODEL, "sim:short how many?", files=files, body=whole)
    async with valves_changed(admin, PIPE, ENABLE_CODE_INTERPRETER=True):
        first = await tab.send(MODEL, "sim:count how many?", files=files, body=whole)
        await tab.send(MODEL, "sim:short so?", chat_id=first.chat_id, body=whole)

    assert before.error is first.error is None
    bodies = [request.body for request in answered(simulator)]
    # The text around retrieved sources looks like one of the host's own tasks.
    chats = [body for body in bodies if question_of(body).endswith("?")]
    without, asked, again = chats
    assert FOUND in question_of(without)
    for sent in (asked, again):
        assert container_of(simulator, sent) == {
            "sales.csv": TABLE,
            "book.xlsx": WORKBOOK,
        }
        assert "sales.csv, book.xlsx" in question_of(sent)
        assert FOUND not in question_of(sent)
        assert "### Task" not in question_of(sent)
    assert len(simulator.uploads.files) == 2
    assert again["input"][: len(asked["input"])] == asked["input"]
    assert "Copying 2 files to Python" in [s.get("description") for s in first.statuses]
