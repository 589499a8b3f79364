"""From a request's body to the answer, without any connection."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from simulator.accounts import Account, Profile
from simulator.checks.configuration import check_configuration
from simulator.checks.items import check_items
from simulator.checks.limits import check_limits
from simulator.checks.model import check_model, find_model, is_broken_by
from simulator.checks.namespaces import check_namespaces
from simulator.checks.parts import check_parts
from simulator.checks.replay import Replay, ReplayReader, read_replay
from simulator.checks.shape import check_body
from simulator.configuration import draft_update, read_configuration
from simulator.containers import ContainerClock
from simulator.diagnostics import (
    PromptRecord,
    PromptRecords,
    read_comparison,
)
from simulator.faults import FailedStart, RefusedPart
from simulator.options import Options, UnknownOption, find_spec, parse_spec
from simulator.prefix import Prompt, build_prompt
from simulator.refusals import Refusal, refuse_forbidden_model
from simulator.request import ValidRequest, parse_input
from simulator.scenarios.catalog import SCENARIOS, find_task_field
from simulator.scenarios.http import build_http_error
from simulator.scenarios.scenario import (
    HttpReply,
    Reply,
    Scenario,
    add_unknown_events,
    end_with_error_event,
    make_reply,
)
from simulator.sealing import make_response_id, serialize_value
from simulator.tokens import PromptCache, is_to_be_compacted
from simulator.uploads import UploadShelf
from simulator.wire.events import apply_ending, build_stream, number_events
from simulator.wire.response import (
    PromptCount,
    SealContext,
    close_response,
    count_usage,
    fill_drafts,
    fill_placeholders,
    open_response,
)

Body = Mapping[str, Any]
Event = dict[str, Any]
MODEL_OF_PROMPTS = "gpt-4o-mini"
"""The model of every stored prompt; that of the recorded ones."""
PATTERN_FAILURE = end_with_error_event(
    "server_error",
    "An error occurred while processing your request. You can retry your request, or "
    "contact us through our help center at help.openai.com if the error persists.",
    nested=True,
    type="server_error",
)
"""The error of gpt-5.4 for a pattern with lookaround (reports: vercel/ai 16021)."""


@dataclass(frozen=True)
class RequestOrigin:
    """Who sends a request, and which rules apply to it."""

    account: Account
    profile: Profile
    wish: str | None
    default_scenario: str
    authorization: str = ""


@dataclass(frozen=True)
class PlannedAnswer:
    """What is to be sent: events, or one JSON object, or plain HTTP."""

    scenario: str
    options: Options
    http: HttpReply | None = None
    events: tuple[Event, ...] = ()
    final: dict[str, Any] | None = None


class Responder:
    """Answers requests; remembers prompts seen and attempts made."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Start with an empty cache."""
        self._clock = clock
        self._cache = PromptCache()
        self._records = PromptRecords()
        self.containers = ContainerClock()
        self.uploads = UploadShelf()
        self._count = 0
        self._attempts: Counter[bytes] = Counter()
        self.faults: list[RefusedPart | FailedStart] = []
        self._failed: Counter[tuple[FailedStart, str, int]] = Counter()

    def forget(self) -> None:
        """Empty the cache, the attempts and the faults; ids continue to count."""
        self._cache.forget()
        self._records.forget()
        self.containers.forget()
        self.uploads.forget()
        self._attempts.clear()
        self.faults.clear()
        self._failed.clear()

    def answer(self, body: Body, asker: RequestOrigin) -> PlannedAnswer:
        """Return the answer to a body or raise the refusal."""
        request, replay = validate_request(body, asker)
        self.containers.check(body, request.items, self._clock())
        tools = request.configuration.tools
        self.uploads.check(tools, asker.account, self._clock())
        scenario, options = choose_scenario(request, asker)
        if self._is_to_be_refused(body, options):
            status = options.number("status") or 500
            return PlannedAnswer(
                scenario.name, options, build_http_error(status, options)
            )
        reply = self._refuse_part(request) or scenario.reply_to(request, options)
        if is_broken_by(request.configuration.tools, request.model):
            reply = make_reply(ending=PATTERN_FAILURE)
        if isinstance(reply, HttpReply):
            return PlannedAnswer(scenario.name, options, reply)
        planned = self._respond(
            request, replay, asker, _ScenarioChoice(scenario, options, reply)
        )
        return self._fail_start(request, planned)

    def _refuse_part(self, request: ValidRequest) -> Reply | HttpReply | None:
        """Return the refusal of the first part that the request holds."""
        for fault in self.faults:
            if isinstance(fault, RefusedPart):
                reply = fault.reply_to(request)
                if reply is not None:
                    return reply
        return None

    def _fail_start(
        self, request: ValidRequest, planned: PlannedAnswer
    ) -> PlannedAnswer:
        """Cut an answer short whose start has to fail, as often as the fault says."""
        for fault in self.faults:
            if not isinstance(fault, FailedStart) or not fault.concerns(request):
                continue
            key = (fault, request.said, request.rounds)
            self._failed[key] += 1
            if self._failed[key] > fault.times:
                continue
            events = fault.shorten(planned.events)
            last = events[-1]
            options = fault.break_off(planned.options, len(events))
            final = last.get("response", last)
            return replace(planned, options=options, events=tuple(events), final=final)
        return planned

    def _is_to_be_refused(self, body: Body, options: Options) -> bool:
        """Count an attempt; tell whether it is one of those that fail."""
        if not options.has("status"):
            return False
        times = options.number("times")
        key = hashlib.sha256(serialize_value(body)).digest()
        if times is None:
            return True
        self._attempts[key] += 1
        if self._attempts[key] <= times:
            return True
        del self._attempts[key]
        return False

    def _respond(
        self,
        request: ValidRequest,
        replay: Replay,
        asker: RequestOrigin,
        chosen: "_ScenarioChoice",
    ) -> PlannedAnswer:
        account = asker.account
        now = self._clock()
        prompt = build_prompt(
            request.body, request.model, replay.items, replay.reasoning_tokens
        )
        key = self._next_key(prompt.text)
        items = fill_drafts(
            [*chosen.reply.items, *_draft_compaction(request, prompt.tokens)],
            request,
            SealContext(key, account.organization, replay.prefix),
        )
        self.containers.note_use(items, now)
        opened = open_response(request, key, now, replay.removed)
        counted = self._count_prompt(request, account, prompt)
        fields = {
            "status": chosen.reply.ending.status,
            "usage": count_usage(counted, items),
            **self._diagnose(request, account, prompt, key),
            **fill_placeholders(chosen.reply.ending.fields, request.words()),
        }
        closed = close_response(opened, items, now, fields)
        written = build_stream(chosen.reply, opened, closed, chosen.options)
        final = _build_final(chosen.reply, closed, written)
        wishes = request.body.get("stream_options") or {}
        obfuscated = wishes.get("include_obfuscation") is not False
        events = number_events(add_unknown_events(written, chosen.options), obfuscated)
        return PlannedAnswer(
            chosen.scenario.name, chosen.options, None, tuple(events), final
        )

    def _next_key(self, prompt: bytes) -> str:
        self._count += 1
        seed = f"{self._count} ".encode() + prompt
        return hashlib.sha256(seed).hexdigest()[:24]

    def _count_prompt(
        self, request: ValidRequest, account: Account, prompt: Prompt
    ) -> PromptCount:
        key = (
            account.organization,
            request.model.id,
            request.body.get("prompt_cache_key"),
            serialize_value(prompt.settings),
        )
        cached = self._cache.read(key, prompt.prefix)
        writes = request.model.writes_cache_explicitly
        written = prompt.tokens - cached - prompt.uncached_tokens if writes else 0
        return PromptCount(prompt.tokens, cached, written, request.reasoning_tokens)

    def _diagnose(
        self, request: ValidRequest, account: Account, prompt: Prompt, key: str
    ) -> Event:
        """Keep the prompt; return the diagnosis that was asked for."""
        record = PromptRecord(
            account.organization,
            request.model,
            request.body.get("prompt_cache_key"),
            serialize_value(request.body.get("tools") or []),
            prompt,
            sum(item.get("type") == "compaction" for item in request.items),
        )
        self._records.keep(make_response_id(key), record)
        earlier = read_comparison(request.body)
        if earlier is None:
            return {}
        return {"prompt_cache_diagnostics": self._records.compare(earlier, record)}


