"""Attachments are at the messages they came with."""

from collections.abc import Sequence
from typing import Any

import pytest

from chats.parts import image_part, input_message, text_part
from chats.pictures import BMP, GIF, JPEG, MOVING_GIF, PDF, PIXEL, PNG, WEBP, data_url
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from owui_chat.input.attachments import (
    UNREADABLE_IMAGE,
    attach_files,
    document_part,
    document_type,
    fit_input,
    image_data_url,
    image_length,
    question_index,
    resolve_images,
    svg_notice,
    tool_image,
    unread_notice,
)
from owui_chat.messages import (
    AssistantText,
    Attachment,
    ChatPart,
    UserMessage,
    attach_stored_messages,
)
from runs.sample import reasoning

Json = dict[str, Any]
BAD = data_url(BMP, "image/bmp")
GONE = "cannot be read: it is gone"


def resolved(parts: Sequence[ChatPart]) -> list[ChatPart]:
    """A chat with readable pictures, on a host that cannot make one smaller."""
    return resolve_images(parts, lambda encoded: b"")


def chat_of(count: int) -> list[ChatPart]:
    parts: list[ChatPart] = []
    for n in range(count):
        parts += [input_message(f"q{n}"), AssistantText(f"a{n}")]
    return parts[:-1]


def pdf(name: str, **more: Any) -> Json:
    """A file as the page puts it at a message."""
    row = {"type": "file", "id": f"id of {name}", "url": f"id of {name}", "name": name}
    return {**row, "content_type": "application/pdf", "status": "uploaded", **more}


def tree(*files: list[Json]) -> Json:
    """The messages of a chat's row: questions with files, and their answers."""
    messages: Json = {}
    for n, attached in enumerate(files):
        parent = f"a{n - 1}" if n else None
        messages[f"q{n}"] = {"role": "user", "parentId": parent, "files": attached}
        messages[f"a{n}"] = {"role": "assistant", "parentId": f"q{n}"}
    return messages


def attached(parts: list[ChatPart], rows: Json, metadata: Json) -> dict[int, list[str]]:
    """The names of the files at each place where there are any."""
    parts = attach_files(attach_stored_messages(parts, rows, metadata), rows, metadata)
    return {
        index: [file.name for file in part.attachments]
        for index, part in enumerate(parts)
        if isinstance(part, UserMessage) and part.attachments
    }


B_AND_C = ["b.pdf", "c.pdf"]
MESSAGES = {
    **tree([pdf("a.pdf")], [], [pdf(name) for name in B_AND_C]),
    "other": {"role": "user", "parentId": "a0", "files": [pdf("x.pdf")]},
}
CIRCLE = tree([pdf("a.pdf")], [pdf("b.pdf")])
CIRCLE["a0"]["parentId"] = "a0"
NAMELESS = tree([{**pdf("a.pdf"), "name": None}])
Q0, Q1, Q2 = ({"user_message_id": f"q{number}"} for number in range(3))
WISH = {**Q0, "regeneration_message_id": "a0"}
GONE_QUESTION = {"user_message_id": "gone"}
EMPTY = {"user_message": None, "files": None, "model": None}
NO_ROW = {
    "user_message": {"files": [pdf("b.pdf")]},
    "files": [pdf("a.pdf"), pdf("b.pdf"), pdf("handbook.pdf")],
    "model": {"info": {"meta": {"knowledge": [{"id": "id of handbook.pdf"}]}}},
}


