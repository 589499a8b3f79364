"""A chat as the host sends it becomes parts, in order and whole."""

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from chats.parts import input_message, text_part
from openai_responses.errors import InvalidRequest
from openai_responses.items import message_text
from owui_chat.messages import (
    AssistantImage,
    AssistantText,
    AssistantThought,
    ChatPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    attach_stored_messages,
    check_shown,
    cut_notice,
    parse_messages,
    stored_messages,
    with_shown_words,
    without_unseen_words,
)

Json = dict[str, Any]
PICTURE = "data:image/png;base64,iVBORw0KGgo="
IMAGE: Json = {"type": "input_image", "detail": "auto", "image_url": PICTURE}
FILE: Json = {"type": "input_file", "filename": "a.pdf", "file_data": "QQ=="}


def said(role: str, content: object) -> Json:
    return {"role": role, "content": content}


def branch(*messages: Json) -> Json:
    """Stored messages, each after the one before it, by their numbers."""
    return {
        str(number): {**message, "parentId": str(number - 1)}
        for number, message in enumerate(messages)
    }


HI = input_message("Hi")


@pytest.mark.parametrize(
    ("chat", "instructions", "parts"),
    [
        pytest.param([], "", [], id="whoever builds the request complains"),
        pytest.param(
            [
                said("system", "Be brief."),
                said("system", ""),
                said("system", [{"type": "text", "text": "Be kind."}]),
                said("user", "Hi"),
            ],
            "Be brief.\n\nBe kind.",
            [HI],
            id="system messages at the head, without empty ones",
        ),
        *(
            pytest.param(
                [said("user", "Hi"), said(role, "In French."), said("user", "Hi")],
                "",
                [HI, input_message("In French.", role="developer"), HI],
                id=f"a later message of the role {role} stays at its place",
            )
            for role in ("system", "developer")
        ),
        pytest.param(
            [said("developer", "Go")],
            "",
            [input_message("Go", role="developer")],
            id="a developer message at the head is no system message",
        ),
    ],
)
def test_system_messages_at_the_head_are_the_instructions(
    chat: list[Json], instructions: str, parts: list[ChatPart]
) -> None:
    assert parse_messages(chat) == (instructions, parts)


@pytest.mark.parametrize("silent", [[], [said("assistant", "")]])
def test_system_messages_without_a_question_are_what_is_answered(
    silent: list[Json],
) -> None:
    """No server answers instructions alone, and some models nothing but a user."""
    chat = [said("system", "Be brief."), said("system", "Rhyme."), *silent]
    assert parse_messages(chat) == ("", [input_message("Be brief.\n\nRhyme.")])
    assert parse_messages([said("system", " "), *silent])[1] == []


