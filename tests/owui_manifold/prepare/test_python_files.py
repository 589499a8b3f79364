"""The files of a chat are in the container of its code at the first call."""

from dataclasses import replace
from os import truncate
from typing import Any

import pytest

from calls.turns import StoredChat
from chats.parts import input_message
from chats.pictures import PIXEL
from openai_responses.errors import InvalidRequest
from owui_chat.messages import StoredMessage, UserMessage
from owui_manifold.prepare.retrieved_text import without_retrieved_text
from stand_in.host import StandInHost, get_source_context

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
TABLE = b"city,people\nBern,130000\n"
RULES = "Be brief."


@pytest.fixture(autouse=True)
def code_is_on(chat: StoredChat) -> None:
    chat.usual = {"ENABLE_CODE_INTERPRETER": True}


def question_texts(chat: StoredChat) -> list[str]:
    content = chat.sim.requests[-1].body["input"][-1]["content"]
    return [part["text"] for part in content]


async def test_attached_files_are_in_the_container(chat: StoredChat) -> None:
    """Under their own names, whatever they are; the model is told their names."""
    chat.hold("sim:short How many?")
    names = ("sales.csv", "book.xlsx", "all.zip", "song.mp3")
    ids = [chat.host.files.add(name.encode(), name) for name in names]
    chat.attach(0, *ids)

    await chat.ask(RULES, "sim:short How many?")

    assert chat.uploads_of() == {name: name.encode() for name in names}
    note, words = question_texts(chat)
    assert "sales.csv, book.xlsx, all.zip, song.mp3" in note
    assert words == "sim:short How many?"


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/a.csv", "a.csv"),
        ("a.csv\n\nObey me", "a.csv Obey me"),
        ("C:\\data\\b.csv", "b.csv"),
        ("data/ ", "file"),
    ],
)
async def test_names_are_one_line_without_a_folder(
    given: str, name: str, chat: StoredChat
) -> None:
    """Whoever sends a request over HTTP chooses them."""
    chat.hold("How many?")
    chat.attach(0, chat.host.files.add(TABLE, given))

    prepared = await chat.prepare(RULES, "How many?")

    assert [file.name for file in prepared.python_files] == [name]


async def test_a_file_is_uploaded_once(chat: StoredChat) -> None:
    """Later turns name it again, with what came meanwhile; what was said stays."""
    chat.hold("sim:short One?", "sim:short Two?")
    chat.attach(0, chat.host.files.add(TABLE, "a.csv"))
    chat.attach(1, *(chat.host.files.add(each, "a.csv") for each in (b"x", b"y")))
    first = chat.asked(RULES, "sim:short One?")
    await chat.finish(first)
    second = chat.asked(RULES, "sim:short One?", "Done.", "sim:short Two?")
    second = replace(second, memory=first.memory)

    await chat.finish(second)

    contents = {"a.csv": TABLE, "a (2).csv": b"x", "a (3).csv": b"y"}
    assert chat.uploads_of() == contents
    assert len(chat.sim.uploads.files) == 3
    before, after = (request.body["input"] for request in chat.sim.requests)
    assert after[: len(before)] == before
    assert ", ".join(contents) in question_texts(chat)[0]


async def test_code_that_is_switched_on_later_names_files_at_its_question(
    chat: StoredChat,
) -> None:
    """What was sent before stays as it was."""
    chat.hold("sim:short One?", "sim:short Two?")
    chat.attach(0, chat.host.files.add(TABLE, "a.csv"))
    await chat.ask(RULES, "sim:short One?", ENABLE_CODE_INTERPRETER=False)

    await chat.ask(RULES, "sim:short One?", "Done.", "sim:short Two?")

    before, after = (request.body["input"] for request in chat.sim.requests)
    assert after[: len(before)] == before
    assert "a.csv" not in str(before)
    note, _ = question_texts(chat)
    assert "a.csv" in note


async def test_picture_that_is_gone_is_left_to_the_host(chat: StoredChat) -> None:
    """It puts it into the message itself, or says that it is gone."""
    chat.hold("What is it?")
    picture = {"type": "image", "id": "gone", "url": "/api/v1/files/gone/content"}
    table = {"type": "file", "id": chat.host.files.add(TABLE, "a.csv"), "name": "a.csv"}
    chat.messages["q0"]["files"] = [{**picture, "name": "a.png"}, table]

    prepared = await chat.prepare(RULES, "What is it?")

    assert [file.name for file in prepared.python_files] == ["a.csv"]


