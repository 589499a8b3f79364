"""Files next to the host's retrieval, which finds passages by their embeddings.

The engine is on this machine (servers/embeddings.py), the rest is Open WebUI's: it cuts
files into passages, stores their vectors, and puts those into the question that are
nearest to it.
"""

# ruff: noqa: F401, F811 - pytest uses the fixtures that are imported

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from chats.documents import pdf_of_pages
from hosts.people.tabs import Tab
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.sent import answered
from hosts.servers.embeddings import Embeddings
from hosts.servers.forks import ForkServer
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.own_server import admin, member, pipe
from hosts.setup.pipes import MODEL, PIPE, valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.asyncio, pytest.mark.usefixtures("pipe")]
ASKED = "What is in Atlantis?"
PLACES = ("Lemuria", "Hyperborea", "471100", "Thule", "Avalon")
"""Each passage of a file has some of them. The search of Open WebUI's vector store
is approximate: the nearest passage is usually found, not always."""


class Sample(NamedTuple):
    """A file of several passages, one of which answers the question."""

    name: str
    kind: str
    content: bytes


# Each row has a word of its own: the search of Open WebUI's vector store is approximate,
# and finds no way out of a crowd of equal ones.
ALIKE = range(12)
ROWS = ["city,people", "Lemuria,815"]
ROWS += [f"Village{n:02} of Hyperborea,{n}" for n in ALIKE]
ROWS += [
    "Atlantis,471100",
    "Thule,1",
    *(f"Hamlet{n:02} of Avalon,{n}" for n in ALIKE),
]
PAGES = ["\n".join(ROWS[start : start + 10]) for start in range(0, len(ROWS), 10)]
TABLE = Sample("cities.csv", "text/csv", "\n".join(ROWS).encode())
PDF = Sample("cities.pdf", "application/pdf", pdf_of_pages(PAGES))

# ------------------------------------------------------------------- the server


@pytest_asyncio.fixture(scope="module")
async def embeddings() -> AsyncIterator[Embeddings]:
    async with Embeddings() as engine:
        yield engine


@pytest_asyncio.fixture(scope="module")
async def server(embeddings: Embeddings, forks: ForkServer) -> AsyncIterator[OpenWebUI]:
    """A real Open WebUI with a vector store, for this file alone."""
    async with OpenWebUI(env=embeddings.environment, forks=forks) as running:
        yield running


# -------------------------------------------------------------------- questions


class Sent(NamedTuple):
    """What the model got of a question."""

    text: str
    documents: list[str]
    container: list[str]


async def ask(tab: Tab, simulator: Simulator, kind: str = "short") -> Sent:
    """Ask about a newly attached file, as the page does."""
    simulator.forget()
    file = await attach(tab.user, TABLE.name, TABLE.content, TABLE.kind)
    whole = {"files": [file]}  # the page names the files of the chat once more
    turn = await tab.send(MODEL, f"sim:{kind} {ASKED}", files=[file], body=whole)
    assert turn.error is None
    questions = [sent_of(simulator, request.body) for request in answered(simulator)]
    [sent] = [sent for sent in questions if sent.text.endswith(ASKED)]
    return sent


def sent_of(simulator: Simulator, body: dict[str, Any]) -> Sent:
    """Return what the last message of a request and its container hold."""
    content = body["input"][-1]["content"]
    parts: list[dict[str, Any]] = content
    texts = [part["text"] for part in parts if "text" in part]
    documents = [part["filename"] for part in parts if "filename" in part]
    ids = [
        file_id
        for tool in body.get("tools", [])
        if tool["type"] == "code_interpreter"
        for file_id in tool["container"].get("file_ids", [])
    ]
    names = [simulator.uploads.files[file_id].name for file_id in ids]
    return Sent("\n".join(texts), documents, names)


async def test_retrieved_passages_are_left_out_with_python(
    tab: Tab, admin: User, simulator: Simulator, embeddings: Embeddings
) -> None:
    """Without Python a passage is in the question; with it, the file is."""
    embeddings.texts.clear()

    without = await ask(tab, simulator)
    async with valves_changed(admin, PIPE, ENABLE_CODE_INTERPRETER=True):
        with_python = await ask(tab, simulator, "count")

    # One passage was found by its embedding: the others are not there.
    assert len([text for text in embeddings.texts if "Hyperborea" in text]) > 1
    assert 0 < len(places_in(without)) < len(PLACES)
    assert without.container == without.documents == []
    assert with_python.container == [TABLE.name]
    assert TABLE.name in with_python.text
    assert places_in(with_python) == []
    assert "### Task" not in with_python.text


def places_in(sent: Sent) -> list[str]:
    return [place for place in PLACES if place in sent.text]


async def test_passages_of_other_files_stay(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Of two files, the one that the model gets whole loses its passages alone."""
    lost = b"The lighthouse of Atlantis was built by 12 people."
    files = [
        await attach(tab.user, PDF.name, PDF.content, PDF.kind),
        await attach(tab.user, "lighthouse.txt", lost, "text/plain"),
    ]
    simulator.forget()
    async with valves_changed(admin, PIPE, FILE_INPUT="pdf"):
        await tab.send(MODEL, f"sim:short {ASKED}", files=files, body={"files": files})

    questions = [sent_of(simulator, request.body) for request in answered(simulator)]
    [sent] = [sent for sent in questions if sent.text.endswith(ASKED)]
    assert sent.documents == [PDF.name]
    assert lost.decode() in sent.text
    assert places_in(sent) == []