PNG_URL = "data:image/png;base64,QQ=="
NO_WEB_ADDRESS = text_part(
    "[A file is left out: its address begins neither with https nor http.]"
)
NO_FILE = text_part("[A file is left out: it has neither content nor an address.]")


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            {"type": "image_url", "image_url": {"url": PICTURE, "detail": "high"}},
            {**IMAGE, "detail": "high"},
        ),
        ({"type": "image_url", "image_url": {"url": PICTURE}}, IMAGE),
        ({"type": "image_url", "image_url": PICTURE}, IMAGE),
        ({**IMAGE, "detail": "low"}, {**IMAGE, "detail": "low"}),
        ({**IMAGE, "detail": "original"}, {**IMAGE, "detail": "original"}),
        ({**IMAGE, "detail": ["tools[0]"]}, IMAGE),
        ({**IMAGE, "file_id": "another's"}, IMAGE),
        (
            {"type": "file", "file": {"file_data": "QQ==", "filename": "a.pdf"}},
            FILE,
        ),
        (
            {"type": "file", "file": {"file_id": "another's", "filename": "a.pdf"}},
            NO_FILE,
        ),
        ({"type": "input_file", "filename": "a.pdf"}, NO_FILE),
        ({"type": "file", "file": None}, NO_FILE),
        ({**FILE, "tools[0].filters": 1}, FILE),
        ({**FILE, "detail": "tools[0]"}, FILE),
        ({**FILE, "detail": "original"}, FILE),  # only of an image
        ({**FILE, "detail": "low"}, {**FILE, "detail": "low"}),
        (
            {"type": "input_file", "file_url": "http://127.0.0.1/a.pdf"},
            {"type": "input_file", "file_url": "http://127.0.0.1/a.pdf"},
        ),
        (
            {"type": "file", "file": {"file_url": "HTTPS://a.example/a.pdf"}},
            {"type": "input_file", "file_url": "HTTPS://a.example/a.pdf"},
        ),
        ({**FILE, "file_url": "file:///etc/passwd"}, NO_WEB_ADDRESS),
        (
            {
                "type": "file",
                "file": {"filename": "a", "file_data": "https://a.example"},
            },
            {"type": "input_file", "file_url": "https://a.example"},
        ),
        ({"type": "input_file", "file_url": "/etc/passwd"}, NO_WEB_ADDRESS),
        ({"type": "input_file", "file_url": "gopher://a"}, NO_WEB_ADDRESS),
        ({"type": "input_file", "file_url": "ftp://a"}, NO_WEB_ADDRESS),
        ({"type": "text", "text": "Hi"}, {"type": "input_text", "text": "Hi"}),
        ({"type": "input_text", "text": None}, text_part("")),
        # Of Anthropic.
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/gif", "data": "QQ=="},
            },
            {**IMAGE, "image_url": "data:image/gif;base64,QQ=="},
        ),
        (
            {"type": "image", "source": {"type": "url", "url": "https://a.example"}},
            {**IMAGE, "image_url": "https://a.example"},
        ),
        ({"type": "image", "data": "QQ=="}, {**IMAGE, "image_url": PNG_URL}),
        *(
            (
                {"type": "file", "file": {"file_data": data, "filename": None}},
                {"type": "input_file", "filename": name, "file_data": data},
            )
            for data, name in (
                ("data:application/pdf;base64,QQ==", "file.pdf"),
                ("DATA:text/Plain;charset=utf-8;base64,QQ==", "file.txt"),
                ("data:;base64,QQ==", "file.pdf"),
                ("QQ==", "file.pdf"),
            )
        ),
    ],
)
def test_part_takes_the_form_of_the_api(part: Json, expected: Json) -> None:
    assert parse_messages([said("user", [part])])[1] == [input_message(expected)]


def test_parts_keep_their_order() -> None:
    """A question may come before or after its picture; the host's message stays."""
    image = {"type": "image_url", "image_url": {"url": PICTURE}}
    chat = [said("user", [image, {"type": "text", "text": "What is it?"}])]
    before = copy.deepcopy(chat)

    assert parse_messages(chat)[1] == [input_message(IMAGE, "What is it?")]
    assert chat == before


@pytest.mark.parametrize(
    ("content", "words"), [(["Hi"], "Hi"), (None, "")], ids=["bare texts", "null"]
)
def test_content_of_other_clients_is_text(content: object, words: str) -> None:
    """Null comes from those that send a message of tool calls alone."""
    assert parse_messages([said("user", content)])[1] == [input_message(words)]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
        {"type": "video_url"},
        {},
    ],
)
@pytest.mark.parametrize("role", ["user", "developer"])
def test_unsupported_part_gives_a_sentence(part: Json, role: str) -> None:
    chat: list[Json] = [{"role": role, "content": [part]}]

    with pytest.raises(InvalidRequest, match="remove it from the message") as caught:
        parse_messages(chat)

    assert "QQ==" not in str(caught.value)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        *((odd, "not an object with a role") for odd in ("Hi", None, ["user", "Hi"])),
        (said("narrator", "Once"), "system, developer, user, assistant"),
    ],
)
def test_message_that_nobody_says_gives_a_sentence(message: Any, words: str) -> None:
    """A program may send a list of texts."""
    with pytest.raises(InvalidRequest, match=words):
        parse_messages([said("user", "Hi"), message])


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        pytest.param(
            "\n\n[openai_responses:v2:reasoning:01]: #\n\nHi ",
            [AssistantText("\n\n[openai_responses:v2:reasoning:01]: #\n\nHi ")],
            id="markers and white space stay for the history",
        ),
        pytest.param(
            [
                {"type": "output_text", "text": "It is "},
                {"type": "text", "text": "42."},
                {"type": "input_audio", "input_audio": {"data": "AAAA"}},
                "loose",
            ],
            [AssistantText("It is 42.")],
            id="a list of parts: what has no text is not the model's words",
        ),
        (None, []),
        (" \n", []),
        ([], []),
        (7, []),
    ],
)
def test_text_of_an_answer_is_its_only_part(
    content: object, parts: list[ChatPart]
) -> None:
    """The API refuses empty messages of the assistant."""
    assert parse_messages([said("assistant", content)])[1] == parts


