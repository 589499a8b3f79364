"""Valves are written once: their words, bounds and places come from their rows."""

from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from gpt5_agent.shell.valves import Valves as AgentValves
from owui_manifold.call.valves import UserValves, Valves
from settings.shared_valves import SHARED, SharedValves
from settings.table import (
    StoredValves,
    describe,
    key,
    key_at_pipelines,
    page_order,
    page_schema,
    page_texts,
    rows_of,
    valve,
)


class Shared(StoredValves):
    """What two doors have."""

    KEY: str = valve("", "The key.", pipelines="A sealed key.", example="env:KEY")
    NEW: int = valve(5, "A new one.", bounds=(1, 9))
    PROXY: str = valve("", "A proxy.", secret=True)
    AFTER_PROXY: bool = valve(True, "Behind it.")
    ZONE: str = valve("", "A zone.")


class Door(Shared):
    """One of them."""

    model_config = ConfigDict(
        json_schema_extra=page_schema("pipe", tuple(Shared.model_fields))
    )

    OWN: str = valve("a", "Its own.")
    LAST: str = valve("", "The last.", then=("PROXY", "ZONE"))
    END: str = valve("", "The end.")


NAMES = tuple(Shared.model_fields)


def test_a_shared_valve_follows_the_one_that_names_it_or_the_one_before() -> None:
    """No one has to place a new one."""
    order = ["KEY", "NEW", "OWN", "LAST", "PROXY", "AFTER_PROXY", "ZONE", "END"]

    assert page_order(Door, NAMES) == order
    assert list(Door.model_json_schema()["properties"]) == order


@pytest.mark.parametrize("door", [Valves, AgentValves])
def test_half_a_character_of_a_stored_text_is_a_question_mark(
    door: type[Valves | AgentValves],
) -> None:
    """With it, no host could send its page the valves."""
    valves = door.model_validate({"ORGANIZATION": "org \ud83d"})

    assert valves.ORGANIZATION == "org ?"
    assert valves.model_dump_json()


def test_each_door_has_its_words() -> None:
    """Open WebUI has the default in the text, the Pipelines server an example."""
    pipe = page_texts(Door, "pipe", NAMES)
    pipelines = page_texts(Door, "pipelines", NAMES)

    assert (pipe["KEY"], pipelines["KEY"]) == (
        "The key. Default: empty.",
        "A sealed key. Example: `env:KEY`.",
    )
    assert pipe["AFTER_PROXY"] == "Behind it. Default: on."
    row = rows_of(Door)["AFTER_PROXY"]
    assert describe(row, False, "pipe") == "Behind it. Default: off."
    assert describe(row, 0, "pipe") == "Behind it. Default: `0`."
    assert (pipe["NEW"], pipelines["NEW"]) == ("A new one. Default: `5`.", "A new one.")
    fields = Door.model_json_schema()["properties"]
    assert fields["KEY"]["description"] == pipe["KEY"]
    page: dict[str, Any] = {"properties": {name: {} for name in fields}}
    page_schema("pipelines", NAMES, str.upper)(page, Door)
    assert page["properties"]["NEW"]["description"] == "A NEW ONE."
    assert fields["PROXY"]["input"] == {"type": "password"}


@pytest.mark.parametrize(("stored", "read"), [(0, 1), ("7", 7), (99, 9), ("x", 5)])
def test_a_number_is_kept_within_its_bounds(stored: object, read: int) -> None:
    """A stored value may be older than the bounds, or no number."""
    valves = Door.model_validate({"NEW": stored})

    assert read == valves.NEW


@pytest.mark.parametrize(
    ("valves", "shared"), [(Valves, SHARED), (AgentValves, SHARED), (UserValves, ())]
)
def test_each_valve_stands_on_its_page_once(
    valves: Any, shared: tuple[str, ...]
) -> None:
    order = page_order(valves, shared)

    assert sorted(order) == sorted(valves.model_fields)
    assert rows_of(valves).keys() == valves.model_fields.keys()
    assert list(valves.model_json_schema()["properties"]) == order


@pytest.mark.parametrize("valves", [Valves, AgentValves])
def test_both_doors_have_the_shared_valves_as_they_are_written(valves: Any) -> None:
    """One differs: the agents compact a chat unless told otherwise."""
    own = {
        name: valves.model_fields[name].default
        for name in SHARED
        if valves.model_fields[name].default != SharedValves.model_fields[name].default
    }

    assert own == ({"COMPACTION_TOKENS": 200_000} if valves is AgentValves else {})


class Keys(BaseModel):
    """Keys of a JSON object."""

    tries: int = key(2, "How often.", bounds=(0, 5))
    opens: str = key("", "What the pipe opens.", pipelines="What the agents open.")
    plain: str = ""


class OtherKeys(Keys):
    """The same at the Pipelines server, with other defaults."""

    tries: int = key_at_pipelines(Keys, "tries", 1)
    opens: str = key_at_pipelines(Keys, "opens", "all")


@pytest.mark.parametrize(
    ("keys", "default", "text"),
    [(Keys, 2, "What the pipe opens."), (OtherKeys, 1, "What the agents open.")],
)
def test_a_key_has_its_bounds_at_both_doors(
    keys: type[Keys], default: int, text: str
) -> None:
    """Its text tells them; the default and the words may differ."""
    assert rows_of(keys).keys() == {"tries", "opens"}
    assert keys().tries == default
    assert keys.model_fields["tries"].description == "How often, 0 to 5."
    assert keys.model_fields["opens"].description == text
    with pytest.raises(ValidationError):
        keys(tries=6)
