"""title: OpenAI Responses Administration
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: Limits, several accounts and telemetry for OpenAI Responses Manifold.

The filter that the pipe asks before each of its calls. The two are files of their own,
so only plain data goes between them: texts, numbers, lists and dicts.
"""

from typing import Any

from pydantic import BaseModel, Field

from owui_administration.account import Account
from owui_administration.endpoints import choose_endpoints
from owui_administration.limits import read_user_limits
from owui_administration.telemetry import Telemetry
from owui_administration.usage_table import UsageTable


class Filter:
    """Decides for the pipe what a user may use, and where it is asked for.

    The pipe finds it by its id, `openai_responses_administration`, while it is active.
    """

    CONTRACT = 1
    """Of what goes between the filter and the pipe, which knows one version."""

    class Valves(BaseModel):
        """Settings of the administrator."""

        priority: int = Field(
            default=0, description="When this filter runs, among others."
        )
        USER_LIMITS_JSON: str = Field(
            default="",
            description="What users may use, as a JSON list of rules (docs/limits.md): "
            '`[{"group": "students", "money": 5, "per": "month"}]`. `[]` only counts, '
            "for `/usage`; empty: nothing is counted.",
        )
        ENDPOINTS_JSON: str = Field(
            default="",
            description="Other addresses and keys for some groups and models, as a JSON "
            "list of which the first that fits is used (docs/gateways.md): "
            '`[{"groups": ["staff"], "base_url": "https://eu.api.openai.com/v1", '
            '"api_key": "..."}]`.',
            json_schema_extra={"input": {"type": "password"}},
        )

    def __init__(self) -> None:
        """Open nothing: the host makes a Filter at every upload."""
        self.valves = self.Valves()
        self._usage = UsageTable()
        self._telemetry = Telemetry()
        self._down = dict[str, float]()

    async def begin(self, facts: dict[str, Any]) -> Account:
        """Return what decides about one call of the pipe, and takes its usage.

        `facts`: `user` (as the host tells it: id, name, email, role), `model` (as the
        pipe lists it), `task` (its name, or empty), `chat_id`, `message_id`,
        `has_own_key`, `base_url` (that of its valves).
        """
        valves = self.valves
        limits = await read_user_limits(valves.USER_LIMITS_JSON, facts, self._usage)
        endpoints = await choose_endpoints(valves.ENDPOINTS_JSON, facts, self._down)
        return Account(facts, limits, self._telemetry, endpoints)