@pytest.mark.parametrize(
    ("questions", "rows", "metadata", "files"),
    [
        pytest.param(3, MESSAGES, Q2, {0: ["a.pdf"], 4: B_AND_C}, id="whole chat"),
        pytest.param(1, MESSAGES, Q0, {0: ["a.pdf"]}, id="earlier turn"),
        pytest.param(2, MESSAGES, Q2, {2: B_AND_C}, id="oldest left out by the host"),
        pytest.param(2, MESSAGES, WISH, {0: ["a.pdf"]}, id="a wish is in no chat"),
        pytest.param(2, CIRCLE, Q1, {2: ["b.pdf"]}, id="circle"),
        pytest.param(2, CIRCLE, GONE_QUESTION, {}, id="question that is not there"),
        pytest.param(2, {}, NO_ROW, {0: ["a.pdf"], 2: ["b.pdf"]}, id="no row"),
        pytest.param(1, {}, NO_ROW, {0: ["a.pdf", "b.pdf"]}, id="one question"),
        pytest.param(0, {}, NO_ROW, {}, id="no question"),
        pytest.param(1, {}, {}, {}, id="no metadata"),
        pytest.param(1, {}, EMPTY, {}, id="empty metadata"),
        pytest.param(1, NAMELESS, Q0, {0: [""]}, id="file without a name"),
    ],
)
def test_each_message_has_its_own_files(
    questions: int, rows: Json, metadata: Json, files: dict[int, list[str]]
) -> None:
    """Without a row, files of earlier messages are at the first."""
    parts = chat_of(questions) or [AssistantText("x")]

    assert attached(parts, rows, metadata) == files


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        ([], ""),
        (["application/pdf"], ""),
        (["image/svg+xml"], "a0"),
        (["image/svg+xml", "image/png", "image/svg+xml"], "a0, a2"),
    ],
)
def test_attached_svg_is_announced_as_text(kinds: list[str], names: str) -> None:
    """The page attaches it as a file, and the host sends its source."""
    files = [pdf(f"a{n}", content_type=kind) for n, kind in enumerate(kinds)]
    metadata = {"user_message_id": "q0"}
    messages = tree(files)
    parts = attach_stored_messages(chat_of(1), messages, metadata)

    notice = svg_notice(attach_files(parts, messages, metadata))

    assert svg_notice([AssistantText("Hi")]) == ""  # a chat without a question
    assert notice.partition(" as text")[0] == (
        f"The model reads {names}" if names else ""
    )


def test_length_of_images_is_that_of_their_addresses() -> None:
    shown = input_message("Hi", image_part("a" * 5000), image_part("b" * 3000))

    assert 8000 <= image_length(shown) <= 8010
    assert image_length(AssistantText("Hi" * 99)) == 0


def test_only_files_of_the_message_are_attached() -> None:
    rows = [
        pdf("a.pdf"),
        {"type": "image", "id": "i1", "name": "p.png"},
        pdf("q.png", content_type="image/png"),
        pdf("k.pdf", knowledge=True),
        {"type": "file", "id": "f1", "name": f"{'long' * 9_000}.pdf"},
        {"type": "collection", "id": "c1", "name": "Handbooks"},
        {"type": "file", "id": None, "name": "uploading.pdf"},
        "loose",
    ]

    metadata = {"user_message": {"files": rows}}

    [asked] = attach_files(chat_of(1), {}, metadata)

    assert isinstance(asked, UserMessage)
    assert list(asked.attachments) == [
        Attachment("id of a.pdf", "a.pdf", "application/pdf", is_image=False),
        Attachment("i1", "p.png", "", is_image=True),
        Attachment("id of q.png", "q.png", "image/png", is_image=True),
        Attachment("f1", f"{'long' * 49}.pdf", "", is_image=False),
    ]


def test_readable_pictures_stay() -> None:
    mislabeled = image_part(data_url(JPEG, "image/png"))
    right = image_part(data_url(JPEG, "image/jpeg"))
    low = image_part(PIXEL, "low")

    chat = resolved([input_message("?", low, mislabeled), AssistantText("!")])

    assert chat == [input_message("?", low, right), AssistantText("!")]


def test_picture_of_an_unknown_kind_is_refused_by_name() -> None:
    files = [Attachment(n, f"{n}.bmp", "image/bmp", is_image=True) for n in "ab"]
    document = Attachment("c", "c.pdf", "application/pdf", is_image=False)
    asked = input_message("?", image_part(PIXEL), image_part(BAD))

    with pytest.raises(InvalidRequest, match=r"^b\.bmp is in a form") as caught:
        resolved([asked._replace(attachments=(document, *files))])

    assert "PNG, JPEG, WEBP" in str(caught.value)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        pytest.param(image_part(BAD), "is in a format", id="unknown format"),
        pytest.param(image_part("some-file-id"), GONE, id="deleted file"),
        pytest.param({"type": "input_image", "detail": "auto"}, GONE, id="no address"),
        pytest.param(
            image_part("DATA:image/bmp;base64,Qk0="), "is in a format", id="capitals"
        ),
    ],
)
def test_picture_without_a_name_is_refused_too(part: Item, message: str) -> None:
    """Callers over plain HTTP give no names, and the host leaves the id of a file."""
    with pytest.raises(InvalidRequest, match=f"^An image {message}"):
        resolved([input_message("?", part)])


