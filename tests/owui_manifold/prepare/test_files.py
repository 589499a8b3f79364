"""Files are read with the rights of the user, away from the event loop."""

import base64
import sys
import threading
from collections.abc import Sequence
from io import BytesIO
from types import ModuleType, SimpleNamespace
from typing import Any, Self
from unittest.mock import Mock

import pytest

from calls.sample import IDS, call_of, chat, host_context
from chats.parts import file_part, input_message, text_part
from chats.pictures import JPEG, PDF, PIXEL, PNG, WEBP
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from owui_chat.messages import AssistantText, Attachment, ChatPart, UserMessage
from owui_manifold.call.context import Call, Caller
from owui_manifold.call.valves import Valves
from owui_manifold.host.result_files import split_result_files
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.files import add_documents, scale_image
from stand_in.host import Row, StandInHost

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
USER = SimpleNamespace(id="user-1", role="user")
ADMIN = SimpleNamespace(id="admin", role="admin")


def attachment(file_id: str, name: str, kind: str = "application/pdf") -> Attachment:
    return Attachment(file_id, name, kind, is_image=False)


async def asked_with(
    *files: Attachment, user: Any = USER, wanted: str = "all"
) -> list[Item]:
    """The parts of a question that came with these files."""
    asked = input_message("?")._replace(attachments=files)
    extended = await add_documents([asked], user, wanted)
    (only,) = extended
    assert isinstance(only, UserMessage)
    parts: list[Item] = only.item["content"]
    return parts


async def test_document_stands_in_front_of_the_question(host: StandInHost) -> None:
    """Whole, under the name that the chat has for it; read beside the loop."""
    file_id = host.files.add(PDF, "stored.pdf")

    parts = await asked_with(attachment(file_id, "a.pdf"))

    assert parts == [file_part("a.pdf", PDF), text_part("?")]
    [thread] = host.files.threads  # storage may be slow and far away
    assert thread != threading.current_thread().name


@pytest.mark.parametrize(
    ("name", "declared", "stored"),
    [
        ("t.csv", "", None),
        ("table", "", "text/csv"),
        ("table", "text/csv", "application/zip"),
    ],
)
async def test_caller_without_a_name_gets_the_stored_one(
    name: str, declared: str, stored: str | None, host: StandInHost
) -> None:
    """Over plain HTTP a file is an id. A name tells the type, else the caller, the host."""
    file_id = host.files.add(b"a,b", name, content_type=stored)

    parts = await asked_with(attachment(file_id, "", declared))

    assert parts[0] == file_part(name, b"a,b", "text/csv")


@pytest.mark.parametrize(
    ("wanted", "sent"), [("pdf", ["a.pdf"]), ("all", ["a.pdf", "b.txt", "c.docx"])]
)
async def test_only_wanted_documents_are_read(
    wanted: str, sent: list[str], host: StandInHost
) -> None:
    """Sounds, archives and pictures are left to the host."""
    names = ("a.pdf", "b.txt", "c.docx", "d.mp3", "e.zip", "f.png")
    files = [attachment(host.files.add(PDF, name), name, "") for name in names]
    picture = Attachment(host.files.add(PNG, "g.pdf"), "g.pdf", "", is_image=True)

    parts = await asked_with(*files, picture, wanted=wanted)

    assert [part["filename"] for part in parts[:-1]] == sent


@pytest.mark.parametrize("user", [USER, None])
async def test_file_of_somebody_else_is_not_read(user: Any, host: StandInHost) -> None:
    """Whoever names it; the message does not tell whether it exists."""
    file_id = host.files.add(b"%PDF-secret", "a.pdf", owner="user-2")

    for named in (file_id, "no such file"):
        with pytest.raises(InvalidRequest, match=r"^a\.pdf cannot be read") as caught:
            await asked_with(attachment(named, "a.pdf"), user=user)
        assert "it is gone, or it is not yours" in str(caught.value)
    assert host.files.threads == []


