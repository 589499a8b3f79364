"""The wishes "Add Details" and "More Concise" for a new version of an answer.

The page sends the words of its own language as a last user message, after the old
answer from 0.12 on, before that after the question (docs/reference/open-webui.md,
"Around the user's message"). If the model has a verbosity, that is set instead. The
request then ends with the question and begins like the request of the old answer, so
the prompt cache and the earlier reasoning stay valid. The old answer is not sent,
because the new one replaces it. A wish in a user's own words is left to the model.
"""

from collections.abc import Sequence

from openai_responses.digest import hex_digest
from openai_responses.items import message_text
from owui_chat.input.directive_words import CONCISE, DETAILED
from owui_chat.messages import ChatPart, user_messages


def words_digest(words: str) -> str:
    """Return the key of the table for words of the page."""
    return hex_digest(words.strip())[:6]


def take_directive(
    parts: Sequence[ChatPart], *, is_guided: bool
) -> tuple[list[ChatPart], str]:
    """Return the chat up to its question, and the requested verbosity.

    Without such a wish the chat is unchanged and the verbosity empty. `is_guided` says
    that the host announced a wish, as hosts do from 0.12 on.
    """
    users = user_messages(parts)
    if len(users) < 2:
        return list(parts), ""
    question, wish = list(users)[-2:]
    digest = words_digest(message_text(users[wish].item))
    verbosity = ""
    if digest in DETAILED.split():
        verbosity = "high"
    elif digest in CONCISE.split():
        verbosity = "low"
    # Before 0.12 the wish comes directly after the question, and nothing announces it.
    is_announced = is_guided or wish == question + 1
    if not verbosity or not is_announced:
        return list(parts), ""
    return [*parts[: question + 1], *parts[wish + 1 :]], verbosity
