"""What the pipe counts on in Open WebUI, name by name, and how a server is asked for it."""

import json
from pathlib import Path

from hosts.people.client import Json
from hosts.people.users import User
from hosts.servers.offline import OLDEST

PIPES = Path(__file__).resolve().parents[2] / "pipes"
TESTKIT = Path(__file__).resolve().parents[1]
PROBE = TESTKIT / "hosts/plugins/contract_probe.py"

# A value: its type. A callable: the arguments the pipe gives, `async` if it awaits.
PROMISED = {
    "env:DATA_DIR": "PosixPath",
    "env:ENABLE_OTEL": "bool",
    "env:ENABLE_OTEL_METRICS": "bool",
    "env:ENABLE_OTEL_TRACES": "bool",
    "env:ENABLE_FORWARD_USER_INFO_HEADERS": "bool",
    "env:FORWARD_SESSION_INFO_HEADER_CHAT_ID": "str",
    "env:VERSION": "str",
    "env:WEBUI_SECRET_KEY": "str",
    "env:BASE_DIR": "PosixPath",
    "env:DATABASE_SCHEMA": "NoneType",
    "env:DATABASE_URL": "str",
    "env:STATIC_DIR": "PosixPath",
    "config:CACHE_DIR": "PosixPath",
    "config:UPLOAD_DIR": "PosixPath",
    "functions:Response": "type",
    "functions:StreamingResponse": "type",
    "internal.db:get_async_db": "()",
    "main:app.state": "State",
    "models.groups:Groups.get_group_by_id": "async (id)",
    "models.groups:Groups.get_group_by_name": "async (name)",
    "models.groups:Groups.get_groups_by_member_id": "async (user_id)",
    "models.config:Config.get": "async (key, default)",
    "models.functions:Functions.get_functions_by_type": "async (type)",
    "models.functions:Functions.get_function_valves_by_ids": "async (ids)",
    "models.files:Files.get_file_by_id": "async (id)",
    "models.models:ModelForm": "ModelMetaclass",
    "models.models:Models.get_model_by_id": "async (id)",
    "models.models:Models.update_model_by_id": "async (id, model)",
    "models.users:Users.get_user_by_email": "async (email)",
    "models.users:Users.get_user_by_id": "async (id)",
    "storage.provider:Storage.get_file": "(file_path)",
    "utils.filter:FilterContext.get_active_filters": "async (self)",
    "utils.filter:get_filter_context": "(request)",
    "utils.filter:get_function_module": "async (request, function_id)",
    "utils.headers:include_user_info_headers": "(headers, user, *, request)",
    "utils.headers:get_custom_headers": "async (custom_headers, user, metadata, *, request)",
    "utils.middleware:get_system_oauth_token": "async (request, user)",
    "utils.access_control:has_permission": (
        "async (user_id, permission_key, default_permissions)"
    ),
    "utils.access_control.files:has_access_to_file": (
        "async (file_id, access_type, user)"
    ),
    "utils.middleware:build_terminal_file_tool_result": (
        "(tool_function_name, tool_function_params, tool_result, tool, metadata)"
    ),
    "utils.middleware:get_citation_source_from_tool_result": (
        "(tool_name, tool_params, tool_result, tool_id)"
    ),
    "utils.middleware:get_source_context": "(sources, source_ids)",
    "utils.middleware:process_tool_result": (
        "async (request, tool_function_name, tool_result, tool_type, direct_tool,"
        " metadata, user)"
    ),
    "utils.middleware:store_tool_result_image": (
        "async (request, image_url, metadata, user)"
    ),
    "utils.middleware:terminal_event_handler": (
        "async (tool_function_name, tool_function_params, tool_result, event_emitter)"
    ),
    "utils.models:BASE_MODELS_CACHE_KEY": "str",
    "utils.payload:apply_system_prompt_to_body": (
        "async (system, form_data, metadata, user)"
    ),
    "utils.ask_user:normalize_ask_user_request": "(arguments)",
    "utils.task:rag_template": "async (template, context, query)",
    "utils.tool_approval:complete_tool_call": (
        "async (chat_id, message_id, call, result)"
    ),
    "utils.tool_search:resolve_tool_call": "(tool_call, tools)",
    "utils.tools:get_updated_tool_function": "async (*, function, extra_params)",
    "models.chat_messages:ChatMessages.get_message_by_id": "async (id)",
    "models.chats:Chats.add_message_files_by_id_and_message_id": (
        "async (id, message_id, files)"
    ),
    "models.chats:Chats.get_chat_title_by_id": "async (id)",
    "models.chats:Chats.get_messages_map_by_chat_id": "async (id)",
    "models.chats:Chats.get_message_by_id_and_message_id": "async (id, message_id)",
    "models.chats:Chats.upsert_message_to_chat_by_id_and_message_id": (
        "async (id, message_id, message, *, touch)"
    ),
    "models.chats:Chats.is_chat_owner": "async (id, user_id)",
    "models.chats:Chats.get_chat_by_id": "async (id)",
    "models.chats:Chats.get_chat_by_id_and_user_id": "async (id, user_id)",
    "models.chats:Chats.update_chat_by_id": "async (id, chat, *, touch)",
    "models.chats:Chats.insert_chat_files": (
        "async (*, chat_id, message_id, file_ids, user_id)"
    ),
    "routers.files:HTTPException": "type",
    "routers.files:UploadFile": "type",
    "routers.files:upload_file_handler": (
        "async (request, *, file, metadata, process, user)"
    ),
}
NEW_IN_0_12 = (
    "utils.tool_approval:complete_tool_call",
    "utils.tool_search:resolve_tool_call",
)
"""Without them the host is asked for nothing that they are for."""
BROKEN = [
    ("env:NO_SUCH_NAME", "str"),
    ("no.such.module:Chats", "str"),
    ("env:VERSION", "int"),
    ("models.chats:Chats.no_such_method", "async (id)"),
    ("models.chats:Chats.update_chat_by_id", "(id, chat, *, touch)"),
    ("models.chats:Chats.update_chat_by_id", "async (chat, id, *, touch)"),
    ("models.chats:Chats.update_chat_by_id", "async (id, chat, *, touched)"),
    ("models.chats:Chats.update_chat_by_id", "async (id, chat, db, touch)"),
    ("models.chats:Chats.update_chat_by_id", "async (id, *, touch)"),
]


