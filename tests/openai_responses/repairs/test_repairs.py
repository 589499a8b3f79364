"""Repairs change what a server refused, and nothing else."""

import json
from typing import Any

import pytest

from openai_responses.items import json_digest, message_text
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
    LeaveOutField,
    LeaveOutFunctions,
    LeaveOutParameter,
    LeaveOutStrict,
    LeaveOutTool,
    LeaveOutToolChoice,
    LimitMedia,
    LowerItems,
    MoveMessages,
    OfferFunctionsAlone,
    PlainSchemas,
    Repair,
    ReplaceEffort,
    StateInstructions,
    TextOutputs,
    lowered_kinds,
    may_offer,
    repair_request,
    sent_request,
)
from openai_responses.requests.build import ResponsesRequest

Item = dict[str, Any]


def chat_message(role: str, text: str, **more: Any) -> Item:
    """A message; the assistant's have annotations."""
    part: Item = {"type": "input_text", "text": text}
    if role == "assistant":
        part = {"type": "output_text", "text": text, "annotations": [], **more}
    return {"type": "message", "role": role, "content": [part]}


def call(name: str, **more: Any) -> Item:
    """A call of a function."""
    head = {"type": "function_call", "call_id": f"c_{name}", "name": name}
    return {**head, "arguments": "{}", **more}


def output(name: str) -> Item:
    """The output of a call."""
    kind = "function_call_output"
    return {"type": kind, "call_id": f"c_{name}", "output": f"of {name}"}


THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}}
CODE = {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,iVBO"}
PICTURE = {"type": "message", "role": "user", "content": [IMAGE]}
HI = chat_message("user", "Hi")
HELLO = chat_message("assistant", "Hello")
TOLD = [
    chat_message("assistant", "I called a: {}"),
    chat_message("assistant", "I got this result: of a"),
]
GONE = "\n[An image or file was here. It could not be sent.]\n"


def sent(items: list[Item], *repairs: ChatRepair) -> list[Item]:
    """What is sent of these items."""
    return [row.item for row in name_items(items, repairs)]


def test_without_repairs_the_items_are_the_same_objects() -> None:
    """A chat that was never refused costs nothing."""
    items = [HI, THOUGHT, HELLO]
    rows = name_items(items, ())
    assert all(row.item is item for row, item in zip(rows, items, strict=True))


def test_same_item_again_has_a_name_of_its_own() -> None:
    """People ask the same twice; what is appended changes no name."""
    items = [HI, HELLO, HI, THOUGHT, HELLO, HI]
    names = item_names(items)
    assert len({*names}) == 6
    assert item_names(items[:4]) == names[:4]
    repair = LeaveOutReasoning(names[2])
    assert sent(items, repair) == items


@pytest.mark.parametrize(
    ("dropped", "items", "left"),
    [
        (SEARCH, [HI, THOUGHT, SEARCH, HELLO], [HI, HELLO]),
        (HELLO, [HI, THOUGHT, HELLO, HI], [HI, HI]),
        (THOUGHT, [HI, THOUGHT, HELLO], [HI, HELLO]),
        (call("a"), [HI, THOUGHT, call("a"), output("a"), HELLO], [HI, *TOLD, HELLO]),
        (output("a"), [HI, THOUGHT, call("a"), output("a"), HELLO], [HI, *TOLD, HELLO]),
        (
            call("a"),
            [HI, THOUGHT, call("b"), call("a"), output("a"), output("b")],
            [HI, THOUGHT, call("b"), *TOLD, output("b")],
        ),
    ],
)
def test_left_out_item_takes_its_reasoning_and_its_pair_becomes_text(
    dropped: Item, items: list[Item], left: list[Item]
) -> None:
    """Half pairs would be refused, and without the words the model calls again."""
    assert sent(items, LeaveOutItem(json_digest(dropped))) == left


def test_user_and_developer_messages_are_never_left_out() -> None:
    """A chat's row can name any item: whoever writes it may not silence others."""
    items = [chat_message("developer", "Be kind."), HI, HELLO]
    repairs: list[ChatRepair] = [LeaveOutItem(name) for name in item_names(items)]
    repairs += [LeaveOutKind("message", name) for name in item_names(items)]
    assert sent(items, *repairs) == items[:2]


def test_words_of_an_item_stay() -> None:
    """A picture becomes a line of text; other fields of a message go."""
    items = [PICTURE, chat_message("assistant", "Hello", logprobs=[])]
    repairs = [SendAsText(json_digest(item)) for item in items]
    assert sent(items, *repairs) == [chat_message("user", GONE), HELLO]


def test_the_line_for_a_picture_is_a_line_of_its_own() -> None:
    """A model reads the question and the line, not one word of both."""
    asked = {**PICTURE, "content": [*HI["content"], *PICTURE["content"]]}
    [item] = sent([asked], SendAsText(json_digest(asked)))
    [part] = item["content"]
    assert part["text"].splitlines() == ["Hi", GONE.strip()]


def test_picture_of_a_tool_becomes_text() -> None:
    """The output is a text then."""
    shown = {**output("a"), "output": [{"type": "input_text", "text": "seen"}, IMAGE]}
    repaired = sent([call("a"), shown], SendAsText(json_digest(shown)))
    assert repaired == [call("a"), {**shown, "output": f"seen\n{GONE}"}]


def test_all_items_of_a_kind_go() -> None:
    """Up to one; others of the type stay, because a later one may be taken."""
    items = [CODE, HELLO, call("a"), output("a"), CODE, HI, CODE]
    repair = LeaveOutKind("code_interpreter_call", item_names(items)[4])
    assert sent(items, repair) == [HELLO, *items[2:4], HI, CODE]


def test_reasoning_up_to_an_item_is_left_out() -> None:
    """What came later was made by this server."""
    items = [HI, THOUGHT, HELLO, chat_message("user", "And?"), THOUGHT, HELLO]
    repair = LeaveOutReasoning(json_digest(items[3]))
    assert sent(items, repair) == [HI, HELLO, items[3], THOUGHT, HELLO]
    assert sent(items[:3], repair) == items[:3]


def test_plain_chat_has_words_calls_and_outputs() -> None:
    """Nothing that only this API knows is left."""
    items = [
        chat_message("developer", "Be kind."),
        {"role": "user", "content": "Hi"},
        THOUGHT,
        SEARCH,
        chat_message("assistant", "Hello", logprobs=[]),
        call("a", namespace="n"),
        {**output("a"), "id": "fco_1"},
        chat_message("assistant", ""),
        PICTURE,
    ]
    plain = sent(items, PlainItems(json_digest(PICTURE)))
    assert plain == [
        chat_message("developer", "Be kind."),
        HI,
        HELLO,
        call("a"),
        output("a"),
        chat_message("user", GONE),
    ]
    later = sent([*items, THOUGHT, HELLO], PlainItems(json_digest(PICTURE)))
    assert later == [*plain, THOUGHT, HELLO]


def test_words_alone_are_messages() -> None:
    """What people and the model said, and what calls gave, told by the model."""
    told = chat_message("developer", "Be kind.")
    items = [told, HI, THOUGHT, call("a"), output("a"), HELLO]
    words = sent(items, WordsAlone(item_names(items)[-1]))
    assert words == [told, HI, *TOLD, HELLO]


def test_tools_that_came_later_stay_in_plain_chats() -> None:
    """Their item has no words, and its role is that of an administrator."""
    added = {"type": "additional_tools", "role": "developer", "tools": [TOOL]}
    items = [HI, added, THOUGHT, HELLO]
    last = item_names(items)[-1]
    assert sent(items, PlainItems(last)) == [HI, added, HELLO]
    assert sent(items, WordsAlone(last)) == [HI, added, HELLO]


REPAIRS: list[ChatRepair] = [
    LeaveOutItem("a" * 32),
    SendAsText("b" * 32 + ".1"),
    LeaveOutKind("web_search_call", "c" * 32),
    LeaveOutReasoning("d" * 32),
]


def test_stored_repairs_are_read_back() -> None:
    """Each of the kinds that a chat stores."""
    assert read_chat_repairs([repair.stored() for repair in REPAIRS]) == REPAIRS


@pytest.mark.parametrize(
    "row",
    [
        ["item", 7],
        [["item"], "a" * 32],
        ["item"],
        ["item", "no digest"],
        ["kind", "web search", "c" * 32],
        ["kind", "web_search_call", "no digest"],
        # Blind steps, which 1.0.0 stored: the chat gets its reasoning back.
        ["plain", "a" * 32],
        ["words", "a" * 32],
        "item",
        None,
    ],
    ids=repr,
)
def test_stored_row_that_is_no_repair_is_skipped(row: object) -> None:
    """The owner of a chat can write anything there."""
    stored = [row, REPAIRS[0].stored(), REPAIRS[0].stored()]

    assert read_chat_repairs(stored) == REPAIRS[:1]


def test_newest_stored_repairs_are_read() -> None:
    """A row holds as many as somebody wrote."""
    repairs = [LeaveOutItem(f"{number:032x}") for number in range(10_000)]

    read = read_chat_repairs([repair.stored() for repair in repairs])

    assert read == repairs[-MAX_CHAT_REPAIRS:]


TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}
WEB = {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}