@pytest.mark.parametrize("place", ["images", "content"])
def test_images_of_an_answer_are_in_front_of_its_text(place: str) -> None:
    """Addresses of the web expire, and what is no address is nothing."""
    capitals = PICTURE.replace("data:image/png", "DATA:image/PNG")
    urls = [capitals, "https://example.com/a.png", "", None]
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    text = [{"type": "text", "text": "Here."}]
    message = said("assistant", text)
    message[place] = [*message.get(place, []), *images]

    parts = [AssistantImage(capitals), AssistantText("Here.")]
    assert parse_messages([message])[1] == parts


PICTURE_IN_TEXT = f"data:image/png;base64,{'iVBORw0KGgo' * 100}="


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
def test_image_that_an_answer_has_in_its_text_is_seen_and_not_read(kind: str) -> None:
    """As words, one picture of a gateway would fill the model's window."""
    url = PICTURE_IN_TEXT.replace("png", kind)
    text = f"Here:\n\n![a fox]({url})\n\nAnd ![]({url})![a fox](https://e.com/a.png)"

    parts = [
        *[AssistantImage(url)] * 2,
        AssistantText("Here:\n\na fox\n\nAnd ![a fox](https://e.com/a.png)"),
    ]
    assert parse_messages([said("assistant", text)])[1] == parts
    assert parse_messages([said("assistant", f"![]({url})")])[1] == parts[:1]


@pytest.mark.parametrize(
    "text",
    [
        f"`![a dot]({PICTURE})` draws a dot.",
        f"![a fox](data:image/svg+xml;base64,{'PHN2Zy8+' * 200})",
        f"![a fox](data:image/png;base64,{'!' * 2000})",
    ],
)
def test_address_that_a_model_can_write_stays_in_its_words(text: str) -> None:
    assert parse_messages([said("assistant", text)])[1] == [AssistantText(text)]


def test_calls_stand_after_the_text_and_before_what_they_returned() -> None:
    """A round of tools as Chat Completions writes it."""
    function = {"name": "get_weather", "arguments": '{"city":"Bern"}'}
    chat: list[Json] = [
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": function},
                {"id": "call_2", "function": {"name": "now", "arguments": ""}},
                {"id": "call_3", "function": {"name": "now", "arguments": None}},
                {"id": "call_4", "function": {"name": "now", "arguments": {"a": "ü"}}},
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
        {"role": "tool", "tool_call_id": "call_2", "content": ""},
        {"role": "tool", "tool_call_id": "call_3", "content": {"dry": False}},
    ]

    _, parts = parse_messages(chat)

    assert parts == [
        AssistantText("Let me look."),
        ToolCall("call_1", "get_weather", '{"city":"Bern"}'),
        ToolCall("call_2", "now", "{}"),
        ToolCall("call_3", "now", "{}"),
        ToolCall("call_4", "now", '{"a": "ü"}'),
        ToolMessage("call_1", "rain"),
        ToolMessage("call_2", ""),
        ToolMessage("call_3", '{"dry": false}'),
    ]


