"""
title: Thinking Effort
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Sets how long the model thinks. Choose with the gear next to the switch.

The switch in the composer for the effort, with a menu that its gear opens.
"""

from typing import Any, Literal

from pydantic import BaseModel, Field

from owui_controls.switch import Switch


class Filter(Switch):
    """A switch that asks for an effort, which each user chooses in a menu."""

    SWITCH = "thinking"
    DRAWING = (
        "<path d='M9 18h6m-5 3h4M8.5 14.5a6 6 0 1 1 7 0c-.6.5-1 1-1 2h-5c0-1-.4-1.5"
        "-1-2Z'/>"
    )

    class UserValves(BaseModel):
        """Settings of a user."""

        # The page shows the words of a menu as they are.
        EFFORT: Literal["as the model chooses", "low", "medium", "high", "highest"] = (
            Field(
                default="high",
                description="How long the model thinks while the switch is on.",
            )
        )

    async def inlet(
        self,
        body: dict[str, Any],
        __metadata__: dict[str, Any] | None = None,
        __user__: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Ask the pipe for the effort; called only while the switch is on."""
        valves = (__user__ or {}).get("valves")
        chosen = getattr(valves, "EFFORT", "high")
        # The pipe reads `max` as the most that a model has, and ignores other words.
        effort = "max" if chosen == "highest" else chosen
        self._tell_pipe(__metadata__, effort)
        return body
