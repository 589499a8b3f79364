"""The commands of a chat, `/check` and `/usage`, which no model answers.

What `/check` finds is in `run/checkup.py`, what was used in the administration's filter.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from openai_responses.endings import COMPLETED
from openai_responses.items import Item
from openai_responses.json_input import as_list, as_mapping, as_text, value_at
from openai_responses.loop.events import RunDone, RunEvent
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.wording import NO_USAGE_HEADING
from owui_host.files import store_file
from owui_host.users import user_model
from owui_manifold.call.context import Call

CHECK_COMMAND = "/check"
"""What an administrator sends; from others it goes to the model."""
_USAGE_COMMAND = "/usage"
_NO_RULES = (
    f"{NO_USAGE_HEADING}because the filter OpenAI Responses Administration is not "
    "installed, or its USER_LIMITS_JSON is empty. An administrator can change that "
    "(docs/limits.md)."
)
_CHECK_TITLE = '{"title": "Setup check"}'
"""In the form that the host reads."""
_TASKS_ABOUT_ANSWERS = frozenset(
    {"title_generation", "tags_generation", "follow_up_generation"}
)


def command_task_text(call: Call) -> str | None:
    """Return what answers a task about the answer to a command; None for other tasks.

    No one pays for the title of a `/check` or `/usage`. Without a text the host takes
    the command as the title, and leaves out tags and follow-ups. The chat itself is in
    the host's `task_body`; the task's prompt quotes it, but anybody can write a quote.
    """
    if call.caller.task not in _TASKS_ABOUT_ANSWERS:
        return None
    rows = as_list(value_at(call.host.metadata, "task_body", "messages"))
    command = ""
    for row in rows:
        message = as_mapping(row)
        if message.get("role") == "user":
            command = _normalize_command(as_text(message.get("content")))
    if command == CHECK_COMMAND and call.caller.is_admin:
        is_title = call.caller.task == "title_generation"
        return _CHECK_TITLE if is_title else ""
    return "" if _asks_for_usage(command) else None


def _asks_for_usage(command: str) -> bool:
    """Say whether somebody asks for usage, whether or not it is counted."""
    return command.split(maxsplit=1)[:1] == [_USAGE_COMMAND]


def _normalize_command(text: str) -> str:
    """Return a text; a command in lower case, with single spaces."""
    stripped = text.strip()
    if not stripped.lower().startswith((CHECK_COMMAND, _USAGE_COMMAND)):
        return stripped
    return " ".join(stripped.lower().split())


def read_command(messages: Sequence[object]) -> str:
    """Return the text of the message to answer; empty if that is not the user's.

    A command is in lower case, because telephones begin with a capital letter.
    """
    # The messages are not checked yet: one may be anything.
    last = as_mapping(messages[-1]) if messages else {}
    if last.get("role") != "user":
        return ""
    return _normalize_command(as_text(last.get("content")))


def usage_lines(call: Call, command: str) -> AsyncGenerator[str, None] | None:
    """Return the lines that answer `/usage`; None for other texts."""
    caller = call.caller
    request = call.host.request

    async def save_file(name: str, text: str) -> str:
        user = await user_model(caller.user_id)
        if user is None:
            return ""
        entry = await store_file(request, name, text.encode(), caller.place, user)
        return str(entry["url"]) if entry else ""

    async def uncounted_lines() -> AsyncGenerator[str, None]:
        yield _NO_RULES

    if call.account:
        # A page shows the file; a program and a channel get the text itself.
        has_files = caller.has_page and not caller.is_in_channel and request is not None
        lines = call.account.limits.usage_answer(
            command, save_file if has_files else None
        )
        if lines:
            return lines
    return uncounted_lines() if _asks_for_usage(command) else None


async def stream_lines(
    lines: AsyncGenerator[str, None],
) -> AsyncGenerator[RunEvent, None]:
    """Yield lines as the text of an answer, as soon as each is there."""
    message: Item = {"type": "message", "role": "assistant", "content": []}
    yield ItemAdded(0, message)
    text = ""
    async with aclosing(lines):
        async for line in lines:
            text += line + "\n"
            yield TextDelta(0, "text", 0, line + "\n")
    content = [{"type": "output_text", "text": text, "annotations": []}]
    whole = {**message, "content": content}
    yield ItemDone(0, whole, shown=text)
    yield RunDone(COMPLETED, output=(whole,))