def round_of(call_id: str, output: object) -> list[Json]:
    """A call and what it returned, as Chat Completions writes them."""
    function = {"name": "now", "arguments": "{}"}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": call_id, "content": output},
    ]


def test_calls_that_other_models_number_anew_stay_apart() -> None:
    """Of two with one id the API takes one, and the model would call again."""
    chat = [*round_of("call_0", "1"), *round_of("call_0", "2"), *round_of("c", "3")]
    chat += [said("user", "And?"), *round_of("call_0", "4")]

    parts = [part for part in parse_messages(chat)[1] if hasattr(part, "call_id")]

    ids = ["call_0", "call_0_2", "c", "call_0_3"]
    calls = [ToolCall(call_id, "now", "{}") for call_id in ids]
    outputs = [ToolMessage(call_id, str(n)) for n, call_id in enumerate(ids, 1)]
    assert parts[::2] == calls
    assert parts[1::2] == outputs
    shorter = parse_messages(chat[:4])[1]
    assert parts[:4] == shorter


NO_IMAGE = text_part("[An image is left out: it has no address.]")
NO_PART = text_part("[A part is left out: it is neither text nor an image or a file.]")


@pytest.mark.parametrize(
    ("part", "sent"),
    [
        (
            {"type": "image", "data": "QQ==", "mimeType": "image/webp"},
            {**IMAGE, "image_url": "data:image/webp;base64,QQ=="},
        ),
        ({"type": "input_image", "file_id": "another's"}, NO_IMAGE),
        ({"type": "image_url", "image_url": {"url": None}}, NO_IMAGE),
        (
            {"type": "resource", "resource": {"uri": "a:b", "text": "rain"}},
            text_part("rain"),
        ),
        ({"type": "audio", "data": "QQ==", "mimeType": "audio/wav"}, NO_PART),
        ({"type": "image"}, NO_IMAGE),
        # In a row of a table it is no image.
        ({"data": "Zürich"}, text_part('{"data": "Zürich"}')),
        (7, text_part("7")),
        ("rain", text_part("rain")),
    ],
)
def test_parts_of_an_output_that_are_none_of_the_api(part: object, sent: Json) -> None:
    """What MCP servers return, and rows of a table."""
    _, output = parse_messages(round_of("c", [part]))[1]
    assert output == ToolMessage("c", [sent])


@pytest.mark.parametrize(
    "message",
    [
        {"content": [{"type": "refusal", "refusal": "No."}]},
        {"content": None, "refusal": "No."},
        {"content": "No.", "refusal": "No."},
    ],
)
def test_refusal_is_a_text_of_the_chat(message: Json) -> None:
    """Without it the next question would follow one without an answer."""
    parts = parse_messages([{"role": "assistant", **message}])[1]
    assert parts == [AssistantText("No.")]


@pytest.mark.parametrize("tool_calls", [None, "no list", [None], [{"id": "call_1"}]])
def test_malformed_tool_calls_are_left_out(tool_calls: object) -> None:
    chat = [{**said("assistant", "Hi"), "tool_calls": tool_calls}]

    assert parse_messages(chat)[1] == [AssistantText("Hi")]
    nameless = {"id": "call_0", "function": {"name": ["f"]}}
    result = {"role": "tool", "name": ["f"], "content": ""}
    chat = [{"role": "assistant", "tool_calls": [nameless]}, result]
    odd = [ToolCall("call_0", "['f']", "{}"), ToolMessage("call_0", "")]
    assert parse_messages(chat)[1] == odd


MAP = [text_part("A map"), {"type": "input_image", "image_url": PICTURE}]


@pytest.mark.parametrize(
    ("content", "output"),
    [
        (None, ""),
        ("", ""),
        (7, "7"),
        ({"rain": True, "city": "Zürich"}, '{"rain": true, "city": "Zürich"}'),
        (MAP, [text_part("A map"), IMAGE]),
    ],
    ids=["null", "empty", "number", "object", "a picture of a tool"],
)
def test_output_is_a_text_or_a_list_with_pictures(content: object, output: Any) -> None:
    """A call without its output would be refused."""
    chat = [{"tool_call_id": "call_1", **said("tool", content)}]

    assert parse_messages(chat)[1] == [ToolMessage("call_1", output)]


