"""What a stranger writes into a request names nothing in its refusal.

The API quotes what it refuses. Each text of a request here holds a path of the request
itself, and each form of refusal quotes it; no guard and no other user's request changes.
"""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote as percent_encoded

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from measures.work_count import count_work
from openai_responses.errors import ApiError, Failure, read_api_error
from openai_responses.loop.tried_repairs import repairs_that_helped
from openai_responses.repairs.finding import TriedRepair, find_repair
from openai_responses.repairs.memory import RepairMemory, RepairScope
from openai_responses.repairs.refusal import Refusal, SentRequest
from openai_responses.repairs.request_repairs import (
    PlainSchemas,
    repair_request,
    sent_request,
)
from runs.sample import without

Json = dict[str, Any]

CLOCKS: Json = {
    "type": "mcp",
    "server_label": "clocks",
    "server_url": "https://clocks.example",
    "authorization": "administrators-token",
    "allowed_tools": ["read"],
    "require_approval": "always",
}
WEB: Json = {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}
LOOK: Json = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
GUARDS: Json = {
    "store": False,
    "safety_identifier": "user-digest",
    "max_output_tokens": 1000,
    "max_tool_calls": 5,
    "instructions": "Be kind.",
    "moderation": {"model": "m"},
    "prompt_cache_retention": "in_memory",
}
COMFORT: Json = {
    "model": "m",
    "stream": True,
    "include": ["reasoning.encrypted_content"],
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"verbosity": "low"},
    "prompt_cache_key": "k",
    "tool_choice": "auto",
}


def message(*parts: Json) -> Json:
    return {"type": "message", "role": "user", "content": list(parts)}


def build_body(word: str, location: str) -> Json:
    """Return a request into which a user wrote `word` at a `location`."""
    picture = {"type": "input_image", "image_url": "https://x.example", "detail": "low"}
    text = {"type": "input_text", "text": "Hi"}
    function: Json = copy.deepcopy(LOOK)
    output = {"type": "function_call_output", "call_id": "call_1", "output": "sun"}
    called: Json = {
        "type": "function_call",
        "call_id": "call_1",
        "name": "look",
        "arguments": "{}",
    }
    body = {**COMFORT, **GUARDS}
    match location:
        case "text":
            text["text"] = f"See {word} and more"
        case "address":
            picture["image_url"] = f"https://x.example/{word}"
        case "encoded address":
            picture["image_url"] = f"https://x.example/{percent_encoded(word, '')}"
        case "detail":
            picture["detail"] = word
        case "key of a schema":
            function["parameters"]["properties"][word] = {"type": "string"}
        case "description":
            function["description"] = word
        case "arguments":
            called["arguments"] = json.dumps({"city": word})
        case "output":
            output["output"] = word
        case "format":
            schema = {"type": "object", "properties": {word: {"type": "array"}}}
            form = {"type": "json_schema", "name": "x", "schema": schema}
            body["text"] = {"verbosity": "low", "format": form}
    items = [message(text, picture), called, output, message(text)]
    return {**body, "input": items, "tools": [CLOCKS, WEB, function]}


PLACES = (
    *("text", "address", "encoded address", "detail", "key of a schema"),
    *("description", "arguments", "output", "format"),
)


def paths_of(value: object, path: str = "") -> Iterator[str]:
    """Yield every path of a request in the API's own form."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from paths_of(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from paths_of(inner, f"{path}[{number}]")
    if path:
        yield path


PATHS = sorted(set(paths_of(build_body("x", "text"))))


def forged_body(path: str) -> str:
    """Return the body of an error that a server could have sent."""
    code = "unknown_parameter"
    error = {"message": "Unknown parameter.", "code": code, "param": path}
    return json.dumps({"error": error})


WRITTEN: dict[str, Callable[[str], str]] = {
    "the path": str,
    "the path and more": "{} 'text' x".format,
    "quoted": "x '{}' y".format,
    "behind a quote": "x '{}".format,
    "a sentence": "Unknown parameter: '{}'.".format,
    "a tool": "Hosted tool '{}' is not supported".format,
    "a body": forged_body,
    "a printed body": lambda path: str(json.loads(forged_body(path))),
    "a loc": "'loc': ('body', '{}')".format,
}
QUOTED: dict[str, Callable[[str], str]] = {
    "as it is": "'{}'".format,
    "with other quotes": '"{}"'.format,
    "bare": str,
    "as Python writes it": repr,
    "as JSON": json.dumps,
    "as JSON in JSON": lambda word: json.dumps(json.dumps(word)),
    "in a list": lambda word: repr([word]),
}
TEMPLATES = (
    "Invalid value: {}. Supported values are: 'low', 'high', and 'auto'.",
    "Unknown parameter: {}.",
    "Failed to download the picture from {}",
    "Invalid schema: {} is not valid.",
    "{}",
    "Error in the text.{}[0]",
)


def refusals_of(words: str) -> Iterator[ApiError]:
    """Yield the forms in which a server can say these words."""
    error = {"message": words, "param": None, "code": "unknown_parameter"}
    yield read_api_error({"error": error})
    yield read_api_error({"error": {**error, "param": "input"}})
    yield read_api_error({"error": {**error, "param": f"text.{words[:40]}"}})
    inner = json.dumps({"error": error}, indent=1)
    relayed = f"litellm.BadRequestError: OpenAIException - {inner}. Group=x"
    yield read_api_error({"error": {"message": relayed, "param": None}})
    printed = f"Error code: 400 - { {'error': error} }"
    yield read_api_error({"error": {"message": printed, "param": None}})
    raw = {"message": "Provider returned error", "metadata": {"raw": inner}}
    yield read_api_error({"error": raw})
    yield read_api_error({"detail": words})


def tried_repairs(
    sent: SentRequest, error: ApiError
) -> Iterator[tuple[TriedRepair, Json]]:
    """Yield each repair of a refusal that stays, and the request that it makes."""
    repairs: list[Any] = []
    for done in range(6):
        now = sent_request(copy.deepcopy(sent.payload), repairs)
        tried = find_repair(now, Failure(400, error), done)
        if tried is None:
            return
        repairs.append(tried.repair)
        yield tried, sent_request(copy.deepcopy(sent.payload), repairs).payload


def assert_guarded(sent: SentRequest, error: ApiError) -> None:
    """No repair of this refusal changes a guard, nor a request of anybody else."""
    memory = RepairMemory()
    all_tried = []
    for tried, after in tried_repairs(sent, error):
        all_tried.append(tried)
        assert {key: after.get(key) for key in GUARDS} == GUARDS
        assert all(tool in sent.payload["tools"] for tool in after.get("tools", ()))
        assert after["model"] == "m"
    for tried in repairs_that_helped(all_tried):
        memory.learn(RepairScope("account", "m", "user-1"), tried, lambda: True)
    assert memory.repairs(RepairScope("account", "m", "user-2")) == ()


def cut(text: str, begin: int, end: int) -> str:
    """Return a text without so many characters at its ends, or its first one."""
    return text[begin : len(text) - end] or text[:1]


@settings(max_examples=40)
@given(
    form=st.sampled_from(sorted(WRITTEN)),
    path=st.sampled_from(PATHS),
    location=st.sampled_from(PLACES),
    quoted=st.sampled_from(sorted(QUOTED)),
    template=st.sampled_from(TEMPLATES),
    lost=st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_quoted_user_text_repairs_no_guard_and_no_other_user(
    form: str,
    path: str,
    location: str,
    quoted: str,
    template: str,
    lost: tuple[int, int],
) -> None:
    """Whole, cut off at either end, escaped, in a gateway's words."""
    shown = text = WRITTEN[form](path)
    sent = sent_request(build_body(text, location), ())
    if location.endswith("address"):
        shown = f"https://x.example/{text}"
    for piece in (shown, cut(shown, lost[0], 0), cut(shown, 0, lost[1])):
        words = template.format(QUOTED[quoted](piece))
        for error in refusals_of(words):
            assert Refusal(error, sent).place is None
            assert_guarded(sent, error)