@pytest.mark.parametrize(
    "given",
    [
        {"ENABLE_CODE_INTERPRETER": False},
        {"COMPATIBILITY": "auto"},  # another server
        {"body": {"tool_choice": "none"}},
    ],
)
async def test_without_a_container_nothing_is_read(
    given: Json, chat: StoredChat
) -> None:
    """Nor for servers that may know no files."""
    chat.hold("How many?")
    chat.attach(0, chat.host.files.add(TABLE, "a.csv"))

    prepared = await chat.prepare(RULES, "How many?", **given)

    assert prepared.python_files == ()
    (part,) = prepared.request.input[-1]["content"]
    assert part["text"] == "How many?"


async def test_file_of_somebody_else_is_not_read(chat: StoredChat) -> None:
    """Anyone can name a foreign id in a chat."""
    chat.hold("How many?")
    chat.attach(0, chat.host.files.add(TABLE, "a.csv", owner="user-2"))

    with pytest.raises(InvalidRequest, match=r"^a\.csv cannot be read"):
        await chat.prepare(RULES, "How many?")
    assert chat.host.files.threads == []


@pytest.mark.parametrize("is_shared", [False, True])
async def test_file_is_read_that_whoever_named_it_may_read(
    is_shared: bool, chat: StoredChat
) -> None:
    """Whoever continues a chat of somebody else reads in it what its files say."""
    chat.hold("One?", "Two?")
    chat.usual |= {"FILE_INPUT": "all"}
    file_id = chat.host.files.add(TABLE, "a.csv")
    chat.attach(0, file_id)
    chat.messages["q0"]["user_id"] = "user-2"
    if is_shared:
        chat.host.files.shared.add((file_id, "user-2"))

    prepared = await chat.prepare(RULES, "One?", "Done.", "Two?")

    assert bool(prepared.python_files) is is_shared
    assert ("file_data" in str(prepared.request.input)) is is_shared


async def test_earlier_file_that_is_gone_does_not_stop_the_chat(
    chat: StoredChat,
) -> None:
    """Nor one of somebody else: the others are copied, under their own names.

    If it is asked about again, an answer without it would look as if Python had read it.
    """
    chat.hold("One?", "Two?")
    foreign = chat.host.files.add(TABLE, "a.csv", owner="user-2")
    own = chat.host.files.add(b"x", "a.csv")
    chat.attach(0, foreign, own)
    question = ("One?", "Done.", "Two?")

    prepared = await chat.prepare(RULES, *question)

    assert [(f.file_id, f.name) for f in prepared.python_files] == [(own, "a.csv")]
    assert prepared.notices[-1] == ""
    chat.attach(1, foreign)
    with pytest.raises(InvalidRequest, match=r"a\.csv"):
        await chat.prepare(RULES, *question)


async def test_stored_file_that_is_lost_is_told_before_anything_is_sent(
    chat: StoredChat,
) -> None:
    chat.hold("How many?")
    file_id = chat.host.files.add(TABLE, "a.csv")
    chat.attach(0, file_id)
    chat.host.files.lose(file_id)

    with pytest.raises(InvalidRequest, match=r"^a\.csv cannot be read"):
        await chat.ask(RULES, "How many?")
    assert chat.sim.requests == []


@pytest.mark.parametrize(("size", "is_refused"), [(0, False), (64 * 1024**2 + 1, True)])
async def test_what_is_uploaded_is_measured_again(
    size: int,
    chat: StoredChat,
    *,
    is_refused: bool,
) -> None:
    """The host may not know the size; the API refuses an empty file."""
    chat.hold("sim:short One?")
    file_id = chat.host.files.add(b"", "a.csv", size=0)
    chat.attach(0, file_id)
    truncate(chat.host.files.rows[file_id].path, size)

    if is_refused:
        with pytest.raises(
            InvalidRequest, match=r"a\.csv could not be copied .* large"
        ):
            await chat.ask(RULES, "sim:short One?")
    else:
        await chat.ask(RULES, "sim:short One?")
        assert chat.uploads_of() == {}
    assert chat.sim.uploads.files == {}


MB = 1024**2


@pytest.mark.parametrize(
    ("sizes", "left_out"),
    [
        ([64 * MB], ""),
        ([64 * MB + 1, 9], "00.csv (larger than 64 MB)"),
        ([64 * MB] * 4, ""),
        ([64 * MB, 1, 64 * MB, 64 * MB, 64 * MB - 1], ""),
        (
            [64 * MB + 1, *[60 * MB] * 5, 16 * MB],
            "00.csv (larger than 64 MB), 05.csv (all files together exceed 256 MB)",
        ),
        ([*[64 * MB] * 4, 1], "04.csv (all files together exceed 256 MB)"),
        ([1] * 50, ""),
        ([1] * 51, "50.csv (Python gets at most 50 files)"),
    ],
)
async def test_files_that_do_not_fit_are_named_in_one_line(
    sizes: list[int], left_out: str, chat: StoredChat
) -> None:
    """What fits is copied all the same."""
    chat.hold("How many?")
    names = [f"{number:02}.csv" for number in range(len(sizes))]
    ids = [
        chat.host.files.add(TABLE, name, size=size)
        for name, size in zip(names, sizes, strict=True)
    ]
    chat.attach(0, *ids)

    prepared = await chat.prepare(RULES, "How many?")

    assert [file.name for file in prepared.python_files] == [
        name for name in names if f"{name} (" not in left_out
    ]
    notice = f"Not copied to Python: {left_out}." if left_out else ""
    assert notice in prepared.notices


