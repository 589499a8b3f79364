"""Whether updates of the configuration are where they may be.

Known: two in a row are refused (reports: langchainjs 11560, agentic-api 331); models
before GPT-6 do not know the item (vendors: pydantic-ai 2.68.0; reports: vercel/ai
20390), other servers answer with the list of the types that they know (oh-my-pi 11121);
the message for pro mode (vendors: openrouter, "gpt-6-astra"). Assumed: the other
messages, and the refusal of an empty update and of ``truncation: auto``, which one
guide of September excluded.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from simulator.accounts import Profile
from simulator.checks.shape import list_item_types
from simulator.configuration import NEWER_TYPES, is_update, list_items
from simulator.models import ModelFacts
from simulator.refusals import Refusal, refuse, refuse_unsupported_value, refuse_value

Body = Mapping[str, Any]
Item = Mapping[str, Any]


def check_configuration(body: Body, model: ModelFacts, profile: Profile) -> None:
    """Raise the refusal for the first update that is not allowed."""
    items = list_items(body)
    if not profile.accepts_appended_settings:
        for index, item in enumerate(items):
            if item.get("type") in NEWER_TYPES:
                raise refuse_newer_type(f"input[{index}]", item["type"])
        if body.get("background_options"):  # assumed
            raise refuse("unknown_parameter", path="background_options")
    for index, item in enumerate(items):
        if is_update(item):
            _check_update(item, f"input[{index}]", model)
    for index, (before, after) in enumerate(pairwise(items), 1):
        if is_update(before) and is_update(after):
            raise refuse("updates_in_a_row", index=index)
    if any(map(is_update, items)):
        if (body.get("reasoning") or {}).get("mode") == "pro":
            raise refuse("update_in_pro_mode")
        if body.get("truncation") == "auto":
            raise refuse("update_with_truncation")


def refuse_newer_type(path: str, kind: str) -> Refusal:
    """Refuse an item as a server that does not know its type."""
    known = [name for name in list_item_types() if name not in NEWER_TYPES]
    return refuse_value(f"{path}.type", kind, known)


def _check_update(item: Item, path: str, model: ModelFacts) -> None:
    if not model.takes_updates:
        raise refuse("update_of_old_model", path=path)
    effort = (item.get("reasoning") or {}).get("effort")
    if effort is None and "text" not in item:
        raise refuse("missing_parameter", path=f"{path}.reasoning")
    if effort is not None and effort not in model.efforts:
        raise refuse_unsupported_value(
            f"{path}.reasoning.effort", effort, model.id, model.efforts
        )
