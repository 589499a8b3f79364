"""An administrator learns of models whose tools are called in the older way."""

from types import SimpleNamespace
from typing import Any

import pytest

from calls.sample import MODEL, call_of, chat, host_context
from openai_responses.errors import InvalidRequest
from owui_manifold.call.context import Caller, CheckedCall
from owui_manifold.call.valves import Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.prepare.tasks import build_task_request
from owui_manifold.present.notices import notices_of
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
WORKSPACE = "my-gpt"


class Params:
    """The parameters of a record; its other keys are anybody's."""

    def __init__(self, **params: Any) -> None:
        self.params = params

    def model_dump(self) -> Json:
        """Return them as the host's own model does."""
        return dict(self.params)


class Models:
    """The host's table of models, with one row."""

    id = WORKSPACE

    def __init__(self, **params: Any) -> None:
        self.params = Params(**params)
        self.updates: list[tuple[str, Any]] = []

    async def get_model_by_id(self, id: str) -> Any:
        """Return the row (models/models.py)."""
        return self if id == self.id else None

    def model_dump(self, include: set[str]) -> Json:
        """Return some fields of the row."""
        row: Json = {
            "id": self.id,
            "name": "One",
            "meta": {"tags": []},
            "version_id": "1",
        }
        row |= {"base_model_id": None, "is_active": False, "access_grants": ["all"]}
        return {key: row[key] for key in row if key in include}

    async def update_model_by_id(self, id: str, model: Any) -> Any:
        """Take note of what would be written."""
        self.updates.append((id, model))
        return model


def with_table(host: StandInHost, **params: Any) -> Models:
    """The host's table, in which the model has these parameters."""
    models = Models(**params)
    host.provide("models.models", Models=models, ModelForm=SimpleNamespace)
    return models


def asking(
    way: str | None = "legacy", admin: bool = True, task: str = "", **valves: Any
) -> CheckedCall:
    """Somebody asks a model of the workspace."""
    caller = Caller(MODEL, "user-1", "chat-1", "m-1", task, is_admin=admin)
    metadata = {"model_id": WORKSPACE, "params": {"function_calling": way}}
    context = host_context({}, metadata=metadata)
    return call_of(chat("Hi"), Valves(API_KEY="sk-1", **valves), caller, host=context)


async def notices_for(call: CheckedCall) -> list[str]:
    """What is shown above the answer."""
    if call.caller.task:
        return await notices_of(await build_task_request(call))
    return await notices_of(await build_chat_request(call))


async def test_legacy_tools_are_reported_to_an_administrator_once(
    host: StandInHost,
) -> None:
    """In the chat and in the log; what to do is said, and nothing is changed."""
    models = with_table(host, function_calling="legacy")
    call = asking()

    first = await notices_for(call)
    second = await notices_for(call)

    [notice] = first
    assert "AUTO_NATIVE_TOOLS" in notice
    assert "Native" in notice
    assert second == []
    assert call.log.text().count("legacy way") == 1
    assert models.updates == []


@pytest.mark.parametrize("way", [None, "native"])
async def test_other_models_are_not_looked_up(
    way: str | None, host: StandInHost
) -> None:
    """Most requests cost no look at the database."""
    assert await notices_for(asking(way, AUTO_NATIVE_TOOLS=True)) == []


async def test_users_and_tasks_see_nothing(host: StandInHost) -> None:
    """A user can change nothing; a title has no status line."""
    with_table(host, function_calling="legacy")
    user = asking(admin=False)
    task = asking(task="title_generation")

    assert await notices_for(user) == await notices_for(task) == []
    assert ("legacy way" in user.log.text(), task.log.text()) == (True, "")


@pytest.mark.parametrize("admin", [True, False])
async def test_auto_native_tools_changes_only_function_calling(
    admin: bool, host: StandInHost
) -> None:
    """Whoever asks; all else of the record goes back as it was, grants untouched."""
    models = with_table(host, function_calling="legacy", temperature=0.5)

    notices = await notices_for(asking(admin=admin, AUTO_NATIVE_TOOLS=True))

    form = SimpleNamespace(
        id=WORKSPACE,
        base_model_id=None,
        name="One",
        meta={"tags": []},
        is_active=False,
        params={"function_calling": "native", "temperature": 0.5},
    )
    assert models.updates == [(WORKSPACE, form)]
    assert ["set it to Native" in notice for notice in notices] == [True] * admin


@pytest.mark.parametrize("params", [{}, {"function_calling": "native"}])
async def test_a_users_own_choice_is_left_alone(
    params: Json, host: StandInHost
) -> None:
    """They set it in the controls of their chat; the record says otherwise."""
    models = with_table(host, **params)

    assert await notices_for(asking(AUTO_NATIVE_TOOLS=True)) == []
    assert models.updates == []


async def test_a_model_without_a_record(host: StandInHost) -> None:
    """There is nothing to change, and nothing to say."""
    models = with_table(host, function_calling="legacy")
    models.id = "another"

    assert await notices_for(asking(AUTO_NATIVE_TOOLS=True)) == []


async def test_host_without_the_models_table_is_reported(host: StandInHost) -> None:
    """As for every name of the host."""
    host.provide("models.models")
    with pytest.raises(InvalidRequest, match=r"models\.models"):
        await notices_for(asking(AUTO_NATIVE_TOOLS=True))


def with_code_switched_on(
    way: str | None, *, on: bool = True, chat_id: str = "chat-1"
) -> CheckedCall:
    """A user asks in a chat with Open WebUI's Code Interpreter, on or off."""
    caller = Caller(MODEL, "user-1", chat_id, "m-1")
    metadata = {
        "model_id": WORKSPACE,
        "params": {"function_calling": way},
        "features": {"code_interpreter": on},
    }
    context = host_context({}, metadata=metadata)
    return call_of(chat("Hi"), Valves(API_KEY="sk-1"), caller, host=context)


async def test_code_in_tags_is_said_to_run_nothing(host: StandInHost) -> None:
    """Once in a chat, to whoever switched it on, and in the log."""
    with_table(host, function_calling="legacy")
    call = with_code_switched_on("legacy")
    later = with_code_switched_on("legacy", chat_id="chat-2")
    later = later._replace(capabilities=call.capabilities)

    [notice] = await notices_for(call)

    assert "Code Interpreter runs nothing" in notice
    assert "Native" in notice
    assert notice in call.log.text()
    assert await notices_for(call) == []
    assert await notices_for(later) == [notice]


@pytest.mark.parametrize(
    ("way", "on"), [("legacy", False), ("native", True), (None, True)]
)
async def test_other_chats_have_no_notice_about_code(
    way: str | None, on: bool, host: StandInHost
) -> None:
    """The switch is off, or the host offers a tool instead of tags."""
    with_table(host, function_calling="legacy")

    assert await notices_for(with_code_switched_on(way, on=on)) == []