def body(**more: Any) -> dict[str, Any]:
    """A request."""
    return {"model": "m", "input": [HI], "tools": [TOOL, WEB], **more}


def test_refused_field_is_removed_from_all_items_of_its_type() -> None:
    """From all items and parts of a type, and from no other."""
    items = [
        {**SEARCH, "status": "completed"},
        {**THOUGHT, "status": "completed"},
        chat_message("assistant", "Hello", logprobs=[]),
    ]
    repairs = [
        LeaveOutField("web_search_call", ("status",)),
        LeaveOutField("message", ("content", "logprobs")),
    ]
    changed = repair_request(body(input=items), repairs)
    assert changed["input"] == [SEARCH, items[1], HELLO]
    assert changed["tools"] == [TOOL, WEB]


@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("message", ("content",)),
        ("function_call", ("arguments",)),
        ("mcp_approval_response", ("approve",)),
        ("mcp_approval_response", ("status",)),
        ("additional_tools", ("tools", "allowed_tools")),
        ("configuration_update", ("reasoning",)),
        ("message", ()),
    ],
)
def test_field_that_changes_the_meaning_is_kept(
    kind: str, keys: tuple[str, ...]
) -> None:
    """An item would say something else, or a tool would do more."""
    tool = {"type": "mcp", "allowed_tools": ["a"], "require_approval": "always"}
    items = [
        HELLO,
        call("a"),
        {"type": "mcp_approval_response", "approve": False, "status": "x"},
        {"type": "additional_tools", "role": "developer", "tools": [tool]},
        {"type": "configuration_update", "reasoning": {"effort": "low"}},
    ]
    asked = body(input=items)
    assert repair_request(asked, [LeaveOutField(kind, keys)]) == asked


def test_functions_lose_strict_alone() -> None:
    """Also those that came later; no other field of a tool ever goes."""
    strict = {**TOOL, "strict": True}
    added = {"type": "additional_tools", "role": "developer", "tools": [strict]}
    changed = repair_request(
        body(input=[HI, added], tools=[strict, WEB]), [LeaveOutStrict()]
    )
    assert changed["tools"] == [TOOL, WEB]
    assert changed["input"] == [HI, {**added, "tools": [TOOL]}]


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ("none", "none"),
        ("required", None),
        ({"type": "function", "name": "look"}, None),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [TOOL, WEB]},
            {"type": "allowed_tools", "mode": "auto", "tools": [WEB]},
        ),
        ({"type": "allowed_tools", "mode": "auto", "tools": [TOOL]}, "none"),
    ],
)
def test_tool_goes_with_the_choice_that_may_mean_it(
    choice: object, left: object
) -> None:
    """The rest of the tools stays as it was."""
    repair = LeaveOutTool(json_digest(TOOL))
    changed = repair_request(body(tool_choice=choice), [repair])
    assert changed["tools"] == [WEB]
    assert changed.get("tool_choice") == left


