"""The switches of the composer, from the filters to the pipe."""

from types import SimpleNamespace
from typing import Any

import pytest

from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import Settings, build_request
from owui_controls import agent, code_interpreter, effort, image_generation, web_search
from owui_controls.switch import CONTROLS_KEY, CONTROLS_VERSION
from owui_manifold.call.config import Config, read_config
from owui_manifold.call.valves import UserValves, Valves

FILTERS: dict[str, Any] = {
    "web_search": web_search.Filter,
    "effort": effort.Filter,
    "code_interpreter": code_interpreter.Filter,
    "image_generation": image_generation.Filter,
    "agent": agent.Filter,
}
MENU = ("as the model chooses", "low", "medium", "high", "highest")


async def metadata_after(*names: str, chosen: str | None = None) -> dict[str, Any]:
    """Return the metadata after the filters of these switches have run."""
    metadata: dict[str, Any] = {"chat_id": "c-1"}
    user = {"valves": SimpleNamespace(EFFORT=chosen)} if chosen else None
    for name in names:
        switch: Any = FILTERS[name]()
        body = {"model": "f.m", "messages": []}
        given = (body, metadata, user) if name == "effort" else (body, metadata)
        assert await switch.inlet(*given) == {"model": "f.m", "messages": []}
    return metadata


def config(metadata: dict[str, Any], **own: Any) -> Config:
    return read_config(Valves(API_KEY="sk-1"), {"valves": UserValves(**own)}, metadata)


@pytest.mark.parametrize(
    ("names", "kinds", "effort"),
    [
        ((), set(), "low"),
        (("web_search",), {"web_search"}, "low"),
        (("web_search", "effort"), {"web_search"}, "high"),
        (("code_interpreter",), {"code_interpreter"}, "low"),
        (("image_generation",), {"image_generation"}, "low"),
    ],
)
@pytest.mark.asyncio
async def test_switches_override_the_users_settings(
    names: tuple[str, ...], kinds: set[str], effort: str
) -> None:
    """A switch is what the person did last; each says one thing."""
    asked = config(
        await metadata_after(*names), REASONING_EFFORT="low", WEB_SEARCH="off"
    )

    assert asked.tool_kinds == kinds
    assert asked.effort == effort


@pytest.mark.parametrize(
    ("name", "wish"),
    [
        ("web_search", {"web_search": True}),
        ("effort", {"thinking": "high"}),
        ("code_interpreter", {"code_interpreter": True}),
        ("image_generation", {"image_generation": True}),
        ("agent", {"agent": True}),
    ],
)
@pytest.mark.asyncio
async def test_each_switch_says_one_thing(name: str, wish: dict[str, Any]) -> None:
    """These words are read by pipes of other releases, too."""
    metadata = await metadata_after(name)

    assert metadata == {"chat_id": "c-1", "openai_responses": {"version": 1, **wish}}


@pytest.mark.parametrize(
    ("chosen", "model", "sent"),
    [
        *zip(
            MENU,
            ["gpt-5.2"] * 5,
            ("none", "low", "medium", "high", "xhigh"),
            strict=True,
        ),
        ("highest", "gpt-5", "high"),
        ("highest", "gpt-6.1-sol", "max"),
    ],
)
@pytest.mark.asyncio
async def test_each_entry_of_the_menu_is_an_effort(
    chosen: str, model: str, sent: str
) -> None:
    """The first leaves what the user's own settings say; the last is the model's most."""
    metadata = await metadata_after("effort", chosen=chosen)
    asked = config(metadata, REASONING_EFFORT="none").effort
    question = [{"role": "user", "content": "Hello"}]

    request = build_request(
        resolve_model(model), "", question, {}, Settings(effort=asked)
    )

    assert request.payload()["reasoning"]["effort"] == sent


@pytest.mark.parametrize(
    "wishes", [None, "on", {}, {"version": 2, "web_search": True}, {"web_search": True}]
)
@pytest.mark.asyncio
async def test_wishes_of_another_version_are_ignored_and_reported(wishes: Any) -> None:
    """What is not understood is not guessed; administrators are told."""
    read = config({CONTROLS_KEY: wishes})
    assert read._replace(problems=()) == config({})
    assert bool(read.problems) is isinstance(wishes, dict)


@pytest.mark.parametrize("effort", [True, "enormous", None, 7])
@pytest.mark.asyncio
async def test_unknown_effort_is_ignored(effort: Any) -> None:
    """It would be refused by the API."""
    wishes = {"version": CONTROLS_VERSION, "thinking": effort}
    assert config({CONTROLS_KEY: wishes}).effort is None


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.asyncio
async def test_plain_client_without_metadata_changes_nothing(name: str) -> None:
    assert await FILTERS[name]().inlet({"model": "m"}) == {"model": "m"}


def test_each_switch_has_its_own_icon() -> None:
    switches = [switch() for switch in FILTERS.values()]

    assert all(switch.toggle and switch.valves.priority == 0 for switch in switches)
    icons = {switch.icon for switch in switches}
    assert len(icons) == len(switches)
    assert all(icon.startswith("data:image/svg+xml;utf8,<svg ") for icon in icons)
    menus = [name for name, made in FILTERS.items() if hasattr(made, "UserValves")]
    assert menus == ["effort"]


def test_efforts_are_drawn_as_a_menu() -> None:
    """The page draws a menu for one plain list, and a text field for a list of lists."""
    drawn = effort.Filter.UserValves.model_json_schema()["properties"]["EFFORT"]

    assert (drawn["type"], tuple(drawn["enum"])) == ("string", MENU)


def test_python_switch_differs_from_the_hosts() -> None:
    """Both are in one menu."""
    assert "Code Interpreter runs it in the browser" in (code_interpreter.__doc__ or "")