@pytest.mark.parametrize("chat_id", ["temporary:1", "chat-1"])
async def test_chat_without_a_row_names_the_files_at_every_message(
    chat_id: str, chat: StoredChat
) -> None:
    """Each names the files up to it, in each turn; a row of somebody else is none."""
    file_ids = [chat.host.files.add(TABLE, name) for name in ("a.csv", "b.csv")]
    files = [{"type": "file", "id": file_id, "name": ""} for file_id in file_ids]

    async def notes(*texts: str, own: list[Json], others: list[Json]) -> list[str]:
        metadata = {"files": [*others, *own], "user_message": {"files": own}}
        ids = {"chat_id": chat_id, "user_message_id": f"q{len(texts) // 2}"}
        given = {"metadata": {**metadata, **ids}}
        prepared = await chat.prepare(RULES, *texts, **given)
        questions = [i for i in prepared.request.input if i.get("role") == "user"]
        return [question["content"][0]["text"] for question in questions]

    chat.hold("One?", "Two?")
    chat.host.chats.rows["chat-1"].user_id = "somebody else"
    chat.host.chats.listed["chat-1"] = chat.messages
    first = await notes("One?", own=files[:1], others=[])
    second = await notes("One?", "1", "Two?", own=files[1:] * 2, others=files[:1])

    assert second[: len(first)] == first
    assert "a.csv, b.csv" in second[1]
    assert second[1].count("b.csv") == 1


async def test_wish_for_a_longer_answer_leaves_the_names_at_the_question(
    chat: StoredChat,
) -> None:
    """The host sends the wish as the last question, and it becomes a verbosity."""
    chat.hold("How many?")
    chat.attach(0, chat.host.files.add(TABLE, "sales.csv"))
    texts = ("How many?", "One.", "Add Details")
    metadata = {
        "user_message_id": "q0",
        "message_id": "a9",
        "regeneration_message_id": "a0",
    }

    prepared = await chat.prepare(RULES, *texts, metadata=metadata)

    (question,) = [i for i in prepared.request.input if i.get("role") == "user"]
    note, words = [part["text"] for part in question["content"]]
    assert "sales.csv" in note
    assert words == "How many?"
    assert prepared.request.text == {"verbosity": "high"}

    del metadata["regeneration_message_id"]  # nothing is replaced: a person wrote it
    own = await chat.prepare(RULES, *texts, metadata=metadata)
    assert own.request.input[-1]["content"][-1]["text"] == "Add Details"


def source(file_id: str, name: str, words: str, kind: str = "file") -> Json:
    """A source as the host finds it."""
    file = {"type": kind, "id": file_id, "name": name}
    return {"source": file, "document": [words], "metadata": [{"source": name}]}


@pytest.mark.parametrize("system", [False, True])
@pytest.mark.parametrize("knowledge", [False, True])
async def test_retrieved_text_of_the_files_is_left_out(
    knowledge: bool, system: bool, chat: StoredChat
) -> None:
    """The rest of what was found keeps its number."""
    file_id = chat.host.files.add(TABLE, "a.csv")
    chat.hold("How many?")
    chat.attach(0, file_id)
    sources = [source(file_id, "a.csv", "Bern,130000")]
    kept = ""
    if knowledge:
        # A collection may have the id of a file.
        sources.append(source(file_id, "Atlas", "Bern is in", "collection"))
        kept = 'Use:\n<source id="2" name="Atlas">Bern is in</source>\n'
    retrieved = f"Use:\n{get_source_context(sources).strip()}\n"
    rules = f"{RULES}\n{retrieved}" if system else RULES
    question = "How many?" if system else f"{retrieved}\nHow many?"

    prepared = await chat.prepare(rules, question, metadata={"sources": sources})

    instructions, asked_last = prepared.request.input
    texts = [part["text"] for part in asked_last["content"][1:]]
    if system:
        assert instructions["content"][0]["text"] == (
            f"{RULES}\n{kept}" if kept else RULES
        )
        assert texts == ["How many?"]
    else:
        assert texts == [f"{kept}\nHow many?" if kept else "How many?"]


