"""Which stored message each message of the user in a request is.

A request names none of its messages; the chat's row holds them as a tree.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from owui_chat.messages import Said, Stretch


@dataclass(frozen=True, slots=True)
class Paired:
    """A message of the user as the row holds it, and the id of the answer to it."""

    message: Mapping[str, Any]
    answer_id: str

    @property
    def words(self) -> str:
        """What the user wrote."""
        content = self.message.get("content")
        return content if isinstance(content, str) else ""


def paired_messages(
    stretches: Sequence[Stretch],
    messages: Mapping[str, Any],
    metadata: Mapping[str, Any],
) -> dict[int, Paired]:
    """Return the stored messages by their places in the chat.

    `messages` are those of the chat's row, by id; the answer to the last one is asked.
    """
    places = users_places(stretches)
    if metadata.get("regeneration_message_id"):
        places = places[:-1]  # the wish how to answer anew is in no chat
    asked, answer = map(metadata.get, ("user_message_id", "message_id"))
    chain = _users_chain(messages, str(asked or ""), str(answer or ""))
    # The host may have left out the oldest messages: they are paired from the end.
    return dict(zip(reversed(places), chain, strict=False))


def users_places(stretches: Sequence[Stretch]) -> list[int]:
    """Return where the messages of the user stand."""
    return [
        place
        for place, stretch in enumerate(stretches)
        if isinstance(stretch, Said) and stretch.item.get("role") == "user"
    ]


def _users_chain(
    messages: Mapping[str, Any], message_id: str, answer_id: str
) -> Iterator[Paired]:
    """Yield the user's messages from `message_id` back to the first."""
    seen = set[str]()
    while isinstance(message := messages.get(message_id), Mapping):
        if message_id in seen:
            return
        seen.add(message_id)
        if message.get("role") == "user":
            yield Paired(message, answer_id)
            answer_id = ""
        else:
            answer_id = message_id
        message_id = str(message.get("parentId") or "")
