"""
title: OpenAI Responses Administration
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: Limits, several accounts and telemetry for OpenAI Responses Manifold.

Built by scripts/bundle.py from pipes/; do not edit.
"""

from typing import Any

from pydantic import BaseModel, Field

# ==== owui_administration.account


class Account:
    def __init__(self, facts: dict[str, Any]) -> None:
        self._facts = facts


# ==== owui_administration.filter


class Filter:
    CONTRACT = 1

    class Valves(BaseModel):
        priority: int = Field(
            default=0, description="When this filter runs, among others."
        )

    def __init__(self) -> None:
        self.valves = self.Valves()

    async def begin(self, facts: dict[str, Any]) -> Account:
        return Account(facts)
