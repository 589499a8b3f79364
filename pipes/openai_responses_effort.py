"""
title: Thinking Effort
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: Sets how long the model thinks. The gear beside the switch has the choice.

Built by scripts/bundle.py from pipes/; do not edit.
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

# owui_controls.switch

CONTROLS_KEY = "openai_responses"

CONTROLS_VERSION = 1


def tell_pipe(metadata: dict[str, Any] | None, name: str, value: object) -> None:
    if metadata is not None:
        told = metadata.setdefault(CONTROLS_KEY, {"version": CONTROLS_VERSION})
        told[name] = value


class Switch:
    class Valves(BaseModel):
        priority: int = Field(
            default=0, description="When this filter runs, among others."
        )

    def __init__(self, drawing: str) -> None:
        self.valves = self.Valves()
        self.toggle = True
        self.icon = _line_icon(drawing)


def _line_icon(paths: str) -> str:
    return (
        "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' fill='none' "
        "viewBox='0 0 24 24' stroke='currentColor' stroke-width='1.75' "
        f"stroke-linecap='round' stroke-linejoin='round'>{paths}</svg>"
    )


# owui_controls.effort


class Filter(Switch):
    class UserValves(BaseModel):
        EFFORT: Literal["as the model chooses", "low", "medium", "high", "highest"] = (
            Field(
                default="high",
                description="How long the model thinks while the switch is on.",
            )
        )

    def __init__(self) -> None:
        super().__init__(
            "<path d='M9 18h6m-5 3h4M8.5 14.5a6 6 0 1 1 7 0c-.6.5-1 1-1 2h-5c0-1-.4-1.5"
            "-1-2Z'/>"
        )

    async def inlet(
        self,
        body: dict[str, Any],
        __metadata__: dict[str, Any] | None = None,
        __user__: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        chosen = getattr((__user__ or {}).get("valves"), "EFFORT", "high")
        tell_pipe(__metadata__, "thinking", "max" if chosen == "highest" else chosen)
        return body
