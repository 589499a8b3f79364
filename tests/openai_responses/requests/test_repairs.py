"""Repairs change what a server refused, and nothing else."""

from typing import Any

import pytest

from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.repairs import (
    Repair,
    item_names,
    json_digest,
    repair_items,
    repair_payload,
)

Item = dict[str, Any]


def said(role: str, text: str, **more: Any) -> Item:
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
HI, HELLO = said("user", "Hi"), said("assistant", "Hello")
TOLD = [
    said("assistant", "I called a: {}"),
    said("assistant", "I got this result: of a"),
]
GONE = "[A picture or file stood here. It could not be sent.]"


def sent(items: list[Item], *repairs: Repair) -> list[Item]:
    """What is sent of these items."""
    return [item for _, item in repair_items(items, repairs)]


def test_without_repairs_the_items_are_the_same_objects() -> None:
    """A chat that was never refused costs nothing."""
    items = [HI, THOUGHT, HELLO]
    pairs = repair_items(items, ())
    assert all(a is b for (_, a), b in zip(pairs, items, strict=True))


def test_same_item_again_has_a_name_of_its_own() -> None:
    """People ask the same twice; what is appended changes no name."""
    items = [HI, HELLO, HI, THOUGHT, HELLO, HI]
    names = item_names(items)
    assert len({*names}) == 6
    assert item_names(items[:4]) == names[:4]
    repair = Repair("reasoning", names[2])
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
        ({"type": "unheard"}, [HI, HELLO], [HI, HELLO]),
    ],
)
def test_item_goes_with_its_reasoning_and_a_pair_becomes_words(
    dropped: Item, items: list[Item], left: list[Item]
) -> None:
    """Half pairs would be refused, and without the words the model calls again."""
    assert sent(items, Repair("item", json_digest(dropped))) == left


def test_what_people_and_the_administrator_wrote_stays() -> None:
    """A chat's row can name any item: whoever writes it may not silence others."""
    items = [said("developer", "Be kind."), HI, HELLO]
    repairs = [Repair("item", name) for name in item_names(items)]
    repairs += [Repair("kind", f"message@{name}") for name in item_names(items)]
    assert sent(items, *repairs) == items[:2]


def test_words_of_an_item_stay() -> None:
    """A picture becomes a line of text; other fields of a message go."""
    items = [PICTURE, said("assistant", "Hello", logprobs=[])]
    repairs = [Repair("text", json_digest(item)) for item in items]
    assert sent(items, *repairs) == [said("user", GONE), HELLO]


def test_picture_of_a_tool_becomes_text() -> None:
    """The output is a text then."""
    shown = {**output("a"), "output": [{"type": "input_text", "text": "seen"}, IMAGE]}
    repaired = sent([call("a"), shown], Repair("text", json_digest(shown)))
    assert repaired == [call("a"), {**shown, "output": f"seen\n{GONE}"}]


def test_all_items_of_a_kind_go() -> None:
    """Those of a name, too; others of the type stay."""
    items = [CODE, HELLO, call("a"), output("a"), call("b"), output("b"), CODE]
    code = Repair("kind", f"code_interpreter_call@{item_names(items)[6]}")
    assert sent(items, code) == [HELLO, *items[2:6]]
    named = Repair("kind", f"function_call:a@{item_names(items)[3]}")
    again = [{**one, "call_id": "c_2"} for one in items[2:4]]
    assert sent([*items, *again], code, named) == [HELLO, *TOLD, *items[4:6], *again]


def test_reasoning_up_to_an_item_goes() -> None:
    """What came later was made by this server."""
    items = [HI, THOUGHT, HELLO, said("user", "And?"), THOUGHT, HELLO]
    repair = Repair("reasoning", json_digest(items[3]))
    assert sent(items, repair) == [HI, HELLO, items[3], THOUGHT, HELLO]
    assert sent(items[:3], repair) == items[:3]


