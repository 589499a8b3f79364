"""What the model gets to read in addition to the chat."""

from typing import Any

import pytest

from strategies.context import ContextSource, format_context, read_context

RETRIEVED = {
    "content": "It froze in 1963.",
    "title": "Chronicle",
    "metadata": {"source": "chronicle.pdf", "url": "http://a.b/c"},
}
TEXT_KEYS = ["content", "text", "page_content", "snippet", "document"]
NAME_KEYS = ["title", "name", "source", "file_name"]
URL_KEYS = ["url", "link", "uri"]
CHRONICLE = ContextSource("Chronicle", "It froze in 1963.", "http://a.b/c")


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (None, []),
        ("", []),
        ([], []),
        ([None, " "], []),
        ({}, []),
        ([[], {"content": "", "title": "Empty"}], []),
        ("Plain.", [ContextSource("Context 1", "Plain.")]),
        (RETRIEVED, [CHRONICLE]),
        (
            [RETRIEVED, "Plain.", dict(RETRIEVED)],
            [CHRONICLE, ContextSource("Context 2", "Plain.")],
        ),
        (
            [RETRIEVED, dict(reversed(RETRIEVED.items())), "Plain."],
            [CHRONICLE, ContextSource("Context 2", "Plain.")],
        ),
        (
            [{"metadata": {"source": "a.pdf"}, "text": "A."}],
            [ContextSource("a.pdf", "A.")],
        ),
        (
            [{"title": " ", "source": "a.pdf", "content": "\n", "text": "A."}],
            [ContextSource("a.pdf", "A.")],
        ),
        (
            {"title": "A", "text": "A.", "metadata": {"title": "B", "name": "C"}},
            [ContextSource("A", "A.")],
        ),
        ({"a": "ü"}, [ContextSource("Context 1", '{"a": "ü"}')]),
        ([7], [ContextSource("Context 1", "7")]),
        ({"title": 3, "content": "A."}, [ContextSource("Context 1", "A.")]),
        *(({name: "A."}, [ContextSource("Context 1", "A.")]) for name in TEXT_KEYS),
        *(
            ({name: "N", "text": "A."}, [ContextSource("N", "A.")])
            for name in NAME_KEYS
        ),
        *(
            ({name: "u:", "text": "A."}, [ContextSource("Context 1", "A.", "u:")])
            for name in URL_KEYS
        ),
    ],
)
def test_entries_are_read_once_each(
    context: Any, expected: list[ContextSource]
) -> None:
    assert read_context(context) == expected


def test_model_reads_the_entries_by_their_names() -> None:
    text = format_context(read_context([RETRIEVED, "Plain."]))

    assert text == (
        '<context>\n<entry name="Chronicle">\nIt froze in 1963.\n</entry>\n'
        '<entry name="Context 2">\nPlain.\n</entry>\n</context>'
    )
    assert format_context([]) == ""
