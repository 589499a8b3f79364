"""
title: Thinking Effort
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Sets how long the model thinks. Choose with the gear next to the switch.

Built by scripts/bundle.py from pipes/; do not edit. Each module follows those that
it imports; the last one has the class Filter.
"""

from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field

# --------------------------------------------------------------------------------------
# owui_controls.switch
#
# What a switch of the composer tells the pipe.
#
# Open WebUI shows a filter with `toggle` as a switch next to the chat input and calls its
# `inlet` only while the switch is on. What the switch means goes into `__metadata__`,
# under a key that reaches no other provider. The filters know nothing else of the pipe.
# --------------------------------------------------------------------------------------


CONTROLS_KEY = "openai_responses"
"""Where the pipe looks in `__metadata__`."""

CONTROLS_VERSION = 1
"""The number of what is written there; the pipe reports one that it does not know. Files of
different releases work together as long as they have the same."""


class Switch:
    """A filter that the page shows as a switch, with a drawing of its own."""

    SWITCH: ClassVar[str]
    """What the pipe calls it."""
    DRAWING: ClassVar[str]
    """What is inside of the SVG of its icon."""
    CONTRACT = CONTROLS_VERSION
    """What `/check` of the pipe reads."""

    class Valves(BaseModel):
        """Settings of the administrator."""

        priority: int = Field(
            default=0, description="Filters with a lower number run earlier."
        )

    def __init__(self) -> None:
        self.valves = self.Valves()
        self.toggle = True
        # An address of the picture itself; Open WebUI inverts it on a dark page.
        self.icon = (
            "data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg' "
            "fill='none' viewBox='0 0 24 24' stroke='currentColor' stroke-width='1.75' "
            f"stroke-linecap='round' stroke-linejoin='round'>{self.DRAWING}</svg>"
        )

    async def inlet(
        self, body: dict[str, Any], __metadata__: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Tell the pipe; called only while the switch is on."""
        self._tell_pipe(__metadata__, True)
        return body

    def _tell_pipe(self, metadata: dict[str, Any] | None, value: object) -> None:
        """Set the switch for the pipe; a plain HTTP call has no metadata."""
        if metadata is None:
            return
        switches = metadata.setdefault(CONTROLS_KEY, {"version": CONTROLS_VERSION})
        switches[self.SWITCH] = value


# --------------------------------------------------------------------------------------
# owui_controls.effort
#
# The switch in the composer for the effort, with a menu that its gear opens.
# --------------------------------------------------------------------------------------


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
