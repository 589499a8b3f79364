"""Repairs change what a server refused, and nothing else."""

import json
import re
from typing import Any

import pytest

from openai_responses.appended import APPENDED
from openai_responses.items import content_parts, item_type, json_digest, message_text
from openai_responses.repairs.chat_repairs import (
    MAX_CHAT_REPAIRS,
    CallsAsWords,
    ChatRepair,
    LeaveOutImages,
    LeaveOutItem,
    LeaveOutKind,
    LeaveOutPlainReasoning,
    LeaveOutReasoning,
    PlainItems,
    SendAsText,
    WordsAlone,
    item_names,
    name_items,
    read_chat_repairs,
)
from openai_responses.repairs.request_repairs import (
    AskForStream,
    AskToContinue,
    GatherInstructions,
    JoinMessages,
    LeaveOutBackground,
    LeaveOutEmptyTexts,
    LeaveOutField,
    LeaveOutFunctions,
    LeaveOutParameter,
    LeaveOutTool,
    LeaveOutToolChoice,
    LeaveOutToolField,
    LimitMedia,
    LowerItems,
    LowerLimit,
    MoveMessages,
    OfferFunctionsAlone,
    PlainSchemas,
    Repair,
    ReplaceEffort,
    RequestRepair,
    SeparateCalls,
    ShortCallIds,
    ShortenDescriptions,
    StateDetail,
    StateInstructions,
    TextOutputs,
    lowered_kinds,
    may_offer,
    repair_request,
    sent_request,
)

Item = dict[str, Any]


def chat_message(role: str, text: str, **more: Any) -> Item:
    """A message; the assistant's have annotations."""
    part: Item = {"type": "input_text", "text": text}
    if role == "assistant":
        part = {"type": "output_text", "text": text, "annotations": [], **more}
    return {"type": "message", "role": role, "content": [part]}


def call(name: str, **more: Any) -> Item:
    head = {"type": "function_call", "call_id": f"c_{name}", "name": name}
    return {**head, "arguments": "{}", **more}


def output(name: str) -> Item:
    kind = "function_call_output"
    return {"type": kind, "call_id": f"c_{name}", "output": f"of {name}"}


A = "a" * 32
THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}
CODE = {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}
PICTURE = {"type": "message", "role": "user", "content": [IMAGE]}
HI = chat_message("user", "Hi")
AND = chat_message("user", "And?")
HELLO = chat_message("assistant", "Hello")
KIND = chat_message("developer", "Be kind.")
MONDAY = chat_message("developer", "It is Monday.")
TOLD = [
    chat_message("assistant", "I called a: {}"),
    chat_message("assistant", "I got this result: of a"),
]
CUSTOM = {"type": "custom_tool_call", "call_id": "c_a", "name": "a", "input": "1+1"}
GONE = "\n[An image or file was here. It could not be sent.]\n"
NO_PICTURE = chat_message("user", GONE)
CALL = [call("a"), output("a")]
SEEN = {**output("a"), "output": [{"type": "input_text", "text": "seen"}, IMAGE]}
FILE = {**PICTURE, "content": [{"type": "input_file", "file_id": "f"}]}
LOGGED = chat_message("assistant", "Hello", logprobs=[])
SHORT = [{"role": "user", "content": "What are logprobs?"}, {"role": "user"}]
DONE = {"status": "x"}
PLAIN_THOUGHT = {
    "type": "reasoning",
    "summary": [],
    "content": [{"type": "reasoning_text", "text": "So."}],
}
TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}
STRICT = {**TOOL, "strict": True}
WEB = {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}
NOTE = {"type": "custom", "name": "note"}


def adding(*tools: Item) -> Item:
    return {"type": "additional_tools", "role": "developer", "tools": [*tools]}


def name(item: Item) -> str:
    return json_digest(item)


def sent(items: list[Item], *repairs: ChatRepair) -> list[Item]:
    return [row.item for row in name_items(items, repairs)]


def test_same_item_again_has_a_name_of_its_own() -> None:
    """People ask the same twice; what is appended changes no name."""
    items = [HI, HELLO, HI, THOUGHT, HELLO, HI]
    names = item_names(items)
    assert len({*names}) == 6
    assert item_names(items[:4]) == names[:4]
    assert sent(items, LeaveOutReasoning(names[2])) == items


WITH_CALL = [HI, THOUGHT, *CALL, HELLO]
TWO_CALLS = [HI, THOUGHT, call("b"), *CALL, output("b")]
TWO_TURNS = [HI, THOUGHT, HELLO, AND, THOUGHT, HELLO]
LATER_TOOLS = [HI, adding(TOOL), THOUGHT, HELLO]


