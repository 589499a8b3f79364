"""The only module of this filter that uses `open_webui`.

Its names are looked up here, when they are used: the filter still loads if an older
host lacks one.
"""

from importlib import import_module
from inspect import signature
from typing import Any


class HostTooOld(RuntimeError):
    """This Open WebUI lacks what the filter needs."""


def _host_name(module: str, name: str) -> Any:
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise HostTooOld(
            f"This Open WebUI has no {module}.{name}, which the filter needs. An "
            "administrator has to update Open WebUI."
        ) from None


async def user_groups(user_id: str) -> set[str]:
    """Return the ids and names of a user's groups, with the groups above them.

    Open WebUI has groups inside of groups from 0.12 on.
    """
    groups = _host_name("models.groups", "Groups")
    knows = signature(groups.get_groups_by_member_id).parameters.keys()
    above = dict.fromkeys(knows & {"include_inherited"}, True)
    found = await groups.get_groups_by_member_id(user_id, **above)
    return {name for group in found for name in (group.id, group.name)}