@pytest.mark.parametrize(
    ("part", "message"),
    [
        (image_part(BAD), "is in a form"),
        ({"type": "input_image", "detail": "auto"}, GONE),
    ],
)
def test_earlier_message_does_not_stop_the_chat(part: Item, message: str) -> None:
    """It was never sent; the model is told."""
    asked = input_message(part, "?")
    rest: list[ChatPart] = [AssistantText("!"), input_message("And now?")]

    first, *others = resolved([asked, *rest])

    assert isinstance(first, UserMessage)
    note, words = first.content
    assert note["type"] == "input_text"
    assert note["text"].startswith(f"[An image {message}")
    assert words == text_part("?")
    assert others == rest


def test_picture_of_the_host_is_not_asked() -> None:
    """An instruction after the question is no reason to stop."""
    told = input_message(image_part(BAD), role="developer")
    parts: list[ChatPart] = [input_message("?"), told]

    assert question_index(parts) == 0
    assert "form" in str(resolved(parts)[1])


def notes_in(items: list[Item]) -> list[tuple[int, int]]:
    """The places of what was left out."""
    return [
        (number, index)
        for number, item in enumerate(items)
        for index, part in enumerate(item.get("content") or item["output"])
        if "is left out: one request takes 1500 ima" in str(part.get("text"))
    ]


def test_as_much_as_the_api_takes() -> None:
    message = input_message(*[image_part(PIXEL)] * 1499).item
    output = {
        **{"type": "function_call_output", "call_id": "1"},
        "output": [image_part(PIXEL)],
    }
    file = {"type": "input_file", "filename": "a", "file_data": "data:,"}

    for fitting in ([message, output], [input_message(file).item, message, output]):
        assert fit_input(fitting) == fitting
    for more in ([message, output, output], [output, message, output]):
        assert notes_in(fit_input(more)) == [(0, 0)]


def test_items_without_a_list_of_parts_are_sent_as_they_are() -> None:
    """Reasoning has no content, and the short form of a message a text."""
    items = [reasoning("1"), {"role": "user", "content": "Hi"}]

    assert fit_input(items) == items


def test_as_many_bytes_as_the_api_takes() -> None:
    held = "x" * 8_000_000
    file = {"type": "input_file", "filename": "a", "file_data": held}

    whole = [input_message(*[image_part(held)] * 63, file).item]
    assert fit_input(whole) == whole
    more = {**file, "file_data": f"{held}x"}
    one_more = [input_message(*[image_part(held)] * 63, more).item]
    assert notes_in(fit_input(one_more)) == [(0, 0)]
    fitted = fit_input([input_message("Hi", file, "!", *[image_part(held)] * 64).item])
    assert notes_in(fitted) == [(0, 1)]
    assert [fitted[0]["content"][n] for n in (0, 2)] == [
        text_part("Hi"),
        text_part("!"),
    ]


def test_too_large_picture_is_scaled_or_refused() -> None:
    limit = 66_000_000
    whole = f"{PIXEL}{'A' * (limit - len(PIXEL))}"
    large: list[ChatPart] = [input_message(image_part(f"{whole}A"))]
    scaled: list[str] = []

    def scale(encoded: str) -> bytes:
        scaled.append(encoded)
        return JPEG

    at_limit: list[ChatPart] = [input_message(image_part(whole))]
    assert resolve_images(at_limit, scale) == at_limit
    assert scaled == []
    smaller = input_message(image_part(data_url(JPEG, "image/jpeg")))
    assert resolve_images(large, scale) == [smaller]
    assert scaled == [f"{whole}A".partition(",")[2]]
    shown = resolved([*large, input_message("Hi")])[0]
    assert isinstance(shown, UserMessage)
    assert "is larger than the 50 MB" in shown.content[0]["text"]
    with pytest.raises(InvalidRequest, match="Attach a smaller one"):
        resolved(large)
    assert tool_image(whole) == image_part(whole)
    assert tool_image(f"{whole}A") == text_part(UNREADABLE_IMAGE)