@pytest.mark.parametrize(
    ("items", "repair", "left"),
    [
        # An item takes its reasoning along. Half pairs would be refused, and without
        # the words of a call the model would call again.
        (
            [HI, output("b"), THOUGHT, THOUGHT, SEARCH, HELLO],
            LeaveOutItem(name(SEARCH)),
            [HI, HELLO],
        ),
        ([HI, THOUGHT, HELLO, HI], LeaveOutItem(name(HELLO)), [HI, HI]),
        ([HI, THOUGHT, HELLO], LeaveOutItem(name(THOUGHT)), [HI, HELLO]),
        (WITH_CALL, LeaveOutItem(name(call("a"))), [HI, *TOLD, HELLO]),
        (WITH_CALL, LeaveOutItem(name(output("a"))), [HI, *TOLD, HELLO]),
        (
            [HI, CUSTOM, {**output("a"), "type": "custom_tool_call_output"}],
            LeaveOutItem(name(CUSTOM)),
            [HI, chat_message("assistant", "I called a: 1+1"), TOLD[1]],
        ),
        (
            TWO_CALLS,
            LeaveOutItem(name(call("a"))),
            [HI, THOUGHT, call("b"), *TOLD, output("b")],
        ),
        # A picture becomes a line of text; other fields of a message go.
        ([PICTURE], SendAsText(name(PICTURE)), [NO_PICTURE]),
        ([LOGGED], SendAsText(name(LOGGED)), [HELLO]),
        (
            [call("a"), SEEN],
            SendAsText(name(SEEN)),
            [call("a"), {**SEEN, "output": f"seen\n{GONE}"}],
        ),
        # Up to one item; a later one may be taken.
        (
            [CODE, HELLO, *CALL, CODE, HI, CODE],
            LeaveOutKind(f"{name(CODE)}.1", "code_interpreter_call"),
            [HELLO, *CALL, HI, CODE],
        ),
        # What came later was made by this server.
        (TWO_TURNS, LeaveOutReasoning(name(AND)), [HI, HELLO, AND, THOUGHT, HELLO]),
        (TWO_TURNS[:3], LeaveOutReasoning(name(AND)), TWO_TURNS[:3]),
        # What people and the model said, and what calls gave, told by the model.
        ([KIND, *WITH_CALL], WordsAlone(name(HELLO)), [KIND, HI, *TOLD, HELLO]),
        # An item of tools has no words, and its role is that of an administrator.
        (LATER_TOOLS, PlainItems(name(HELLO)), [HI, adding(TOOL), HELLO]),
        (LATER_TOOLS, WordsAlone(name(HELLO)), [HI, adding(TOOL), HELLO]),
        # The words of a message with a picture stay, and reasoning that is encrypted.
        ([PICTURE, FILE, HELLO], LeaveOutImages(), [NO_PICTURE, FILE, HELLO]),
        (
            [THOUGHT, HELLO, PLAIN_THOUGHT, HELLO],
            LeaveOutPlainReasoning(),
            [THOUGHT, HELLO, HELLO],
        ),
    ],
)
def test_repair_of_a_chat_leaves_the_rest(
    items: list[Item], repair: ChatRepair, left: list[Item]
) -> None:
    assert sent(items, repair) == left


def test_user_and_developer_messages_are_never_left_out() -> None:
    """A chat's row can name any item: whoever writes it may not silence others."""
    items = [KIND, HI, HELLO]
    repairs: list[ChatRepair] = [LeaveOutItem(name) for name in item_names(items)]
    repairs += [LeaveOutKind(name, "message") for name in item_names(items)]
    assert sent(items, *repairs) == items[:2]


def test_the_line_for_a_picture_is_a_line_of_its_own() -> None:
    """A model reads the question and the line, not one word of both."""
    asked = {**PICTURE, "content": [*HI["content"], *PICTURE["content"]]}
    [item] = sent([asked], SendAsText(name(asked)))
    [part] = item["content"]
    assert part["text"].splitlines() == ["Hi", GONE.strip()]


def test_plain_chat_has_words_calls_and_outputs() -> None:
    """Nothing that only this API knows is left."""
    items = [
        KIND,
        {"role": "user", "content": "Hi"},
        THOUGHT,
        SEARCH,
        LOGGED,
        call("a", namespace="n"),
        {**output("a"), "id": "fco_1"},
        chat_message("assistant", ""),
        PICTURE,
    ]
    later = [THOUGHT, HELLO]
    plain = [KIND, HI, HELLO, *CALL, NO_PICTURE]
    assert sent([*items, *later], PlainItems(name(PICTURE))) == [*plain, *later]


def test_words_of_a_long_output_are_cut() -> None:
    """The answer to the refusal must not be a request that is too long."""
    long = {**output("a"), "output": "x" * 1_000_000}

    items = sent([HI, call("a"), long], LeaveOutItem(name(long)))

    assert items[:2] == [HI, TOLD[0]]
    assert len(message_text(items[2])) == 20_000


KNOWN = LeaveOutItem(A)


def test_stored_repairs_are_read_back() -> None:
    repairs = [
        KNOWN,
        SendAsText(f"{A}.1"),
        LeaveOutKind(A, "web_search_call"),
        LeaveOutReasoning(A),
        CallsAsWords(A),
    ]
    assert read_chat_repairs([repair.stored() for repair in repairs]) == repairs


@pytest.mark.parametrize(
    "row",
    [
        ["item", 7],
        [["item"], A],
        ["item"],
        ["item", "no digest"],
        ["kind", "web search", A],
        ["kind", "web_search_call", "no digest"],
        # Blind steps, which 1.0.0 stored: the chat gets its reasoning back.
        ["plain", A],
        ["words", A],
        "item",
        None,
    ],
    ids=repr,
)
def test_stored_row_that_is_no_repair_is_skipped(row: object) -> None:
    """The owner of a chat can write anything there."""
    assert read_chat_repairs([row, KNOWN.stored(), KNOWN.stored()]) == [KNOWN]


