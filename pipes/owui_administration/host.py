"""What only the filter uses of Open WebUI.

Each function raises HostTooOld if the host lacks a name that it needs.
"""

from inspect import signature

from openai_responses.json_input import JsonObject, as_mapping
from owui_host.lookup import HostTooOld, host_name


async def user_groups(user_id: str) -> set[str]:
    """Return the ids and names of a user's groups, with the groups above them.

    Open WebUI has groups inside of groups from 0.12 on.
    """
    read_groups = host_name("models.groups", "Groups").get_groups_by_member_id
    # 0.11.4 has no such parameter.
    if "include_inherited" in signature(read_groups).parameters:
        groups = await read_groups(user_id, include_inherited=True)
    else:
        groups = await read_groups(user_id)
    return {group.id for group in groups} | {group.name for group in groups}


async def has_group(name: str) -> bool:
    """Say whether a group has this id or name."""
    groups = host_name("models.groups", "Groups")
    by_id = await groups.get_group_by_id(name)
    return bool(by_id or await groups.get_group_by_name(name))


async def has_user(name: str) -> bool:
    """Say whether a user has this id or address."""
    users = host_name("models.users", "Users")
    by_id = await users.get_user_by_id(name)
    return bool(by_id or await users.get_user_by_email(name))


async def find_user_id(email: str) -> str:
    """Return the id of the user who has an address; nothing if no one has it."""
    user = await host_name("models.users", "Users").get_user_by_email(email)
    return str(user.id) if user else ""


def exports_telemetry() -> bool:
    """Say whether the host exports spans or metrics; an older one says nothing."""
    try:
        traces = host_name("env", "ENABLE_OTEL_TRACES")
        metrics = host_name("env", "ENABLE_OTEL_METRICS")
        return bool(host_name("env", "ENABLE_OTEL") and (traces or metrics))
    except HostTooOld:
        return False


async def stored_valves(filter_id: str) -> JsonObject | None:
    """Return the valves of a filter as they are stored; None if they cannot be read.

    The host gives a filter its defaults then (models/functions.py:360 of 0.12.4).
    """
    functions = host_name("models.functions", "Functions")
    stored = await functions.get_function_valves_by_ids([filter_id])
    return as_mapping(stored[filter_id]) if filter_id in stored else None
