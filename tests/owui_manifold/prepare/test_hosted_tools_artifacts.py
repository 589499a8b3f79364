"""Which of OpenAI's tools that make something are offered."""

from typing import Any

import pytest
from openai.types.responses.tool_param import CodeInterpreter
from pydantic import TypeAdapter

from calls.sample import config_of
from calls.valves import expert
from openai_responses.items import Item
from openai_responses.models.resolve import resolve_model
from owui_manifold.call.config import read_config
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.prepare.hosted_tools import hosted_tools

CODE = {"type": "code_interpreter", "container": {"type": "auto"}}
PICTURES = {"type": "image_generation", "partial_images": 2}
BOTH_ON = {"ENABLE_CODE_INTERPRETER": True, "ENABLE_IMAGE_GENERATION": True}
BOTH_OFF = {"CODE_INTERPRETER": "off", "IMAGE_GENERATION": "off"}


def hosted(
    valves: dict[str, Any], user: dict[str, Any] | None = None
) -> tuple[list[Item], set[str]]:
    """The tools of a request, and what they replace."""
    chosen = UserValves.model_validate(user or {})
    config = config_of(Valves.model_validate(valves), chosen)
    return hosted_tools(config, resolve_model("gpt-5.6-sol"))


def offered(valves: dict[str, Any], user: dict[str, Any] | None = None) -> list[Any]:
    return hosted(valves, user)[0]


def test_nothing_is_offered_unless_asked_for() -> None:
    """Pictures and code are billed."""
    assert offered({}) == []


@pytest.mark.parametrize(
    ("valves", "user", "tools"),
    [
        (BOTH_ON, {}, [CODE, PICTURES]),
        (BOTH_ON, BOTH_OFF, []),
        ({}, {"IMAGE_GENERATION": "on"}, [PICTURES]),
        ({"ENABLE_CODE_INTERPRETER": True}, {"IMAGE_GENERATION": "off"}, [CODE]),
    ],
)
def test_a_users_choice_wins(
    valves: dict[str, Any], user: dict[str, Any], tools: list[Any]
) -> None:
    assert offered(valves, user) == tools


@pytest.mark.parametrize(
    ("memory", "container"),
    [("1g", {"type": "auto"}), ("4g", {"type": "auto", "memory_limit": "4g"})],
)
def test_the_container_has_the_memory_that_is_paid_for(
    memory: str, container: dict[str, str]
) -> None:
    """The API's own default is not sent, so the bytes of other chats stay."""
    valves = {
        "ENABLE_CODE_INTERPRETER": True,
        "EXPERT_JSON": expert(code_memory=memory),
    }
    [tool] = offered(valves)
    assert tool == {"type": "code_interpreter", "container": container}
    TypeAdapter(CodeInterpreter).validate_python(tool)


@pytest.mark.parametrize(
    ("text", "tool"),
    [
        ('{"quality": "high"}', {"type": "image_generation", "quality": "high"}),
        ("", {"type": "image_generation"}),
        ('{"type": "other"}', {"type": "image_generation"}),
    ],
)
def test_options_of_image_generation_are_sent(text: str, tool: dict[str, Any]) -> None:
    """What OpenAI's tool takes, under its own type."""
    valves = {"ENABLE_IMAGE_GENERATION": True, "IMAGE_GENERATION_OPTIONS": text}

    assert offered(valves) == [tool]


@pytest.mark.parametrize(
    "text", ["high", "[1]", pytest.param("[" * 100_000, id="brackets")]
)
def test_unreadable_options_are_left_out(text: str) -> None:
    valves = {"ENABLE_IMAGE_GENERATION": True, "IMAGE_GENERATION_OPTIONS": text}

    assert offered(valves) == [{"type": "image_generation"}]
    [problem] = read_config(Valves.model_validate(valves)).problems
    assert problem.startswith("IMAGE_GENERATION_OPTIONS is not a JSON object")


@pytest.mark.parametrize(
    ("text", "kept", "told"),
    [
        (
            '{"qualty": "high", "size": "1024x1024"}',
            {"size": "1024x1024"},
            "contains unknown names: qualty. Known keys: quality, size, ",
        ),
        ('{"quality": "best"}', {}, "`quality` cannot be 'best'. "),
        ('{"partial_images": 9}', {"partial_images": 3}, "3 applies."),
    ],
)
def test_wrong_option_is_told_with_the_right_ones(
    text: str, kept: dict[str, Any], told: str
) -> None:
    """The API would refuse the whole tool, and chats would go on without it."""
    valves = {"ENABLE_IMAGE_GENERATION": True, "IMAGE_GENERATION_OPTIONS": text}

    assert offered(valves) == [{"type": "image_generation", **kept}]
    [problem] = read_config(Valves.model_validate(valves)).problems
    assert problem.startswith("IMAGE_GENERATION_OPTIONS")
    assert told in problem


def test_hosts_tools_for_the_same_purpose_are_left_out() -> None:
    """Of two the model would have to guess."""
    code, pictures = BOTH_ON
    assert hosted({code: True})[1] == {"execute_code"}
    assert hosted({pictures: True})[1] == {"generate_image", "edit_image"}
    assert hosted({})[1] == set()