def test_model_that_cannot_call_keeps_the_tools_of_the_server() -> None:
    """Also without those that an item added, and without a choice among none."""
    custom: Item = {"type": "custom", "name": "note"}
    added = {"type": "additional_tools", "role": "developer", "tools": [custom, WEB]}
    asked = body(input=[HI, added], tools=[TOOL], tool_choice="required")

    assert repair_request(asked, [LeaveOutFunctions()]) == body(tools=[WEB])
    left = repair_request(body(tools=[TOOL], tool_choice="auto"), [LeaveOutFunctions()])
    assert left == {"model": "m", "input": [HI]}


def test_server_without_tools_of_its_own_gets_functions_alone() -> None:
    """Also without what it may not know: tools with a text as input, added ones."""
    custom: Item = {"type": "custom", "name": "note"}
    added = {"type": "additional_tools", "role": "developer", "tools": [custom, WEB]}
    asked = body(input=[HI, added], tools=[TOOL], tool_choice={"type": "web_search"})

    assert repair_request(asked, [OfferFunctionsAlone()]) == body(tools=[TOOL])
    assert repair_request(body(tools=[TOOL]), [OfferFunctionsAlone()]) == body(
        tools=[TOOL]
    )


def test_later_instructions_move_to_the_beginning() -> None:
    """Of the messages the others stay, in their order."""
    asked = body(
        instructions="Be kind.",
        input=[
            chat_message("developer", "Ann likes tea."),
            HI,
            HELLO,
            chat_message("system", "It is Monday."),
            HI,
        ],
    )

    moved = sent_request(asked, [GatherInstructions(), LeaveOutItem(A)]).payload

    assert moved["instructions"] == "Be kind.\n\nAnn likes tea.\n\nIt is Monday."
    assert moved["input"] == [HI, HELLO, HI]
    unchanged = body(instructions="Be kind.")
    assert GatherInstructions().apply(unchanged) is unchanged


@pytest.mark.parametrize(
    ("first", "stated"),
    [
        ([chat_message("developer", "Be kind.")], "Be kind."),
        ([chat_message("system", "Be kind.")], "Be kind."),
        ([], "Answer the user."),
    ],
)
def test_instructions_are_stated_in_their_own_field(
    first: list[Item], stated: str
) -> None:
    """Those of the first message, else something that says nothing."""
    later = chat_message("developer", "It is Monday.")
    asked = body(input=[*first, HI, later, HI])

    request = sent_request(asked, [StateInstructions()])

    assert request.payload == body(instructions=stated, input=[HI, later, HI])
    assert [row.item for row in request.items] == [HI, later, HI]
    unchanged = body(instructions="Be kind.")
    assert StateInstructions().apply(unchanged) is unchanged


def test_questions_without_an_answer_are_joined() -> None:
    """Images, too, and a message in its short form; calls between two stay there."""
    ids = {"call_id": "call_9", "name": "look"}
    call: Item = {"type": "function_call", **ids, "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_9", "output": "sun"}
    short: Item = {"role": "user", "content": "And?"}
    asked = body(input=[HI, PICTURE, short, call, output, HELLO, HI])

    joined = repair_request(asked, [JoinMessages()])["input"]

    gap = {"type": "input_text", "text": "\n\n"}
    parts = [*HI["content"], gap, *PICTURE["content"], gap]
    parts.append({"type": "input_text", "text": "And?"})
    assert joined == [{**HI, "content": parts}, call, output, HELLO, HI]
    request = sent_request(asked, [JoinMessages(), LeaveOutItem(A)])
    assert [row.item for row in request.items] == joined
    unchanged = body(input=[HI, HELLO])
    assert JoinMessages().apply(unchanged) is unchanged


def test_what_repairs_of_a_chat_leave_is_joined_and_gathered_as_well() -> None:
    """Words of a call are messages, and an instruction may have had an image."""
    seeing = chat_message("developer", "Look.")
    seeing["content"] = [*seeing["content"], IMAGE]
    asked = body(input=[HI, call("a"), output("a"), HELLO, seeing, PICTURE])
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


