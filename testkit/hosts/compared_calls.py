"""Calls of Open WebUI's names that the real host and the stand-in answer alike.

Imported inside the real server, too, so it needs nothing but the standard library. Each
call returns what can be compared as JSON.
"""

import json
from collections.abc import Awaitable, Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

OWNER = "owner-of-compared-calls"
CHAT_ID = "chat-of-compared-calls"
CHAT: dict[str, Any] = {
    "title": "Rain",
    "history": {
        "currentId": "a",
        "messages": {
            "q": {
                "id": "q",
                "role": "user",
                "content": "Why?",
                "parentId": None,
                "childrenIds": ["a"],
            },
            "a": {
                "id": "a",
                "role": "assistant",
                "content": "So.",
                "parentId": "q",
                "childrenIds": [],
            },
        },
    },
}
"""A chat that has to be there, of OWNER."""


def host(module: str, name: str) -> Any:
    return getattr(import_module(f"open_webui.{module}"), name)


async def own_chat_is_read() -> object:
    chats = host("models.chats", "Chats")
    own = await chats.get_chat_by_id_and_user_id(CHAT_ID, OWNER)
    return [
        own.chat["title"],
        await chats.get_chat_by_id_and_user_id(CHAT_ID, "somebody else"),
        await chats.get_chat_by_id_and_user_id("no such chat", OWNER),
        await chats.is_chat_owner(CHAT_ID, OWNER),
        await chats.is_chat_owner(CHAT_ID, "somebody else"),
        await chats.is_chat_owner("no such chat", OWNER),
        (await chats.get_chat_by_id(CHAT_ID)).chat["title"],
        await chats.get_chat_by_id("no such chat"),
        await chats.get_chat_title_by_id(CHAT_ID),
        await chats.get_chat_title_by_id("no such chat"),
    ]


async def messages_are_read_and_patched() -> object:
    chats = host("models.chats", "Chats")
    change = {"content": "So it is."}
    upsert = chats.upsert_message_to_chat_by_id_and_message_id
    stored = await upsert(CHAT_ID, "a", change, touch=False)
    message = await chats.get_message_by_id_and_message_id(CHAT_ID, "a")
    return [
        stored is not None,
        {key: message[key] for key in ("role", "content", "parentId")},
        await upsert("no such chat", "a", change, touch=False),
        await host("models.chat_messages", "ChatMessages").get_message_by_id("none"),
    ]


async def keys_of_a_chat_are_patched() -> object:
    chats = host("models.chats", "Chats")
    stored = await chats.update_chat_by_id(CHAT_ID, {"ours": [1]}, touch=False)
    own = await chats.get_chat_by_id_and_user_id(CHAT_ID, OWNER)
    return [
        stored is not None,
        own.chat["ours"],
        own.chat["title"],
        await chats.update_chat_by_id("no such chat", {"ours": 1}, touch=False),
    ]


async def what_is_not_there_is_none() -> object:
    return [
        await host("models.groups", "Groups").get_group_by_id("no such id"),
        await host("models.groups", "Groups").get_group_by_name("no such group"),
        await host("models.users", "Users").get_user_by_id("no@such.id"),
        await host("models.users", "Users").get_user_by_email("no@such.address"),
        await host("models.files", "Files").get_file_by_id("no such file"),
        await host("models.models", "Models").get_model_by_id("no such model"),
        await host("models.config", "Config").get("no.such.key", "the default"),
    ]


async def results_of_tools_become_texts_files_and_embeds() -> object:
    process = host("utils.middleware", "process_tool_result")
    user = SimpleNamespace(id=OWNER)
    metadata = {"user_id": OWNER, "chat_id": CHAT_ID, "message_id": "a"}
    processed: list[object] = []
    for result, kind in (
        ("Sunny.", "function"),
        ({"sky": "clear"}, "function"),
        (({"sky": "clear"}, None), "external"),
        ([{"type": "text", "text": "12:00"}], "mcp"),
    ):
        text, files, embeds = await process(
            None, "tool", result, kind, False, metadata, user
        )
        read = text if not str(text).startswith("{") else json.loads(text)
        processed.append([read, files, embeds])
    return processed


async def a_tool_that_is_no_tool_of_the_host_stays() -> object:
    async def tool() -> str:
        return "Sunny."

    update = host("utils.tools", "get_updated_tool_function")
    return await (await update(function=tool, extra_params={}))()


async def sources_are_numbered() -> object:
    source = {"source": {"name": "Chronicle"}, "document": ["It froze."]}
    sources = [{**source, "metadata": [{"source": "lake"}]}]
    numbers: dict[str, int] = {"other": 1}
    text = host("utils.middleware", "get_source_context")(sources, numbers)
    return [text.strip(), numbers]


async def a_template_takes_context_and_question() -> object:
    template = "Use:\n{{CONTEXT}}\nAnswer: {{QUERY}}"
    fill = host("utils.task", "rag_template")
    return await fill(template, "The lake.", "Why?")


async def a_system_prompt_leads_the_messages() -> object:
    apply = host("utils.payload", "apply_system_prompt_to_body")
    user = SimpleNamespace(id=OWNER, name="Ada", email="a@b.c", model_dump=dict)
    metadata = {"variables": {"{{PLACE}}": "Bern"}}
    question = {"role": "user", "content": "Hi"}
    bodies: list[object] = []
    for head in ([], [{"role": "system", "content": "Be brief."}]):
        body: dict[str, Any] = {"messages": [*head, question]}
        bodies.append(await apply("Of {{PLACE}}.", body, metadata, user))
    return bodies


async def a_call_is_passed_on() -> object:
    resolve = host("utils.tool_search", "resolve_tool_call")
    own = {"call_tool": {"tool_id": "builtin:call_tool"}, "get_weather": {}}
    results: list[object] = []
    for name, tools in (
        ("get_weather", own),
        ("no_such_tool", own),
        ("get_weather", {**own, "call_tool": {"tool_id": "somebody's"}}),
    ):
        given = {"tool_name": name, "params": '{"city": "Bern"}'}
        call: dict[str, Any] = {
            "id": "c",
            "function": {"name": "call_tool", "arguments": json.dumps(given)},
        }
        error = resolve(call, tools)
        results.append([error is None, call["function"]["name"]])
    return results


async def questions_are_checked() -> object:
    check = host("utils.ask_user", "normalize_ask_user_request")
    option = {"label": "Yes", "description": "Do it."}
    options = [option, {**option, "label": "No"}]
    question = {"id": "q", "header": "May I?", "question": "May I?", "options": options}
    valid = check({"questions": [question]})
    try:
        check({"questions": []})
    except ValueError:
        return [[asked["question"] for asked in valid["questions"]], "refused"]
    return "not refused"


Call = Callable[[], Awaitable[object]]
COMPARED: dict[str, Call] = {
    call.__name__: call
    for call in (
        own_chat_is_read,
        messages_are_read_and_patched,
        keys_of_a_chat_are_patched,
        what_is_not_there_is_none,
        results_of_tools_become_texts_files_and_embeds,
        a_tool_that_is_no_tool_of_the_host_stays,
        sources_are_numbered,
        a_template_takes_context_and_question,
        a_system_prompt_leads_the_messages,
        a_call_is_passed_on,
        questions_are_checked,
    )
}


async def results() -> dict[str, Any]:
    """Return what each call gives; a failure is its class and message."""
    found: dict[str, object] = {}
    for name, call in COMPARED.items():
        try:
            found[name] = await call()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"
    plain: dict[str, Any] = json.loads(json.dumps(found))
    return plain