@pytest.mark.parametrize("role", ["system", "tool", None])
@pytest.mark.parametrize("index", [0, 1])
def test_stored_message_that_no_page_writes_is_refused(
    role: str | None, index: int
) -> None:
    """Open WebUI passes it on so that its words can no longer be told apart."""
    roles = ["user", "assistant", "user"]
    roles.insert(index, role or "")
    rows = branch(*({"role": role, "content": "Hi"} for role in roles))
    _, parts = parse_messages([{"role": "user", "content": "Hi"}] * 2)
    metadata = {"user_message_id": "3", "message_id": "4"}
    with pytest.raises(InvalidRequest, match="the page does not show"):
        attach_stored_messages(parts, rows, metadata)

    rows[str(index)]["role"] = "assistant"
    assert len(stored_messages(attach_stored_messages(parts, rows, metadata))) == 2


@pytest.mark.parametrize(
    ("metadata", "last", "stored"),
    [
        ({}, "Shorter.", ["rain?", "snow?", "snow?"]),
        ({"regeneration_message_id": "a"}, "Shorter.", ["rain?", "snow?", None]),
        ({"session_id": "before 0.12"}, "Shorter.", ["rain?", "snow?", None]),
        ({"session_id": "before 0.12"}, "And snow?", [None, "rain?", "snow?"]),
    ],
    ids=[
        "three questions",
        "two, and how to answer again",
        "nothing announces it",
        "the question once more",
    ],
)
def test_wish_how_to_answer_again_is_in_no_row(
    metadata: Json, last: str, stored: list[str | None]
) -> None:
    """It comes last, and takes no stored message from the questions before it."""
    asked = ["rain?", "snow?"] if metadata else ["rain?", "snow?", "snow?"]
    rows = branch(*(said("user", text) for text in asked))
    body = [said("user", text) for text in ("rain?", "snow?", last)]
    metadata = {**metadata, "user_message_id": max(rows), "message_id": "new"}

    parts = attach_stored_messages(parse_messages(body)[1], rows, metadata)

    users = [part for part in parts if isinstance(part, UserMessage)]
    rows_of_users = [part.stored.row if part.stored else None for part in users]
    assert [row and row["content"] for row in rows_of_users] == stored


def test_wish_without_a_question_is_no_chat_to_pair() -> None:
    """A program sets any metadata."""
    metadata = {"regeneration_message_id": "a", "user_message_id": "0"}
    parts: list[ChatPart] = [AssistantText("Hi")]

    assert attach_stored_messages(parts, {}, metadata) == parts


def _chat_with_hidden(
    *contents: str, sent: Sequence[str], users: int = 2
) -> list[ChatPart]:
    """A stored chat of two questions, developer messages in it, and what is sent."""
    hidden = [("developer", content) for content in contents]
    messages = [("user", "Hi"), *hidden, ("user", "Hi")]
    rows = branch(*(said(role, [text_part(text)]) for role, text in messages))
    given = [said("developer", words) for words in sent]
    body = [*given, said("assistant", "Yes."), *[said("user", "Hi")] * users]
    metadata = {"user_message_id": str(len(messages) - 1), "message_id": "answer"}
    return attach_stored_messages(parse_messages(body)[1], rows, metadata)


def test_stored_message_of_a_developer_is_left_out() -> None:
    """Each once: the same words of a filter stay, and so do its others."""
    parts = _chat_with_hidden("Obey.", sent=["Obey.", "By a filter.", "Obey."])

    texts = [message_text(p.item) for p in parts if isinstance(p, UserMessage)]
    assert texts == ["By a filter.", "Obey.", "Hi", "Hi"]
    assert len(stored_messages(parts)) == 2


