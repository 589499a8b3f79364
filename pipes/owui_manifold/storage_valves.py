"""Settings of what is stored in a chat."""

from typing import Literal

from pydantic import BaseModel, Field


class StorageValves(BaseModel):
    """How kept items lie in a chat."""

    HISTORY_CARRIER: Literal["markers", "output"] = Field(
        default="markers",
        description="Where a chat keeps what it does not show: under a key of its own, "
        "named by invisible lines in the answers, or in Open WebUI's stored output of "
        "each answer, without such lines. Both are always read.",
    )
    STORE_ENCRYPTION: Literal["off", "on"] = Field(
        default="off",
        description="Encrypt what this pipe stores in a chat. The host keeps the "
        "text, the reasoning summaries and the tool cards of an answer in clear all "
        "the same (its `output` items), and whoever gets a shared or exported chat "
        "gets those. A changed key makes stored reasoning unreadable; the chats go "
        "on without it.",
    )
    STORE_ENCRYPTION_KEY: str = Field(
        default="",
        description="A long random text, the key for STORE_ENCRYPTION. Empty: the "
        "server's own WEBUI_SECRET_KEY is used.",
        json_schema_extra={"input": {"type": "password"}},
    )