def test_servers_own_words_are_believed_beside_foreign_ones() -> None:
    """A user who writes about one place hides no other place."""
    sent = sent_request(build_body("tools[0].allowed_tools", "text"), ())
    words = "Invalid 'input[1].arguments': see 'tools[0].allowed_tools'."
    location = Refusal(ApiError(message=words), sent).place
    assert location is not None
    assert (location.list_name, location.number) == ("input", 1)


@pytest.mark.parametrize(
    "key", ["tools", "x tools", "x 'tools", "x 'tools[", "x 'tools[0", "/tools"]
)
def test_path_that_the_server_completes_is_not_believed(key: str) -> None:
    """It writes dots in front of a key, and numbers after it."""
    sent = sent_request(build_body(key, "format"), ())
    rest = key.rpartition("tools")[2]
    number = "[0]"[len(rest) :]
    words = f"Invalid type for 'text.format.schema.properties.{key}{number}': no."
    for error in refusals_of(words):
        assert Refusal(error, sent).place is None
        assert_guarded(sent, error)


@pytest.mark.parametrize("text", ["function 'look", "Unknown parameter: 'reasoning"])
def test_quotation_that_the_server_closes_is_not_believed(text: str) -> None:
    refusal = Refusal(
        ApiError(message=f"Bad text: {text}'."),
        sent_request(build_body(text, "text"), ()),
    )
    assert (list(refusal.tools), refusal.parameter) == ([], "")


@pytest.mark.parametrize(
    "code", ["unknown_parameter", "invalid_value", "unsupported_value"]
)
@pytest.mark.parametrize(
    "wording", ["Unknown parameter: '{}'.", "Invalid value. See '{}'."]
)
def test_no_param_repairs_a_guard(code: str, wording: str) -> None:
    """Even where the server names it: the refusal stays, or all of a tool goes.

    A function may get a simpler schema; its arguments are checked against its own.
    """
    sent = sent_request(build_body("x", "text"), ())
    simpler = repair_request(sent.payload, [PlainSchemas()])["tools"]
    offered = [without(tool, "strict") for tool in sent.payload["tools"] + simpler]
    for path in PATHS:
        error = ApiError(code, None, path, wording.format(path))
        for _, after in tried_repairs(sent, error):
            assert {key: after.get(key) for key in GUARDS} == GUARDS, path
            left = [without(tool, "strict") for tool in after.get("tools", ())]
            assert all(tool in offered for tool in left), path


@pytest.mark.parametrize(
    "form", ["'tools[{}]' ", "Unknown parameter: {} ", "function 'look{}' "]
)
def test_many_names_in_a_message_are_not_all_compared(form: str) -> None:
    """However many there are, a few are looked for in the request."""
    words = "".join(form.format(number) for number in range(20_000))
    for written in ("x", words):  # which names all of them, too
        sent = sent_request(build_body(written, "format"), ())

        def read(sent: SentRequest = sent) -> None:
            refusal = Refusal(ApiError(message=words), sent)
            assert refusal.place is None or refusal.place.number < 3
            assert len(list(refusal.tools)) <= 3

        assert count_work(read) < 5_000


def test_request_that_is_too_large_to_be_compared_is_not_believed() -> None:
    """It could have said anything."""
    body = build_body("x", "text")
    body["input"][0]["content"] *= 150_000
    sent = sent_request(body, ())
    assert Refusal(ApiError(message="Invalid 'tools[0]'."), sent).place is None
