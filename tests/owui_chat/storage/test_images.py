"""What a run made is kept, shown and given back."""

from typing import Any

import pytest

from openai_responses.items import Item, text_message
from openai_responses.transport.stream import ItemDone
from owui_chat.file_names import shorten_name
from owui_chat.files import container_addresses, file_citations, file_lines, link_files
from owui_chat.input.history import build_input
from owui_chat.messages import AssistantText
from owui_chat.storage.images import restore_images, stored_image_ids, stored_item
from owui_chat.storage.markers import format_marker
from owui_chat.storage.records import Record, read_records
from runs.sample import ORIGIN, message, reasoning
from stand_in.signing import SIGN, signed_items

A = "A" * 26
B = "B" * 26
ADDRESS = "sandbox:/mnt/data/people.csv"
LONG = f"sandbox:/{'a' * 300}.csv"
URL = "/api/v1/files/f-1/content"
CITED = {
    "type": "container_file_citation",
    "container_id": "cntr_1",
    "file_id": "cfile_1",
    "filename": "people.csv",
    "start_index": 0,
    "end_index": 0,
}
DRAWN: Item = {"type": "image_generation_call", "id": "ig_1", "result": "AAAA"}
KEPT: Item = {"type": "image_generation_call", "stored": "f-1"}
CARD = {"files": [{"id": "f-1"}]}
IMAGE = {"type": "input_image", "detail": "auto"}
IMAGE["image_url"] = "data:image/png;base64,AAAA"
PICTURE = {"type": "message", "role": "user", "content": [IMAGE]}


THERE = AssistantText(f"{format_marker('items', A)}There.")


def records_of(*payload: Item, ulid: str = A) -> dict[str, Record]:
    """A record as the chat gives it back."""
    wire = {"model": "m", "created_at": 0, "payload": list(payload)}
    origin = ORIGIN.wire()
    items = signed_items({ulid: {**wire, "message_id": "m-1", "origin": origin}})
    return read_records({"openai_responses_pipe:m-1": {"items": items}}, SIGN)


def test_files_that_a_message_cites_are_found_once() -> None:
    url = {"type": "url_citation", "url": "https://a.example"}
    item = message("1", "x", annotations=[CITED, url, CITED])

    assert file_citations(item) == [CITED]
    assert file_citations({"content": "x"}) == []  # the short form


@pytest.mark.parametrize(
    ("text", "name", "addresses"),
    [
        (f"[people.csv]({ADDRESS}) and {ADDRESS}.", "people.csv", [ADDRESS]),
        (f"[it]({ADDRESS})", "other.csv", []),
        ("[x](sandbox:/my%20table.csv)", "my table.csv", ["sandbox:/my%20table.csv"]),
        ("people.csv", "people.csv", []),
        (f"It is {ADDRESS}.", "people.csv", [ADDRESS]),
        (LONG, shorten_name(f"{'a' * 300}.csv"), [LONG]),
    ],
)
def test_addresses_of_a_file(text: str, name: str, addresses: list[str]) -> None:
    """A full stop after an address is none of it."""
    assert container_addresses(text).get(name, []) == addresses


def test_a_thousand_addresses_of_a_text_are_read() -> None:
    """A server may write millions, and each cited file is looked for among them."""
    text = " ".join(f"sandbox:/mnt/{number}" for number in range(1_001))

    assert len(container_addresses(text)) == 1_000


def test_text_gets_the_addresses_of_the_host() -> None:
    card = {"links": {ADDRESS: URL}, "notes": ["*One.*", "*Two.*"]}
    text = f"[people.csv]({ADDRESS}) [b](sandbox:/mnt/data/b.csv)"

    assert link_files(text, card) == (
        f"[people.csv]({URL}) [b](sandbox:/mnt/data/b.csv)\n\n*One.*\n\n*Two.*"
    )
    assert link_files(text, {}) == text


def test_reader_of_the_own_addresses_gets_the_links_below() -> None:
    """A stream cannot take back what it said."""
    card = {"links": {ADDRESS: URL}, "notes": ["*One.*"]}

    assert file_lines(card) == f"\n\n[people.csv]({URL})\n\n*One.*"
    assert file_lines({}) == ""
    odd = {"links": {"sandbox:/a%5D(x).csv": URL}}
    assert file_lines(odd) == f"\n\n[a&#93;(x).csv]({URL})"


@pytest.mark.parametrize(
    ("item", "card", "kept"),
    [
        (DRAWN, CARD, KEPT),
        ({**DRAWN, "output_format": "webp"}, CARD, {**KEPT, "output_format": "webp"}),
        ({**DRAWN, "output_format": "png"}, CARD, {**KEPT, "output_format": "png"}),
        (
            {**DRAWN, "result": "data:image/jpeg;base64,/9j/"},
            CARD,
            {**KEPT, "output_format": "jpeg"},
        ),
        (DRAWN, {}, DRAWN),
        (reasoning("1"), CARD, reasoning("1")),
    ],
)
def test_picture_is_kept_by_the_file_that_holds_it(
    item: Item, card: dict[str, Any], kept: Item
) -> None:
    """Without its bytes; what was not stored is as it was."""
    assert stored_item(ItemDone(0, item, card)) == kept


def test_item_of_another_type_names_no_picture() -> None:
    records = records_of({**reasoning("1"), "stored": "f-1"})

    assert stored_image_ids([THERE], records) == []
    assert restore_images(records, {}) == records


def test_only_pictures_that_the_answers_name_are_wanted() -> None:
    """A chat also holds those of other branches."""
    records = {**records_of(KEPT), **records_of({**KEPT, "stored": "f-2"}, ulid=B)}

    assert stored_image_ids([THERE], records) == ["f-1"]
    named = AssistantText("There.", [B])
    assert sorted(stored_image_ids([THERE, named], records)) == ["f-1", "f-2"]
    assert stored_image_ids([named], records_of(reasoning("1"))) == []


SAID = text_message("assistant", "There.")


@pytest.mark.parametrize(
    ("text", "held", "sent"),
    [
        ("There.", {"f-1": "AAAA"}, [reasoning("1"), PICTURE, SAID]),
        ("", {"f-1": "AAAA"}, [reasoning("1"), PICTURE]),
        ("There.", {}, [reasoning("1"), SAID]),
        ("", {}, []),
    ],
    ids=["picture and text", "picture", "lost picture, text", "lost picture"],
)
def test_stored_picture_goes_back_at_its_place(
    text: str, held: dict[str, str], sent: list[Item]
) -> None:
    """The API refuses reasoning that nothing follows."""
    records = restore_images(records_of(reasoning("1"), KEPT), held)
    answered = AssistantText(format_marker("items", A) + text)

    assert build_input([answered], records, ORIGIN) == sent


def test_pictures_of_earlier_writers_go_back() -> None:
    """They kept whole pictures in the record, not in a file."""
    parts = [AssistantText(f"{format_marker('image_generation_call', A)}There.")]

    items = build_input(parts, records_of(DRAWN), ORIGIN)

    assert items[0] == PICTURE
