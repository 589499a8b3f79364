"""Wire items answer their questions, and go back without what is not theirs."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.items import (
    Item,
    answer_as_text,
    code_output,
    distinct_id,
    drop_orphans,
    drop_tool_items,
    has_image,
    has_text,
    image_format,
    image_url,
    is_call,
    is_call_output,
    is_commentary,
    is_hosted,
    is_kept_hosted,
    is_reasoning,
    is_replayed,
    is_returnable_hosted,
    item_type,
    message_text,
    move_annotations,
    move_messages_after_outputs,
    search_pages,
    search_queries,
    since_compaction,
    text_part,
    tool_kind,
    with_texts,
)
from openai_responses.requests.replay import replay_output, strip_for_replay
from runs.sample import message, reasoning

USER: Item = {"role": "user", "content": "Hi"}
REASONING: Item = {"type": "reasoning", "summary": [], "encrypted_content": "x"}
ANSWER: Item = {"type": "message", "role": "assistant", "content": []}


def call(name: str, type: str = "function_call") -> Item:
    """Return a call; its name is its id."""
    return {"type": type, "call_id": name, "name": name}


def output(name: str, type: str = "function_call_output") -> Item:
    return {"type": type, "call_id": name, "output": ""}


CALL = call("a")
CUSTOM_CALL = call("a", "custom_tool_call")
CUSTOM_OUTPUT = output("a", "custom_tool_call_output")
SEARCH: Item = {"type": "web_search_call"}
ITEMS: dict[str, Item] = {
    **{"user": USER, "reasoning": REASONING, "answer": ANSWER, "search": SEARCH},
    **{"A": CALL, "a": output("a"), "B": call("b"), "b": output("b"), "c": output("c")},
    "again": {**CALL, "name": "b"},  # a later call with the id of A
    **{"custom-A": CUSTOM_CALL, "custom-a": CUSTOM_OUTPUT},
    "no-id": {"type": "function_call", "call_id": None},
    "odd-id": {"content": "?", "call_id": ["a"]},
    "compaction": {"type": "compaction", "encrypted_content": "x"},
    "update": {"type": "configuration_update", "reasoning": {"effort": "low"}},
    "instructions": {"role": "developer", "content": "Be brief."},
    "added": {"type": "additional_tools", "tools": [{"name": "a"}]},
    "request": {"type": "mcp_approval_request", "id": "mcpr_1"},
    "response": {"type": "mcp_approval_response", "approval_request_id": "mcpr_1"},
}


def history(names: str) -> list[Item]:
    """Return the items with these names; `A` is a call, `a` its output."""
    return [ITEMS[name] for name in names.split()]


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (REASONING, "reasoning"),
        (USER, "message"),
        ({"role": "user"}, "message"),
        ({"type": None, "role": "user"}, "message"),
        ({"type": 7, "role": "user"}, ""),
        ({}, ""),
    ],
)
def test_short_message_is_a_message(item: Item, kind: str) -> None:
    assert item_type(item) == kind


@pytest.mark.parametrize(
    ("item", "kinds"),
    [
        (CALL, ["call"]),
        (CUSTOM_CALL, ["call"]),
        (output("a"), ["output"]),
        (CUSTOM_OUTPUT, ["output"]),
        (REASONING, ["reasoning"]),
        (USER, []),
        (SEARCH, []),
    ],
)
def test_calls_outputs_and_reasoning_differ(item: Item, kinds: list[str]) -> None:
    tests = {"call": is_call, "output": is_call_output, "reasoning": is_reasoning}
    assert [kind for kind, holds in tests.items() if holds(item)] == kinds


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hi", "Hi"),
        ([{"text": "a"}, {"refusal": "b"}, {"image": "c"}, "d", {"text": 7}], "ab"),
        (
            [text_part("text", "a"), text_part("refusal", "b"), text_part("text", "c")],
            "a\n\nb\n\nc",
        ),
        ([text_part("text", ""), text_part("refusal", "b")], "b"),
        ([{"type": "input_image"}], ""),
        (None, ""),
        ({"text": "a"}, ""),
    ],
)
def test_text_of_a_message_has_texts_and_refusals(content: object, text: str) -> None:
    item = {"type": "message", "content": content}
    assert message_text(item) == text
    assert has_text(item) is bool(text)


@pytest.mark.parametrize("item", [USER, {**REASONING, "role": "assistant"}])
def test_answers_alone_become_texts(item: Item) -> None:
    assert answer_as_text(item) is item


@pytest.mark.parametrize(
    ("kind", "part"),
    [
        ("text", {"type": "output_text", "text": "a", "annotations": []}),
        ("refusal", {"type": "refusal", "refusal": "a"}),
        ("summary", {"type": "summary_text", "text": "a"}),
        ("reasoning", {"type": "reasoning_text", "text": "a"}),
    ],
)
def test_part_of_each_kind_is_the_apis(kind: str, part: Item) -> None:
    assert text_part(kind, "a") == part


def test_annotations_move_with_their_text() -> None:
    """Some servers write -1 for a place that they do not know."""
    note = {"index": 0, "start_index": -1, "end_index": 4, "file_id": "f"}
    part = {**text_part("text", "a"), "annotations": [note, "odd"]}
    moved = move_annotations(part, lambda place: place + 3)
    assert moved == {**part, "annotations": [{**note, "index": 3, "end_index": 7}]}


def test_replayed_item_loses_ids_states_and_nulls() -> None:
    kept: Item = {"type": "reasoning", "summary": [], "encrypted_content": "g", "n": 1}
    item = {"id": "rs_1", "status": None, "content": None, **kept, "created_by": "x"}
    before = copy.deepcopy(item)
    assert list(strip_for_replay(item).items()) == list(kept.items())
    assert item == before


def test_replayed_message_keeps_its_phase() -> None:
    text = {"type": "output_text", "text": "Hi"}
    part: Item = {**text, "annotations": [], "logprobs": [], "x": None}
    parts = [part, {**part, "annotations": None}, "no part"]
    item = {**ANSWER, "phase": "final_answer", "id": "msg_1", "status": "completed"}
    assert strip_for_replay({**item, "content": parts}) == {
        **ANSWER,
        "phase": "final_answer",
        "content": [{**text, "annotations": []}, text],
    }
    assert strip_for_replay({**USER, "id": "1"}) == USER


def test_first_output_of_a_call_with_a_name_counts() -> None:
    call: Item = {"type": "function_call", "call_id": "a", "name": "now"}
    outputs: list[Item] = [
        {"type": "function_call_output", "call_id": "a", "output": text}
        for text in ("noon", "night")
    ]

    assert drop_orphans([call, *outputs]) == [call, outputs[0]]
    assert drop_orphans([{**call, "name": ""}, *outputs]) == []


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ("user a user", "user user"),
        ("reasoning A a user", "reasoning A a user"),
        ("user reasoning A user", "user user"),
        ("reasoning reasoning answer", "reasoning reasoning answer"),
        ("reasoning user", "user"),
        ("reasoning a answer", "reasoning answer"),
        ("reasoning A B b", "reasoning B b"),
        ("reasoning A c answer", "answer"),
        ("reasoning A reasoning answer", "reasoning answer"),
        ("A reasoning a", "A a"),
        ("custom-A custom-a", "custom-A custom-a"),
        ("reasoning search", "reasoning search"),
        ("A B user a c", "A user a"),
        ("a A", ""),
        ("A again a a", "A a"),
        ("A user again a", "user again a"),
        ("A custom-a a", "A a"),
        ("custom-A a", ""),
        ("no-id odd-id", "odd-id"),
    ],
)
def test_half_pairs_go_with_their_reasoning(items: str, kept: str) -> None:
    """Whole ones stay; an output answers one call in front of it."""
    assert drop_orphans(history(items)) == history(kept)


@pytest.mark.parametrize(
    ("items", "kept"),
    [
        ("user answer", "user answer"),
        ("user answer compaction user", "compaction user"),
        ("instructions user compaction", "instructions compaction"),
        ("user reasoning A compaction a answer", "compaction A a answer"),
        ("A a B compaction update b", "compaction update B b"),
        ("A B compaction a b", "compaction A B a b"),
        ("A compaction", "compaction A"),
        ("A compaction a B compaction b", "compaction B b"),
        (
            "instructions user added user A compaction a",
            "instructions added compaction A a",
        ),
        ("A compaction added a", "compaction A added a"),
        ("request compaction response", "compaction request response"),
        ("request response compaction user", "compaction user"),
    ],
)
def test_input_begins_with_the_last_compaction(items: str, kept: str) -> None:
    """Calls that it leaves without their outputs come after it, once and for all."""
    assert since_compaction(history(items)) == history(kept)
    assert since_compaction(history(kept)) == history(kept)


@pytest.mark.parametrize(
    ("items", "moved"),
    [
        ("answer A answer B a b user", "answer A B a b answer user"),
        ("A answer a B user b", "A a answer B b user"),
        ("A reasoning B answer b a", "A reasoning B b a answer"),
        ("A answer user", "A answer user"),
        ("A a answer user", "A a answer user"),
    ],
)
def test_messages_between_calls_and_outputs_move(items: str, moved: str) -> None:
    """Nothing else does, and a call without an output moves nothing."""
    assert move_messages_after_outputs(history(items)) == history(moved)
    assert move_messages_after_outputs(history(moved)) == history(moved)


_ITEMS = st.lists(
    st.sampled_from([*history("user reasoning answer A a B b c"), call("c")]),
    max_size=12,
)


@given(items=_ITEMS)
def test_history_without_orphans_is_valid(items: list[Item]) -> None:
    kept = drop_orphans(items)
    assert drop_orphans(kept) == kept
    calls = {item["call_id"] for item in kept if is_call(item)}
    assert calls == {item["call_id"] for item in kept if is_call_output(item)}
    following: list[Any] = [*kept, USER][1:]
    for item, next_item in zip(kept, following, strict=True):
        if is_reasoning(item):
            assert is_reasoning(next_item) or next_item is ANSWER or is_call(next_item)


class _Asked(set[str]):
    """Ids that count how often they are searched."""

    count = 0

    def __contains__(self, value: object) -> bool:
        self.count += 1
        return super().__contains__(value)


def test_calls_of_one_id_are_numbered_without_counting() -> None:
    """Bedrock numbers the calls of each response anew, and a chat may have thousands."""
    taken = _Asked()
    numbered: list[str] = []
    for _ in range(4000):
        own_id = distinct_id("call", taken)
        taken.add(own_id)
        numbered.append(own_id)
    assert numbered == ["call", *(f"call_{number}" for number in range(2, 4001))]
    assert taken.count < 4000 * 30


FOUND: Item = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "rain"},
}
FILES: Item = {"type": "file_search_call", "queries": ["rain"], "status": "completed"}


def action(**fields: Any) -> Item:
    return {**FOUND, "action": fields}


@pytest.mark.parametrize(
    ("item", "goes_back"),
    [
        ({**FOUND, "status": "failed"}, True),
        ({**FILES, "status": "failed"}, True),
        ({**FOUND, "status": "searching"}, False),
        ({**FOUND, "status": "in_progress"}, False),
        ({**FOUND, "status": "incomplete"}, False),
        ({**FOUND, "action": "search"}, False),
        (action(type="find", pattern="x"), False),
    ],
)
def test_only_a_search_that_is_over_goes_back(item: Item, goes_back: bool) -> None:
    """One that failed, too: the model knows that it did. One of an older form does not."""
    assert is_hosted(item)
    assert is_returnable_hosted(item) is goes_back


LIST: Item = {"type": "mcp_list_tools", "server_label": "clocks", "tools": []}
MADE: Item = {
    "type": "mcp_call",
    "server_label": "clocks",
    "name": "now",
    "arguments": "{}",
}
ASKED = "id server_label name arguments"
NEEDED = {
    "web_search_call": "action",
    "file_search_call": "queries",
    "mcp_list_tools": "server_label tools",
    "mcp_call": "server_label name arguments",
    "mcp_approval_request": ASKED,
    "mcp_approval_response": "approval_request_id approve",
    "code_interpreter_call": "container_id",
}


@pytest.mark.parametrize("kind", NEEDED)
def test_item_without_a_field_that_the_api_wants_does_not_go_back(kind: str) -> None:
    """The API would refuse the whole request."""
    item = {"type": kind, **{name: {"type": "search"} for name in NEEDED[kind].split()}}

    assert is_returnable_hosted(item)
    for needed in NEEDED[kind].split():
        assert not is_returnable_hosted({**item, needed: None}), needed


APPROVAL = {"type": "mcp_approval_request", **dict.fromkeys(ASKED.split(), "x")}


IMAGE: Item = {"type": "image_generation_call", "result": "iVBORw0KGgo="}
OURS = [True, False]
"""Whether the reader is of the family, server and account that made an item."""


@pytest.mark.parametrize(
    ("item", "same_run", "later"),
    [
        (FOUND, True, OURS),
        (FILES, True, OURS),
        (LIST, True, OURS),
        ({**LIST, "error": "no answer"}, False, []),
        (APPROVAL, True, []),
        (IMAGE, False, OURS),
        ({**IMAGE, "result": None}, False, []),
        (REASONING, False, [True]),
        ({**REASONING, "encrypted_content": ""}, False, []),
        ({"type": "compaction", "encrypted_content": "x"}, False, [True]),
        ({"type": "configuration_update", "reasoning": {}}, False, [True]),
        (ANSWER, False, OURS),
        ({"type": "message", "content": []}, False, OURS),
        ({**ANSWER, "role": "user"}, False, []),
        ({"type": "function_call", "call_id": "1", "name": "f"}, False, OURS),
        ({"type": "surprise"}, False, []),
        ({}, False, []),
        # The model knows that its call failed.
        ({**MADE, "error": "no answer"}, True, OURS),
    ],
)
def test_who_gets_an_item_back(item: Item, same_run: bool, later: list[bool]) -> None:
    """Only its maker can decrypt it; a type that is not known goes to no one."""
    assert is_returnable_hosted(item) is same_run
    assert [ours for ours in OURS if is_replayed(item, is_ours=ours)] == later
    assert is_kept_hosted(item) is (same_run and later == OURS)


def test_calls_go_with_the_reasoning_that_led_to_them() -> None:
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "1", "output": ""}
    question = {"role": "user", "content": "Hi"}
    items = [question, REASONING, REASONING, call, output]
    items += [REASONING, ANSWER, REASONING, FOUND]

    assert drop_tool_items([*items, REASONING]) == [question, REASONING, ANSWER]
    assert drop_tool_items([REASONING, ANSWER]) == [REASONING, ANSWER]
    assert drop_tool_items([call, output]) == []


def test_remarks_are_messages_about_the_work() -> None:
    assert is_commentary({**ANSWER, "phase": "commentary"})
    assert not is_commentary({**ANSWER, "phase": "final_answer"})
    assert not is_commentary({"type": "reasoning", "phase": "commentary"})


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"outputs": [{"type": "logs", "logs": "a\n"}, {"logs": "b"}]}, "a\nb"),
        ({"outputs": [{"type": "image", "url": "x"}, {"logs": None}]}, ""),
        ({"outputs": None}, ""),
        ({"status": "failed", "outputs": [{"logs": "a"}]}, "failed"),
        ({"status": "incomplete"}, "failed"),
    ],
)
def test_what_code_printed(fields: Item, text: str) -> None:
    """Of code that was ended early no one knows all of it."""
    failed = "The code did not run to its end."
    assert code_output(fields) == (failed if text == "failed" else text)


@pytest.mark.parametrize(
    ("item", "queries"),
    [
        (FILES, ["rain"]),
        (FOUND, ["rain"]),
        (action(type="search", query="a", queries=["a", "b"]), ["a", "b"]),
        (action(type="search", query=None, queries=None), []),
        (action(type="search", query="a", queries=["", 7]), ["a"]),
        (action(type="open_page", url="https://a.example"), []),
        ({"type": "file_search_call", "queries": "rain"}, []),
        ({"type": "web_search_call"}, []),
    ],
)
def test_queries_of_both_kinds_of_search(item: Item, queries: list[str]) -> None:
    assert search_queries(item) == queries


def test_pages_come_once() -> None:
    script = {"url": "javascript:alert(1)"}
    sources = [{"url": "https://a.example"}, {"url": None}, "x", {}, script]

    item = action(type="search", sources=[*sources, sources[0]])

    assert search_pages(item) == ["https://a.example"]
    assert search_pages(FOUND) == search_pages({}) == []


def test_answers_cite_what_a_search_found() -> None:
    """On the web and in files; no other tool has results to cite."""
    kinds = ["web_search", "file_search", "function", "mcp", "code_interpreter"]
    cited = [tool_kind({"type": kind}).is_cited for kind in kinds]
    assert cited == [True, True, False, False, False]


DRAWN: Item = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "result": "AAAA",
    "output_format": "png",
}


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ({}, "data:image/png;base64,AAAA"),
        ({"output_format": "webp"}, "data:image/webp;base64,AAAA"),
        ({"output_format": None}, "data:image/png;base64,AAAA"),
        ({"output_format": "svg"}, "data:image/svg+xml;base64,AAAA"),
        ({"result": "data:image/webp;base64,AA"}, "data:image/webp;base64,AA"),
        ({"result": "DATA:image/JPG;x=1;base64,AA"}, "DATA:image/JPG;x=1;base64,AA"),
        ({"result": "https://x.example/1?a=b"}, "https://x.example/1?a=b"),
        ({"result": f"https://x.example/{'a' * 5000}"}, ""),
        ({"result": "https://x.example/a b"}, ""),
        ({"result": "file:///etc/passwd"}, ""),
        ({"result": "data:text/html;base64,AA"}, ""),
        ({"result": {"url": "https://x.example"}}, ""),
        ({"result": None}, ""),
    ],
)
def test_address_that_holds_a_picture(given: dict[str, Any], url: str) -> None:
    """Labeled with its format; without one it is the API's usual."""
    assert image_url({**DRAWN, **given}) == url
    assert image_format({**DRAWN, **given}) in ("jpeg", "png", "svg", "webp")


