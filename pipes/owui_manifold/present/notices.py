"""The notices about an answer: status lines that come after its end.

They are about models with legacy function calling, code that stays text there, models
that will be shut down, settings that cannot be read or have no effect, and the
administration's limits.
"""

from openai_responses.json_input import as_list, value_at
from openai_responses.redaction import hide_keys
from owui_manifold.call.callers import caller_may_set_error
from owui_manifold.call.config import calls_are_legacy
from owui_manifold.call.context import Call
from owui_manifold.host.open_webui import is_legacy_model, make_native
from owui_manifold.prepare.hosted_tools import image_model_name, unused_search_budget
from owui_manifold.prepare.request import Prepared

_LEGACY_TOOLS = (
    "Open WebUI runs this model's tools in its legacy way: before it asks the model, "
    "and without its reasoning."
)
_HOW_TO_CHANGE = (
    " Set Function Calling to Native in the model's advanced parameters, or switch on "
    "AUTO_NATIVE_TOOLS in the valves of this pipe."
)
_IS_CHANGED = " AUTO_NATIVE_TOOLS has set it to Native, from the next message on."


async def _legacy_notice(call: Call) -> str:
    """Return the notice about legacy function calling, once, for administrators."""
    if not calls_are_legacy(call.host.metadata):
        return ""
    if not await is_legacy_model(call.model_id):
        return ""
    changed = call.valves.AUTO_NATIVE_TOOLS and await make_native(call.model_id)
    advice = _IS_CHANGED if changed else _HOW_TO_CHANGE
    notice = f"{_LEGACY_TOOLS}{advice}"
    is_shown = _is_first_notice(call, f"{call.model_id}: {notice}")
    return notice if is_shown else ""


_CODE_STAYS_TEXT = (
    "Open WebUI's Code Interpreter runs nothing here: with Function Calling set to "
    "Legacy, code in its tags stays text. Set Function Calling to Native in the chat's "
    "controls or in the model's advanced parameters."
)


def _code_notice(call: Call) -> str:
    """Return the notice that code in tags stays text, once in a chat.

    The host looks for the tags in chunks of Chat Completions alone
    (docs/reference/open-webui.md, "Tags in texts").
    """
    metadata = call.host.metadata
    is_on = bool(value_at(metadata, "features", "code_interpreter"))
    if not is_on or not calls_are_legacy(metadata):
        return ""
    call.warn_once(_CODE_STAYS_TEXT)
    is_new = call.memory.first_time(f"code in tags: {call.caller.chat_id}")
    return _CODE_STAYS_TEXT if is_new else ""


_OLD_NAMES = "`/check` explains stored valves without effect: {}."


def _is_first_notice(call: Call, notice: str) -> bool:
    """Log a notice once; say whether to show it, once, to an administrator."""
    call.warn_once(notice)
    return call.caller.reads_reasons and call.memory.first_time(f"chat: {notice}")


def refusal_notice(call: Call) -> str:
    """Return the notice about a user's own settings without effect, once each.

    It is above the last line of the answer, which tells more.
    """
    if not call.caller.has_page:  # which shows it
        return ""
    user_id = call.caller.user_id
    new: list[str] = []
    for name in call.config.refused:
        if call.memory.first_time(f"{user_id}: {name}"):
            new.append(name)
    if not new:
        return ""
    names = ", ".join(new)
    call.log.note(f"user {user_id} may not change {names}")
    shown = names.replace("_", " ").title()
    return f"Only administrators may change this, so it has no effect: {shown}"


def _retirement(prepared: Prepared) -> str:
    """Return the notice about the end of the model, once in each chat.

    The log has it every day. What the page has shown it stores with the answer, so a
    restart of the server changes nothing.
    """
    call = prepared.call
    is_task = bool(call.caller.task)
    notice = call.retirement(prepared.request.model if is_task else call.caller.model)
    if not notice:
        return ""
    call.warn_once(notice)
    if is_task:  # it comes before the answer, and shows nothing
        return ""
    rows = prepared.row.chat.messages.values() if prepared.row else ()
    for row in rows:
        for status in as_list(value_at(row, "statusHistory")):
            if value_at(status, "description") == notice:
                return ""
    is_new = call.memory.first_time(f"chat {call.caller.chat_id}: {notice}")
    return notice if is_new else ""


async def notices_of(prepared: Prepared) -> list[str]:
    """Return the notices to show after the answer's last line; tasks have none.

    The page shows only the last one, so the most serious one comes last.
    """
    call = prepared.call
    retirement = _retirement(prepared)  # of a task, the log tells it
    if call.caller.task:
        return []
    # What has no effect in valves: once in the log, once for administrators.
    servers = call.config.remote
    image_end = call.retirement(image_model_name(call.config))
    names = ", ".join(call.valves.without_effect())
    notes = (
        _OLD_NAMES.format(names) if names else "",
        *servers.notes,
        caller_may_set_error(call.config.expert),
        f"IMAGE_GENERATION_OPTIONS: {image_end}" if image_end else "",
        unused_search_budget(call.config, call.model),
    )
    notices = [note for note in notes if note and _is_first_notice(call, note)]
    notices += [await _legacy_notice(call), _code_notice(call)]
    if call.account:
        notices += call.account.limits.notices()
    notices.append(retirement)
    notices += prepared.notices
    if call.account and call.caller.reads_reasons:
        notices += call.account.limits.complaints()
    # Errors in valves: administrators see them at every answer, no one else does. An
    # unreadable rule for approvals is the worst; `Config.problems` begins with it.
    errors = (*call.config.problems, *servers.problems)
    for error in errors:
        call.log.warn(error)
    if call.caller.reads_reasons:
        notices += reversed(errors)
    return [hide_keys(notice) for notice in notices if notice]
