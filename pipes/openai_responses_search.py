"""
title: Search with OpenAI
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: Lets the model search the web at OpenAI, with its sources in the answer.

Built by scripts/bundle.py from pipes/; do not edit.
"""

from typing import Any

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


# owui_controls.web_search


class Filter(Switch):
    def __init__(self) -> None:
        super().__init__(
            "<circle cx='12' cy='12' r='9'/><path d='M3 12h18M12 3c5 5 5 13 0 18M12 3c-5 "
            "5-5 13 0 18'/>"
        )

    async def inlet(
        self, body: dict[str, Any], __metadata__: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        tell_pipe(__metadata__, "web_search", True)
        return body
