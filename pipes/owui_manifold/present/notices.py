"""Notices above an answer.

They are about models with legacy function calling, models that will be shut down,
settings that cannot be read or have no effect, and the administration's limits.
"""

from openai_responses.clock import utc_today
from openai_responses.json_input import as_mapping, as_text, parse_json_object, value_at
from openai_responses.models.choice import retirement_notice
from openai_responses.models.resolve import resolve_model
from owui_manifold.call.callers import opening_error
from owui_manifold.call.context import CheckedCall
from owui_manifold.host.open_webui import is_legacy_model, make_native
from owui_manifold.prepare.hosted_tools import unused_search_budget
from owui_manifold.prepare.request import PreparedRequest

_HOW = (
    "Open WebUI runs this model's tools in its legacy way: before it asks the model, "
    "and without its reasoning."
)
_ADVICE = (
    " Set Function Calling to Native in the model's advanced parameters, or switch on "
    "AUTO_NATIVE_TOOLS in the valves of this pipe."
)
_DONE = " AUTO_NATIVE_TOOLS has set it to Native, from the next message on."


async def _legacy_notice(call: CheckedCall) -> str:
    """Return the notice about legacy function calling, once, for administrators."""
    if value_at(call.host.metadata, "params", "function_calling") != "legacy":
        return ""
    if not await is_legacy_model(call.model_id):
        return ""
    changed = call.valves.AUTO_NATIVE_TOOLS and await make_native(call.model_id)
    advice = _DONE if changed else _ADVICE
    notice = f"{_HOW}{advice}"
    is_shown = _is_first_notice(call, f"{call.model_id}: {notice}")
    return notice if is_shown else ""


def _valve_notices(call: CheckedCall) -> list[str]:
    """Log errors in valves; return the notices for this chat.

    Only administrators see any. What is left out or asked about because of an error is
    shown at every answer; what only has no effect is mentioned once in the log and once
    in a chat.
    """
    servers = call.config.remote
    complaints = (*servers.complaints, *call.config.problems)
    for complaint in complaints:
        call.log.warn(complaint)
    options = as_mapping(parse_json_object(call.valves.IMAGE_GENERATION_OPTIONS))
    drawing = resolve_model(as_text(options.get("model")))
    end = retirement_notice(drawing, utc_today())
    image = end and f"IMAGE_GENERATION_OPTIONS: {end}"
    every_note = (
        *servers.notes,
        opening_error(call.config.expert),
        image,
        unused_search_budget(call.config, call.model),
    )
    notes = [note for note in every_note if note and _is_first_notice(call, note)]
    if not call.caller.is_admin:
        return notes
    return [*complaints, *notes]


def _is_first_notice(call: CheckedCall, notice: str) -> bool:
    """Log a notice once; say whether to show it, once, to an administrator."""
    call.warn_once(notice)
    return call.caller.is_admin and call.capabilities.first_time(f"chat: {notice}")


def _refusal_notice(call: CheckedCall) -> str:
    """Return the notice about a user's own settings without effect, once each."""
    if not call.caller.host_reads:  # no page shows it
        return ""
    user = call.caller.user_id
    is_new = call.capabilities.first_time
    names = [name for name in call.config.refused if is_new(f"{user}: {name}")]
    if not names:
        return ""
    listed = ", ".join(names)
    call.log.line("INFO", f"user {user} may not change {listed}")
    shown = listed.replace("_", " ").title()
    return f"No effect, because only administrators may change it: {shown}"


async def notices_of(prepared: PreparedRequest) -> list[str]:
    """Return the notices to show; tasks have none."""
    call = prepared.call
    if call.caller.task:
        return []
    retirement = retirement_notice(call.chosen_model, utc_today(), call.model)
    notices = [_refusal_notice(call), retirement, *_valve_notices(call)]
    notices.append(await _legacy_notice(call))
    if call.account:
        notices += call.account.limits.notices()
    return list(filter(None, [*notices, *prepared.notices]))