def test_only_the_newest_rows_are_read() -> None:
    """The owner of a chat can write a million there."""
    junk: list[object] = [["junk"]]
    assert read_chat_repairs([KNOWN.stored(), *junk * 999]) == [KNOWN]
    assert read_chat_repairs([KNOWN.stored(), *junk * 1000]) == []
    repairs = [LeaveOutItem(f"{number:032x}") for number in range(999)]
    read = read_chat_repairs([repair.stored() for repair in repairs])
    assert read == repairs[-MAX_CHAT_REPAIRS:]


GAP = {"type": "input_text", "text": "\n\n"}


def body(**more: Any) -> dict[str, Any]:
    return {"model": "m", "input": [HI], "tools": [TOOL, WEB], **more}


BARE = {"model": "m", "input": [HI]}
NO_LOOK = LeaveOutTool(name(TOOL))
NO_WEB = LeaveOutTool(name(WEB))
THINKING = {"effort": "max", "summary": "auto"}
AUTO = json_digest("auto")
FORCED = {"type": "function", "name": "look"}
JSON_FORM = {"format": {"type": "json_object"}}


def allowed(*tools: Item) -> Item:
    return {"type": "allowed_tools", "mode": "auto", "tools": [*tools]}


@pytest.mark.parametrize(
    ("asked", "repairs", "left"),
    [
        # A field goes from all items and parts of a type, and from no other.
        (
            {"input": [{**SEARCH, **DONE}, {**THOUGHT, **DONE}, LOGGED, *SHORT]},
            [
                LeaveOutField("web_search_call", ("status",)),
                LeaveOutField("message", ("content", "logprobs")),
            ],
            body(input=[SEARCH, {**THOUGHT, **DONE}, HELLO, *SHORT]),
        ),
        # Functions lose `strict` alone, also those that came later.
        (
            {"input": [HI, adding(STRICT)], "tools": [STRICT, WEB]},
            [LeaveOutToolField("strict")],
            body(input=[HI, adding(TOOL)]),
        ),
        # A tool goes with the choice that may mean it.
        ({"tool_choice": "none"}, [NO_LOOK], body(tools=[WEB], tool_choice="none")),
        ({"tool_choice": "required"}, [NO_LOOK], body(tools=[WEB])),
        ({"tool_choice": FORCED}, [NO_LOOK], body(tools=[WEB])),
        (
            {"tool_choice": allowed(TOOL, WEB)},
            [NO_LOOK],
            body(tools=[WEB], tool_choice=allowed(WEB)),
        ),
        (
            {"tool_choice": allowed(TOOL)},
            [NO_LOOK],
            body(tools=[WEB], tool_choice="none"),
        ),
        # An empty list, or a choice of nothing, would be refused.
        ({"tool_choice": "auto"}, [NO_LOOK, NO_WEB], BARE),
        # The tools beside one that an item added are sent in the field.
        ({"input": [HI, adding(WEB)], "tools": [TOOL]}, [NO_WEB], body(tools=[TOOL])),
        # A model that cannot call keeps the tools of the server, added ones as well.
        (
            {
                "input": [HI, adding(NOTE, WEB)],
                "tools": [TOOL],
                "tool_choice": "required",
            },
            [LeaveOutFunctions()],
            body(tools=[WEB]),
        ),
        ({"tools": [TOOL], "tool_choice": "auto"}, [LeaveOutFunctions()], BARE),
        # A server without tools of its own may not know those with a text either.
        (
            {
                "input": [HI, adding(NOTE, WEB)],
                "tools": [TOOL],
                "tool_choice": {"type": "web_search"},
            },
            [OfferFunctionsAlone()],
            body(tools=[TOOL]),
        ),
        ({"tools": [TOOL]}, [OfferFunctionsAlone()], body(tools=[TOOL])),
        # A server that does not know the choice would let the model call all.
        (
            {"input": [HI, adding(WEB)], "tools": [TOOL], "tool_choice": "required"},
            [LeaveOutToolChoice()],
            body(),
        ),
        ({"tool_choice": "none"}, [LeaveOutToolChoice()], BARE),
        ({"tool_choice": allowed(WEB)}, [LeaveOutToolChoice()], body(tools=[WEB])),
        ({"tool_choice": {"type": "allowed_tools"}}, [LeaveOutToolChoice()], BARE),
        ({}, [LeaveOutParameter("text.verbosity")], body()),
        ({"temperature": 0}, [LeaveOutParameter("temperature")], body()),
        # Whoever reads the answer as JSON cannot read another.
        ({"text": {"verbosity": "low"}}, [LeaveOutParameter("text")], body()),
        ({"text": JSON_FORM}, [LeaveOutParameter("text")], body(text=JSON_FORM)),
        ({"stream": False}, [AskForStream()], body(stream=True)),
        # The messages around a gathered instruction become neighbors.
        (
            {"input": [AND, KIND, AND]},
            [JoinMessages(), GatherInstructions()],
            body(
                instructions="Be kind.",
                input=[{**AND, "content": [*AND["content"], GAP, *AND["content"]]}],
            ),
        ),
        # A tool that is left is still demanded.
        ({"tool_choice": FORCED}, [NO_WEB], body(tools=[TOOL], tool_choice=FORCED)),
    ],
)
def test_repair_of_a_request_leaves_the_rest(
    asked: Item, repairs: list[Repair], left: Item
) -> None:
    assert repair_request(body(**asked), repairs) == left