async def test_shared_file_is_read(host: StandInHost) -> None:
    """By those it is shared with, and by administrators, as in the host."""
    file_id = host.files.add(PDF, "a.pdf", owner="user-2")
    host.files.shared.add((file_id, "user-1"))

    for user in (USER, ADMIN):
        parts = await asked_with(attachment(file_id, "a.pdf"), user=user)
        assert parts[0] == file_part("a.pdf", PDF)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/nowhere/at/all", None),
        (None, None),
        # The host's remote storages raise one or the other.
        ("a.pdf", OSError("gone")),
        ("a.pdf", RuntimeError("NoSuchKey")),
    ],
)
async def test_lost_file_is_refused(
    path: Any, error: Exception | None, host: StandInHost
) -> None:
    """The row is there, the bytes are not."""
    file_id = host.files.add(PDF, "a.pdf")
    host.files.rows[file_id].path = path
    get_file = Mock(side_effect=error, return_value=path)
    host.provide("storage.provider", Storage=SimpleNamespace(get_file=get_file))

    with pytest.raises(InvalidRequest, match=r"a\.pdf cannot be read"):
        await asked_with(attachment(file_id, "a.pdf"))


@pytest.mark.parametrize("is_declared", [True, False])
async def test_files_beyond_the_limit_are_refused(
    is_declared: bool, host: StandInHost
) -> None:
    """The message names the file that was too much; a known size saves the reading."""

    def add(size: int) -> Attachment:
        content = PDF if is_declared else PDF.ljust(size)
        file_id = host.files.add(content, "a.pdf", size=size if is_declared else None)
        return attachment(file_id, "a.pdf")

    with pytest.raises(InvalidRequest, match=r"With a\.pdf .* exceed 50 MB"):
        await asked_with(add(50_000_001))
    assert len(host.files.threads) == (0 if is_declared else 1)

    assert len(await asked_with(add(50_000_000))) == 2


async def test_files_share_the_limit(host: StandInHost) -> None:
    """Those of earlier messages come first, so that what was sent stays."""
    half = PDF.ljust(30_000_000)
    files = [attachment(host.files.add(half, n), n) for n in ("a.pdf", "b.pdf")]
    first, second = (input_message("?")._replace(attachments=[f]) for f in files)

    with pytest.raises(InvalidRequest, match=r"^With b\.pdf"):
        await add_documents([first, AssistantText("!"), second], USER, "pdf")


async def test_earlier_file_does_not_stop_the_chat() -> None:
    """The model is told that it is gone."""
    asked = input_message("1")._replace(attachments=[attachment("gone", "a.pdf")])
    parts: list[ChatPart] = [asked, AssistantText("!"), input_message("2")]

    extended = await add_documents(parts, USER, "pdf")

    first = extended[0]
    assert isinstance(first, UserMessage)
    note, question = first.item["content"]
    assert note["text"].startswith("[a.pdf cannot be read")
    assert question == text_part("1")
    assert extended[1:] == parts[1:]


async def test_stored_picture_is_read_back(host: StandInHost) -> None:
    """As the chat names it, also with more after it."""
    file_id = host.files.add(PNG, "a.png")
    stored = f"/api/v1/files/{file_id}/content"
    files = [{"type": "image", "url": url} for url in (stored, f"{stored}?v=1", PIXEL)]

    async def store(url: str) -> str:
        return url

    output, _ = await split_result_files(files, "x", store, USER, has_row=True)

    image = {"type": "input_image", "detail": "auto", "image_url": PIXEL}
    assert output == [text_part("x"), image, image, image]


def with_row(host: StandInHost, *files: Json) -> None:
    """Let the chat's row have one question with these files."""
    question = {"role": "user", "parentId": None, "files": [*files]}
    answer = {"role": "assistant", "parentId": "q0"}
    second = {"role": "user", "parentId": "a0"}
    messages = {"q0": question, "a0": answer, "q1": second}
    history = {"history": {"messages": messages, "currentId": "q1"}}
    host.chats.rows["chat-1"] = Row("user-1", history)


def valves(**given: Any) -> Valves:
    nowhere = {"BASE_URL": "http://127.0.0.1:1", "API_KEY": "sk-1"}
    return Valves.model_validate({**nowhere, **given})


