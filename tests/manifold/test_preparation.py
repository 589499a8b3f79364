"""The input of a chat, as far as one request takes it."""

from typing import Any

import pytest

from manifold.preparation import (
    build_fields,
    fit_history,
    memories,
    offer_tools,
    parse_chat,
)
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import Settings
from strategies.guide import Guide
from strategies.parameters import StrategyParameters

LONG = "begin " + "x" * 5000 + " end"
CALL: Item = {"type": "function_call", "call_id": "c", "name": "f", "arguments": LONG}
OUTPUT: Item = {"type": "function_call_output", "call_id": "c", "output": LONG}


def test_outputs_of_calls_keep_their_beginning_and_their_end() -> None:
    call, output = fit_history([CALL, OUTPUT], 1000)

    assert call == CALL
    assert len(output["output"]) < 2000
    assert output["output"].startswith("begin ")
    assert output["output"].endswith(" end")
    assert fit_history([call, output], 1000) == [call, output]


def test_a_plain_client_s_outputs_stay_whole() -> None:
    """Its program decides how long they are."""
    assert fit_history([OUTPUT], None) == [OUTPUT]


def agent(**guide: object) -> StrategyParameters:
    whole = Guide.model_validate({"system_prompt": "", **guide})
    return StrategyParameters(guide=whole)


CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "first"},
    {"role": "assistant", "content": "answer"},
    {"role": "user", "content": "second"},
]


def test_agent_may_remember_only_the_last_turns() -> None:
    """Whoever asked is told; no one else's chat is cut."""
    whole = parse_chat(CHAT, None, None)
    cut = parse_chat(CHAT, None, agent(memory_policy="sliding-window:1"))

    assert (len(whole.parts), len(cut.parts)) == (3, 1)
    assert whole.instructions == cut.instructions == "Be brief."
    assert [bool(notice) for notice in whole.notices] == [False, False]
    assert "1 earlier turn was left out" in cut.notices[0]


@pytest.mark.parametrize("policy", ["", "sliding-window:1"])
def test_message_that_is_no_object_is_refused_with_the_chat(policy: str) -> None:
    """Also where an agent remembers a window: before the chat is parsed."""
    messages: list[Any] = [*CHAT, "third"]

    with pytest.raises(InvalidRequest, match="not an object with a role"):
        parse_chat(messages, None, agent(memory_policy=policy))


def test_agent_s_memories_come_before_its_chat() -> None:
    [part] = memories(agent(initial_memories=("Ann sails.",)))

    assert "Ann sails." in str(part)
    assert memories(agent()) == []


@pytest.mark.parametrize(
    ("given", "guided", "sent"),
    [(None, None, None), (None, 0.5, 0.5), (1.5, 0.5, 1.5), (0, 0.5, 0)],
)
def test_temperature_of_a_guide_is_a_default(
    given: float | None, guided: float | None, sent: float | None
) -> None:
    model = resolve_model("gpt-4o")
    body = {"temperature": given}

    request = build_fields(model, body, Settings(), agent(temperature=guided))

    assert request.temperature == sent
    assert build_fields(model, body, Settings(), None).temperature == given


def test_chat_without_a_message_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="no message to answer"):
        build_fields(resolve_model("gpt-4o"), {}, Settings(), None, is_empty=True)


def functions(*names: str) -> list[Item]:
    return [{"type": "function", "name": name} for name in names]


SEARCH: Item = {"type": "web_search"}


@pytest.mark.parametrize(("count", "left_out"), [(127, 0), (128, 1), (129, 2)], ids=str)
def test_of_more_tools_than_the_api_takes_the_hosts_own_go_first(
    count: int, left_out: int
) -> None:
    """OpenAI's are few, and an administrator switched them on."""
    names = [f"f{number}" for number in range(count)]

    offered = offer_tools(None, [SEARCH], functions(*names), builtin=names[1:4])

    sent = [tool.get("name") for tool in offered.items]
    if left_out:
        assert sent == [None, names[0], *names[4:], *names[1:4]][:128]
        assert f"{left_out} of this chat's {count + 1} tools" in offered.notice
        assert "at most 128" in offered.notice
    else:
        assert (sent, offered.notice) == ([None, *names], "")


def test_withheld_tools_are_not_offered() -> None:
    """Nor is a choice, where none is left."""
    offered = offer_tools("required", (), functions("a", "b"), withheld={"a"})
    nothing = offer_tools("required", (), functions("a"), withheld={"a"})

    assert [tool["name"] for tool in offered.items] == ["b"]
    assert offered.choice == "required"
    many = functions(*(f"f{number}" for number in range(130)))
    told = offer_tools(None, (), many, withheld={"f0"}).notice
    assert "1 of this chat's 129 tools" in told
    assert (nothing.items, nothing.choice) == ((), None)


def test_tool_of_the_caller_replaces_the_one_of_its_kind() -> None:
    """It may have filters that the administrator's has not."""
    own: Item = {"type": "web_search", "filters": {"allowed_domains": ["a.example"]}}
    assert offer_tools(None, [SEARCH], [own]).items == [own]
