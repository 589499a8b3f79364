"""Parameters in, one payload out: each rule of what is sent, and of what is not."""

import json
from typing import Any, get_type_hints

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from openai.types.responses import ResponseCreateParams
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)

from openai_responses.errors import InvalidParameter, InvalidRequest
from openai_responses.items import Item
from openai_responses.models.resolve import resolve_model
from openai_responses.repairs.chat_repairs import LeaveOutReasoning
from openai_responses.repairs.request_repairs import AskForStream
from openai_responses.requests.build import (
    ResponsesRequest,
    Settings,
    build_request,
    is_api_parameter,
    strict_payload,
    unsent_parameters,
    with_json_arguments,
)

ITEMS: list[Item] = [{"role": "user", "content": "Hi"}]
CANARY = "sk-proj-CANARY123"

THINKING = "gpt-5"  # minimal to high, never takes sampling parameters
CHOOSING = "gpt-5.1"  # none to high, none by default, takes them with none
DEEP = "gpt-5.6-sol"  # none to max, medium by default, takes them with none
PLAIN = "gpt-4o"  # no reasoning, always takes them
CODEX = "gpt-5.3-codex"  # reasons, knows no verbosity
UNKNOWN = "my-azure-deployment"


def payload(
    model: str = DEEP, settings: Settings | None = None, /, **body: Any
) -> dict[str, Any]:
    resolved = resolve_model(model)
    built = build_request(resolved, "", ITEMS, body, settings or Settings())
    return built.payload()


def test_bare_request_stores_nothing_and_asks_for_reasoning() -> None:
    assert payload() == {
        "model": DEEP,
        "input": ITEMS,
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"context": "all_turns"},
    }


def test_settings_are_sent_in_the_words_of_the_api() -> None:
    tool = {"type": "function", "name": "f", "parameters": None, "strict": False}
    settings = Settings("high", "detailed", "low", stream=False, tools=(tool,))
    built = build_request(resolve_model(DEEP), "Be brief.", ITEMS, {}, settings)
    assert built.payload() == {
        "model": DEEP,
        "input": ITEMS,
        "instructions": "Be brief.",
        "stream": False,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "high", "summary": "detailed", "context": "all_turns"},
        "text": {"verbosity": "low"},
        "tools": [tool],
    }


def test_chat_without_a_message_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no message to answer"):
        build_request(resolve_model(DEEP), "Be brief.", [], {}, Settings())


def test_fields_are_parameters_of_the_api() -> None:
    ours = {"repairs", "cache_control"}  # the latter is OpenRouter's
    assert set(ResponsesRequest.model_fields) - ours <= api_parameters()


def api_parameters() -> set[str]:
    """Return the names of all parameters that the openai package knows."""
    assert ResponseCreateParams == (
        ResponseCreateParamsNonStreaming | ResponseCreateParamsStreaming
    )
    return set(get_type_hints(ResponseCreateParamsStreaming))


@pytest.mark.parametrize(
    "body",
    [
        {"max_tokens": 50},
        {"max_output_tokens": 50, "max_tokens": 60, "max_completion_tokens": 70},
        {"max_tokens": None, "max_completion_tokens": 50},
        {"max_output_tokens": "50"},
    ],
)
def test_limits_of_length_become_max_output_tokens(body: dict[str, Any]) -> None:
    """The API's own name wins, then the older one of Chat Completions."""
    sent = payload(**body)
    assert sent["max_output_tokens"] == 50
    assert not {"max_tokens", "max_completion_tokens"} & set(sent)


def test_null_and_what_is_invalid_mean_not_given() -> None:
    """Also inside objects; the user's choice or the default counts then."""
    body: dict[str, Any] = {
        **dict.fromkeys(("temperature", "max_tokens", "metadata", "stop")),
        "reasoning": {"effort": None, "summary": None, "context": "auto"},
        "text": {"verbosity": None, "format": None},
    }
    before = json.dumps(body)
    assert payload(**body) == {**payload(), "reasoning": {"context": "auto"}}
    assert json.dumps(body) == before

    settings = Settings(verbosity="high", defaults={"service_tier": "flex"})
    sent = payload(DEEP, settings, text={"verbosity": None}, service_tier="gold")
    assert (sent["text"], sent["service_tier"]) == ({"verbosity": "high"}, "flex")
    assert payload(DEEP, settings, service_tier="auto")["service_tier"] == "auto"


