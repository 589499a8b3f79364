"""The Files API: files that a client uploads for code to work with.

Fields: types of openai 3.54.0 (`file_create_params.py`): `purpose` is required, and
`expires_after` takes an hour to 30 days after `created_at`. The words are assumed.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.accounts import Account
from simulator.refusals import refuse, refuse_range

PURPOSES = ("assistants", "batch", "evals", "fine-tune", "user_data", "vision")
MIN_SECONDS = 3600
MAX_SECONDS = 30 * 86_400
MAX_CONTAINER_FILES = 50


@dataclass(frozen=True)
class UploadedFile:
    """A file at the server."""

    id: str
    name: str
    content: bytes
    purpose: str
    organization: str
    created_at: float
    expires_at: float

    def wire(self) -> dict[str, Any]:
        """Return the file object of the API."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": int(self.created_at),
            "expires_at": int(self.expires_at),
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
        }


class UploadStore:
    """The uploaded files of all accounts."""

    def __init__(self) -> None:
        self.files: dict[str, UploadedFile] = {}

    def forget(self) -> None:
        self.files.clear()

    def add(
        self,
        account: Account,
        name: str,
        content: bytes,
        fields: Mapping[str, str],
        now: float,
    ) -> UploadedFile:
        """Keep a file, or raise the refusal of its fields."""
        purpose = fields.get("purpose", "")
        if purpose not in PURPOSES:
            raise refuse("purpose", purpose=purpose, purposes=PURPOSES)
        if not content:
            raise refuse("empty_upload")
        seconds = math.inf
        anchor = fields.get("expires_after[anchor]")
        if anchor is not None:
            if anchor != "created_at":
                raise refuse("anchor", anchor=anchor)
            seconds = int(fields.get("expires_after[seconds]", "0"))
            if not MIN_SECONDS <= seconds <= MAX_SECONDS:
                limits = f">= {MIN_SECONDS} and <= {MAX_SECONDS}"
                raise refuse_range("expires_after.seconds", "integer", limits, seconds)
        unique_text = f"{account.organization} {len(self.files)} {name}"
        digest = hashlib.sha256(unique_text.encode()).hexdigest()
        file = UploadedFile(
            id=f"file-{digest[:22]}",
            name=name,
            content=content,
            purpose=purpose,
            organization=account.organization,
            created_at=now,
            expires_at=now + seconds,
        )
        self.files[file.id] = file
        return file

    def check(
        self, tools: Sequence[Mapping[str, Any]], account: Account, now: float
    ) -> None:
        """Raise the refusal for a container file that the account does not have.

        At most 50 files: types of openai 3.54.0, the words are assumed.
        """
        for tool in tools:
            container = tool.get("container")
            file_ids = (isinstance(container, dict) and container.get("file_ids")) or []
            if len(file_ids) > MAX_CONTAINER_FILES:
                raise refuse("upload_count", limit=MAX_CONTAINER_FILES)
            for file_id in file_ids:
                file = self.files.get(file_id)
                is_own = file is not None and file.organization == account.organization
                if file is None or not is_own or now >= file.expires_at:
                    raise refuse("unknown_file", id=file_id)