@pytest.mark.parametrize(
    "odd", [1, None, "x", [2], {"image_url": {"a": 1}}, {"file_data": True}]
)
def test_parts_of_any_type_end_no_chat(odd: Any) -> None:
    """What a server sent is in the chat for ever."""
    item = {"type": "telescope_output", "output": [odd]}

    assert fit_input([item]) == [item]


def test_newest_two_hundred_files_of_a_chat_are_looked_at() -> None:
    """The owner of a chat can write any number into its row; each costs a look-up."""
    rows = tree(
        *(
            [{"type": "file", "id": f"{number}-{n}"} for n in range(count)]
            for number, count in enumerate((300, 150, 20))
        )
    )
    metadata = {"user_message_id": "q2", "message_id": "a2"}
    parts = attach_stored_messages(chat_of(3), rows, metadata)

    attached = [
        [file.file_id for file in part.attachments]
        for part in attach_files(parts, rows, metadata)
        if isinstance(part, UserMessage)
    ]

    assert [len(ids) for ids in attached] == [30, 150, 20]
    assert attached[0][-1] == "0-29"


@pytest.mark.parametrize(("own", "counts"), [(150, (50, 150)), (300, (0, 200))])
def test_files_of_a_chat_without_a_row_are_as_many(
    own: int, counts: tuple[int, int]
) -> None:
    """What is attached to the question comes first."""
    files = [{"type": "file", "id": str(number)} for number in range(20_000)]
    metadata = {"user_message": {"files": files[:own]}, "files": files}

    first, _, last = attach_files(chat_of(2), {}, metadata)

    assert isinstance(first, UserMessage)
    assert isinstance(last, UserMessage)
    assert (len(first.attachments), len(last.attachments)) == counts


def test_file_that_the_host_could_not_read_is_named() -> None:
    """A scanned PDF of this question; who or what reads the file itself misses nothing."""
    failed = {"data": {"status": "failed", "error": "503: no extractor"}}
    kept = {"data": {"status": "failed", "content": "text"}}
    asked = [
        pdf("scan.pdf", file=failed),
        pdf("whole.pdf", file=failed),
        pdf("read.pdf", file={"data": {"status": "completed"}}),
        pdf("not indexed.pdf", file=kept),
        pdf("photo.png", content_type="image/png", file=failed),
    ]
    rows = tree([pdf("earlier.pdf", file=failed)], asked)
    metadata = {"user_message_id": "q1"}
    stored = attach_stored_messages(chat_of(2), rows, metadata)
    parts = attach_files(stored, rows, metadata)

    assert unread_notice(parts, {"id of whole.pdf"}) == (
        "Open WebUI could not read scan.pdf, so the model gets none of it. Attach it in "
        "another format, or paste its text."
    )
    assert unread_notice(parts, {"id of whole.pdf", "id of scan.pdf"}) == ""
    silent = unread_notice(parts, {"id of whole.pdf"}, {"id of read.pdf"})
    assert "read scan.pdf, read.pdf, so" in silent
    assert unread_notice([AssistantText("Hi")], set()) == ""


READ = {"image/png": PNG, "image/jpeg": JPEG, "image/gif": GIF, "image/webp": WEBP}
UNREAD = [BMP, MOVING_GIF, b"<svg/>", b"", b"RIFF\x1a\x00\x00\x00WAVE"]


def readable_url(url: str) -> str:
    """The address that the model gets of a picture; nothing for one it cannot read."""
    part = tool_image(url)
    if part.get("text") == UNREADABLE_IMAGE:
        return ""
    assert part == {
        "type": "input_image",
        "detail": "auto",
        "image_url": part["image_url"],
    }
    return str(part["image_url"])