@pytest.mark.parametrize(
    ("model", "effort", "taken"),
    [
        (PLAIN, None, True),
        (CHOOSING, None, True),
        (CHOOSING, "none", True),
        (DEEP, None, False),
        (DEEP, "none", True),
        (THINKING, None, False),
        (THINKING, "high", False),
        ("gpt-5.6-sol-none", None, True),
    ],
)
def test_sampling_is_sent_only_with_an_effort_that_allows_it(
    model: str, effort: str | None, taken: bool
) -> None:
    asked: dict[str, Any] = {"temperature": 0.5, "top_p": 0.9, "top_logprobs": 2}
    sent = payload(model, reasoning_effort=effort, **asked)
    assert {k: v for k, v in sent.items() if k in asked} == (asked if taken else {})


@pytest.mark.parametrize(
    ("alias", "setting", "body", "effort"),
    [
        ("gpt-5.6-sol-high", None, {}, "high"),
        ("gpt-5.6-sol-high", "low", {"reasoning_effort": "medium"}, "medium"),
        (DEEP, "low", {"reasoning": {"effort": "max"}}, "max"),
        (
            DEEP,
            None,
            {"reasoning": {"effort": "max"}, "reasoning_effort": "low"},
            "max",
        ),
        (DEEP, "low", {"reasoning_effort": ""}, "low"),
        (DEEP, "low", {"reasoning_effort": " High "}, "high"),
        (THINKING, None, {"reasoning_effort": "none"}, None),
        (PLAIN, None, {"reasoning_effort": "high"}, None),
        (THINKING, None, {"reasoning_effort": "max"}, "high"),
        (CHOOSING, "max", {}, "high"),
        (DEEP, "max", {}, "max"),
        (UNKNOWN, "max", {}, "max"),
    ],
)
def test_effort_of_the_caller_wins_over_setting_and_alias(
    alias: str, setting: str | None, body: dict[str, Any], effort: str | None
) -> None:
    """One that the model lacks is not sent; `max` is the highest that is known of it."""
    sent = payload(alias, Settings(setting), **body)
    assert sent.get("reasoning", {}).get("effort") == effort
    assert sent["model"] == resolve_model(alias).id


def test_effort_of_a_model_that_nobody_knows() -> None:
    settings = Settings(summary="auto", verbosity="low")
    assert set(payload(UNKNOWN, settings)) == {"model", "input", "stream", "store"}
    sent = payload(UNKNOWN, settings, reasoning_effort="high")
    assert sent["reasoning"] == {"effort": "high"}
    assert sent["include"] == ["reasoning.encrypted_content"]


ALL = {"context": "all_turns"}


SUMMARY = Settings(summary="auto")
UNSEALED = Settings(encrypted_reasoning=False)
OWN = {"context": "current_turn", "mode": "standard"}
NULLS = {"effort": None, "summary": None}


@pytest.mark.parametrize(
    ("model", "settings", "own", "reasoning"),
    [
        (DEEP, SUMMARY, {}, {"summary": "auto", **ALL}),
        (CHOOSING, SUMMARY, {}, None),  # does not think by itself
        (CHOOSING, Settings("low", "auto"), {}, {"effort": "low", "summary": "auto"}),
        (PLAIN, SUMMARY, {}, None),  # never thinks
        ("gpt-6.1-sol", UNSEALED, {}, None),  # no context for what is not carried
        ("gpt-5.2", Settings(), {}, None),  # no context before 5.4
        ("gpt-6.1-sol-pro", Settings(), {}, {"mode": "pro", **ALL}),
        ("gpt-5.6-sol-pro-none", UNSEALED, {}, {"effort": "none", "mode": "pro"}),
        ("gpt-6.1-sol-pro", Settings(), OWN, OWN),
        (
            *(DEEP, Settings("low", "auto"), NULLS),
            {"effort": "low", "summary": "auto", **ALL},
        ),
    ],
)
def test_reasoning_has_what_the_model_takes(
    model: str,
    settings: Settings,
    own: dict[str, Any],
    reasoning: dict[str, str] | None,
) -> None:
    """The caller's own words win; a summary only where there is something to sum up."""
    sent = payload(model, settings, reasoning=own)
    assert sent.get("reasoning") == reasoning
    assert "include" not in sent or settings is not UNSEALED


