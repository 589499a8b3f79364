"""Who asks, as far as the inlet knew it.

Open WebUI takes the metadata out of a body before the pipeline gets it, but shows them
to the pipeline's own inlet, and passes on what that adds (pipelines-and-agents.md §1).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONTEXT_KEY = "agent_context"
_IDS = ("chat_id", "message_id", "user_id", "task")


@dataclass(frozen=True, slots=True)
class Caller:
    """Which message of which chat is answered, or which small task of the host.

    `model` is the id that the caller asked for.
    """

    model: str = ""
    chat_id: str = ""
    message_id: str = ""
    user_id: str = ""
    task: str = ""
    streams: bool = False

    @property
    def host_reads(self) -> bool:
        """Whether Open WebUI itself reads and stores the answer."""
        return bool(self.chat_id and self.message_id)

    @property
    def can_be_asked(self) -> bool:
        """Whether a person sees a question: where nothing streams no card is shown."""
        return self.host_reads and self.streams

    @property
    def workspace(self) -> str:
        """What a user's files in a chat are kept under; empty without a chat."""
        return f"{self.user_id}/{self.chat_id}" if self.chat_id else ""


def agent_context(body: Mapping[str, Any]) -> dict[str, str]:
    """Return what an inlet's body says of the chat."""
    metadata = _mapping_at(body, "metadata")
    return {key: str(metadata[key]) for key in _IDS if metadata.get(key)}


def read_caller(body: Mapping[str, Any]) -> Caller:
    """Return who asks; a body that passed no inlet is a plain client's."""
    context = _mapping_at(body, CONTEXT_KEY)
    return Caller(
        model=str(body.get("model") or ""),
        streams=bool(body.get("stream")),
        **{key: str(context.get(key) or "") for key in _IDS},
    )


def _mapping_at(body: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = body.get(key)
    return value if isinstance(value, Mapping) else {}