async def inputs(*texts: str, message_id: str, **given: Any) -> list[Item]:
    """What would be sent for a chat whose last question this is."""
    context = host_context(
        metadata={"user_id": "user-1", "user_message_id": message_id}
    )
    asked = call_of(chat(*texts), valves(**given), host=context)
    prepared = await build_chat_request(asked)
    return list(prepared.request.input)


async def test_later_turn_begins_with_the_earlier_one(host: StandInHost) -> None:
    """The same file, at the same place, byte for byte."""
    file_id = host.files.add(PDF, "a.pdf")
    with_row(host, {"type": "file", "id": file_id, "name": "a.pdf"})

    first = await inputs("Read it.", message_id="q0", FILE_INPUT="pdf")
    second = await inputs("Read it.", "Done.", "So?", message_id="q1", FILE_INPUT="pdf")

    assert first[0]["content"][0] == file_part("a.pdf", PDF)
    assert second[:1] == first
    assert len(second) == 3


async def test_files_stay_at_the_question_that_is_answered_again(
    host: StandInHost,
) -> None:
    """The wish for more details is in the request alone, and is not sent."""
    file_id = host.files.add(PDF, "a.pdf")
    with_row(host, {"type": "file", "id": file_id, "name": "a.pdf"})
    metadata = {"user_message_id": "q0", "regeneration_message_id": "a0"}
    body = chat("Read it.", "Done.", "Add Details")
    context = host_context(metadata=metadata)
    asked_again = call_of(body, valves(FILE_INPUT="pdf"), host=context)

    prepared = await build_chat_request(asked_again)

    [asked] = prepared.request.input
    assert asked["content"] == [file_part("a.pdf", PDF), text_part("Read it.")]


async def test_files_are_the_hosts_unless_wanted(host: StandInHost) -> None:
    """By default nothing is read; nor for a model that cannot see."""
    file_id = host.files.add(PDF, "a.pdf")
    with_row(host, {"type": "file", "id": file_id, "name": "a.pdf"})
    blind = Caller("f.blind", "user-1", "chat-1", "m-1")

    left = await inputs("Read it.", message_id="q0")
    context = host_context(metadata={"user_message_id": "q0"})
    overrides = '{"blind": {"like": "gpt-5.2", "vision": false}}'
    given = valves(FILE_INPUT="all", MODEL_OVERRIDES_JSON=overrides)
    unseen = await build_chat_request(call_of(chat("?"), given, blind, host=context))

    assert left[0]["content"] == [text_part("Read it.")]
    assert unseen.request.input[0]["content"] == [text_part("?")]
    assert host.files.threads == []


async def test_detail_of_pictures_is_a_setting() -> None:
    """What the request says itself wins."""
    body = chat("?")
    shown = [{"url": PIXEL}, {"url": PIXEL, "detail": "high"}]
    body["messages"][0]["content"] = [
        {"type": "image_url", "image_url": image} for image in shown
    ]

    prepared = await build_chat_request(call_of(body, valves(IMAGE_DETAIL="low")))

    parts = prepared.request.input[0]["content"]
    assert [part["detail"] for part in parts] == ["low", "high"]


class StandInImage:
    """A picture of Pillow, as far as it is used."""

    width = height = 7000
    is_upright = False

    def __init__(self, file: BytesIO, formats: Sequence[str]) -> None:
        assert set(formats) == {"GIF", "JPEG", "PNG", "WEBP"}
        if not file.read().startswith(b"\x89PNG"):
            raise OSError("cannot identify image file")
        self.size = (self.width, self.height)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        """Close it."""

    def thumbnail(self, size: tuple[int, int]) -> None:
        self.size = size

    def convert(self, mode: str) -> Self:
        assert (mode, self.is_upright) == ("RGBA", True)
        return self

    def paste(self, picture: Self, mask: Self) -> None:
        self.size = mask.size

    def save(self, file: BytesIO, kind: str) -> None:
        assert (self.size, kind) == ((2048, 2048), "JPEG")
        file.write(JPEG)


