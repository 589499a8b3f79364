"""title: OpenAI Responses Administration
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Limits, several accounts and telemetry for OpenAI Responses Manifold.

The filter that the pipe asks before each of its calls. The two are files of their own,
so only plain data goes between them: texts, numbers, lists and dicts.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import BaseModel, Field

from openai_responses.json_input import JsonObject, as_text
from openai_responses.recent_texts import UserReports
from openai_responses.transport.entra import EntraTokens
from owui_administration.account import Account
from owui_administration.agent import (
    LimitReached,
    agent_facts,
    find_agent_model,
    is_legacy,
    listed_name,
    usage_row,
    wants_stream,
)
from owui_administration.endpoints import DOWN_SECONDS, EndpointChoice, choose_endpoints
from owui_administration.host import stored_valves
from owui_administration.limits import UserLimits, read_user_limits
from owui_administration.names import NameCheck
from owui_administration.telemetry import ServerWords, Telemetry
from owui_administration.usage_table import UsageTable
from owui_host.lookup import HostTooOld
from owui_host.models import model_entry
from shells.administration import (
    ADMINISTRATION_CONTRACT,
    ADMINISTRATION_ID,
    CallFacts,
    Purchases,
)

_OTHER_ID = (
    "The id of this filter is {}, so the pipe does not find it, and limits do not "
    "apply. Install it with the id " + ADMINISTRATION_ID + "."
)
_NOT_KNOWN = (
    "Your usage cannot be read at the moment (Open WebUI's database reports {}), so "
    "nothing is sent. Try again; if the problem persists, tell an administrator."
)

_NO_SETTINGS = (
    "The limits cannot be read at the moment, so nothing is sent. Try again; if the "
    "problem persists, tell an administrator."
)
_NO_STREAM = (
    "Your usage is limited, and this model's usage is counted only in a stream. Send "
    "the request with `stream`."
)
_LEGACY = (
    "Your usage is limited, and with Function Calling set to Legacy a part of this "
    "model's usage is not counted. Set it to Native in the chat's controls."
)


EventEmitter = Callable[[JsonObject], Awaitable[object]]
"""The host's: it sends an event to the page."""


class Filter:
    """Decides for the pipe what a user may use, and where it is asked for.

    The pipe finds it by its id, `openai_responses_administration`, while it is active.
    """

    CONTRACT = ADMINISTRATION_CONTRACT
    """The number of what goes between the filter and the pipe, which knows one."""

    class Valves(BaseModel):
        """Settings of the administrator."""

        priority: int = Field(
            default=0, description="Filters with a lower number run earlier."
        )
        USER_LIMITS_JSON: str = Field(
            default="",
            description="What users may use, as a JSON list of rules (docs/limits.md): "
            '`[{"group": "students", "money": 5, "per": "month"}]`. `[]` sets no '
            "limits, but counts for `/usage`. If empty, nothing is counted.",
        )
        ENDPOINTS_JSON: str = Field(
            default="",
            description="Other addresses and keys for some groups and models, as a JSON "
            "list; the first entry that matches is used (docs/gateways.md): "
            '`[{"groups": ["staff"], "base_url": "https://eu.api.openai.com/v1", '
            '"api_key": "..."}]`.',
            json_schema_extra={"input": {"type": "password"}},
        )

    def __init__(self) -> None:
        """Open nothing: the host makes a Filter at every upload."""
        self.valves = self.Valves()
        self._usage = UsageTable()
        self._words = ServerWords()
        self._failures = UserReports(DOWN_SECONDS)
        self._tokens = EntraTokens()
        self._names = NameCheck()

    async def begin(self, facts: CallFacts) -> Account:
        """Return what decides about one call of the pipe, and takes its usage."""
        rules = self.valves.USER_LIMITS_JSON
        entries = self.valves.ENDPOINTS_JSON
        try:
            limits = await read_user_limits(rules, facts, self._usage)
            endpoints = await choose_endpoints(entries, facts, self._failures)
            if limits.is_admin:
                unknown_names = await self._names.problem(rules, entries)
                limits.problems = (*limits.problems, unknown_names)
        except HostTooOld as missing:
            # The pipe knows another class of that name: it refuses the call by the words.
            limits = UserLimits(facts=facts)
            endpoints = EndpointChoice(
                [], facts["base_url"], self._failures, facts["user_id"], str(missing)
            )
        telemetry = Telemetry(facts, self._words)
        return Account(limits, telemetry, self._tokens, endpoints, entries)

    async def inlet(  # noqa: PLR0913, PLR0917 - the host passes these, by name
        self,
        body: JsonObject,
        __user__: JsonObject | None = None,
        __model__: JsonObject | None = None,
        __request__: Any = None,
        __metadata__: JsonObject | None = None,
        __id__: str = ADMINISTRATION_ID,
        __event_emitter__: EventEmitter | None = None,
    ) -> JsonObject:
        """Refuse a question to the agent pipeline above a limit.

        The pipe asks for its own questions. What is raised is shown in the chat. Whether
        the answer streams is settled here for all who read the body later.
        """
        body = {**body, "stream": wants_stream(body)}
        user = __user__ or {}
        if (
            __id__ != ADMINISTRATION_ID
            and user.get("role") == "admin"
            and __event_emitter__
        ):
            warning = {"type": "warning", "content": _OTHER_ID.format(__id__)}
            await __event_emitter__({"type": "notification", "data": warning})
        model = find_agent_model(__model__ or {}, __request__)
        if not model:
            return body
        facts = agent_facts(user, listed_name(model))
        limits = await self._agent_limits(facts, __id__)
        refusal = limits.refusal(model, has_price=True)
        if not refusal and limits.has_amounts and not body["stream"]:
            refusal = _NO_STREAM
        if not refusal and limits.has_amounts and is_legacy(__metadata__ or {}):
            refusal = _LEGACY
        if refusal:
            # An inlet that raises ends the question: Open WebUI shows the text in the
            # chat.
            raise LimitReached(refusal)
        return body

    async def _agent_limits(self, facts: CallFacts, filter_id: str) -> UserLimits:
        """Return what the user of an agent may use; raises LimitReached."""
        try:
            rules = self.valves.USER_LIMITS_JSON
            stored = {} if rules.strip() else await stored_valves(filter_id)
            if stored is None or as_text(stored.get("USER_LIMITS_JSON")).strip():
                raise LimitReached(_NO_SETTINGS)  # the host could not read the valves
            return await read_user_limits(rules, facts, self._usage)
        except LimitReached:
            raise
        except Exception as error:
            # Its text may hold values of a statement, and would be shown.
            kind = type(error).__name__
            raise LimitReached(_NOT_KNOWN.format(kind)) from None

    def stream(
        self,
        event: JsonObject,
        __user__: JsonObject | None = None,
        __model__: JsonObject | None = None,
        __request__: Any = None,
        __metadata__: JsonObject | None = None,
    ) -> JsonObject:
        """Count what an answer of the agent pipeline reports.

        In an arena `__model__` is the arena, whichever model answers.
        """
        # Stream filters see every chunk; few of them report usage.
        usage = event.get("usage")
        if not isinstance(usage, dict) or not self.valves.USER_LIMITS_JSON.strip():
            return event
        metadata = {"model": __model__, **(__metadata__ or {})}
        model = find_agent_model(model_entry(metadata, __request__), __request__)
        if model:
            user_id = (__user__ or {}).get("id")
            row = usage_row(user_id, listed_name(model), usage)
            # The prices of its parts are not reported.
            self._usage.add(row, Purchases(agents=1, agent_money=row.money))
        return event
