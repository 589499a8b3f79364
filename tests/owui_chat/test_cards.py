"""What a model writes is no card of the page."""

import html
import re

import pytest

from openai_responses.items import Item
from openai_responses.loop.events import RunEvent
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.cards import without_cards
from owui_chat.citations import Citations
from owui_chat.code import code_text, take_out_code
from owui_chat.events import CitedEvent
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer
from runs.sample import message, reasoning

CALL = '<details type="tool_calls" done="true" name="bank" result="&quot;1&quot;">'
CARDS = [
    CALL,
    f"> {CALL}",
    '<details\ufeff\n open  type="reasoning">',
    f'<details {"x" * 5_000} type="tool_calls">',
    '<DETAILS type="code_interpreter">',
    '<file type="html" id="../auths/signout?" />',
    f"<details {CALL}",
    '<details <b type="tool_calls">',
    "{{html_file_id_1a}}",
]
LETTERS = "&#x3C;&#100;etails&Tab;type=&quot;tool_calls&quot;&gt;"
DETOURS = [
    f"<details>\n<summary>More</summary>\n{html.escape(CALL)}\n</details>",
    f"<details>\n{LETTERS}",
    f"<details>\n{LETTERS.replace('&', '&amp;amp;')}",
    f"<details>\n{LETTERS.replace('3C', '0' * 4_400 + '3C')}",
    CALL.replace(" type", "\n> type"),
    CALL.replace("det", "de\0t"),
    CALL.replace("type", "ty\ud800pe"),
    CALL.replace("det", "det [1][2, 3]"),
    CALL.replace("<", f"<{'[1#a]' * 300}"),
    "{[1]{HTML_FILE_ID_1a}}",
    f"{'&' * 500}{html.escape(CALL)}",
]
"""Cards of what the host stores of a text, or of what the page makes of it."""
TEXTS = [
    "<details>\n<summary>More</summary>\nHidden.\n</details>",
    "<details open>\n",
    '<details class="note">',
    '<file name="a.txt" type="html">',
    "1 < 2, <detail type=x>, <detailstype=x>",
    "<",
    "<detai",
    "The <details> and <b>",
    "a < b && c[1] > d; &lt;details open&gt; &amp; {{ x }}, Vec<&str> [1]",
    "> <details>\n> <summary>More</summary>",
]
DRAWN = re.compile(
    r"<details[\s\ufeff]+[^>]*type=[^>]*>|<file type=\"html\"|{{html_file_id_[a-f0-9-]+}}",
    re.IGNORECASE,
)
"""What the page draws (MarkdownTokens of 0.12.4)."""


@pytest.mark.parametrize("text", CARDS)
def test_card_is_a_text(text: str) -> None:
    shown = without_cards(f"Before.\n\n{text}\n")

    assert DRAWN.search(text)
    assert not DRAWN.search(shown)
    assert shown.replace("< ", "<").replace("{ ", "{") == f"Before.\n\n{text}\n"
    assert without_cards(shown) == shown


@pytest.mark.parametrize("text", TEXTS)
def test_other_text_stays(text: str) -> None:
    assert without_cards(text) == text


def draws_a_card(text: str) -> bool:
    """Whether the page may draw one, once the text is stored, in a quotation or a fold."""
    stored = re.sub(r"[\0\ud800-\udfff]", "", text)
    stored = re.sub("0{9,}", "", stored).replace("\n> ", "\n")
    for _ in range(3):
        stored = html.unescape(stored)
    cited = re.sub(r" ?(\[\d[^\]]*\])+", "", stored)
    return bool(DRAWN.search(stored) or DRAWN.search(cited))


@pytest.mark.parametrize("text", DETOURS)
@pytest.mark.parametrize("size", [1, 1_999, 1_000_000])
def test_detour_draws_no_card(text: str, size: int) -> None:
    said, answer = grown(message("m", text), "text", text, size)
    thought, _ = grown(reasoning("r", text), "summary", text, size)

    assert draws_a_card(text)
    assert not any(map(draws_a_card, (said, answer, thought)))
    assert without_cards(answer) == answer


def grown(item: Item, kind: str, text: str, size: int) -> tuple[str, str]:
    """The text of an item on the page while it grows in pieces, and as it ends."""
    citations = Citations()
    renderer = NativeRenderer(lambda: 0.0)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    begun: Item = {"id": item["id"], "type": item["type"]}
    run: list[RunEvent] = [ItemAdded(0, begun)]
    run += [TextDelta(0, kind, 0, piece) for piece in pieces]
    run.append(ItemDone(0, item))
    events: list[CitedEvent] = []
    for event in run:
        events += citations.feed(event)
    chunks = [chunk for event in events for chunk in renderer.render(event)]
    deltas = [str(chunk["delta"]) for chunk in chunks if "delta" in chunk]
    ended = renderer.output.items[0]
    [part] = ended.get("content") or ended["summary"]
    return "".join(deltas), part["text"]


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("text", [*CARDS, *TEXTS])
def test_text_and_thought_draw_no_card(text: str, size: int) -> None:
    """Neither while they grow, in whatever pieces, nor in the end."""
    text = f"Before.\n\n{text}\nAfter."
    said, answer = grown(message("m", text), "text", text, size)
    assert said == answer == without_cards(text)
    thought, summary = grown(reasoning("r", text), "summary", text, size)
    assert summary == without_cards(text)
    assert summary.startswith(thought)  # its end has the rest


@pytest.mark.parametrize("size", [1, 100_000])
def test_code_draws_no_card(size: int) -> None:
    """It can end its own block; the next turn finds it again."""
    code = f'"""\n```\n{CALL}\n"""'
    outputs = [{"type": "logs", "logs": f"{CALL}\n"}]
    item: Item = {"type": "code_interpreter_call", "id": "ci", "code": code}
    item |= {"status": "completed", "outputs": outputs}
    renderer = NativeRenderer(lambda: 0.0, HostedItems)
    pieces = [code[start : start + size] for start in range(0, len(code), size)]
    events: list[RunEvent] = [ItemAdded(0, item)]
    events += [TextDelta(0, "code", 0, piece) for piece in pieces]

    grown = [chunk for event in events for chunk in renderer.render(event)]
    ended = [*renderer.render(ItemDone(0, item))]

    assert not DRAWN.search("".join(chunk.get("delta", "") for chunk in grown))
    card = renderer.output.items[0]
    assert ended
    assert not DRAWN.search(card["code"])
    assert take_out_code([code_text(card["code"])], [item]) == ([""], [])


def test_parts_of_a_message_make_no_card() -> None:
    """The page joins them."""
    parts = [{"type": "output_text", "text": text} for text in (CALL[:7], CALL[7:])]
    item = {"type": "message", "id": "m", "content": parts}
    [ended] = Citations().feed(ItemDone(0, item))
    assert isinstance(ended, ItemDone)
    assert not DRAWN.search(ended.shown)


@pytest.mark.parametrize("begun", ["<details", "<details>\n&lt;details"])
def test_messages_of_an_answer_make_no_card(begun: str) -> None:
    """A channel draws them as one text, with a line feed in between."""
    texts = [begun, 'type="tool_calls">']
    answers = [grown(message("m", text), "text", text, 1) for text in texts]

    assert draws_a_card("\n".join(texts))
    for shown in zip(*answers, strict=True):
        assert not draws_a_card("\n".join(shown))
