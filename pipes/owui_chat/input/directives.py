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
from owui_chat.messages import Said, Stretch

DIGITS = 8


def words_digest(words: str) -> str:
    """Return what stands in the table for words of the page."""
    return sha256(words.strip().encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def without_directive(
    stretches: Sequence[Stretch], *, is_guided: bool
) -> tuple[list[Stretch], str]:
    """Return the chat up to its question, and the verbosity that was wished for.

    Without such a wish the chat stays as it is, and the verbosity is empty. `is_guided`
    says that the host told of a wish; an older one does not, but puts it right behind
    the question. A wish in a person's own words is left to the model.
    """
    users = [place for place, stretch in enumerate(stretches) if _is_asked(stretch)]
    question, wish = users[-2:] if len(users) > 1 else (0, 0)
    verbosity = _wished(stretches[wish]) if wish else ""
    if not verbosity or not (is_guided or wish == question + 1):
        return list(stretches), ""
    return [*stretches[: question + 1], *stretches[wish + 1 :]], verbosity


def _is_asked(stretch: Stretch) -> bool:
    return isinstance(stretch, Said) and stretch.item.get("role") == "user"


def _wished(stretch: Stretch) -> str:
    """Return the verbosity that a message asks for with the words of the page."""
    digest = words_digest(
        message_text(stretch.item) if isinstance(stretch, Said) else ""
    )
    if digest in DETAILED.split():
        return "high"
    return "low" if digest in CONCISE.split() else ""
