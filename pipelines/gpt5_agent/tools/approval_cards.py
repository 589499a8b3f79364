"""What the user sees of a call before they allow it: always the whole call.

The card of the host's `ask_user` shows a question of 500 characters on one line, as
plain text in which spaces run together (Open WebUI 0.12.4: utils/ask_user.py cuts it,
and AskUserCard.svelte shows it). A call that does not fit is shown above the card, in a
block of code that its text cannot leave. One that is too long even for that is not put
to anybody: the model is told to split it.
"""

import json
from typing import Any

from gpt5_agent.events import ToolCallRequested
from owui_chat.wording import code_block, with_escapes

ALLOW_LABEL = "Allow"
ALLOW_CHAT_LABEL = "Allow for this chat"
DENY_LABEL = "Deny"

_MAX_CARD_CHARACTERS = 500
"""Of a longer question the host shows the beginning, as if it were all."""
_MAX_BLOCK_CHARACTERS = 20_000
"""More than anybody reads, and about what the page still shows at once."""
_MAX_WIRE_CHARACTERS = 3 * _MAX_BLOCK_CHARACTERS
"""In JSON a character of a text takes at most two, or its escape."""
_LINE_CHARACTERS = 80
"""A longer line is broken: in a block of code its end is out of sight."""
_CONTINUED = "\N{RIGHTWARDS ARROW WITH HOOK}"
"""Precedes the rest of a line that was broken."""
_REFERENCE_CHARACTERS = 4
"""Of the confirmation id, which the card and the block above it have in common."""


def build_card_question(request: ToolCallRequested) -> dict[str, Any]:
    """Return a question in the form of the host's `ask_user`."""
    # The page recommends the first (tools/builtin.py, ask_user).
    options = [
        {"label": DENY_LABEL, "description": "Do not make this call."},
        {"label": ALLOW_LABEL, "description": "Make this call, once."},
    ]
    if request.coverage:
        options.append({"label": ALLOW_CHAT_LABEL, "description": request.coverage})
    text = _card_text(request)
    return {
        "id": request.confirmation_id,
        "header": "Approve a tool",
        "question": text if _fits_card(text) else _reference_text(request),
        "options": options,
        "allow_other": False,
    }


def call_above_card(request: ToolCallRequested) -> str:
    """Return what has to be shown above the card; empty if the card shows the call."""
    if _fits_card(_card_text(request)):
        return ""
    heading = f"**Needs your approval ({card_reference(request)}):**"
    block = code_block(_call_as_text(request), "text")  # the page runs no `text`
    return f"{heading}\n\n{block}"


def is_too_long_to_show(request: ToolCallRequested) -> bool:
    """Say whether neither the card nor the block above it can show the whole call."""
    # A server may write megabytes, which take seconds to be written for people.
    if len(json.dumps(request.args, ensure_ascii=False)) > _MAX_WIRE_CHARACTERS:
        return True
    if _fits_card(_card_text(request)):
        return False
    if not _fits_card(_reference_text(request)):  # the name is that long
        return True
    return len(_call_as_text(request)) > _MAX_BLOCK_CHARACTERS


def one_line_json(value: object) -> str:
    """Return a value as JSON on one line, with nothing in it that cannot be seen."""
    return with_escapes(json.dumps(value, ensure_ascii=False, default=str))


def _card_text(request: ToolCallRequested) -> str:
    """Return the question with the whole call."""
    return f"{_question(request)} With: {one_line_json(request.args)}"


def _reference_text(request: ToolCallRequested) -> str:
    """Return the question about a call that is shown above the card."""
    reference = card_reference(request)
    return f"{_question(request)} The whole call is above, marked {reference}."


def _question(request: ToolCallRequested) -> str:
    warning = request.security_warning or {}
    question = f"May {with_escapes(request.tool_name)} be called?"
    return f"{question} {warning.get('reason', '')}".rstrip()


def _fits_card(text: str) -> bool:
    """Say whether the card shows a text as it is: it makes one space of several."""
    return len(text) <= _MAX_CARD_CHARACTERS and "  " not in text


def card_reference(request: ToolCallRequested) -> str:
    """Return what a card and the call above it have in common."""
    return request.confirmation_id[:_REFERENCE_CHARACTERS]


def _call_as_text(request: ToolCallRequested) -> str:
    """Return a call on several lines: its name, then each argument."""
    lines = [with_escapes(request.tool_name)]
    for name, value in request.args.items():
        shown_name = with_escapes(name)
        if isinstance(value, str) and "\n" in value:
            # The indent of a text keeps it from looking like other arguments.
            lines.append(f"  {shown_name}:")
            for line in value.split("\n"):
                lines.append(f"    {with_escapes(line.expandtabs(4))}")
        else:
            lines.append(f"  {shown_name}: {one_line_json(value)}")

    # The page shows each line without scrolling sideways.
    parts: list[str] = []
    for line in lines:
        parts.append(line[:_LINE_CHARACTERS])
        for start in range(_LINE_CHARACTERS, len(line), _LINE_CHARACTERS):
            parts.append(f"{_CONTINUED} {line[start : start + _LINE_CHARACTERS]}")
    return "\n".join(parts)