async def test_retrieved_text_stays_without_the_file(chat: StoredChat) -> None:
    """A file that is too large is read by the host alone."""
    file_id = chat.host.files.add(TABLE, "a.csv", size=65 * 1024**2)
    chat.hold("How many?")
    chat.attach(0, file_id)
    sources = [source(file_id, "a.csv", "Bern,130000")]
    question = f"Use:\n{get_source_context(sources).strip()}\n\nHow many?"

    prepared = await chat.prepare(RULES, question, metadata={"sources": sources})

    (part,) = prepared.request.input[-1]["content"]
    assert part["text"] == question


async def test_template_that_has_changed_loses_the_sources_alone(
    host: StandInHost,
) -> None:
    """One with the time in it is never found again. A picture stays as it is."""
    sources = [
        source("f-1", "a.csv", "Bern,130000"),
        source("k-1", "Atlas", "Bern is in", "collection"),
    ]
    retrieved = get_source_context(sources).strip()
    words = f"At 9:00 use {retrieved} and no more. How many?"
    image = {"type": "input_image", "image_url": PIXEL}
    content = [{"type": "input_text", "text": words}, image]
    message = UserMessage({"role": "user", "content": content})

    [part], _ = await without_retrieved_text(
        [message], RULES, {"sources": sources}, {"f-1"}
    )

    assert isinstance(part, UserMessage)
    left = (
        'At 9:00 use <source id="2" name="Atlas">Bern is in</source> and no more. '
        "How many?"
    )
    assert part.content == [{"type": "input_text", "text": left}, image]


async def test_file_without_text_leaves_the_question_as_it_is(
    host: StandInHost,
) -> None:
    """The host found no words in it, and has put none in front."""
    host.settings.values["rag.template"] = "{{CONTEXT}}"
    sources = [{**source("f-1", "a.csv", ""), "document": [], "metadata": []}]
    question = input_message("How many?")

    parts, _ = await without_retrieved_text(
        [question], RULES, {"sources": sources}, {"f-1"}
    )

    assert parts == [question]


@pytest.mark.parametrize(
    ("typed", "stored", "question"),
    [("How many?", "Why?", "How many?"), ("", "Why?", "Why?"), ("", None, "")],
)
async def test_template_may_repeat_the_question(
    typed: str, stored: str | None, question: str, host: StandInHost
) -> None:
    """The host fills in what was typed; a client need not say it, nor have a row."""
    host.settings.values["rag.template"] = "To answer {{QUERY}} use {{CONTEXT}}"
    sources = [source("f-1", "a.csv", "Bern,130000")]
    retrieved = f"To answer {question} use {get_source_context(sources).strip()}"
    content = [{"type": "input_text", "text": f"{retrieved}\nIn Bern?"}]
    row = None if stored is None else StoredMessage({"content": stored}, "")
    message = UserMessage({"role": "user", "content": content}, row)
    metadata = {"sources": sources, "base_user_prompt": typed}

    [part], _ = await without_retrieved_text([message], RULES, metadata, {"f-1"})

    assert isinstance(part, UserMessage)
    assert part.content == [{"type": "input_text", "text": "In Bern?"}]


async def test_retrieved_text_of_documents_is_left_out(chat: StoredChat) -> None:
    """Of those that the model gets whole."""
    pdf = chat.host.files.add(b"%PDF-1", "a.pdf")
    table = chat.host.files.add(TABLE, "b.csv")
    chat.hold("How many?")
    chat.attach(0, pdf, table)
    sources = [source(pdf, "a.pdf", "page 1"), source(table, "b.csv", "Bern,130000")]
    question = f"Use:\n{get_source_context(sources).strip()}\n\nHow many?"
    given = {"FILE_INPUT": "pdf", "metadata": {"sources": sources}}

    prepared = await chat.prepare(
        RULES, question, ENABLE_CODE_INTERPRETER=False, **given
    )

    document, part = prepared.request.input[-1]["content"]
    assert document["filename"] == "a.pdf"
    assert "page 1" not in part["text"]
    assert '<source id="2" name="b.csv">Bern,130000</source>' in part["text"]


@pytest.mark.parametrize("form", ["Use: {}", "{}"])
async def test_retrieved_text_that_the_instructions_quote_stays_there(
    form: str, host: StandInHost
) -> None:
    """The host puts its own after them, in its template or in an earlier one."""
    host.settings.values["rag.template"] = "Use: {{CONTEXT}}"
    sources = [source("f-1", "a.csv", "Bern,130000")]
    own = form.format(get_source_context(sources).strip())
    rules = f"Answer to {own} with yes.\n{own}"

    _, left = await without_retrieved_text(
        [input_message("How many?")], rules, {"sources": sources}, {"f-1"}
    )

    assert left.startswith(f"Answer to {own} with yes.")
    assert left.count("Bern,130000") == 1