def test_messages_around_a_gathered_instruction_are_joined() -> None:
    asked = body(input=[HI, chat_message("developer", "Be kind."), PICTURE])
    repairs = [JoinMessages(), GatherInstructions()]
    [question] = repair_request(asked, repairs)["input"]
    assert question["content"][-1] == IMAGE


def test_stream_is_asked_for() -> None:
    """Once: what asks for one already stays the same object."""
    asked = body(stream=False)
    assert repair_request(asked, [AskForStream()]) == body(stream=True)
    streamed = body(stream=True)
    assert AskForStream().apply(streamed) is streamed


def test_last_tool_leaves_nothing() -> None:
    """An empty list, or a choice of nothing, would be refused."""
    repairs = [LeaveOutTool(json_digest(TOOL)), LeaveOutTool(json_digest(WEB))]
    left = repair_request(body(tool_choice="auto"), repairs)
    assert left == {"model": "m", "input": [HI]}


def test_tool_that_an_item_added_goes() -> None:
    """The others are sent in the field then."""
    added = {"type": "additional_tools", "role": "developer", "tools": [WEB]}
    asked = body(input=[HI, added], tools=[TOOL])
    assert repair_request(asked, [LeaveOutTool(json_digest(WEB))]) == body(tools=[TOOL])


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ("auto", [TOOL, WEB]),
        ("required", [TOOL, WEB]),
        ({"type": "function", "name": "look"}, [TOOL, WEB]),
        ("none", None),
        ({"type": "allowed_tools", "mode": "auto", "tools": [WEB]}, [WEB]),
    ],
)
def test_without_a_choice_no_tool_can_be_called_that_it_forbade(
    choice: object, left: list[Item] | None
) -> None:
    """Servers that do not know the field would let the model call all."""
    changed = repair_request(body(tool_choice=choice), [LeaveOutToolChoice()])
    assert changed.get("tools") == left
    assert "tool_choice" not in changed


AUTO = json_digest("auto")


@pytest.mark.parametrize(
    ("repair", "left"),
    [
        (LeaveOutParameter("reasoning.effort"), {"reasoning": {"summary": "auto"}}),
        (
            ReplaceEffort("max", "high"),
            {"reasoning": {"effort": "high", "summary": "auto"}},
        ),
        (ReplaceEffort("low", "high"), None),
        (
            LeaveOutParameter("reasoning.summary", AUTO),
            {"reasoning": {"effort": "max"}},
        ),
        (LeaveOutParameter("reasoning.effort", AUTO), None),
        (LeaveOutParameter("reasoning"), {}),
        (LeaveOutParameter("text.verbosity"), None),
    ],
)
def test_parameter_with_the_refused_value_goes(
    repair: Repair, left: dict[str, Any] | None
) -> None:
    """Another value of somebody else is sent."""
    asked = body(reasoning={"effort": "max", "summary": "auto"})
    expected = asked if left is None else {**body(), **left}
    assert repair_request(asked, [repair]) == expected


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


def test_request_sends_what_is_repaired_and_keeps_what_was_asked() -> None:
    """The next request of a run begins with the unchanged one."""
    asked = ResponsesRequest(model="m", input=[HI], temperature=1.0)
    repaired = asked.model_copy(update={"repairs": (LeaveOutParameter("temperature"),)})
    assert "temperature" not in repaired.payload()
    assert repaired.temperature == 1.0
    assert "repairs" not in asked.payload() | repaired.payload()


def test_only_the_newest_rows_are_read() -> None:
    """The owner of a chat can write a million there."""
    known = REPAIRS[0].stored()

    assert read_chat_repairs([known] + [["junk"]] * 999) == REPAIRS[:1]
    assert read_chat_repairs([known] + [["junk"]] * 1000) == []


def test_words_of_a_long_output_are_cut() -> None:
    """The answer to the refusal must not be a request that is too long."""
    long = {**output("a"), "output": "x" * 1_000_000}

    items = sent([HI, call("a"), long], LeaveOutItem(json_digest(long)))

    assert items[:2] == [HI, TOLD[0]]
    assert len(message_text(items[2])) == 20_000