@pytest.mark.parametrize(
    ("settings", "body"),
    [
        (Settings(verbosity="low"), {}),
        (Settings(), {"verbosity": "low"}),
        (Settings(verbosity="high"), {"text": {"verbosity": "low"}}),
        (Settings(verbosity="high"), {"verbosity": "low"}),
    ],
)
def test_verbosity_is_sent_to_models_that_have_it(
    settings: Settings, body: dict[str, Any]
) -> None:
    assert payload(DEEP, settings, **body)["text"] == {"verbosity": "low"}
    assert "text" not in payload(CODEX, settings, **body)
    assert "text" not in payload(PLAIN, settings, **body)


@pytest.mark.parametrize(
    "key", ["messages", "seed", "store", "background", "previous_response_id", "tools"]
)
def test_keys_that_are_not_the_callers(key: str) -> None:
    """What the API does not have, or what we decide, is not taken from a caller."""
    body: dict[str, Any] = {key: "x"}
    assert payload(DEEP, None, **body) == payload()


@pytest.mark.parametrize("stop", ["END", ["END"], []])
def test_stop_only_sets_truncation(stop: object) -> None:
    assert payload(stop=stop) == {**payload(), "truncation": "disabled"}
    assert payload(stop=stop, truncation="auto")["truncation"] == "auto"


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        ("max_tokens", CANARY, "max_output_tokens"),
        ("max_tokens", 0, "max_output_tokens"),
        ("max_tool_calls", {"a": CANARY}, "max_tool_calls"),
        ("metadata", {str(n): CANARY for n in range(17)}, "metadata"),
        ("metadata", {"a": "x" * 513}, "metadata"),
        ("tool_choice", 7, "tool_choice"),
        ("truncation", "start", "truncation"),
        ("service_tier", "gold", "service_tier"),
        ("prompt_cache_retention", "forever", "prompt_cache_retention"),
        ("safety_identifier", "x" * 129, "safety_identifier"),
        ("temperature", float("nan"), "temperature"),
        ("temperature", 99, "temperature"),
        ("temperature", -0.1, "temperature"),
        ("top_p", 7, "top_p"),
        ("context_management", [CANARY], "context_management"),
        ("parallel_tool_calls", "yes", "parallel_tool_calls"),
    ],
)
def test_value_that_no_api_takes(key: str, value: object, name: str) -> None:
    body: dict[str, Any] = {"reasoning_effort": "none", key: value}
    model = resolve_model(DEEP)
    built = build_request(model, "", ITEMS, body, Settings())
    assert built.payload() == payload(DEEP, None, reasoning_effort="none")
    _, (message,) = unsent_parameters(body, built)
    assert message.startswith(f"The setting {name} cannot be sent: ")
    assert message.endswith(".")
    assert "CANARY" not in message
    assert "pydantic" not in message


@pytest.mark.parametrize("key", ["moderation", "context_management", "reasoning"])
def test_value_of_too_many_levels(key: str) -> None:
    """It is left out, because recursive code fails with it."""
    value: Any = {}
    for _ in range(2_000):
        value = [value]
    body = {key: value if key == "context_management" else {"context": value}}
    built = build_request(resolve_model(DEEP), "", ITEMS, body, Settings())
    assert built.payload() == payload(DEEP, None)
    _, messages = unsent_parameters(body, built)
    assert messages == [f"The setting {key} cannot be sent: it has too many levels."]


def test_choice_that_is_sent_in_another_form_is_not_missing() -> None:
    """Ollama's clients name a tool alone."""
    choice = {"type": "function", "name": "look"}
    settings = Settings(tools=[{**choice, "parameters": {}}])
    asked = {"tool_choice": choice}
    built = build_request(resolve_model(DEEP), "", ITEMS, asked, settings)
    assert unsent_parameters({"tool_choice": "look"}, built) == ([], [])


