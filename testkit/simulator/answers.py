"""From the body of a request to its answer, without a connection."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from simulator.accounts import Account, Profile
from simulator.checks.configuration import check_configuration
from simulator.checks.items import check_items, read_item_type
from simulator.checks.limits import check_limits, check_ranges
from simulator.checks.model import (
    check_model,
    check_research_tools,
    find_model,
    is_broken_by,
)
from simulator.checks.namespaces import check_namespaces
from simulator.checks.parts import check_parts
from simulator.checks.replay import Replay, ReplayReader, read_replay
from simulator.checks.shape import check_body
from simulator.configuration import draft_update, read_configuration
from simulator.containers import ContainerClock
from simulator.diagnostics import PromptRecord, PromptRecords, read_comparison
from simulator.faults import FailedStart, RefusedPart
from simulator.models import read_context
from simulator.options import Options, UnknownOption, find_spec, parse_spec
from simulator.prefix import build_prompt
from simulator.refusals import Refusal, refuse
from simulator.request import ValidRequest
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
from simulator.sealing import serialize_value
from simulator.tokens import PromptCache, is_to_be_compacted
from simulator.uploads import UploadStore
from simulator.wire.events import apply_ending, build_stream, number_events
from simulator.wire.response import (
    SealContext,
    close_response,
    count_usage,
    fill_drafts,
    fill_placeholders,
    open_response,
)

Body = Mapping[str, Any]
Event = dict[str, Any]
STORED_PROMPT_MODEL = "gpt-4o-mini"
"""The model of a request that names none but a stored prompt (recorded)."""
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
    """Who sends a request, which rules apply to it, and which scenario it asks for."""

    account: Account
    profile: Profile
    requested_scenario: str | None
    """From a header; the question may ask for one, too."""
    default_scenario: str
    authorization: str = ""


@dataclass(frozen=True)
class PlannedAnswer:
    """What is sent: events or their final object; or an answer without a response."""

    scenario: str
    options: Options
    http: HttpReply | None = None
    events: tuple[Event, ...] = ()
    final: dict[str, Any] | None = None
    """The response object, or the error event, that ends the stream."""


class Responder:
    """Answers requests; keeps the prompt cache, uploads, and counts of attempts."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._cache = PromptCache()
        self._records = PromptRecords()
        self.containers = ContainerClock()
        self.uploads = UploadStore()
        self._response_count = 0
        self._attempts: Counter[bytes] = Counter()
        self.faults: list[RefusedPart | FailedStart] = []
        self._failed_starts: Counter[tuple[FailedStart, str, int]] = Counter()

    def forget(self) -> None:
        """Forget everything except the number of responses, of which ids are made."""
        self._cache.forget()
        self._records.forget()
        self.containers.forget()
        self.uploads.forget()
        self._attempts.clear()
        self.faults.clear()
        self._failed_starts.clear()

    def answer(self, body: Body, origin: RequestOrigin) -> PlannedAnswer:
        """Return the answer to a body or raise the refusal."""
        request, replay = validate_request(body, origin)
        self.containers.check(body, request.items, self._clock())
        tools = request.configuration.tools
        self.uploads.check(tools, origin.account, self._clock())
        scenario, options = choose_scenario(request, origin)
        if self._refuses_attempt(body, options):
            error = build_http_error(options.number("status") or 500, options)
            return PlannedAnswer(scenario.name, options, error)
        parts = (fault for fault in self.faults if isinstance(fault, RefusedPart))
        refusals = (part.reply_to(request) for part in parts)
        refusal = next((reply for reply in refusals if reply is not None), None)
        reply = refusal or scenario.reply_to(request, options)
        if is_broken_by(tools, request.model):
            reply = make_reply(ending=PATTERN_FAILURE)
        if isinstance(reply, HttpReply):
            return PlannedAnswer(scenario.name, options, reply)
        events, final = self._respond(request, replay, origin, reply)
        stream_options = body.get("stream_options") or {}
        obfuscated = stream_options.get("include_obfuscation") is not False
        numbered = number_events(add_unknown_events(events, options), obfuscated)
        planned = PlannedAnswer(scenario.name, options, None, tuple(numbered), final)
        return self._fail_start(request, planned)

    def _fail_start(
        self, request: ValidRequest, planned: PlannedAnswer
    ) -> PlannedAnswer:
        """Cut an answer short whose start fails, as often as the fault says."""
        for fault in self.faults:
            if not isinstance(fault, FailedStart) or not fault.applies_to(request):
                continue
            key = (fault, request.last_user_text, request.rounds)
            self._failed_starts[key] += 1
            if self._failed_starts[key] > fault.times:
                continue
            events = fault.shorten(planned.events)
            last_event = events[-1]
            return replace(
                planned,
                options=fault.add_break(planned.options, len(events)),
                events=tuple(events),
                final=last_event.get("response", last_event),
            )
        return planned

    def _refuses_attempt(self, body: Body, options: Options) -> bool:
        """Count an attempt; tell whether the option ``status`` refuses it."""
        if not options.has("status"):
            return False
        times = options.number("times")
        if times is None:
            return True
        key = hashlib.sha256(serialize_value(body)).digest()
        self._attempts[key] += 1
        if self._attempts[key] <= times:
            return True
        del self._attempts[key]
        return False

    def _respond(
        self,
        request: ValidRequest,
        replay: Replay,
        origin: RequestOrigin,
        reply: Reply,
    ) -> tuple[list[Event], Event]:
        """Return the events of the response that a reply makes of a request.

        With them comes the response object, or the error event, that ends the stream.
        """
        organization = origin.account.organization
        now = self._clock()
        prompt = build_prompt(
            request.body, request.model, replay.items, replay.reasoning_tokens
        )
        self._response_count += 1
        seed = f"{self._response_count} ".encode() + prompt.text
        key = hashlib.sha256(seed).hexdigest()[:24]  # its ids are made of it
        drafts = list(reply.items)
        if is_to_be_compacted(request.body, prompt.tokens):
            # A compaction follows the message after a long input (recorded).
            drafts += [{"type": "compaction"}, *draft_update(request.configuration)]
        context = SealContext(key, organization, replay.prefix)
        items = fill_drafts(drafts, request, context)
        self.containers.note_use(items, now)
        opened = open_response(request, key, now, replay.removed)
        cache_key = (
            organization,
            request.model.id,
            request.body.get("prompt_cache_key"),
            serialize_value(prompt.settings),
        )
        cached = self._cache.read(cache_key, prompt.prefix)
        fields = {
            "status": reply.ending.status,
            "usage": count_usage(request, prompt, cached, items),
        }
        record = PromptRecord(
            organization=organization,
            model=request.model,
            key=request.body.get("prompt_cache_key"),
            tools=serialize_value(request.body.get("tools") or []),
            prompt=prompt,
            compactions=sum(it.get("type") == "compaction" for it in request.items),
        )
        self._records.keep(opened["id"], record)
        earlier = read_comparison(request.body)
        if earlier is not None:
            diagnosis = self._records.compare(earlier, record)
            fields["prompt_cache_diagnostics"] = diagnosis
        fields |= fill_placeholders(reply.ending.fields, request.words())
        closed = close_response(opened, items, now, fields)
        events = build_stream(reply, opened, closed)
        if reply.ending.event == "error":
            return events, events[-1]
        output = apply_ending(closed["output"], reply.ending)
        return events, {**closed, "output": output}