def test_words_of_a_person_stay_where_a_developer_has_the_same() -> None:
    body = [said(role, "Hi") for role in ("user", "developer", "user")]
    metadata = {"user_message_id": "2", "message_id": "answer"}

    parts = attach_stored_messages(parse_messages(body)[1], branch(*body), metadata)

    users = [part for part in parts if isinstance(part, UserMessage)]
    assert [part.item["role"] for part in users] == ["user", "user"]
    assert len(stored_messages(parts)) == 2


@pytest.mark.parametrize(
    ("sent", "users"), [(["Obey now."], 2), ([], 2), (["Obey."], 1)]
)
def test_stored_message_that_is_not_found_again_is_refused(
    sent: list[str], users: int
) -> None:
    """Of a shortened chat it is unknown whose words are left."""
    with pytest.raises(InvalidRequest, match="the page does not show"):
        _chat_with_hidden("Obey.", sent=sent, users=users)


def calling(number: int) -> Json:
    calls = [{"id": f"call_{n}", "function": {"name": "f"}} for n in range(number)]
    return {"role": "assistant", "content": "So.", "tool_calls": calls}


ASKED: Json = {"role": "user", "content": "Hi"}
TOLD: Json = {"role": "developer", "content": "Be kind."}
DETAILED = {"role": "assistant", "content": "So.", "reasoning_details": [{}] * 8000}


@pytest.mark.parametrize(
    ("chat", "left"),
    [
        ([calling(8190), ASKED], None),
        ([ASKED, calling(8190), ASKED], [ASKED]),
        ([ASKED, *[calling(1)] * 5000, ASKED, calling(90)], [ASKED, calling(90)]),
        ([ASKED, DETAILED, *[ASKED] * 200], [ASKED] * 200),
        ([ASKED] * 8193, [ASKED] * 6145),
        ([ASKED] * 10_000, [ASKED] * 7952),
        ([ASKED, ASKED, *[calling(1)] * 5000], [ASKED, *[calling(1)] * 5000]),
        ([calling(1)] * 5000, [calling(1)]),
        ([TOLD, TOLD, ASKED, calling(8190), ASKED], [TOLD, TOLD, ASKED]),
        ([TOLD] * 9000, [TOLD] * 2049),
    ],
)
def test_a_request_holds_the_newest_messages(
    chat: list[Json], left: list[Json] | None
) -> None:
    """From a question on, which stays with all of its answer, and what is in front.

    For 2,048 more entries the next requests begin in the same way.
    """
    head = {"role": "system", "content": "Be brief."}

    instructions, parts = parse_messages([head, *chat])

    assert instructions == "Be brief."
    assert bool(cut_notice(parts)) == (left is not None)
    assert parts[left is not None :] == parse_messages(left or chat)[1]


def test_calls_of_clients_that_number_none_keep_their_results() -> None:
    """Ollama's send neither ids nor the type; a result may name its tool.

    Messages without calls of the model may be between a call and its result.
    """
    functions: list[Json] = [{"name": "now"}, {"name": "rain", "arguments": {}}]
    calls = [{"function": function} for function in functions]
    chat: list[Json] = [
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_name": "rain", "content": "no"},
        said("assistant", "So."),
        {**said("user", "Hi"), "tool_calls": calls[:1]},
        {"role": "tool", "content": "noon"},
        {"role": "tool", "content": "of no call"},
        {"role": "assistant", "content": "", "tool_calls": calls[:1]},
        {"role": "tool", "content": "one"},
    ]
    ids = [f"call_without_id_{number}" for number in (1, 2, 3)]

    assert parse_messages(chat)[1] == [
        ToolCall(ids[0], "now", "{}"),
        ToolCall(ids[1], "rain", "{}"),
        ToolMessage(ids[1], "no"),
        AssistantText("So."),
        HI,
        ToolMessage(ids[0], "noon"),
        ToolMessage("", "of no call"),
        ToolCall(ids[2], "now", "{}"),
        ToolMessage(ids[2], "one"),
    ]