@pytest.mark.parametrize(
    ("reasoning", "repair", "left"),
    [
        (THINKING, LeaveOutParameter("reasoning.effort"), {"summary": "auto"}),
        ({"effort": "max"}, LeaveOutParameter("reasoning.effort"), None),
        (THINKING, ReplaceEffort("max", "high"), {**THINKING, "effort": "high"}),
        (THINKING, ReplaceEffort("max", "", of_tools=True), {"summary": "auto"}),
        (None, ReplaceEffort("", "none", of_tools=True), {"effort": "none"}),
        (THINKING, LeaveOutParameter("reasoning.summary", AUTO), {"effort": "max"}),
        (THINKING, LeaveOutParameter("reasoning"), None),
        # Another value of somebody else is sent.
        (THINKING, ReplaceEffort("low", "high"), THINKING),
        (THINKING, LeaveOutParameter("reasoning.effort", AUTO), THINKING),
    ],
)
def test_repair_of_reasoning_leaves_the_rest(
    reasoning: Item | None, repair: Repair, left: Item | None
) -> None:
    expected = body(reasoning=left) if left else body()
    assert repair_request(body(reasoning=reasoning), [repair]) == expected


def test_effort_for_tools_stays_where_none_are_offered() -> None:
    asked = body(reasoning=THINKING, tools=[])
    repair = ReplaceEffort("max", "high", of_tools=True)
    assert repair_request(asked, [repair]) == asked


@pytest.mark.parametrize(
    ("repair", "asked"),
    [
        (GatherInstructions(), body(instructions="Be kind.")),
        (StateInstructions(), body(instructions="Be kind.")),
        (JoinMessages(), body(input=[HI, HELLO])),
        (AskForStream(), body(stream=True)),
        # With a window it costs less in the background.
        (LeaveOutBackground(), body(background=True, background_options={})),
        (LeaveOutBackground(), body()),
        (LeaveOutToolChoice(), body()),
        (LeaveOutTool(A), body()),
        (ReplaceEffort("a", "b"), body()),
    ],
)
def test_repair_of_what_was_not_sent_is_not_tried(
    repair: RequestRepair, asked: Item
) -> None:
    assert repair.apply(asked) is repair_request(asked, ()) is asked
    assert not repair.applies(sent_request(asked, ()))


FILE = {"type": "input_file", "file_data": "data:", "file_id": "f", "filename": "a.txt"}
TOLD_NO = {"type": "refusal", "refusal": "No."}


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": [IMAGE, FILE, TOLD_NO, {"text": "Hi"}]},
        {"content": [{"file_url": "https://a.example"}]},
        {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"},
        {**call("a"), "arguments": "{}"},
        output("a"),
        {"type": "reasoning", "encrypted_content": "x"},
        {"type": "web_search_call", "action": {"type": "search"}},
        {"type": "file_search_call", "queries": ["rain"]},
        {"type": "code_interpreter_call", "code": "1", "container_id": "cntr_1"},
        {"type": "image_generation_call", "result": "iVBO"},
        {"type": "mcp_call", "server_label": "clocks", "approval_request_id": "r"},
        {"type": "tool_search_output", "tools": [TOOL]},
        {"type": "mcp_approval_response", "approve": False, "status": "x"},
        adding({"type": "mcp", "allowed_tools": ["a"], "require_approval": "always"}),
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
    ],
    ids=item_type,
)
def test_no_item_loses_what_it_says(item: Item) -> None:
    """It would say something else, or a tool would do more."""
    asked = body(input=[item])
    paths: list[tuple[str, ...]] = [(), *((key,) for key in item)]
    for name in ("content", *(["tools"] if item_type(item) in APPENDED else [])):
        for part in content_parts(item.get(name)):
            paths += [(name, key) for key in part]
    for path in paths:
        assert repair_request(asked, [LeaveOutField(item_type(item), path)]) == asked


def test_later_instructions_move_to_the_beginning() -> None:
    asked = body(
        instructions="Be kind.",
        input=[MONDAY, HI, HELLO, chat_message("system", "Ann likes tea."), HI],
    )

    moved = sent_request(asked, [GatherInstructions(), LeaveOutItem(A)]).payload

    assert moved["instructions"] == "Be kind.\n\nIt is Monday.\n\nAnn likes tea."
    assert moved["input"] == [HI, HELLO, HI]


@pytest.mark.parametrize(
    ("first", "stated"),
    [
        ([KIND], "Be kind."),
        ([chat_message("system", "Be kind.")], "Be kind."),
        ([], "Answer the user."),
        ([{**KIND, "content": [*KIND["content"], IMAGE]}], "Answer the user."),
        ([{**KIND, "content": []}], "Answer the user."),
    ],
)
def test_instructions_are_stated_in_their_own_field(
    first: list[Item], stated: str
) -> None:
    """Those of the first message, else something that says nothing."""
    asked = body(input=[*first, HI, MONDAY, HI])
    left = asked["input"][stated == "Be kind." :]

    request = sent_request(asked, [StateInstructions()])

    assert request.payload == body(instructions=stated, input=left)
    assert [row.item for row in request.items] == left