@pytest.mark.parametrize(
    ("model", "asked", "sent"),
    [
        (DEEP, 1, 16),
        (DEEP, 500, 500),
        (DEEP, "5", 16),
        (DEEP, 10**12, 128_000),
        (PLAIN, 128_000, 16_384),
        (UNKNOWN, 10**6, 128_000),
    ],
)
def test_length_that_the_model_has(model: str, asked: object, sent: int) -> None:
    assert payload(model, max_tokens=asked)["max_output_tokens"] == sent
    settings = Settings(defaults={"max_output_tokens": asked})
    built = build_request(resolve_model(model), "", ITEMS, {}, settings)
    assert built.max_output_tokens == sent
    _, notes = unsent_parameters({"max_tokens": asked}, built)
    assert bool(notes) == (str(asked) != str(sent))


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2)
    | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)
_NAMES = st.sampled_from(
    sorted(
        set(get_type_hints(ResponseCreateParamsStreaming))
        | {"max_tokens", "max_completion_tokens", "stop", "seed", "messages"}
        | {"reasoning_effort", "verbosity", "response_format", "chat_id"}
    )
)
_MODELS = st.sampled_from([THINKING, CHOOSING, DEEP, PLAIN, CODEX, UNKNOWN])


@given(
    model=_MODELS,
    body=st.dictionaries(_NAMES | st.text(max_size=10), _VALUES, max_size=6),
    effort=st.none() | st.sampled_from(["none", "high"]),
)
@example(model=DEEP, body={"temperature": 10**400}, effort="none")
@example(model=DEEP, body={"temperature": float("nan")}, effort="none")
@example(model=DEEP, body={"reasoning": {"effort": {}}}, effort=None)
def test_any_body_makes_a_payload_of_the_api(
    model: str, body: dict[str, Any], effort: str | None
) -> None:
    """Whatever a caller sends, what goes out has the API's keys and no nulls.

    Only a format of the answer that does not exist is refused.
    """
    settings = Settings(effort, "auto", "low")
    try:
        built = build_request(resolve_model(model), "", ITEMS, body, settings)
    except InvalidParameter as error:
        is_about_the_format = error.param in ("response_format", "text.format")
        if not is_about_the_format:
            raise
        return
    sent = built.payload()
    assert set(sent) <= api_parameters()
    assert None not in sent.values()
    assert None not in sent.get("reasoning", {}).values()
    assert None not in sent.get("text", {}).values()
    assert (sent["store"], sent["input"]) == (False, ITEMS)


def test_tools_that_minimal_refuses_are_left_out() -> None:
    kinds = ["web_search", "function", "file_search", "image_generation", "mcp"]
    tools = tuple({"type": kind} for kind in kinds)

    at_minimal = payload(THINKING, Settings("minimal", tools=tools))
    assert [t["type"] for t in at_minimal["tools"]] == ["function", "mcp"]
    assert at_minimal["include"] == ["reasoning.encrypted_content"]
    for effort in ("low", None):
        assert payload(THINKING, Settings(effort, tools=tools))["tools"] == [*tools]


def test_sources_are_included_when_search_is_offered() -> None:
    tools = ({"type": "function"}, {"type": "web_search"})

    included = payload(PLAIN, Settings(tools=tools))["include"]
    assert included == ["web_search_call.action.sources"]
    assert "include" not in payload(PLAIN)


def with_unknown_keys(value: Any) -> Any:
    """Return a value in which each object has a key that the API lacks."""
    if isinstance(value, list):
        return [with_unknown_keys(row) for row in value]
    if isinstance(value, dict):
        changed = {key: with_unknown_keys(value[key]) for key in value}
        return {**changed, "tools[0].allowed_tools 'text' x": 1}
    return value