@pytest.mark.parametrize("content", UNREAD)
def test_other_bytes_have_no_type(content: bytes) -> None:
    assert image_data_url(content) == ""
    assert readable_url(data_url(content, "image/png")) == ""


@pytest.mark.parametrize("kind", READ)
def test_image_type_is_corrected_from_its_bytes(kind: str) -> None:
    for label in ("image/png", "image/jpg", "application/octet-stream"):
        assert readable_url(data_url(READ[kind], label)) == data_url(READ[kind], kind)
        capitals = data_url(READ[kind], label).replace("data:", "DATA:")
        assert readable_url(capitals) == data_url(READ[kind], kind)


@pytest.mark.parametrize("width", [10, 64, 76])
def test_base64_in_lines_is_one_line(width: int) -> None:
    """As encoders for mail write it, whose first line may be empty."""
    label, _, payload = data_url(PNG * 2, "image/png").partition(",")
    lines = [payload[at : at + width] for at in range(0, len(payload), width)]

    for start, end in (("", "\n"), ("\r\n", "\r\n"), (" ", "")):
        wrapped = start + end.join(lines)
        assert readable_url(f"{label},{wrapped}") == f"{label},{payload}"


WEB = ("https://example.com/a", "HTTPS://example.com/a", "http://127.0.0.1/a.png")


@pytest.mark.parametrize(
    "url",
    [
        *WEB,
        "",
        "0b6a3c2e-file-id",
        "/api/v1/files/1/content",
        "data:image/png,raw",
        "data:image/png;base64,",
        "data:image/png;base64,!",
        "data:image/png;base64,é",
        "data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5é",
        "data:image/gif;base64,R0lGODlhA",
        f"blob:{PIXEL.partition(':')[2]}",
    ],
)
def test_address_that_holds_nothing_is_none(url: str) -> None:
    """A stored file that the host could not read, or a damaged one.

    The API itself fetches what is on the web.
    """
    assert readable_url(url) == (url if url in WEB else "")


OFFICE = "application/vnd.openxmlformats-officedocument"


@pytest.mark.parametrize(
    ("name", "declared", "kind"),
    [
        ("a.pdf", "application/pdf", "application/pdf"),
        ("A.PDF", "application/octet-stream", "application/pdf"),
        ("report", "application/pdf", "application/pdf"),
        ("table.csv", "application/vnd.ms-excel", "text/csv"),  # Windows says so
        ("code.ts", "video/mp2t", "text/plain"),  # and so do browsers
        ("code.py", "text/x-python", "text/plain"),
        ("notes", "Text/Plain ; charset=utf-8", "text/plain"),
        ("notes.xyz", "text/x-strange", "text/x-strange"),
        ("a.docx", "", f"{OFFICE}.wordprocessingml.document"),
        ("a.xlsx", "", f"{OFFICE}.spreadsheetml.sheet"),
        ("a.pptx", "", f"{OFFICE}.presentationml.presentation"),
        ("a.doc", "", "application/msword"),
        ("a.xls", "", "application/vnd.ms-excel"),
        ("a.ppt", "", "application/vnd.ms-powerpoint"),
        ("a.odt", "", "application/vnd.oasis.opendocument.text"),
        ("a.rtf", "", "application/rtf"),
        ("a.htm", "", "text/html"),
        ("a.html", "", "text/html"),
        ("a.json", "", "application/json"),
        ("a.md", "", "text/markdown"),
        ("a.tsv", "", "text/tab-separated-values"),
        ("a.xml", "", "text/xml"),
        # What is no document; the host may know what to do with it.
        ("a.zip", "application/zip", ""),
        ("a.mp3", "audio/mpeg", ""),
        ("a.png", "image/png", ""),
        ("a", "", ""),
        ("", "", ""),
    ],
)
def test_type_comes_from_the_name_then_from_what_was_declared(
    name: str, declared: str, kind: str
) -> None:
    assert document_type(name, declared) == kind


def test_document_part_holds_the_bytes_and_the_name() -> None:
    assert document_part("a.pdf", "application/pdf", PDF) == {
        "type": "input_file",
        "filename": "a.pdf",
        "file_data": data_url(PDF, "application/pdf"),
    }
