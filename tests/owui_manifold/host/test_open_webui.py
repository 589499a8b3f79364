"""What an older host lacks gives a message; another user's chat gives nothing."""

import sys
from typing import Any

import pytest

from calls.sample import host_context
from openai_responses.errors import InvalidRequest
from owui_host.database import run_sql
from owui_host.files import read_file, readable_file
from owui_host.task_models import task_parameters
from owui_host.users import user_model
from owui_manifold.host.open_webui import (
    identity_headers,
    keeps_models,
    make_native,
    missing_task_models,
    model_system_prompt,
    read_chat,
    require_floor,
    server_secret,
    shown_messages,
    without_forbidden_search,
    write_chat_keys,
)
from stand_in.host import SERVER_SECRET, Row, StandInHost, host_request
from stand_in.usage_database import UsageDatabase

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]


@pytest.mark.parametrize("version", ["0.11.4", "0.12", "0.11.5-dev"])
async def test_newer_host_passes_the_version_check(
    version: str, host: StandInHost
) -> None:
    """The oldest supported version passes, too."""
    host.provide("env", VERSION=version)

    require_floor()


@pytest.mark.parametrize("version", ["0.11.3", "0.11", "unknown"])
async def test_older_host_gives_a_sentence(version: str, host: StandInHost) -> None:
    """It names both versions and who can do something."""
    host.provide("env", VERSION=version)

    with pytest.raises(InvalidRequest) as caught:
        require_floor()

    assert str(caught.value) == (
        f"This pipe needs Open WebUI 0.11.4 or newer; this server runs {version}. "
        "An administrator has to update Open WebUI."
    )
    assert caught.value.remedy == "setup"


async def test_host_without_a_version_gives_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the host's modules the version cannot be read."""
    monkeypatch.delitem(sys.modules, "open_webui.env", raising=False)

    with pytest.raises(
        InvalidRequest, match=r"no VERSION in open_webui\.env"
    ) as caught:
        require_floor()
    assert caught.value.remedy == "setup"


async def test_missing_name_gives_a_sentence(host: StandInHost) -> None:
    """The module is there, what we need of it is not."""
    host.provide("models.chats", ChatTable=object)

    with pytest.raises(InvalidRequest, match=r"no Chats in open_webui\.models\.chats"):
        await read_chat("chat-1", "user-1")


async def test_only_an_own_chat_with_a_row_is_read(host: StandInHost) -> None:
    """Another user's chat reads like one that does not exist, or has nothing in it."""
    assert await read_chat("chat-1", "user-1") == {"title": "Rain"}
    assert await read_chat("chat-1", "user-2") is None
    assert await read_chat("chat-2", "user-1") is None
    host.chats.rows["chat-1"] = Row("user-1", "nothing that a chat is")
    assert await read_chat("chat-1", "user-1") is None
    host.provide("env")  # it does not say where its database is
    assert await read_chat("chat-2", "user-1") is None