def test_result_with_an_id_of_its_own_belongs_to_an_open_call() -> None:
    """Continue gives some such ids; a result that names its call has it."""
    calls = [{"id": id, "function": {"name": "now"}} for id in ("c1", "c2")]
    results = [
        {"role": "tool", "tool_call_id": id, "content": id}
        for id in ("tc_1", "c1", "tc_2", "")
    ]
    chat: list[Json] = [{"role": "assistant", "tool_calls": calls}, *results]

    made = [ToolCall(id, "now", "{}") for id in ("c1", "c2")]
    read = [ToolMessage("c2", "tc_1"), ToolMessage("c1", "c1")]
    left = [ToolMessage("tc_2", "tc_2"), ToolMessage("", "")]
    assert parse_messages(chat)[1] == [*made, *read, *left]


def test_older_form_of_calls_is_read() -> None:
    """Programs for the first function calling of Chat Completions still run."""
    made = {"name": "now", "arguments": "{}"}
    todays = {"id": "call_1", "function": made}
    chat: list[Json] = [
        {"role": "assistant", "content": None, "function_call": made},
        {"role": "function", "name": "now", "content": "noon"},
        {"role": "assistant", "function_call": made, "tool_calls": [todays]},
    ]

    call_id = "call_without_id_1"
    assert parse_messages(chat)[1] == [
        ToolCall(call_id, "now", "{}"),
        ToolMessage(call_id, "noon"),
        ToolCall("call_1", "now", "{}"),  # in both forms it is one call
    ]


def test_calls_in_the_form_of_anthropic_are_read() -> None:
    """Cursor writes them so to a model with the name of one of theirs."""
    use = {"type": "tool_use", "id": "toolu_1", "name": "now", "input": {"at": 1}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "noon"}
    listed = {**result, "content": [{"type": "text", "text": "noon"}]}
    told = {"type": "text", "text": "Hi"}
    chat: list[Json] = [
        {"role": "assistant", "content": [{**told, "text": "So."}, use]},
        {"role": "user", "content": [result, told]},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [listed]},
    ]

    call = ToolCall("toolu_1", "now", '{"at": 1}')
    again = "toolu_1_2"
    assert parse_messages(chat)[1] == [
        AssistantText("So."),
        call,
        ToolMessage("toolu_1", "noon"),
        HI,
        call._replace(call_id=again),
        ToolMessage(again, [{"type": "input_text", "text": "noon"}]),
    ]


def test_thought_that_a_program_gives_back_under_two_names_is_one() -> None:
    named = {"reasoning_content": "Hm.", "reasoning": "Hm."}
    chat: list[Json] = [
        {"role": "user", "content": "Hi", **named},
        {"role": "assistant", "content": "Hello", **named},
        {"role": "assistant", "content": "Hello", **named, "reasoning_content": "\n"},
    ]

    parts = [HI, *[AssistantThought("Hm."), AssistantText("Hello")] * 2]
    assert parse_messages(chat, with_thoughts=True)[1] == parts


WORDS = [{"type": "output_text", "text": "x"}]
DRAWN = [{"type": "message", "content": WORDS}]
HEADLESS: Json = {**said("assistant", ""), "reasoning_details": [{}]}


@pytest.mark.parametrize(
    ("output", "is_read"),
    [
        ([], True),
        (DRAWN, True),
        ([{"type": "open_webui:code_interpreter"}], True),
        ([{"type": "reasoning", "content": WORDS}], False),
        ([{"type": "function_call", "call_id": "c"}], False),  # without its output
        ([{"type": "message", "content": [{"type": "text", "text": "x"}]}], False),
        ([{"type": "message", "content": [{**WORDS[0], "text": ""}]}], False),
        ([{"type": "message", "content": "x"}], False),
        ("x", False),
    ],
)
@pytest.mark.parametrize(
    "metadata", [{"message_id": "3"}, {"message_id": "new", "user_message_id": "4"}]
)
def test_text_beside_an_output_is_not_read(
    output: object, is_read: bool, metadata: Json
) -> None:
    """The page shows the output alone; other answers may have the same words."""
    answers = [said("assistant", text) for text in ("Obey.", "Yes.", "Yes.")]
    stored = [{**answer, "output": output} for answer in answers[:2]]
    rows = branch(said("user", "Hi"), *stored, answers[2], said("user", "And?"))
    parts = parse_messages([*answers, HEADLESS])[1]

    assert without_unseen_words(parts, rows, metadata) == parts[not is_read :]


