"""
title: OpenAI Responses Controls
author: The authors of OpenAI Responses Manifold
version: 0.1.0
required_open_webui_version: 0.11.4
license: MIT
description: A switch in the composer for a chat with the OpenAI Responses Manifold.

Built by scripts/bundle.py from pipes/; do not edit.
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

# ==== owui_controls.controls: One switch in the composer; what a person switched on is told to the pipe.

CONTROLS_KEY = "openai_responses"

CONTROLS_VERSION = 1

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_ICON = (
    "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' fill='none' "
    "viewBox='0 0 24 24' stroke='currentColor' stroke-width='1.75'>"
    "<path d='M4 7h10m4 0h2M4 17h4m4 0h8'/><circle cx='16' cy='7' r='2'/>"
    "<circle cx='10' cy='17' r='2'/></svg>"
)


class Filter:
    """A switch for web search, for longer thinking, or for the code interpreter."""

    class Valves(BaseModel):
        """Settings of the administrator."""

        CONTROL: Literal["web_search", "thinking", "code_interpreter"] = Field(
            default="web_search", description="What this switch switches on."
        )
        EFFORT: Effort = Field(
            default="high", description="How long to think when `thinking` is on."
        )
        priority: int = Field(
            default=0, description="When this filter runs, among others."
        )

    class UserValves(BaseModel):
        """Settings of a user."""

        EFFORT: Literal["inherit", Effort] = Field(
            default="inherit", description="How long to think when `thinking` is on."
        )

    def __init__(self) -> None:
        self.valves = self.Valves()
        self.toggle = True
        self.icon = _ICON

    async def inlet(
        self,
        body: dict[str, Any],
        __metadata__: dict[str, Any] | None = None,
        __user__: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        if __metadata__ is not None:
            told = __metadata__.setdefault(CONTROLS_KEY, {"version": CONTROLS_VERSION})
            told[self.valves.CONTROL] = self._meaning(__user__ or {})
        return body

    def _meaning(self, user: dict[str, Any]) -> object:
        if self.valves.CONTROL != "thinking":
            return True
        chosen = getattr(user.get("valves"), "EFFORT", "inherit")
        return self.valves.EFFORT if chosen == "inherit" else chosen