async def asked_for_promises(admin: User) -> Json:
    """What a server of one version says about itself."""
    await admin.install_function("contract", PROBE.read_text())
    await admin.models()  # the list that the server looks models up in
    packages = [str(PIPES), str(TESTKIT)]
    asked = {"packages": packages, "promises": [*PROMISED.items(), *BROKEN]}
    answer = await admin.complete("contract.check", json.dumps(asked))
    await admin.delete_function("contract")
    report: Json = json.loads(answer)
    return report


def assert_promises_are_kept(report: Json) -> None:
    """Every name is there and takes what the pipe gives; every lie is found."""
    broken = [tuple(row[:2]) for row in report["broken"]]
    missing: list[tuple[str, str]] = []
    if report["version"] == OLDEST:
        missing = [(name, PROMISED[name]) for name in NEW_IN_0_12]
    assert broken == [*missing, *BROKEN], report["broken"]


def assert_a_chat_is_its_owners(report: Json) -> None:
    """One top-level key is replaced whole, and the chat does not move in the list.

    No one else reads it, and nothing is written where no chat is.
    """
    seen = report["chat"]
    assert seen["before"]["history"]["messages"]["a"]["content"] == "So."
    assert seen["after"] == seen["before"] | {"ours": {"second": 2}}
    assert seen["updated_at"] == 1
    assert seen["to somebody else"] is None
    assert seen["stored"] == [True, True, False]