def test_keys_that_the_api_does_not_have_never_leave() -> None:
    """The API would quote them in its refusal, whose words are read."""
    known: dict[str, Any] = {
        "text": {"verbosity": "low"},
        "reasoning": {"mode": "pro", "context": "auto"},
        "image": {"context_compression": "auto"},
        "prompt_cache_options": {
            **{"comparison_response_id": "r", "mode": "implicit"},
            **{"prewarm": False, "ttl": "30m"},
        },
        "access_programs": {"cyber": "standard"},
        "cache_control": {"type": "ephemeral", "ttl": "1h"},
        "context_management": [{"type": "compaction", "compact_threshold": 1_000}],
        "moderation": {
            "model": "m",
            "policy": {"input": {"mode": "block"}, "output": {"mode": "score"}},
        },
        "tool_choice": {
            "type": "allowed_tools",
            "mode": "auto",
            "tools": [{"type": "function", "name": "f"}],
        },
    }
    body = {name: with_unknown_keys(value) for name, value in known.items()}

    sent = payload(**body)

    assert {name: sent[name] for name in known} == known


WINDOW = {"completion_window": "24h"}
WAITS = {"background_options": WINDOW, "stream": False}
SOON = {"background_options": None, "stream": True}


@pytest.mark.parametrize(
    ("settings", "body", "sent"),
    [
        ({}, {}, {"background": True, "store": True, **SOON}),
        ({"background_store": None}, {}, {"background": True, "store": None, **SOON}),
        (WINDOW, {}, WAITS),
        (WINDOW, {"service_tier": "default"}, WAITS),
        (WINDOW, {"service_tier": "flex"}, SOON),
        (
            {"background": False, **WINDOW},
            {},
            {"background": None, "store": False, **SOON},
        ),
    ],
)
def test_background_answers(
    settings: dict[str, Any], body: dict[str, Any], sent: dict[str, Any]
) -> None:
    """One that may take long costs less, at the standard tier alone."""
    built = payload(DEEP, Settings(**{"background": True, **settings}), **body)

    assert {name: built.get(name) for name in sent} == sent


CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
USER = {"type": "message", "role": "user", "content": []}
ANSWER = {
    "type": "message",
    "role": "assistant",
    "phase": "final_answer",
    "content": [{"type": "output_text", "text": "Yes.", "annotations": []}],
}


def test_strict_payload_drops_keys_of_openai_alone() -> None:
    kept: dict[str, Any] = {"model": "m", "input": [], "store": False, "include": ["x"]}
    openais = (
        *("access_programs", "context_management", "image", "moderation"),
        *("prompt_cache_key", "prompt_cache_options", "safety_identifier"),
    )
    assert strict_payload(dict.fromkeys(openais, "x") | kept) == kept


def test_items_get_ids_that_never_change() -> None:
    """The same history is the same bytes on every turn."""
    payload = {"input": [USER, THOUGHT, CALL, ANSWER]}
    user, thought, call, answer = strict_payload(payload)["input"]
    assert user == USER
    assert thought["id"].startswith("rs_")
    assert call["id"].startswith("fc_")
    assert {**call, "id": None} == {**CALL, "id": None}
    assert answer == {"type": "message", "role": "assistant", "content": "Yes."}
    assert strict_payload(payload) == strict_payload(payload)
    assert payload == {"input": [USER, THOUGHT, CALL, ANSWER]}


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ('{"city": "Bern"', {"arguments": '{"city": "Bern"'}),
        ("Zürich", {"arguments": "Zürich"}),
        ("[1]", {"arguments": "[1]"}),
        (" ", {}),
        ('{"city":  "Bern"}', None),
    ],
)
def test_arguments_that_are_no_object(written: str, sent: object) -> None:
    """Their words stay; a call that can be read stays as its bytes."""
    call = {**CALL, "arguments": written}
    custom = {"type": "custom_tool_call", "call_id": "call_2", "input": "{"}

    payload = with_json_arguments({"model": "m", "input": [USER, call, custom]})

    [user, changed, other] = payload["input"]
    assert (payload["model"], user, other) == ("m", USER, custom)
    if sent is None:
        assert changed == call
    else:
        assert json.loads(changed["arguments"]) == sent
        assert {**changed, "arguments": written} == call


def missing(model: str, **asked: Any) -> list[str]:
    """Return what the request for a model does not hold."""
    body = {"model": f"pipe.{model}", "messages": [], "stream": True, **asked}
    request = build_request(resolve_model(model), "", ITEMS, body, Settings())
    return unsent_parameters(body, request)[0]