@pytest.mark.parametrize(
    ("given", "is_readable"),
    [
        ({"result": None}, False),
        ({"output_format": "svg"}, False),
        ({"result": "data:image/svg+xml;base64,AAAA"}, False),
        ({"result": "data:image/gif;base64,AAAA"}, False),
        ({"result": "file:///etc/passwd"}, False),
        ({"type": "message"}, False),
        # The label is right, and `output_format` may not be.
        ({"result": "data:image/jpg;base64,AAAA", "output_format": "svg"}, True),
        ({"result": "data:image/jpeg;base64,AAAA", "output_format": "svg"}, True),
        ({"result": "https://x.example/1"}, True),
        ({"result": "AAAA"}, True),
        ({"result": "data:image/PNG;base64,AAAA", "output_format": "svg"}, True),
    ],
)
def test_picture_that_the_model_can_read(
    given: dict[str, Any], is_readable: bool
) -> None:
    assert has_image({**DRAWN, **given}) is is_readable


def test_picture_goes_back_at_its_place() -> None:
    output = [reasoning("1"), DRAWN, message("1", "There.")]

    items = replay_output(output, with_reasoning=True)

    assert [item["type"] for item in items] == ["reasoning", "message", "message"]
    url = "data:image/png;base64,AAAA"
    part = {"type": "input_image", "detail": "auto", "image_url": url}
    assert items[1] == {"type": "message", "role": "user", "content": [part]}


def test_pictures_that_code_made_do_not_go_back() -> None:
    """They are for people, and large; what was printed stays."""
    logs = {"type": "logs", "logs": "1\n"}
    picture = {"type": "image", "url": "data:image/png;base64,AAAA"}
    ran = {"type": "code_interpreter_call", "status": "completed", "id": "ci_1"}
    code = {**ran, "code": "x", "container_id": "c", "outputs": [logs, picture]}

    (back,) = replay_output([code], with_reasoning=True)

    assert back["outputs"] == [logs]


def test_a_text_of_another_kind_takes_no_parts_place() -> None:
    """Some servers number texts and refusals each from 0 on."""
    said = {**ANSWER, "content": [text_part("text", "Yes.")]}
    both = with_texts(said, {("text", 0): "Yes, but", ("refusal", 0): "No."})
    parts = [text_part("text", "Yes, but"), text_part("refusal", "No.")]
    assert both == {**said, "content": parts}
