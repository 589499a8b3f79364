"""What Open WebUI tells of a conversation in the system prompt: no instruction.

It stores a summary of a long chat with the chat, where the owner of the chat can write
any text, and an imported chat brings its own. It appends what it finds to the system
prompt (utils/middleware.py:2163 of 0.12.4). For a model that is mentioned in a channel,
it puts what all members wrote into the system prompt (routers/channels.py:1344). Here
both are taken out again: the model reads them as a message of the user.

A heading alone decides nothing, because people can write it, too: as their name, which
an administrator's prompt may contain as `{{USER_NAME}}`. But the prompt of a stored
model comes in front of all else, as the last thing that Open WebUI adds
(functions.py:275). So a heading counts only after that prompt.
"""

import re
from collections.abc import Mapping, Sequence

SUMMARY_HEADING = "[CONVERSATION SUMMARY]\n"
THREAD_HEADING = "Here's the thread history:\n"

CLOCKS: Mapping[str, str] = {
    "{{CURRENT_TIME}}": "\ue000",
    "{{CURRENT_DATETIME}}": "\ue001",
}
"""Variables whose values differ when a prompt is rendered again, and what stands for
them then: characters of private use."""
_LENGTHS = {"\ue000": len("01:23:45 PM"), "\ue001": len("2026-11-28 01:23:45 PM")}
"""Of their values (utils/task.py:88)."""
_CLOCK = re.compile(r"([\ue000\ue001]|\d\d:\d\d:\d\d [AP]M)")
"""Those characters, and a time: a variable of the page may itself be such a variable."""


def take_conversation(
    instructions: str, heading: str, model_prompt: str | None
) -> tuple[str, str]:
    """Return the instructions without what follows a heading, and that, or nothing.

    `model_prompt` is the prompt of the stored model as it was rendered again, with the
    characters of CLOCKS; None if it is not known. If the instructions do not begin with
    it, nothing can be told apart, and all of them stay.

    The heading decides, not what is stored: Open WebUI takes a summary from a key of a
    message, from an item of an answer, or from a column that the chat's row lacks
    (utils/context_compaction.py:309, models/chat_messages.py:275). What it appended
    after the summary goes with it: where that begins, only its owner could say.
    """
    begin = None if model_prompt is None else _length_of(model_prompt, instructions)
    if begin is None:
        return instructions, ""
    found = instructions.find(heading, begin)
    if found < 0:
        return instructions, ""
    return instructions[:found].rstrip("\n"), instructions[found:]


def _length_of(model_prompt: str, instructions: str) -> int | None:
    """Return how long the prompt of the model is in the instructions, None if it differs."""
    pieces: Sequence[str] = _CLOCK.split(model_prompt)
    length = 0
    for piece in pieces:
        # In the instructions a clock has its value. So such a character there is text, as
        # of a user's name.
        if instructions.startswith(piece, length):
            length += len(piece)
        elif _CLOCK.fullmatch(piece):
            length += _LENGTHS.get(piece, len(piece))
        else:
            return None
    return length
