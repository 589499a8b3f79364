"""Documents get a type that the API knows, or none."""

import pytest

from chats.pictures import PDF, data_url
from owui_chat.input.attachments import document_part, document_type

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
        ("notes", "text/plain; charset=utf-8", "text/plain"),
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