def test_a_plain_chat_misses_nothing() -> None:
    """Tools are offered under other conditions."""
    told = {"tools": [], "extra_tools": [], "enable_stream": True}
    assert missing("gpt-5.2", **told, stream_options={"include_usage": True}) == []


def test_what_an_item_changes_is_not_missed() -> None:
    """The fields of a request stay those of a chat's first turn."""
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    request = ResponsesRequest(model="m", input=[update])
    assert unsent_parameters({"reasoning_effort": "low"}, request) == ([], [])


def test_parameters_unknown_to_the_api_are_named() -> None:
    asked = {"logit_bias": {"1": 2}, "stop": ["."], "seed": 1, "x" * 99: "secret"}
    assert missing("gpt-5.2", **asked) == ["logit_bias", "seed", "stop", "x" * 40]


@pytest.mark.parametrize(
    ("model", "names"),
    [
        ("gpt-4.1", ["reasoning.effort", "reasoning.summary", "text.verbosity"]),
        ("gpt-6.1-sol", ["temperature", "top_p"]),
        ("gpt-5.2", ["temperature", "top_p"]),
    ],
)
def test_parameters_rejected_by_the_model_are_named(
    model: str, names: list[str]
) -> None:
    asked = {"reasoning_summary": "auto", "verbosity": "low", "temperature": 1}
    more = {"top_p": 1, "max_tokens": 100}
    assert missing(model, reasoning={"effort": "high"}, **asked, **more) == names


def test_parameters_of_the_api_are_known() -> None:
    known = ["temperature", "reasoning", "reasoning.effort"]
    names = [*known, "reasoning.depth", "seed", "repairs", ""]
    assert [name for name in names if is_api_parameter(name)] == known


def test_frame_is_the_same_in_each_chat() -> None:
    """What a server took in one chat it takes in another."""
    names = ("input", "instructions", "metadata", "prompt_cache_key")
    own = dict.fromkeys((*names, "safety_identifier"), "x")
    own_repair = (LeaveOutReasoning("a"),)
    request = ResponsesRequest(model="m", input=[])
    for same in (own, {"repairs": own_repair}):
        assert request.model_copy(update=same).frame() == request.frame()
    for other in ({"top_p": 0.5}, {"repairs": (AskForStream(), *own_repair)}):
        assert request.model_copy(update=other).frame() != request.frame()


def test_outputs_of_code_are_included_when_code_is_offered() -> None:
    included = payload(PLAIN, Settings(tools=({"type": "code_interpreter"},)))
    assert included["include"] == ["code_interpreter_call.outputs"]


@pytest.mark.parametrize(
    ("model", "body", "is_included"),
    [
        (PLAIN, {"logprobs": True, "top_logprobs": 2}, True),
        (PLAIN, {"logprobs": True}, True),
        (UNKNOWN, {"logprobs": True}, True),
        (CHOOSING, {"logprobs": True, "reasoning_effort": "none"}, True),
        (CHOOSING, {"logprobs": True, "reasoning_effort": "low"}, False),
        (THINKING, {"logprobs": True}, False),
        # Nothing of it would come back.
        (PLAIN, {"logprobs": False, "top_logprobs": 2}, False),
        (PLAIN, {"top_logprobs": 2}, False),
        (PLAIN, {"logprobs": 2}, False),
    ],
)
def test_probabilities_of_tokens_are_included_for_those_who_ask(
    model: str, body: dict[str, Any], is_included: bool
) -> None:
    request = build_request(resolve_model(model), "", ITEMS, body, Settings())
    include = request.include or []
    assert ("message.output_text.logprobs" in include) is is_included
    names, _ = unsent_parameters(body, request)
    assert ("logprobs" in names) is ("logprobs" in body and not is_included)


def test_names_of_calls_are_sent_as_the_api_takes_them() -> None:
    """Those of other servers: one name that it refuses would end the chat."""
    [call] = ResponsesRequest(model="m", input=[{**CALL, "name": " look"}]).payload()[
        "input"
    ]
    assert call == {**CALL, "name": "look"}