def test_questions_without_an_answer_are_joined() -> None:
    """Images, too, and a message in its short form; calls between two stay there."""
    short: Item = {"role": "user", "content": "And?"}
    odd = {**short, "content": None}
    asked = body(input=[HI, PICTURE, short, odd, *CALL, HELLO, HI])

    joined = repair_request(asked, [JoinMessages()])["input"]

    parts = [*HI["content"], GAP, IMAGE, GAP, *AND["content"], GAP]
    assert joined == [{**HI, "content": parts}, *CALL, HELLO, HI]
    request = sent_request(asked, [JoinMessages(), LeaveOutItem(A)])
    assert [row.item for row in request.items] == joined


@pytest.mark.parametrize("move", [MoveMessages(), SeparateCalls()])
def test_items_that_are_moved_have_the_names_of_their_new_places(move: Repair) -> None:
    asked = body(input=[CALL[0], HI, CALL[1]])

    request = sent_request(asked, [move, LeaveOutItem(A)])

    moved = request.payload["input"]
    assert moved != asked["input"]
    assert [row.item for row in request.items] == moved
    assert [row.name for row in request.items] == item_names(moved)


def test_what_repairs_of_a_chat_leave_is_joined_and_gathered_as_well() -> None:
    """Words of a call are messages, and an instruction may have had an image."""
    seeing = chat_message("developer", "Look.")
    seeing["content"] = [*seeing["content"], IMAGE]
    asked = body(input=[HI, *CALL, HELLO, seeing, PICTURE])
    repairs: list[Repair] = [
        JoinMessages(),
        GatherInstructions(),
        WordsAlone(item_names([PICTURE])[0]),
    ]

    request = sent_request(asked, repairs)

    told = "\n\n".join(map(message_text, [*TOLD, HELLO]))
    items = request.payload["input"]
    assert [message_text(item) for item in items] == ["Hi", told, GONE]
    assert request.payload["instructions"] == f"Look.{GONE}"
    assert [row.item for row in request.items] == items
    names = item_names(asked["input"])
    assert [row.name for row in request.items] == [names[0], names[3], names[5]]


GUARDS: dict[str, Any] = {
    "store": False,
    "safety_identifier": "u-1",
    "max_output_tokens": 100,
    "max_tool_calls": 3,
    "instructions": "Be kind.",
    "moderation": {"model": "m"},
    "prompt_cache_retention": "in_memory",
    "background": True,
    "tool_choice": "none",
}


@pytest.mark.parametrize("name", [*GUARDS, "model", "input", "tools", "text.format"])
def test_guard_parameter_is_never_left_out(name: str) -> None:
    """Whoever made the server refuse it: the request is refused then."""
    asked = body(**GUARDS, text={"format": {"type": "text"}})
    assert repair_request(asked, [LeaveOutParameter(name)]) == asked


@pytest.mark.parametrize(
    ("repair", "words"),
    [
        (LeaveOutParameter("reasoning.summary"), "accept reasoning.summary:"),
        (LeaveOutParameter("stream"), "arrives all at once"),
        (LeaveOutToolField("strict"), "accept strict:"),
        (LowerItems("additional_tools"), "accept additional_tools:"),
        (ReplaceEffort("max", "high"), "using high"),
        (ReplaceEffort("", "none", of_tools=True), "accept an effort with tools:"),
        (LimitMedia("input_image", 2), "no more than 2 images"),
        (LimitMedia("input_file", 0), "does not accept files"),
        (LowerLimit(900), "writes at most 900"),
        (LowerLimit(900, is_of_account=True), "can pay for 900"),
        (TextOutputs(), "images after them"),
        (TextOutputs(shows_images=False), "without their images"),
        # A caller or the server chose the name.
        (LeaveOutTool(A, "x" * 5_000), f"accept the tool {'x' * 64}:"),
        (LeaveOutField("message", ("x" * 5_000,)), f"accept {'x' * 64}:"),
    ],
)
def test_people_read_what_is_left_out(repair: Repair, words: str) -> None:
    """By its name, and what it means for them where the answer looks different."""
    assert words in repair.message


