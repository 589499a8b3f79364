"""A tool of the sandbox as one of the agent's own; its files come back as parts."""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpt5_agent.files import LARGEST_FILE
from toolbox.sandbox import SandboxTools
from toolbox.workspaces import SandboxFile


@dataclass(frozen=True, slots=True)
class SandboxTool:
    """One tool; `chat` tells whose workspace it works in."""

    name: str
    description: str
    args: Mapping[str, Any]
    sandbox: SandboxTools = field(repr=False)
    chat: str = field(repr=False)

    async def execute(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run it; return the text, then the files."""
        answer = await self.sandbox.call(self.chat, self.name, args)
        parts = [{"type": "text", "text": answer.text}, *_file_parts(answer.files)]
        return {"isError": answer.failed, "content": parts}


def _file_parts(files: Iterable[SandboxFile]) -> list[dict[str, Any]]:
    """Return the files as parts, as long as all together are no larger than one may be.

    The host keeps them in the chat. One that a later run has removed is not there.
    """
    parts: list[dict[str, Any]] = []
    left = LARGEST_FILE
    for file in files:
        content = _content_up_to(file, left)
        if content is None:
            told = f"{file.name} is not shown: files of one call may have 5 MB in all."
            parts.append({"type": "text", "text": told})
            continue
        left -= len(content)
        encoded = base64.b64encode(content).decode("ascii")
        part = {"type": "blob", "data": encoded, "mimeType": file.media_type}
        parts.append({**part, "name": file.name})
    return parts


def _content_up_to(file: SandboxFile, most: int) -> bytes | None:
    try:
        with file.path.open("rb") as opened:
            content = opened.read(most + 1)
    except OSError:
        return None
    return content if len(content) <= most else None