@dataclass(frozen=True)
class _ScenarioChoice:
    scenario: Scenario
    options: Options
    reply: Reply


def validate_request(body: Body, asker: RequestOrigin) -> tuple[ValidRequest, Replay]:
    """Return what a body asks or raise the first refusal it deserves."""
    check_body(body)
    model = find_model(body.get("model", MODEL_OF_PROMPTS))
    if not asker.account.may_use(model.id):
        raise refuse_forbidden_model(asker.account.project, model.id)
    check_limits(body, model)
    configuration = read_configuration(body, model)
    check_configuration(body, model, asker.profile)
    check_model(body, model, asker.profile, configuration)
    read_comparison(body)
    items = parse_input(body.get("input") or [])
    stored = body.get("store") is not False
    check_items(items, stored)
    check_namespaces(body, items)
    check_parts(items)
    context = (body.get("reasoning") or {}).get("context") or "auto"
    if context == "auto":
        context = model.default_context
    reader = ReplayReader(
        asker.account.organization,
        body.get("safety_identifier"),
        model,
        asker.profile,
        context == "current_turn",
    )
    replay = read_replay(body, items, reader)
    if build_prompt(body, model, replay.items, 0).tokens > model.max_input:
        raise Refusal(
            "Your input exceeds the context window of this model. Please adjust your "
            "input and try again.",
            code="context_length_exceeded",
            param="input",
        )
    request = ValidRequest(
        body, items, model, configuration, replay.reasoning, asker.authorization
    )
    return request, replay


def _draft_compaction(request: ValidRequest, tokens: int) -> list[dict[str, Any]]:
    """Return what ends the response to a long input: recorded behind its message."""
    if not is_to_be_compacted(request.body, tokens):
        return []
    return [{"type": "compaction"}, *draft_update(request.configuration)]


def choose_scenario(
    request: ValidRequest, asker: RequestOrigin
) -> tuple[Scenario, Options]:
    """Return the scenario: by header, for a task, by word, or the default."""
    if asker.wish is None and find_task_field(request.said):
        return SCENARIOS["task"], Options()
    spec = asker.wish or find_spec(request.said) or asker.default_scenario
    name = spec.split(",", 1)[0]
    if name not in SCENARIOS:
        raise Refusal(f"The stand-in has no scenario '{name}'.", code="no_scenario")
    try:
        _, options = parse_spec(spec, SCENARIOS[name].options)
    except UnknownOption as error:
        raise Refusal(str(error), code="no_scenario") from error
    return SCENARIOS[name], options


def _build_final(reply: Reply, closed: Event, events: list[Event]) -> Event:
    """Return the response object as it stands at the end, or the error event."""
    if reply.ending.event == "error":
        return events[-1]
    return {**closed, "output": apply_ending(closed["output"], reply.ending)}
