"""From a request's body to the answer, without any connection."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from simulator.accounts import Account
from simulator.asked import Asked, as_items
from simulator.canonical import serialise, serialise_prompt
from simulator.catalogue import SCENARIOS
from simulator.compacting import compactions
from simulator.disorder import add_strangers
from simulator.echo import Prompt, close_response, open_response, usage_of
from simulator.filling import Author, fill, substitute
from simulator.items_check import check_items
from simulator.limits_check import check_limits
from simulator.model_check import check_model, find_model, resolve_effort
from simulator.options import Options, UnknownOption, find_spec, parse_spec
from simulator.parts_check import check_parts
from simulator.profiles import Profile
from simulator.refusals import Refusal, forbidden_model
from simulator.replay_check import Reader, Replay, read_replay
from simulator.scenario import HttpReply, Reply, Scenario
from simulator.scenarios_http import http_error
from simulator.shape_check import check_body
from simulator.streams import finished_part, number, write_stream
from simulator.tasks import task_field
from simulator.tokens import PromptCache, count_prompt

Body = Mapping[str, Any]
Event = dict[str, Any]


@dataclass(frozen=True)
class Asker:
    """Who asks, and under which rules."""

    account: Account
    profile: Profile
    wish: str | None
    default_scenario: str
    authorization: str = ""


@dataclass(frozen=True)
class Answer:
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
        self._count = 0
        self._attempts: Counter[bytes] = Counter()

    def forget(self) -> None:
        """Empty the cache and the attempts; ids go on counting."""
        self._cache.forget()
        self._attempts.clear()

    def answer(self, body: Body, asker: Asker) -> Answer:
        """Return the answer to a body or raise the refusal."""
        asked, replay = understand(body, asker)
        scenario, options = choose(asked, asker)
        if self._is_to_be_refused(body, options):
            status = options.number("status") or 500
            return Answer(scenario.name, options, http_error(status, options))
        reply = scenario.reply_to(asked, options)
        if isinstance(reply, HttpReply):
            return Answer(scenario.name, options, reply)
        return self._respond(asked, replay, asker, _Chosen(scenario, options, reply))

    def _is_to_be_refused(self, body: Body, options: Options) -> bool:
        """Count an attempt; tell whether it is one of those that fail."""
        if not options.has("status"):
            return False
        times = options.number("times")
        key = hashlib.sha256(serialise(body)).digest()
        if times is None:
            return True
        self._attempts[key] += 1
        if self._attempts[key] <= times:
            return True
        del self._attempts[key]
        return False

    def _respond(
        self, asked: Asked, replay: Replay, asker: Asker, chosen: "_Chosen"
    ) -> Answer:
        account, now = asker.account, self._clock()
        text = serialise_prompt(asked.body, replay.items)
        key = self._next_key(text)
        tokens = count_prompt(text) + replay.reasoning_tokens
        items = fill(
            [*compactions(asked.body, tokens), *chosen.reply.items],
            asked,
            Author(key, account.organisation, replay.prefix),
        )
        opened = open_response(asked, key, now, replay.removed)
        prompt = self._prompt(asked, replay, account, text)
        fields = {
            "status": chosen.reply.ending.status,
            "usage": usage_of(prompt, items),
            **substitute(chosen.reply.ending.fields, asked.words()),
        }
        closed = close_response(opened, items, now, fields)
        written = write_stream(chosen.reply, opened, closed, chosen.options)
        final = _final(chosen.reply, closed, written)
        wishes = asked.body.get("stream_options") or {}
        obfuscated = wishes.get("include_obfuscation") is not False
        events = number(add_strangers(written, chosen.options), obfuscated)
        return Answer(chosen.scenario.name, chosen.options, None, tuple(events), final)

    def _next_key(self, prompt: bytes) -> str:
        self._count += 1
        seed = f"{self._count} ".encode() + prompt
        return hashlib.sha256(seed).hexdigest()[:24]

    def _prompt(
        self, asked: Asked, replay: Replay, account: Account, text: bytes
    ) -> Prompt:
        key = (
            account.organisation,
            asked.model.id,
            asked.body.get("prompt_cache_key"),
        )
        cached = self._cache.read(key, text)
        tokens = count_prompt(text) + replay.reasoning_tokens
        return Prompt(tokens, cached, asked.model.writes_cache_explicitly)


@dataclass(frozen=True)
class _Chosen:
    scenario: Scenario
    options: Options
    reply: Reply


def understand(body: Body, asker: Asker) -> tuple[Asked, Replay]:
    """Return what a body asks or raise the first refusal it deserves."""
    check_body(body)
    model = find_model(body["model"])
    if not asker.account.may_use(model.id):
        raise forbidden_model(asker.account.project, model.id)
    check_limits(body, model)
    check_model(body, model, asker.profile)
    items = as_items(body.get("input") or [])
    stored = body.get("store") is not False
    check_items(items, stored)
    check_parts(items)
    context = (body.get("reasoning") or {}).get("context")
    reader = Reader(
        asker.account.organisation,
        body.get("safety_identifier"),
        model,
        asker.profile,
        context == "current_turn",
    )
    replay = read_replay(body, items, reader)
    if count_prompt(serialise_prompt(body, replay.items)) > model.max_input:
        raise Refusal(
            "Your input exceeds the context window of this model. Please adjust your "
            "input and try again.",
            code="context_length_exceeded",
            param="input",
        )
    asked = Asked(body, items, model, resolve_effort(body, model))
    return (
        replace(
            asked,
            reasoning_given=replay.reasoning,
            authorization=asker.authorization,
        ),
        replay,
    )


def choose(asked: Asked, asker: Asker) -> tuple[Scenario, Options]:
    """Return the scenario: by header, for a task, by word, or the default."""
    if asker.wish is None and task_field(asked.said):
        return SCENARIOS["task"], Options()
    spec = asker.wish or find_spec(asked.said) or asker.default_scenario
    name = spec.split(",", 1)[0]
    if name not in SCENARIOS:
        raise Refusal(f"The stand-in has no scenario '{name}'.", code="no_scenario")
    try:
        _, options = parse_spec(spec, SCENARIOS[name].options)
    except UnknownOption as error:
        raise Refusal(str(error), code="no_scenario") from error
    return SCENARIOS[name], options


def _final(reply: Reply, closed: Event, events: list[Event]) -> Event:
    """Return the response object as it stands at the end, or the error event."""
    if reply.ending.event == "error":
        return events[-1]
    return {**closed, "output": finished_part(closed["output"], reply.ending)}
