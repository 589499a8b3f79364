"""
title: Agent
author: The authors of OpenAI Responses Manifold
version: 1.2.0.dev
required_open_webui_version: 0.11.4
license: MIT
description: Lets the model plan, use tools and keep working until it has an answer.

The switch in the composer that makes an agent of the model.
"""

from typing import Any

from owui_controls.switch import Switch, tell_pipe


class Filter(Switch):
    """A switch for the work of one message; what an agent does, the pipe knows."""

    def __init__(self) -> None:
        """Draw the icon."""
        super().__init__(
            "<path d='M12 8V4m-8 8H2m20 0h-2M9 13v2m6-2v2'/>"
            "<rect x='4' y='8' width='16' height='12' rx='2'/>"
        )

    async def inlet(
        self, body: dict[str, Any], __metadata__: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Ask the pipe for an agent; called only while the switch is on."""
        tell_pipe(__metadata__, "agent", True)
        return body