class HugeImage(StandInImage):
    """One whose pixels would take 1.5 GB; they are not decoded."""

    width = height = 13_300

    def thumbnail(self, size: tuple[int, int]) -> None:
        raise AssertionError(size)


def turned_upright(image: StandInImage) -> StandInImage:
    """A photo as it was taken."""
    image.is_upright = True
    return image


def white_sheet(mode: str, size: tuple[int, int], color: str) -> StandInImage:
    assert (mode, color) == ("RGB", "white")
    return StandInImage(BytesIO(PNG), ("GIF", "JPEG", "PNG", "WEBP"))


@pytest.mark.parametrize(
    ("content", "library", "scaled"),
    [
        (PNG, SimpleNamespace(open=StandInImage, new=white_sheet), JPEG),
        (PNG, None, b""),
        (WEBP, SimpleNamespace(open=StandInImage, new=white_sheet), b""),
        (PNG, SimpleNamespace(open=HugeImage, new=white_sheet), b""),
    ],
    ids=["scaled", "no library", "not readable by the library", "too many pixels"],
)
async def test_hosts_library_scales_pictures(
    content: bytes, library: object, scaled: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are too large; input/test_attachments.py has what becomes of them."""
    monkeypatch.setitem(sys.modules, "PIL", ModuleType("PIL"))
    monkeypatch.setitem(sys.modules, "PIL.Image", library)
    upright = SimpleNamespace(exif_transpose=turned_upright)
    monkeypatch.setitem(sys.modules, "PIL.ImageOps", upright)

    assert scale_image(base64.b64encode(content).decode()) == scaled


async def test_file_that_nobody_could_read_is_announced(host: StandInHost) -> None:
    """Unless the model gets it whole."""
    file_id = host.files.add(PDF, "a.pdf")
    unread = {"data": {"status": "failed", "error": "400: empty"}}
    with_row(host, {"type": "file", "id": file_id, "name": "a.pdf", "file": unread})
    context = host_context(metadata={"user_message_id": "q0"})

    def asked(**given: Any) -> Call:
        return call_of(chat("Read it."), valves(**given), host=context)

    told = (await build_chat_request(asked())).notices
    whole = (await build_chat_request(asked(FILE_INPUT="pdf"))).notices

    assert any("could not read a.pdf" in notice for notice in told)
    assert not any(whole)


@pytest.mark.parametrize(
    ("kind", "text", "is_told"),
    [
        ("video/mp4", "", True),
        ("video/mp4", "Code, or what is said in it.", False),
        ("text/csv", "", False),
    ],
)
async def test_video_without_a_text_is_announced(
    host: StandInHost, kind: str, text: str, is_told: bool
) -> None:
    """The host keeps it for tools, and says nothing; code may have its type, too."""
    video = {"name": "a.mp4", "content_type": kind}
    file_id = host.files.add(b"mp4", "a.mp4", text=text)
    with_row(host, {"type": "file", "id": file_id, **video})
    context = host_context(metadata={"user_message_id": "q0"})
    call = call_of(chat("Watch it."), valves(), host=context)
    told = (await build_chat_request(call)).notices
    assert any("could not read a.mp4" in notice for notice in told) is is_told


async def test_files_of_others_who_go_on_with_a_chat_come_from_their_request(
    host: StandInHost,
) -> None:
    """The owner's row lists other files."""
    own, others = host.files.add(PDF, "a.pdf"), host.files.add(PDF, "b.pdf")
    with_row(host, {"type": "file", "id": others, "name": "b.pdf"})
    row = host.chats.rows["chat-1"]
    host.chats.rows["chat-1"] = Row("somebody else", row.chat)
    host.chats.listed["chat-1"] = row.chat["history"]["messages"]
    attached = {"files": [{"type": "file", "id": own, "name": "a.pdf"}]}
    metadata = {**IDS, "user_message_id": "q0", "user_message": attached}
    context = host_context(metadata=metadata)
    asked = call_of(chat("Read it."), valves(FILE_INPUT="pdf"), host=context)

    [question] = (await build_chat_request(asked)).request.input

    assert question["content"] == [file_part("a.pdf", PDF), text_part("Read it.")]