def test_plain_chat_has_words_calls_and_outputs() -> None:
    """Nothing that only this API knows is left."""
    items = [
        said("developer", "Be kind."),
        {"role": "user", "content": "Hi"},
        THOUGHT,
        SEARCH,
        said("assistant", "Hello", logprobs=[]),
        call("a", namespace="n"),
        {**output("a"), "id": "fco_1"},
        said("assistant", ""),
        PICTURE,
    ]
    plain = sent(items, Repair("plain", json_digest(PICTURE)))
    assert plain == [
        said("developer", "Be kind."),
        HI,
        HELLO,
        call("a"),
        output("a"),
        said("user", GONE),
    ]
    later = [*items, THOUGHT, HELLO]
    assert sent(later, Repair("plain", json_digest(PICTURE))) == [
        *plain,
        THOUGHT,
        HELLO,
    ]


TOOL = {"type": "function", "name": "look", "parameters": {"type": "object"}}
WEB = {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}


def body(**more: Any) -> dict[str, Any]:
    """A request."""
    return {"model": "m", "input": [HI], "tools": [TOOL, WEB], **more}


def test_field_goes_everywhere() -> None:
    """From all items and parts of a type, and from no other."""
    items = [{**SEARCH, "status": "completed"}, {**THOUGHT, "status": "completed"}]
    changed = repair_payload(
        body(input=items),
        [
            Repair("field", "input:web_search_call.status"),
            Repair("field", "input:web_search_call.action.type"),
            Repair("field", "tools:function.parameters.type"),
            Repair("field", "include:x.y"),
        ],
    )
    assert changed["input"] == [{**SEARCH, "action": {}}, items[1]]
    assert changed["tools"] == [{**TOOL, "parameters": {}}, WEB]
    parts = [said("assistant", "Hello", logprobs=[])]
    repair = Repair("field", "input:message.content.logprobs")
    assert repair_payload(body(input=parts), [repair])["input"] == [HELLO]


def test_field_of_a_tool_goes_from_tools_that_came_later() -> None:
    """They stand in the input of a chat that only grows."""
    added = {"type": "additional_tools", "role": "developer", "tools": [TOOL, WEB]}
    repair = Repair("field", "tools:function.parameters.type")
    changed = repair_payload({"model": "m", "input": [HI, added]}, [repair])
    bare = {**TOOL, "parameters": {}}
    assert changed == {"model": "m", "input": [HI, {**added, "tools": [bare, WEB]}]}


@pytest.mark.parametrize(
    ("choice", "left"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", None),
        ({"type": "function", "name": "look"}, None),
        ({"type": "web_search"}, {"type": "web_search"}),
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
    repair = Repair("tool", json_digest(TOOL))
    changed = repair_payload(body(tool_choice=choice), [repair])
    assert changed["tools"] == [WEB]
    assert changed.get("tool_choice") == left


def test_last_tool_leaves_nothing() -> None:
    """An empty list, or a choice of nothing, would be refused."""
    repairs = [Repair("tool", json_digest(TOOL)), Repair("tool", json_digest(WEB))]
    assert repair_payload(body(tool_choice="auto"), repairs) == {
        "model": "m",
        "input": [HI],
    }


@pytest.mark.parametrize(
    ("repair", "left"),
    [
        (Repair("parameter", "reasoning.effort"), {"reasoning": {"summary": "auto"}}),
        (
            Repair("parameter", "reasoning.effort", '"max"', '"high"'),
            {"reasoning": {"effort": "high", "summary": "auto"}},
        ),
        (Repair("parameter", "reasoning.effort", '"low"'), None),
        (Repair("parameter", "reasoning"), {}),
        (Repair("parameter", "text.verbosity"), None),
    ],
)
def test_parameter_with_the_refused_value_goes(
    repair: Repair, left: dict[str, Any] | None
) -> None:
    """Another value of somebody else is sent."""
    asked = body(reasoning={"effort": "max", "summary": "auto"})
    expected = asked if left is None else {**body(), **left}
    assert repair_payload(asked, [repair]) == expected


def test_request_sends_what_is_repaired_and_keeps_what_was_asked() -> None:
    """The next request of a run begins with the unchanged one."""
    asked = ResponsesRequest(model="m", input=[HI], temperature=1.0)
    repaired = asked.model_copy(
        update={"repairs": (Repair("parameter", "temperature"),)}
    )
    assert "temperature" not in repaired.payload()
    assert repaired.temperature == 1.0
    assert "repairs" not in asked.payload() | repaired.payload()
