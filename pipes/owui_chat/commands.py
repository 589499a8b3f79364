"""Commands that the pipe answers itself: about the server, not for a model.

Their answers name other people and how the server is set up. So a command and its answer
are left out of later requests, and of what tasks quote. Whoever may not use a command
sends it to the model like any other words. So the answer shows whether a message was a
command.
"""

import re
from collections.abc import Sequence

from openai_responses.items import message_text
from owui_chat.messages import AssistantText, ChatPart, UserMessage
from owui_chat.wording import CHECK_HEADING, NO_USAGE_HEADING, USAGE_HEADING

_HEADINGS = {
    "/check": (CHECK_HEADING,),
    "/usage": (USAGE_HEADING, NO_USAGE_HEADING, "| Your use (UTC) |"),
}
"""How the answers begin, by the command; that of `/usage` in version 1.0.0 is the last."""


def without_commands(parts: Sequence[ChatPart]) -> list[ChatPart]:
    """Return a chat without commands and their answers."""
    kept: list[ChatPart] = []
    place = -1  # of the last message that is no filter's instruction
    for part in parts:
        asked = kept[place] if place >= 0 else None
        if isinstance(part, AssistantText) and isinstance(asked, UserMessage):
            words = asked.stored.words if asked.stored else message_text(asked.item)
            command = words.split(maxsplit=1)[:1]
            headings = _HEADINGS.get(command[0].lower(), ()) if command else ()
            if headings and part.text.lstrip().startswith(headings):
                del kept[place]
                place = -1
                continue
        if not isinstance(part, UserMessage) or part.is_question:
            place = len(kept)
        kept.append(part)
    return kept


_ROLE = "(?:USER|ASSISTANT|SYSTEM|TOOL|user|assistant|assistant_final): "
_QUOTED_COMMAND = re.compile(
    # A command may have several lines. Of the last messages of a chat the first may be
    # an answer.
    f'(?:^(?:USER|user): (?:""")?\\s*/(?i:check|usage)\\b[^\n]*\n(?:(?!{_ROLE})[^\n]*\n)*'
    '|\\A|(?<=[>:]\n))(?:ASSISTANT|assistant|assistant_final): (?:""")?(?:'
    + "|".join(re.escape(each) for group in _HEADINGS.values() for each in group)
    # Up to the next message, or to what the prompt says below them.
    + f").*?(?=^{_ROLE}|^</|^#|^Query: |\\Z)",
    re.MULTILINE | re.DOTALL,
)
"""In the forms in which Open WebUI 0.12.4 quotes a chat in the prompt of a task:

    USER: /usage                 `get_messages_content` (utils/misc.py:221)
    USER: \"""/usage\"""           choice of a tool (utils/middleware.py:1031)
    user: /usage                 review of memories (utils/memory.py:505)
"""


def without_quoted_commands(prompt: str) -> str:
    """Return the prompt of a task without commands and their answers."""
    return _QUOTED_COMMAND.sub("", prompt)