@pytest.mark.parametrize(
    ("repair", "stored", "words"),
    [
        (LeaveOutItem(A, "web search call"), ["item", A], "search call could not be"),
        (
            LeaveOutItem(A, "call", keeps_words=True),
            ["item", A],
            "call was sent as plain",
        ),
        (SendAsText(A, "message"), ["text", A], "message was sent as plain text"),
        (SendAsText(A, had_media=True), ["text", A], "image or file could not be sent"),
        (
            LeaveOutKind(A, "web_search_call"),
            ["kind", "web_search_call", A],
            "the type web search call were left out",
        ),
        (
            LeaveOutKind(A, "code_interpreter_call"),
            ["kind", "code_interpreter_call", A],
            "code runs are no longer available",
        ),
        (LeaveOutReasoning(A), ["reasoning", A], "could not read earlier reasoning"),
        (CallsAsWords(A), ["calls", A], "earlier tool calls as they were"),
        (PlainItems(A), [], "rejected this chat as it was"),
        (PlainItems(A, had_media=True), [], "this chat with its images and files"),
        (WordsAlone(A), [], "rejected this chat again: only its text"),
        (LeaveOutPlainReasoning(), [], "not accept its own reasoning"),
        (LeaveOutImages(), [], "cannot see images"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_chat_stores_of_a_repair_and_people_read(
    repair: ChatRepair, stored: list[str], words: str
) -> None:
    """Blind steps and the way of a model or a server are not the chat's."""
    assert repair.stored() == stored
    assert words in repair.message


def test_items_that_a_server_does_not_take_become_fields() -> None:
    """The last update counts; the tools that were added come last."""
    low = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    high = {"type": "configuration_update", "reasoning": {"effort": "high"}}
    asked = body(
        input=[HI, adding(WEB), low, high], tools=[TOOL], reasoning={"summary": "auto"}
    )
    repairs = [LowerItems("additional_tools"), LowerItems("configuration_update")]

    lowered = repair_request(asked, repairs)

    assert lowered == body(reasoning={"summary": "auto", "effort": "high"})
    assert lowered_kinds([*repairs, MoveMessages()]) == {
        "additional_tools",
        "configuration_update",
    }


def test_items_that_go_with_a_tool_lose_their_names() -> None:
    """So a refusal of the next request is about the item that it means."""
    asked = body(input=[HI, adding(WEB), SEARCH, HELLO], tools=[TOOL])

    request = sent_request(asked, [LeaveOutTool(json_digest(WEB))])

    assert request.payload["input"] == [HI, SEARCH, HELLO]
    names = item_names(asked["input"])
    assert [row.name for row in request.items] == [names[0], *names[2:]]
    assert not may_offer(
        WEB, [LeaveOutToolField("strict"), LeaveOutTool(json_digest(WEB))]
    )
    assert not may_offer(WEB, [OfferFunctionsAlone()])
    assert may_offer(WEB, [LeaveOutToolField("strict"), LeaveOutTool(A)])


def test_what_a_server_takes_of_a_chat_is_sent() -> None:
    """The newest images, texts of tools, and a question at the end."""
    seen = {**output("a"), "output": [IMAGE]}
    asked = body(input=[PICTURE, call("a"), seen, PICTURE, HELLO])
    gone = {"type": "input_text", "text": GONE}
    items = repair_request(asked, [LimitMedia("input_image", 1)])["input"]
    assert items == [
        {**PICTURE, "content": [gone]},
        call("a"),
        {**seen, "output": [gone]},
        PICTURE,
        HELLO,
    ]
    items = repair_request(asked, [TextOutputs(shows_images=False)])["input"]
    assert items == [PICTURE, call("a"), {**seen, "output": GONE}, PICTURE, HELLO]
    question = chat_message("user", "Continue exactly where you left off.")
    repairs: list[Repair] = [
        AskToContinue(),
        LimitMedia("input_image", 3),
        LeaveOutItem(A),
    ]
    assert repair_request(asked, repairs)["input"] == [*asked["input"], question]
    without = body(input=[HELLO, HI])
    assert repair_request(without, repairs)["input"] == [HELLO, HI]
    ends_with_call = body(input=[HI, *CALL])
    last = item_names(ends_with_call["input"])[-1]
    request = sent_request(ends_with_call, [CallsAsWords(last), AskToContinue()])
    assert request.payload["input"] == [HI, *TOLD, question]
    assert request.last_name == last


DATE = {"type": "string", "format": "date", "pattern": "\\d"}
FAR = "far" * 9_999
SCHEMA = {
    "type": "object",
    "$defs": {"Date": {**DATE, "description": "A day."}, FAR: {"type": "number"}},
    "properties": {
        "day": {"$ref": "#/$defs/Date"},
        "end": {"$ref": "#/$defs/Date", "description": "The last day."},
        "unit": {"anyOf": [{"type": "null"}, {"enum": ["C", "F"]}], "default": "C"},
        "any": {"description": "Any value."},
        "days": {"type": ["array", "null"], "items": DATE, "maxItems": 3},
        "self": {"$ref": "#"},
        "none": {"$ref": "#/$defs/None"},
        "one": {"const": "x"},
        "odd": {"type": ["string", "number"], "enum": ["x", 1]},
        "two": {"items": {"properties": {"n": {"type": "integer", "minimum": 0}}}},
        "ten": {"type": "number", "enum": ["10"]},
        "map": {"type": ["object", "null"]},
        "yes": {"oneOf": [{"type": "boolean"}]},
        "all": {"allOf": [{"type": "array"}]},
        "open": {"properties": {"n": {"type": "null"}}, "anyOf": [{"type": "number"}]},
        "far": {"$ref": f"#/$defs/{FAR}"},
        "many": {"anyOf": [{"type": "null"}] * 9_999 + [{"type": "number"}]},
    },
    "required": ["day", "lost", []],
    "additionalProperties": {"not": {}},
}


def plain_parameters(schema: object) -> Any:
    """The parameters of a function as they are sent plain."""
    asked = body(tools=[{**TOOL, "parameters": schema}])
    [tool] = repair_request(asked, [PlainSchemas()])["tools"]
    return tool["parameters"]


def test_schemas_become_plain() -> None:
    """Types, names, descriptions and choices of words."""
    function = {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}
    [tool, web] = repair_request(body(tools=[function, WEB]), [PlainSchemas()])["tools"]
    assert (web, tool["strict"]) == (WEB, False)
    repairs: list[Repair] = [LeaveOutToolField("strict"), PlainSchemas()]
    assert "strict" not in repair_request(body(tools=[function]), repairs)["tools"][0]
    plain = tool["parameters"]["properties"]
    inner = plain.pop("self")
    assert plain == {
        "day": {"type": "string", "description": "A day."},
        "end": {"type": "string", "description": "The last day."},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "any": {"type": "string", "description": "Any value."},
        "days": {"type": "array", "items": {"type": "string"}},
        "none": {"type": "string"},
        "one": {"type": "string", "enum": ["x"]},
        "odd": {"type": "string"},
        "ten": {"type": "number"},
        "map": {"type": "object", "properties": {}},
        "yes": {"type": "boolean"},
        "all": {"type": "array", "items": {"type": "string"}},
        "open": {"type": "object", "properties": {"n": {"type": "string"}}},
        # A thousand parts could each have such a reference, or so many options.
        "far": {"type": "string"},
        "many": {"type": "string"},
        "two": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
    }
    assert tool["parameters"].keys() == {"type", "properties", "required"}
    assert tool["parameters"]["required"] == ["day"]
    assert inner["required"] == ["day"]
    assert repair_request(body(tools=[]), [PlainSchemas()]) == body(tools=[])


def test_descriptions_become_short() -> None:
    """Everywhere in a function, but no field that has that name, and no server's."""
    long = "Look at the weather"
    part = {"type": "string", "description": long}
    schema = {
        "properties": {"description": part, "days": {"items": part}},
        "anyOf": [{"description": "Short"}, part],
    }
    function = {"type": "function", "name": "f", "description": long}
    clocks = {"type": "mcp", "server_label": "clocks", "description": long}
    asked = body(tools=[{**function, "parameters": schema}, clocks])

    [tool, server] = repair_request(asked, [ShortenDescriptions(8)])["tools"]

    cut = "Look at…"
    short = {"type": "string", "description": cut}
    assert tool["description"] == cut
    assert tool["parameters"] == {
        "properties": {"description": short, "days": {"items": short}},
        "anyOf": [{"description": "Short"}, short],
    }
    assert server == clocks
    assert repair_request(asked, [ShortenDescriptions(19)]) == asked


TRAP = {"properties": {name: {"$ref": "#"} for name in "abc"}}


@pytest.mark.parametrize(
    "schema", [TRAP, None, {"type": "array"}, {"$ref": "#/" + "a/" * 10_000}]
)
def test_any_schema_becomes_one_of_an_object(schema: object) -> None:
    """Each part says its type; one that refers to itself has an end."""
    plain = plain_parameters(schema)
    assert plain["type"] == "object"
    assert "null" not in json.dumps(plain)
    assert len(json.dumps(plain)) < 100_000


def test_schema_keeps_ten_levels() -> None:
    schema: Item = {"type": "integer"}
    for levels in range(2, 14, 2):
        schema = {"properties": {"a": {"items": schema}}}
        has_all = "integer" in json.dumps(plain_parameters(schema))
        assert has_all == (levels <= 10)


def test_calls_with_short_ids_stay_in_pairs() -> None:
    """The same in all later turns; an id that is short enough stays."""
    nine = "Abc123xyZ"
    own = {**call("b"), "call_id": nine}
    own_output = {**output("b"), "call_id": nine}
    asked = body(input=[HI, call("a"), own, output("a"), own_output, HELLO])
    items = repair_request(asked, [ShortCallIds()])["input"]
    ids = [item["call_id"] for item in items[1:5]]
    assert ids == [ids[0], nine, ids[0], nine]
    assert re.fullmatch("[a-z0-9]{9}", ids[0])
    later = body(input=[*asked["input"], HI, call("b"), output("b")])
    again = repair_request(later, [ShortCallIds()])["input"]
    assert again[: len(items)] == items
    assert again[-1]["call_id"] not in ids


def test_detail_of_an_image_that_is_not_known_is_high() -> None:
    low, auto = {**IMAGE, "detail": "low"}, {**IMAGE, "detail": "auto"}
    seen = {**output("a"), "output": [auto]}
    asked = body(input=[{**HI, "content": [low, IMAGE, "odd"]}, call("a"), seen])
    high = {**IMAGE, "detail": "high"}
    assert repair_request(asked, [StateDetail()])["input"] == [
        {**HI, "content": [low, high, "odd"]},
        call("a"),
        {**seen, "output": [high]},
    ]


RETURNED = {
    "type": "input_text",
    "text": "[The images that the tools returned, in their order:]",
}


@pytest.mark.parametrize("other", [LeaveOutItem(A), JoinMessages()])
def test_images_of_tools_follow_their_results(other: Repair) -> None:
    """In a message after all of them, which no repair of the chat can mean."""
    seen = [{**output(name), "output": [IMAGE, "odd", FILE]} for name in "ab"]
    asked = body(input=[HI, call("a"), call("b"), *seen, HELLO, call("c"), output("c")])
    shown = {"type": "message", "role": "user", "content": [RETURNED, IMAGE, IMAGE]}
    follows = "[An image: it follows the results.]"
    words = [{**output(name), "output": f"{follows}\n{GONE}"} for name in "ab"]
    left = [HI, call("a"), call("b"), *words, shown, HELLO, call("c"), output("c")]
    for repairs in ([TextOutputs()], [TextOutputs(), other]):
        assert repair_request(asked, repairs)["input"] == left
    last = body(input=asked["input"][:5])
    sent = sent_request(last, [TextOutputs(), other])
    assert [row.item for row in sent.items] == left[:6]
    names = item_names(last["input"])
    assert [row.name for row in sent.items] == [*names, ""]
    assert sent.last_name == names[-1]
    plain = repair_request(last, [TextOutputs(), PlainItems(sent.last_name)])["input"]
    bare = [{**output(name), "output": f"{GONE}\n{GONE}"} for name in "ab"]
    assert plain == [*left[:3], *bare]


def test_files_of_tools_stay_where_only_their_images_follow() -> None:
    """At a server that has refused neither; when it does, the words alone are left."""
    seen = {**output("a"), "output": [IMAGE, FILE]}
    asked = body(input=[HI, call("a"), seen])
    follows = {"type": "input_text", "text": "[An image: it follows the results.]"}
    shown = {"type": "message", "role": "user", "content": [RETURNED, IMAGE]}
    usual = TextOutputs(keeps_files=True)
    kept = {**seen, "output": [follows, FILE]}
    assert repair_request(asked, [usual])["input"] == [HI, call("a"), kept, shown]
    assert TextOutputs().applies(sent_request(asked, [usual]))
    words = {**seen, "output": f"{follows['text']}\n{GONE}"}
    both = repair_request(asked, [usual, TextOutputs()])["input"]
    assert both == [HI, call("a"), words, shown]
    alone = {**seen, "output": [FILE]}
    assert repair_request(body(input=[alone]), [usual])["input"] == [alone]


@pytest.mark.parametrize("shown", [TextOutputs(), TextOutputs(keeps_files=True)])
def test_template_that_takes_turns_gets_no_images_of_tools(shown: TextOutputs) -> None:
    seen = {**output("a"), "output": [IMAGE]}
    asked = body(input=[HI, call("a"), seen])
    hidden = TextOutputs(shows_images=False)
    assert not hidden.applies(sent_request(asked, []))
    assert not hidden.applies(sent_request(body(input=[HI]), [shown]))
    assert hidden.applies(sent_request(asked, [shown]))
    left = repair_request(asked, [shown, hidden])["input"]
    assert left == [HI, call("a"), {**seen, "output": GONE}]


def test_search_without_a_field_is_still_the_same_search() -> None:
    """Also one that was added in the chat; its filters stay."""
    search = {**WEB, "filters": {"allowed_domains": ["a.example"]}}
    sized = {**search, "search_context_size": "low"}
    smaller = LeaveOutToolField("search_context_size")
    asked = body(input=[HI, adding(sized)], tools=[TOOL, sized])

    sent = repair_request(asked, [smaller, LeaveOutToolField("filters")])

    assert sent == body(input=[HI, adding(search)], tools=[TOOL, search])
    assert may_offer(sized, [smaller])
    assert not may_offer(sized, [smaller, LeaveOutTool(json_digest(search))])


def test_texts_without_a_word_go_where_something_is_left() -> None:
    """Alone they say that there is none; everything else stays as it is."""
    nothing = {"type": "input_text", "text": " \n"}
    short: Item = {"role": "user", "content": ""}
    listed: Item = {**output("b"), "output": [nothing]}
    asked = body(
        input=[
            {**HI, "content": [nothing, FILE, nothing]},
            {**HI, "content": [nothing, nothing]},
            short,
            call("a"),
            {**output("a"), "output": " \n"},
            call("b"),
            listed,
            HELLO,
            {**HI, "content": []},
        ]
    )
    none = {"type": "input_text", "text": "[No text.]"}
    assert repair_request(asked, [LeaveOutEmptyTexts()])["input"] == [
        {**HI, "content": [FILE]},
        {**HI, "content": [none]},
        {**short, "content": "[No text.]"},
        call("a"),
        {**output("a"), "output": "[No text.]"},
        call("b"),
        {**listed, "output": [none]},
        HELLO,
        {**HI, "content": []},
    ]


def test_one_function_gets_a_simpler_schema_wherever_it_is_declared() -> None:
    exact = {"type": "object", "properties": {"a": {"type": "string", "format": "uri"}}}
    one, two = ({**TOOL, "name": name, "parameters": exact} for name in ("f", "g"))
    for name, own in (("f", (one, two)), ("g", (two, one))):
        asked = body(tools=[own[1]], input=[adding(own[0])])
        sent = repair_request(asked, [PlainSchemas(name)])
        assert sent["tools"] == [own[1]]
        [added] = sent["input"][0]["tools"]
        assert added["parameters"]["properties"] == {"a": {"type": "string"}}
