"""The switches of the composer, from the filter to the pipe."""

from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from owui_controls.controls import CONTROLS_KEY, CONTROLS_VERSION, Filter
from owui_manifold.config import Config, read_config
from owui_manifold.valves import UserValves, Valves

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


async def told(*controls: str, user: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the metadata after the filters of these switches have run."""
    metadata: dict[str, Any] = {"chat_id": "c-1"}
    for control in controls:
        switch = Filter()
        switch.valves = Filter.Valves.model_validate({"CONTROL": control})
        body = {"model": "f.m", "messages": []}
        assert await switch.inlet(body, metadata, user) == {
            "model": "f.m",
            "messages": [],
        }
    return metadata


def config(metadata: dict[str, Any], **own: Any) -> Config:
    """What the pipe makes of the switches and of a user's own settings."""
    return read_config(Valves(API_KEY="sk-1"), {"valves": UserValves(**own)}, metadata)


@pytest.mark.asyncio
async def test_each_switch_is_a_wish_of_its_own() -> None:
    """Several stand side by side."""
    wished = config(await told("web_search", "thinking"))
    assert (wished.web_search, wished.effort) == (True, "high")
    assert wished.code_interpreter is False
    assert config(await told("code_interpreter")).code_interpreter is True


@pytest.mark.asyncio
async def test_a_user_chooses_what_thinking_means() -> None:
    """In the switch's own settings."""
    user = {"valves": SimpleNamespace(EFFORT="max")}
    assert config(await told("thinking", user=user)).effort == "max"


@pytest.mark.asyncio
async def test_without_a_switch_nothing_changes() -> None:
    """The user's own settings stay."""
    kept = config({}, REASONING_EFFORT="low", WEB_SEARCH="off")
    assert (kept.effort, kept.web_search) == ("low", False)
    assert config(await told("code_interpreter"), WEB_SEARCH="off").web_search is False


@pytest.mark.asyncio
async def test_a_switch_wins_for_its_message() -> None:
    """It is what the person did last; the settings themselves stay."""
    own = UserValves(WEB_SEARCH="off")
    switched = read_config(Valves(), {"valves": own}, await told("web_search"))
    assert switched.web_search is True
    assert own.WEB_SEARCH == "off"


@pytest.mark.parametrize(
    "said", [None, "on", {}, {"version": 2, "web_search": True}, {"web_search": True}]
)
@pytest.mark.asyncio
async def test_another_version_means_nothing(said: Any) -> None:
    """What is not understood is not guessed; administrators are told."""
    found = config({CONTROLS_KEY: said})
    assert found._replace(problems=()) == config({})
    assert bool(found.problems) is isinstance(said, dict)


@pytest.mark.parametrize("effort", [True, "enormous", None, 7])
@pytest.mark.asyncio
async def test_an_effort_that_is_none(effort: Any) -> None:
    """It would be refused by the API."""
    said = {"version": CONTROLS_VERSION, "thinking": effort}
    assert config({CONTROLS_KEY: said}).effort is None


@pytest.mark.asyncio
async def test_a_call_without_metadata() -> None:
    """A plain HTTP client has none."""
    assert await Filter().inlet({"model": "m"}) == {"model": "m"}


@pytest.mark.parametrize(
    ("model", "field", "choices"),
    [
        (Filter.Valves, "CONTROL", ("web_search", "thinking", "code_interpreter")),
        (Filter.Valves, "EFFORT", EFFORTS),
        (Filter.UserValves, "EFFORT", ("inherit", *EFFORTS)),
    ],
)
def test_choices_are_menus_on_the_page(
    model: type[BaseModel], field: str, choices: tuple[str, ...]
) -> None:
    """The page draws a menu for one plain list, and a text field for a list of lists."""
    drawn = model.model_json_schema()["properties"][field]

    assert (drawn["type"], tuple(drawn["enum"])) == ("string", choices)