def validate_request(body: Body, origin: RequestOrigin) -> tuple[ValidRequest, Replay]:
    """Return the valid request of a body, or raise its first refusal."""
    check_body(body)
    check_ranges(body)
    check_research_tools(body)
    model = find_model(body.get("model", STORED_PROMPT_MODEL))
    if not origin.account.may_use(model.id):
        raise refuse("forbidden_model", project=origin.account.project, model=model.id)
    check_limits(body, model)
    configuration = read_configuration(body, model)
    check_configuration(body, model, origin.profile)
    check_model(body, model, origin.profile, configuration)
    read_comparison(body)
    items = body.get("input") or []
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if origin.profile.reads_plain_reasoning:
        items = [item for item in items if read_item_type(item) != "reasoning"]
    stored = body.get("store") is not False
    check_items(items, stored)
    check_namespaces(body, items)
    check_parts(items)
    reader = ReplayReader(
        organization=origin.account.organization,
        end_user=body.get("safety_identifier"),
        model=model,
        profile=origin.profile,
        current_turn_only=read_context(body, model) == "current_turn",
    )
    replay = read_replay(body, items, reader)
    if build_prompt(body, model, replay.items, 0).tokens > model.max_input:
        raise refuse("full_context")
    request = ValidRequest(
        body=body,
        items=items,
        model=model,
        configuration=configuration,
        reasoning_given=replay.reasoning_count,
        authorization=origin.authorization,
    )
    return request, replay


def choose_scenario(
    request: ValidRequest, origin: RequestOrigin
) -> tuple[Scenario, Options]:
    """Return the scenario that a header names, a task needs or the question names.

    Without any of them it is the default scenario.
    """
    question = request.last_user_text
    if origin.requested_scenario is None and find_task_field(question):
        return SCENARIOS["task"], Options()
    spec = origin.requested_scenario or find_spec(question) or origin.default_scenario
    name = spec.split(",", 1)[0]
    if name not in SCENARIOS:
        raise Refusal(f"The stand-in has no scenario '{name}'.", code="no_scenario")
    try:
        _, options = parse_spec(spec, SCENARIOS[name].options)
    except UnknownOption as error:
        raise Refusal(str(error), code="no_scenario") from error
    return SCENARIOS[name], options
