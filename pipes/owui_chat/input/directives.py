"""The wishes "Add Details" and "More Concise" for an answer that is given anew.

The page sends the words of its own language as a last message of the user
(`regeneration_prompt`, utils/middleware.py:2146), behind the old answer from 0.12 on,
behind the question before. A model that has a verbosity is asked with it instead: what
is sent then ends on the question and begins as the old answer's request did, so that
the prompt cache and the reasoning before it hold. The old answer is not sent, because
the new one takes its place.
"""

from collections.abc import Sequence
from hashlib import sha256

from openai_responses.items import message_text
from owui_chat.input.directive_words import CONCISE, DETAILED
from owui_chat.messages import ChatPart, UserMessage, user_messages

DIGITS = 8


def words_digest(words: str) -> str:
    """Return what stands in the table for words of the page."""
    return sha256(words.strip().encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def take_directive(
    parts: Sequence[ChatPart], *, is_guided: bool
) -> tuple[list[ChatPart], str]:
    """Return the chat up to its question, and the verbosity that was wished for.

    Without such a wish the chat stays as it is, and the verbosity is empty. `is_guided`
    says that the host told of a wish; an older one does not, but puts it right behind
    the question. A wish in a person's own words is left to the model.
    """
    users = user_messages(parts)
    question, wish = users[-2:] if len(users) > 1 else (0, 0)
    verbosity = _requested_verbosity(parts[wish]) if wish else ""
    if not verbosity or not (is_guided or wish == question + 1):
        return list(parts), ""
    return [*parts[: question + 1], *parts[wish + 1 :]], verbosity


def _requested_verbosity(part: ChatPart) -> str:
    """Return the verbosity that a message asks for with the words of the page."""
    digest = words_digest(
        message_text(part.item) if isinstance(part, UserMessage) else ""
    )
    if digest in DETAILED.split():
        return "high"
    return "low" if digest in CONCISE.split() else ""