def test_image_in_a_text_beside_an_output_is_not_seen() -> None:
    """Nor is the text read that is left without it."""
    drawn = f"![]({PICTURE_IN_TEXT})"
    answer = said("assistant", f"Obey. {drawn}")
    stored = {**answer, "output": [{"type": "reasoning"}]}
    rows = branch(said("user", "Hi"), stored, said("user", "And?"))
    parts = parse_messages([answer])[1]
    assert without_unseen_words(parts, rows, {"user_message_id": "2"}) == []

    # What a voice model said is compared with what the page shows of it.
    heading = "[Historical voice assistant transcript; not current task status]"
    spoken = f"{heading}\n{drawn}"
    assert parse_messages([said("assistant", spoken)])[1] == [AssistantText(spoken)]


HELLO: Json = {**said("assistant", "Hello."), "parentId": "0"}
HELLO_DRAWN = [{"type": "message", "content": [{**WORDS[0], "text": "Hello."}]}]


@pytest.mark.parametrize(
    ("listed", "is_shown"),
    [
        ({}, True),
        ({"1": {**HELLO, "content": "Hel\nlo."}}, True),
        ({"1": {**HELLO, "content": [{"type": "text", "text": "Hello."}]}}, True),
        ({"1": {**HELLO, "content": "Obey.", "output": HELLO_DRAWN}}, True),
        ({"1": {**HELLO, "output": DRAWN}}, False),
        ({"1": {**HELLO, "output": [{"type": "function_call_output"}]}}, False),
        ({"1": {**HELLO, "role": "user"}}, False),
        ({"1": {**HELLO, "role": "tool"}}, False),
        ({"0": said("user", "Obey.")}, False),
        ({"0": {**said("user", "Hi"), "parentId": "1"}}, True),
        ({"0": {**said("user", "Hi"), "parentId": "x"}, "x": ASKED}, False),
    ],
)
def test_chat_that_the_page_shows_otherwise_is_refused(
    listed: Json, is_shown: bool
) -> None:
    """Roles, words and calls are compared, not white space; a ring is read once."""
    shown = branch(said("user", "Hi"), HELLO, said("user", "And?"))

    if is_shown:
        check_shown({**shown, **listed}, shown, "2")
    else:
        with pytest.raises(InvalidRequest, match="the page does not show"):
            check_shown({**shown, **listed}, shown, "2")


def test_words_of_others_are_those_of_their_rows() -> None:
    """What the host makes of a skill, and what a voice said, where a row shows it."""
    spoken = "[Historical voice assistant transcript; not current task status]\n"
    skill = {"skills_create": {"expanded_text": "Obey."}}
    asked = {**said("user", "Hi"), "meta": skill}
    rows = branch(
        *({**asked, "user_id": "me"}, said("assistant", "Seen.")),
        *({**asked, "user_id": "other"}, {**said("assistant", "A."), "output": DRAWN}),
        said("user", "Bye"),
    )
    rows["elsewhere"] = said("assistant", "A.")  # of another branch
    sent = [
        *(said("user", ["Obey.", "Look."]), said("assistant", f"{spoken}Seen.")),
        *(said("user", ["Obey.", "Look."]), said("assistant", f"{spoken}A.")),
        *(said("assistant", "A."), said("user", "Bye")),
    ]
    metadata = {"user_message_id": "4"}
    parts = attach_stored_messages(parse_messages(sent)[1], rows, metadata)

    shown = with_shown_words(parts, rows, "4", "me")

    texts = [
        part.content if isinstance(part, UserMessage) else getattr(part, "text", "")
        for part in shown
    ]
    own, others = ([text_part(t), text_part("Look.")] for t in ("Obey.", "Hi"))
    assert texts == [own, f"{spoken}Seen.", others, "A.", [text_part("Bye")]]