@pytest.mark.parametrize("reads", ["one's own", "somebody else's"])
async def test_chat_that_could_not_be_read_is_read_again(
    reads: str, host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host hides what its database reports: it seems to have no such chat.

    The answer would forget the earlier reasoning, and keep none of its own.
    """
    host.provide("env", DATABASE_URL="postgresql://db")
    host.chats.away = 2
    chat = {"title": "Rain", "history": {"messages": {"q": {}}}}
    host.chats.rows["chat-1"] = Row("user-1", chat)

    async def read_or_hide(chat_id: str, *_: str) -> Any:
        return None if host.chats.away else host.chats.rows[chat_id]

    for name in ("get_chat_by_id_and_user_id", "get_chat_by_id"):
        monkeypatch.setattr(host.chats, name, read_or_hide)

    if reads == "one's own":
        assert await read_chat("chat-1", "user-1") == chat
    else:
        assert await shown_messages("chat-1") == {"q": {}}


async def test_only_the_given_key_is_written(host: StandInHost) -> None:
    """The rest of the chat is not sent: it may be stale. The row may be gone."""
    assert not await write_chat_keys("chat-2", {"ours": {"a": 1}})
    assert await write_chat_keys("chat-1", {"ours": {"a": 1}})

    assert host.chats.writes == [{"ours": {"a": 1}}]
    assert host.chats.rows["chat-1"].chat == {"title": "Rain", "ours": {"a": 1}}


@pytest.mark.parametrize(
    ("env", "secret"),
    [
        ({"WEBUI_SECRET_KEY": SERVER_SECRET}, SERVER_SECRET),
        ({"WEBUI_SECRET_KEY": None}, ""),
        ({}, ""),
    ],
    ids=["set", "null", "absent"],
)
async def test_server_secret_is_empty_where_the_host_has_none(
    env: dict[str, str | None], secret: str, host: StandInHost
) -> None:
    """A chat goes on without what needs one."""
    host.provide("env", VERSION="0.12.4", **env)

    assert server_secret() == secret


@pytest.mark.parametrize(
    ("values", "keeps"),
    [({"models.base_models_cache": True}, True), ({}, False), (None, False)],
)
async def test_host_may_keep_its_list_of_models(
    values: dict[str, bool] | None, host: StandInHost, *, keeps: bool
) -> None:
    """An older one has no such setting."""
    if values is None:
        host.provide("models.config")
    host.settings.values = values or {}

    assert await keeps_models() is keeps


@pytest.mark.parametrize(
    "setting",
    ["task.model.default", "task.model.external", "chat.context_compaction.model"],
)
async def test_model_that_was_chosen_for_tasks_may_be_gone(
    setting: str, host: StandInHost
) -> None:
    """The host then takes the one that a client names."""
    request = host_request()
    request.app.state.MODELS = {"there": {}}

    for chosen, missing in (("gone", ["gone"]), ("there", []), ("", [])):
        host.settings.values = {setting: chosen}
        assert await missing_task_models(request) == missing


async def test_model_that_is_gone_is_not_made_native() -> None:
    assert await make_native("gone") is False


@pytest.mark.parametrize(
    ("stored", "variables", "prompt"),
    [
        (None, {}, ""),
        ({}, {}, ""),
        ({"system": "You help {{USER_NAME}}."}, {}, "You help Ada."),
        (
            {"system": "In {{PLACE}}, {{CURRENT_TIME}}."},
            {"{{PLACE}}": "Bern", "{{CURRENT_TIME}}": "9:00"},
            "In Bern, 9:00.",
        ),
    ],
    ids=["no row", "no prompt", "a name", "the page's own clock"],
)
async def test_prompt_of_a_model_is_rendered_by_the_host(
    stored: dict[str, str] | None,
    variables: dict[str, str],
    prompt: str,
    host: StandInHost,
) -> None:
    if stored is not None:
        host.models.add("helper", "admin", **stored)

    rendered = await model_system_prompt("helper", "user-1", {"variables": variables})

    assert rendered == prompt


async def test_prompt_that_an_older_host_cannot_render_is_unknown(
    host: StandInHost,
) -> None:
    host.models.add("helper", "admin", system="Be brief.")
    host.provide("utils.payload")

    assert await model_system_prompt("helper", "user-1", {}) is None


@pytest.mark.parametrize(
    ("change", "searches"),
    [
        ({}, True),
        ({"server": False}, False),
        ({"server": None}, False),
        ({"model": False}, False),
        ({"user": "user-2"}, False),
        ({"role": "admin", "server": False, "user": "user-2"}, True),
        ({"asked": False}, False),
    ],
    ids=repr,
)
async def test_search_of_a_client_is_taken_back_where_the_server_forbids_it(
    change: dict[str, Any], searches: bool, host: StandInHost
) -> None:
    """Model, server and the user's groups each have to allow it."""
    host.settings.values["web.search.enable"] = change.get("server", True)
    if change.get("server", True) is None:
        del host.settings.values["web.search.enable"]
    meta = {"capabilities": {"web_search": change.get("model", True)}}
    metadata = {
        "features": {"web_search": change.get("asked", True), "other": 1},
        "model": {"id": "the first of several"},
        "model_id": "helper",
    }
    request = host_request()
    request.app.state.MODELS["helper"] = {"id": "helper", "info": {"meta": meta}}
    user = {"id": change.get("user", "user-1"), "role": change.get("role", "user")}

    context = host_context(user=user, metadata=metadata, request=request)
    permitted = await without_forbidden_search(context)

    assert permitted["features"]["web_search"] is searches
    assert permitted["features"]["other"] == 1


@pytest.mark.parametrize(("given", "size"), [(7, 7), ("7", 0), (None, 0), (0.5, 0)])
async def test_size_of_a_file_is_a_number_or_unknown(
    given: object, size: int, host: StandInHost
) -> None:
    """Plugins of the host write what they like."""
    file_id = host.files.add(b"a", "a.txt", size=given)
    stored = await readable_file(file_id, await user_model("user-1"))
    assert stored
    assert stored.size == size


@pytest.mark.parametrize(("most", "read"), [(2, b"ab"), (4, b"abc"), (-1, b"abc")])
async def test_beginning_of_a_file_is_read_alone(
    most: int, read: bytes, host: StandInHost
) -> None:
    file_id = host.files.add(b"abc", "a.txt")
    stored = await readable_file(file_id, await user_model("user-1"))
    assert await read_file(stored, bytes, most) == read


@pytest.mark.parametrize("given", [None, "x", [1]])
async def test_parameters_of_tasks_are_an_object_or_none(
    given: object, host: StandInHost
) -> None:
    host.settings.values["task.model.params"] = given
    assert await task_parameters() == {}


async def test_id_of_a_chat_is_quoted_in_a_header(host: StandInHost) -> None:
    """Whoever calls the API of the host chooses it."""
    host.provide("utils.headers", include_user_info_headers=lambda *_, **__: {})
    named = {"FORWARD_SESSION_INFO_HEADER_CHAT_ID": "X-Chat"}
    host.provide("env", ENABLE_FORWARD_USER_INFO_HEADERS=True, **named)
    context = host_context(metadata={"chat_id": "channel:\r\nX-Admin: ü\ud83d"})

    headers = await identity_headers(context, "user-1")

    assert headers == {"X-Chat": "channel:%0D%0AX-Admin:%20%C3%BC%3F"}
    host.provide("env", ENABLE_FORWARD_USER_INFO_HEADERS=False, **named)
    assert await identity_headers(context, "user-1") == {}


async def test_statements_name_the_schema_of_the_host(
    host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name may have a sign that SQL reads as another."""
    database = UsageDatabase(monkeypatch, host)
    database.connection.execute("ATTACH ':memory:' AS \"open-webui\"")
    host.provide("env", DATABASE_SCHEMA="open-webui")

    await run_sql(("CREATE TABLE {schema}notes (id TEXT)", {}))
    assert await run_sql(("SELECT count(*) FROM {schema}notes", {})) == [(0,)]
    assert database.connection.execute('SELECT * FROM "open-webui".notes')