def test_people_read_what_is_left_out() -> None:
    """By its name, and what it means for them where the answer looks different."""
    assert "reasoning.summary" in LeaveOutParameter("reasoning.summary").message
    assert "arrives all at once" in LeaveOutParameter("stream").message


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ({"verbosity": "low"}, None),
        ({"format": {"type": "json_object"}}, {"format": {"type": "json_object"}}),
    ],
)
def test_format_that_a_person_asked_for_stays(text: Item, left: Item | None) -> None:
    """Whoever reads the answer as JSON cannot read another."""
    body: Item = {"model": "m", "input": [], "text": text}

    repaired = LeaveOutParameter("text").apply(body)

    assert repaired.get("text") == left


A = "a" * 32


@pytest.mark.parametrize(
    ("repair", "stored", "message"),
    [
        (
            LeaveOutItem(A, "web search call"),
            ["item", A],
            "One earlier web search call could not be sent again and was left out.",
        ),
        (
            LeaveOutItem(A, "function call", keeps_words=True),
            ["item", A],
            "One earlier function call was sent as plain text.",
        ),
        (
            SendAsText(A, "message"),
            ["text", A],
            "One earlier message was sent as plain text.",
        ),
        (
            SendAsText(A, had_media=True),
            ["text", A],
            "An image or file could not be sent to the model and was left out.",
        ),
        (
            LeaveOutKind("web_search_call", A),
            ["kind", "web_search_call", A],
            "Earlier items of the type web search call were left out.",
        ),
        (
            LeaveOutKind("code_interpreter_call", A),
            ["kind", "code_interpreter_call", A],
            "Earlier code runs are no longer available: answering without them.",
        ),
        (
            LeaveOutReasoning(A),
            ["reasoning", A],
            "The model's server could not read earlier reasoning in this chat: answering without "
            "it.",
        ),
        (
            CallsAsWords(A),
            ["calls", A],
            "The model's server demands earlier thoughts, which are gone: earlier tool calls were "
            "sent as plain text.",
        ),
        (
            PlainItems(A),
            [],
            "The model's server rejected this chat as it was: only its texts and tool results "
            "were sent.",
        ),
        (
            PlainItems(A, had_media=True),
            [],
            "The model's server rejected this chat with its images and files: only its texts and "
            "tool results were sent.",
        ),
        (
            WordsAlone(A),
            [],
            "The model's server rejected this chat again: only its text was sent.",
        ),
        (
            LeaveOutPlainReasoning(),
            [],
            "The model's server does not accept its own reasoning: answering without it.",
        ),
        (
            LeaveOutImages(),
            [],
            "This model cannot see images: answering without them.",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_a_chat_stores_of_a_repair_and_people_read(
    repair: ChatRepair, stored: list[str], message: str
) -> None:
    """Blind steps and the way of a model or a server are not the chat's."""
    assert (repair.stored(), repair.message) == (stored, message)


def test_pictures_and_plain_reasoning_go_wherever_they_are() -> None:
    """The words of a message with a picture stay, and reasoning that is encrypted."""
    words = [{"type": "reasoning_text", "text": "So."}]
    plain: Item = {"type": "reasoning", "summary": [], "content": words}
    file: Item = {**PICTURE, "content": [{"type": "input_file", "file_id": "f"}]}
    items: list[Item] = [PICTURE, file, THOUGHT, HELLO, plain, HELLO]

    gone = chat_message("user", GONE)
    assert sent(items, LeaveOutImages()) == [gone, *items[1:]]
    assert sent(items, LeaveOutPlainReasoning()) == [*items[:4], HELLO]


def test_items_that_a_server_does_not_take_become_fields() -> None:
    """The last update counts; the tools that were added come last."""
    added = {"type": "additional_tools", "role": "developer", "tools": [WEB]}
    low = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    high = {"type": "configuration_update", "reasoning": {"effort": "high"}}
    asked = body(
        input=[HI, added, low, high], tools=[TOOL], reasoning={"summary": "auto"}
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
    added = {"type": "additional_tools", "role": "developer", "tools": [WEB]}
    asked = body(input=[HI, added, SEARCH, HELLO], tools=[TOOL])

    request = sent_request(asked, [LeaveOutTool(json_digest(WEB))])

    assert request.payload["input"] == [HI, SEARCH, HELLO]
    names = item_names(asked["input"])
    assert [row.name for row in request.items] == [names[0], *names[2:]]
    assert not may_offer(WEB, [LeaveOutStrict(), LeaveOutTool(json_digest(WEB))])
    assert not may_offer(WEB, [OfferFunctionsAlone()])
    assert may_offer(WEB, [LeaveOutStrict(), LeaveOutTool(A)])


def test_repair_of_what_was_not_sent_changes_nothing() -> None:
    """Nor is it tried."""
    asked = body()
    for repair in (LeaveOutToolChoice(), LeaveOutTool(A), ReplaceEffort("a", "b")):
        assert repair.apply(asked) == asked
        assert not repair.applies(sent_request(asked, ()))


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
    items = repair_request(asked, [TextOutputs()])["input"]
    assert items == [PICTURE, call("a"), {**seen, "output": GONE}, PICTURE, HELLO]
    question = chat_message("user", "Continue your last message exactly where it ends.")
    repairs: list[Repair] = [
        AskToContinue(),
        LimitMedia("input_image", 3),
        LeaveOutItem(A),
    ]
    assert repair_request(asked, repairs)["input"] == [*asked["input"], question]
    without = body(input=[HELLO, HI])
    assert repair_request(without, repairs)["input"] == [HELLO, HI]
    for repair in (LimitMedia("input_image", 2), LimitMedia("input_file", 0)):
        assert repair.message
        assert "than 2" in repair.message or "files" in repair.message


DATE = {"type": "string", "format": "date", "pattern": "\\d"}
SCHEMA = {
    "type": "object",
    "$defs": {"Date": {**DATE, "description": "A day."}},
    "properties": {
        "day": {"$ref": "#/$defs/Date"},
        "unit": {"anyOf": [{"type": "null"}, {"enum": ["C", "F"]}], "default": "C"},
        "any": {"description": "Any value."},
        "days": {"type": ["array", "null"], "items": DATE, "maxItems": 3},
        "self": {"$ref": "#"},
        "none": {"$ref": "#/$defs/None"},
        "one": {"const": "x"},
        "two": {"items": {"properties": {"n": {"type": "integer", "minimum": 0}}}},
    },
    "required": ["day", "lost", []],
    "additionalProperties": {"not": {}},
}


def test_schemas_become_plain() -> None:
    """Types, names, descriptions and choices of words; work has an end."""
    function = {"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}
    [tool, web] = repair_request(body(tools=[function, WEB]), [PlainSchemas()])["tools"]
    assert (web, tool["strict"]) == (WEB, False)
    repairs: list[Repair] = [LeaveOutStrict(), PlainSchemas()]
    assert "strict" not in repair_request(body(tools=[function]), repairs)["tools"][0]
    plain = tool["parameters"]["properties"]
    inner = plain.pop("self")
    assert plain == {
        "day": {"type": "string", "description": "A day."},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "any": {"type": "string", "description": "Any value."},
        "days": {"type": "array", "items": {"type": "string"}},
        "none": {"type": "string"},
        "one": {"type": "string", "enum": ["x"]},
        "two": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": [],
            },
        },
    }
    assert tool["parameters"].keys() == {"type", "properties", "required"}
    assert tool["parameters"]["required"] == ["day"]
    assert inner["required"] == ["day"]
    trap = {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}}
    for schema in (trap, None, {"type": "array"}, {"$ref": "#/" + "a/" * 10_000}):
        odd = body(tools=[{**function, "parameters": schema}])
        [tool] = repair_request(odd, [PlainSchemas()])["tools"]
        assert tool["parameters"]["type"] == "object"
        assert len(json.dumps(tool)) < 500_000
    assert repair_request(body(tools=[]), [PlainSchemas()]) == body(tools=[])
